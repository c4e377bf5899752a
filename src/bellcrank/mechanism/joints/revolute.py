"""Revolute joint: one angle about an axis."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.engine.functions import cos, sin
from bellcrank.engine.scalar import Number
from bellcrank.mechanism.joints.base import Z_TURN, AxisJoint
from bellcrank.spatial import AboutZ, Motion, Transform, Vector

__all__ = ["Revolute"]


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
