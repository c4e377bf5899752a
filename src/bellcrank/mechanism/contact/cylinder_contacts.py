"""Boxes and cylinders against each other.

Cylinders against boxes and cylinders.

As with boxes, the direction of least overlap says which face of the box, which end and which side of
the cylinder touch. Places are points of rims behind a face or an end, corners behind an end or the side, edges and axes
that cross, rims beside the other's side, and crossings of rims with edges and rims. Rims are taken where they are
deepest along the normal of what they meet; where the rims of two ends cross, nearly so.

Boxes against boxes, and corners of meshes against boxes.

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
    ALONG,
    LEVEL,
    PARALLEL_EDGES,
    SOFT,
    AxisReach,
    Bend,
    FaceEdge,
    FlatFace,
    Points,
    ShapeFrame,
    Touch,
    best_way,
    box_reach,
    choose,
    clamp,
    corners_under,
    counted,
    crossing,
    direction,
    edges_of,
    facing,
    farthest_of_cylinder,
    held,
    least_overlap,
    magnitude,
    nearest_of_cylinder,
    part_inside,
    rounded_way,
    settled_across,
    settled_way,
)
from bellcrank.mechanism.geometry.solids import Box, Cylinder
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["and_nearest", "beside_cylinder", "box_box", "cylinder_box", "cylinder_cylinder", "either_side",
           "end_toward", "in_cylinder", "no_deeper", "points_box", "rim_on_edge", "rims_of", "side_on_line",
           "under_side"]


# -- cylinders against boxes and cylinders ----------------------------------------------------------
#: steps by which the nearest point of a rim is found, the largest of them [rad], what is too flat for any [m^2], and
#: the square of the last step where it is found [rad^2]
_AGAIN, _TURN, _FLAT, _SETTLED = 6, 0.5, 1e-18, 1e-8
#: ends whose normals are this much alike (cosine) have rims that cross
_ALIKE = 0.999
#: the squared part of a radius by which points of rims may miss each other
_MEET = 1e-8
#: directions this much across an axis (cosine) look along neither end
_LEVEL = 1e-3
#: places with this part of the least overlap know of it
_KNOWN = 0.5
#: the squared part of a radius below which two points of a rim are one
_SAME = 1e-10


def cylinder_box(cylinder: Cylinder, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """Rims behind the face, corners and edges of the face in the cylinder, and crossings of these with the rim."""
    half = [0.5 * s for s in box.size]
    soft = SOFT * min(*box.size, 2.0 * cylinder.radius, cylinder.length)
    far = 2.0 * sum(box.size) + 2.0 * cylinder.length + 4.0 * cylinder.radius
    way, least = _between_cylinder_and_box(cylinder, first, half, second)
    face = facing(half, second, -way)
    out = []
    for rim in rims_of(cylinder, first, face.normal):
        share: Number = 1.0
        for axis, size in zip(face.axes, face.half, strict=True):
            share = share * part_inside(size - magnitude(axis.dot(rim - face.middle)), soft)
        out.append(_behind(rim, face.middle, face.normal, face.deep, share, far))
    end = end_toward(cylinder, first, way, face.middle)
    for i in (-1.0, 1.0):
        for j in (-1.0, 1.0):
            corner = face.middle + face.axes[0] * (face.half[0] * i) + face.axes[1] * (face.half[1] * j)
            out.append(in_cylinder(corner, cylinder, first))
    line = FaceEdge(first.origin, first.z, 0.5 * cylinder.length)
    for edge in edges_of(face):
        out.append(side_on_line(line, cylinder.radius, edge, way, soft, far))
        out += no_deeper(rim_on_edge(cylinder, end, edge, way, soft, far), least, soft, far)
    corner = second.point(*(h * clamp(-way.dot(a) * (1.0 / LEVEL), -1.0, 1.0)
                            for h, a in zip(half, second.axes, strict=True)))
    for h, a in zip(half, second.axes, strict=True):
        corner = under_side(first, way, FaceEdge(corner, a, h), corner)
    return and_nearest(out, way, least, beside_cylinder(cylinder, first, way, corner) - way * (0.5 * least), far)


def under_side(at: ShapeFrame, way: Vector, edge: FaceEdge, otherwise: Vector) -> Vector:
    """Where an edge crosses a line of the side of a cylinder, seen along a direction across both."""
    apart, cosine = edge.middle - at.origin, at.z.dot(edge.way)
    along = (cosine * at.z.dot(apart) - edge.way.dot(apart)) / maximum(1.0 - cosine * cosine, PARALLEL_EDGES)
    tilt = maximum(magnitude(way.dot(at.z)), magnitude(way.dot(edge.way)))
    return choose(tilt, LEVEL, edge.middle + edge.way * clamp(along, -edge.half, edge.half), otherwise)


def and_nearest(places: list[Touch], way: Vector, least: Number, point: Vector, far: float) -> list[Touch]:
    """With the place where shapes overlap least, as far as others do not know of it: between features that end where
    others begin, all of these may miss it."""
    known: Number = 0.0
    for t in places:
        known = known + select_less(_KNOWN * least, t.depth, t.share, 0.0)
    share = select_less(least, 0.0, 0.0, clamp(1.0 - known, 0.0, 1.0))
    return [*places, counted(point, way, least, select_less(share, 1e-9, 0.0, share), far)]


def no_deeper(places: list[Touch], least: Number, soft: float, far: float) -> list[Touch]:
    """Places that lie much deeper than the shapes overlap are none: rims come near edges more than once."""
    some = maximum(least, 0.0)
    return [counted(t.point, t.normal, t.depth, t.share * clamp(
        (1.5 * some + 2.0 * soft - t.depth) / (0.25 * some + soft), 0.0, 1.0), far) for t in places]


def _between_cylinder_and_box(cylinder: Cylinder, first: ShapeFrame, half: list[float], second: ShapeFrame
                              ) -> tuple[Vector, Number]:
    """The direction in which both overlap least, and by how much: of a face, the end, an edge across the side, or
    across one of these (a corner on the side, an edge on the rim)."""
    def spread(n: Vector) -> tuple[Vector, tuple[Bend]]:
        mine, bend = farthest_of_cylinder(first.origin, first.z, cylinder.radius, 0.5 * cylinder.length, n)
        theirs = second.point(*(select_less(n.dot(a), 0.0, h, -h) for h, a in zip(half, second.axes, strict=True)))
        return mine - theirs, (bend,)

    apart = second.origin - first.origin
    reaches = [_reach_of(cylinder, first), *(AxisReach(a, h) for a, h in zip(second.axes, half, strict=True))]
    guess = rounded_way(apart, direction(apart, first.x)[0], reaches)
    ways = [a * select_less(a.dot(apart), 0.0, -1.0, 1.0) for a in (*second.axes, first.z)]
    ways += [either_side(first.z.cross(a), apart, ways[0]) for a in second.axes]
    ways += [settled_across(a, guess, spread) for a in (*second.axes, first.z)]
    return best_way(ways, lambda n: n.dot(spread(n)[0]))


def rims_of(cylinder: Cylinder, at: ShapeFrame, normal: Vector) -> list[Vector]:
    """The lowest and the highest point of both rims along a normal."""
    out = direction(normal - at.z * normal.dot(at.z), at.x)[0] * cylinder.radius
    ends = [at.point(0.0, 0.0, side * cylinder.length) for side in (-0.5, 0.5)]
    return [point for end in ends for point in (end - out, end + out)]


def end_toward(cylinder: Cylinder, at: ShapeFrame, way: Vector, near: Vector) -> FlatFace:
    """The end that looks along a direction, as a face without edges; if none does, that on the side of a point."""
    half = 0.5 * cylinder.length
    looks = at.z.dot(way) + _LEVEL * clamp(at.z.dot(near - at.origin) * (1.0 / half), -1.0, 1.0)
    normal = at.z * select_less(looks, 0.0, -1.0, 1.0)
    return FlatFace(at.origin + normal * half, normal, (at.x, at.y), (cylinder.radius,) * 2, half)


def _behind(point: Vector, middle: Vector, normal: Vector, deep: Number, share: Number, far: float) -> Touch:
    """A point of the first shape behind a face of the second."""
    depth = normal.dot(middle - point)
    share = select_less(depth, deep, share, 0.0)
    return counted(point + normal * (depth * 0.5), -normal, depth, share, far)


def in_cylinder(point: Vector, cylinder: Cylinder, at: ShapeFrame) -> Touch:
    """A point of the second shape in a cylinder, first: the way out is the side or the nearer end."""
    apart = point - at.origin
    along = at.z.dot(apart)
    out, distance = direction(apart - at.z * along, at.x)
    to_side, to_end = cylinder.radius - distance, 0.5 * cylinder.length - magnitude(along)
    depth = select_less(to_side, to_end, to_side, to_end)
    normal = choose(to_side, to_end, out, at.z * select_less(along, 0.0, -1.0, 1.0))
    return Touch(point + normal * (depth * 0.5), normal, depth)


def side_on_line(axis: FaceEdge, radius: float, edge: FaceEdge, way: Vector, soft: float, far: float,
                  other: float = 0.0) -> Touch:
    """The side of a cylinder on an edge, or on the side of another one (with its radius and axis)."""
    apart, cosine = edge.middle - axis.middle, axis.way.dot(edge.way)
    sine2 = 1.0 - cosine * cosine
    c, e = axis.way.dot(apart), edge.way.dot(apart)
    low, high = maximum(c - edge.half, -axis.half), -maximum(-c - edge.half, -axis.half)
    s = select_less(sine2, PARALLEL_EDGES, 0.5 * (low + high), (c - cosine * e) / maximum(sine2, PARALLEL_EDGES))
    t = cosine * s - e
    mine, theirs = axis.middle + axis.way * s, edge.middle + edge.way * t
    normal, distance = direction(theirs - mine, way)
    depth = radius + other - distance
    share = part_inside(axis.half - magnitude(s), soft) * part_inside(edge.half - magnitude(t), soft)
    share = select_less(normal.dot(way), ALONG, 0.0, share)
    if other:  # the rims of parallel cylinders hold each other already
        share = select_less(sine2, PARALLEL_EDGES, 0.0, share)
    point = mine + normal * (radius - 0.5 * depth)
    return counted(choose(0.0, share, point, axis.middle), normal, depth, share, far)


def _nearest_on_rim(center: Vector, axes: tuple[Vector, Vector, Vector], guess: Vector, radius: float, line: Vector,
                    way: Vector) -> tuple[Vector, Number]:
    """From the center of a circle, about the last of three axes, to its point where the distance from a line is
    stationary, by Newton's method from a guess: f = |r|^2 / 2 with r across the line, f' = r . p', f'' = |p' across|^2
    - r . arm. And one where it was found, none elsewhere: a force along r works at another rate than its depth changes
    anywhere else."""
    arm, (x, y, axis) = guess, axes
    found: Number = 0.0
    for k in range(_AGAIN):
        if k == _AGAIN - 2:  # in the circle's own axes: it moves with them
            flat = held(Vector(x.dot(arm), y.dot(arm), 0.0) * (1.0 / radius))
            arm = (x * flat.x + y * flat.y) * (radius / sqrt(flat.dot(flat)))
        along = axis.cross(arm)
        apart = center + arm - line
        apart = apart - way * way.dot(apart)
        steep = along.dot(along) - way.dot(along) * way.dot(along) - apart.dot(arm)
        step = select_less(steep, _FLAT, 0.0, -(apart.dot(along) / maximum(steep, _FLAT)))
        found = select_less(steep, _FLAT, 0.0, select_less(step * step, _SETTLED, 1.0, 0.0))
        step = clamp(step, -_TURN, _TURN)
        arm = (arm + along * step) * (1.0 / sqrt(1.0 + step * step))
    return arm, found


def rim_on_edge(cylinder: Cylinder, end: FlatFace, edge: FaceEdge, way: Vector, soft: float, far: float
                 ) -> list[Touch]:
    """The two places where an edge passes over the rim of an end: first seen along the axis, then where both are
    nearest."""
    guesses, crosses = _passing(end.middle, end.normal, cylinder.radius, edge, end.axes[0])
    out: list[Touch] = []
    arms = [_nearest_on_rim(end.middle, (*end.axes, end.normal), guess, cylinder.radius, edge.middle, edge.way)
            for guess in guesses]
    both = arms[1][0] - arms[0][0]
    for k, (arm, found) in enumerate(arms):
        point = end.middle + arm
        t = edge.way.dot(point - edge.middle)
        normal = direction(end.normal.cross(arm).cross(edge.way), way)[0]
        normal = normal * select_less(normal.dot(way), 0.0, -1.0, 1.0)
        depth = normal.dot(point - edge.middle)
        share = part_inside(edge.half - magnitude(t), soft) * found
        share = select_less(crosses, 1e-12, 0.0, select_less(normal.dot(way), ALONG, 0.0, share))
        share = select_less(depth, end.deep, share, 0.0)
        if k:  # not the same one again
            share = select_less(both.dot(both), _SAME * cylinder.radius * cylinder.radius, 0.0, share)
        out.append(counted(point - normal * (depth * 0.5), normal, depth, share, far))
    return out


def cylinder_cylinder(one: Cylinder, first: ShapeFrame, other: Cylinder, second: ShapeFrame) -> list[Touch]:
    """Sides that cross, rims beside sides, rims behind ends, and where two rims cross."""
    soft = SOFT * min(2.0 * one.radius, one.length, 2.0 * other.radius, other.length)
    far = 2.0 * (one.length + other.length) + 4.0 * (one.radius + other.radius)
    way, least = _between_cylinders(one, first, other, second)
    axes = [FaceEdge(at.origin, at.z, 0.5 * c.length) for c, at in ((one, first), (other, second))]
    ends = end_toward(one, first, way, second.origin), end_toward(other, second, -way, first.origin)
    out = [side_on_line(axes[0], one.radius, axes[1], way, soft, far, other.radius)]
    out += _rims_beside(one, first, other, second, way, soft, far)
    out += [t.swapped() for t in _rims_beside(other, second, one, first, -way, soft, far)]
    out += _rims_on_end(one, first, ends[1], way, soft, far)
    out += [t.swapped() for t in _rims_on_end(other, second, ends[0], -way, soft, far)]
    out.append(_rim_on_rim(ends[0], one.radius, ends[1], other.radius, way, far))
    out += _crossing_rims(ends[0], one.radius, ends[1], other.radius, way, far)
    out = no_deeper(out, least, soft, far)
    theirs = beside_cylinder(other, second, -way, first.origin)
    return and_nearest(out, way, least, beside_cylinder(one, first, way, theirs) - way * (0.5 * least), far)


def beside_cylinder(cylinder: Cylinder, at: ShapeFrame, way: Vector, other: Vector) -> Vector:
    """Its farthest point along a direction, of many the one beside another point."""
    return nearest_of_cylinder(at.origin, at.z, cylinder.radius, 0.5 * cylinder.length, way, other)


def _between_cylinders(one: Cylinder, first: ShapeFrame, other: Cylinder, second: ShapeFrame
                       ) -> tuple[Vector, Number]:
    """The direction in which two cylinders overlap least, and by how much: an axis, across one of them, or askew."""
    def spread(n: Vector) -> tuple[Vector, tuple[Bend, Bend]]:
        mine, bend = farthest_of_cylinder(first.origin, first.z, one.radius, 0.5 * one.length, n)
        theirs, back = farthest_of_cylinder(second.origin, second.z, other.radius, 0.5 * other.length, -n)
        return mine - theirs, (bend, back)

    def overlap(n: Vector) -> Number:
        return n.dot(spread(n)[0])

    apart = second.origin - first.origin
    guess = rounded_way(apart, direction(apart, first.x)[0], [_reach_of(one, first), _reach_of(other, second)])
    ways = [at.z * select_less(at.z.dot(apart), 0.0, -1.0, 1.0) for at in (first, second)]
    ways.append(either_side(first.z.cross(second.z), apart, ways[0]))
    ways += [settled_across(at.z, guess, spread) for at in (first, second)]
    ways.append(settled_way(guess, spread))
    return best_way(ways, overlap)


def _reach_of(cylinder: Cylinder, at: ShapeFrame) -> AxisReach:
    return AxisReach(at.z, 0.5 * cylinder.length, cylinder.radius)


def either_side(n: Vector, apart: Vector, fallback: Vector) -> Vector:
    """A direction of length one along n or against it, from the first shape to the second; the fallback if n has none
    worth the name."""
    square = n.dot(n)
    size = select_less(n.dot(apart), 0.0, -1.0, 1.0) / sqrt(maximum(square, PARALLEL_EDGES))
    return choose(square, PARALLEL_EDGES, fallback, n * size)


def _rims_beside(mine: Cylinder, first: ShapeFrame, theirs: Cylinder, second: ShapeFrame, way: Vector, soft: float,
                 far: float) -> list[Touch]:
    """The points of both rims that are nearest to the other's axis, in its side: two where it passes over the rim."""
    out = []
    axis = FaceEdge(second.origin, second.z, 0.5 * theirs.length)
    for side in (-0.5, 0.5):
        center = first.point(0.0, 0.0, side * mine.length)
        guesses, crosses = _passing(center, first.z, mine.radius, axis, first.x)
        for k, guess in enumerate(guesses):
            arm, found = _nearest_on_rim(center, first.axes, guess, mine.radius, second.origin, second.z)
            point = center + arm
            apart = point - second.origin
            along = second.z.dot(apart)
            normal, distance = direction(apart - second.z * along, -way)
            depth = theirs.radius - distance
            share = part_inside(axis.half - magnitude(along), soft) * found
            share = select_less(-normal.dot(way), ALONG, 0.0, share)
            if k:
                share = select_less(crosses, 1e-12, 0.0, share)
            out.append(counted(point + normal * (depth * 0.5), -normal, depth, share, far))
    return out


