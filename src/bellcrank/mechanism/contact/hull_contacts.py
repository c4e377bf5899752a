"""Convex hulls of meshes against spheres, capsules, boxes and each other: by their faces, edges and corners, all of
them constants in the hull's own frame.

Bodies with corners far inside each other: none of their corners and edges may know how far.

Places are exact where bodies touch: a corner behind a face, edges that cross. Deep inside, a corner may lie just behind
a face that is far from where the bodies would part, or no corner lies in the other body at all. The direction in which
they overlap least, of some that are likely, says by how much. Where no place has `_KNOWN` of that depth, one that has
it replaces the deepest: what is stored is then the larger one of two energies, of which forces are the gradient.

Where an edge of one convex body crosses an edge of another: found from the outside, whatever faces they have.

G. Snethen, "XenoCollide: complex collision made simple", Game Programming Gems 7 (2008): the ray from inside the
difference of two bodies (all points of the first less all of the second) through the origin leaves it by a triangle of
farthest points, the portal, which is moved outwards until it lies in a face. A fixed number of steps, so that it can be
traced. A face that is made of an edge of each body is where their edges cross.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from bellcrank.mechanism.contact.cylinder_contacts import (
    and_nearest,
    beside_cylinder,
    either_side,
    end_toward,
    in_cylinder,
    no_deeper,
    points_box,
    rim_on_edge,
    rims_of,
    side_on_line,
    under_side,
)
from bellcrank.mechanism.contact.face_crossings import (
    FacesInTouch,
    TouchingFace,
    crossings_of_faces,
    face_toward,
    faces_in_touch,
    faces_of_box,
    faces_of_hull,
    level_corners,
    unless_known,
)
from bellcrank.mechanism.contact.ground_contacts import corners_of
from bellcrank.mechanism.contact.round_contacts import AxisPoint, ball_at, deepest_between, either_touch, nearest_face
from bellcrank.mechanism.contact.touch import (
    LEVEL,
    SOFT,
    TINY,
    Bend,
    FaceEdge,
    Points,
    ShapeFrame,
    Touch,
    beside,
    best_way,
    between_spheres,
    choose,
    clamp,
    counted,
    direction,
    farthest_of_cylinder,
    held,
    most_along,
    settled_across,
)
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Sphere
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.scalar.lookup import Constants, entry
from bellcrank.spatial import Vector

__all__ = ["box_hull", "capsule_hull", "cylinder_hull", "hull_hull", "sphere_hull"]


# -- bodies with corners far inside each other ------------------------------------------------------
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


# -- where an edge of one convex body crosses an edge of another ------------------------------------
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


# -- convex hulls of meshes against spheres, capsules, boxes and each other -------------------------
#: by what part corners weigh differently in a point inside, one after the other
_ASIDE, _GOLDEN = 0.05, 0.6180339887498949


def _behind(x: Vector, hull: Points) -> tuple[Number, Vector]:
    """How far a point lies behind the nearest face of a hull (negative: before it), and that face's normal."""
    best: Number = 0.0
    index: Number = 0.0
    for k, (a, b, c, d) in enumerate(hull.planes):
        depth = d - (a * x.x + b * x.y + c * x.z)
        index = 0.0 if k == 0 else select_less(depth, best, float(k), index)
        best = depth if k == 0 else minimum(best, depth)
    return best, Vector(*(entry(index, Constants(p[i] for p in hull.planes)) for i in range(3)))


def _corners_in(points: Iterable[Vector], hull: Points, at: ShapeFrame) -> list[Touch]:
    """Points of the first body in a hull, second."""
    out = []
    for point in points:
        depth, way = _behind(Vector(*at.local(point)), hull)
        outward = at.turned(*way)
        out.append(Touch(point + outward * (depth * 0.5), -outward, depth))
    return out


def _nearest(x: Vector, hull: Points) -> tuple[Number, Vector]:
    """The square of the distance of a point outside from a hull, and the way from the nearest point to it."""
    best: Number = 0.0
    found = Vector.zero()
    for k, (i, j) in enumerate(hull.edges):
        a, b = Vector(*hull.corners[i]), Vector(*hull.corners[j])
        along = b - a
        part = clamp(along.dot(x - a) * (1.0 / along.dot(along)), 0.0, 1.0)
        apart = x - a - along * part
        square = apart.dot(apart)
        found = apart if k == 0 else choose(square, best, apart, found)
        best = square if k == 0 else minimum(best, square)
    for (i, j, k), (nx, ny, nz, d) in zip(hull.faces, hull.planes, strict=True):
        n, corners = Vector(nx, ny, nz), [Vector(*hull.corners[c]) for c in (i, j, k)]
        height = n.dot(x) - d
        inside: Number = height  # and so far on the inner side of all three edges
        for one, other in zip(corners, (*corners[1:], corners[0]), strict=True):
            inside = minimum(inside, n.cross(other - one).dot(x - one))
        square = select_less(inside, 0.0, best, height * height)
        found = choose(square, best, n * height, found)
        best = minimum(best, square)
    return best, found


