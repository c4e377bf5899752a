"""Contact between two links as the formulations see it: forces at every place where two shapes overlap."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from bellcrank.mechanism.contact.narrow_phase import touches
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch
from bellcrank.mechanism.forces.element import Moving
from bellcrank.mechanism.geometry.solids import Plane
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, General, Matrix3, Vector
from bellcrank.topology.frame_pair import FramePair

__all__ = ["ActingPlace", "ContactPair"]


class ActingPlace(NamedTuple):
    """One place of a contact, and what acts there on the second body."""

    touch: Touch
    rate: Number  #: of the depth [m/s]
    slip: Vector  #: velocity of the second body across the first, along the surface [m/s]
    normal_force: Number  #: [N]
    friction: Vector  #: [N]


@dataclass(frozen=True)
class ContactPair(FramePair):
    """Two shapes on two links that may touch."""

    first_shape: Any
    second_shape: Any
    material: Any
    bends: tuple[tuple[str, ...], ...] = ()  #: states of bristles at every place, by name
    shape_names: tuple[str, str] = ("", "")

    @cached_property
    def places(self) -> int:
        """How many places the shapes can touch at."""
        axes = General(Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))
        still = Moving(axes, Vector.zero(), Vector.zero(), Vector.zero())
        return len(self.touches(still, still))

    def touches(self, first: Moving, second: Moving) -> list[Touch]:
        """Where the shapes touch or would first: always the same number of places."""
        return touches(self.first_shape, _placed(first, self.first_axes, self.first_shift),
                       self.second_shape, _placed(second, self.second_axes, self.second_shift))

    def motions(self, first: Moving, second: Moving) -> list[tuple[Touch, Number, Vector]]:
        """The same with the rates of the depths, and the slips."""
        out = []
        for touch in self.touches(first, second):
            velocity = velocity_at(second, touch.point) - velocity_at(first, touch.point)
            along = touch.normal.dot(velocity)
            out.append((touch, -(along * touch.gain), velocity - touch.normal * along))
        return out

    def acting(self, first: Moving, second: Moving, around: object) -> list[ActingPlace]:
        """The same with what acts there, of compliant contacts."""
        out = []
        for k, (touch, rate, slip) in enumerate(self.motions(first, second)):
            force = self.material.normal_force(touch.depth, rate) * (touch.gain * touch.share)
            friction = self.material.bristle_force(force, slip, self._bend(k, touch, first, second, around)) \
                if self.bends else self.material.friction_force(force, slip)
            out.append(ActingPlace(touch, rate, slip, force, friction))
        return out

    def _bend_axes(self, first: Moving, second: Moving) -> tuple[Vector, ...]:
        """The axes of the states of bristles: those of the plane, if there is one, or of the first shape."""
        on_second = isinstance(self.second_shape, Plane)
        frame = _placed(second, self.second_axes, self.second_shift) if on_second else _placed(
            first, self.first_axes, self.first_shift)
        return frame.axes[:len(self.bends[0])]

    def _bend(self, place: int, touch: Touch, first: Moving, second: Moving, around: Any) -> Vector:
        """How far bristles are bent at a place, along the surface."""
        total = Vector.zero()
        for name, axis in zip(self.bends[place], self._bend_axes(first, second), strict=True):
            total = total + axis * around.machine.state(name)
        along: Vector = total - touch.normal * touch.normal.dot(total)
        return along

    def bend_rates(self, place: int, first: Moving, second: Moving, around: Any) -> tuple[Number, ...]:
        """The rates of the states of the bristles at a place."""
        touch, _, slip = self.motions(first, second)[place]
        rate = self.material.bend_rate(slip, self._bend(place, touch, first, second, around))
        return tuple(axis.dot(rate) for axis in self._bend_axes(first, second))

    def wrenches(self, first: Moving, second: Moving, around: object) -> tuple[Force, Force]:
        """What it exerts on the first and on the second link."""
        one = other = Force.zero()
        for touch, _, _, normal_force, friction in self.acting(first, second, around):
            push = touch.normal * normal_force + friction
            one = one - Force((touch.point - first.origin).cross(push), push)
            other = other + Force((touch.point - second.origin).cross(push), push)
        return one, other

    def energy(self, first: Moving, second: Moving) -> Number:
        """Energy stored [J], but for what bristles hold: that depends on states."""
        total: Number = 0.0
        for touch in self.touches(first, second):
            total = total + self.material.energy(touch.depth) * touch.share
        return total

    def held(self, first: Moving, second: Moving, around: object) -> Number:
        """Energy that bristles hold [J]."""
        total: Number = 0.0
        if self.bends:
            for k, place in enumerate(self.acting(first, second, around)):
                bend = self._bend(k, place.touch, first, second, around)
                total = total + self.material.held(place.normal_force, bend)
        return total

    def loss(self, first: Moving, second: Moving, around: object) -> Number:
        """Power turned into heat [W]."""
        total: Number = 0.0
        for touch, rate, slip, _, friction in self.acting(first, second, around):
            total = total + self.material.normal_loss(touch.depth, rate) * touch.share - friction.dot(slip)
        return total


def velocity_at(link: Moving, point: Vector) -> Vector:
    """The velocity of a link at a point."""
    out: Vector = link.velocity + link.omega.cross(point - link.origin)
    return out


def _placed(link: Moving, axes: tuple[tuple[Number, ...], ...], shift: tuple[Number, ...]) -> ShapeFrame:
    x, y, z = (link.axes.apply(Vector(*axis)) for axis in axes)
    return ShapeFrame(link.origin + link.axes.apply(Vector(*shift)), x, y, z)
