"""Joints by their axes: revolute, prismatic, cylindrical, screw, universal, planar, and the weld, which has none."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
from bellcrank.mechanism.joints.joint import (
    Z_SLIDE,
    Z_TURN,
    AlongChild,
    Array,
    AxisJoint,
    Joint,
    beside,
    frame_with_z,
    unit_vector,
)
from bellcrank.mechanism.turns import Rows, by_columns, has_parameter, product, unit
from bellcrank.scalar.functions import atan2, cos, sin
from bellcrank.scalar.graph import Number, Scalar, is_zero
from bellcrank.spatial import AboutX, AboutZ, Force, General, Matrix3, Motion, Rotation, Transform, Vector

__all__ = ["Cylindrical", "Planar", "Prismatic", "Revolute", "Screw", "Universal", "Weld"]


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


# -- universal (Hooke, Cardan) joint: a turn about an axis of the parent, then about one of the child ---
class Universal(Joint):
    """R = exp(axis1 q1) exp(axis2 q2). q = two angles [rad], u = their rates.

    The axes are usually perpendicular but may be any two that are not parallel.
    Canonical axes: axis2 is z, axis1 lies in the x-z plane. Constants: x and z entries of axis1.
    """

    nq = nu = 2
    speed_names = ("angle1", "angle2")

    @checked
    def __init__(self, axis1: str | Sequence[Number] = "x", axis2: str | Sequence[Number] = "y") -> None:
        self.axis1 = unit_vector(axis1, "Universal axis1")
        self.axis2 = unit_vector(axis2, "Universal axis2")
        self.across: tuple[Number, Number]  #: the parts of axis1 across and along axis2
        if has_parameter((*self.axis1, *self.axis2)):  # see `settled`
            return
        self._normal = np.cross(self.axis2, self.axis1)  # accurate for nearly parallel axes, too
        across, along = float(np.sqrt(self._normal @ self._normal)), float(np.dot(self.axis1, self.axis2))
        if across < 1e-6:
            raise ModelError("Universal: axis1 and axis2 are parallel; give two different directions")
        self.across = (1.0, 0.0) if abs(along) < 1e-15 else (across, along)

    @property
    def axes(self) -> tuple[Number, ...]:
        """All numbers of its axes."""
        return (*self.axis1, *self.axis2)

    def settled(self, number: Callable[[Sequence[Number]], Sequence[float]]) -> tuple[Universal, Rows]:
        """For axes that depend on parameters: see `mechanism`. Their angle remains one of the joint's numbers."""
        made, z, axis = Universal(number(self.axis1), number(self.axis2)), Vector(*self.axis2), Vector(*self.axis1)
        align, y = made.alignment(), Vector(*unit(z.cross(axis)))
        x = y.cross(z)
        made.across = across, along = axis.dot(x), axis.dot(z)
        made.axis1 = tuple(across * p + along * r for p, r in align[:, [0, 2]].tolist())
        return made, product(by_columns(x, y, z), align.T.ravel().tolist())

    def alignment(self) -> Array:
        z = np.array(self.axis2)
        y = self._normal / np.sqrt(self._normal @ self._normal)
        return np.stack([np.cross(y, z), y, z], axis=-1)

    def constants(self) -> tuple[Number, ...]:
        return self.across

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        c1, s1 = cos(q[0]), sin(q[0])
        first: Rotation
        if is_zero(k[1]):
            first = AboutX(c1, s1)
        else:  # Rodrigues' formula for the axis (a, 0, b)
            a, b = k
            v = 1.0 - c1
            first = General(Matrix3(Vector(c1 + v * a * a, -(s1 * b), v * a * b),
                                    Vector(s1 * b, c1, -(s1 * a)),
                                    Vector(v * a * b, s1 * a, c1 + v * b * b)))
        return (Transform(first, Vector.zero()),
                Transform(AboutZ(cos(q[1]), sin(q[1])), Vector.zero()))

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        first = Vector(cos(q[1]) * k[0], -(sin(q[1]) * k[0]), k[1])
        return (Motion(first, Vector.zero()), Z_TURN)

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        rate = u[0] * u[1] * k[0]
        return Motion(Vector(-(sin(q[1]) * rate), -(cos(q[1]) * rate), 0.0), Vector.zero())

    condition_names = ("along x", "along y", "along z", "angle of the axes")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        axis = first.x * k[0] + first.z * k[1]
        return (*coincident(first, second), perpendicular(first, second, axis, second.z, k[1]))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        a, b = first.x * k[0] + first.z * k[1], second.z  # the two axes keep their angle
        scale = 1.0 / (1.0 - k[1] * k[1])
        none = Vector.zero()
        return Force((a - b * k[1]) * scale, none), Force((b - a * k[1]) * scale, none)

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        a, b = k
        z = second.z
        along = first.z.dot(z) * (a * a) - first.x.dot(z) * (a * b)
        one = atan2(-(first.y.dot(z) * a), along)
        c, s = cos(one), sin(one)
        v = 1.0 - c
        y = first.y * c - first.x * (s * b) + first.z * (s * a)  # the y and x axes after the first turn
        x = first.x * (c + v * a * a) + first.y * (s * b) + first.z * (v * a * b)
        return one, atan2(y.dot(second.x), x.dot(second.x))

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        a, b = k
        axis, c, s = first.x * a + first.z * b, cos(value), sin(value)
        if coordinate:  # the first axis, seen from the child, is turned back
            return perpendicular(first, second, axis, second.x * s + second.y * c)
        there = first.x * ((1.0 - c) * a * b) - first.y * (s * a) + first.z * (c + (1.0 - c) * b * b)
        return perpendicular(first, second, axis.cross(there), second.z)  # the second axis after the first turn

    def measure(self, turn: Array, shift: Array) -> Array:
        a, b = (float(c) for c in self.across)
        z = turn[..., 2]  # the second axis after the first turn, measured from where it was
        along = -a * b * z[..., 0] + a * a * z[..., 2]
        first = np.arctan2(-a * z[..., 1], along)
        c, s = np.cos(first), np.sin(first)
        y = np.stack([-(s * b), c, s * a], axis=-1)  # the y axis after the first turn
        x = np.stack([c + (1.0 - c) * a * a, s * b, (1.0 - c) * a * b], axis=-1)
        second = np.arctan2((y * turn[..., 0]).sum(-1), (x * turn[..., 0]).sum(-1))
        return np.stack([first, second], axis=-1)

    def __repr__(self) -> str:
        return f"Universal({self.axis1}, {self.axis2})"


