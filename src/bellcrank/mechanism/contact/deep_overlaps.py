"""Bodies with corners far inside each other: none of their corners and edges may know how far.

Places are exact where bodies touch: a corner behind a face, edges that cross. Deep inside, a corner may lie just behind
a face that is far from where the bodies would part, or no corner lies in the other body at all. The direction in which
they overlap least, of some that are likely, says by how much. Where no place has `_KNOWN` of that depth, one that has
it replaces the deepest: what is stored is then the larger one of two energies, of which forces are the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.mechanism.contact.flat_faces import counted
from bellcrank.mechanism.contact.least_ways import LEVEL, best_way
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch, choose
from bellcrank.scalar.functions import maximum, select_less
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["Corners", "and_deepest", "extent_of"]

#: places with this part of the least overlap know of it
_KNOWN = 0.5
#: overlaps, in units of the larger body, that are none
_NONE = 1e-12


class Corners(NamedTuple):
    """A convex body: its corners, and the frame they are in."""

    rows: Sequence[tuple[float, float, float]]
    at: ShapeFrame

    def reach(self, n: Vector) -> Number:
        """How far it goes along a direction, from the origin of its frame."""
        best: Number = 0.0
        for k, along in enumerate(self._along(n)):
            best = along if k == 0 else maximum(best, along)
        return best

    def part_toward(self, n: Vector) -> tuple[Vector, Number]:
        """The corner farthest along a direction; of an edge or a face that is, its middle; and how many corners that
        has."""
        farthest, scale = self.reach(n), 1.0 / (LEVEL * extent_of(self.rows))
        total = Vector.zero()
        count: Number = 0.0
        for (a, b, c), along in zip(self.rows, self._along(n), strict=True):
            weight = maximum(1.0 - (farthest - along) * scale, 0.0)
            total, count = total + Vector(a, b, c) * weight, count + weight
        return self.at.point(*(total * (1.0 / count))), count

    def _along(self, n: Vector) -> list[Number]:
        x, y, z = (axis.dot(n) for axis in self.at.axes)
        return [a * x + b * y + c * z for a, b, c in self.rows]


def extent_of(rows: Sequence[tuple[float, float, float]]) -> float:
    """The sum of the sizes of a body with these corners along its axes [m]."""
    return sum(max(c[i] for c in rows) - min(c[i] for c in rows) for i in range(3))


def and_deepest(places: list[Touch], ways: Sequence[Vector], one: Corners, other: Corners, overlapping: Number,
                far: float) -> list[Touch]:
    """With a place where bodies that do overlap would part, instead of the deepest one if that does not know of it; it
    lies along one of some directions from the first body to the second, or along the normal of the deepest place."""
    depth: Number = 0.0
    normal = ways[0]
    for place in places:
        deeper = select_less(0.0, place.share, place.depth, 0.0)
        normal, depth = choose(depth, deeper, place.normal, normal), maximum(depth, deeper)
    apart = one.at.origin - other.at.origin
    way, least = best_way([*ways, normal], lambda n: n.dot(apart) + one.reach(n) + other.reach(-n))
    (mine, few), (theirs, many) = one.part_toward(way), other.part_toward(-way)
    half = way * (0.5 * least)
    share = select_less(maximum(depth, _NONE), _KNOWN * least, overlapping, 0.0)
    added = counted(choose(many, few, theirs + half, mine - half), way, _KNOWN * least, share, far)
    left: list[Touch] = []
    for place in places:
        other = select_less(0.5, share, select_less(place.depth, depth, 1.0, 0.0), 1.0)
        left.append(counted(place.point, place.normal, place.depth, place.share * other, far))
    return [*left, Touch(added.point, way, added.depth, _KNOWN, share)]
