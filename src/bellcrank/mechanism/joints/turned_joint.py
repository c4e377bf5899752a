"""A joint whose frames are turned against those of its bodies by angles that depend on parameters.

Turns that are numbers are spent on link frames when a mechanism is compiled (`topology.link_frames`). Here they are
among the joint's own numbers: links keep the axes of their bodies, and the joint's axes lie in these as parameters say.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.joints.joint import Array, Joint, OtherJoint
from bellcrank.mechanism.turns import apply, product, transposed
from bellcrank.scalar.graph import Number
from bellcrank.spatial import General, Matrix3, Motion, Transform, Vector

__all__ = ["TurnedJoint"]


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
