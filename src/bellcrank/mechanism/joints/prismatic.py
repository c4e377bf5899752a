"""Prismatic joint: one displacement along an axis."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.mechanism.constraint_rows import Row, Side, parallel_axes, perpendicular, within
from bellcrank.mechanism.joints.joint import Z_SLIDE, Array, AxisJoint
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

__all__ = ["Prismatic"]


class Prismatic(AxisJoint):
    """A slider. q = displacement [m], u = speed [m/s]."""

    nq = nu = 1
    speed_names = ("slide",)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return (Transform(AboutZ(cos(k[0]), sin(k[0])), Vector(0.0, 0.0, q[0] + k[1])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Z_SLIDE,)

    condition_names = ("about y", "about x", "about z", "along x", "along y")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*parallel_axes(first, second), perpendicular(first, second, first.x, second.y),
                within(first, second, first.x), within(first, second, first.y))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        return (Force(Vector.zero(), first.z),)

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        return (first.z.dot(second.point - first.point),)

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        return within(first, second, first.z, value)

    def measure(self, turn: Array, shift: Array) -> Array:
        return shift[..., 2:]
