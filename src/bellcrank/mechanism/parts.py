"""The records of a mechanism: bodies, joints between them, frames on them, and what acts between bodies, with the
places where it acts.

States of elements: first-order dynamics that run along with the machine.

A state x with the rate f is the speed of a rotor of unit inertia that nothing holds and that feels the force f: then
x' = f, and everything that integrates, differentiates or records speeds does so with states. The rotor has no mass and
counts in no energy and no momentum. Its coordinate is the integral of the state over time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.forces import Actuator, Bushing, Drag
from bellcrank.mechanism.forces.element import Along, Law2
from bellcrank.mechanism.forces.machine_force import MachineForce, MachineLaw
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free
from bellcrank.mechanism.joints.joint import Z_TURN, Array, Joint
from bellcrank.mechanism.motion import Part, Prescribed
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Motion, Transform

__all__ = ["AddedOutput", "AddedState", "Body", "BodyDrag", "Connection", "Constraint", "Coupler", "FirstOrder",
           "Frame", "FrameBushing", "JointDrive", "JointForce", "JointSum", "Law2", "Spring", "StateRate"]


# -- the records of a mechanism ---------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body; `index` 0 is the ground."""

    name: str
    index: int
    inertia: Inertia


@dataclass(frozen=True, slots=True)
class Connection:
    """A joint between two bodies: T_parent_child = parent_pose J(q) child_pose^-1."""

    name: str
    joint: Joint
    parent: int
    child: int
    parent_pose: Pose
    child_pose: Pose
    prescribed: Prescribed | None = None

    @property
    def drawn_pose(self) -> Pose:
        """Where the child's side of the joint lies in the parent in the position drawn: at the parent's side, but of
        `Free` joints at their `start`."""
        if isinstance(self.joint, Free) and self.joint.start != Pose():
            return self.parent_pose @ self.joint.start
        return self.parent_pose


@dataclass(frozen=True, slots=True)
class Frame:
    """A named place on a body."""

    name: str
    body: int
    pose: Pose


# -- states of elements -----------------------------------------------------------------------------
class FirstOrder(Joint):
    """The joint of a state's rotor: its speed is the state, its coordinate the integral of that."""

    nq = nu = 1
    speed_names = ("value",)
    counts_energy = False

    def __init__(self, units: str = "1") -> None:
        self.units = units

    def coordinate_names(self) -> tuple[str, ...]:
        return ("integral",)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return ()

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Z_TURN,)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        raise ModelError("a state closes no loop")

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.zeros((*shift.shape[:-1], 1))

    def __repr__(self) -> str:
        return f"FirstOrder({self.units!r})"


@dataclass(frozen=True)
class RateOfState(Along):
    """The rate of a state where it is known: a force on its rotor, whose power is nobody's."""

    value: Number

    def force(self, x: Number, rate: Number) -> Number:
        return self.value

    def loss(self, x: Number, rate: Number) -> Number:
        return 0.0


@dataclass(frozen=True)
class StateRate(MachineForce):
    """The rate of a state as a law of the machine."""

    def seen(self, machine: Any) -> Along:
        return RateOfState(machine.value_of(self.name, self.law))


@dataclass(frozen=True, slots=True)
class AddedOutput:
    """A number that is computed of every sample of a run, as a law of the machine."""

    name: str
    law: MachineLaw
    units: str


@dataclass(frozen=True, slots=True)
class AddedState:
    """A state of an element: its rate as a law of the machine, where it begins, and its units."""

    name: str
    rate: MachineLaw
    initial: Number
    units: str


# -- what acts between the bodies of a mechanism besides joints, with the places where it acts ------
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
