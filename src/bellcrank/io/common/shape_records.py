"""Shapes as model files describe them, put on the bodies of a `Mechanism`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bellcrank.errors import ModelError
from bellcrank.io.common.height_images import IMAGES, heights_of_image
from bellcrank.io.common.mesh_finder import MeshFinder, NotFoundError
from bellcrank.io.common.names import control_character
from bellcrank.io.report import Material, Note, Shape
from bellcrank.mechanism.geometry.placed_shape import AnyShape, Color
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["ShapePlacer", "color_of"]


@dataclass
class ShapePlacer:
    """Puts shapes on bodies; one that cannot be shown is a note, and no error: it does not move the machine."""

    finder: MeshFinder
    notes: list[Note] = field(default_factory=list)
    materials: Mapping[str, Material] = field(default_factory=dict)

    def place(self, machine: Mechanism, shape: Shape, source: str, name: str = "",
              made: Mesh | HeightField | None = None) -> str | None:
        """Add one shape that the file `source` describes, under its name there if that is free; its form may be `made`
        already. Returns what the shape is called."""
        try:
            form = made or self._made(shape, source)
        except NotFoundError as error:
            self.notes.append(Note("missing", shape.kind, shape.body, shape.line, str(error)))
            return None
        except ModelError as error:
            self.notes.append(Note("ignored", shape.kind, shape.body, shape.line, f"cannot be shown: {error}"))
            return None
        taken = not name or control_character(name) is not None or any(s.name == name for s in machine.shapes)
        collides = shape.role == "collision"
        return machine.add_shape(shape.body, form, shape.pose, color=color_of(shape.material, self.materials),
                                 name=None if taken else name, role=shape.role,
                                 friction=shape.friction if collides else None,
                                 groups=shape.groups if collides else (1, 1)).name

    def _made(self, shape: Shape, source: str) -> AnyShape:
        size = shape.size
        match shape.kind:
            case "mesh":
                return Mesh.read(self.finder.find(shape.filename or "", source), size)
            case "heightmap":
                return heights_of_image(self.finder.find(shape.filename or "", source, IMAGES), size)
            case "box":
                return Box(size)
            case "sphere":
                return Sphere(*size)
            case "ellipsoid":
                return Ellipsoid(size)
            case "plane":
                return Plane(size or None)
            case "cylinder":
                return Cylinder(*size)
            case "capsule":
                return Capsule(*size)
        return Cone(*size)


def color_of(material: Material | None, others: Mapping[str, Material]) -> Color | None:
    """The color of a material, or of the one that it names."""
    if material is None:
        return None
    rgba = material.rgba or getattr(others.get(material.name), "rgba", None)
    if rgba is None or len(rgba) != 4:
        return None
    r, g, b, a = (min(max(float(x), 0.0), 1.0) for x in rgba)
    return r, g, b, a
