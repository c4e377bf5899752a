"""Revolute joint: one angle about an axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.mechanism.constraint_rows import Row, Side, coincident, parallel_axes, turn_about_z, turned_by
from bellcrank.mechanism.joints.joint import Z_TURN, AlongChild, Array, AxisJoint, Joint
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

__all__ = ["Revolute"]


class Revolute(AxisJoint):
    """A hinge. q = angle [rad], u = rate [rad/s].

    >>> Revolute("y").axis
    (0.0, 1.0, 0.0)
    """

    nq = nu = 1
    speed_names = ("angle",)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        angle = q[0] + k[0]
        return (Transform(AboutZ(cos(angle), sin(angle)), Vector(0.0, 0.0, k[1])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Z_TURN,)

    condition_names = ("along x", "along y", "along z", "about y", "about x")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*coincident(first, second), *parallel_axes(first, second))

    def along_child(self) -> Joint:
        return _RevoluteAlongChild(self.axis) if type(self) is Revolute else self

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        return (Force(first.z, Vector.zero()),)

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        return (turn_about_z(first, second),)

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        return turned_by(first, second, value)

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.arctan2(turn[..., 1, 0], turn[..., 0, 0])[..., None]


class _RevoluteAlongChild(AlongChild, Revolute):
    """The same hinge, closed along the axes of its child."""
