"""Cylindrical joint: an angle about and a displacement along one axis."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.engine.functions import cos, sin
from bellcrank.engine.scalar import Number
from bellcrank.mechanism.joints.base import Z_SLIDE, Z_TURN, AxisJoint
from bellcrank.spatial import AboutZ, Motion, Transform, Vector

__all__ = ["Cylindrical"]


class Cylindrical(AxisJoint):
    """A sleeve on a shaft. q = (angle [rad], displacement [m]), u = their rates."""

    nq = nu = 2
    speed_names = ("angle", "slide")

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        angle = q[0] + k[0]
        return (Transform(AboutZ(cos(angle), sin(angle)), Vector(0.0, 0.0, q[1] + k[1])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Z_TURN, Z_SLIDE)
