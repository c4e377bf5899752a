"""Capsules against capsules, boxes and cylinders: by the nearest points of their axes."""

from __future__ import annotations

from bellcrank.mechanism.contact.buried_axes import AxisPoint, ball_at, either_touch, meeting_point
from bellcrank.mechanism.contact.flat_faces import magnitude
from bellcrank.mechanism.contact.sphere_contacts import ball_on_box, ball_on_cylinder, nearest_face, way_out
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch, between_spheres, choose, clamp
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder
from bellcrank.scalar.functions import maximum, minimum, select_less
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["capsule_box", "capsule_capsule", "capsule_cylinder"]

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
