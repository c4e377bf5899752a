"""Boxes against boxes, and corners of meshes against boxes: corners inside the other box.

Edges that cross between their corners are not seen: put a sphere or a capsule there where that matters.
"""

from __future__ import annotations

from collections.abc import Iterable

from bellcrank.mechanism.contact.plane_contacts import corners_of
from bellcrank.mechanism.contact.sphere_contacts import nearest_face
from bellcrank.mechanism.contact.touch import Points, ShapeFrame, Touch
from bellcrank.mechanism.geometry.solids import Box
from bellcrank.spatial import Vector

__all__ = ["box_box", "points_box"]


def _corners_in(points: Iterable[Vector], box: Box, at: ShapeFrame) -> list[Touch]:
    """Points of the first body against a box, second."""
    out, half = [], [0.5 * s for s in box.size]
    for point in points:
        depth, way = nearest_face(at.local(point), half)
        outward = at.turned(*way)
        out.append(Touch(point + outward * (depth * 0.5), -outward, depth))
    return out


def box_box(one: Box, first: ShapeFrame, other: Box, second: ShapeFrame) -> list[Touch]:
    """The corners of each in the other."""
    mine = _corners_in([first.point(*c) for c in corners_of(one)], other, second)
    return mine + [t.swapped() for t in _corners_in([second.point(*c) for c in corners_of(other)], one, first)]


def points_box(points: Points, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """The corners of a mesh in a box."""
    return _corners_in([first.point(*c) for c in points.corners], box, second)
