"""Axes that are meant to be parallel: decimals tilt them, and a planar linkage with tilted axes is locked."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.io.common.xml import clipped
from bellcrank.io.sdf.joints import Hinge, Note
from bellcrank.mechanism.joints import Prismatic, Revolute, Screw

__all__ = ["align"]

#: tilts between these [rad] come from decimals, not from rounding of floats nor from the design
_ROUNDED, _MEANT = 1e-12, 2e-3
_MOST = 2000


def align(hinges: Sequence[Hinge], links: int, tolerance: float, note: Note) -> None:
    """Make axes parallel that are so within `tolerance` [rad]; warn about those of loops that are only nearly so.

    Cost: number of joints times number of directions.
    """
    axes = [h for h in hinges if isinstance(h.joint, (Revolute, Prismatic, Screw))]
    moving = [h for h in hinges if h.joint is not None]
    if len(moving) < links or len(axes) > _MOST:
        return  # without loops nothing is locked
    leaders: list[Hinge] = []
    directions = np.zeros((0, 3))
    worst, tilted, example = 0.0, 0, ("", "")
    for hinge in axes:
        joint = hinge.joint
        assert isinstance(joint, (Revolute, Prismatic, Screw))
        turn = hinge.node.absolute.rotation
        own = turn @ np.array(joint.axis)
        tilts = np.linalg.norm(np.cross(directions, own), axis=1)
        best = int(tilts.argmin()) if len(leaders) else -1
        if best >= 0 and tilts[best] <= max(tolerance, _MEANT):
            tilt = float(tilts[best])
            if _ROUNDED < tilt <= tolerance:
                leader = directions[best] * np.sign(directions[best] @ own)
                hinge.joint = _with_axis(joint, turn.T @ leader)
                note("changed", hinge.element, f"turned by {tilt:.2g} rad: parallel to joint "
                                               f"{clipped(leaders[best].name)!r}")
                continue
            if tilt > _ROUNDED:
                tilted += 1
                if tilt > worst:
                    worst, example = tilt, (leaders[best].name, hinge.name)
            elif tilt <= _ROUNDED:
                continue
        leaders.append(hinge)
        directions = np.vstack([directions, own])
    if tilted:
        some = f"{tilted} axes are" if tilted > 1 else "an axis is"
        note("warned", axes[0].element.parent or axes[0].element,
             f"there are loops, and {some} parallel to others within {_MEANT:g} rad but not exactly, such as those of "
             f"{clipped(example[0])!r} and {clipped(example[1])!r} ({worst:.2g} rad); planar linkages may lock by "
             f"that; parallel={_MEANT:g} makes them parallel")


def _with_axis(joint: Revolute | Prismatic | Screw, axis: np.ndarray) -> Revolute | Prismatic | Screw:
    whole = np.round(axis)
    exact = tuple(np.where(np.abs(axis - whole) < 1e-15, whole, axis).tolist())
    return Screw(exact, joint.pitch) if isinstance(joint, Screw) else type(joint)(exact)