def _passing(center: Vector, axis: Vector, radius: float, line: FaceEdge, fallback: Vector
             ) -> tuple[list[Vector], Number]:
    """Arms of the two points of a circle over which a line passes, seen along the circle's axis; if it passes beside,
    those of the nearest point. And by how much the square of the radius is larger than that of the distance."""
    apart = line.middle - center
    flat = apart - axis * axis.dot(apart)
    along = line.way - axis * axis.dot(line.way)
    some = maximum(along.dot(along), PARALLEL_EDGES)
    nearest = -(flat.dot(along) / some)
    reach2 = (radius * radius - flat.dot(flat)) / some + nearest * nearest
    reach = sqrt(maximum(reach2, 1e-24))
    return [direction(flat + along * (nearest + side * reach), fallback)[0] * radius for side in (-1.0, 1.0)], reach2


def _rims_on_end(mine: Cylinder, first: ShapeFrame, end: FlatFace, way: Vector, soft: float, far: float) -> list[Touch]:
    """Points of rims of the first cylinder behind an end of the second."""
    out = []
    for rim in rims_of(mine, first, end.normal):
        apart = rim - end.middle
        flat = apart - end.normal * end.normal.dot(apart)
        share = part_inside(end.half[0] - sqrt(maximum(flat.dot(flat), 1e-24)), soft)
        share = select_less(-end.normal.dot(way), ALONG, 0.0, share)
        out.append(_behind(rim, end.middle, end.normal, end.deep, share, far))
    return out


