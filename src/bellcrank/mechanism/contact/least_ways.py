"""Directions in which round shapes overlap least, where no face, end or pair of edges gives them.

The overlap of two convex bodies along a unit vector n is h(n) = n . w(n), with w the difference of their farthest
points, of the first along n and of the second against n; they are apart as soon as one n has h < 0, and the smallest h
is how far they overlap. Where w does not jump, h has the slope w across n, and the curvature R t t^T / |n across the
axis| of every rim (radius R, unit tangent t), less h itself. Newton's method goes from a guess; a step that makes h
larger is taken back and followed by a shorter one, so that the result is never worse than the guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.mechanism.contact.touch import TIE, beside, choose, direction, held
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = [
    "LEVEL",
    "AxisReach",
    "Bend",
    "Spread",
    "best_way",
    "farthest_of_cylinder",
    "nearest_of_cylinder",
    "rounded_way",
    "settled_across",
    "settled_way",
]

#: the difference of the farthest points of two bodies, and the bends of their rims there
Spread = Callable[[Vector], tuple[Vector, Sequence["Bend"]]]

#: how often a direction is improved, across an axis and free, by how much at most [rad], and what part of that is left
#: after a step back
_ACROSS, _ASKEW, _TURN, _SHORTER = 8, 8, 0.5, 0.25
#: radii of rounded edges, as parts of a shape's size, one after the other
_ROUNDED = (0.5, 0.3, 0.2, 0.1, 0.1, 0.05, 0.05, 0.02, 0.02, 0.01, 0.004, 0.004)
#: curvatures below this [m] have no step of their own
_FLAT = 1e-9
#: sines below which a direction counts as along a face or across an edge
LEVEL = 1e-6
#: the square of a step [rad^2] after which no other is needed
_SHORT = 1e-8


class Bend(NamedTuple):
    """A rim at its farthest point: the unit tangent, and R / |n across the axis| [m]."""

    tangent: Vector
    size: Number


def farthest_of_cylinder(middle: Vector, axis: Vector, radius: float, half: float, n: Vector) -> tuple[Vector, Bend]:
    """The point of a cylinder farthest along n, the middle of an end where all of it is; and its rim there."""
    along = axis.dot(n)
    out, across = direction(n - axis * along, Vector.zero())
    point = middle + axis * (half * select_less(along, -TIE * across, -1.0, 1.0)) + out * radius
    return point, Bend(axis.cross(out), radius / maximum(across, 1e-3))


def nearest_of_cylinder(middle: Vector, axis: Vector, radius: float, half: float, n: Vector, other: Vector) -> Vector:
    """The same point; of a line of the side, or of an end, that are all as far along n, the one beside another point:
    which end of the line is farther by rounding must not decide."""
    along, apart = axis.dot(n), other - middle
    out, across = direction(n - axis * along, Vector.zero())
    beside = axis.dot(apart)
    inward, away = direction(apart - axis * beside, Vector.zero())
    tilt, lean = along * (1.0 / LEVEL), minimum(across * (1.0 / LEVEL), 1.0)
    flat = 1.0 - minimum(tilt * tilt, 1.0)
    end = half * select_less(along, 0.0, -1.0, 1.0) * (1.0 - flat)
    point: Vector = middle + axis * (end + flat * beside)
    point = point + out * (radius * lean) + inward * (away * (1.0 - lean))
    return point


class AxisReach(NamedTuple):
    """What a body's reach along a unit vector n has of x = n . axis: ``flat |x| + round sqrt(1 - x^2)`` [m]."""

    axis: Vector
    flat: Number
    round: float = 0.0


def rounded_way(apart: Vector, start: Vector, reaches: Sequence[AxisReach]) -> Vector:
    """About the direction from the first body to the second in which they overlap least, wherever it lies: that of
    bodies whose edges are rounded, ever less so.

    With |x| and sqrt(1 - x^2) as sqrt(x^2 + e^2) and sqrt(1 - x^2 + e^2) the overlap is a sum of R_k(n . a_k) less
    n . apart; on the sphere it has the slope g = P (sum R_k' a_k - apart) and the curvature P (sum R_k'' a_k a_k^T) P
    - (n . g), P being across n.
    """
    n = start
    for edge in _ROUNDED:
        e2 = edge * edge
        slope, bends = -apart, []
        for axis, flat, round_ in reaches:
            x = n.dot(axis)
            near, out = x * x + e2, maximum(1.0 + e2 - x * x, e2)
            root, wide = sqrt(near), sqrt(out)
            first = flat * x / root - (round_ * x / wide if round_ else 0.0)
            second = flat * e2 / (near * root) - (round_ * (1.0 + e2) / (out * wide) if round_ else 0.0)
            slope = slope + axis * first
            bends.append((axis, second))
        n = _newton(n, slope, bends)
    return direction(held(n), start)[0]  # a guess