def _ball(center: Vector, radius: float, hull: Points, at: ShapeFrame) -> Touch:
    """A sphere, first, on a hull: its nearest point, with the center inside that of the nearest face."""
    x = Vector(*at.local(center))
    inside, face = _behind(x, hull)
    square, apart = _nearest(x, hull)
    distance = sqrt(maximum(square, TINY))
    buried = select_less(0.0, inside, 0.0, square)  # inside there is no distance
    outward = at.turned(*choose(buried, TINY, face, apart * (1.0 / distance)))
    depth = radius - select_less(buried, TINY, -inside, distance)
    return Touch(center - outward * (radius - depth * 0.5), -outward, depth)


def sphere_hull(sphere: Sphere, first: ShapeFrame, hull: Points, second: ShapeFrame) -> list[Touch]:
    """The nearest point."""
    return [_ball(first.origin, sphere.radius, hull, second)]


def capsule_hull(capsule: Capsule, first: ShapeFrame, hull: Points, second: ShapeFrame) -> list[Touch]:
    """Both ends as spheres, and the edge or corner that is nearest to the axis between them; of an axis that goes into
    the hull and out again (an overlap of more than the radius) the deepest point."""
    half = 0.5 * capsule.length
    ends = [_ball(first.point(0.0, 0.0, side * half), capsule.radius, hull, second) for side in (-1.0, 1.0)]
    start, way = Vector(*second.local(first.origin)), Vector(*(axis.dot(first.z) for axis in second.axes))
    square, mine, theirs = _nearest_to_edges(start, way, half, hull)
    touch = between_spheres(second.point(*mine), capsule.radius, second.point(*theirs), 0.0)
    share = select_less(0.0, _behind(mine, hull)[0], 0.0, select_less(square, _FAR, 1.0, 0.0))
    low, high = _part_within(start, way, half, hull)
    through = select_less(minimum(low + half, half - high), 0.0, 0.0, select_less(low, high, 1.0, 0.0))

    def look(s: Number) -> AxisPoint:
        depth, face = _behind(start + way * s, hull)
        return AxisPoint(s, depth, face)

    deepest = deepest_between(look(low), look(high), way, look)
    buried = ball_at(first.point(0.0, 0.0, deepest.at), capsule.radius,
                     AxisPoint(deepest.at, deepest.depth, second.turned(*deepest.outward)))
    place = either_touch(through, buried, touch)
    return [*ends, Touch(place.point, place.normal, select_less(0.0, maximum(share, through), place.depth, -_FAR),
                         place.gain, maximum(share, through))]


def _nearest_to_edges(start: Vector, way: Vector, half: float, hull: Points) -> tuple[Number, Vector, Vector]:
    """The square of the distance of a line, `half` to both sides of its start, from the edges of a hull, and the
    nearest points of both; `_FAR` if those of all edges lie beyond its ends."""
    best: Number = 0.0
    mine = theirs = Vector.zero()
    for k, (i, j) in enumerate(hull.edges):
        a, b = Vector(*hull.corners[i]), Vector(*hull.corners[j])
        along = b - a
        length2 = along.dot(along)
        apart, cosine = a - start, way.dot(along)
        sine2 = length2 - cosine * cosine
        s = (way.dot(apart) * length2 - cosine * along.dot(apart)) / maximum(sine2, 1e-9 * length2)
        inner = clamp(s, -half, half)
        part = clamp((cosine * inner - along.dot(apart)) * (1.0 / length2), 0.0, 1.0)
        q = a + along * part
        s = way.dot(q - start)
        p = start + way * s
        # the axis between its ends counts: these are spheres
        d2 = select_less(s * s, half * half, (q - p).dot(q - p), _FAR)
        mine, theirs = (p, q) if k == 0 else (choose(d2, best, p, mine), choose(d2, best, q, theirs))
        best = d2 if k == 0 else minimum(best, d2)
    return best, mine, theirs


def _part_within(start: Vector, way: Vector, half: float, hull: Points) -> tuple[Number, Number]:
    """From where to where a stretch of a line, `half` to both sides of its start, lies in a hull, along its unit
    vector; where it does not, the end comes before the beginning."""
    low: Number = -half
    high: Number = half
    for a, b, c, d in hull.planes:
        slope = a * way.x + b * way.y + c * way.z
        room = d - (a * start.x + b * start.y + c * start.z)  # inside: slope s <= room
        at = room / select_less(slope * slope, TINY, 1.0, slope)
        beside = select_less(room, 0.0, -2.0 * half, high)  # along a face: all of it is inside, or none
        high = select_less(slope * slope, TINY, beside, select_less(slope, 0.0, high, minimum(high, at)))
        low = select_less(slope * slope, TINY, low, select_less(slope, 0.0, maximum(low, at), low))
    return low, high


