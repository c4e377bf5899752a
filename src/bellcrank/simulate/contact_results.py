"""What contacts did over a run, place by place."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.system.contact_states import ContactState
from bellcrank.system.element_states import ElementForces

__all__ = ["AT_PLACES", "PlaceField", "place_fields", "places_on_record", "rigid_element"]

#: what results say of every place of a contact: units, and what it is
AT_PLACES = {"normal_force": ("N", "normal force"), "depth": ("m", "depth (negative: distance)"),
             "closed": ("1", "1 where the shapes touch"), "friction": ("N", "friction on the second body"),
             "slip": ("m/s", "velocity of the second body across the first"), "point": ("m", "where forces act"),
             "normal": ("1", "normal, from the first body to the second")}


class PlaceField(NamedTuple):
    """A quantity at the places of a contact: values (..., places) or (..., places, 3)."""

    values: Floats
    units: str
    words: str


def place_fields(found: ContactState, forces: Floats | None = None) -> dict[str, PlaceField]:
    """All of `AT_PLACES` of one contact; of a rigid one with the `forces` (..., places, 3) that are on record."""
    if forces is not None:
        found = _with_forces(found, forces)
    return {field: PlaceField(np.asarray(getattr(found, field), dtype=float), units, f"{words} of {found.name}")
            for field, (units, words) in AT_PLACES.items()}


def _with_forces(found: ContactState, forces: Floats) -> ContactState:
    normal_force = (forces * found.normal).sum(axis=-1)
    return replace(found, normal_force=normal_force, friction=forces - found.normal * normal_force[..., None])


def rigid_element(found: ContactState, forces: Floats) -> ElementForces:
    """What a rigid contact did as an element, as compliant ones report it: with the mean forces over the steps before
    the samples, and the velocities at these."""
    found = _with_forces(found, forces)
    weight = np.maximum(found.normal_force, 0.0)
    total = weight.sum(axis=-1)
    deepest = found.depth.argmax(axis=-1)[..., None]
    nearest = np.take_along_axis(found.point, deepest[..., None], axis=-2)[..., 0, :]
    some = np.where(total > 0.0, total, 1.0)
    center = np.where(total[..., None] > 0.0, (found.point * weight[..., None]).sum(axis=-2) / some[..., None], nearest)
    vector = forces.sum(axis=-2)
    torque = np.cross(found.point - center[..., None, :], forces).sum(axis=-2)
    velocity = found.slip - found.normal * found.rate[..., None]
    power = (forces * velocity).sum(axis=(-2, -1))
    rate = -np.take_along_axis(found.rate, deepest, axis=-1)[..., 0]
    return ElementForces(found.normal_force.sum(axis=-1), -found.depth.max(axis=-1), rate, power,
                         np.where(np.isnan(power), np.nan, 0.0), vector, torque, center, center.copy())


def places_on_record(labels: Iterable[str]) -> dict[str, list[int]]:
    """Entries of forces at the places of rigid contacts, by their labels ``"floor[0].x"``.

    >>> places_on_record(["floor[0].x", "floor[0].y", "floor[0].z", "wall[0].x"])
    {'floor': [0, 1, 2], 'wall': [3]}
    """
    out: dict[str, list[int]] = {}
    for k, label in enumerate(labels):
        out.setdefault(label.rpartition("[")[0], []).append(k)
    return out
