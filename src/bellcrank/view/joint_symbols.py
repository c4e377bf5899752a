"""Symbols of joints and of the ground, by joint type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.mechanism.joints import Joint
from bellcrank.scalar.graph import Number
from bellcrank.view.frame_algebra import along, triple_of, turned
from bellcrank.view.scene import DrawnJoint, DrawnShape

__all__ = ["SLIDING", "ground_symbol", "joint_axes", "joint_symbol"]

#: joints whose frames move apart: their origins are no pins of a body
SLIDING = ("Prismatic", "Cylindrical", "Planar", "Free")
_DARK = (0.27, 0.30, 0.35, 1.0)
_RAIL = (0.55, 0.58, 0.63, 1.0)


def joint_axes(joint: Joint, numbers: Callable[[Sequence[Number]], Floats]) -> tuple[tuple[float, float, float], ...]:
    """Directions about or along which a joint moves, in its own frame; none where there is no single one. `numbers`
    says what parameters stand for."""
    for names in (("axis1", "axis2"), ("axis",), ("normal",)):
        if all(hasattr(joint, name) for name in names):
            return tuple(triple_of(numbers(getattr(joint, name))) for name in names)
    return ()


def joint_symbol(joint: DrawnJoint, thickness: float, length: float
                 ) -> tuple[tuple[DrawnShape, ...], tuple[DrawnShape, ...]]:
    """Shapes on the parent and on the child."""
    r = thickness
    at, turn = joint.parent_pose
    axes = [turned(turn, np.array(a)) for a in joint.axes]
    if joint.kind in ("Revolute", "Screw"):
        return (_rod(at, axes[0], 1.35 * r, 3.4 * r),), ()
    if joint.kind == "Universal":
        return tuple(_rod(at, a, 0.8 * r, 4.4 * r) for a in axes), ()
    if joint.kind == "Spherical":
        return (DrawnShape("sphere", (1.7 * r,) * 3, triple_of(at), color=_DARK, role="joint"),), ()
    if joint.kind in ("Prismatic", "Cylindrical"):
        if joint.parent and joint.child:
            return (), ()  # a cylinder and its piston show it themselves
        on_child, child_turn = joint.child_pose
        guide = turned(child_turn, np.array(joint.axes[0]))
        rail = _rod(at, axes[0], 0.5 * r, 1.4 * length, _RAIL)
        if joint.kind == "Cylindrical":
            return (rail,), (_rod(on_child, guide, 1.8 * r, 6.0 * r),)
        block = DrawnShape("box", (3.6 * r, 3.6 * r, 5.6 * r), triple_of(on_child), along(guide), _DARK, "joint")
        return (rail,), (block,)
    if joint.kind == "Planar":
        plate = DrawnShape("box", (length, length, 0.3 * r), triple_of(at), along(axes[0]), (*_RAIL[:3], 0.4), "joint")
        return (plate,), ()
    if joint.kind == "Weld":
        return (DrawnShape("box", (1.6 * r,) * 3, triple_of(at), along((0, 0, 1)), _DARK, "joint"),), ()
    return (), ()


def _rod(at: Floats, axis: Floats, radius: float, length: float,
         color: tuple[float, float, float, float] = _DARK) -> DrawnShape:
    return DrawnShape("cylinder", (radius, length), triple_of(at), along(axis), color, "joint")


def ground_symbol(at: Floats, up: Floats, thickness: float) -> DrawnShape:
    """A foot that holds a joint: a cone below its point."""
    height = 4.5 * thickness
    return DrawnShape("cone", (3.0 * thickness, height), triple_of(at - 0.5 * height * up), along(up),
                      (0.62, 0.65, 0.70, 1.0), "ground")
