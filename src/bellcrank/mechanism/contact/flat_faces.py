"""Rectangular faces of boxes: which one looks where, its corners and edges, and where these meet others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.mechanism.contact.touch import ShapeFrame, Touch, choose, clamp
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["ALONG", "PARALLEL_EDGES", "SOFT", "FaceEdge", "FlatFace", "box_reach", "corners_under", "counted",
           "crossing", "edges_of", "facing", "least_overlap", "magnitude", "part_inside"]

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
