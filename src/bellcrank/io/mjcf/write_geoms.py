"""Shapes as geoms of MJCF, and their meshes as assets."""

from __future__ import annotations

from typing import Any

from bellcrank.io.common.mesh_store import MeshStore
from bellcrank.io.common.names import unused
from bellcrank.io.mjcf.attributes import given, line, where
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh

__all__ = ["GeomLines"]

#: what MuJoCo opens
_KNOWN = (".stl", ".obj")
#: as models usually have it: what is seen in group 2, what collides in group 3
_SEEN = {"group": "2", "contype": "0", "conaffinity": "0"}
_TOUCHED = {"group": "3"}


class GeomLines:
    """The lines of geoms, and of the meshes that they need."""

    def __init__(self, store: MeshStore) -> None:
        self.store = store
        self.assets: list[str] = []
        self._names: dict[str, None] = {}
        self._known: list[tuple[Mesh, str]] = []

    def geom(self, placed: PlacedShape) -> str:
        """The line of a shape."""
        role = _SEEN if placed.role == "visual" else _TOUCHED
        color = {} if placed.color is None else {"rgba": placed.color}
        return f"<geom{given(name=placed.name, **self._form(placed), **where(placed.pose), **color, **role)}/>"

    def _form(self, placed: PlacedShape) -> dict[str, Any]:
        shape = placed.shape
        match shape:
            case Box():
                return {"type": "box", "size": [0.5 * x for x in shape.size]}
            case Sphere():
                return {"type": "sphere", "size": shape.radius}
            case Ellipsoid():
                return {"type": "ellipsoid", "size": shape.radii}
            case Cylinder() | Capsule():
                return {"type": type(shape).__name__.lower(), "size": (shape.radius, 0.5 * shape.length)}
            case Plane() if not placed.body or shape.size is None:  # on bodies that move MJCF has none
                x, y = shape.size or (0.0, 0.0)
                return {"type": "plane", "size": (0.5 * x, 0.5 * y, 1.0)}
        return {"type": "mesh", "mesh": self._asset(as_mesh(shape), placed.name)}

    def _asset(self, mesh: Mesh, wish: str) -> str:
        for other, name in self._known:
            if other == mesh:
                return name
        name = unused(wish, self._names)
        self._names[name] = None
        self._known.append((mesh, name))
        if mesh.path is not None and mesh.path.lower().endswith(_KNOWN):
            self.assets.append(line("mesh", name=name, file=self.store.name(mesh, wish), scale=mesh.scale))
        elif mesh.path is not None:
            plain = Mesh(mesh.vertices, mesh.faces)
            self.assets.append(line("mesh", name=name, file=self.store.name(plain, wish)))
        else:
            corners = " ".join(map(str, mesh.faces.ravel().tolist()))
            self.assets.append(line("mesh", name=name, vertex=mesh.vertices, face=corners, inertia="shell"))
        return name
