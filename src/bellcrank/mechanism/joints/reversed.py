"""A joint seen from its child, for tree joints that point towards the ground."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.joints.joint import Array, Joint
from bellcrank.scalar.graph import Number
from bellcrank.spatial import AboutX, AboutZ, Force, General, Identity, Matrix3, Motion, Rotation, Transform, Vector

__all__ = ["Reversed"]


class Reversed(Joint):
    """The inverse motion of another joint, with that joint's own coordinates and speeds."""

    def __init__(self, joint: Joint) -> None:
        self.joint = joint
        self.nq, self.nu = joint.nq, joint.nu
        self.speed_names = joint.speed_names
        self.condition_names = joint.condition_names
        self.counts_turns = joint.counts_turns

    def alignment(self) -> Array:
        return self.joint.alignment()

    def constants(self) -> tuple[Number, ...]:
        return self.joint.constants()

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return tuple(_inverse(t) for t in reversed(self.joint.transforms(q, k)))

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return tuple(-self._outward(q, k, column) for column in self.joint.subspace(q, k))

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        # acceleration of the old parent in the turning axes of the old child:
        # -(a - 2 w x v + w x (w x p) - alpha x p), all parts in the old parent's axes
        forward = self.joint.drift(q, u, k)
        rate = Motion.zero()
        for column, speed in zip(self.joint.subspace(q, k), u, strict=True):
            rate = rate + column * speed
        turns = self.joint.transforms(q, k)
        alpha, a, w, v = (_rotated(turns, x) for x in (forward.angular, forward.linear, rate.angular, rate.linear))
        p = Vector.zero()
        for t in reversed(turns):
            p = t.point(p)
        return Motion(-alpha, -(a - w.cross(v) * 2.0 + w.centripetal(p) - alpha.cross(p)))

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return tuple(Row(r.value, r.second, r.first, r.gamma) for r in self.joint.closure_rows(second, first, k))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        arm = first.point - second.point  # what acts on the old child there acts back on the new one
        return tuple(Force(-(column.moment + arm.cross(column.force)), -column.force)
                     for column in self.joint.loop_columns(second, first, k))

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        return self.joint.loop_coordinates(second, first, k)

    def measure(self, turn: Array, shift: Array) -> Array:
        back = np.swapaxes(turn, -1, -2)
        return self.joint.measure(back, -(back @ shift[..., None])[..., 0])

    def _outward(self, q: Sequence[Number], k: Sequence[Number], column: Motion) -> Motion:
        for t in reversed(self.joint.transforms(q, k)):
            column = t.column_to_parent(column)
        return column

    def neutral(self) -> Array:
        return self.joint.neutral()

    def coordinate_names(self) -> tuple[str, ...]:
        return self.joint.coordinate_names()

    def rates(self, q: Sequence[Number], u: Sequence[Number]) -> list[Number]:
        return self.joint.rates(q, u)

    def normalized(self, q: Sequence[Number]) -> list[Number]:
        return self.joint.normalized(q)

    def integrate(self, q: Array, du: Array) -> Array:
        return self.joint.integrate(q, du)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.joint.difference(q0, q1)

    @property
    def adds_up(self) -> bool:
        return self.joint.adds_up

    def normalize(self, q: Array) -> Array:
        return self.joint.normalize(q)

    def reversed(self) -> Joint:
        return self.joint

    def kind(self) -> tuple[object, ...]:
        return ("Reversed", *self.joint.kind())

    def __repr__(self) -> str:
        return f"Reversed({self.joint!r})"


def _rotated(turns: Sequence[Transform], v: Vector) -> Vector:
    for t in reversed(turns):
        v = t.rotation.apply(v)
    return v


def _inverse(t: Transform) -> Transform:
    return Transform(_transposed(t.rotation), -t.rotation.inverse(t.translation))


def _transposed(r: Rotation) -> Rotation:
    match r:
        case AboutX(c, s):
            return AboutX(c, -s)
        case AboutZ(c, s):
            return AboutZ(c, -s)
        case General(rows):
            return General(Matrix3(*(Vector(*column) for column in zip(*rows, strict=True))))
        case _:
            return Identity()
