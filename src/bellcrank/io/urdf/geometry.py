"""Visual and collision geometry and materials of a URDF file: kept as data, of no weight in the dynamics."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from bellcrank.io.common.xml import XmlElement
from bellcrank.io.report import Material, Shape
from bellcrank.mechanism.pose import Pose

__all__ = ["read_material", "read_shape"]

_ONE = (1.0, 1.0, 1.0)


def read_shape(element: XmlElement, body: str, pose: Callable[[XmlElement | None], Pose]) -> Shape | None:
    """The shape in a <visual> or <collision>, or None when it is empty. `pose` reads an <origin>."""
    geometry = element.first("geometry")
    if geometry is None or not geometry.children:
        return None
    form = geometry.children[0]
    match form.tag:
        case "mesh":
            size = form.numbers("scale", 3, _ONE)
        case "box":
            size = form.numbers("size", 3)
        case "sphere":
            size = form.numbers("radius", 1)
        case "cylinder" | "capsule":
            size = form.numbers("radius", 1) + form.numbers("length", 1)
        case _:
            raise form.error("is not a shape; use mesh, box, sphere, cylinder or capsule")
    role: Literal["visual", "collision"] = "visual" if element.tag == "visual" else "collision"
    filename = form.attribute("filename") if form.tag == "mesh" else None
    material = element.first("material")
    return Shape(body, role, form.tag, size, filename, pose(element.first("origin")),
                 None if material is None else read_material(material), element.line)


def read_material(element: XmlElement) -> Material:
    """A material; one that only refers to another by its name has neither colour nor texture."""
    colour, texture = element.first("color"), element.first("texture")
    return Material(element.attributes.get("name", ""), None if colour is None else colour.numbers("rgba", 4),
                    None if texture is None else texture.attributes.get("filename"))