def _newton(n: Vector, slope: Vector, bends: Sequence[tuple[Vector, Number]]) -> Vector:
    """One step on the sphere; down the slope where it does not bend upward."""
    side, across = beside(n)
    level = n.dot(slope)
    xx: Number = -level
    yy: Number = -level
    xy: Number = 0.0
    for axis, size in bends:
        c, s = side.dot(axis), across.dot(axis)
        xx, xy, yy = xx + size * c * c, xy + size * c * s, yy + size * s * s
    gx, gy = side.dot(slope), across.dot(slope)
    # at least so much curvature that no step is longer than allowed
    steep = sqrt(gx * gx + gy * gy + _FLAT * _FLAT)
    middle, half = 0.5 * (xx + yy), 0.5 * (xx - yy)
    least = middle - sqrt(half * half + xy * xy)
    more = maximum(steep * (1.0 / _TURN) - least, 0.0)
    xx, yy = xx + more, yy + more
    some = xx * yy - xy * xy
    x, y = (xy * gy - yy * gx) / some, (xy * gx - xx * gy) / some
    return direction(n + side * x + across * y, n)[0]


def best_way(ways: Sequence[Vector], overlap: Callable[[Vector], Number]) -> tuple[Vector, Number]:
    """The one of some directions along which bodies overlap least, and by how much."""
    found, least = ways[0], overlap(ways[0])
    for way in ways[1:]:
        depth = overlap(way)
        found, least = choose(depth, least, way, found), minimum(depth, least)
    return found, least


def settled_across(axis: Vector, start: Vector, spread: Spread) -> Vector:
    """The direction across a unit vector along which bodies overlap least, near a guess."""
    def downhill(n: Vector) -> _Downhill:
        apart, bends = spread(n)
        side, depth = axis.cross(n), n.dot(apart)
        bend: Number = -depth
        for rim in bends:
            along = side.dot(rim.tangent)
            bend = bend + rim.size * along * along
        slope = side.dot(apart)
        step = select_less(bend, _FLAT, select_less(slope, 0.0, _TURN, -_TURN), -slope / maximum(bend, _FLAT))
        return _Downhill(side * step, step * step, depth)

    def across(n: Vector) -> Vector:
        return direction(n - axis * axis.dot(n), n)[0]

    return _settled(across(start), downhill, _ACROSS, across)


def settled_way(start: Vector, spread: Spread) -> Vector:
    """The direction along which two bodies with a rim each overlap least, near a guess."""
    def downhill(n: Vector) -> _Downhill:
        apart, (mine, theirs) = spread(n)
        depth = n.dot(apart)
        side, across = mine.tangent, n.cross(mine.tangent)
        c, s = side.dot(theirs.tangent), across.dot(theirs.tangent)
        xx, xy, yy = mine.size + theirs.size * c * c - depth, theirs.size * c * s, theirs.size * s * s - depth
        gx, gy = side.dot(apart), across.dot(apart)
        det = xx * yy - xy * xy
        good = select_less(_FLAT, det, 1.0, 0.0)
        some = select_less(_FLAT, det, det, 1.0)
        # where it does not bend both ways: along the slope
        x = select_less(0.5, good, (xy * gy - yy * gx) / some, -gx / maximum(xx, _FLAT))
        y = select_less(0.5, good, (xy * gx - xx * gy) / some, select_less(gy, 0.0, 0.1, -0.1))
        return _Downhill(side * x + across * y, x * x + y * y, depth)

    return _settled(start, downhill, _ASKEW, lambda n: direction(n, start)[0])


class _Downhill(NamedTuple):
    """At a direction: the step to a better one, its square, and the overlap."""

    step: Vector
    square: Number
    depth: Number


def _settled(start: Vector, downhill: Callable[[Vector], _Downhill], steps: int, allowed: Callable[[Vector], Vector]
             ) -> Vector:
    """Newton's method with steps back. Overlaps tell directions apart no better than to the root of rounding: the last
    steps, from the best one, are taken unasked if they are short. `allowed` makes a vector one of the directions."""
    n = best = start
    here = downhill(n)
    least, most = here.depth, _TURN
    worse: Number = 0.0
    for k in range(steps):
        length = sqrt(maximum(here.square, most * most))
        onward = allowed(n + here.step * (most / length))
        # after a step back: between here and the best one
        n = onward if k == 0 else choose(0.5, worse, allowed(best + (n - best) * _SHORTER), onward)
        here = downhill(n)
        worse = select_less(least, here.depth, 1.0, 0.0)
        most = select_less(0.5, worse, _SHORTER * most, most)
        best = choose(0.5, worse, best, n)
        least = minimum(least, here.depth)
    n = best = allowed(held(best))
    good: Number = 1.0
    for _ in range(2):
        here = downhill(n)
        good = select_less(here.square, _SHORT, good, 0.0)
        n = allowed(n + here.step)
    return choose(0.5, good, n, best)