def box_hull(box: Box, first: ShapeFrame, hull: Points, second: ShapeFrame) -> list[Touch]:
    """The corners of each in the other, and edges that cross."""
    half = [0.5 * s for s in box.size]

    def farthest(n: Vector) -> Vector:
        return first.point(*(select_less(n.dot(axis), 0.0, -h, h) for axis, h in zip(first.axes, half, strict=True)))

    far = sum(box.size) + extent_of(hull.corners)
    found = crossing_edges(first.origin, farthest, _middle(hull, second), _farthest(hull, second), far)
    faces = faces_in_touch(faces_of_box(box), first, faces_of_hull(hull), second, found.way, far)
    mine, theirs = [first.point(*c) for c in corners_of(box)], [second.point(*c) for c in hull.corners]
    corners = [*level_corners(_corners_in(mine, hull, second), mine, faces),
               *(t.swapped() for t in level_corners(points_box(hull, second, box, first), theirs, faces.swapped()))]
    within = maximum(nearest_face(first.local(_middle(hull, second)), half)[0], _inside(first.origin, hull, second))
    return _with_crossings(corners, found, faces, (Corners(corners_of(box), first), Corners(hull.corners, second)),
                           within)


def hull_hull(one: Points, first: ShapeFrame, other: Points, second: ShapeFrame) -> list[Touch]:
    """The corners of each in the other, and edges that cross."""
    far = extent_of(one.corners) + extent_of(other.corners)
    found = crossing_edges(_middle(one, first), _farthest(one, first), _middle(other, second, -_ASIDE),
                           _farthest(other, second), far)
    faces = faces_in_touch(faces_of_hull(one), first, faces_of_hull(other), second, found.way, far)
    mine, theirs = [first.point(*c) for c in one.corners], [second.point(*c) for c in other.corners]
    corners = [*level_corners(_corners_in(mine, other, second), mine, faces),
               *(t.swapped() for t in level_corners(_corners_in(theirs, one, first), theirs, faces.swapped()))]
    within = maximum(_inside(_middle(other, second), one, first), _inside(_middle(one, first), other, second))
    return _with_crossings(corners, found, faces, (Corners(one.corners, first), Corners(other.corners, second)), within)


def _inside(point: Vector, hull: Points, at: ShapeFrame) -> Number:
    """How far a point lies in a hull."""
    return _behind(Vector(*at.local(point)), hull)[0]


def _with_crossings(corners: list[Touch], found: Portal, faces: FacesInTouch, bodies: tuple[Corners, Corners],
                    within: Number) -> list[Touch]:
    """Corners, four crossings of the edges of the faces that touch, the one that led there, and what these do not know
    of. `within`: how far the center of one body lies in the other."""
    crossings = crossings_of_faces(faces, found.way)
    places = [*corners, *crossings, unless_known(found.edges, corners, crossings, faces)]
    overlapping = select_less(0.0, within, 1.0, found.overlapping)
    return and_deepest(places, [found.way, faces.mine.normal, -faces.theirs.normal], *bodies, overlapping, faces.far)


def cylinder_hull(cylinder: Cylinder, first: ShapeFrame, hull: Points, second: ShapeFrame) -> list[Touch]:
    """Corners of the hull in the cylinder, points of rims in the hull, and edges on the side or across the rim: those
    of the face that touches, and the edge that is nearest."""
    far = 2.0 * (extent_of(hull.corners) + cylinder.length + 2.0 * cylinder.radius)
    soft = SOFT * min(2.0 * cylinder.radius, cylinder.length)
    way, least, edges = _between_cylinder_and_hull(cylinder, first, hull, second)
    places = [in_cylinder(second.point(*c), cylinder, first) for c in hull.corners]
    for k, guess in enumerate(rims_of(cylinder, first, -way)):
        aim = -way
        for _ in range(2):  # the deepest point of the rim behind the face that it is behind
            aim = second.turned(*_behind(Vector(*second.local(guess)), hull)[1])
            guess = rims_of(cylinder, first, aim)[k]
        place, = _corners_in([guess], hull, second)
        # between two faces it is their edge that touches
        share = select_less(-aim.dot(place.normal), 1.0 - _SAME_FACE, 0.0, 1.0)
        places.append(counted(place.point, place.normal, place.depth, share, far))
    line = FaceEdge(first.origin, first.z, 0.5 * cylinder.length)
    near, _ = Corners(hull.corners, second).part_toward(-way)
    end = end_toward(cylinder, first, way, near)
    for edge, there in edges:
        found = [side_on_line(line, cylinder.radius, edge, way, soft, far),
                 *rim_on_edge(cylinder, end, edge, way, soft, far)]
        places += [counted(t.point, t.normal, t.depth, t.share * there, far)
                   for t in no_deeper(found, least, soft, far)]
    for edge, _ in edges:  # that which touches, if one does
        beyond = way.dot(edge.middle - near)
        near = choose(beyond, LEVEL * far, under_side(first, way, edge, near), near)
    return and_nearest(places, way, least, beside_cylinder(cylinder, first, way, near) - way * (0.5 * least), far)


