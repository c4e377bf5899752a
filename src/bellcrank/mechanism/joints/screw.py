"""Screw joint: a turn about an axis that advances along it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side, advance, parallel_axes, turn_about_z, turned_by, within
from bellcrank.mechanism.joints.joint import Array, AxisJoint
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number, Scalar, is_zero
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

__all__ = ["Screw"]


class Screw(AxisJoint):
    """A nut on a spindle. q = angle [rad], u = rate [rad/s]; `pitch` is the advance [m/rad]."""

    nq = nu = 1
    speed_names = ("angle",)

    @checked
    def __init__(self, axis: str | Sequence[Number] = "z", pitch: Number = 0.0) -> None:
        super().__init__(axis)
        if not isinstance(pitch, Scalar):
            try:
                pitch = float(pitch)
            except (TypeError, ValueError):
                raise ModelError(f"Screw pitch: {pitch!r} is not a number") from None
            if not abs(pitch) < float("inf"):
                raise ModelError(f"Screw pitch: {pitch} is not finite")
        self.pitch: Number = pitch
        self.counts_turns = isinstance(pitch, Scalar) or pitch != 0.0  # the advance tells them

    def constants(self) -> tuple[Number, ...]:
        return (0.0, 0.0, self.pitch)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        angle = q[0] + k[0]
        return (Transform(AboutZ(cos(angle), sin(angle)), Vector(0.0, 0.0, k[2] * q[0] + k[1])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Motion(Vector(0.0, 0.0, 1.0), Vector(0.0, 0.0, k[2])),)

    def reversed(self) -> Screw:
        return Screw(tuple(-a for a in self.axis), self.pitch)

    condition_names = ("about y", "about x", "along x", "along y", "advance")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*parallel_axes(first, second), within(first, second, first.x), within(first, second, first.y),
                advance(first, second, k[2]))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        return (Force(first.z, Vector.zero()),)

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        if is_zero(k[2]):
            return (turn_about_z(first, second),)
        return (first.z.dot(second.point - first.point) / k[2],)  # the advance knows whole turns, too

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        if is_zero(k[2]):
            return turned_by(first, second, value)
        return within(first, second, first.z, k[2] * value)  # the advance knows whole turns, too

    def measure(self, turn: Array, shift: Array) -> Array:
        angle = np.arctan2(turn[..., 1, 0], turn[..., 0, 0])
        pitch = float(self.pitch)
        turns = np.round((shift[..., 2] / pitch - angle) / (2.0 * np.pi)) if pitch else 0.0
        return np.asarray(angle + turns * 2.0 * np.pi)[..., None]

    def __repr__(self) -> str:
        return f"Screw({self.axis}, pitch={self.pitch})"
