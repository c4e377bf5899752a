"""A joint that closes a loop and of which some coordinates are held: by locks, and by stops that it is pressed against.

It keeps its coordinates, speeds and forces along them; its constraints are more: one for every coordinate that is held,
at a value, or where it is. The latter bind speeds alone, as those of rolling do.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side, coincident, perpendicular
from bellcrank.mechanism.joints.joint import Array, Joint, OtherJoint
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, Motion, Transform

__all__ = ["HeldJoint"]


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