def _rim_on_rim(mine: FlatFace, radius: float, theirs: FlatFace, other: float, way: Vector, far: float) -> Touch:
    """Rims that meet askew: where they are farthest along `way` and against it, if they lie over each other there."""
    arm = direction(way - mine.normal * mine.normal.dot(way), mine.axes[0])[0] * radius
    other_arm = direction(theirs.normal * theirs.normal.dot(way) - way, theirs.axes[0])[0] * other
    p, q = mine.middle + arm, theirs.middle + other_arm
    depth = way.dot(p - q)
    gap = p - q - way * depth
    inside = minimum(minimum(way.dot(mine.normal), way.dot(arm)), minimum(-way.dot(theirs.normal), -way.dot(other_arm)))
    share = select_less(inside, 0.0, 0.0, select_less(gap.dot(gap), _MEET * radius * radius, 1.0, 0.0))
    share = select_less(_ALIKE, -mine.normal.dot(theirs.normal), 0.0, share)
    share = select_less(depth, minimum(mine.deep, theirs.deep), share, 0.0)
    return counted((p + q) * 0.5, way, depth, share, far)


def _crossing_rims(mine: FlatFace, radius: float, theirs: FlatFace, other: float, way: Vector, far: float
                   ) -> list[Touch]:
    """Where the rims of two ends cross, seen along the axis of the first."""
    apart = theirs.middle - mine.middle
    toward, distance = direction(apart - mine.normal * mine.normal.dot(apart), mine.axes[0])
    some = maximum(distance, 1e-6 * radius)
    x = (radius * radius - other * other + some * some) * (0.5 / some)
    square = radius * radius - x * x
    y = sqrt(maximum(square, 1e-24))
    share = select_less(square, 1e-6 * radius * radius, 0.0,
                        select_less(-mine.normal.dot(theirs.normal), _ALIKE, 0.0,
                                    select_less(mine.normal.dot(way), ALONG, 0.0, 1.0)))
    across, out = mine.normal.cross(toward), []
    for side in (-1.0, 1.0):
        point = mine.middle + toward * x + across * (side * y)
        depth = theirs.normal.dot(theirs.middle - point)
        out.append(counted(point + theirs.normal * (depth * 0.5), -theirs.normal, depth, share, far))
    return out


# -- boxes against boxes, and corners of meshes against boxes ---------------------------------------
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
