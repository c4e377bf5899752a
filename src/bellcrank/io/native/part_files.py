"""Shapes, flexible bodies and ready-made force elements in model files: written and read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

import bellcrank.io.native.part_schema as schema
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.io.common.model_meshes import MeshFinder, MeshStore
from bellcrank.mechanism import constraints, joints
from bellcrank.mechanism.contact.contact_material import BendRate
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.flexible.modal_kinetics import ShapeIntegrals, Stiffening
from bellcrank.mechanism.flexible.reduced_body import StressModes
from bellcrank.mechanism.forces import MachineForce
from bellcrank.mechanism.forces.coordinate_forces import Belt, BumpStop, GasSpring, TorsionBar
from bellcrank.mechanism.forces.machine_force import Bristle, BristleForce, BristleRate, RollingResistance
from bellcrank.mechanism.forces.motors import (
    CurrentRate,
    CylinderForce,
    DcMotor,
    HydraulicCylinder,
    MotorTorque,
    PressureRate,
)
from bellcrank.mechanism.forces.tyre import Tyre, TyreRate
from bellcrank.mechanism.geometry.placed_shape import AnyShape
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.parts import AddedState

__all__ = ["KINDS", "dump_flexible", "dump_ready", "dump_shape", "element_of_state", "read_flexible", "read_solid",
           "states_last"]


#: the names of joint types and constraints in files, and those of their own values
KINDS: dict[type, tuple[str, tuple[str, ...]]] = {
    joints.Revolute: ("revolute", ("axis",)), joints.Prismatic: ("prismatic", ("axis",)),
    joints.Screw: ("screw", ("axis", "pitch")), joints.Cylindrical: ("cylindrical", ("axis",)),
    joints.Universal: ("universal", ("axis1", "axis2")), joints.Planar: ("planar", ("normal",)),
    joints.Spherical: ("spherical", ()), joints.Free: ("free", ()), joints.Weld: ("weld", ()),
    constraints.Distance: ("distance", ("length",)), constraints.PointOnLine: ("point_on_line", ("axis",)),
    constraints.PointOnPlane: ("point_on_plane", ("normal", "offset")),
    constraints.Angle: ("angle", ("angle", "axis", "child_axis")),
    constraints.RollingBall: ("rolling_ball", ("radius", "normal")),
    constraints.RollingDisk: ("rolling_disk", ("radius", "normal", "axis")),
    constraints.KnifeEdge: ("knife_edge", ("across",))}


# -- shapes in model files --------------------------------------------------------------------------
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


# -- flexible bodies in model files: all their numbers, array by array, as rows ---------------------
#: the arrays of `ShapeIntegrals`, and their shapes for k modes
_INTEGRALS = {"first": "33", "first_rates": "k33", "second": "33", "second_rates": "k33", "second_curves": "kk33",
              "linear": "3k", "angular": "3k", "angular_rates": "k3k", "modal": "kk", "moment": "3"}


def dump_flexible(body: FlexibleBody) -> dict[str, Any]:
    """What a file holds of a flexible body."""
    made: dict[str, Any] = {
        "inertia": body.inertia, "names": dict(body.names), "nodes": _rows(body.nodes), "modes": _rows(body.modes),
        "stiffness": _rows(body.stiffness), "damping": _rows(body.damping),
        "integrals": _dump_integrals(body.integrals)}
    if body.clamped is not None:
        made["clamped"] = body.clamped
    more = body.stiffening
    if more is not None:
        made["stiffening"] = {"products": [list(pair) for pair in more.products], "shapes": _rows(more.shapes),
                              "integrals": _dump_integrals(more.integrals)}
    if body.forces is not None:
        made["forces"] = _rows(body.forces)
    if body.edges is not None:
        made["edges"] = body.edges.tolist()
    if body.stresses is not None:
        made["stresses"] = _dump_stresses(body.stresses)
    return made


def _dump_stresses(modes: StressModes) -> dict[str, Any]:
    made: dict[str, Any] = {"nodes": modes.nodes.tolist(), "positions": _rows(modes.positions),
                            "stress": _rows(modes.stress)}
    if modes.strain is not None:
        made["strain"] = _rows(modes.strain)
    if modes.places:
        made["places"] = list(modes.places)
    return made


def _read_stresses(part: schema.StressesPart, k: int) -> StressModes:
    p = len(part.nodes)
    if part.places is not None and len(part.places) != p:
        raise ModelError(f"stresses: places: needs {p} names, got {len(part.places)}")
    return StressModes(_array("stresses: stress", part.stress, (p, 6, k)),
                       None if part.strain is None else _array("stresses: strain", part.strain, (p, 6, k)),
                       np.array([_whole("stresses: nodes", x) for x in part.nodes], dtype=np.int64),
                       _array("stresses: positions", part.positions, (p, 3)), tuple(part.places or ()))


def read_flexible(part: schema.FlexiblePart) -> FlexibleBody:
    """The body."""
    n, k = len(part.nodes), len(part.stiffness)
    more = None
    if part.stiffening is not None:
        given = part.stiffening
        pairs = [[_whole("stiffening: products", x) for x in pair] for pair in given.products]
        for pair in pairs:
            if len(pair) != 2 or not 0 <= pair[0] <= pair[1] < k:
                raise ModelError(f"stiffening: the product {pair} must be two of the {k} modes, in order")
        s = len(pairs)
        more = Stiffening(tuple((a, b) for a, b in pairs), _array("shapes", given.shapes, (n, 3, s)),
                          _read_integrals(given.integrals, k + s))
    return FlexibleBody(
        _array("nodes", part.nodes, (n, 3)), _array("modes", part.modes, (n, 6, k)),
        _array("stiffness", part.stiffness, (k, k)), _array("damping", part.damping, (k, k)),
        _read_integrals(part.integrals, k), {name: _whole(f"node {name!r}", x) for name, x in part.names.items()},
        part.inertia, part.clamped, more,
        None if part.forces is None else _array("forces", part.forces, (n, 6, k)),
        None if part.stresses is None else _read_stresses(part.stresses, k),
        None if part.edges is None else _array("edges", part.edges, (len(part.edges), 2)).astype(np.int64))


def _whole(what: str, value: float) -> int:
    if value != int(value):
        raise ModelError(f"{what}: needs whole numbers, got {value}")
    return int(value)


def _dump_integrals(integrals: ShapeIntegrals) -> dict[str, Any]:
    return {"mass": float(integrals.mass), **{name: _rows(getattr(integrals, name)) for name in _INTEGRALS}}


def _read_integrals(part: schema.IntegralsPart, k: int) -> ShapeIntegrals:
    arrays = [_array(f"integrals: {name}", getattr(part, name), tuple(k if c == "k" else int(c) for c in shape))
              for name, shape in _INTEGRALS.items()]
    return ShapeIntegrals(part.mass, *arrays)


def _rows(values: Floats) -> list[Any]:
    flat: list[Any] = values.tolist() if values.ndim < 3 else values.reshape(len(values), -1).tolist()
    return flat


def _array(what: str, rows: Any, shape: tuple[int, ...]) -> Floats:
    try:
        found = np.array(rows, dtype=float)
    except ValueError:
        raise ModelError(f"{what}: rows have different lengths") from None
    if found.size != int(np.prod(shape)):
        raise ModelError(f"{what}: needs {' x '.join(map(str, shape))} numbers, got {found.size}")
    made = found.reshape(shape)
    made.setflags(write=False)
    return made


# -- ready-made force elements in model files: what they are, written and read ----------------------
#: what ready-made elements are called in files, and the methods that say what they take and what is usual
_READY: dict[type, tuple[str, Callable[..., Any]]] = {
    GasSpring: ("gas_spring", Mechanism.add_gas_spring), BumpStop: ("bump_stop", Mechanism.add_bump_stop),
    HydraulicCylinder: ("hydraulic_cylinder", Mechanism.add_hydraulic_cylinder),
    TorsionBar: ("torsion_bar", Mechanism.add_torsion_bar), Belt: ("belt", Mechanism.add_belt),
    DcMotor: ("dc_motor", Mechanism.add_dc_motor), Bristle: ("brake", Mechanism.add_brake),
    RollingResistance: ("rolling_resistance", Mechanism.add_rolling_resistance), Tyre: ("tyre", Mechanism.add_tyre)}


class Writes(Protocol):
    """What writes numbers and laws: see `dump`."""

    def number(self, value: Any, what: str) -> float | str: ...

    def declared(self, record: Any, adder: Callable[..., Any], what: str, *without: str) -> dict[str, Any]: ...

    def formula(self, law: Callable[..., Any], arguments: tuple[str, ...], what: str) -> str: ...


def dump_ready(law: object, on: dict[str, Any], what: str, write: Writes) -> dict[str, Any] | None:
    """A ready-made element as what it is, or None for other forces; `on` says where it acts."""
    inner = law.law if isinstance(law, MachineForce) else law
    more: dict[str, Any] = {}
    match inner:
        case CylinderForce(element) | MotorTorque(element) | BristleForce(element):
            inner = element
        case GasSpring():
            more = {"force": write.number(inner.push, what)}
        case Belt():
            (one, first), (two, second) = on.pop("joint").items()
            more = {"pulleys": {one: first, two: f"-({second})" if isinstance(second, str) else -second}}
        case Tyre():
            more = _of_tyre(inner, what, write)
    if type(inner) not in _READY:
        return None
    kind, adder = _READY[type(inner)]
    return {"type": kind, **on, **more, **write.declared(inner, adder, what, "force", "height")}


def _of_tyre(tyre: Tyre, what: str, write: Writes) -> dict[str, Any]:
    found: dict[str, Any] = {} if tyre.model == "brush" else {"model": tyre.model}
    if tyre.transient:
        found["relaxation"] = list(tyre.relaxation)
    if tyre.coefficients is not None:
        found["coefficients"] = dict(tyre.coefficients.values)
    if tyre.mirrored:
        found["mirrored"] = True
    if any(tyre.center):
        found["center"] = list(tyre.center)
    if tyre.axle != (0.0, 1.0, 0.0):
        found["axle"] = list(tyre.axle)
    if tyre.height is not None:
        found["height"] = write.formula(tyre.height, ("x", "y"), f"{what}: height")
    return found


def element_of_state(state: AddedState) -> str | None:
    """The ready-made element that a state belongs to."""
    match state.rate:
        case PressureRate(cylinder):
            return cylinder.name
        case CurrentRate(motor):
            return motor.name
        case BristleRate(bristle):
            return bristle.name
        case TyreRate(tyre):
            return tyre.name
        case BendRate(contact):
            return contact
    return None


def states_last(mechanism: Mechanism) -> bool:
    """Whether the bodies and joints of states come after all others, in the order of states."""
    names = [state.name for state in mechanism.states]
    last = slice(-len(names), None) if names else slice(0)
    return all([part.name for part in parts[last]] == names for parts in (mechanism.bodies, mechanism.joints))
