"""Which loads of closing joints mechanics alone does not determine, and which loops lie in a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.mechanism.joints import Planar, Prismatic, Revolute

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["joint_axes", "open_rows", "plane_of"]

#: machines with more constraints are not asked: the Jacobian is dense here
MOST = 400
#: entries of unit vectors below this are zero; singular values below this part of the largest are none
_NONE, _RANK = 1e-6, 1e-9


def open_rows(system: System, q: Floats) -> tuple[int, ...]:
    """Constraints whose loads are not determined at a closed position: those that take part in loads which balance each
    other, J^T lambda = 0. Cost: O(m^2 nu) for m constraints."""
    drawn, drawing = system.plans.drawn, system.plans.drawing
    rows = drawn.dense(drawn.linearized(q)[1]) * system.model.tree.speed_sizes  # angles and lengths alike
    nothing = _RANK if drawing is None else 10.0 * system.model.options.drawing_tolerance
    if not rows.size or len(rows) > MOST:
        return ()
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    some = sizes > _RANK * sizes.max()  # others are rounding, and bind nothing
    left, values, _ = np.linalg.svd(np.where(some, rows / np.where(some, sizes, 1.0), 0.0))
    rank = int((values > nothing * values.max(initial=0.0)).sum())
    return tuple(np.flatnonzero(np.abs(left[:, rank:]).max(axis=1, initial=0.0) > _NONE).tolist())


def joint_axes(system: System, q: Floats) -> dict[str, tuple[bool, Floats]]:
    """Of hinges, slides and planar joints: whether it slides, and its axis (the normal) in world axes."""
    mechanism = system.model.mechanism
    turns = np.concatenate([np.eye(3)[None], np.asarray(system.pose(q).rotation).reshape(-1, 3, 3)])
    found = {}
    for record in mechanism.joints:
        kind = record.joint
        if isinstance(kind, (Revolute, Prismatic, Planar)):
            axis = np.asarray(kind.normal if isinstance(kind, Planar) else kind.axis, dtype=float)
            turn = system.model.values_of(record.parent_pose.rows).reshape(-1, 3, 3)[0]
            found[record.name] = (isinstance(kind, Prismatic), np.asarray(turns[record.parent] @ turn @ axis))
    return found


def plane_of(axes: Mapping[str, tuple[bool, Floats]], joints: Sequence[str]) -> Floats | None:
    """The normal of the plane in which a loop of these joints moves; None if there is none."""
    if any(name not in axes for name in joints):
        return None
    normals = [axis for slides, axis in (axes[name] for name in joints) if not slides]
    slides = [axis for sliding, axis in (axes[name] for name in joints) if sliding]
    if not normals or any(np.abs(np.cross(normals[0], axis)).max() > _NONE for axis in normals):
        return None
    return None if any(abs(float(normals[0] @ axis)) > _NONE for axis in slides) else normals[0]
