"""Shapes on a plane: every one has few places that can be deepest, and each of these is computed exactly."""

from __future__ import annotations

from collections.abc import Iterable

from bellcrank.mechanism.contact.touch import Points, ShapeFrame, Touch, direction
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.scalar.functions import sqrt
from bellcrank.spatial import Vector

__all__ = ["plane_box", "plane_capsule", "plane_cone", "plane_cylinder", "plane_ellipsoid", "plane_points",
           "plane_sphere"]


def _on_plane(plane: ShapeFrame, points: Iterable[Vector]) -> list[Touch]:
    """Points of the second body against the plane; forces act half way between each point and the plane."""
    normal, out = plane.z, []
    for point in points:
        depth = normal.dot(plane.origin - point)
        out.append(Touch(point + normal * (depth * 0.5), normal, depth))
    return out


def plane_sphere(_: Plane, plane: ShapeFrame, sphere: Sphere, at: ShapeFrame) -> list[Touch]:
    """Its lowest point."""
    return _on_plane(plane, [at.origin - plane.z * sphere.radius])


def plane_capsule(_: Plane, plane: ShapeFrame, capsule: Capsule, at: ShapeFrame) -> list[Touch]:
    """The lowest points of both ends."""
    down = plane.z * capsule.radius
    return _on_plane(plane, [at.point(0.0, 0.0, side * 0.5 * capsule.length) - down for side in (-1.0, 1.0)])


def plane_box(_: Plane, plane: ShapeFrame, box: Box, at: ShapeFrame) -> list[Touch]:
    """The eight corners."""
    return _on_plane(plane, [at.point(*corner) for corner in corners_of(box)])


def corners_of(box: Box) -> list[tuple[float, float, float]]:
    """Corners in the box's frame."""
    x, y, z = (0.5 * s for s in box.size)
    return [(i * x, j * y, k * z) for i in (-1.0, 1.0) for j in (-1.0, 1.0) for k in (-1.0, 1.0)]


def plane_points(_: Plane, plane: ShapeFrame, points: Points, at: ShapeFrame) -> list[Touch]:
    """All corners."""
    return _on_plane(plane, [at.point(*corner) for corner in points.corners])


def _rim(plane: ShapeFrame, at: ShapeFrame, radius: float, height: float) -> list[Vector]:
    """The lowest and the highest point of a circle about z. Where it is parallel to the plane any two opposite ones
    are: the sum of their forces is the same for all, so that nothing jumps there."""
    across = plane.z - at.z * plane.z.dot(at.z)
    out = direction(across, at.x)[0] * radius
    center = at.point(0.0, 0.0, height)
    return [center - out, center + out]


def plane_cylinder(_: Plane, plane: ShapeFrame, cylinder: Cylinder, at: ShapeFrame) -> list[Touch]:
    """The lowest and the highest point of both rims."""
    return _on_plane(plane, [p for side in (-0.5, 0.5) for p in _rim(plane, at, cylinder.radius,
                                                                     side * cylinder.length)])


def plane_cone(_: Plane, plane: ShapeFrame, cone: Cone, at: ShapeFrame) -> list[Touch]:
    """The tip, and the lowest and the highest point of the rim."""
    return _on_plane(plane, [at.point(0.0, 0.0, 0.5 * cone.length), *_rim(plane, at, cone.radius, -0.5 * cone.length)])


def plane_ellipsoid(_: Plane, plane: ShapeFrame, ellipsoid: Ellipsoid, at: ShapeFrame) -> list[Touch]:
    """The lowest point: where the gradient of the ellipsoid is along the normal."""
    weighted = [axis.dot(plane.z) * r for axis, r in zip(at.axes, ellipsoid.radii, strict=True)]
    length = sqrt(sum((w * w for w in weighted), 0.0))
    down = at.turned(*(w * r / length for w, r in zip(weighted, ellipsoid.radii, strict=True)))
    return _on_plane(plane, [at.origin - down])
