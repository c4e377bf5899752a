"""Universal (Hooke, Cardan) joint: a turn about an axis of the parent, then about one of the child."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side, coincident, perpendicular
from bellcrank.mechanism.joints.joint import Z_TURN, Array, Joint, unit_vector
from bellcrank.mechanism.turns import Rows, by_columns, has_parameter, product, unit
from bellcrank.scalar.functions import atan2, cos, sin
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.spatial import AboutX, AboutZ, Force, General, Matrix3, Motion, Rotation, Transform, Vector

__all__ = ["Universal"]


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
