"""Joints about and along one axis: revolute, prismatic, cylindrical and screw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import (
    Row,
    Side,
    advance,
    coincident,
    parallel_axes,
    perpendicular,
    turn_about_z,
    turned_by,
    within,
)
from bellcrank.mechanism.joints.joint import Z_SLIDE, Z_TURN, AlongChild, Array, AxisJoint, Joint
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number, Scalar, is_zero
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

__all__ = ["Cylindrical", "Prismatic", "Revolute", "Screw"]


# -- revolute joint: one angle about an axis --------------------------------------------------------
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


# -- prismatic joint: one displacement along an axis ------------------------------------------------
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


# -- cylindrical joint: an angle about and a displacement along one axis ----------------------------
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


# -- screw joint: a turn about an axis that advances along it ---------------------------------------
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
