"""Spheres and capsules against other shapes: by the nearest points of centers and axes.

Axes of capsules that go through other shapes: where they lie deepest.

How far a point of an axis lies in a convex shape is concave along it. Where it is largest at a point of one piece of
the surface (a face, the round side), the way out there is its gradient. Where two pieces are as far away it is the mean
of both ways out that has no part along the axis. That is shorter than one, which is what `Touch.gain` is for: forces
are then the gradient of the energy that is stored. Of an axis that goes through two opposite faces it is zero.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bellcrank.mechanism.contact.touch import (
    TINY,
    ShapeFrame,
    Touch,
    between_spheres,
    choose,
    clamp,
    direction,
    magnitude,
)
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Sphere
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["AxisPoint", "ball_at", "capsule_box", "capsule_capsule", "capsule_cylinder", "deepest_between",
           "either_touch", "nearest_face", "sphere_box", "sphere_capsule", "sphere_cylinder", "sphere_sphere"]


# -- spheres against spheres, capsules, boxes and cylinders: by the nearest point of the other shape ---
def sphere_sphere(one: Sphere, first: ShapeFrame, other: Sphere, second: ShapeFrame) -> list[Touch]:
    """One place."""
    return [between_spheres(first.origin, one.radius, second.origin, other.radius)]


def sphere_capsule(sphere: Sphere, first: ShapeFrame, capsule: Capsule, second: ShapeFrame) -> list[Touch]:
    """The nearest point of the capsule's axis."""
    along = clamp(second.z.dot(first.origin - second.origin), -0.5 * capsule.length, 0.5 * capsule.length)
    return [between_spheres(first.origin, sphere.radius, second.point(0.0, 0.0, along), capsule.radius)]


def sphere_box(sphere: Sphere, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """The nearest point of the box; with the center inside, that of the nearest face."""
    return [ball_on_box(first.origin, sphere.radius, box, second)]


def ball_on_box(center: Vector, radius: float, box: Box, at: ShapeFrame) -> Touch:
    """A sphere, first, and a box."""
    x, half = at.local(center), [0.5 * s for s in box.size]
    near = [clamp(c, -h, h) for c, h in zip(x, half, strict=True)]
    apart = Vector(*(c - n for c, n in zip(x, near, strict=True)))
    square = apart.dot(apart)
    inside, face = nearest_face(x, half)
    distance = sqrt(maximum(square, TINY))
    outward = choose(square, TINY, face, apart * (1.0 / distance))
    return _from_outward(center, radius, at.turned(*outward), select_less(square, TINY, -inside, distance))


def nearest_face(x: tuple[Number, ...], half: list[float]) -> tuple[Number, Vector]:
    """How far a point is inside a box (negative: outside), and the way out to the nearest face, in the box's axes."""
    units = Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)
    best: Number = 0.0
    out = units[0]
    for i, (c, h, unit) in enumerate(zip(x, half, units, strict=True)):
        depth = h - select_less(c, 0.0, -c, c)
        way = unit * select_less(c, 0.0, -1.0, 1.0)
        out = way if i == 0 else choose(depth, best, way, out)
        best = depth if i == 0 else select_less(depth, best, depth, best)
    return best, out


def sphere_cylinder(sphere: Sphere, first: ShapeFrame, cylinder: Cylinder, second: ShapeFrame) -> list[Touch]:
    """The nearest point of the cylinder; with the center inside, that of the side or the nearer end."""
    return [ball_on_cylinder(first.origin, sphere.radius, cylinder, second)]


def ball_on_cylinder(center: Vector, radius: float, cylinder: Cylinder, at: ShapeFrame) -> Touch:
    """A sphere, first, and a cylinder."""
    return _from_outward(center, radius, *way_out(center, cylinder, at))


def way_out(point: Vector, cylinder: Cylinder, at: ShapeFrame) -> tuple[Vector, Number]:
    """The way from a cylinder to a point, and the distance; negative inside, to the side or the nearer end."""
    apart = point - at.origin
    along = at.z.dot(apart)
    out, distance = direction(apart - at.z * along, at.x)
    half, radius = 0.5 * cylinder.length, cylinder.radius
    beside = maximum(distance - radius, 0.0)
    over = along - clamp(along, -half, half)
    square = beside * beside + over * over
    length = sqrt(maximum(square, TINY))
    end = select_less(along, 0.0, -1.0, 1.0)
    to_side, to_end = radius - distance, half - along * end
    inside = select_less(to_side, to_end, to_side, to_end)
    face = choose(to_side, to_end, out, at.z * end)
    outward = choose(square, TINY, face, (out * beside + at.z * over) * (1.0 / length))
    return outward, select_less(square, TINY, -inside, length)


