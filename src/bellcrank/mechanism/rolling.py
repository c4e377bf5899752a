"""Constraints on speeds: rolling without slip, and knife edges. They close loops, but no position (nonholonomic).

How a ball or a wheel lies on its plane is a constraint on positions, and comes first; that it does not slip there is
one on speeds, for which no position tells whether it is met. Assembly looks at the former alone, speeds and
accelerations meet all. A machine with them has fewer independent speeds than coordinates that can be chosen.

Rows: `constraint_rows.slipless`. With n the plane's normal, r the radius, r e the way from the centre to the place of
contact: e = -n for a ball; e = (k (k . n) - n) / |k x n|, the lowest point of the rim, for a disk with the axis k.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import number
from bellcrank.mechanism.constraint_rows import Row, Side, slipless, within
from bellcrank.mechanism.joints.joint import Array, frame_with_z, unit_vector
from bellcrank.scalar.functions import sqrt
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import Vector

__all__ = ["KnifeEdge", "RollingBall", "RollingDisk"]


def _radius(what: str, radius: Number) -> Number:
    if callable(radius) and not isinstance(radius, Scalar):
        raise ModelError(f"{what}: the radius is a number or a parameter, no function of time")
    return number(what, "the radius", radius, 0.0, above=True)


def _rolling(first: Side, second: Side, height: Number, contact: Vector, contact_rate: Vector) -> tuple[Row, ...]:
    """The height [m] over the plane, then the two directions of slip; the rate of the height is the third direction."""
    along, x, y = (slipless(first, second, a, first.omega.cross(a), contact, contact_rate)
                   for a in (first.z, first.x, first.y))
    return Row(height, along.first, along.second, along.gamma), x, y


class RollingBall:
    """A ball of the given radius [m] around the child's origin rolls on a plane of the parent, without slip.

    The plane contains the parent's origin; `normal` points to the ball's side. The radius is a number or a parameter.

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("marble", gravity=(0, 0, -9.81))
    >>> ball = m.add_body("ball", bc.Inertia(0.1, (0, 0, 0), 0.4 * 0.1 * 0.02**2))
    >>> free = m.add_joint("free", bc.Free(), m.ground, ball)
    >>> floor = m.add_constraint("floor", bc.RollingBall(0.02), m.ground, ball)
    >>> marble = bc.compile(m)
    >>> marble.dof, bc.analyze.explain(marble).mobility
    (3, 3)
    """

    condition_names = ("height", "slip x", "slip y")
    nonholonomic = 2
    directions = ("normal",)

    @checked
    def __init__(self, radius: Number, normal: str | Sequence[Number] = "z") -> None:
        self.radius = _radius("RollingBall", radius)
        self.normal = unit_vector(normal, "RollingBall normal")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.normal))

    def constants(self) -> tuple[Any, ...]:
        return (self.radius,)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        contact = first.z * -k[0]
        height = within(first, second, first.z, k[0]).value
        return _rolling(first, second, height, contact, first.omega.cross(contact))

    def __repr__(self) -> str:
        return f"RollingBall({self.radius!r}, {self.normal})"


class RollingDisk:
    """A thin disk, wheel or coin of the given radius [m] rolls on a plane of the parent, without slip.

    Its centre is the child's origin, its axis `axis` of the child's pose. The plane contains the parent's origin;
    `normal` points to the disk's side. The radius is a number or a parameter. It may lean, but not lie flat.

    >>> RollingDisk(0.3, axis="y")
    RollingDisk(0.3, (0.0, 0.0, 1.0), (0.0, 1.0, 0.0))
    """

    condition_names = ("height", "slip x", "slip y")
    nonholonomic = 2
    directions = ("normal", "axis")

    @checked
    def __init__(self, radius: Number, normal: str | Sequence[Number] = "z", axis: str | Sequence[Number] = "y"
                 ) -> None:
        self.radius = _radius("RollingDisk", radius)
        self.normal, self.axis = unit_vector(normal, "RollingDisk normal"), unit_vector(axis, "RollingDisk axis")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.normal))

    def child_alignment(self) -> Array:
        return frame_with_z(np.array(self.axis))

    def constants(self) -> tuple[Any, ...]:
        return (self.radius,)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        n, axis = first.z, second.z
        n_rate, axis_rate = first.omega.cross(n), second.omega.cross(axis)
        c, c_rate = n.dot(axis), n_rate.dot(axis) + n.dot(axis_rate)
        steep = sqrt(1.0 - c * c)  # |k x n|
        scale = k[0] / steep
        lowest = axis * c - n
        contact = lowest * scale
        # d/dt of (k c - n) r / |k x n|, with d|k x n|/dt = -c dc/dt / |k x n|
        rate = (axis_rate * c + axis * c_rate - n_rate) * scale + contact * (c * c_rate / (steep * steep))
        height = n.dot(second.point - first.point) - k[0] * steep
        return _rolling(first, second, height, contact, rate)

    def __repr__(self) -> str:
        return f"RollingDisk({self.radius!r}, {self.normal}, {self.axis})"


class KnifeEdge:
    """A blade, skate or wheel without mass at the child's origin: as seen from the parent, that point does not move
    along `across`, an axis of the child's pose.

    >>> KnifeEdge("y")
    KnifeEdge((0.0, 1.0, 0.0))
    """

    condition_names = ("slip",)
    directions = ("across",)
    nonholonomic = 1

    @checked
    def __init__(self, across: str | Sequence[Number] = "y") -> None:
        self.across = unit_vector(across, "KnifeEdge across")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.across))

    def constants(self) -> tuple[Any, ...]:
        return ()

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        a = second.z
        return (slipless(first, second, a, second.omega.cross(a), Vector.zero(), Vector.zero()),)

    def __repr__(self) -> str:
        return f"KnifeEdge({self.across})"
