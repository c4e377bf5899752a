"""Free joint: six degrees of freedom, the base of a floating machine."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import bellcrank.mechanism.joints.quaternion as quaternion
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.joints.joint import Array, Joint
from bellcrank.mechanism.joints.spherical import TURNS, quaternion_rates, unit_quaternion
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Motion, Transform, Vector, from_quaternion

__all__ = ["Free"]

_SLIDES = tuple(Motion(m.linear, m.angular) for m in TURNS)


class Free(Joint):
    """q = (quaternion w, x, y, z; position x, y, z [m] in the joint frame),
    u = (angular velocity [rad/s]; velocity of the child's origin [m/s]), both in child axes."""

    nq, nu = 7, 6
    speed_names = ("wx", "wy", "wz", "vx", "vy", "vz")

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return (Transform(from_quaternion(*q[:4]), Vector(*q[4:])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return TURNS + _SLIDES

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        # the velocity is given in turning axes: d/dt (R v) = R (vdot + omega x v)
        return Motion(Vector.zero(), Vector(*u[:3]).cross(Vector(*u[3:])))

    def neutral(self) -> Array:
        return np.array([1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])

    def coordinate_names(self) -> tuple[str, ...]:
        return ("qw", "qx", "qy", "qz", "x", "y", "z")

    def rates(self, q: Sequence[Number], u: Sequence[Number]) -> list[Number]:
        return [*quaternion_rates(q, u), *from_quaternion(*q[:4]).apply(Vector(*u[3:]))]

    def normalized(self, q: Sequence[Number]) -> list[Number]:
        return unit_quaternion(q)

    def integrate(self, q: Array, du: Array) -> Array:
        turn, position = quaternion.normalize(q[..., :4]), q[..., 4:]
        step = quaternion.left_jacobian(du[..., :3], du[..., 3:])
        return np.concatenate([
            quaternion.normalize(quaternion.product(turn, quaternion.exponential(du[..., :3]))),
            position + quaternion.turn(turn, step)], axis=-1)

    def difference(self, q0: Array, q1: Array) -> Array:
        back = quaternion.conjugate(q0[..., :4])
        angle = quaternion.logarithm(quaternion.product(back, q1[..., :4]))
        step = quaternion.turn(quaternion.normalize(back), q1[..., 4:] - q0[..., 4:])
        return np.concatenate([angle, quaternion.left_jacobian_inverse(angle, step)], axis=-1)

    def normalize(self, q: Array) -> Array:
        return np.concatenate([quaternion.normalize(q[..., :4]), q[..., 4:]], axis=-1)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return ()

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.concatenate([quaternion.from_matrix(turn), shift], axis=-1)
