"""Geoms of MJCF files: what bodies look like and collide with."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, FileError
from bellcrank.io.common.model_meshes import MeshFinder, ShapePlacer
from bellcrank.io.common.xml import XmlElement, clipped
from bellcrank.io.mjcf.sites import rotation
from bellcrank.io.report import Material, Note, Shape
from bellcrank.mechanism.geometry.placed_shape import Role
from bellcrank.mechanism.geometry.solids import HeightField
from bellcrank.mechanism.geometry.triangle_mesh import FORMATS, Mesh
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import MjcfReader

__all__ = ["GeomFacts", "MeshFacts", "Surface", "read_shapes"]

#: groups of geoms that viewers of MuJoCo show unless told otherwise
_SHOWN = 2
#: the color of geoms for which none is given
_GRAY = (0.5, 0.5, 0.5, 1.0)
_KINDS = ("sphere", "capsule", "cylinder", "box", "ellipsoid", "plane")


@dataclass(frozen=True, slots=True)
class MeshFacts:
    """A mesh of a file, which MuJoCo moves, turns and scales: v -> scale * turn^T (v - shift)."""

    path: str  #: its file, or nothing
    arrays: tuple[Floats, npt.NDArray[np.int32]] | None  #: vertices and faces, if they are in the model itself
    scale: Floats
    shift: Floats
    turn: Floats

    def placed(self) -> tuple[Mesh, Pose]:
        """The mesh, and where its frame lies in that of the geom."""
        if self.arrays is not None:
            vertices, faces = self.arrays
            if self.scale.prod() < 0.0:
                faces = faces[:, ::-1]
            return Mesh((vertices - self.shift) @ self.turn * self.scale, faces), Pose()
        along = self.turn @ np.diag(self.scale) @ self.turn.T  # scale before turning
        if np.abs(along - np.diag(np.diag(along))).max() > 1e-9 * np.abs(self.scale).max():
            raise FileError("a mesh that is turned and stretched along other axes than its own is not shown")
        if os.path.splitext(self.path)[1].lower() not in FORMATS:
            raise FileError(f"meshes of the kind {os.path.splitext(self.path)[1]!r} are not shown")
        shift = -self.scale * (self.turn.T @ self.shift)
        return Mesh.read(self.path, np.diag(along).tolist()), Pose(shift.tolist(), self.turn.T)


@dataclass(frozen=True, slots=True)
class Surface:
    """What contacts need of a geom: contype and conaffinity, and friction in sliding."""

    groups: tuple[int, int] = (1, 1)
    friction: float | None = None


@dataclass(frozen=True, slots=True)
class GeomFacts:
    """What is known of a geom before MuJoCo compiles the model."""

    collides: bool
    mesh: MeshFacts | str | None = None  #: text says why it is not shown
    replaced: bool = False  #: its mesh was taken out, for no inertia depends on it
    surface: Surface = Surface()


def read_shapes(reader: MjcfReader, machine: Mechanism) -> None:
    """Geoms become shapes: visual those of the groups that viewers show, collision those that can touch others."""
    model = reader.model
    kinds = {int(getattr(reader.mujoco.mjtGeom, f"mjGEOM_{kind.upper()}")): kind for kind in _KINDS}
    placer = ShapePlacer(MeshFinder(), reader.notes)
    touching: dict[str, str] = {}
    for geom in range(model.ngeom):
        element = reader.source.element("geom", geom)
        facts = reader.source.geoms[geom]
        pose = Pose(model.geom_pos[geom], rotation(reader.mujoco, model.geom_quat[geom]))
        made: Mesh | HeightField | None = None
        kind: str | None
        size: tuple[float, ...] = (1.0, 1.0, 1.0)
        if facts.mesh is not None:
            kind = "mesh"
            try:
                if isinstance(facts.mesh, str):
                    raise FileError(facts.mesh)
                mesh, inner = facts.mesh.placed()
                made = mesh
                pose = pose @ inner if facts.replaced else pose @ _moved(reader, geom).inverse() @ inner
            except BellcrankError as error:
                _lack(reader, element, geom, str(error))
                continue
        elif int(model.geom_type[geom]) == int(reader.mujoco.mjtGeom.mjGEOM_HFIELD):
            kind, made = "heightfield", _field(model, int(model.geom_dataid[geom]))
        else:
            kind = kinds.get(int(model.geom_type[geom]))
            if kind is None:
                reader.note("ignored", element, "a shape of a kind that is not kept")
                continue
            size = _size(kind, [float(s) for s in model.geom_size[geom]])
        for role in _roles(facts.collides, int(model.geom_group[geom])):
            shape = Shape(reader.bodies[int(model.geom_bodyid[geom])], role, kind, size,
                          made.path if isinstance(made, Mesh) else None, pose, _material(model, geom), element.line,
                          facts.surface.friction, facts.surface.groups)
            reader.shapes.append(shape)
            given = reader.source.name("geom", geom)
            called = placer.place(machine, shape, element.source, given, made)
            if role == "collision" and called is not None and given:
                touching[given] = called
    machine.larger_friction = model.ngeom > 0
    _read_rules(reader, machine, touching)


def _field(model: Any, number: int) -> HeightField:
    """Rows of MuJoCo's data go along y; heights are parts of the largest one."""
    x, y, top, _ = model.hfield_size[number]
    rows, columns, start = (int(a[number]) for a in (model.hfield_nrow, model.hfield_ncol, model.hfield_adr))
    data = np.asarray(model.hfield_data[start:start + rows * columns], dtype=float).reshape(rows, columns)
    kind = "monotone" if min(rows, columns) > 2 else "linear"
    return HeightField(np.linspace(-x, x, columns), np.linspace(-y, y, rows), top * data.T, kind=kind)