# -- planar joint: two displacements in a plane and the angle about its normal ----------------------
class Planar(Joint):
    """q = (x [m], y [m], angle [rad]), u = their rates.

    x and y are measured along axes of the joint frame: for a normal along z they are its x and y;
    otherwise x is the joint frame's x made perpendicular to the normal (its y if x is the normal).
    """

    nq = nu = 3
    speed_names = ("x", "y", "angle")

    @checked
    def __init__(self, normal: str | Sequence[Number] = "z") -> None:
        self.normal = unit_vector(normal, "Planar normal")

    @property
    def axes(self) -> tuple[Number, ...]:
        """All numbers of its axes."""
        return self.normal

    def settled(self, number: Callable[[Sequence[Number]], Sequence[float]]) -> tuple[Planar, Rows]:
        """For a normal that depends on parameters: see `mechanism`. Which axis of the joint frame x follows is
        decided at their default values."""
        made = Planar(number(self.normal))
        align = made.alignment()
        z, helper = Vector(*self.normal), Vector(*beside(np.array(made.normal)).tolist())
        x = Vector(*unit(helper - z * helper.dot(z)))
        return made, product(by_columns(x, z.cross(x), z), align.T.ravel().tolist())

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.normal))

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return (Transform(AboutZ(cos(q[2]), sin(q[2])), Vector(q[0], q[1], 0.0)),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        c, s = cos(q[2]), sin(q[2])
        return (Motion(Vector.zero(), Vector(c, -s, 0.0)), Motion(Vector.zero(), Vector(s, c, 0.0)), Z_TURN)

    condition_names = ("about y", "about x", "along z")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*parallel_axes(first, second), within(first, second, first.z))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        none = Vector.zero()
        return Force(none, first.x), Force(none, first.y), Force(first.z, none)

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        d = second.point - first.point
        return first.x.dot(d), first.y.dot(d), turn_about_z(first, second)

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        axis = (first.x, first.y, None)[coordinate]
        return turned_by(first, second, value) if axis is None else within(first, second, axis, value)

    def measure(self, turn: Array, shift: Array) -> Array:
        angle = np.arctan2(turn[..., 1, 0], turn[..., 0, 0])
        return np.stack([shift[..., 0], shift[..., 1], angle], axis=-1)

    def __repr__(self) -> str:
        return f"Planar({self.normal})"


# -- weld: no relative motion. Welded bodies are merged when a mechanism is compiled ----------------
class Weld(Joint):
    """Two bodies held rigidly together."""

    nq = nu = 0

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return ()

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return ()

    def reversed(self) -> Weld:
        return self

    condition_names = ("along x", "along y", "along z", "about z", "about x", "about y")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*coincident(first, second), perpendicular(first, second, first.x, second.y),
                perpendicular(first, second, first.y, second.z), perpendicular(first, second, first.z, second.x))

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.zeros((*turn.shape[:-2], 0))
