"""Axes of capsules that go through other shapes: where they lie deepest.

How far a point of an axis lies in a convex shape is concave along it. Where it is largest at a point of one piece of
the surface (a face, the round side), the way out there is its gradient. Where two pieces are as far away it is the mean
of both ways out that has no part along the axis. That is shorter than one, which is what `Touch.gain` is for: forces
are then the gradient of the energy that is stored. Of an axis that goes through two opposite faces it is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bellcrank.mechanism.contact.touch import TINY, Touch, choose, clamp, direction
from bellcrank.scalar.functions import maximum, select_less
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["AxisPoint", "ball_at", "deepest_between", "either_touch", "meeting_point"]

#: steps by which the deepest point is found between flat faces
_STEPS = 8
#: gains below this are none
_NO_GAIN = 1e-9


class AxisPoint(NamedTuple):
    """A point of an axis: where along it, how far inside another shape, and the way out."""

    at: Number
    depth: Number
    outward: Vector


def meeting_point(low: AxisPoint, high: AxisPoint, along: Vector) -> AxisPoint:
    """Where two pieces of a surface are as far away, of which one is nearest at `low`, and the other at `high`; one of
    these where it is the deepest. `along` is the direction of the axis."""
    up, down = -low.outward.dot(along), high.outward.dot(along)
    some = maximum(up + down, TINY)
    share = select_less(0.0, up, clamp(down / some, 0.0, 1.0), 1.0)
    at = clamp((high.depth - low.depth + up * low.at + down * high.at) / some, low.at, high.at)
    at = select_less(0.0, up, select_less(0.0, down, at, high.at), low.at)
    depth = share * (low.depth + up * (at - low.at)) + (1.0 - share) * (high.depth - down * (at - high.at))
    return AxisPoint(at, depth, low.outward * share + high.outward * (1.0 - share))


def deepest_between(low: AxisPoint, high: AxisPoint, along: Vector, look: Callable[[Number], AxisPoint]) -> AxisPoint:
    """The deepest point of an axis in a shape with flat faces, where it goes in at `low` and out at `high`."""
    for _ in range(_STEPS):
        new = look(meeting_point(low, high, along).at)
        rises = select_less(new.outward.dot(along), 0.0, 1.0, 0.0)
        low, high = _either(rises, new, low), _either(rises, high, new)
    return meeting_point(low, high, along)


def _either(first: Number, one: AxisPoint, other: AxisPoint) -> AxisPoint:
    return AxisPoint(select_less(0.5, first, one.at, other.at), select_less(0.5, first, one.depth, other.depth),
                     choose(0.5, first, one.outward, other.outward))


def ball_at(center: Vector, radius: float, found: AxisPoint) -> Touch:
    """A ball on the axis, first, and the shape that its center lies in."""
    outward, length = direction(found.outward, Vector(0.0, 0.0, 1.0))
    depth = radius + found.depth
    return Touch(center - outward * (radius - depth * 0.5), -outward, depth, maximum(length, _NO_GAIN))


def either_touch(first: Number, one: Touch, other: Touch) -> Touch:
    """One of two places: `first` is 1.0 or 0.0."""
    return Touch(choose(0.5, first, one.point, other.point), choose(0.5, first, one.normal, other.normal),
                 *(select_less(0.5, first, a, b) for a, b in ((one.depth, other.depth), (one.gain, other.gain),
                                                              (one.share, other.share))))
