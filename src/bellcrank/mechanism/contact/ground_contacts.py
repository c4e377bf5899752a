"""Shapes on a plane and on a height field.

Shapes on a height field: every place is a point of the shape over the ground.

The depth of a point is measured along z of the field, H(x, y) - z. Its gradient is along the normal of the ground below
the point and longer than one on slopes (`Touch.gain`), so that the force is the gradient of an energy everywhere: what
rolls over hills loses nothing. Across a slope the ground is as much stiffer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from bellcrank.mechanism.contact.touch import Points, ShapeFrame, Touch, clamp, direction
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.scalar.functions import maximum, select_less, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Vector

__all__ = ["field_box", "field_capsule", "field_cone", "field_cylinder", "field_points", "field_sphere", "plane_box",
           "plane_capsule", "plane_cone", "plane_cylinder", "plane_ellipsoid", "plane_points", "plane_sphere"]


# -- shapes on a plane: every one has few places that can be deepest, and each of these is computed exactly ---
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


def _rim_on_plane(plane: ShapeFrame, at: ShapeFrame, radius: float, height: float) -> list[Vector]:
    """The lowest and the highest point of a circle about z. Where it is parallel to the plane any two opposite ones
    are: the sum of their forces is the same for all, so that nothing jumps there."""
    across = plane.z - at.z * plane.z.dot(at.z)
    out = direction(across, at.x)[0] * radius
    center = at.point(0.0, 0.0, height)
    return [center - out, center + out]


def plane_cylinder(_: Plane, plane: ShapeFrame, cylinder: Cylinder, at: ShapeFrame) -> list[Touch]:
    """The lowest and the highest point of both rims."""
    return _on_plane(plane, [p for side in (-0.5, 0.5) for p in
                             _rim_on_plane(plane, at, cylinder.radius, side * cylinder.length)])


def plane_cone(_: Plane, plane: ShapeFrame, cone: Cone, at: ShapeFrame) -> list[Touch]:
    """The tip, and the lowest and the highest point of the rim."""
    return _on_plane(plane, [at.point(0.0, 0.0, 0.5 * cone.length),
                             *_rim_on_plane(plane, at, cone.radius, -0.5 * cone.length)])


def plane_ellipsoid(_: Plane, plane: ShapeFrame, ellipsoid: Ellipsoid, at: ShapeFrame) -> list[Touch]:
    """The lowest point: where the gradient of the ellipsoid is along the normal."""
    weighted = [axis.dot(plane.z) * r for axis, r in zip(at.axes, ellipsoid.radii, strict=True)]
    length = sqrt(sum((w * w for w in weighted), 0.0))
    down = at.turned(*(w * r / length for w, r in zip(weighted, ellipsoid.radii, strict=True)))
    return _on_plane(plane, [at.origin - down])


# -- shapes on a height field -----------------------------------------------------------------------
#: steps by which the deepest point of a rim is found, the largest of them [rad], and the share of the radius that is
#: too flat for any
_AGAIN, _TURN, _FLAT = 4, 0.5, 1e-9


class Ground(NamedTuple):
    """The ground at a place: height, slopes, and the second derivatives."""

    height: Number
    slope: tuple[Number, Number]
    bend: tuple[tuple[Number, Number], tuple[Number, Number]]

    @property
    def steep(self) -> Number:
        """The length of (slope, -1)."""
        return sqrt(1.0 + self.slope[0] * self.slope[0] + self.slope[1] * self.slope[1])


def _ground(field: HeightField, x: Number, y: Number, bent: bool = False) -> Ground:
    """By jets along x, along y, and along both for the mixed derivative."""
    along_x, along_y = as_jet(field.table(Jet(x, 1.0, 0.0), y)), as_jet(field.table(x, Jet(y, 1.0, 0.0)))
    mixed: Number = 0.0
    if bent:
        both = as_jet(field.table(Jet(x, 1.0, 0.0), Jet(y, 1.0, 0.0)))
        mixed = 0.5 * (both.acceleration - along_x.acceleration - along_y.acceleration)
    return Ground(along_x.value, (along_x.rate, along_y.rate), ((along_x.acceleration, mixed),
                                                               (mixed, along_y.acceleration)))


def _on_ground(field: HeightField, at: ShapeFrame, points: Iterable[Vector]) -> list[Touch]:
    """Points of the second body against the ground."""
    out = []
    for point in points:
        x, y, z = at.local(point)
        ground = _ground(field, x, y)
        gain = ground.steep
        normal = at.turned(-ground.slope[0], -ground.slope[1], 1.0) * (1.0 / gain)
        depth = ground.height - z
        out.append(Touch(point + normal * (0.5 * depth / gain), normal, depth, gain))
    return out


def _ball(field: HeightField, at: ShapeFrame, center: Vector, radius: float) -> Touch:
    """A sphere: its point where the ground below that point has the sphere's own normal, looked for twice.

    With the normal n(f) of the ground at f: f0 = c, f1 = c - r n(f0), f2 = c - r n(f1); the depth is
    H(f2) - cz + r nz(f1). It depends on the center c alone, and its gradient is computed as it is, by the chain rule:
    the force goes through the center, and no energy is made however the ground bends.
    """
    x, y, z = at.local(center)
    foot: tuple[Number, Number] = (x, y)
    turn: tuple[tuple[Number, Number], tuple[Number, Number]] = ((1.0, 0.0), (0.0, 1.0))  # d foot / d (x, y)
    for _ in range(2):
        below = _ground(field, *foot, bent=True)
        s, (a, b) = below.slope, below.bend
        up = 1.0 / below.steep
        cube = up * up * up
        bent = [s[0] * a[0] + s[1] * b[0], s[0] * a[1] + s[1] * b[1]]  # slope^T bend
        # n = (-s, 1) / steep: d n_i / d foot_j = -bend_ij / steep + s_i (slope^T bend)_j / steep^3
        tilt = [[-(row[j] * up) + s[i] * bent[j] * cube for j in range(2)] for i, row in enumerate((a, b))]
        rise = [-(bent[j] * cube) for j in range(2)]  # d nz / d foot
        lifted = [rise[0] * turn[0][k] + rise[1] * turn[1][k] for k in range(2)]
        turned = [[tilt[i][0] * turn[0][k] + tilt[i][1] * turn[1][k] for k in range(2)] for i in range(2)]
        foot = (x + radius * s[0] * up, y + radius * s[1] * up)
        turn = ((1.0 - radius * turned[0][0], -(radius * turned[0][1])),
                (-(radius * turned[1][0]), 1.0 - radius * turned[1][1]))
    last = _ground(field, *foot)
    depth = last.height - z + radius * up
    gx, gy = (last.slope[0] * turn[0][k] + last.slope[1] * turn[1][k] + radius * lifted[k] for k in range(2))
    gain = sqrt(1.0 + gx * gx + gy * gy)
    normal = at.turned(-gx, -gy, 1.0) * (1.0 / gain)
    return Touch(center - normal * (radius - 0.5 * depth / gain), normal, depth, gain)


def field_sphere(field: HeightField, at: ShapeFrame, sphere: Sphere, second: ShapeFrame) -> list[Touch]:
    """Its lowest point."""
    return [_ball(field, at, second.origin, sphere.radius)]


def field_capsule(field: HeightField, at: ShapeFrame, capsule: Capsule, second: ShapeFrame) -> list[Touch]:
    """The lowest points of both ends."""
    return [_ball(field, at, second.point(0.0, 0.0, side * 0.5 * capsule.length), capsule.radius)
            for side in (-1.0, 1.0)]


def field_box(field: HeightField, at: ShapeFrame, box: Box, second: ShapeFrame) -> list[Touch]:
    """The eight corners."""
    return _on_ground(field, at, [second.point(*corner) for corner in corners_of(box)])


def field_points(field: HeightField, at: ShapeFrame, points: Points, second: ShapeFrame) -> list[Touch]:
    """All corners."""
    return _on_ground(field, at, [second.point(*corner) for corner in points.corners])


def _rim(field: HeightField, at: ShapeFrame, second: ShapeFrame, radius: float, height: float) -> list[Vector]:
    """The deepest point of a circle about z, and the highest: first by the normal of the ground below its center."""
    center = second.point(0.0, 0.0, height)
    x, y, _ = at.local(center)
    s = _ground(field, x, y).slope
    normal = at.turned(-s[0], -s[1], 1.0)
    out = direction(normal - second.z * normal.dot(second.z), second.x)[0]
    return [_settled(field, at, second.z, center, out * (side * radius), side) for side in (-1.0, 1.0)]


def _settled(field: HeightField, at: ShapeFrame, axis: Vector, center: Vector, arm: Vector, side: float) -> Vector:
    """The point of a circle where the depth f is stationary along it, by Newton's method: f' = -N . p', and
    f'' = p' . H'' p' - N . p'' with N = (-slope, 1), p' across the arm and p'' against it. Where f'' has the wrong sign
    (`side` is that of the right one) the point stays."""
    flat = _FLAT * sqrt(arm.dot(arm))
    for _ in range(_AGAIN):
        along = axis.cross(arm)
        ground = _ground(field, *at.local(center + arm)[:2], bent=True)
        up = at.turned(-ground.slope[0], -ground.slope[1], 1.0)
        px, py = at.x.dot(along), at.y.dot(along)
        (xx, xy), (_, yy) = ground.bend
        bend = (px * px * xx + 2.0 * (px * py * xy) + py * py * yy + up.dot(arm)) * side
        step = clamp(up.dot(along) * side / maximum(bend, flat), -_TURN, _TURN)
        step = select_less(bend, flat, 0.0, step)
        arm = (arm + along * step) * (1.0 / sqrt(1.0 + step * step))
    return center + arm


def field_cylinder(field: HeightField, at: ShapeFrame, cylinder: Cylinder, second: ShapeFrame) -> list[Touch]:
    """The lowest and the highest point of both rims."""
    return _on_ground(field, at, [p for side in (-0.5, 0.5)
                                  for p in _rim(field, at, second, cylinder.radius, side * cylinder.length)])


def field_cone(field: HeightField, at: ShapeFrame, cone: Cone, second: ShapeFrame) -> list[Touch]:
    """The tip, and the lowest and the highest point of the rim."""
    return _on_ground(field, at, [second.point(0.0, 0.0, 0.5 * cone.length),
                                  *_rim(field, at, second, cone.radius, -0.5 * cone.length)])
