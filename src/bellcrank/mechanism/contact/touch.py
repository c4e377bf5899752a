"""Where shapes touch: what all pairs of shapes are computed with, over any scalar."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.scalar.lookup import floor
from bellcrank.spatial import Vector

__all__ = ["ALONG", "PARALLEL_EDGES", "SOFT", "TIE", "TINY", "FaceEdge", "FlatFace", "Points", "ShapeFrame", "Touch",
           "beside", "between_spheres", "box_reach", "choose", "clamp", "corners_under", "counted", "crossing",
           "direction", "edges_of", "facing", "held", "least_overlap", "magnitude", "most_along", "part_inside"]

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
