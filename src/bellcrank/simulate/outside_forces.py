"""Forces that a run put on record because no state tells them: external wrenches, and those of rigid contacts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np
import xarray

from bellcrank.arrays import Floats
from bellcrank.errors import StateError
from bellcrank.simulate.contact_results import places_on_record
from bellcrank.system.contact_states import contact_states

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["contact_wrenches", "contacts_on_record", "wrench_names", "wrenches_on_record"]

_PARTS = ("mx", "my", "mz", "fx", "fy", "fz")


def wrench_names(system: Machine, bodies: Sequence[int]) -> tuple[str, ...]:
    """Names of the components of wrenches on some bodies: ``"crank.mx"``."""
    return tuple(f"{system.body_names[b]}.{part}" for b in bodies for part in _PARTS)


def wrenches_on_record(result: xarray.Dataset, lead: Sequence[str]) -> dict[str, Floats] | None:
    """External wrenches on record by body, (..., 6) with the axes `lead`; None if there are none."""
    if "wrench" not in result:
        return None
    table = np.asarray(result["wrench"].transpose(*lead, "wrench_component").values, dtype=float)
    labels = [str(x).rpartition(".")[0] for x in result["wrench_component"].values[::6]]
    return {body: np.nan_to_num(table[..., 6 * k:6 * k + 6]) for k, body in enumerate(labels)}


def contacts_on_record(result: xarray.Dataset, names: Sequence[str], what: str) -> dict[str, Floats]:
    """Forces on record at the places of some rigid contacts, (..., places, 3), NaN where they are not known."""
    if not names:
        return {}
    if "contact_force" not in result:
        raise StateError(f"{what}: no forces of the rigid contact {names[0]!r} are on record here; a run with "
                         "stepper='moreau' keeps them unless it is very long")
    table = result["contact_force"].transpose(..., "contact_component")
    own = places_on_record(str(x) for x in table["contact_component"].values)
    values = np.asarray(table.values, dtype=float)
    return {name: values[..., own[name]].reshape(*values.shape[:-1], -1, 3) for name in names}


def contact_wrenches(system: Machine, q: Floats, u: Floats, t: Floats, on_record: Mapping[str, Floats]) -> Floats:
    """What forces at the places of rigid contacts exert on all bodies, (..., bodies, 6), as external wrenches: world
    axes, about the origins of bodies."""
    names = system.model.tree.body_names
    ends = {c.name: (c.first, c.second) for c in system.model.mechanism.contacts}
    places = contact_states(system.plans, q, u, t=t, only=set(on_record))
    out = np.zeros((*u.shape[:-1], len(names) - 1, 6))
    for name, forces in on_record.items():
        for body, sign in zip(ends[name], (-1.0, 1.0), strict=True):
            if body:
                arm = places[name].point - system.pose(q, names[body], t=t).position[..., None, :]
                out[..., body - 1, :3] += sign * np.cross(arm, forces).sum(axis=-2)
                out[..., body - 1, 3:] += sign * forces.sum(axis=-2)
    return out
