"""Cylindrical joint: an angle about and a displacement along one axis."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.mechanism.constraint_rows import Row, Side, parallel_axes, turn_about_z, turned_by, within
from bellcrank.mechanism.joints.joint import Z_SLIDE, Z_TURN, Array, AxisJoint
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

__all__ = ["Cylindrical"]


class Cylindrical(AxisJoint):
    """A sleeve on a shaft. q = (angle [rad], displacement [m]), u = their rates."""

    nq = nu = 2
    speed_names = ("angle", "slide")

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        angle = q[0] + k[0]
        return (Transform(AboutZ(cos(angle), sin(angle)), Vector(0.0, 0.0, q[1] + k[1])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Z_TURN, Z_SLIDE)

    condition_names = ("about y", "about x", "along x", "along y")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*parallel_axes(first, second), within(first, second, first.x), within(first, second, first.y))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        return (Force(first.z, Vector.zero()), Force(Vector.zero(), first.z))

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        return turn_about_z(first, second), first.z.dot(second.point - first.point)

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        return within(first, second, first.z, value) if coordinate else turned_by(first, second, value)

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.stack([np.arctan2(turn[..., 1, 0], turn[..., 0, 0]), shift[..., 2]], axis=-1)
