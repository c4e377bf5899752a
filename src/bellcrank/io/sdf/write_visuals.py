"""Shapes as <visual> and <collision> of SDF."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape

from bellcrank.io.common.mesh_store import MeshStore
from bellcrank.io.common.shape_writing import number_list, warn_left_out
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere

__all__ = ["look_text"]


def look_text(placed: PlacedShape, store: MeshStore) -> Iterator[str]:
    """What stands inside the element of a shape, but for its pose; nothing for a plane without end to be seen, which
    SDF has for collisions only. Cones, and planes that end and collide, become meshes."""
    shape = placed.shape
    match shape:
        case Box():
            form = f"<box><size>{number_list(*shape.size)}</size></box>"
        case Sphere():
            form = f"<sphere><radius>{shape.radius!r}</radius></sphere>"
        case Ellipsoid():
            form = f"<ellipsoid><radii>{number_list(*shape.radii)}</radii></ellipsoid>"
        case Cylinder() | Capsule():
            tag = type(shape).__name__.lower()
            form = f"<{tag}><radius>{shape.radius!r}</radius><length>{shape.length!r}</length></{tag}>"
        case Plane() if (shape.size is None) == (placed.role == "collision"):
            edges = "" if shape.size is None else f"<size>{number_list(*shape.size)}</size>"
            form = f"<plane><normal>0 0 1</normal>{edges}</plane>"
        case Plane(size=None):
            warn_left_out(placed, "SDF shows no plane without end")
            return
        case _:
            mesh = as_mesh(shape)
            form = (f"<mesh><uri>{escape(store.name(mesh, placed.name))}</uri><scale>{number_list(*mesh.scale)}</scale>"
                    "</mesh>")
    yield f"<geometry>{form}</geometry>"
    if placed.color is not None and placed.role == "visual":
        shade = number_list(*placed.color)
        yield f"<material><ambient>{shade}</ambient><diffuse>{shade}</diffuse></material>"
