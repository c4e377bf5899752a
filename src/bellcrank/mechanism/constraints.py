"""Constraints between bodies that are no joints: rods without mass, slots, planes, angles. They close loops only.

Their numbers may be parameters, or functions of time written with `bellcrank.math` (``lambda t: 0.5 + 0.1 * sin(t)``):
the machine is then driven by them. Rates are derived exactly. Constraints on speeds alone come after them.

Constraints on speeds: rolling without slip, and knife edges. They close loops, but no position (nonholonomic).

How a ball or a wheel lies on its plane is a constraint on positions, and comes first; that it does not slip there is
one on speeds, for which no position tells whether it is met. Assembly looks at the former alone, speeds and
accelerations meet all. A machine with them has fewer independent speeds than coordinates that can be chosen.

Rows: `constraint_rows.slipless`. With n the plane's normal, r the radius, r e the way from the centre to the place of
contact: e = -n for a ball; e = (k (k . n) - n) / |k x n|, the lowest point of the rim, for a disk with the axis k.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import law_or_number, number
from bellcrank.mechanism.constraint_rows import Row, Side, distance, perpendicular, slipless, within
from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.joints.joint import Array, frame_with_z, unit_vector
from bellcrank.mechanism.motion import Law
from bellcrank.scalar.functions import cos, sqrt
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import Vector

__all__ = ["Angle", "Distance", "KnifeEdge", "PointOnLine", "PointOnPlane", "RollingBall", "RollingDisk"]

#: angles nearer than this to 0 or a half turn do not bind: their cosine is stationary there [rad]
_STRAIGHT = 1e-6


class Distance:
    """A massless rod or an actuator without mass: the two origins have the distance `length` [m].

    The length is a positive number, a parameter, or a function of time.

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("lift", gravity=(0, 0, -9.81))
    >>> arm = m.add_body("arm", bc.Inertia.rod(2.0, (0, 0, 0), (1, 0, 0)))
    >>> hinge = m.add_joint("hinge", bc.Revolute("y"), m.ground, arm)
    >>> cylinder = bc.Distance(lambda t: 0.8 + 0.1 * t)
    >>> rod = m.add_constraint("cylinder", cylinder, m.ground, arm, bc.Pose((0, 0, -0.6)), bc.Pose((0.5, 0, 0)))
    >>> lift = bc.compile(m)
    >>> state = lift.assemble(t=1.0)
    >>> bool(abs(lift.loop_error(state)).max() < 1e-12), lift.dof
    (True, 0)
    """

    condition_names = ("length",)

    @checked
    def __init__(self, length: Number | Law) -> None:
        self.length = law_or_number("Distance: the length", length)
        if isinstance(self.length, float) and not self.length > 0.0:
            raise ModelError(f"Distance: the length {length} must be positive; for points that coincide use Spherical")

    def alignment(self) -> Array:
        return np.eye(3)

    def constants(self) -> tuple[Any, ...]:
        return (self.length,)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (distance(first, second, k[0]),)

    def __repr__(self) -> str:
        return f"Distance({self.length!r})"


class PointOnLine:
    """The child's origin stays on the line through the parent's origin along `axis`; orientations are free."""

    condition_names = ("along x", "along y")
    directions = ("axis",)

    @checked
    def __init__(self, axis: str | Sequence[Number] = "z") -> None:
        self.axis = unit_vector(axis, "PointOnLine axis")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.axis))

    def constants(self) -> tuple[Any, ...]:
        return ()

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return within(first, second, first.x), within(first, second, first.y)

    def __repr__(self) -> str:
        return f"PointOnLine({self.axis})"


class PointOnPlane:
    """The child's origin stays in a plane with the given normal: a height `offset` [m] above the parent's origin.

    The offset is a number, a parameter, or a function of time (Kang and Yoon's dot-2 constraint).

    >>> PointOnPlane("z", offset=0.2)
    PointOnPlane((0.0, 0.0, 1.0), 0.2)
    """

    condition_names = ("height",)
    directions = ("normal",)

    @checked
    def __init__(self, normal: str | Sequence[Number] = "z", offset: Number | Law = 0.0) -> None:
        self.normal = unit_vector(normal, "PointOnPlane normal")
        self.offset = law_or_number("PointOnPlane: the offset", offset)

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.normal))

    def constants(self) -> tuple[Any, ...]:
        return (self.offset,)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (within(first, second, first.z, k[0]),)

    def __repr__(self) -> str:
        more = "" if isinstance(self.offset, float) and self.offset == 0.0 else f", {self.offset!r}"
        return f"PointOnPlane({self.normal}{more})"


@dataclass(frozen=True)
class CosineOf(Element):
    """The cosine of an angle that is a function of time."""

    angle: Callable[[Number], Number]

    def __call__(self, t: Number) -> Number:
        return cos(self.angle(t))


class Angle:
    """The angle [rad] between `axis` of the parent's pose and `child_axis` of the child's; points are free.

    It is a number between 0 and pi, a parameter, or a function of time (Kang and Yoon's dot-1 constraint). One
    constraint cannot hold axes parallel: joints do that. Its value in `System.loop_error` is the cosine's error.

    >>> Angle(1.5, "x", (0, 0, 2))
    Angle(1.5, (1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    """

    condition_names = ("angle",)
    directions = ("axis", "child_axis")

    @checked
    def __init__(self, angle: Number | Law = np.pi / 2, axis: str | Sequence[Number] = "z",
                 child_axis: str | Sequence[Number] = "z") -> None:
        self.angle = law_or_number("Angle: the angle", angle)
        self.axis, self.child_axis = unit_vector(axis, "Angle axis"), unit_vector(child_axis, "Angle child_axis")
        if isinstance(self.angle, float) and not _STRAIGHT < self.angle < np.pi - _STRAIGHT:
            raise ModelError(f"Angle: the angle {angle} must lie between 0 and pi, in radians; axes that are parallel "
                             "need a joint (Prismatic, Cylindrical, Planar, Revolute)")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.axis))

    def child_alignment(self) -> Array:
        return frame_with_z(np.array(self.child_axis))

    def constants(self) -> tuple[Any, ...]:
        if callable(self.angle):
            return (CosineOf(self.angle),)
        right = isinstance(self.angle, float) and self.angle == np.pi / 2
        return (0.0 if right else cos(self.angle),)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (perpendicular(first, second, first.z, second.z, k[0]),)

    def __repr__(self) -> str:
        return f"Angle({self.angle!r}, {self.axis}, {self.child_axis})"


# -- constraints on speeds --------------------------------------------------------------------------
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
