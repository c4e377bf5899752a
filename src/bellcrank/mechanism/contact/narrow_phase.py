"""Which pairs of shapes can touch, and where they do: one function for each pair."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.contact.cylinder_contacts import box_box, cylinder_box, cylinder_cylinder
from bellcrank.mechanism.contact.ground_contacts import (
    field_box,
    field_capsule,
    field_cone,
    field_cylinder,
    field_points,
    field_sphere,
    plane_box,
    plane_capsule,
    plane_cone,
    plane_cylinder,
    plane_ellipsoid,
    plane_points,
    plane_sphere,
)
from bellcrank.mechanism.contact.hull_contacts import box_hull, capsule_hull, cylinder_hull, hull_hull, sphere_hull
from bellcrank.mechanism.contact.round_contacts import (
    capsule_box,
    capsule_capsule,
    capsule_cylinder,
    sphere_box,
    sphere_capsule,
    sphere_cylinder,
    sphere_sphere,
)
from bellcrank.mechanism.contact.touch import Points, ShapeFrame, Touch
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.pose import Pose
from bellcrank.spatial import Vector

__all__ = ["MOST_CORNERS", "as_box", "bounds_of", "known_pair", "places_of", "seen_by_contact",
           "smallest_extent", "touches", "why_unknown"]

#: corners of a mesh that contact looks at
MOST_CORNERS = 24

_PAIRS: dict[tuple[type, type], Any] = {
    (Plane, Sphere): plane_sphere, (Plane, Capsule): plane_capsule, (Plane, Box): plane_box,
    (Plane, Cylinder): plane_cylinder, (Plane, Cone): plane_cone, (Plane, Ellipsoid): plane_ellipsoid,
    (Plane, Points): plane_points, (Sphere, Sphere): sphere_sphere, (Sphere, Capsule): sphere_capsule,
    (Sphere, Box): sphere_box, (Sphere, Cylinder): sphere_cylinder, (Capsule, Capsule): capsule_capsule,
    (Capsule, Box): capsule_box, (Box, Box): box_box, (Box, Points): box_hull, (Sphere, Points): sphere_hull,
    (Capsule, Points): capsule_hull, (Points, Points): hull_hull,
    (Cylinder, Points): cylinder_hull, (Capsule, Cylinder): capsule_cylinder,
    (Cylinder, Box): cylinder_box, (Cylinder, Cylinder): cylinder_cylinder,
    (HeightField, Sphere): field_sphere, (HeightField, Capsule): field_capsule, (HeightField, Box): field_box,
    (HeightField, Cylinder): field_cylinder, (HeightField, Cone): field_cone, (HeightField, Points): field_points}


def touches(one: Any, first: ShapeFrame, other: Any, second: ShapeFrame) -> list[Touch]:
    """Where two shapes touch, always the same number of places; normals from the first to the second.

    Lengths are measured in units of the larger shape, so that tolerances are shares of it whatever the units of the
    mechanism; a unit is a power of two, which rounds nothing. Planes, height fields and pairs of boxes need none: they
    have no tolerances that are lengths.
    """
    if any(isinstance(shape, (HeightField, Plane)) for shape in (one, other)) or type(one) is type(other) is Box:
        return _found(one, first, other, second)
    unit = _unit(one, other)
    mine = ShapeFrame(Vector.zero(), *first.axes)
    theirs = ShapeFrame((second.origin - first.origin) * (1.0 / unit), *second.axes)
    return [Touch(first.origin + t.point * unit, t.normal, t.depth * unit, t.gain, t.share)
            for t in _found(_in_units(one, unit), mine, _in_units(other, unit), theirs)]


def _found(one: Any, first: ShapeFrame, other: Any, second: ShapeFrame) -> list[Touch]:
    direct = _PAIRS.get((type(one), type(other)))
    if direct is not None:
        found: list[Touch] = direct(one, first, other, second)
        return found
    return [t.swapped() for t in _PAIRS[type(other), type(one)](other, second, one, first)]


def _unit(*shapes: Any) -> float:
    """The power of two below the largest extent of shapes [m]."""
    return math.ldexp(1.0, math.frexp(max(float(np.max(np.ptp(bounds_of(shape), axis=0))) for shape in shapes))[1] - 1)


def bounds_of(shape: Any) -> tuple[Floats, Floats]:
    """The lowest and the highest corner of a shape as contact sees it [m]."""
    found: tuple[Floats, Floats] = shape.bounds() if hasattr(shape, "bounds") else (
        np.min(shape.corners, axis=0), np.max(shape.corners, axis=0))
    return found


def smallest_extent(shape: Any) -> float:
    """That of a shape as contact sees it [m]; ground has none."""
    if isinstance(shape, (HeightField, Plane)):
        return math.inf
    return float(np.min(np.ptp(bounds_of(shape), axis=0)))


def _in_units(shape: Any, unit: float) -> Any:
    """A shape that ends, with its lengths divided by a unit."""
    if isinstance(shape, Points):
        return Points(tuple((x / unit, y / unit, z / unit) for x, y, z in shape.corners), shape.faces,
                      tuple((a, b, c, d / unit) for a, b, c, d in shape.planes), shape.edges)
    return type(shape)(*(np.divide(getattr(shape, f.name), unit) for f in fields(shape)))


def known_pair(one: Any, other: Any) -> bool:
    """Whether two shapes can touch here."""
    return (type(one), type(other)) in _PAIRS or (type(other), type(one)) in _PAIRS


def why_unknown(one: Any, other: Any) -> str:
    """Why two shapes cannot touch here, and what to do."""
    kinds = [("Mesh" if isinstance(shape, Points) else type(shape).__name__) for shape in (one, other)]
    if all(isinstance(shape, (Plane, HeightField)) for shape in (one, other)):
        return f"{' and '.join(kinds)} cannot touch here: give one of the bodies a shape that ends somewhere"
    odd = [kind for kind in kinds if kind in ("Cone", "Ellipsoid")]
    grounds = {"Cone": "a Plane or a HeightField", "Ellipsoid": "a Plane"}
    return (f"{' and '.join(kinds)} cannot touch here: {' and '.join(f'{k} touches only {grounds[k]}' for k in odd)}; "
            "give its body a Sphere, Capsule, Box, Cylinder or Mesh instead (add_shape(..., role='collision'))")


def places_of(one: Any, other: Any) -> int:
    """How many places two shapes can touch at."""
    x, y, z = Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)
    return len(touches(one, ShapeFrame(Vector.zero(), x, y, z), other, ShapeFrame(z * 10.0, x, y, z)))


def seen_by_contact(shape: Any, what: str) -> Any:
    """The shape as contact sees it: meshes as the corners of their convex hull."""
    return _hull(shape, what) if isinstance(shape, Mesh) else shape


def _hull(mesh: Mesh, what: str) -> Points:
    """Corners of the convex hull; of many, the outermost."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        corners = mesh.vertices[ConvexHull(mesh.vertices).vertices]
    except (QhullError, ValueError):
        raise ModelError(f"{what}: the mesh is flat or has fewer than four corners; use a Box or a Plane") from None
    if len(corners) > MOST_CORNERS:
        corners = corners[_outermost(corners)]
    return _with_faces(corners, ConvexHull(corners))


