"""What acts between the bodies of a mechanism besides joints, with the places where it acts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces import Actuator, Bushing, Drag
from bellcrank.mechanism.forces.element import Along, Law2
from bellcrank.mechanism.motion import Part
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number

__all__ = ["BodyDrag", "Constraint", "Coupler", "FrameBushing", "JointDrive", "JointForce", "JointSum", "Law2",
           "Spring"]


@dataclass(frozen=True, slots=True)
class JointForce:
    """A force along one coordinate of a joint that depends on it and on its rate."""

    name: str
    joint: str
    coordinate: int
    along: Along

    @property
    def law(self) -> Law2:
        """Coordinate and rate in, force along the coordinate out."""
        return self.along.force


@dataclass(frozen=True, slots=True)
class JointSum:
    """A force along a sum of joint coordinates, each times its factor, as cables and differentials make it.

    Every coordinate feels the force times its factor. The force acts between the two bodies of each joint, beside the
    joint: it is no part of the joint's reaction.
    """

    name: str
    terms: tuple[tuple[str, int, Number], ...]  #: joint, coordinate, factor
    along: Along

    @property
    def law(self) -> Law2:
        """Sum and rate in, force along the sum out."""
        return self.along.force


@dataclass(frozen=True, slots=True)
class JointDrive:
    """An actuator on one coordinate of a joint."""

    name: str
    joint: str
    coordinate: int
    actuator: Actuator


@dataclass(frozen=True, slots=True)
class Spring:
    """A force along the line between two points."""

    name: str
    first: int
    second: int
    first_point: tuple[Number, ...]
    second_point: tuple[Number, ...]
    along: Along

    @property
    def law(self) -> Law2:
        """Distance and rate in, tension out; positive pulls the points together."""
        return lambda x, rate: -self.along.force(x, rate)


@dataclass(frozen=True, slots=True)
class FrameBushing:
    """A bushing between frames on two bodies."""

    name: str
    first: int
    second: int
    first_pose: Pose
    second_pose: Pose
    bushing: Bushing


@dataclass(frozen=True, slots=True)
class BodyDrag:
    """Drag on a body at a point of it."""

    name: str
    body: int
    at: tuple[Number, ...]
    drag: Drag


@dataclass(frozen=True, slots=True)
class Coupler:
    """A relation of joint coordinates: the sum of what each adds equals `offset`, a number or a function of time.

    A coordinate adds factor * coordinate, or a function of it.
    """

    name: str
    terms: tuple[tuple[str, int, Part], ...]  #: joint, coordinate, factor or function
    offset: Any


@dataclass(frozen=True, slots=True)
class Constraint:
    """A constraint between points or axes of two bodies that is no joint: it can only close loops."""

    name: str
    kind: object  #: a closure with ``rows(first, second)``
    parent: int
    child: int
    parent_pose: Pose
    child_pose: Pose
