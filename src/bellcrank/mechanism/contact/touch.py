"""Where shapes touch: what all pairs of shapes are computed with, over any scalar.

Directions in which round shapes overlap least, where no face, end or pair of edges gives them.

The overlap of two convex bodies along a unit vector n is h(n) = n . w(n), with w the difference of their farthest
points, of the first along n and of the second against n; they are apart as soon as one n has h < 0, and the smallest h
is how far they overlap. Where w does not jump, h has the slope w across n, and the curvature R t t^T / |n across the
axis| of every rim (radius R, unit tangent t), less h itself. Newton's method goes from a guess; a step that makes h
larger is taken back and followed by a shorter one, so that the result is never worse than the guess.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.scalar.lookup import floor
from bellcrank.spatial import Vector

__all__ = ["ALONG", "LEVEL", "PARALLEL_EDGES", "SOFT", "TIE", "TINY", "AxisReach", "Bend", "FaceEdge", "FlatFace",
           "Points", "ShapeFrame", "Touch", "beside", "best_way", "between_spheres", "box_reach", "choose", "clamp",
           "corners_under", "counted", "crossing", "direction", "edges_of", "facing", "farthest_of_cylinder", "held",
           "least_overlap", "magnitude", "most_along", "nearest_of_cylinder", "part_inside", "rounded_way",
           "settled_across", "settled_way"]

#: squares of lengths [m^2] below this have no direction
TINY = 1e-24
#: steps in one where numbers are held
_GRAINS = 2.0**44
#: the part by which one thing must be more than another that came before it
TIE = 1e-11


class Points(NamedTuple):
    """A convex body given by corners in its own frame [m]: what contact sees of a mesh."""

    corners: tuple[tuple[float, float, float], ...]
    faces: tuple[tuple[int, int, int], ...] = ()  #: triangles by their corners, counterclockwise from outside
    planes: tuple[tuple[float, float, float, float], ...] = ()  #: their normals n, and d with n . x = d
    edges: tuple[tuple[int, int], ...] = ()  #: between faces that are not in one plane


class ShapeFrame(NamedTuple):
    """The frame of a shape: origin and axes, all in one set of axes that does not move."""

    origin: Vector
    x: Vector
    y: Vector
    z: Vector

    @property
    def axes(self) -> tuple[Vector, Vector, Vector]:
        return self.x, self.y, self.z

    def local(self, point: Vector) -> tuple[Number, Number, Number]:
        """A point in this frame."""
        apart = point - self.origin
        return self.x.dot(apart), self.y.dot(apart), self.z.dot(apart)

    def point(self, x: Number, y: Number, z: Number) -> Vector:
        """The point with these coordinates in this frame."""
        return self.origin + self.turned(x, y, z)

    def turned(self, x: Number, y: Number, z: Number) -> Vector:
        """A vector with these components in this frame."""
        out: Vector = self.x * x + self.y * y + self.z * z
        return out


class Touch(NamedTuple):
    """A place where two shapes touch, or would first.

    The rate of `depth` is `gain` times that at which the second body approaches the first at `point` along `normal`:
    every pair of shapes is written so that this holds, since energy is kept only then.
    """

    point: Vector  #: where the force acts
    normal: Vector  #: of length one, from the first shape to the second
    depth: Number  #: how far they overlap [m]; negative: how far they are apart
    gain: Number = 1.0  #: one, but for depths that are measured in other ways than along the normal
    share: Number = 1.0  #: of its force that acts; less than one where another place takes over, none where it is not

    def swapped(self) -> Touch:
        """The same seen from the other shape."""
        return Touch(self.point, -self.normal, self.depth, self.gain, self.share)


def clamp(x: Number, least: Number, most: Number) -> Number:
    """x within bounds."""
    return minimum(maximum(x, least), most)


def choose(a: Number, b: Number, if_less: Vector, otherwise: Vector) -> Vector:
    """`select_less` of vectors."""
    return Vector(*(select_less(a, b, x, y) for x, y in zip(if_less, otherwise, strict=True)))


def direction(v: Vector, fallback: Vector) -> tuple[Vector, Number]:
    """The unit vector along v and its length; the fallback where v has no direction."""
    square = v.dot(v)
    length = sqrt(maximum(square, TINY))
    return choose(square, TINY, fallback, v * (1.0 / length)), select_less(square, TINY, 0.0, length)


def beside(n: Vector) -> tuple[Vector, Vector]:
    """Two directions that make a right-handed frame with a unit vector: T. Duff et al., "Building an orthonormal basis,
    revisited", J. Comput. Graph. Tech. 6 (2017)."""
    sign = select_less(n.z, 0.0, -1.0, 1.0)
    a = -1.0 / (sign + n.z)
    b = n.x * n.y * a
    return (Vector(1.0 + sign * n.x * n.x * a, sign * b, -(sign * n.x)), Vector(b, sign + n.y * n.y * a, -n.y))


