"""Elements between two links as the formulations see them: where they act, and what wrenches they exert.

Everything is computed from the motion of the two links (`Moving`), in one set of axes that does not move: those of
the ground link in compiled code, those of the world on arrays. Wrenches are about the origins of the links.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt

from bellcrank.errors import SingularError
from bellcrank.mechanism.forces.body_forces import Bushing, Drag
from bellcrank.mechanism.forces.element import Along, Element, Moving
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.functions import maximum, select_less, sqrt
from bellcrank.scalar.graph import Number, is_constant, is_zero
from bellcrank.spatial import Force, General, Identity, Matrix3, Rotation, Vector
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.frame_pair import FramePair

__all__ = ["BushingPair", "DragPair", "Pair", "PointPair", "SumForce", "Surroundings",
           "WrenchPair", "force_and_moment"]

#: ends that are nearer than this [m] meet
_MEET = 1e-150
#: speeds below this have no direction; products of its powers are numbers, so that there are derivatives at rest
_SLOW = 1e-60


class Surroundings(NamedTuple):
    """The time, and the axes in which motions are given, as seen in the world."""

    time: Number = 0.0
    axes: Rotation = Identity()
    machine: Any = None  #: what laws of the machine see


class SumForce(NamedTuple):
    """A force along a coordinate of a joint, or along a sum of some, each times its factor."""

    name: str
    terms: tuple[tuple[int, int, Number], ...]  #: link of the extended tree, coordinate, factor
    along: Along

    @property
    def timed(self) -> bool:
        """Whether the force depends on time."""
        return self.along.timed


@dataclass(frozen=True)
class PointPair(Element):
    """A force along the line between points of two links."""

    name: str
    first: int
    second: int
    first_point: tuple[Number, ...]
    second_point: tuple[Number, ...]
    along: Along

    @property
    def timed(self) -> bool:
        """Whether the force depends on time."""
        return self.along.timed

    def _apart(self, first: Moving, second: Moving) -> tuple[Vector, Vector, Vector]:
        """Arms of both ends, and the way from the first to the second."""
        arms = first.axes.apply(Vector(*self.first_point)), second.axes.apply(Vector(*self.second_point))
        return *arms, second.origin + arms[1] - first.origin - arms[0]

    def length(self, first: Moving, second: Moving) -> Number:
        """Distance between the two ends [m]."""
        apart = self._apart(first, second)[2]
        return sqrt(apart.dot(apart))

    def line(self, first: Moving, second: Moving) -> tuple[Vector, Vector, Vector, Number, Number]:
        """Arms of both ends, direction, length and its rate."""
        first_arm, second_arm, apart = self._apart(first, second)
        length = sqrt(apart.dot(apart))
        rate = second.velocity + second.omega.cross(second_arm) - first.velocity - first.omega.cross(first_arm)
        along = self._direction(apart, length, rate)
        return first_arm, second_arm, along, length, along.dot(rate)

    def _direction(self, apart: Vector, length: Number, rate: Vector) -> Vector:
        """From the first end to the second. Where they meet and nothing pulls, only dampers need one: it is that in
        which the ends move on, so that their force does not jump on the way through. Where something pulls there is
        none: an error, or no finite number."""
        pull = self.along.pull_at_zero()
        plain = is_constant(pull)
        if plain and pull != 0.0:
            if is_zero(length):
                raise SingularError(self.meeting())
            straight: Vector = apart * (1.0 / length)
            return straight
        near = _MEET if plain else select_less(0.0, abs(pull), -1.0, _MEET)  # no length is less than -1
        along: Vector = apart * (1.0 / maximum(length, near))
        if not self.along.damped:
            return along
        onward = rate * (1.0 / sqrt(maximum(rate.dot(rate), _SLOW * _SLOW)))
        return Vector(*(select_less(length, near, a, b) for a, b in zip(onward, along, strict=True)))

    def meeting(self) -> str:
        """What to say where its ends meet and it pulls."""
        return (f"spring {self.name!r}: its two ends meet, where its force has no direction; keep them apart, or give "
                "it a force that vanishes there (length=0)")

    def wrenches(self, first: Moving, second: Moving, around: Surroundings) -> tuple[Force, Force]:
        """What it exerts on the first and on the second link."""
        first_arm, second_arm, along, length, rate = self.line(first, second)
        push = along * self.along.at(around.time).seen(around.machine).force(length, rate)
        return Force(-first_arm.cross(push), -push), Force(second_arm.cross(push), push)

    def energy(self, first: Moving, second: Moving) -> Number:
        """Energy stored [J]; it needs no direction."""
        return self.along.energy(self.length(first, second))

    def loss(self, first: Moving, second: Moving, around: Surroundings) -> Number:
        """Power taken out of the machine and not stored [W]."""
        return self.along.at(around.time).seen(around.machine).loss(*self.line(first, second)[3:])


@dataclass(frozen=True)
class BushingPair(FramePair):
    """A bushing between frames on two links."""

    bushing: Bushing

    def _frame(self, first: Moving) -> tuple[Vector, Vector, Vector]:
        """Axes of the first frame."""
        x, y, z = (first.axes.apply(Vector(*column)) for column in self.first_axes)
        return x, y, z

    def _state(self, first: Moving, second: Moving) -> tuple[Vector, tuple[Vector, Vector, Vector], Vector, Vector]:
        """Position, axes, velocity and angular velocity of the second frame, as seen from the first."""
        frame = self._frame(first)
        arm = second.axes.apply(Vector(*self.second_shift))
        point = second.origin + arm
        at = point - first.origin - first.axes.apply(Vector(*self.first_shift))
        rate = second.velocity + second.omega.cross(arm) - first.velocity - first.omega.cross(point - first.origin)
        x, y, z = (_seen(frame, second.axes.apply(Vector(*column))) for column in self.second_axes)
        return _seen(frame, at), (x, y, z), _seen(frame, rate), _seen(frame, second.omega - first.omega)

    def wrenches(self, first: Moving, second: Moving, around: Surroundings) -> tuple[Force, Force]:
        """What it exerts on the first and on the second link."""
        frame = self._frame(first)
        moment, force = (frame[0] * v.x + frame[1] * v.y + frame[2] * v.z
                         for v in self.bushing.wrench(*self._state(first, second)))
        arm = second.axes.apply(Vector(*self.second_shift))
        # both wrenches act at the second frame's origin: they must cancel as a whole
        back = second.origin + arm - first.origin
        return Force(-moment - back.cross(force), -force), Force(moment + arm.cross(force), force)

    def energy(self, first: Moving, second: Moving) -> Number:
        """Energy stored [J]."""
        at, axes, _, _ = self._state(first, second)
        return self.bushing.energy(at, axes)

    def loss(self, first: Moving, second: Moving, around: Surroundings) -> Number:
        """Power taken out of the machine and not stored [W]."""
        _, _, rate, spin = self._state(first, second)
        return self.bushing.loss(rate, spin)


class OneSided(Element):
    """A force and moment on the second link alone; nothing of it is known to be stored."""

    def _push(self, link: Moving, around: Surroundings) -> tuple[Vector, Vector, Vector]:
        """Arm, force and moment in the axes of the motions."""
        raise NotImplementedError

    def wrenches(self, first: Moving, second: Moving, around: Surroundings) -> tuple[Force, Force]:
        """What it exerts on the first and on the second link."""
        arm, force, moment = self._push(second, around)
        return Force.zero(), Force(moment + arm.cross(force), force)

    def energy(self, first: Moving, second: Moving) -> Number:
        """What is not known counts as none."""
        return 0.0

    def loss(self, first: Moving, second: Moving, around: Surroundings) -> Number:
        """Power taken out of the machine [W]: less that of the force; wind and laws may add some."""
        arm, force, moment = self._push(second, around)
        return -(force.dot(second.velocity + second.omega.cross(arm)) + moment.dot(second.omega))


@dataclass(frozen=True)
class DragPair(OneSided):
    """Drag on the second link at a point of it; the first, the ground, feels nothing."""

    name: str
    second: int
    point: tuple[Number, ...]
    drag: Drag
    first: int = 0

    @property
    def timed(self) -> bool:
        """Whether the force depends on time."""
        return self.drag.timed

    def _push(self, link: Moving, around: Surroundings) -> tuple[Vector, Vector, Vector]:
        arm = link.axes.apply(Vector(*self.point))
        wind = around.axes.inverse(self.drag.wind_at(around.time))
        return arm, self.drag.force(link.velocity + link.omega.cross(arm) - wind), self.drag.moment(link.omega)


@dataclass(frozen=True)
class WrenchPair(OneSided):
    """A force and moment on the second link by a law of the machine; the first, the ground, feels nothing."""

    name: str
    second: int
    point: tuple[Number, ...]
    turn: npt.NDArray[np.float64] | None  #: axes of the body in those of the link; None for world axes
    law: MachineLaw
    clock: bool = True  #: whether the law looks at the time
    first: int = 0

    @property
    def timed(self) -> bool:
        """Whether the force depends on time."""
        return self.clock

    def _push(self, link: Moving, around: Surroundings) -> tuple[Vector, Vector, Vector]:
        """Arm, force and moment in the axes of the motions."""
        force, moment = force_and_moment(around.machine.value_of(self.name, self.law))
        if self.turn is None:
            force, moment = around.axes.inverse(force), around.axes.inverse(moment)
        else:
            own = General(Matrix3(*(Vector(*row) for row in self.turn.tolist())))
            force, moment = (link.axes.apply(own.apply(v)) for v in (force, moment))
        return link.axes.apply(Vector(*self.point)), force, moment


def force_and_moment(value: Any) -> tuple[Vector, Vector]:
    """The force and moment that a law gave: three numbers, or two times three."""
    parts = tuple(value)
    if len(parts) == 2:
        return Vector(*parts[0]), Vector(*parts[1])
    return Vector(*parts), Vector.zero()


Pair: TypeAlias = PointPair | BushingPair | DragPair | WrenchPair | ContactPair


def _seen(frame: tuple[Vector, Vector, Vector], v: Vector) -> Vector:
    """Components of a vector along the axes of a frame."""
    return Vector(frame[0].dot(v), frame[1].dot(v), frame[2].dot(v))
