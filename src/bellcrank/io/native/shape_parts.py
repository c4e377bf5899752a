"""Shapes in model files."""

from __future__ import annotations

from typing import Any

import bellcrank.io.native.shape_schema as schema
from bellcrank.errors import ModelError
from bellcrank.io.common.mesh_finder import MeshFinder
from bellcrank.io.common.mesh_store import MeshStore
from bellcrank.mechanism.geometry.placed_shape import AnyShape
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh

__all__ = ["dump_shape", "read_solid"]

#: types of shapes by their names in files, and their numbers
_SOLIDS: dict[str, tuple[Any, tuple[str, ...]]] = {
    "box": (Box, ("size",)), "sphere": (Sphere, ("radius",)), "ellipsoid": (Ellipsoid, ("radii",)),
    "cylinder": (Cylinder, ("radius", "length")), "capsule": (Capsule, ("radius", "length")),
    "cone": (Cone, ("radius", "length")), "plane": (Plane, ("size",))}


def dump_shape(shape: AnyShape, name: str, store: MeshStore) -> dict[str, Any]:
    """Type and numbers of a shape; meshes of files by the name of the file."""
    if isinstance(shape, Mesh):
        if shape.path is not None:
            made: dict[str, Any] = {"type": "mesh", "file": store.name(shape, name)}
            return made if shape.scale == (1.0, 1.0, 1.0) else {**made, "scale": list(shape.scale)}
        made = {"type": "mesh", "vertices": shape.vertices.tolist(), "faces": shape.faces.astype(float).tolist()}
        return made if shape.colors is None else {**made, "colors": shape.colors.tolist()}
    if isinstance(shape, HeightField):
        return {"type": "heightfield", "x": list(shape.x), "y": list(shape.y), "heights": shape.heights.tolist(),
                **({} if shape.kind == "monotone" else {"kind": shape.kind})}
    kind = type(shape).__name__.lower()
    values = {label: getattr(shape, label) for label in _SOLIDS[kind][1]}
    return {"type": kind, **{label: list(v) if isinstance(v, tuple) else v for label, v in values.items()
                             if v is not None}}


def read_solid(part: Any, finder: MeshFinder, source: str) -> AnyShape:
    """The shape; `NotFoundError` if its mesh is not there."""
    if part.type == "heightfield":
        return HeightField(part.x, part.y, part.heights, kind=part.kind)
    if part.type != "mesh":
        kind, labels = _SOLIDS[part.type]
        made: AnyShape = kind(*(getattr(part, label) for label in labels))
        return made
    return _mesh(part, finder, source)


def _mesh(part: schema.MeshShapePart, finder: MeshFinder, source: str) -> Mesh:
    if (part.file is None) == (part.vertices is None) or (part.vertices is None) != (part.faces is None):
        raise ModelError("a mesh has either a file, or vertices and faces")
    if part.file is not None:
        if part.colors is not None:
            raise ModelError("colors are those of faces in this file; a mesh of another file has its own")
        return Mesh.read(finder.find(part.file, source), (1.0, 1.0, 1.0) if part.scale is None else part.scale)
    if part.scale is not None:
        raise ModelError("scale is that of a file; multiply the vertices themselves")
    assert part.faces is not None and part.vertices is not None
    if any(x != int(x) for face in part.faces for x in face):
        raise ModelError("faces are numbers of vertices, counted from 0")
    return Mesh(part.vertices, [[int(x) for x in face] for face in part.faces], colors=part.colors)
