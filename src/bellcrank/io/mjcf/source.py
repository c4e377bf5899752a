"""From gated text to MuJoCo's compiled model: inertias from shapes, defaults and frames are worked out by MuJoCo.

Terrain of MJCF that lies in other files, looked at before MuJoCo reads it: images (PNG), and MuJoCo's own format of
whole numbers of rows and columns (int32 each) and heights (float32), row by row.
"""

from __future__ import annotations

import importlib
import os
import struct
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import FileError
from bellcrank.files.model_files import regular_bytes
from bellcrank.io.common.xml import XmlElement, clipped
from bellcrank.io.mjcf.gate import Gated, MeshFile, gated, mesh_path
from bellcrank.io.mjcf.geoms import GeomFacts, MeshFacts, Surface
from bellcrank.io.mjcf.sites import rotation

__all__ = ["Source", "compiled", "the_mujoco"]


# -- terrain of MJCF that lies in other files, looked at before MuJoCo reads it ---------------------
#: heights of one terrain
MAX_HEIGHTS = 1 << 20
_BYTES = 8 + 4 * MAX_HEIGHTS
_PNG = b"\x89PNG\r\n\x1a\n"


def terrain_files(spec: Any, gate: Gated, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None
                  ) -> dict[str, bytes]:
    """The contents of files of terrain, by token; terrain whose file cannot be read is taken out and noted."""
    assets = {}
    for terrain in list(spec.hfields):
        file = gate.meshes.get(terrain.file)
        if file is None:  # its heights are in the model itself
            continue
        try:
            assets[file.token] = _grid_contents(mesh_path(file, path, folder))
        except (FileError, OSError, ValueError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            gate.note("ignored", file.element, f"terrain whose file {clipped(file.path, 200)!r} cannot be used: {why}")
            spec.delete(terrain)
    return assets


def _grid_contents(place: str) -> bytes:
    data = regular_bytes(place, _BYTES)
    if data is None or len(data) > _BYTES:
        raise ValueError(f"it is no regular file of at most {_BYTES} bytes")
    if os.path.splitext(place)[1].lower() == ".png":
        if data[:8] != _PNG or data[12:16] != b"IHDR" or len(data) < 33:
            raise ValueError("it is no PNG image")
        _check_size(*struct.unpack(">II", data[16:24]))
        return data
    if len(data) < 8:
        raise ValueError("it is too short for the numbers of rows and columns")
    rows, columns = struct.unpack("<ii", data[:8])
    _check_size(rows, columns)
    size = 8 + 4 * rows * columns
    if len(data) != size:
        raise ValueError(f"{rows} rows of {columns} heights take {size} bytes, but it has {len(data)}")
    if not np.isfinite(np.frombuffer(data, dtype="<f4", offset=8)).all():
        raise ValueError("a height is not finite")
    return data


def _check_size(rows: int, columns: int) -> None:
    if min(rows, columns) < 2 or rows * columns > MAX_HEIGHTS:
        raise ValueError(f"{rows} rows of {columns} heights; there must be 2 of each at least, and at most "
                         f"{MAX_HEIGHTS} heights")


# -- from gated text to MuJoCo's compiled model -----------------------------------------------------
_MESH_BYTES = 64 * 2**20
_MESH_KINDS = (".stl", ".obj", ".msh")
_USED = ("body_pos", "body_quat", "body_mass", "body_ipos", "body_iquat", "body_inertia", "body_gravcomp", "jnt_pos",
         "jnt_axis", "jnt_stiffness", "jnt_range", "dof_armature", "dof_damping", "dof_frictionloss", "qpos0",
         "qpos_spring", "eq_data", "site_pos", "site_quat", "tendon_stiffness", "tendon_damping",
         "tendon_lengthspring", "tendon_frictionloss", "tendon_armature", "actuator_gear", "actuator_gainprm",
         "actuator_biasprm", "geom_pos", "geom_quat")
_HUGE = 1e100
_PLUGIN_SHAPE = "a shape of a plugin, or of terrain that is not there"


@dataclass(slots=True)
class Source:
    """A compiled model with the elements of the file its parts come from."""

    model: Any
    gate: Gated
    #: for "body", "joint", "geom", "site", "equality", "tendon", "actuator": the element of each part, by number
    elements: dict[str, dict[int, XmlElement]] = field(default_factory=dict)
    geoms: dict[int, GeomFacts] = field(default_factory=dict)  #: by number

    def element(self, what: str, index: int) -> XmlElement:
        return self.elements.get(what, {}).get(index, self.gate.root)

    def name(self, what: str, index: int) -> str:
        """The part's name in the file, or nothing."""
        names = getattr(self.model, what)(index).name
        return str(names)


def the_mujoco() -> Any:
    """The package, or an error that says how to get it."""
    try:
        return importlib.import_module("mujoco")
    except ImportError as error:
        raise FileError(f"reading MJCF needs the package mujoco ({error}); install it with: "
                        "pip install 'bellcrank[mujoco]'") from None


def compiled(path: str | os.PathLike[str], folder: str | os.PathLike[str] | None, missing_meshes: str) -> Source:
    """Gate, parse and compile a file."""
    if missing_meshes not in ("error", "massless"):
        raise FileError(f"missing_meshes={missing_meshes!r} must be 'error' or 'massless'")
    gate = gated(path, folder)
    mujoco = the_mujoco()
    try:
        more = {"include": {name: text.encode() for name, text in gate.models.items()}} if gate.models else {}
        spec = mujoco.MjSpec.from_string(gate.text, **more)
    except (ValueError, RuntimeError, mujoco.FatalError, TypeError) as error:
        raise _complaint(gate, error) from None
    spec.compiler.fusestatic = False  # every body keeps its name
    spec.compiler.discardvisual = False
    spec.compiler.usethread = False
    spec.compiler.LRopt.mode = mujoco.mjtLRMode.mjLRMODE_NONE  # a simulation as long as the file likes
    assets, facts = _shapes(mujoco, spec, gate, path, folder, missing_meshes)
    spec.assets = assets
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            model = spec.compile()
    except (ValueError, RuntimeError, mujoco.FatalError, TypeError) as error:
        raise _complaint(gate, error) from None
    for warning in said:
        gate.note("ignored", gate.root, f"MuJoCo says: {clipped(' '.join(str(warning.message).split()), 200)}")
    source = Source(model, gate)
    for what, parts in (("body", spec.bodies), ("joint", spec.joints), ("geom", spec.geoms), ("site", spec.sites),
                        ("equality", spec.equalities), ("tendon", spec.tendons), ("actuator", spec.actuators)):
        source.elements[what] = {part.id: gate.element(part.info) for part in parts}
    source.geoms = {geom.id: known for geom, known in zip(spec.geoms, facts, strict=True)}
    _check_finite(source)
    return source


def _complaint(gate: Gated, error: Exception) -> FileError:
    """What MuJoCo says, with the line of the file."""
    text = " ".join(str(error).split())
    element = gate.element(text)
    return element.error(clipped(text, 300) + _left_out(gate))


def _left_out(gate: Gated) -> str:
    """What was held back and may be the cause of a complaint."""
    found = {"flexible bodies (flex)": {"flex", "flexcomp"}, "plugins": {"plugin", "extension"}}
    tags = {note.tag for note in gate.notes} | {"plugin" for note in gate.notes if note.text == _PLUGIN_SHAPE}
    missing = [name for name, own in found.items() if own & tags]
    said = f" ({' and '.join(missing)} are not read: mass, shapes and parts that they make are missing)"
    return said if missing else ""


def _check_finite(source: Source) -> None:
    for name in _USED:
        values = np.asarray(getattr(source.model, name), dtype=float)
        if not (np.abs(values) < _HUGE).all():
            what = name.partition("_")[0].replace("jnt", "joint")
            at = np.flatnonzero(~(np.abs(values.reshape(len(values), -1)) < _HUGE).all(-1))
            element = source.element(what, int(at[0])) if what in source.elements else source.gate.root
            raise element.error(f"{name.partition('_')[2] or name} is not finite, or too large to compute with")


def _shapes(mujoco: Any, spec: Any, gate: Gated, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None,
            missing: str) -> tuple[dict[str, bytes], list[GeomFacts]]:
    """Take meshes out of the spec that no inertia depends on, a ball without mass in their place; the contents of
    files that are needed, and what is known of all geoms that are left."""
    by_name = {mesh.name: mesh for mesh in spec.meshes}
    assets = terrain_files(spec, gate, path, folder)
    fields = {field.name for field in spec.hfields}
    paired = {pair.attributes.get(end) for section in gate.root.all("contact") for pair in section.children
              if pair.tag == "pair" for end in ("geom1", "geom2")}
    facts: list[GeomFacts] = []
    for geom in list(spec.geoms):
        groups, friction = (int(geom.contype), int(geom.conaffinity)), float(geom.friction[0])
        surface = Surface(groups if min(groups) >= 0 else (1, 1), friction if friction >= 0.0 else None)
        collides = any(groups) or geom.name in paired  # a pair asks for no groups
        geom.contype = geom.conaffinity = 0  # no convex hulls
        element = gate.element(geom.info)
        if geom.type == mujoco.mjtGeom.mjGEOM_SDF or (geom.type == mujoco.mjtGeom.mjGEOM_HFIELD
                                                      and geom.hfieldname not in fields):
            gate.note("ignored", element, _PLUGIN_SHAPE)
            spec.delete(geom)
            continue
        if not geom.meshname:
            facts.append(GeomFacts(collides, surface=surface))
            continue
        mesh = by_name.get(geom.meshname)
        if mesh is None:
            raise element.error(f"there is no mesh {clipped(geom.meshname)!r}")
        known = _mesh_facts(mujoco, mesh, gate, path, folder)
        weighs, fitted = _weighs(spec, geom), geom.type != mujoco.mjtGeom.mjGEOM_MESH  # MuJoCo fits a simple shape
        if not weighs and not fitted:
            _without_mesh(mujoco, geom)
            facts.append(GeomFacts(collides, known, replaced=True, surface=surface))
            continue
        if mesh.file:
            file = gate.meshes.get(mesh.file)
            if file is None:
                raise element.error(f"the mesh {clipped(geom.meshname)!r} has no file")
            try:
                assets[file.token] = assets.get(file.token) or _contents(file, element, path, folder)
            except FileError as error:
                if missing == "error" and weighs:
                    raise
                if weighs:
                    gate.note("warned", element, f"taken as massless, though its mass is that of a mesh: {error}")
                _without_mesh(mujoco, geom)
                facts.append(GeomFacts(collides, known, replaced=True, surface=surface))
                continue
        facts.append(GeomFacts(collides, None if fitted else known, surface=surface))
    used = {geom.meshname for geom in spec.geoms}
    for mesh in list(spec.meshes):
        if mesh.name not in used:
            spec.delete(mesh)
    return assets, facts


def _without_mesh(mujoco: Any, geom: Any) -> None:
    """A ball without mass: MuJoCo still works out where the geom is, and its color."""
    geom.type, geom.meshname, geom.size, geom.mass = mujoco.mjtGeom.mjGEOM_SPHERE, "", [1e-3, 0.0, 0.0], 0.0


def _mesh_facts(mujoco: Any, mesh: Any, gate: Gated, path: str | os.PathLike[str],
                folder: str | os.PathLike[str] | None) -> MeshFacts | str:
    """Where the triangles of a mesh are, and how they are moved; or why they are not shown."""
    turn = rotation(mujoco, mesh.refquat)
    moves = np.array(mesh.scale), np.array(mesh.refpos), np.eye(3) if turn is None else turn
    if not all(np.isfinite(x).all() for x in moves) or not moves[0].all():
        return f"the mesh {clipped(mesh.name)!r} has numbers that cannot be used"
    if not mesh.file:
        vertices, faces = np.array(list(mesh.uservert)), np.array(list(mesh.userface), dtype=np.int32)
        if not len(vertices) or len(vertices) % 3 or len(faces) % 3:
            return f"the mesh {clipped(mesh.name)!r} has no vertices or faces in the file"
        points = vertices.reshape(-1, 3)
        return MeshFacts("", (points, faces.reshape(-1, 3) if len(faces) else _hull_faces(points)), *moves)
    file = gate.meshes.get(mesh.file)
    try:
        place = "" if file is None else mesh_path(file, path, folder)
    except FileError as error:
        return str(error)
    if file is None or not os.path.isfile(place):
        return f"the mesh {clipped(mesh.name if file is None else file.path)!r} was not found"
    return MeshFacts(place, None, *moves)


def _hull_faces(points: Floats) -> npt.NDArray[np.int32]:
    """Triangles of the convex hull, counterclockwise from outside: what MuJoCo makes of vertices alone."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError):
        return np.zeros((0, 3), dtype=np.int32)
    a, b, c = (points[hull.simplices[:, k]] for k in range(3))
    inward = np.einsum("ni,ni->n", np.cross(b - a, c - a), hull.equations[:, :3]) < 0.0
    return np.asarray(np.where(inward[:, None], hull.simplices[:, ::-1], hull.simplices), dtype=np.int32)


def _weighs(spec: Any, geom: Any) -> bool:
    """Whether a body's inertia depends on a geom."""
    rule = int(spec.compiler.inertiafromgeom)  # 0 false, 1 true, 2 auto
    body = geom.parent
    if body.name == "world" and body.id == 0:
        return False
    if rule == 0 or (rule == 2 and body.explicitinertial):
        return False
    low, high = spec.compiler.inertiagrouprange
    if not low <= geom.group <= high:
        return False
    given = float(geom.mass)
    return given != 0.0 if not np.isnan(given) else float(geom.density) != 0.0


def _contents(file: MeshFile, element: XmlElement, path: str | os.PathLike[str],
              folder: str | os.PathLike[str] | None) -> bytes:
    """The bytes of a mesh file, after a look at its kind and size."""
    place = mesh_path(file, path, folder)
    kind = os.path.splitext(place)[1].lower()
    if kind not in _MESH_KINDS:
        raise file.element.error(f"meshes of the kind {clipped(kind)!r} are not read; MJCF has "
                                 f"{', '.join(_MESH_KINDS)}")
    try:
        data = regular_bytes(place, _MESH_BYTES)
    except OSError as error:
        raise element.error(f"the mass of body {clipped(geom_owner(element))!r} depends on the mesh "
                            f"{clipped(file.name)!r}, whose file cannot be read ({error.strerror or error}: "
                            f"{clipped(file.path, 200)}); bring the file, give the body an <inertial>, or read with "
                            "missing_meshes='massless'") from None
    if data is None or len(data) > _MESH_BYTES:
        raise file.element.error(f"{clipped(place, 200)} is not a regular file of at most {_MESH_BYTES} bytes")
    if kind == ".stl" and (len(data) < 84 or len(data) != 84 + 50 * int.from_bytes(data[80:84], "little")):
        raise file.element.error(f"{clipped(place, 200)} is not a binary STL file")
    return data


def geom_owner(element: XmlElement) -> str:
    """The name of the body around a geom."""
    here: XmlElement | None = element.parent
    while here is not None and here.tag != "body":
        here = here.parent
    return "" if here is None else here.attributes.get("name", "")
