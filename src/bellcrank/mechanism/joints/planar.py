"""Planar joint: two displacements in a plane and the angle about its normal."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bellcrank.arguments import checked
from bellcrank.mechanism.constraint_rows import Row, Side, parallel_axes, turn_about_z, turned_by, within
from bellcrank.mechanism.joints.joint import Z_TURN, Array, Joint, beside, frame_with_z, unit_vector
from bellcrank.mechanism.turns import Rows, by_columns, product, unit
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number
from bellcrank.spatial import AboutZ, Force, Motion, Transform, Vector

__all__ = ["Planar"]


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
