"""Shapes, flexible bodies and ready-made force elements in model files: written and read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np

import bellcrank.io.native.part_schema as schema
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.io.common.model_meshes import MeshFinder, MeshStore
from bellcrank.io.native.formula import Formula
from bellcrank.mechanism import ready_made
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
from bellcrank.mechanism.table import Table

__all__ = ["add_ready_joint_force", "add_ready_spring", "add_tyre", "dump_flexible", "dump_ready", "dump_shape",
           "element_of_state", "element_states", "read_flexible", "read_solid", "states_last"]


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
#: names of plain numbers of elements in files, those left out where they are usual, and the usual values
_NUMBERS: dict[type, dict[str, float | None]] = {
    GasSpring: {"length": None, "reach": None, "exponent": 1.0, "damping": 0.0},
    BumpStop: {"lower": None, "upper": None, "stiffness": None, "progression": 0.0, "damping": 0.0, "onset": 1e-3},
    HydraulicCylinder: {"head_area": None, "rod_area": None, "closed": None, "stroke": None, "dead_volume": 1e-4,
                        "bulk_modulus": 1.4e9, "leakage": 0.0, "friction": 0.0, "gain": 0.0, "supply": 2e7,
                        "tank": 1e5},
    TorsionBar: {"length": None, "diameter": None, "bore": 0.0, "shear_modulus": 79e9, "damping": 0.0, "rest": 0.0},
    Belt: {"stiffness": None, "pretension": 0.0, "damping": 0.0, "slack": 0.0},
    DcMotor: {"resistance": None, "inductance": None, "constant": None, "gear": 1.0, "friction": 0.0},
    Bristle: {"reach": 1e-3, "damping": 1e-3},
    RollingResistance: {"coefficient": None, "radius": None, "speed": 1e-2},
    Tyre: {"radius": None, "stiffness": None, "damping": 0.0, "mu": 1.0, "slope": 20.0, "c": 1.65, "e": 0.0,
           "slowest": 0.1, "half_length": 0.0, "rolling": 0.0, "settling": 0.05}}


class Writes(Protocol):
    """What writes numbers and laws: see `dump`."""

    def number(self, value: Any, what: str) -> float | str: ...

    def given(self, record: Any, names: Sequence[str], what: str, **defaults: float) -> dict[str, Any]: ...

    def of_machine(self, law: Callable[[Any], Any], what: str, several: bool = False) -> dict[str, Any]: ...

    def formula(self, law: Callable[..., Any], arguments: tuple[str, ...], what: str) -> str: ...


class Reads(Protocol):
    """What reads numbers and laws: see `build`."""

    m: Mechanism

    def number(self, value: float | str) -> Any: ...

    def numbers(self, values: Sequence[float | str]) -> tuple[Any, ...]: ...

    def law(self, text: float | str, *arguments: str) -> Formula: ...

    def on(self, joint: Any) -> Any: ...

    def machine_law(self, part: Any) -> Any: ...


# -- writing --------------------------------------------------------------------------------------
def dump_ready(law: object, on: dict[str, Any], what: str, write: Writes) -> dict[str, Any] | None:
    """A ready-made element as what it is, or None for other forces; `on` says where it acts."""
    inner = law.law if isinstance(law, MachineForce) else law

    def made(kind: str, element: Any, **more: Any) -> dict[str, Any]:
        usual = _NUMBERS[type(element)]
        return {"type": kind, **on, **more, **write.given(
            element, tuple(usual), what, **{k: v for k, v in usual.items() if v is not None})}

    def or_law(value: Any) -> Any:
        return write.of_machine(value, what) if callable(value) else write.number(value, what)

    match inner:
        case GasSpring():
            return made("gas_spring", inner, force=write.number(inner.push, what))
        case BumpStop():
            return made("bump_stop", inner)
        case TorsionBar():
            return made("torsion_bar", inner)
        case Belt():
            (one, first), (two, second) = on.pop("joint").items()
            negative = f"-({second})" if isinstance(second, str) else -second
            return made("belt", inner, pulleys={one: first, two: negative})
        case CylinderForce(cylinder):
            opening = {} if cylinder.opening is None else {"opening": or_law(cylinder.opening)}
            return made("hydraulic_cylinder", cylinder, **opening)
        case MotorTorque(motor):
            return made("dc_motor", motor, voltage=or_law(motor.voltage))
        case BristleForce(bristle):
            return made("brake", bristle, capacity=or_law(bristle.capacity))
        case RollingResistance():
            return made("rolling_resistance", inner, load=or_law(inner.load))
        case Tyre():
            return made("tyre", inner, **_of_tyre(inner, what, write))
    return None


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


# -- reading --------------------------------------------------------------------------------------
def _numbers(kind: type, part: Any, read: Reads) -> dict[str, Any]:
    found = {name: getattr(part, name) for name in _NUMBERS[kind]}
    return {name: value if value is None else read.number(value) for name, value in found.items()}


def _or_law(value: Any, read: Reads) -> Any:
    return read.number(value) if isinstance(value, (float, str)) else read.machine_law(value)


def _cylinder(name: str, part: Any, read: Reads) -> HydraulicCylinder:
    opening = None if part.opening is None else _or_law(part.opening, read)
    return ready_made.cylinder(name, opening, **_numbers(HydraulicCylinder, part, read))


def _motor(name: str, part: Any, read: Reads) -> DcMotor:
    return ready_made.dc_motor(name, part.joint, voltage=_or_law(part.voltage, read), **_numbers(DcMotor, part, read))


def _bristle(name: str, part: Any, read: Reads) -> Bristle:
    return ready_made.bristle(name, capacity=_or_law(part.capacity, read), **_numbers(Bristle, part, read))


def _tyre(name: str, part: Any, read: Reads) -> Tyre:
    height: Any = None
    if part.height is not None:
        height = read.law(part.height, "x", "y")
        step = height.program.steps[0] if len(height.program.steps) == 1 else None
        if step is not None and isinstance(step.op, Table) and step.args == (0, 1):
            height = step.op  # the table itself
    return ready_made.tyre(name, part.body, model=part.model, mirrored=part.mirrored, coefficients=part.coefficients,
                           center=part.center, axle=part.axle,
                           relaxation=(0.0, 0.0) if part.relaxation is None else tuple(part.relaxation), height=height,
                           **_numbers(Tyre, part, read))


def element_states(name: str, part: Any, read: Reads) -> dict[str, tuple[Callable[[Any], Any], str, float]]:
    """Names of the states of a ready-made element: the rate of each, its units and where it begins."""
    match getattr(part, "type", None):
        case "hydraulic_cylinder":
            made = _cylinder(name, part, read)
            ends = (made.head, True), (made.rod, False)
            return {label: (PressureRate(made, head), "MPa", 0.1) for label, head in ends}
        case "dc_motor":
            motor = _motor(name, part, read)
            return {motor.current: (CurrentRate(motor), "A", 0.0)}
        case "brake":
            bristle = _bristle(name, part, read)
            return {bristle.bend: (BristleRate(bristle), "1", 0.0)}
        case "tyre" if part.relaxation is not None:
            tyre = _tyre(name, part, read)
            return {label: (TyreRate(tyre, k), "m", 0.0) for k, label in enumerate(tyre.bent)}
    return {}


def add_ready_spring(name: str, part: Any, read: Reads) -> None:
    """A gas spring, bump stop or cylinder."""
    ends = part.first, part.second, read.numbers(part.first_point), read.numbers(part.second_point)
    match part.type:
        case "gas_spring":
            read.m.add_gas_spring(name, *ends, force=read.number(part.force), **_numbers(GasSpring, part, read))
        case "bump_stop":
            read.m.add_bump_stop(name, *ends, **_numbers(BumpStop, part, read))
        case _:
            read.m.add_force_between(name, *ends, CylinderForce(_cylinder(name, part, read)))


def add_ready_joint_force(name: str, part: Any, read: Reads) -> None:
    """What acts on joints."""
    match part.type:
        case "torsion_bar":
            read.m.add_torsion_bar(name, read.on(part.joint), coordinate=part.coordinate,
                                   **_numbers(TorsionBar, part, read))
        case "belt":
            read.m.add_belt(name, read.on(part.pulleys), **_numbers(Belt, part, read))
        case "dc_motor":
            read.m.add_joint_force(name, read.on(part.joint), MotorTorque(_motor(name, part, read)))
        case "brake":
            read.m.add_joint_force(name, read.on(part.joint), BristleForce(_bristle(name, part, read)), part.coordinate)
        case "rolling_resistance":
            read.m.add_rolling_resistance(name, part.joint, load=_or_law(part.load, read),
                                          **_numbers(RollingResistance, part, read))
        case _:
            raise ModelError(f"joint force {name!r}: there is no type {part.type!r}")


def add_tyre(name: str, part: Any, read: Reads) -> None:
    """A tyre on its wheel."""
    law = _tyre(name, part, read)
    read.m.add_wrench(name, part.body, at=law.center, law=law)
