"""Contacts in one state, as elements: the sum of what acts at their places. One text over any scalar."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from bellcrank.lowering.element_view import ElementView
from bellcrank.mechanism.contact.touch import choose
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["ContactView"]

#: normal forces [N] below this have no point of action
_NONE = 1e-150


class ContactView(ElementView):
    """A compliant contact: `force` is the sum of its normal forces, which push the bodies apart, `length` the largest
    depth of its places, negated, `rate` the rate of that. Between shapes that are apart `length` is their distance if
    one of them is a sphere, a capsule or a plane; of others, whose places are not there then, it is only positive. It
    acts at the center of the normal forces, where they are open at the nearest place."""

    @cached_property
    def _acting(self) -> Any:
        part = self._at.bind(self._part)
        return part.acting(self._at.moving(self._part.first), self._at.moving(self._part.second), self._at.around)

    def bend_rate(self, place: int) -> tuple[Number, ...]:
        """The rates of the states of bristles at a place."""
        part, at = self._at.bind(self._part), self._at
        rates: tuple[Number, ...] = part.bend_rates(place, at.moving(part.first), at.moving(part.second), at.around)
        return rates

    @cached_property
    def force(self) -> Number:
        total: Number = 0.0
        for place in self._acting:
            total = total + place.normal_force
        return total

    @cached_property
    def _nearest(self) -> tuple[Number, Number, Vector]:
        """Depth, its rate and the point of the deepest place."""
        first = self._acting[0]
        depth, rate, point = first.touch.depth, first.rate, first.touch.point
        for place in self._acting[1:]:
            other = place.touch.depth
            rate = select_less(depth, other, place.rate, rate)
            point = choose(depth, other, place.touch.point, point)
            depth = select_less(depth, other, other, depth)
        return depth, rate, point

    @property
    def length(self) -> Number:
        return -self._nearest[0]

    @property
    def rate(self) -> Number:
        return -self._nearest[1]

    @property
    def power(self) -> Number:
        return self._power_of_loads()

    @property
    def energy(self) -> Number:
        part = self._at.bind(self._part)
        ends = self._at.moving(self._part.first), self._at.moving(self._part.second)
        return part.energy(*ends) + part.held(*ends, self._at.around)

    @cached_property
    def _center(self) -> Vector:
        """Where it acts, in the axes of motions."""
        moment = Vector.zero()
        for place in self._acting:
            moment = moment + place.touch.point * place.normal_force
        some = select_less(_NONE, self.force, self.force, 1.0)
        return choose(_NONE, self.force, moment * (1.0 / some), self._nearest[2])

    @cached_property
    def _push(self) -> tuple[Vector, Vector]:
        """The force on the second body, and its moment about the center."""
        force = moment = Vector.zero()
        for place in self._acting:
            push = place.touch.normal * place.normal_force + place.friction
            force = force + push
            moment = moment + (place.touch.point - self._center).cross(push)
        return force, moment

    @property
    def vector(self) -> Vector:
        return self._at.in_world(self._push[0])

    @property
    def torque(self) -> Vector:
        return self._at.in_world(self._push[1])

    @property
    def second_point(self) -> Vector:
        return self._at.in_world(self._center, True)

    first_point = second_point
