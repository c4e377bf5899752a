"""What contacts did over a run, place by place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.simulate.acting import States
from bellcrank.system.contact_states import contact_states

__all__ = ["AT_PLACES", "PlaceField", "place_fields"]

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


def place_fields(states: States, name: str) -> dict[str, PlaceField]:
    """All of `AT_PLACES` of one contact."""
    found = contact_states(states.system.plans, states.q, states.u, t=states.t, only=name)[name]
    return {field: PlaceField(np.asarray(getattr(found, field), dtype=float), units, f"{words} of {name}")
            for field, (units, words) in AT_PLACES.items()}
