"""Spherical (ball) joint: orientation by a unit quaternion."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import bellcrank.mechanism.joints.quaternion as quaternion
from bellcrank.mechanism.constraint_rows import Row, Side, coincident
from bellcrank.mechanism.joints.joint import AlongChild, Array, Joint
from bellcrank.scalar.functions import sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Motion, Transform, Vector, from_quaternion

__all__ = ["TURNS", "Spherical", "quaternion_rates", "unit_quaternion"]

TURNS = tuple(Motion(Vector(*axis), Vector.zero())
              for axis in ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)))


def quaternion_rates(q: Sequence[Number], w: Sequence[Number]) -> list[Number]:
    """Rates of a quaternion for an angular velocity w in child axes, over any scalar."""
    return [-0.5 * (q[1] * w[0] + q[2] * w[1] + q[3] * w[2]), 0.5 * (q[0] * w[0] + q[2] * w[2] - q[3] * w[1]),
            0.5 * (q[0] * w[1] + q[3] * w[0] - q[1] * w[2]), 0.5 * (q[0] * w[2] + q[1] * w[1] - q[2] * w[0])]


def unit_quaternion(q: Sequence[Number]) -> list[Number]:
    """Coordinates that begin with a quaternion, which is made unit, over any scalar."""
    scale = 1.0 / sqrt(q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3])
    return [*(x * scale for x in q[:4]), *q[4:]]


class Spherical(Joint):
    """q = quaternion (w, x, y, z) of the child in the joint frame, u = relative angular velocity in
    child axes [rad/s]. Only the direction of q matters to the dynamics: it need not be exactly unit."""

    nq, nu = 4, 3
    speed_names = ("wx", "wy", "wz")

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return (Transform(from_quaternion(*q), Vector.zero()),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return TURNS

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0])

    def coordinate_names(self) -> tuple[str, ...]:
        return ("qw", "qx", "qy", "qz")

    def rates(self, q: Sequence[Number], u: Sequence[Number]) -> list[Number]:
        return quaternion_rates(q, u)

    def normalized(self, q: Sequence[Number]) -> list[Number]:
        return unit_quaternion(q)

    def integrate(self, q: Array, du: Array) -> Array:
        return quaternion.normalize(quaternion.product(q, quaternion.exponential(du)))

    def difference(self, q0: Array, q1: Array) -> Array:
        return quaternion.logarithm(quaternion.product(quaternion.conjugate(q0), q1))

    def normalize(self, q: Array) -> Array:
        return quaternion.normalize(q)

    condition_names = ("along x", "along y", "along z")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return coincident(first, second)

    def along_child(self) -> Joint:
        return _SphericalAlongChild() if type(self) is Spherical else self

    def measure(self, turn: Array, shift: Array) -> Array:
        return quaternion.from_matrix(turn)


class _SphericalAlongChild(AlongChild, Spherical):
    """The same ball joint, closed along the axes of its child."""
