"""Mechanisms as MJCF files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np

from bellcrank.errors import BellcrankWarning, ModelError, outside
from bellcrank.io.common.model_meshes import Meshes, MeshStore
from bellcrank.io.common.writing import write_model
from bellcrank.io.common.xml import unused
from bellcrank.io.mjcf.layout import BodyLayout, PlacedBody, floats, given, layout_of, line, where
from bellcrank.io.mjcf.write_rest import Parts, add_parts
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["mjcf_text", "write_mjcf"]


# -- shapes as geoms of MJCF, and their meshes as assets --------------------------------------------
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


#: MuJoCo refuses moving bodies with less mass or inertia
_LEAST = 2e-15


def write_mjcf(mechanism: Mechanism, path: str | os.PathLike[str], *, meshes: Meshes = "copy") -> None:
    """Write a mechanism as an MJCF file; the package mujoco is not needed.

    Loops are cut where MJCF can close them again: Spherical joints become a connect, Revolute ones two, Weld ones a
    weld, between sites. Read back by `read_mjcf` the machine has the same dynamics; joints with several coordinates
    come back as several joints, named ``joint.coordinate``, and free joints are measured in the world. Principal
    moments of inertia of zero become 2e-15 kg m^2, which MuJoCo wants. Shapes of bodies are written as geoms; mesh
    files that do not lie beside the file are copied to a folder there, or, with ``meshes="refer"``, only named. What
    MJCF cannot hold is a `ModelError` that names the part, and nothing is written.
    """
    write_model(mechanism, path, "MJCF", meshes, lambda store: mjcf_text(mechanism, store))


def mjcf_text(mechanism: Mechanism, store: MeshStore) -> str:
    """The text of the file `write_mjcf` writes."""
    layout = layout_of(mechanism)
    parts = add_parts(mechanism, layout)
    geoms = GeomLines(store)
    for shape in mechanism.shapes:
        endless = isinstance(shape.shape, Plane) and shape.shape.size is None
        if shape.body and (endless or shape.body not in layout.places):
            what = "a plane without end" if endless else "on a body without mass between two joints"
            warnings.warn(f"shape {shape.name!r} is {what}, which MJCF has no place for; it is left out",
                          BellcrankWarning, stacklevel=outside())
            continue
        parts.sites.setdefault(shape.body, []).append(geoms.geom(shape))
    lines = [f"<mujoco{given(model=mechanism.name)}>",
             '  <compiler angle="radian" autolimits="true" inertiafromgeom="false" fusestatic="false"/>',
             f"  <option{given(gravity=floats('gravity', mechanism.gravity))}/>"]
    if geoms.assets:
        lines += ["  <asset>", *(f"    {line}" for line in geoms.assets), "  </asset>"]
    lines.append("  <worldbody>")
    lines += [f"    {line}" for line in parts.sites.get(0, ())]
    for root in layout.roots:
        lines += _body(layout, parts, root, "    ")
    lines.append("  </worldbody>")
    for section in ("tendon", "equality", "actuator"):
        inside = getattr(parts, section)
        if inside:
            lines += [f"  <{section}>", *(f"    {line}" for line in inside), f"  </{section}>"]
    return "\n".join([*lines, "</mujoco>", ""])


def _body(layout: BodyLayout, parts: Parts, index: int, indent: str) -> Iterable[str]:
    """The lines of a body and what it carries, without recursion: chains may be long."""
    stack: list[int | str] = [index]
    depth = 0
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            depth -= 1
            yield f"{indent}{'  ' * depth}{here}"
            continue
        place = layout.places[here]
        space = indent + "  " * depth
        yield f"{space}<body{given(name=_body_name(place), **where(place.pose), **place.settings)}>"
        for axis in place.axes:
            at = {} if axis.kind in ("free", "slide") or not axis.at.any() else {"pos": axis.at}
            along = {} if axis.kind in ("free", "ball") else {"axis": axis.axis}
            yield f"{space}  <joint{given(name=axis.name, type=axis.kind, **at, **along, **axis.settings)}/>"
        yield from (f"{space}  {line}" for line in _inertial(place))
        yield from (f"{space}  {line}" for line in parts.sites.get(here, ()))
        depth += 1
        stack.append("</body>")
        stack.extend(reversed(place.children))


def _body_name(place: PlacedBody) -> str:
    if place.body.name == "world":
        raise ModelError("body 'world': that is the name of the ground in MJCF; give the body another one")
    return place.body.name


def _inertial(place: PlacedBody) -> list[str]:
    """The <inertial> of a body: principal moments and axes."""
    inertia, what = place.body.inertia, f"body {place.body.name!r}: the inertia"
    if inertia == Inertia.zero():
        return []
    mass, *six = floats(what, (inertia.mass, *inertia.inertia))
    com = floats(what, inertia.com)
    if mass < _LEAST or inertia.problem():
        raise ModelError(f"{what} cannot be held by MJCF: {inertia.problem() or 'the mass is too small'}")
    xx, xy, xz, yy, yz, zz = six
    turn = np.eye(3)
    moments = np.array([xx, yy, zz])
    if xy or xz or yz:
        moments, turn = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        turn = turn * (1.0 if np.linalg.det(turn) > 0.0 else -1.0)
    moments = np.maximum(moments, _LEAST)
    largest = int(np.argmax(moments))
    moments[largest] = min(moments[largest], float(np.delete(moments, largest).sum()))  # but for rounding, it is less
    axes = {} if (turn == np.eye(3)).all() else {"quat": quaternion.from_matrix(turn)}
    return [f"<inertial{given(pos=com, **axes, mass=mass, diaginertia=moments)}/>"]
