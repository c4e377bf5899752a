"""Where an edge of one convex body crosses an edge of another: found from the outside, whatever faces they have.

G. Snethen, "XenoCollide: complex collision made simple", Game Programming Gems 7 (2008): the ray from inside the
difference of two bodies (all points of the first less all of the second) through the origin leaves it by a triangle of
farthest points, the portal, which is moved outwards until it lies in a face. A fixed number of steps, so that it can be
traced. A face that is made of an edge of each body is where their edges cross.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bellcrank.mechanism.contact.touch import Touch, beside, choose, direction
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["Farthest", "Portal", "crossing_edges", "portal_between"]

#: the farthest point of a body along a direction
Farthest = Callable[[Vector], Vector]

#: steps that find a portal, and that move it outwards
_FOUND, _MOVED = 5, 8
#: squared part of the bodies' size below which points are the same
_SAME = 1e-12
#: and by which one lies beyond others
_THERE = 1e-20
#: the part of a volume by which a point may lie beside it
_ABOUT = 1e-6


class Support(NamedTuple):
    """Farthest points of both bodies, and their difference."""

    first: Vector
    second: Vector

    @property
    def apart(self) -> Vector:
        return self.first - self.second


class Portal(NamedTuple):
    """What is found where the ray leaves the difference of two bodies."""

    edges: Touch  #: where an edge of the first body crosses one of the second; far apart where none do
    way: Vector  #: the direction there, from the first body to the second
    overlapping: Number  #: one where they do for sure, none elsewhere


def crossing_edges(inside_first: Vector, first: Farthest, inside_second: Vector, second: Farthest, far: float
                   ) -> Portal:
    """The place where an edge of the first body crosses one of the second, and the way there."""
    inside = inside_first - inside_second
    # one inside the other, centers in one place: any way will do
    inside = choose(inside.dot(inside), _SAME * far * far, Vector(1e-5 * far, 2e-5 * far, 3e-5 * far), inside)
    one, two, three = _portal(inside, lambda n: Support(first(n), second(-n)))
    outward = _outward(one.apart, two.apart, three.apart, inside)
    mine, my_way, my_area = _edge(one.first, two.first, three.first)
    theirs, their_way, their_area = _edge(one.second, two.second, three.second)
    least = _SAME * far * far
    normal = my_way.cross(their_way)
    square, lengths = normal.dot(normal), my_way.dot(my_way) * their_way.dot(their_way)
    normal = normal * (1.0 / sqrt(maximum(square, least * least)))
    normal = normal * select_less(normal.dot(outward), 0.0, -1.0, 1.0)
    apart, cosine = theirs - mine, my_way.dot(their_way)
    c, e = my_way.dot(apart), their_way.dot(apart)
    some = maximum(square, least * least)
    s = (c * their_way.dot(their_way) - cosine * e) / some
    t = (cosine * c - my_way.dot(my_way) * e) / some
    within = minimum(minimum(s, 1.0 - s), minimum(t, 1.0 - t))
    share = select_less(within, 0.0, 0.0, select_less(normal.dot(outward), 0.999, 0.0, 1.0))
    share = select_less(square, 1e-6 * lengths + least * least, 0.0, share)
    share = select_less(least * least, maximum(my_area, their_area), 0.0, share)  # three corners: a face
    depth = -normal.dot(apart)
    point = (mine + my_way * s + theirs + their_way * t) * 0.5
    depth = select_less(0.0, share, depth, -far)
    edges = Touch(choose(0.0, share, point, inside_first), normal, depth, 1.0, share)
    return Portal(edges, outward, _overlapping(inside, one.apart, two.apart, three.apart))


def _overlapping(inside: Vector, one: Vector, two: Vector, three: Vector) -> Number:
    """One where the origin lies between four points of the difference of two bodies: then they overlap for sure."""
    a, b, c = one - inside, two - inside, three - inside
    volume = a.dot(b.cross(c))
    size = volume * volume
    parts = [(-inside).dot(b.cross(c)), a.dot(c.cross(inside)), (-inside).dot(a.cross(b))]
    rest = volume - parts[0] - parts[1] - parts[2]
    least = rest * volume
    for part in parts:
        least = minimum(least, part * volume)
    flat = _SAME * (a.dot(a) * b.dot(b) * c.dot(c))
    return select_less(-_ABOUT * size, least, select_less(flat, size, 1.0, 0.0), 0.0)


def portal_between(inside_first: Vector, first: Farthest, inside_second: Vector, second: Farthest, moved: int = _MOVED
                   ) -> tuple[Vector, Vector, Vector]:
    """The direction from the first body to the second through which the ray leaves their difference, and the longest
    edge of the second body there: its start and way."""
    inside = inside_first - inside_second
    one, two, three = _portal(inside, lambda n: Support(first(n), second(-n)), moved)
    outward = _outward(one.apart, two.apart, three.apart, inside)
    start, way, _ = _edge(one.second, two.second, three.second)
    return outward, start, way


def _outward(one: Vector, two: Vector, three: Vector, inside: Vector) -> Vector:
    """The normal of a portal, along the ray; of one without an area, the ray's own direction."""
    a, b = two - one, three - one
    area, along = a.cross(b), direction(-inside, Vector(0.0, 0.0, 1.0))[0]
    normal = choose(area.dot(area), _SAME * (a.dot(a) * b.dot(b)), along, direction(area, along)[0])
    slope = normal.dot(along)
    return choose(slope * slope, _SAME, along, normal * select_less(slope, 0.0, -1.0, 1.0))


