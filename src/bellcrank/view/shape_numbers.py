"""Shapes of a description as scenes have them: a kind and numbers."""

from __future__ import annotations

from typing import Any

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.view.frame_algebra import quaternion_of, triple_of
from bellcrank.view.mesh_reduction import FewerFaces
from bellcrank.view.scene import DrawnShape

__all__ = ["drawn_shape"]

#: edge of a plane without end, in usual lengths of parts
_ENDLESS = 20.0
_FLOOR = (0.62, 0.65, 0.70, 0.2)


def drawn_shape(placed: PlacedShape, position: Floats, length: float, triangles: FewerFaces | None = None
                ) -> DrawnShape:
    """A shape of a `Mechanism`, with its color, at `position` (parameters have values there); `length` is a usual
    length of parts, `triangles` are what is drawn of a mesh."""
    shape: Any = placed.shape
    kind = type(shape).__name__.lower()
    where: dict[str, Any] = {"position": triple_of(position), "turn": quaternion_of(placed.pose.rotation),
             "color": placed.color, "role": placed.role}
    if kind == "heightfield":
        shape, kind = as_mesh(shape), "mesh"
    if kind == "mesh":
        drawn = triangles or FewerFaces(shape.vertices, shape.faces, shape.colors)
        return DrawnShape("mesh", (), vertices=drawn.vertices, faces=drawn.faces,
                          shades=None if placed.color is not None else drawn.shades, **where)
    if kind == "box":
        return DrawnShape("box", shape.size, **where)
    if kind in ("sphere", "ellipsoid"):
        return DrawnShape("sphere", (shape.radius,) * 3 if kind == "sphere" else shape.radii, **where)
    if kind in ("cylinder", "cone", "capsule"):
        return DrawnShape(kind, (shape.radius, shape.length), **where)
    if kind == "plane":
        if shape.size is None and placed.color is None:  # a floor: the picture's own is seen through it
            where["color"] = _FLOOR
        return DrawnShape("plane", shape.size or (_ENDLESS * length,) * 2, **where)
    raise ModelError(f"shape {placed.name!r}: a {type(shape).__name__} cannot be drawn")
