"""Joints made of other joints: on plain numbers, with coordinates that are held, with frames that are turned.

A joint that closes a loop and of which some coordinates are held: by locks, and by stops that it is pressed against.

It keeps its coordinates, speeds and forces along them; its constraints are more: one for every coordinate that is held,
at a value, or where it is. The latter bind speeds alone, as those of rolling do.

A joint whose frames are turned against those of its bodies by angles that depend on parameters.

Turns that are numbers are spent on link frames when a mechanism is compiled (`topology.link_frames`). Here they are
among the joint's own numbers: links keep the axes of their bodies, and the joint's axes lie in these as parameters say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side, coincident, perpendicular
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.joints.joint import Array, Joint, OtherJoint
from bellcrank.mechanism.turns import apply, product, transposed
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Motion, Transform, Vector

__all__ = ["HeldJoint", "Place", "TurnedJoint", "place_of", "side_at", "six", "turned"]


# -- A joint's methods on plain numbers -------------------------------------------------------------
class Place(NamedTuple):
    """A pose of the child in the parent."""

    turn: Floats
    shift: Floats

    def __matmul__(self, other: Place) -> Place:
        return Place(self.turn @ other.turn, self.turn @ other.shift + self.shift)

    def inverse(self) -> Place:
        """The pose of the parent in the child."""
        return Place(self.turn.T, -self.turn.T @ self.shift)

    def off(self, other: Place) -> float:
        """The largest difference of any entry."""
        return float(max(np.abs(self.turn - other.turn).max(), np.abs(self.shift - other.shift).max()))


def place_of(joint: Joint, q: Sequence[float] | Floats, k: Sequence[float]) -> Place:
    """The child side in the parent side, canonical axes."""
    place = Place(np.eye(3), np.zeros(3))
    for t in joint.transforms([float(x) for x in q], list(k)):
        columns = [np.array(t.rotation.apply(Vector(*e)), dtype=float) for e in np.eye(3).tolist()]
        place = place @ Place(np.stack(columns, axis=-1), np.array(t.translation, dtype=float))
    return place


def six(motion: Motion | Force) -> Floats:
    """A motion or force as six numbers."""
    return np.array([float(x) for part in motion for x in part])


def turned(angle: npt.ArrayLike) -> Floats:
    """The rotation matrix of a rotation vector."""
    turn = quaternion.exponential(np.asarray(angle, dtype=float))
    return np.stack([quaternion.turn(turn, e) for e in np.eye(3)], axis=-1)


def side_at(place: Place, arm: Floats, omega: Floats, rate: Floats) -> Side:
    """One side of a closure on a body that moves."""
    vectors = (place.shift, arm, *place.turn.T, omega, rate)
    return Side(*(Vector(*(float(x) for x in v)) for v in vectors))


# -- A joint that closes a loop and of which some coordinates are held ------------------------------
class HeldJoint(OtherJoint):
    """Another joint with some of its coordinates held at values, which are the last of its constants; without values
    where they are."""

    def __init__(self, joint: Joint, held: Sequence[int], values: Sequence[Number] | None = None) -> None:
        if joint.nq != joint.nu and (values is not None or len(held) != joint.nq):
            raise ModelError(f"a {type(joint).__name__} is held as a whole, where it is")
        super().__init__(joint)
        self.held, self.values = tuple(held), None if values is None else tuple(values)
        names = joint.coordinate_names() if joint.nq == joint.nu else joint.speed_names
        extra = [names[k] for k in held] if joint.nq == joint.nu else list(names)
        self.condition_names = (*joint.condition_names, *(f"held {name}" for name in extra)) \
            if joint.condition_names or joint.nu == 6 else ()
        #: conditions on speeds alone come last
        self.nonholonomic = len(extra) if values is None else 0

    @staticmethod
    def can(joint: Joint, single: bool) -> bool:
        """Whether a type of joint can be held so: single coordinates, or all of them where they are."""
        return type(joint).holding_row is not Joint.holding_row or (not single and joint.nq != joint.nu)

    def alignment(self) -> Array:
        return self.joint.alignment()

    def constants(self) -> tuple[Number, ...]:
        return (*self.joint.constants(), *(self.values or ()))

    def _own(self, k: Sequence[Number]) -> Sequence[Number]:
        return k[:len(k) - len(self.values or ())]

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return self.joint.transforms(q, self._own(k))

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return self.joint.subspace(q, self._own(k))

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        own = self._own(k)
        return (*self.joint.closure_rows(first, second, own), *self._holding(first, second, own, k[len(own):]))

    def _holding(self, first: Side, second: Side, own: Sequence[Number], values: Sequence[Number]) -> tuple[Row, ...]:
        if self.joint.nq != self.joint.nu:
            return _together(first, second)[-self.joint.nu:]
        if self.values is not None:
            return tuple(self.joint.holding_row(first, second, own, i, x)
                         for i, x in zip(self.held, values, strict=True))
        now = self.joint.loop_coordinates(first, second, own)
        rows = [self.joint.holding_row(first, second, own, i, now[i]) for i in self.held]
        return tuple(Row(0.0, r.first, r.second, r.gamma) for r in rows)

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        return self.joint.loop_columns(first, second, self._own(k))

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        return self.joint.loop_coordinates(first, second, self._own(k))

    def measure(self, turn: Array, shift: Array) -> Array:
        return self.joint.measure(turn, shift)

    def kind(self) -> tuple[object, ...]:
        return (*super().kind(), self.held, self.values is None)

    def __repr__(self) -> str:
        return f"HeldJoint({self.joint!r}, {self.held})"


def _together(first: Side, second: Side) -> tuple[Row, ...]:
    """No motion of the child relative to the parent, conditions on speeds: three of places, then three of turns."""
    d = second.point - first.point
    there = Side(second.point, first.arm + d, second.x, second.y, second.z, first.omega,
                 first.rate + first.omega.cross(d))  # the point of the parent that is there now
    rows = (*coincident(there, second), perpendicular(there, second, second.x, second.y),
            perpendicular(there, second, second.y, second.z), perpendicular(there, second, second.z, second.x))
    return tuple(Row(0.0, r.first, r.second, r.gamma) for r in rows)


# -- A joint whose frames are turned against those of its bodies by angles that depend on parameters ---
class TurnedJoint(OtherJoint):
    """A joint of the tree with its canonical axes at `outer` on the inboard body and at `inner` on the outboard one:
    rotation matrices by rows, which may depend on parameters."""

    def __init__(self, joint: Joint, outer: Sequence[Number], inner: Sequence[Number]) -> None:
        super().__init__(joint)
        self.outer, self.inner = tuple(outer), tuple(inner)

    def constants(self) -> tuple[Number, ...]:
        return (*self.joint.constants(), *self.outer, *self.inner)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        """One factor: outer J(q) inner^T."""
        own, outer, inner = _parts(k)
        turn, shift = outer, Vector.zero()
        for factor in self.joint.transforms(q, own):
            shift = shift + Vector(*apply(turn, factor.translation))
            rows = [factor.rotation.inverse(Vector(*turn[i:i + 3])) for i in (0, 3, 6)]  # row by row of turn @ factor
            turn = tuple(x for row in rows for x in row)
        turn = product(turn, transposed(inner))
        return (Transform(General(Matrix3(*(Vector(*turn[i:i + 3]) for i in (0, 3, 6)))), shift),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        own, _, inner = _parts(k)
        return tuple(_seen(inner, column) for column in self.joint.subspace(q, own))

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        own, _, inner = _parts(k)
        return _seen(inner, self.joint.drift(q, u, own))

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        raise ModelError("a joint that closes a loop has parameters in the frames of its closure")

    def measure(self, turn: Array, shift: Array) -> Array:
        raise ModelError(f"{self!r}: which coordinates belong to a pose depends on parameters")


def _parts(k: Sequence[Number]) -> tuple[Sequence[Number], tuple[Number, ...], tuple[Number, ...]]:
    """The joint's own numbers, and both turns."""
    return k[:-18], tuple(k[-18:-9]), tuple(k[-9:])


def _seen(rows: Sequence[Number], motion: Motion) -> Motion:
    return Motion(Vector(*apply(rows, motion.angular)), Vector(*apply(rows, motion.linear)))