def _from_outward(center: Vector, radius: float, outward: Vector, distance: Number) -> Touch:
    """A sphere, first, whose center lies at a distance from the second shape, along the way out of that."""
    depth = radius - distance
    return Touch(center - outward * (radius - depth * 0.5), -outward, depth)


# -- axes of capsules that go through other shapes --------------------------------------------------
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


# -- capsules against capsules, boxes and cylinders: by the nearest points of their axes ------------
#: axes whose angle has a smaller squared sine count as parallel
PARALLEL = 1e-12
#: slopes of distances that count as none, how often a stretch is halved, and the least slope of a face along an axis
_LEVEL, _HALVED, _STEEP = 1e-9, 20, 1e-9
#: the change of a slope that is a jump
_JUMP = 1e-3


def capsule_capsule(one: Capsule, first: ShapeFrame, other: Capsule, second: ShapeFrame) -> list[Touch]:
    """The nearest points of both axes: those of the two lines, brought to the ends where they lie beyond, one after the
    other (the square of the distance is convex, so that this is enough). Of parallel axes the middle of what lies side
    by side."""
    apart, cosine = second.origin - first.origin, first.z.dot(second.z)
    c, e = first.z.dot(apart), second.z.dot(apart)
    sine2 = 1.0 - cosine * cosine
    half, half2 = 0.5 * one.length, 0.5 * other.length
    crossing = (c - cosine * e) / maximum(sine2, PARALLEL)
    low, high = maximum(c - half2, -half), minimum(c + half2, half)
    s = clamp(select_less(sine2, PARALLEL, 0.5 * (low + high), crossing), -half, half)
    t = clamp(cosine * s - e, -half2, half2)
    s = clamp(cosine * t + c, -half, half)
    return [between_spheres(first.point(0.0, 0.0, s), one.radius, second.point(0.0, 0.0, t), other.radius)]


