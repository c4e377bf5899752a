"""Cylinders against boxes and cylinders.

As with boxes (`box_contacts`), the direction of least overlap says which face of the box, which end and which side of
the cylinder touch. Places are points of rims behind a face or an end, corners behind an end or the side, edges and axes
that cross, rims beside the other's side, and crossings of rims with edges and rims. Rims are taken where they are
deepest along the normal of what they meet; where the rims of two ends cross, nearly so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.mechanism.contact.flat_faces import (
    ALONG,
    PARALLEL_EDGES,
    SOFT,
    FaceEdge,
    FlatFace,
    box_reach,
    counted,
    edges_of,
    facing,
    least_overlap,
    magnitude,
    part_inside,
)
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch, choose, clamp, direction
from bellcrank.mechanism.geometry.solids import Box, Cylinder
from bellcrank.scalar.functions import maximum, minimum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["cylinder_box", "cylinder_cylinder", "end_toward", "in_cylinder", "rim_on_edge", "rims_of",
           "side_on_line"]

#: steps by which the nearest point of a rim is found, the largest of them [rad], and what is too flat for any [m^2]
_AGAIN, _TURN, _FLAT = 6, 0.5, 1e-18
#: ends whose normals are this much alike (cosine) have rims that cross
_ALIKE = 0.999
#: how often points are projected, how much smaller shapes are then, and the squared part of a radius by which points of
#: rims may miss each other
_PROJECTED, _SMALLER, _MEET = 16, 0.1, 1e-12


def _reach(cylinder: Cylinder, at: ShapeFrame, n: Vector) -> Number:
    along = n.dot(at.z)
    return 0.5 * cylinder.length * magnitude(along) + cylinder.radius * sqrt(maximum(1.0 - along * along, 0.0))


def _between(start: Vector, onto_first: Callable[[Vector], Vector], onto_second: Callable[[Vector], Vector]) -> Vector:
    """About the direction from the first shape to the second: between the nearest points of smaller ones inside them,
    by projecting onto one after the other."""
    mine = start
    theirs = onto_second(mine)
    for _ in range(_PROJECTED):
        mine = onto_first(theirs)
        theirs = onto_second(mine)
    return direction(theirs - mine, Vector(0.0, 0.0, 1.0))[0]


def _onto_cylinder(cylinder: Cylinder, at: ShapeFrame, point: Vector) -> Vector:
    """The nearest point of a cylinder that is smaller all around."""
    less = _SMALLER * min(2.0 * cylinder.radius, cylinder.length)
    apart = point - at.origin
    along = at.z.dot(apart)
    out, distance = direction(apart - at.z * along, at.x)
    far, half = cylinder.radius - less, 0.5 * cylinder.length - less
    near: Vector = at.origin + out * minimum(distance, far) + at.z * clamp(along, -half, half)
    return near


def _onto_box(half: Sequence[float], at: ShapeFrame, point: Vector) -> Vector:
    """The nearest point of a box that is smaller all around."""
    less = 2.0 * _SMALLER * min(half)
    return at.point(*(clamp(x, less - h, h - less) for x, h in zip(at.local(point), half, strict=True)))


def cylinder_box(cylinder: Cylinder, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """Rims behind the face, corners and edges of the face in the cylinder, and crossings of these with the rim."""
    half = [0.5 * s for s in box.size]
    soft = SOFT * min(*box.size, 2.0 * cylinder.radius, cylinder.length)
    far = 2.0 * sum(box.size) + 2.0 * cylinder.length + 4.0 * cylinder.radius
    toward = _between(first.origin, lambda x: _onto_cylinder(cylinder, first, x), lambda x: _onto_box(half, second, x))
    way = least_overlap(second.origin - first.origin, (*second.axes, first.z, toward),
                        [first.z.cross(axis) for axis in second.axes],
                        lambda n: _reach(cylinder, first, n) + box_reach(half, second, n))
    face = facing(half, second, -way)
    out = []
    for rim in rims_of(cylinder, first, face.normal):
        share: Number = 1.0
        for axis, size in zip(face.axes, face.half, strict=True):
            share = share * part_inside(size - magnitude(axis.dot(rim - face.middle)), soft)
        out.append(_behind(rim, face.middle, face.normal, face.deep, share, far))
    end = end_toward(cylinder, first, way)
    for i in (-1.0, 1.0):
        for j in (-1.0, 1.0):
            corner = face.middle + face.axes[0] * (face.half[0] * i) + face.axes[1] * (face.half[1] * j)
            out.append(in_cylinder(corner, cylinder, first))
    line = FaceEdge(first.origin, first.z, 0.5 * cylinder.length)
    for edge in edges_of(face):
        out.append(side_on_line(line, cylinder.radius, edge, way, soft, far))
        out += rim_on_edge(cylinder, end, edge, way, soft, far)
    return out


def rims_of(cylinder: Cylinder, at: ShapeFrame, normal: Vector) -> list[Vector]:
    """The lowest and the highest point of both rims along a normal."""
    out = direction(normal - at.z * normal.dot(at.z), at.x)[0] * cylinder.radius
    ends = [at.point(0.0, 0.0, side * cylinder.length) for side in (-0.5, 0.5)]
    return [point for end in ends for point in (end - out, end + out)]


def end_toward(cylinder: Cylinder, at: ShapeFrame, way: Vector) -> FlatFace:
    """The end that looks along a direction, as a face without edges."""
    normal = at.z * select_less(at.z.dot(way), 0.0, -1.0, 1.0)
    return FlatFace(at.origin + normal * (0.5 * cylinder.length), normal, (at.x, at.y), (cylinder.radius,) * 2,
                0.5 * cylinder.length)


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


def _nearest_on_rim(center: Vector, axis: Vector, arm: Vector, line: Vector, way: Vector) -> Vector:
    """From the center of a circle to its point where the distance from a line is stationary, by Newton's method from a
    guess: f = |r|^2 / 2 with r across the line, f' = r . p', f'' = |p' across|^2 - r . arm."""
    for _ in range(_AGAIN):
        along = axis.cross(arm)
        apart = center + arm - line
        apart = apart - way * way.dot(apart)
        steep = along.dot(along) - way.dot(along) * way.dot(along) - apart.dot(arm)
        step = select_less(steep, _FLAT, 0.0, -(apart.dot(along) / maximum(steep, _FLAT)))
        step = clamp(step, -_TURN, _TURN)
        arm = (arm + along * step) * (1.0 / sqrt(1.0 + step * step))
    return arm


