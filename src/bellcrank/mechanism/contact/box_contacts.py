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

from bellcrank.mechanism.contact.round_contacts import nearest_face
from bellcrank.mechanism.contact.touch import (
    SOFT,
    Points,
    ShapeFrame,
    Touch,
    box_reach,
    corners_under,
    crossing,
    edges_of,
    facing,
    least_overlap,
)
from bellcrank.mechanism.geometry.solids import Box
from bellcrank.spatial import Vector

__all__ = ["box_box", "points_box"]


def box_box(one: Box, first: ShapeFrame, other: Box, second: ShapeFrame) -> list[Touch]:
    """Corners of the two faces that touch inside each other, and crossings of their edges."""
    sizes = [tuple(0.5 * s for s in box.size) for box in (one, other)]
    soft = SOFT * 2.0 * min(*sizes[0], *sizes[1])
    far = 2.0 * (sum(sizes[0]) + sum(sizes[1]))
    way, least = least_overlap(second.origin - first.origin, (*first.axes, *second.axes),
                               [a.cross(b) for a in first.axes for b in second.axes],
                               lambda n: box_reach(sizes[0], first, n) + box_reach(sizes[1], second, n))
    mine, theirs = facing(sizes[0], first, way), facing(sizes[1], second, -way)
    places = [*corners_under(mine, theirs, least, soft, far),
              *(t.swapped() for t in corners_under(theirs, mine, least, soft, far))]
    return places + [crossing(a, b, way, soft, far) for a in edges_of(mine) for b in edges_of(theirs)]


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