def _between_cylinder_and_hull(cylinder: Cylinder, first: ShapeFrame, hull: Points, second: ShapeFrame
                               ) -> tuple[Vector, Number, list[tuple[FaceEdge, Number]]]:
    """The direction in which both overlap least, and by how much; and edges of the hull that may touch, with one where
    they count and none where they are not there, or are another one of these."""
    radius, half = cylinder.radius, 0.5 * cylinder.length

    def farthest(n: Vector) -> tuple[Vector, Bend]:
        return farthest_of_cylinder(first.origin, first.z, radius, half, n)

    def overlap(n: Vector) -> Number:
        return n.dot(farthest(n)[0] - second.origin) + Corners(hull.corners, second).reach(-n)

    def beside(point: Vector, axis: Vector) -> Vector:
        def spread(n: Vector) -> tuple[Vector, tuple[Bend]]:
            mine, bend = farthest(n)
            return mine - point, (bend,)

        return settled_across(axis, guess, spread)

    middle = _middle(hull, second)
    guess, _, _ = portal_between(first.origin, lambda n: farthest(n)[0], middle, _farthest(hull, second), _FINER)
    guess = direction(held(guess), first.z)[0]
    edges = _edges_toward(hull, second, -guess)
    ways = [guess, first.z, -first.z, -_face_toward(hull, second, -guess).normal,
            beside(_farthest(hull, second)(-guess), first.z)]
    for edge, _ in edges:
        ways += [either_side(first.z.cross(edge.way), guess, guess), beside(edge.middle, edge.way)]
    return (*best_way(ways, overlap), edges)


def _face_toward(hull: Points, at: ShapeFrame, way: Vector) -> TouchingFace:
    """The face whose corners lie farthest along a direction, on the average."""
    return face_toward(faces_of_hull(hull), at, way, outermost=True)


def _edges_toward(hull: Points, at: ShapeFrame, way: Vector) -> list[tuple[FaceEdge, Number]]:
    """The edges of that face, and the edge whose middle lies farthest along the direction."""
    face = _face_toward(hull, at, way)
    edges = [(face.edge(float(k)), face.length(float(k))) for k in range(face.table.most)]
    out = [(edge, select_less(length, 0.5 * face.table.shortest, 0.0, 1.0)) for edge, length in edges]
    ends = [[hull.corners[e[k]] for e in hull.edges] for k in range(2)]
    middles = [(0.5 * (a[0] + b[0]), 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2])) for a, b in zip(*ends, strict=True)]
    index = most_along(middles, at, way)
    one, two = (at.point(*(entry(index, Constants(p[i] for p in side)) for i in range(3))) for side in ends)
    along, length = direction(two - one, face.way)
    there: Number = 1.0
    nearest = FaceEdge((one + two) * 0.5, along, 0.5 * length)
    for edge, _ in out:
        apart = edge.middle - nearest.middle
        there = select_less(apart.dot(apart), 1e-12 * face.table.shortest**2, 0.0, there)
    return [*out, (nearest, there)]


def _middle(hull: Points, at: ShapeFrame, aside: float = _ASIDE) -> Vector:
    """A point inside, on no axis of symmetry: a ray from one body's middle to another's would go through edges and
    corners, of which rounding takes any. Of two that are alike, one goes to the other side."""
    weights = [1.0 + aside * (k * _GOLDEN % 1.0) for k in range(len(hull.corners))]
    return at.point(*(sum(w * c[i] for w, c in zip(weights, hull.corners, strict=True)) / sum(weights)
                      for i in range(3)))


def _farthest(hull: Points, at: ShapeFrame) -> Farthest:
    """The corner that is farthest along a direction."""
    columns = [Constants(c[i] for c in hull.corners) for i in range(3)]

    def found(n: Vector) -> Vector:
        index = most_along(hull.corners, at, n)
        return at.point(*(entry(index, column) for column in columns))

    return found


#: steps that move a portal outwards where one body is round
_FINER = 16
#: one less the cosine between normals that are of one face
_SAME_FACE = 1e-9
#: what is farther than this [m] is nowhere
_FAR = 1e3