def capsule_box(capsule: Capsule, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """The point of the axis that is nearest to the box, as a sphere. Where all of a stretch is nearest, its middle.

    The square of the distance along the axis is convex and made of parabolas, which end where a coordinate passes a
    face: between the two of these places where the slope changes its sign, the slope is linear. Of an axis that goes
    through the box (an overlap of more than the radius) it is the deepest point.
    """
    half = 0.5 * capsule.length
    start = second.local(first.origin)
    along = tuple(axis.dot(first.z) for axis in second.axes)
    sizes = [0.5 * x for x in box.size]

    def slope(s: Number) -> Number:
        total: Number = 0.0
        for x, d, h in zip(start, along, sizes, strict=True):
            at = x + d * s
            total = total + (at - clamp(at, -h, h)) * d
        return total

    places: list[Number] = [-half, half]
    for x, d, h in zip(start, along, sizes, strict=True):
        steep = select_less(d * d, PARALLEL, 1.0, d)  # a parallel face is passed nowhere: any place will do
        places += [clamp((side * h - x) / steep, -half, half) for side in (-1.0, 1.0)]
    slopes = [slope(s) for s in places]
    low: Number = -half
    high: Number = half
    for s, value in zip(places, slopes, strict=True):
        low = maximum(low, select_less(value, 0.0, s, -half))
        high = minimum(high, select_less(0.0, value, s, half))
    before, after = slope(low), slope(high)
    steep = maximum(after - before, 1e-15)
    crossing = select_less(after - before, 1e-15, low, low - (high - low) * before / steep)
    level, found = _level(places, slopes, half)
    at = select_less(found, 0.5, crossing, level)
    outside = ball_on_box(first.point(0.0, 0.0, clamp(at, -half, half)), capsule.radius, box, second)
    deepest, inside = _inside_box(start, along, sizes, half)
    buried = AxisPoint(deepest.at, deepest.depth, second.turned(*deepest.outward))
    return [either_touch(inside, ball_at(first.point(0.0, 0.0, deepest.at), capsule.radius, buried), outside)]


def _inside_box(start: tuple[Number, ...], along: tuple[Number, ...], sizes: list[float], half: float
                ) -> tuple[AxisPoint, Number]:
    """The deepest point of an axis in a box, in its frame, and one where it lies inside, none elsewhere. The depths of
    faces are linear along the axis; the deepest point lies where the lowest of all that rise meets one that falls."""
    units = [Vector(*(1.0 if i == k else 0.0 for i in range(3))) for k in range(3)]
    rising, falling = [], []
    for x, d, h, unit in zip(start, along, sizes, units, strict=True):
        side = select_less(d, 0.0, -1.0, 1.0)
        steep = maximum(d * side, _STEEP)
        rising.append((h + side * x, steep, unit * -side))
        falling.append((h - side * x, steep, unit * side))
    best = AxisPoint(0.0, 0.0, units[0])
    for k, ((b, m, out), (c, n, back)) in enumerate((r, f) for r in rising for f in falling):
        part = 1.0 / (m + n)
        depth = (b * n + c * m) * part
        found = AxisPoint((c - b) * part, depth, out * (n * part) + back * (m * part))
        less = 1.0 if k == 0 else select_less(depth, best.depth, 1.0, 0.0)
        best = found if k == 0 else AxisPoint(select_less(0.5, less, found.at, best.at), minimum(depth, best.depth),
                                              choose(0.5, less, found.outward, best.outward))
    at = clamp(best.at, -half, half)
    depth, face = nearest_face(tuple(x + d * at for x, d in zip(start, along, strict=True)), sizes)
    ends = select_less(magnitude(best.at), half, 0.0, 1.0)  # the deepest point is an end
    found = AxisPoint(at, select_less(0.5, ends, depth, best.depth), choose(0.5, ends, face, best.outward))
    return found, select_less(0.0, depth, 1.0, 0.0)


def capsule_cylinder(capsule: Capsule, first: ShapeFrame, cylinder: Cylinder, second: ShapeFrame) -> list[Touch]:
    """The point of the axis that is nearest to the cylinder, or deepest inside, as a sphere; where all of a stretch is,
    its middle. The distance along the axis, negative inside, is convex: its slope changes sign once, and is found by
    halving from both sides of a stretch where it is level, then by one step along the chord; where it jumps, inside,
    two pieces of the surface are as far away."""
    half = 0.5 * capsule.length

    def look(s: Number) -> AxisPoint:
        outward, distance = way_out(first.point(0.0, 0.0, s), cylinder, second)
        return AxisPoint(s, -distance, outward)

    ends: list[Number] = []
    jump: Number = 0.0
    crossing: Number = 0.0
    between = AxisPoint(0.0, 0.0, second.z)
    for least in (-_LEVEL, _LEVEL):
        low: Number = -half
        high: Number = half
        for _ in range(_HALVED):
            middle = 0.5 * (low + high)
            falls = select_less(look(middle).outward.dot(first.z), least, 1.0, 0.0)
            low, high = select_less(0.5, falls, middle, low), select_less(0.5, falls, high, middle)
        ends.append(0.5 * (low + high))
        before, after = look(low), look(high)
        slope = before.outward.dot(first.z)
        jump = after.outward.dot(first.z) - slope
        crossing = clamp(low - (high - low) * slope / maximum(jump, _LEVEL), -half, half)
        between = meeting_point(before, after, first.z)
    narrow = select_less(ends[1] - ends[0], 4.0 * capsule.length * 0.5**_HALVED, 1.0, 0.0)
    at = select_less(0.5, narrow, crossing, 0.5 * (ends[0] + ends[1]))
    smooth = ball_on_cylinder(first.point(0.0, 0.0, at), capsule.radius, cylinder, second)
    pieces = ball_at(first.point(0.0, 0.0, between.at), capsule.radius, between)
    return [either_touch(select_less(_JUMP, jump, narrow, 0.0), pieces, smooth)]


def _level(places: list[Number], slopes: list[Number], half: float) -> tuple[Number, Number]:
    """The middle of the places with slope zero, and whether there are any (1.0): inside the box, or beside a face."""
    low: Number = half
    high: Number = -half
    for s, value in zip(places, slopes, strict=True):
        low = minimum(low, select_less(value * value, 1e-30, s, half))
        high = maximum(high, select_less(value * value, 1e-30, s, -half))
    return 0.5 * (low + high), select_less(high, low, 0.0, 1.0)