def rim_on_edge(cylinder: Cylinder, end: FlatFace, edge: FaceEdge, way: Vector, soft: float, far: float
                 ) -> list[Touch]:
    """The two places where an edge passes over the rim of an end: first seen along the axis, then where both are
    nearest."""
    guesses, crosses = _passing(end.middle, end.normal, cylinder.radius, edge, end.axes[0])
    out = []
    for guess in guesses:
        arm = _nearest_on_rim(end.middle, end.normal, guess, edge.middle, edge.way)
        point = end.middle + arm
        t = edge.way.dot(point - edge.middle)
        normal = direction(end.normal.cross(arm).cross(edge.way), way)[0]
        normal = normal * select_less(normal.dot(way), 0.0, -1.0, 1.0)
        depth = normal.dot(point - edge.middle)
        share = part_inside(edge.half - magnitude(t), soft)
        share = select_less(crosses, 1e-12, 0.0, select_less(normal.dot(way), ALONG, 0.0, share))
        share = select_less(depth, end.deep, share, 0.0)
        out.append(counted(point - normal * (depth * 0.5), normal, depth, share, far))
    return out


def cylinder_cylinder(one: Cylinder, first: ShapeFrame, other: Cylinder, second: ShapeFrame) -> list[Touch]:
    """Sides that cross, rims beside sides, rims behind ends, and where two rims cross."""
    soft = SOFT * min(2.0 * one.radius, one.length, 2.0 * other.radius, other.length)
    far = 2.0 * (one.length + other.length) + 4.0 * (one.radius + other.radius)
    apart = second.origin - first.origin
    beside = direction(apart - first.z * first.z.dot(apart), first.x)[0]
    across = direction(apart - second.z * second.z.dot(apart), second.x)[0]
    toward = _between(first.origin, lambda x: _onto_cylinder(one, first, x), lambda x: _onto_cylinder(other, second, x))
    way = least_overlap(apart, (first.z, second.z, beside, across, toward), [first.z.cross(second.z)],
                        lambda n: _reach(one, first, n) + _reach(other, second, n))
    axes = [FaceEdge(at.origin, at.z, 0.5 * c.length) for c, at in ((one, first), (other, second))]
    ends = end_toward(one, first, way), end_toward(other, second, -way)
    out = [side_on_line(axes[0], one.radius, axes[1], way, soft, far, other.radius)]
    out += _rims_beside(one, first, other, second, way, soft, far)
    out += [t.swapped() for t in _rims_beside(other, second, one, first, -way, soft, far)]
    out += _rims_on_end(one, first, ends[1], way, soft, far)
    out += [t.swapped() for t in _rims_on_end(other, second, ends[0], -way, soft, far)]
    out.append(_rim_on_rim(ends[0], one.radius, ends[1], other.radius, way, far))
    return out + _crossing_rims(ends[0], one.radius, ends[1], other.radius, way, far)


