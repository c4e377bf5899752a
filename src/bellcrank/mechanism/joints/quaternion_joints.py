"""Joints whose orientation is a quaternion: spherical and free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import bellcrank.mechanism.joints.quaternion as quaternion
from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side, coincident
from bellcrank.mechanism.joints.joint import AlongChild, Array, Joint
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.functions import sqrt
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import Motion, Transform, Vector, from_quaternion

__all__ = ["Free", "Spherical"]


# -- spherical (ball) joint: orientation by a unit quaternion ---------------------------------------
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


# -- free joint: six degrees of freedom, the base of a floating machine -----------------------------
_SLIDES = tuple(Motion(m.linear, m.angular) for m in TURNS)


class Free(Joint):
    """q = (quaternion w, x, y, z; position x, y, z [m] in the joint frame),
    u = (angular velocity [rad/s]; velocity of the child's origin [m/s]), both in child axes.

    `start` is the pose of the child in the joint frame where the mechanism is drawn: the neutral position, from which
    `System.assemble` starts, is there. It has no influence on the dynamics.

    >>> import bellcrank as bc
    >>> m = bc.Mechanism()
    >>> trunk = m.add_body("trunk", bc.Inertia.sphere(2.0, 0.1))
    >>> _ = m.add_joint("base", bc.Free(bc.Pose((0, 0, 0.4))), m.ground, trunk)
    >>> bc.compile(m).assemble(q={"base.x": 1.0})["base"]
    array([1. , 0. , 0. , 0. , 1. , 0. , 0.4])
    """

    nq, nu = 7, 6
    speed_names = ("wx", "wy", "wz", "vx", "vy", "vz")

    @checked
    def __init__(self, start: Pose | None = None) -> None:
        start = Pose() if start is None else start.fixed("Free: start")
        if any(isinstance(x, Scalar) for x in start.position):
            raise ModelError("Free: start must be numbers, without parameters: it is only where the mechanism is drawn")
        self.start = start

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return (Transform(from_quaternion(*q[:4]), Vector(*q[4:])),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return TURNS + _SLIDES

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        # the velocity is given in turning axes: d/dt (R v) = R (vdot + omega x v)
        return Motion(Vector.zero(), Vector(*u[:3]).cross(Vector(*u[3:])))

    def neutral(self) -> Array:
        return np.array([*quaternion.from_matrix(self.start.rotation), *self.start.position])

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

    def __repr__(self) -> str:
        return "Free()" if self.start == Pose() else f"Free({self.start!r})"
