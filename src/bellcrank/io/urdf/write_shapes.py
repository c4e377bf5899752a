"""Shapes as <visual> and <collision> of URDF."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from xml.sax.saxutils import quoteattr

from bellcrank.io.common.mesh_store import MeshStore
from bellcrank.io.common.shape_writing import number_list, warn_left_out
from bellcrank.io.urdf.write_loops import origin
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Plane, Sphere
from bellcrank.mechanism.pose import Pose

__all__ = ["shape_text"]


def shape_text(placed: PlacedShape, frame: Pose, store: MeshStore, checked: Callable[[str, str], str]) -> Iterator[str]:
    """The lines of a shape whose body's frame lies at `frame` in the link; `checked` names it as XML can.

    Cones, ellipsoids and planes become meshes. A plane without end is left out with a warning.
    """
    shape = placed.shape
    match shape:
        case Box():
            form = f"<box size=\"{number_list(*shape.size)}\"/>"
        case Sphere():
            form = f"<sphere radius=\"{shape.radius!r}\"/>"
        case Cylinder() | Capsule():
            form = f"<{type(shape).__name__.lower()} radius=\"{shape.radius!r}\" length=\"{shape.length!r}\"/>"
        case Plane(size=None):
            warn_left_out(placed, "URDF has no plane without end")
            return
        case _:
            mesh = as_mesh(shape)
            form = f"<mesh filename={quoteattr(store.name(mesh, placed.name))} scale=\"{number_list(*mesh.scale)}\"/>"
    yield f"    <{placed.role} name={quoteattr(checked('shape', placed.name))}>"
    yield f"      <origin {origin(frame @ placed.pose, f'shape {placed.name!r}')}/>"
    yield f"      <geometry>{form}</geometry>"
    if placed.color is not None and placed.role == "visual":
        yield f"      <material name={quoteattr(placed.name)}><color rgba=\"{number_list(*placed.color)}\"/></material>"
    yield f"    </{placed.role}>"
