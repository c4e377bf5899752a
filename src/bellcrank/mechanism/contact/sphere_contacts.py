"""Spheres against spheres, capsules, boxes and cylinders: by the nearest point of the other shape."""

from __future__ import annotations

from bellcrank.mechanism.contact.touch import TINY, ShapeFrame, Touch, between_spheres, choose, clamp, direction
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Sphere
from bellcrank.scalar.functions import maximum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["ball_on_box", "ball_on_cylinder", "nearest_face", "sphere_box", "sphere_capsule", "sphere_cylinder",
           "sphere_sphere", "way_out"]


def sphere_sphere(one: Sphere, first: ShapeFrame, other: Sphere, second: ShapeFrame) -> list[Touch]:
    """One place."""
    return [between_spheres(first.origin, one.radius, second.origin, other.radius)]


def sphere_capsule(sphere: Sphere, first: ShapeFrame, capsule: Capsule, second: ShapeFrame) -> list[Touch]:
    """The nearest point of the capsule's axis."""
    along = clamp(second.z.dot(first.origin - second.origin), -0.5 * capsule.length, 0.5 * capsule.length)
    return [between_spheres(first.origin, sphere.radius, second.point(0.0, 0.0, along), capsule.radius)]


def sphere_box(sphere: Sphere, first: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """The nearest point of the box; with the center inside, that of the nearest face."""
    return [ball_on_box(first.origin, sphere.radius, box, second)]


def ball_on_box(center: Vector, radius: float, box: Box, at: ShapeFrame) -> Touch:
    """A sphere, first, and a box."""
    x, half = at.local(center), [0.5 * s for s in box.size]
    near = [clamp(c, -h, h) for c, h in zip(x, half, strict=True)]
    apart = Vector(*(c - n for c, n in zip(x, near, strict=True)))
    square = apart.dot(apart)
    inside, face = nearest_face(x, half)
    distance = sqrt(maximum(square, TINY))
    outward = choose(square, TINY, face, apart * (1.0 / distance))
    return _from_outward(center, radius, at.turned(*outward), select_less(square, TINY, -inside, distance))


def nearest_face(x: tuple[Number, ...], half: list[float]) -> tuple[Number, Vector]:
    """How far a point is inside a box (negative: outside), and the way out to the nearest face, in the box's axes."""
    units = Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)
    best: Number = 0.0
    out = units[0]
    for i, (c, h, unit) in enumerate(zip(x, half, units, strict=True)):
        depth = h - select_less(c, 0.0, -c, c)
        way = unit * select_less(c, 0.0, -1.0, 1.0)
        out = way if i == 0 else choose(depth, best, way, out)
        best = depth if i == 0 else select_less(depth, best, depth, best)
    return best, out


def sphere_cylinder(sphere: Sphere, first: ShapeFrame, cylinder: Cylinder, second: ShapeFrame) -> list[Touch]:
    """The nearest point of the cylinder; with the center inside, that of the side or the nearer end."""
    return [ball_on_cylinder(first.origin, sphere.radius, cylinder, second)]


def ball_on_cylinder(center: Vector, radius: float, cylinder: Cylinder, at: ShapeFrame) -> Touch:
    """A sphere, first, and a cylinder."""
    return _from_outward(center, radius, *way_out(center, cylinder, at))


def way_out(point: Vector, cylinder: Cylinder, at: ShapeFrame) -> tuple[Vector, Number]:
    """The way from a cylinder to a point, and the distance; negative inside, to the side or the nearer end."""
    apart = point - at.origin
    along = at.z.dot(apart)
    out, distance = direction(apart - at.z * along, at.x)
    half, radius = 0.5 * cylinder.length, cylinder.radius
    beside = maximum(distance - radius, 0.0)
    over = along - clamp(along, -half, half)
    square = beside * beside + over * over
    length = sqrt(maximum(square, TINY))
    end = select_less(along, 0.0, -1.0, 1.0)
    to_side, to_end = radius - distance, half - along * end
    inside = select_less(to_side, to_end, to_side, to_end)
    face = choose(to_side, to_end, out, at.z * end)
    outward = choose(square, TINY, face, (out * beside + at.z * over) * (1.0 / length))
    return outward, select_less(square, TINY, -inside, length)


def _from_outward(center: Vector, radius: float, outward: Vector, distance: Number) -> Touch:
    """A sphere, first, whose center lies at a distance from the second shape, along the way out of that."""
    depth = radius - distance
    return Touch(center - outward * (radius - depth * 0.5), -outward, depth)