def _edge(a: Vector, b: Vector, c: Vector) -> tuple[Vector, Vector, Number]:
    """The longest side of three points: its start and way; and the squared area of all."""
    ab, ac, bc = b - a, c - a, c - b
    area = ab.cross(ac)
    start, way, best = a, ab, ab.dot(ab)
    start, way = choose(best, ac.dot(ac), a, start), choose(best, ac.dot(ac), ac, way)
    best = maximum(best, ac.dot(ac))
    start, way = choose(best, bc.dot(bc), b, start), choose(best, bc.dot(bc), bc, way)
    return start, way, area.dot(area)


def _either(a: Number, b: Number, if_less: Support, otherwise: Support) -> Support:
    return Support(choose(a, b, if_less.first, otherwise.first), choose(a, b, if_less.second, otherwise.second))


def _portal(inside: Vector, farthest: Callable[[Vector], Support], moved: int = _MOVED
            ) -> tuple[Support, Support, Support]:
    """Three farthest points around the ray from `inside` through the origin, as far out as steps go."""
    one = farthest(-inside)
    aside, square = one.apart.cross(inside), one.apart.dot(one.apart) * inside.dot(inside)
    # where the ray goes through the farthest point (a corner over the middle of a disc), any way aside will do
    two = farthest(choose(aside.dot(aside), _SAME * square, beside(direction(inside, Vector(0.0, 0.0, 1.0))[0])[0],
                          aside))
    normal = (one.apart - inside).cross(two.apart - inside)
    turn = normal.dot(inside)  # the origin shall lie on the side of the normal
    one, two = _either(0.0, turn, two, one), _either(0.0, turn, one, two)
    normal = normal * select_less(0.0, turn, -1.0, 1.0)
    three = farthest(normal)
    for _ in range(_FOUND):
        before = one.apart.cross(three.apart).dot(inside)
        after = three.apart.cross(two.apart).dot(inside)
        new_two = _either(before, 0.0, three, two)
        new_one = _either(before, 0.0, one, _either(after, 0.0, three, one))
        settled = select_less(before, 0.0, 0.0, select_less(after, 0.0, 0.0, 1.0))
        one, two = new_one, new_two
        normal = (one.apart - inside).cross(two.apart - inside)
        three = _either(0.5, settled, three, farthest(normal))
    for _ in range(moved):
        one, two, three = _outer(one, two, three, inside, farthest)
    return one, two, three


def _outer(one: Support, two: Support, three: Support, inside: Vector, farthest: Callable[[Vector], Support]
           ) -> tuple[Support, Support, Support]:
    """A portal farther out; the same one if no point lies beyond it: of one that is there already, rounding would say
    which point it takes the place of."""
    normal = (two.apart - one.apart).cross(three.apart - one.apart)
    normal = normal * select_less(normal.dot(one.apart - inside), 0.0, -1.0, 1.0)
    four = farthest(normal)
    beyond = normal.dot(four.apart - one.apart)
    size = _THERE * (one.apart.dot(one.apart) + inside.dot(inside)) * normal.dot(normal)
    moves = select_less(size, beyond * beyond, 1.0, 0.0)
    across = four.apart.cross(inside)
    a, b, c = (p.apart.dot(across) for p in (one, two, three))
    keep = _either(0.0, a, _either(0.0, b, four, one), _either(0.0, c, one, four))
    second = _either(0.0, a, two, _either(0.0, c, four, two))
    third = _either(0.0, a, _either(0.0, b, three, four), three)
    return _either(0.5, moves, keep, one), _either(0.5, moves, second, two), _either(0.5, moves, third, three)
