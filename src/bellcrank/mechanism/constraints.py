"""Constraints between bodies that are no joints: rods without mass, slots, planes, angles. They close loops only.

Their numbers may be parameters, or functions of time written with `bellcrank.math` (``lambda t: 0.5 + 0.1 * sin(t)``):
the machine is then driven by them. Rates are derived exactly. Constraints on speeds alone are in `rolling`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import law_or_number
from bellcrank.mechanism.constraint_rows import Row, Side, distance, perpendicular, within
from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.joints.joint import Array, frame_with_z, unit_vector
from bellcrank.mechanism.motion import Law
from bellcrank.scalar.functions import cos
from bellcrank.scalar.graph import Number

__all__ = ["Angle", "Distance", "PointOnLine", "PointOnPlane"]

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