def _with_faces(corners: Any, hull: Any) -> Points:
    """Corners with the faces of their hull, and the edges between faces that bend."""
    faces, planes = [], []
    beside: dict[tuple[int, int], list[Any]] = {}
    for simplex, (a, b, c, d) in zip(hull.simplices.tolist(), hull.equations.tolist(), strict=True):
        i, j, k = simplex
        if np.cross(corners[j] - corners[i], corners[k] - corners[i]) @ (a, b, c) < 0.0:
            j, k = k, j
        faces.append((i, j, k))
        planes.append((a, b, c, -d))
        for one, other in ((i, j), (j, k), (k, i)):
            beside.setdefault((min(one, other), max(one, other)), []).append((a, b, c))
    edges = tuple(edge for edge, normals in beside.items() if len(normals) < 2
                  or np.dot(normals[0], normals[1]) < 1.0 - 1e-9)
    return Points(tuple((float(x), float(y), float(z)) for x, y, z in corners), tuple(faces), tuple(planes), edges)


def as_box(points: Any) -> tuple[Box, Pose] | None:
    """The box that a hull is, and where it lies in the hull's frame; None of other shapes. Boxes know more of faces
    that lie on each other than hulls do."""
    if not isinstance(points, Points) or len(points.corners) != 8:
        return None
    corners = np.array(points.corners)
    size = float(np.ptp(corners, axis=0).max())
    normals = np.array([p[:3] for p in points.planes])
    first = normals[0] / np.linalg.norm(normals[0])
    across = [n - first * (n @ first) for n in normals if abs(n @ first) < 1e-9]
    if not across:
        return None
    second = across[0] / np.linalg.norm(across[0])
    axes = np.stack([first, second, np.cross(first, second)])
    local = corners @ axes.T
    low, high = local.min(axis=0), local.max(axis=0)
    if np.minimum(local - low, high - local).max() > 1e-9 * size:  # a corner that is not at both ends of all axes
        return None
    return Box(high - low), Pose((axes.T @ (0.5 * (low + high))).tolist(), axes.T)


def _outermost(corners: Any) -> Any:
    """Which corners of a hull to keep: the outermost along the axes, then again and again the one that lies farthest
    outside the hull of those before."""
    from scipy.spatial import ConvexHull

    ways = np.concatenate([np.eye(3), -np.eye(3)])
    kept = list(dict.fromkeys(np.argmax(ways @ corners.T, axis=1).tolist()))
    size = float(np.ptp(corners, axis=0).max())
    while len(kept) < MOST_CORNERS:
        across = np.linalg.svd(corners[kept] - corners[kept[0]])
        flat = across[2][int((across[1] > 1e-6 * size).sum()):]  # directions that these do not reach
        if len(flat):
            outside = np.linalg.norm((corners - corners[kept[0]]) @ flat.T, axis=1)
        else:
            hull = ConvexHull(corners[kept]).equations
            outside = (corners @ hull[:, :3].T + hull[:, 3]).max(axis=1)
        kept.append(int(np.argmax(outside)))
    return kept
