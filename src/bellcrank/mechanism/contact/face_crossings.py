"""Where the outlines of two flat faces cross: a plank across a beam, whatever polygons their faces are.

The direction in which two convex bodies touch is known (`hull_contacts`). The face of each that looks most along it is
the one that touches; seen along it both are convex polygons, and the corners of what they share are corners of one
inside the other (places of their own) or crossings of their edges. Of these there may be as many as both have edges:
the outermost along four directions across are enough to hold a body. Each is then the exact place where two edges in
space cross, along their common normal, whose depth changes at the rate at which the bodies approach there. Where a
corner passes an edge, it and the crossings take over from each other by shares, as with boxes.

Tables are constants in the body's own frame; which face and which edges are entries looked up, so that the number of
steps is fixed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bellcrank.mechanism.contact.touch import (
    PARALLEL_EDGES,
    SOFT,
    FaceEdge,
    Points,
    ShapeFrame,
    Touch,
    choose,
    clamp,
    counted,
    crossing,
    direction,
    magnitude,
    most_along,
    part_inside,
)
from bellcrank.mechanism.geometry.solids import Box
from bellcrank.scalar.functions import maximum, minimum, select_less
from bellcrank.scalar.graph import Number
from bellcrank.scalar.lookup import Constants, entry
from bellcrank.spatial import Vector

__all__ = ["FaceTable", "FacesInTouch", "TouchingFace", "crossings_of_faces", "face_toward", "faces_in_touch",
           "faces_of_box", "faces_of_hull", "level_corners", "unless_known"]

#: squared sine of the angle between faces below which they count as lying on each other
_FLAT = 1e-6
#: and below which their corners leave each other over edges
_LEVEL = 1e-3
#: cosine between the longest edges of both faces below which they count as opposite
_OPPOSITE = -0.8
#: sine between them below which they count as parallel
_PARALLEL_WAYS = 0.2
#: one over the share from which a crossing is chosen by where it lies alone: less than that of flush corners, 1/4
_SEEN = 8.0


class FaceTable(NamedTuple):
    """Flat faces of a convex body, counterclockwise from outside, all with the same number of corners: the last one is
    repeated."""

    most: int  #: corners of each
    normals: tuple[tuple[float, float, float], ...]
    corners: tuple[Constants, Constants, Constants]  #: x, y, z of all corners, face by face
    lengths: Constants  #: of the edge from each corner to the next [m]
    ways: tuple[Constants, Constants, Constants]  #: the direction of each face's longest edge
    shortest: float  #: edge of all [m]
    middles: tuple[tuple[float, float, float], ...]  #: means of the corners of each


class TouchingFace(NamedTuple):
    """One face of a table, looked up."""

    table: FaceTable
    at: ShapeFrame
    start: Number  #: index of its first corner
    normal: Vector
    way: Vector  #: along its longest edge

    def corner(self, k: Number) -> Vector:
        return self.at.point(*(entry(self.start + k, column) for column in self.table.corners))

    def edge(self, k: Number) -> FaceEdge:
        """The edge after a corner."""
        one = self.corner(k)
        way, length = direction(self.corner(select_less(k, self.table.most - 1.5, k + 1.0, 0.0)) - one, self.way)
        return FaceEdge(one + way * (0.5 * length), way, 0.5 * length)

    def length(self, k: Number) -> Number:
        """The length of that edge: none where the last corner is repeated."""
        return entry(self.start + k, self.table.lengths)

    def inside(self, far: float) -> list[tuple[Vector, Vector]]:
        """A point of each edge and the direction from it into the face; of edges without a length, far away."""
        out = []
        for k in range(self.table.most):
            one, two = self.corner(float(k)), self.corner(float((k + 1) % self.table.most))
            inward, length = direction(self.normal.cross(two - one), self.way)
            out.append((one - inward * select_less(length, 0.5 * self.table.shortest, far, 0.0), inward))
        return out


class FacesInTouch(NamedTuple):
    """Two faces that look at each other."""

    mine: TouchingFace
    theirs: TouchingFace
    bend: Number  #: squared sine of the angle between them
    soft: float  #: where places take over from each other [m]
    far: float  #: more than both bodies measure together [m]

    def swapped(self) -> FacesInTouch:
        return FacesInTouch(self.theirs, self.mine, self.bend, self.soft, self.far)


class _Chosen(NamedTuple):
    """The outermost crossing so far: how far out, and of which edges."""

    score: Number
    mine: Number
    theirs: Number

    def or_this(self, score: Number, mine: int, theirs: int) -> _Chosen:
        return _Chosen(maximum(self.score, score), select_less(self.score, score, float(mine), self.mine),
                       select_less(self.score, score, float(theirs), self.theirs))


def faces_of_hull(hull: Points) -> FaceTable:
    """Triangles that lie in one plane are one face."""
    corners, faces = np.array(hull.corners), []
    left = list(zip(hull.faces, np.array(hull.planes)[:, :3], strict=True))
    while left:
        normal = left[0][1]
        same = [item for item in left if item[1] @ normal > 1.0 - 1e-9]
        left = [item for item in left if item[1] @ normal <= 1.0 - 1e-9]
        points = corners[sorted({c for triangle, _ in same for c in triangle})]
        apart = points - points.mean(axis=0)
        angles = np.arctan2(np.cross(normal, apart[0]) @ apart.T, apart @ apart[0])
        faces.append((normal, points[np.argsort(angles)]))
    return _table(faces)


def faces_of_box(box: Box) -> FaceTable:
    """Six rectangles."""
    half, faces = 0.5 * np.array(box.size), []
    for k in range(3):
        for side in (-1.0, 1.0):
            ways = np.roll(np.array([(side, i, j) for i, j in ((-1, -1), (1, -1), (1, 1), (-1, 1))]), k, axis=1)
            faces.append((side * np.eye(3)[k], (ways * half)[::int(side)]))
    return _table(faces)


def _table(faces: Sequence[tuple[np.ndarray, np.ndarray]]) -> FaceTable:
    most = max(len(points) for _, points in faces)
    padded = [np.concatenate([points, np.repeat(points[-1:], most - len(points), axis=0)]) for _, points in faces]
    edges = [np.roll(points, -1, axis=0) - points for points in padded]
    lengths = [np.linalg.norm(e, axis=1) for e in edges]
    ways = [e[n.argmax()] / n.max() for e, n in zip(edges, lengths, strict=True)]
    every = np.concatenate(lengths)
    x, y, z = (Constants(column) for column in np.concatenate(padded).T)
    a, b, c = (Constants(column) for column in np.array(ways).T)
    normals = tuple((float(n[0]), float(n[1]), float(n[2])) for n, _ in faces)
    middles = tuple((float(m[0]), float(m[1]), float(m[2])) for m in (points.mean(axis=0) for _, points in faces))
    return FaceTable(most, normals, (x, y, z), Constants(every), (a, b, c), float(every[every > 0.0].min()), middles)


def face_toward(table: FaceTable, at: ShapeFrame, way: Vector, outermost: bool = False) -> TouchingFace:
    """The face that looks most along a direction; or that lies farthest along it, by the mean of its corners."""
    index = most_along(table.middles if outermost else table.normals, at, way)
    normal = at.turned(*(entry(index, Constants(n[i] for n in table.normals)) for i in range(3)))
    return TouchingFace(table, at, index * float(table.most), normal,
                        at.turned(*(entry(index, column) for column in table.ways)))


def _across(way: Vector, mine: Vector, theirs: Vector) -> tuple[Vector, Vector]:
    """Two directions across `way`: between the longest edges of both faces (with parallel ones at 45 degrees to them),
    so that the four corners of two crossed strips are each the outermost along one of them; they turn with the bodies
    without a jump but where these edges become parallel."""
    between = choose(mine.dot(theirs), _OPPOSITE, way.cross(mine - theirs), mine + theirs)
    one = direction(between - way * way.dot(between), mine)[0]
    other, sine = way.cross(one), magnitude(way.dot(mine.cross(theirs)))
    turned = (one + other) * math.sqrt(0.5)
    return choose(sine, _PARALLEL_WAYS, turned, one), choose(sine, _PARALLEL_WAYS, way.cross(turned), other)


def faces_in_touch(one: FaceTable, first: ShapeFrame, other: FaceTable, second: ShapeFrame, way: Vector, far: float
                   ) -> FacesInTouch:
    """The faces of two bodies that touch along `way`, from the first to the second."""
    mine, theirs = face_toward(one, first, way), face_toward(other, second, -way)
    bend = mine.normal.cross(theirs.normal)
    return FacesInTouch(mine, theirs, bend.dot(bend), SOFT * min(one.shortest, other.shortest), far)


def _outermost(faces: FacesInTouch, axes: tuple[Vector, Vector]) -> list[_Chosen]:
    """The crossings of two outlines, seen along the normal of two axes, that lie farthest along both and against."""
    mine, theirs, _, soft, far = faces
    middle = mine.corner(0.0)
    flat = [[tuple(axis.dot(face.corner(float(k)) - middle) for axis in axes) for k in range(face.table.most)]
            for face in (mine, theirs)]
    sizes = [[entry(face.start + float(k), face.table.lengths) for k in range(face.table.most)]
             for face in (mine, theirs)]
    least = PARALLEL_EDGES * (mine.table.shortest * theirs.table.shortest)**2
    found = [_Chosen(0.0, 0.0, 0.0) for _ in range(4)]
    for i, ((ax, ay), (cx, cy)) in enumerate(zip(flat[0], (*flat[0][1:], flat[0][0]), strict=True)):
        ux, uy = cx - ax, cy - ay
        for j, ((bx, by), (dx, dy)) in enumerate(zip(flat[1], (*flat[1][1:], flat[1][0]), strict=True)):
            wx, wy, rx, ry = dx - bx, dy - by, bx - ax, by - ay
            sine = ux * wy - uy * wx
            square, lengths = sine * sine, sizes[0][i] * sizes[1][j]
            scale = sine / maximum(square, least)
            s, t = (rx * wy - ry * wx) * scale, (rx * uy - ry * ux) * scale
            share = (part_inside(minimum(s, 1.0 - s) * sizes[0][i], soft)
                     * part_inside(minimum(t, 1.0 - t) * sizes[1][j], soft))
            share = select_less(square, PARALLEL_EDGES * lengths * lengths + 0.5 * least, 0.0, share)
            x, y = ax + ux * s, ay + uy * s
            there = minimum(share * _SEEN, 1.0)  # with half a share, beside a corner, it is as good as others
            found = [slot.or_this(there * (far + out), i, j)
                     for slot, out in zip(found, (x, y, -x, -y), strict=True)]
    return found


def crossings_of_faces(faces: FacesInTouch, way: Vector) -> list[Touch]:
    """Four crossings of edges of two faces that touch along `way`, from the first body to the second."""
    mine, theirs, _, soft, far = faces
    slots = _outermost(faces, _across(way, mine.way, theirs.way))
    keys = [slot.mine * float(theirs.table.most) + slot.theirs for slot in slots]
    out = []
    for slot, key in zip(slots, keys, strict=True):
        place = crossing(mine.edge(slot.mine), theirs.edge(slot.theirs), way, soft, far)
        times: Number = 0.0  # as often as it is chosen, itself included
        for another in keys:
            times = times + select_less((key - another) * (key - another), 0.25, 1.0, 0.0)
        share = select_less(0.0, slot.score, place.share / times, 0.0)
        out.append(counted(place.point, place.normal, place.depth, share, far))
    return out


def level_corners(places: Sequence[Touch], corners: Sequence[Vector], faces: FacesInTouch) -> list[Touch]:
    """Places of corners of the first body in the second; where the faces in touch are about level, those of corners of
    the one face are behind the other and no face beside it, and leave it over its edges by shares."""
    mine, theirs, bend, soft, far = faces
    lines, top, under = theirs.inside(far), theirs.corner(0.0), mine.corner(0.0)
    out = []
    for place, corner in zip(places, corners, strict=True):
        depth = theirs.normal.dot(top - corner)
        share: Number = 1.0
        for start, inward in lines:
            share = share * part_inside(inward.dot(corner - start), soft)
        flat = counted(corner + theirs.normal * (depth * 0.5), -theirs.normal, depth, share, far)
        # not level, or not a corner of this face: as it was
        other = select_less(bend, _LEVEL, select_less(mine.normal.dot(under - corner), soft, 0.0, 1.0), 1.0)
        out.append(Touch(choose(0.5, other, place.point, flat.point), choose(0.5, other, place.normal, flat.normal),
                         select_less(0.5, other, place.depth, flat.depth), 1.0,
                         select_less(0.5, other, place.share, flat.share)))
    return out


def unless_known(place: Touch, corners: Sequence[Touch], crossings: Sequence[Touch], faces: FacesInTouch) -> Touch:
    """A crossing that was found in another way, left to other places where it is one of them; where the faces lie on
    each other, to any crossings of theirs."""
    total: Number = 0.0
    same: Number = 0.0
    for other in crossings:
        total = total + other.share
    for other in (*corners, *crossings):
        apart = other.point - place.point
        same = same + select_less(apart.dot(apart), faces.soft * faces.soft, other.share, 0.0)
    flat = 1.0 - clamp(faces.bend * (1.0 / _FLAT), 0.0, 1.0)
    kept = (1.0 - minimum(same, 1.0)) * (1.0 - minimum(total, 1.0) * flat)
    kept = select_less(kept, 1e-9, 0.0, kept)  # shares add up to one but for rounding
    return counted(place.point, place.normal, place.depth, place.share * kept, faces.far)