def _rims_beside(mine: Cylinder, first: ShapeFrame, theirs: Cylinder, second: ShapeFrame, way: Vector, soft: float,
                 far: float) -> list[Touch]:
    """The points of both rims that are nearest to the other's axis, in its side: two where it passes over the rim."""
    out = []
    axis = FaceEdge(second.origin, second.z, 0.5 * theirs.length)
    for side in (-0.5, 0.5):
        center = first.point(0.0, 0.0, side * mine.length)
        guesses, crosses = _passing(center, first.z, mine.radius, axis, first.x)
        for k, guess in enumerate(guesses):
            point = center + _nearest_on_rim(center, first.z, guess, second.origin, second.z)
            apart = point - second.origin
            along = second.z.dot(apart)
            normal, distance = direction(apart - second.z * along, -way)
            depth = theirs.radius - distance
            share = part_inside(axis.half - magnitude(along), soft)
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
    reach = sqrt(maximum(reach2, 0.0))
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
    """Rims that meet askew: the direction n along which they overlap least, by Newton's method from `way`.

    With the points p and q of the rims that are farthest along n and -n, the overlap n . (p - q) has the slope p - q
    across n, and the curvature R t t^T / |n across the axis| of each rim along its tangent t, less the overlap itself.
    """
    n = way
    for _ in range(_AGAIN + 2):
        arm, first, bend = _farthest(mine.normal, radius, n, mine.axes[0])
        other_arm, second, other_bend = _farthest(theirs.normal, other, -n, theirs.axes[0])
        apart = mine.middle + arm - theirs.middle - other_arm
        across = n.cross(first)
        along = n.dot(apart)
        c, s = first.dot(second), across.dot(second)
        xx, xy, yy = bend + other_bend * c * c - along, other_bend * c * s, other_bend * s * s - along
        gx, gy = first.dot(apart), across.dot(apart)
        det = xx * yy - xy * xy
        good = select_less(_FLAT, det, 1.0, 0.0)
        det = select_less(_FLAT, det, det, 1.0)
        x, y = (clamp(good * v / det, -_TURN, _TURN) for v in (xy * gy - yy * gx, xy * gx - xx * gy))
        n = direction(n + first * x + across * y, way)[0]
    arm, other_arm = _farthest(mine.normal, radius, n, mine.axes[0])[0], _farthest(theirs.normal, other, -n,
                                                                                theirs.axes[0])[0]
    p, q = mine.middle + arm, theirs.middle + other_arm
    depth = n.dot(p - q)
    gap = p - q - n * depth
    inside = minimum(minimum(n.dot(mine.normal), n.dot(arm)), minimum(-n.dot(theirs.normal), -n.dot(other_arm)))
    share = select_less(inside, 0.0, 0.0, select_less(gap.dot(gap), _MEET * radius * radius, 1.0, 0.0))
    share = select_less(n.dot(way), ALONG, 0.0, select_less(_ALIKE, -mine.normal.dot(theirs.normal), 0.0, share))
    share = select_less(depth, minimum(mine.deep, theirs.deep), share, 0.0)
    return counted((p + q) * 0.5, n, depth, share, far)


def _farthest(axis: Vector, radius: float, n: Vector, fallback: Vector) -> tuple[Vector, Vector, Number]:
    """The arm of the point of a circle that is farthest along n, the unit tangent, and R / |n across the axis|."""
    out, across = direction(n - axis * axis.dot(n), fallback)
    return out * radius, axis.cross(out), radius / maximum(across, 1e-3)


def _crossing_rims(mine: FlatFace, radius: float, theirs: FlatFace, other: float, way: Vector, far: float
                   ) -> list[Touch]:
    """Where the rims of two ends cross, seen along the axis of the first."""
    apart = theirs.middle - mine.middle
    toward, distance = direction(apart - mine.normal * mine.normal.dot(apart), mine.axes[0])
    some = maximum(distance, 1e-6 * radius)
    x = (radius * radius - other * other + some * some) * (0.5 / some)
    square = radius * radius - x * x
    y = sqrt(maximum(square, 0.0))
    share = select_less(square, 1e-6 * radius * radius, 0.0,
                        select_less(-mine.normal.dot(theirs.normal), _ALIKE, 0.0,
                                    select_less(mine.normal.dot(way), ALONG, 0.0, 1.0)))
    across, out = mine.normal.cross(toward), []
    for side in (-1.0, 1.0):
        point = mine.middle + toward * x + across * (side * y)
        depth = theirs.normal.dot(theirs.middle - point)
        out.append(counted(point + theirs.normal * (depth * 0.5), -theirs.normal, depth, share, far))
    return out
