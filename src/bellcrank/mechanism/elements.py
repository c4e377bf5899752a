"""What acts between the bodies of a mechanism besides joints: springs, joint forces, couplers, constraints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellcrank.engine.scalar import Number, Scalar
from bellcrank.errors import ModelError
from bellcrank.mechanism.pose import Pose

__all__ = ["Constraint", "Coupler", "JointForce", "Law2", "Spring", "linear_law"]

#: a force law: displacement and its rate in, force out; written with `bellcrank.math`
Law2 = Callable[[Number, Number], Number]


@dataclass(frozen=True, slots=True)
class JointForce:
    """A force along one coordinate of a joint that depends on it and on its rate."""

    name: str
    joint: str
    coordinate: int
    law: Law2
    stiffness: Number | None  #: of a linear spring, whose energy is known
    rest: Number


@dataclass(frozen=True, slots=True)
class Spring:
    """A force along the line between two points; positive pulls them together."""

    name: str
    first: int
    second: int
    first_point: tuple[Number, ...]
    second_point: tuple[Number, ...]
    law: Law2
    stiffness: Number | None
    length: Number


@dataclass(frozen=True, slots=True)
class Coupler:
    """A linear relation of joint coordinates: the sum of factor * coordinate equals `offset`."""

    name: str
    terms: tuple[tuple[str, int, float], ...]  #: joint, coordinate, factor
    offset: float


@dataclass(frozen=True, slots=True)
class Constraint:
    """A condition between points or axes of two bodies that is no joint: it can only close loops."""

    name: str
    kind: object  #: a closure with ``rows(first, second)``
    parent: int
    child: int
    parent_pose: Pose
    child_pose: Pose


def linear_law(what: str, stiffness: Number, damping: Number, rest: Number) -> Law2:
    """The law of a linear spring and damper in parallel."""
    for label, value in (("stiffness", stiffness), ("damping", damping), ("rest", rest)):
        if isinstance(value, Scalar):
            continue
        try:
            finite = abs(float(value)) < float("inf")
        except (TypeError, ValueError):
            raise ModelError(f"{what}: {label} {value!r} is not a number") from None
        if not finite:
            raise ModelError(f"{what}: {label} {value} is not finite")
    if isinstance(stiffness, Scalar) or isinstance(damping, Scalar) or isinstance(rest, Scalar):
        raise ModelError(f"{what}: parameters are not supported in force laws; give numbers")
    k, c, x0 = float(stiffness), float(damping), float(rest)

    def law(x: Number, rate: Number) -> Number:
        return k * (x - x0) + c * rate

    return law
