"""Capsules against capsules, boxes and cylinders: by the nearest points of their axes."""

from __future__ import annotations

from bellcrank.mechanism.contact.sphere_contacts import ball_on_box, ball_on_cylinder, way_out
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch, between_spheres, clamp
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder
from bellcrank.scalar.functions import maximum, minimum, select_less
from bellcrank.scalar.graph import Number

__all__ = ["capsule_box", "capsule_capsule", "capsule_cylinder"]

#: axes whose angle has a smaller squared sine count as parallel
PARALLEL = 1e-12
#: slopes of distances that count as none, and how often a stretch is halved
_LEVEL, _HALVED = 1e-9, 20


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
    face: between the two of these places where the slope changes its sign, the slope is linear. With the axis inside
    the box (an overlap of more than the radius) the middle of what is inside stands for all of it.
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
    return [ball_on_box(first.point(0.0, 0.0, clamp(at, -half, half)), capsule.radius, box, second)]


def capsule_cylinder(capsule: Capsule, first: ShapeFrame, cylinder: Cylinder, second: ShapeFrame) -> list[Touch]:
    """The point of the axis that is nearest to the cylinder, as a sphere; where all of a stretch is nearest (or
    inside), its middle. The distance along the axis is convex: its slope changes sign once, and is found by halving
    from both sides of a stretch where it is level, then by one step along the chord."""
    half = 0.5 * capsule.length

    def slope(s: Number) -> Number:
        outward, distance = way_out(first.point(0.0, 0.0, s), cylinder, second)
        return select_less(0.0, distance, outward.dot(first.z), 0.0)

    ends: list[Number] = []
    crossing: Number = 0.0
    for least in (-_LEVEL, _LEVEL):
        low: Number = -half
        high: Number = half
        for _ in range(_HALVED):
            middle = 0.5 * (low + high)
            falls = select_less(slope(middle), least, 1.0, 0.0)
            low, high = select_less(0.5, falls, middle, low), select_less(0.5, falls, high, middle)
        ends.append(0.5 * (low + high))
        before, after = slope(low), slope(high)
        steep = maximum(after - before, _LEVEL)
        crossing = clamp(low - (high - low) * before / steep, -half, half)
    narrow = select_less(ends[1] - ends[0], 4.0 * capsule.length * 0.5**_HALVED, 1.0, 0.0)
    at = select_less(0.5, narrow, crossing, 0.5 * (ends[0] + ends[1]))
    return [ball_on_cylinder(first.point(0.0, 0.0, at), capsule.radius, cylinder, second)]


def _level(places: list[Number], slopes: list[Number], half: float) -> tuple[Number, Number]:
    """The middle of the places with slope zero, and whether there are any (1.0): inside the box, or beside a face."""
    low: Number = half
    high: Number = -half
    for s, value in zip(places, slopes, strict=True):
        low = minimum(low, select_less(value * value, 1e-30, s, half))
        high = maximum(high, select_less(value * value, 1e-30, s, -half))
    return 0.5 * (low + high), select_less(high, low, 0.0, 1.0)