def _read_rules(reader: MjcfReader, machine: Mechanism, touching: dict[str, str]) -> None:
    """<exclude> and <pair> elements."""
    for section in reader.source.gate.root.all("contact"):
        for element in section.children:
            ends = [element.attributes.get(name, "") for name in (
                ("body1", "body2") if element.tag == "exclude" else ("geom1", "geom2"))]
            ends = [reader.renamed.get(end, end) for end in ends] if element.tag == "exclude" else [
                touching.get(end, "") for end in ends]
            known = {"ground", *(b.name for b in machine.bodies)} if element.tag == "exclude" else {*touching.values()}
            if element.tag not in ("exclude", "pair") or not set(ends) <= known:
                reader.note("ignored", element, "its parts do not touch anything here")
                continue
            friction = _pair_friction(reader, element) if element.tag == "pair" else None
            machine.set_contact_rule(*ends, touch=element.tag == "pair", friction=friction)


def _pair_friction(reader: MjcfReader, pair: XmlElement) -> float | None:
    """That of a pair, or of its class; if none is given, it is that of the geoms."""
    words = pair.attributes.get("friction", "").split()
    for default in reader.source.gate.root.all("default") if not words else ():
        words = _class_friction(default, pair.attributes.get("class", "main"), []) or words
    return float(words[0]) if words else None


def _class_friction(default: XmlElement, wanted: str, words: list[str]) -> list[str] | None:
    """The friction of pairs of a class, which inherits that of the classes around it; None if it is not there."""
    for child in default.children:
        if child.tag == "pair":
            words = child.attributes.get("friction", "").split() or words
    if default.attributes.get("class", "main") == wanted:
        return words
    inner = (_class_friction(child, wanted, words) for child in default.children if child.tag == "default")
    return next((found for found in inner if found is not None), None)


def _roles(collides: bool, group: int) -> list[Role]:
    roles: list[Role] = ["visual"] if group <= _SHOWN or not collides else []
    return [*roles, "collision"] if collides else roles


def _size(kind: str, half: list[float]) -> tuple[float, ...]:
    x, y, z = half
    match kind:
        case "sphere":
            return (x,)
        case "box":
            return 2 * x, 2 * y, 2 * z
        case "ellipsoid":
            return x, y, z
        case "plane":
            return (2 * x, 2 * y) if x and y else ()
    return x, 2 * y


def _material(model: Any, geom: int) -> Material | None:
    """The color of a geom, of its material, or none."""
    own = _rgba(model.geom_rgba[geom])
    index = int(model.geom_matid[geom])
    if own == _GRAY and index >= 0:
        return Material(model.mat(index).name, _rgba(model.mat_rgba[index]))
    return None if own == _GRAY else Material("", own)


def _rgba(single: Floats) -> tuple[float, ...]:
    """MuJoCo keeps single precision: the number that was written, if it was a short one."""
    return tuple(round(float(x), 6) for x in single)


def _moved(reader: MjcfReader, geom: int) -> Pose:
    """MuJoCo puts the frames of meshes into their centers of mass: where it lies in that of the file."""
    mesh = int(reader.model.geom_dataid[geom])
    return Pose(reader.model.mesh_pos[mesh], rotation(reader.mujoco, reader.model.mesh_quat[mesh]))


def _lack(reader: MjcfReader, element: XmlElement, geom: int, why: str) -> None:
    body = reader.bodies[int(reader.model.geom_bodyid[geom])]
    reader.notes.append(Note("missing", element.tag, body, element.line, clipped(why, 200)))