def between_spheres(first: Vector, first_radius: float, second: Vector, second_radius: float) -> Touch:
    """Two spheres, or places on rounded shapes."""
    normal, apart = direction(second - first, Vector(0.0, 0.0, 1.0))
    depth = first_radius + second_radius - apart
    return Touch(first + normal * (first_radius - depth * 0.5), normal, depth)


def held(v: Vector) -> Vector:
    """A vector of about length one, to less than a tie, without derivatives. What Newton's method ends in does not
    depend on where it began: two steps from here have the first and second derivatives of any number of them, in a much
    smaller graph."""
    return Vector(*(floor(x * _GRAINS + 0.5) * (1.0 / _GRAINS) for x in v))


def most_along(rows: Sequence[tuple[float, float, float]], at: ShapeFrame, way: Vector) -> Number:
    """The number of the row, a point or direction in the frame of a shape, that lies farthest along a direction; of
    several that do but for rounding, the first."""
    x, y, z = (axis.dot(way) for axis in at.axes)
    tie = (maximum(x, -x) + maximum(y, -y) + maximum(z, -z)) * (TIE * max(abs(v) for row in rows for v in row))
    best: Number = 0.0
    index: Number = 0.0
    for k, (a, b, c) in enumerate(rows):
        along = a * x + b * y + c * z
        more = best + tie
        index = 0.0 if k == 0 else select_less(more, along, float(k), index)
        best = along if k == 0 else select_less(more, along, along, best)
    return index


# -- rectangular faces of boxes: which one looks where, its corners and edges, and where these meet others ---
#: part of the smallest edge over which one place takes over from another
SOFT = 1e-3
#: squared sine of the angle below which edges count as parallel
PARALLEL_EDGES = 1e-4
#: normals of crossings lie this much along the direction of least overlap (cosine)
ALONG = 0.9
#: a corner that lies this much deeper than two boxes overlap is beyond the other one
_NOT_BEYOND = 1.001


class FlatFace(NamedTuple):
    """A face of a box: its middle, the normal out of it, and two axes in it with half the lengths along them."""

    middle: Vector
    normal: Vector
    axes: tuple[Vector, Vector]
    half: tuple[Number, Number]
    deep: Number  #: half the box behind it


class FaceEdge(NamedTuple):
    """An edge: its middle, direction and half its length."""

    middle: Vector
    way: Vector
    half: Number


def least_overlap(apart: Vector, normals: Sequence[Vector], crosses: Sequence[Vector],
                  reach: Callable[[Vector], Number]) -> tuple[Vector, Number]:
    """The direction, from the first shape to the second, along which they overlap least, and by how much: one of some
    unit vectors and of some products of unit vectors; `reach` is how far both shapes go along a direction from their
    centers."""
    best: Number = 0.0
    found = normals[0]
    for i, n in enumerate(normals):
        along = n.dot(apart)
        depth = reach(n) - magnitude(along)
        n = n * select_less(along, 0.0, -1.0, 1.0)
        found = n if i == 0 else choose(depth, best, n, found)
        best = depth if i == 0 else minimum(best, depth)
    for n in crosses:
        square = n.dot(n)
        n = n * (1.0 / sqrt(maximum(square, PARALLEL_EDGES)))
        along = n.dot(apart)
        depth = select_less(square, PARALLEL_EDGES, best, reach(n) - magnitude(along))
        found = choose(depth, best, n * select_less(along, 0.0, -1.0, 1.0), found)
        best = minimum(best, depth)
    return found, best


def box_reach(half: Sequence[float], at: ShapeFrame, n: Vector) -> Number:
    """How far a box goes along a direction from its center."""
    total: Number = 0.0
    for h, axis in zip(half, at.axes, strict=True):
        total = total + h * magnitude(n.dot(axis))
    return total


