"""Boxes against boxes, and corners of meshes against boxes.

Two boxes touch along the direction in which they overlap least: one of the 15 normals of faces and of pairs of edges
(S. Gottschalk, M. C. Lin and D. Manocha, "OBBTree", SIGGRAPH 1996). The face of each that looks most along it is the
one that touches. Where two such faces overlap, the corners of what they share are corners of one face inside the other,
or crossings of their edges: 4 + 4 + 16 places, of which at most eight are there at a time. Each is exact by itself, a
corner along the other's normal, a crossing along the common normal of both edges. Where a corner passes an edge, places
take over from each other by shares that add up to one: boxes may lie flush.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bellcrank.mechanism.contact.sphere_contacts import nearest_face
from bellcrank.mechanism.contact.touch import Points, ShapeFrame, Touch, choose, clamp
from bellcrank.mechanism.geometry.solids import Box
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["box_box", "points_box"]

#: part of the smallest edge over which one place takes over from another
_SOFT = 1e-3
#: squared sine of the angle below which edges count as parallel
_PARALLEL = 1e-4
#: normals of crossings lie this much along the direction of least overlap (cosine)
_ALONG = 0.9


class Face(NamedTuple):
    """A face of a box: its middle, the normal out of it, and two axes in it with half the lengths along them."""

    middle: Vector
    normal: Vector
    axes: tuple[Vector, Vector]
    half: tuple[Number, Number]
    deep: Number  #: half the box behind it


class Edge(NamedTuple):
    """An edge: its middle, direction and half its length."""

    middle: Vector
    way: Vector
    half: Number


def box_box(one: Box, first: ShapeFrame, other: Box, second: ShapeFrame) -> list[Touch]:
    """Corners of the two faces that touch inside each other, and crossings of their edges."""
    sizes = [tuple(0.5 * s for s in box.size) for box in (one, other)]
    soft = _SOFT * 2.0 * min(*sizes[0], *sizes[1])
    far = 2.0 * (sum(sizes[0]) + sum(sizes[1]))
    way = _least_overlap(sizes[0], first, sizes[1], second)
    mine, theirs = _face(sizes[0], first, way), _face(sizes[1], second, -way)
    places = [*_corners_under(mine, theirs, soft, far),
              *(t.swapped() for t in _corners_under(theirs, mine, soft, far))]
    return places + [_crossing(a, b, way, soft, far) for a in _edges(mine) for b in _edges(theirs)]


def _least_overlap(half: tuple[float, ...], first: ShapeFrame, other: tuple[float, ...], second: ShapeFrame) -> Vector:
    """The direction, from the first box to the second, along which they overlap least."""
    apart = second.origin - first.origin

    def overlap(n: Vector) -> tuple[Number, Number]:
        along = n.dot(apart)
        total = -_size(along)
        for h, axis in (*zip(half, first.axes, strict=True), *zip(other, second.axes, strict=True)):
            total = total + h * _size(n.dot(axis))
        return total, along

    best: Number = 0.0
    found = first.axes[0]
    for i, n in enumerate((*first.axes, *second.axes)):
        depth, along = overlap(n)
        n = n * select_less(along, 0.0, -1.0, 1.0)
        found = n if i == 0 else choose(depth, best, n, found)
        best = depth if i == 0 else minimum(best, depth)
    for a in first.axes:
        for b in second.axes:
            n = a.cross(b)
            square = n.dot(n)
            n = n * (1.0 / sqrt(maximum(square, _PARALLEL)))
            depth, along = overlap(n)
            depth = select_less(square, _PARALLEL, best, depth)
            found = choose(depth, best, n * select_less(along, 0.0, -1.0, 1.0), found)
            best = minimum(best, depth)
    return found


def _size(x: Number) -> Number:
    return select_less(x, 0.0, -x, x)


def _face(half: tuple[float, ...], at: ShapeFrame, way: Vector) -> Face:
    """The face of a box that looks most along a direction."""
    x, y, z = at.axes
    cosines = [way.dot(axis) for axis in at.axes]
    sizes = [_size(c) for c in cosines]
    signed = [axis * select_less(c, 0.0, -1.0, 1.0) for axis, c in zip(at.axes, cosines, strict=True)]
    # x unless y is more along it, then z
    normal, one, two = choose(sizes[0], sizes[1], signed[1], signed[0]), choose(sizes[0], sizes[1], x, y), z
    deep, short, last = (select_less(sizes[0], sizes[1], half[i], half[j]) for i, j in ((1, 0), (0, 1), (2, 2)))
    most = maximum(sizes[0], sizes[1])
    normal, two = choose(most, sizes[2], signed[2], normal), choose(most, sizes[2], y, two)
    one = choose(most, sizes[2], x, one)
    deep, short, last = (select_less(most, sizes[2], half[i], v) for i, v in ((2, deep), (0, short), (1, last)))
    return Face(at.origin + normal * deep, normal, (one, two), (short, last), deep)


def _edges(face: Face) -> list[Edge]:
    (one, two), (a, b) = face.axes, face.half
    return [Edge(face.middle + across * (side * away), along, length)
            for along, length, across, away in ((one, a, two, b), (two, b, one, a)) for side in (-1.0, 1.0)]


def _part(inside: Number, soft: float) -> Number:
    """The share of a place that lies so far inside [m]: one inside, none outside, half where it just lies."""
    return clamp(0.5 + inside * (0.5 / soft), 0.0, 1.0)


def _corners_under(mine: Face, theirs: Face, soft: float, far: float) -> list[Touch]:
    """Corners of a face of the first box behind one of the second."""
    out = []
    for i in (-1.0, 1.0):
        for j in (-1.0, 1.0):
            corner = mine.middle + mine.axes[0] * (mine.half[0] * i) + mine.axes[1] * (mine.half[1] * j)
            apart = corner - theirs.middle
            depth = -theirs.normal.dot(apart)
            share: Number = 1.0
            for axis, half in zip(theirs.axes, theirs.half, strict=True):
                share = share * _part(half - _size(axis.dot(apart)), soft)
            share = select_less(depth, theirs.deep, share, 0.0)
            out.append(_counted(corner + theirs.normal * (depth * 0.5), -theirs.normal, depth, share, far))
    return out


def _crossing(mine: Edge, theirs: Edge, way: Vector, soft: float, far: float) -> Touch:
    """Edges that cross: the nearest points of their lines, and the normal of both."""
    normal = mine.way.cross(theirs.way)
    square = normal.dot(normal)
    along = normal.dot(way)
    length = sqrt(maximum(square, _PARALLEL))
    normal = normal * (select_less(along, 0.0, -1.0, 1.0) / length)
    apart, cosine = theirs.middle - mine.middle, mine.way.dot(theirs.way)
    c, e = mine.way.dot(apart), theirs.way.dot(apart)
    s = (c - cosine * e) / maximum(square, _PARALLEL)
    t = cosine * s - e
    depth = -normal.dot(apart)
    share = _part(mine.half - _size(s), soft) * _part(theirs.half - _size(t), soft)
    share = select_less(square, _PARALLEL, 0.0, select_less(_size(along), _ALONG * length, 0.0, share))
    point = (mine.middle + mine.way * s + theirs.middle + theirs.way * t) * 0.5
    return _counted(choose(0.0, share, point, mine.middle), normal, depth, share, far)


def _counted(point: Vector, normal: Vector, depth: Number, share: Number, far: float) -> Touch:
    """A place with its share; far apart where it has none."""
    return Touch(point, normal, select_less(0.0, share, depth, -far), 1.0, share)


def points_box(points: Points, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """The corners of a mesh in a box."""
    return _corners_in([first.point(*c) for c in points.corners], box, second)


def _corners_in(points: Iterable[Vector], box: Box, at: ShapeFrame) -> list[Touch]:
    """Points of the first body against a box, second."""
    out, half = [], [0.5 * s for s in box.size]
    for point in points:
        depth, way = nearest_face(at.local(point), half)
        outward = at.turned(*way)
        out.append(Touch(point + outward * (depth * 0.5), -outward, depth))
    return out
