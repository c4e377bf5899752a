"""What a run needs of contacts: a method that knows rigid ones, and shapes that do not overlap when it begins."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, StateError
from bellcrank.mechanism.contact.contact_material import Unyielding
from bellcrank.mechanism.geometry.height_field import HeightField
from bellcrank.mechanism.geometry.solids import Plane
from bellcrank.system.contact_states import contact_states
from bellcrank.topology.contact_pairs import ContactPair

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["check_contacts"]

#: share of the smaller shape by which shapes may overlap at the start of a run: rigid ones, and compliant ones
RIGID, SOFT = 1e-3, 0.25


def check_contacts(system: Machine, stepper: str, y: Floats, t: float) -> None:
    """Refuse rigid contacts without the method for them, and shapes that overlap; with names and depths."""
    tree = system.model.tree
    if tree.contacts and stepper != "moreau":
        raise ModelError(f"simulate: contact {tree.contacts[0].name!r} is rigid (it has no stiffness), which needs "
                         f"stepper='moreau', not {stepper!r}")
    pairs: list[ContactPair] = [p for p in (*tree.pairs, *tree.contacts) if isinstance(p, ContactPair)]
    if not pairs:
        return
    deep = []
    for pair, depth in zip(pairs, _depths(system, y[..., :system.nq], t), strict=True):
        size = min(_size(pair.first_shape), _size(pair.second_shape))
        if depth > (RIGID if isinstance(pair.material, Unyielding) else SOFT) * size:
            deep.append((float(depth), pair.name))
    if deep:
        named = ", ".join(f"{name!r} by {depth:.3g} m" for depth, name in sorted(deep, reverse=True)[:6])
        more = f" and {len(deep) - 6} more" if len(deep) > 6 else ""
        raise StateError(f"simulate: shapes of contacts overlap at the start: {named}{more}; begin with the bodies "
                         "apart, or leave out contacts that are not meant (add_contacts(..., exclude=...))")


def _depths(system: Machine, q: Floats, t: float) -> Floats:
    """The largest depth of every contact in any of the states [m], compliant ones first."""
    kernels, name = system.kernels, "contact_depths"
    earlier = next(kernels.kept("contact checks", count))  # for one run alone it is not worth compiling
    if earlier and kernels.covers(name) and not kernels.springs_outside and kernels.compiled(name) is not None:
        return np.asarray(kernels.run(name, {"q": q}, None, t).reshape(len(q), -1).max(axis=0))
    found = contact_states(system.plans, q, np.zeros(system.nu), t=t)
    return np.array([one.depth.max() for one in found.values()])


def _size(shape: Any) -> float:
    """The smallest extent of a shape [m]."""
    if isinstance(shape, (HeightField, Plane)):
        return float("inf")
    low, high = shape.bounds() if hasattr(shape, "bounds") else (np.min(shape.corners, axis=0),
                                                                 np.max(shape.corners, axis=0))
    return float(np.min(high - low))