def magnitude(x: Number) -> Number:
    return select_less(x, 0.0, -x, x)


def facing(half: Sequence[float], at: ShapeFrame, way: Vector) -> FlatFace:
    """The face of a box that looks most along a direction."""
    x, y, z = at.axes
    cosines = [way.dot(axis) for axis in at.axes]
    sizes = [magnitude(c) for c in cosines]
    signed = [axis * select_less(c, 0.0, -1.0, 1.0) for axis, c in zip(at.axes, cosines, strict=True)]
    # x unless y is more along it, then z
    normal, one, two = choose(sizes[0], sizes[1], signed[1], signed[0]), choose(sizes[0], sizes[1], x, y), z
    deep, short, last = (select_less(sizes[0], sizes[1], half[i], half[j]) for i, j in ((1, 0), (0, 1), (2, 2)))
    most = maximum(sizes[0], sizes[1])
    normal, two = choose(most, sizes[2], signed[2], normal), choose(most, sizes[2], y, two)
    one = choose(most, sizes[2], x, one)
    deep, short, last = (select_less(most, sizes[2], half[i], v) for i, v in ((2, deep), (0, short), (1, last)))
    return FlatFace(at.origin + normal * deep, normal, (one, two), (short, last), deep)


def edges_of(face: FlatFace) -> list[FaceEdge]:
    (one, two), (a, b) = face.axes, face.half
    return [FaceEdge(face.middle + across * (side * away), along, length)
            for along, length, across, away in ((one, a, two, b), (two, b, one, a)) for side in (-1.0, 1.0)]


def part_inside(inside: Number, soft: float) -> Number:
    """The share of a place that lies so far inside [m]: one inside, none outside, half where it just lies."""
    return clamp(0.5 + inside * (0.5 / soft), 0.0, 1.0)


def corners_under(mine: FlatFace, theirs: FlatFace, least: Number, soft: float, far: float) -> list[Touch]:
    """Corners of a face of the first box behind one of the second: in the box, or no deeper than both overlap."""
    out, most = [], maximum(2.0 * theirs.deep, _NOT_BEYOND * least)
    for i in (-1.0, 1.0):
        for j in (-1.0, 1.0):
            corner = mine.middle + mine.axes[0] * (mine.half[0] * i) + mine.axes[1] * (mine.half[1] * j)
            apart = corner - theirs.middle
            depth = -theirs.normal.dot(apart)
            share: Number = 1.0
            for axis, half in zip(theirs.axes, theirs.half, strict=True):
                share = share * part_inside(half - magnitude(axis.dot(apart)), soft)
            share = select_less(depth, most, share, 0.0)
            out.append(counted(corner + theirs.normal * (depth * 0.5), -theirs.normal, depth, share, far))
    return out


def crossing(mine: FaceEdge, theirs: FaceEdge, way: Vector, soft: float, far: float) -> Touch:
    """Edges that cross: the nearest points of their lines, and the normal of both."""
    normal = mine.way.cross(theirs.way)
    square = normal.dot(normal)
    along = normal.dot(way)
    length = sqrt(maximum(square, PARALLEL_EDGES))
    normal = normal * (select_less(along, 0.0, -1.0, 1.0) / length)
    apart, cosine = theirs.middle - mine.middle, mine.way.dot(theirs.way)
    c, e = mine.way.dot(apart), theirs.way.dot(apart)
    s = (c - cosine * e) / maximum(square, PARALLEL_EDGES)
    t = cosine * s - e
    depth = -normal.dot(apart)
    share = part_inside(mine.half - magnitude(s), soft) * part_inside(theirs.half - magnitude(t), soft)
    share = select_less(square, PARALLEL_EDGES, 0.0, select_less(magnitude(along), ALONG * length, 0.0, share))
    point = (mine.middle + mine.way * s + theirs.middle + theirs.way * t) * 0.5
    return counted(choose(0.0, share, point, mine.middle), normal, depth, share, far)


def counted(point: Vector, normal: Vector, depth: Number, share: Number, far: float) -> Touch:
    """A place with its share; far apart where it has none."""
    return Touch(point, normal, select_less(0.0, share, depth, -far), 1.0, share)


# -- directions in which round shapes overlap least, where no face, end or pair of edges gives them ---
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
