"""A `Mechanism` as plain data in the form of model files: mappings, lists, text and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from inspect import signature
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.io.common.model_meshes import MeshStore
from bellcrank.io.common.xml import control_character
from bellcrank.io.native.formula import table_word, traced_law, written
from bellcrank.io.native.part_files import KINDS, dump_flexible, dump_ready, dump_shape, element_of_state, states_last
from bellcrank.io.native.trace import FormulaProgram, TooLongError, from_scalar, trace, trace_several
from bellcrank.mechanism import forces, joints
from bellcrank.mechanism.carried_joints import frame_parameters
from bellcrank.mechanism.contact.contact_material import PlacedContact
from bellcrank.mechanism.flexible.deformation import Modal, NodeMotion
from bellcrank.mechanism.geometry.placed_shape import PlacedShape
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.mechanism import Body, Connection, Mechanism
from bellcrank.mechanism.motion import Fixed, parametric
from bellcrank.mechanism.parts import AddedState, Constraint, Coupler, FirstOrder, JointForce, JointSum, Spring
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["dump"]


# -- names, tables and defaults as model files hold them --------------------------------------------
def dump_table(table: Table) -> dict[str, Any]:
    """A table, one list of values for each point of the first of two arguments."""
    points = [list(axis) for axis in table.points]
    values: list[Any] = list(table.values)
    if len(points) == 2:
        width = len(points[1])
        values = [values[i:i + width] for i in range(0, len(values), width)]
    return {"points": points if len(points) == 2 else points[0], "values": values, "kind": table.kind,
            "extrapolate": table.extrapolate, **({"name": table.name} if table.name != table_word(table) else {})}


def is_default(value: Any, default: float | None) -> bool:
    """Whether a number is the default, sign of zero included."""
    return (isinstance(value, float) and default is not None and value == default
            and math.copysign(1.0, value) == math.copysign(1.0, default))


def writable(name: Any, what: str, *, empty: bool = False) -> str:
    """A name that a file in UTF-8 can hold."""
    try:
        if not isinstance(name, str) or not (name or empty):
            raise ModelError(f"{what} names are texts, got {name!r}")
        name.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{what} {name!r}: the name holds half of a character and cannot be written") from None
    found = control_character(name)
    if found is not None:
        raise ModelError(f"{what} {name!r}: the name holds the control character {found} and cannot be written")
    return name


def by_name(parts: Iterable[Any], what: str, made: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Parts by their names."""
    return {writable(part.name, what): made(part) for part in parts}


#: values that files leave out
_USUAL = {"offset": 0.0}
_NAMED_AXES: dict[tuple[float, ...], str] = {
    (1.0, 0.0, 0.0): "x", (0.0, 1.0, 0.0): "y", (0.0, 0.0, 1.0): "z",
    (-1.0, 0.0, 0.0): "-x", (0.0, -1.0, 0.0): "-y", (0.0, 0.0, -1.0): "-z"}


@cache
def _declared(adder: Callable[..., Any]) -> tuple[tuple[str, Any], ...]:
    """What a method of `Mechanism` takes, and what is usual."""
    return tuple((name, parameter.default) for name, parameter in signature(adder).parameters.items())


def dump(mechanism: Mechanism, store: MeshStore) -> dict[str, Any]:
    """All that a mechanism holds; `ModelError` names the part that no file can hold. `store` names mesh files."""
    return _Dump(mechanism, store).document()


class _Dump:
    def __init__(self, mechanism: Mechanism, store: MeshStore) -> None:
        self.m = mechanism
        self.store = store
        self.parameters = tuple(mechanism.parameters)
        #: parameters that joints bring with them, for frames that are defined at closing
        self.frames = {label for name, side in mechanism.open_at_start.items() if side
                       for label in frame_parameters(name)}
        self.joint_names = {record.name for record in mechanism.joints}
        self.flexible = {r.name: r for r in mechanism.joints if isinstance(r.joint, Modal)}
        #: joints that come with other parts (states come last in any case), and the bodies that they move
        self.implied = (Modal, NodeMotion, FirstOrder) if states_last(mechanism) else (Modal, NodeMotion)
        self.parts = {r.child for r in mechanism.joints if isinstance(r.joint, self.implied)}
        self.states = {state.name for state in mechanism.states}
        self.tables: dict[str, Table] = {}  #: those that laws look something up in, as they are called
        self.bodies = ("ground", *(writable(b.name, "body") for b in mechanism.bodies))

    def document(self) -> dict[str, Any]:
        m = self.m
        for name in self.parameters:
            if not isinstance(name, str) or not name or not math.isfinite(m.parameters[name]):
                raise ModelError(f"parameter {name!r}: needs a name and a finite value, got {m.parameters[name]!r}")
        sections: dict[str, dict[str, Any]] = {
            "parameters": {writable(k, "parameter"): float(v) for k, v in m.parameters.items() if k not in self.frames},
            "tables": {},
            "bodies": {b.name: self.body(b) for b in m.bodies if b.index not in self.parts},
            "joints": by_name([r for r in m.joints if not isinstance(r.joint, self.implied)], "joint", self.joint),
            "states": by_name(m.states, "state", self.state),
            "frames": by_name(m.frames, "frame", lambda f: {
                "body": self.bodies[f.body], "pose": self.pose(f.pose, f"frame {f.name!r}")}),
            "couplers": by_name(m.couplers, "coupler", self.coupler),
            "constraints": by_name(m.constraints, "constraint", self.constraint),
            "springs": by_name(m.springs, "spring", self.spring),
            "bushings": by_name(m.bushings, "bushing", self.bushing),
            "drags": by_name(m.drags, "drag", self.drag), "wrenches": by_name(m.wrenches, "wrench", self.wrench),
            "joint_forces": by_name((*m.joint_forces, *m.joint_sums), "joint force", self.joint_force),
            "actuators": by_name(m.drives, "actuator", self.actuator),
            "ranges": {writable(joint, "joint"): {
                end: x for end, x in zip(("lower", "upper"), ends, strict=True) if math.isfinite(x)}
                for joint, ends in m.ranges.items()},
            "armatures": by_name(m.armatures, "armature", lambda a: {
                **self.on(a), "inertia": self.number(a.inertia, f"armature {a.name!r}")}),
            "shapes": by_name(m.shapes, "shape", self.shape),
            "contacts": by_name(m.contacts, "contact", self.contact),
            "contact_rules": by_name(m.contact_rules, "contact rule", lambda r: {
                "first": r.first, "second": r.second, **({} if r.touch else {"touch": False}),
                **({} if r.friction is None else {"friction": r.friction})}),
            "outputs": by_name(m.outputs, "output", lambda o: {
                "law": self.of_machine(o.law, f"output {o.name!r}"), "units": o.units})}
        sections["tables"] = {word: dump_table(table) for word, table in self.tables.items()}
        return {"bellcrank": 1, "name": writable(m.name, "mechanism", empty=True),
                "gravity": self.numbers(m.gravity, "gravity"),
                **({"larger_friction": True} if m.larger_friction else {}), **{k: v for k, v in sections.items() if v}}

    def state(self, state: AddedState) -> dict[str, Any]:
        what, element = f"state {state.name!r}", element_of_state(state)
        own = {"rate": self.of_machine(state.rate, what), "units": state.units} if element is None else {
            "element": element}
        return {**own, "initial": self.number(state.initial, what)}

    # -- numbers and laws ---------------------------------------------------------------------
    def number(self, value: Number, what: str) -> float | str:
        if isinstance(value, Scalar):
            if not self.m.owns(value):
                raise ModelError(f"{what} uses a parameter of another mechanism")
            try:
                return written(from_scalar(value, self.parameters))
            except TooLongError as error:
                raise ModelError(f"{what}: the formula of parameters takes {error}, and a file holds no "
                                 "more; make a parameter of its result") from None
        found = float(value)
        if not math.isfinite(found):
            raise ModelError(f"{what}: {found} is not finite")
        return found

    def numbers(self, values: Iterable[Number], what: str) -> list[float | str]:
        return [self.number(v, what) for v in values]

    def timed(self, values: Sequence[Any], what: str) -> list[Any]:
        """Numbers, parameters and functions of time."""
        return [self.of_time(v, what) if callable(v) else self.number(v, what) for v in values]

    def formula(self, law: Callable[..., Any], arguments: tuple[str, ...], what: str) -> str:
        """The text of a law."""
        return self.text(trace(law, arguments, what), arguments, what)

    def text(self, program: FormulaProgram, arguments: Sequence[str], what: str) -> str:
        """The text of a program; tables in it are noted."""
        for step in program.steps:
            if isinstance(step.op, Table):
                known = self.tables.setdefault(table_word(step.op), step.op)
                if known != step.op:
                    raise ModelError(f"{what}: two tables are called {step.op.name!r}; give them names of their own")
        return written(program, arguments)

    def of_machine(self, law: Callable[[Any], Any], what: str, several: bool = False) -> dict[str, Any]:
        """A law of the machine."""
        try:
            programs, keys = traced_law(law, what, several)
        except ModelError:
            raise
        except (TypeError, ValueError, AttributeError) as error:
            raise ModelError(f"{what}: its law cannot be written as a formula ({error})") from None
        names = tuple(f"r{i + 1}" for i in range(len(keys)))
        return {"formulas": [self.text(p, names, what) for p in programs], "reads": [list(key) for key in keys]}

    def of_time(self, law: Callable[..., Any], what: str) -> Any:
        program = trace(law, ("t",), what)
        text = self.text(program, ("t",), what)
        return text if program.uses("t") else {"law": text}

    def given(self, record: Any, names: Sequence[str], what: str, **defaults: float) -> dict[str, Any]:
        """Numbers that are not the default ones."""
        found = {name: getattr(record, name) for name in names}
        return {name: self.number(value, f"{what}: {name}") for name, value in found.items()
                if value is not None and not is_default(value, defaults.get(name))}

    def declared(self, record: Any, adder: Callable[..., Any], what: str, *without: str) -> dict[str, Any]:
        """Numbers and laws of the machine that a method of `Mechanism` takes, but for usual numbers."""
        found: dict[str, Any] = {}
        for name, usual in _declared(adder):
            value = getattr(record, name, None)
            if name in without:
                continue
            if callable(value):
                found[name] = self.of_machine(value, what)
            elif isinstance(value, (float, Scalar)) and not is_default(value, usual):
                found[name] = self.number(value, f"{what}: {name}")
        return found

    # -- parts --------------------------------------------------------------------------------
    def inertia(self, inertia: Inertia, what: str) -> dict[str, Any]:
        made = self.given(inertia, ("mass",), what, mass=0.0)
        if not all(is_default(x, 0.0) for x in inertia.com):
            made["com"] = self.numbers(inertia.com, f"{what}: com")
        xx, xy, xz, yy, yz, zz = inertia.inertia
        if not all(is_default(x, 0.0) for x in (xy, xz, yz)):
            made["inertia"] = self.numbers(inertia.inertia, f"{what}: inertia")
        elif not all(is_default(x, 0.0) for x in (xx, yy, zz)):
            made["inertia"] = self.numbers((xx, yy, zz), f"{what}: inertia")
        return made if inertia.problem() is None else {**made, "checked": False}

    def body(self, body: Body) -> dict[str, Any]:
        record = self.flexible.get(body.name)
        if record is not None and isinstance(record.joint, Modal):
            made = dump_flexible(record.joint.body)
            if record.prescribed is not None:
                made["prescribed"] = self.prescribed(record, f"body {body.name!r}")
            return {"flexible": made}
        if body.name in self.states:
            return {"state": True}
        made = self.inertia(body.inertia, f"body {body.name!r}")
        return {**made, "present": False} if body.name in self.m.absent_at_start else made

    def ends(self, record: Any, what: str) -> dict[str, Any]:
        """The poses of a joint or constraint, and whether it is open at the start."""
        side = self.m.open_at_start.get(record.name)
        if side is None:
            return self.poses(record, ("parent_pose", "child_pose"), what)
        if not side:
            return {**self.poses(record, ("parent_pose", "child_pose"), what), "closed": False}
        given = "parent_pose" if side == "child" else "child_pose"
        place = getattr(record, given)
        if any(isinstance(x, Scalar) for x in place.rows):  # the axes of a weld mean nothing
            record = replace(record, **{given: Pose(place.position)})
        return {**self.poses(record, (given,), what), "closed": False, "at_closing": side}

    def pose(self, pose: Pose, what: str) -> Any:
        position = self.numbers(pose.position, what)
        if pose.rows == IDENTITY_ROWS:
            return position
        rows = self.numbers(pose.rows, what)
        turn = {"rotation": [rows[0:3], rows[3:6], rows[6:9]]}
        return turn if all(is_default(x, 0.0) for x in pose.position) else {"position": position, **turn}

    def poses(self, record: Any, names: Sequence[str], what: str) -> dict[str, Any]:
        """The poses that are not where the bodies are."""
        found = {name: self.pose(getattr(record, name), what) for name in names}
        return {name: pose for name, pose in found.items()
                if not (isinstance(pose, list) and all(is_default(x, 0.0) for x in pose))}

    def kind(self, kind: object, what: str) -> dict[str, Any]:
        """Type and own values of a joint or constraint."""
        if type(kind) not in KINDS:
            raise ModelError(f"{what}: the type {type(kind).__name__} is none of Bellcrank's own and cannot be written")
        name, own = KINDS[type(kind)]
        made: dict[str, Any] = {"type": name}
        for label in own:
            value = getattr(kind, label)
            if label not in _USUAL or not is_default(value, _USUAL[label]):
                made[label] = self.axis(value) if isinstance(value, tuple) else self.timed([value],
                                                                                           f"{what}: {label}")[0]
        if isinstance(kind, joints.Free) and kind.start != Pose():
            made["start"] = self.pose(kind.start, what)
        return made

    def axis(self, axis: tuple[float, ...]) -> Any:
        return _NAMED_AXES.get(axis) or self.numbers(axis, "axis")

    def joint(self, record: Connection) -> dict[str, Any]:
        what = f"joint {record.name!r}"
        if isinstance(record.joint, FirstOrder):
            return {"type": "state"}
        made = {**self.kind(record.joint, what), "parent": self.bodies[record.parent],
                "child": self.bodies[record.child]}
        if self.m.in_design_position(record.parent or record.child) and not self.m.open_at_start.get(record.name):
            made["at"] = self.numbers(record.parent_pose.position, what)
            if record.name in self.m.open_at_start:
                made["closed"] = False
        else:
            made |= self.ends(record, what)
        if record.prescribed is not None:
            made["prescribed"] = self.prescribed(record, what)
        return made

    def prescribed(self, record: Connection, what: str) -> Any:
        driven = record.prescribed
        assert driven is not None
        if driven.whole is not None:
            programs = trace_several(driven.whole, ("t",), what, record.joint.nq)
            return [self.text(p, ("t",), what) for p in programs]
        names = record.joint.coordinate_names()
        return {name: self.formula(law, ("t",), f"{what}: {name}")
                for name, law in zip(names, driven.laws, strict=True) if law is not None}

    def coupler(self, coupler: Coupler) -> dict[str, Any]:
        what = f"coupler {coupler.name!r}"
        factors = {}
        for joint, coordinate, factor in coupler.terms:
            key = self.key(joint, coordinate, what)
            law = factor if callable(factor) else parametric(Fixed(factor), 1)
            factors[key] = factor if isinstance(factor, float) else self.formula(law, ("q",), what)
        if is_default(coupler.offset, 0.0):
            return {"factors": factors}
        return {"factors": factors, "offset": self.timed([coupler.offset], f"{what}: offset")[0]}

    def key(self, joint: str, coordinate: int, what: str) -> str:
        """The name of a coordinate in a sum."""
        names = self.m.joint(joint).joint.coordinate_names()
        key = joint if len(names) == 1 else f"{joint}.{names[coordinate]}"
        if key != joint and key in self.joint_names:
            raise ModelError(f"{what}: {key!r} is the name of a joint and of a coordinate; rename the joint")
        return key

    def constraint(self, record: Constraint) -> dict[str, Any]:
        what = f"constraint {record.name!r}"
        return {**self.kind(record.kind, what), "parent": self.bodies[record.parent],
                "child": self.bodies[record.child], **self.ends(record, what)}

    # -- forces -------------------------------------------------------------------------------
    def along(self, along: object, rest: str, what: str) -> dict[str, Any]:
        """A spring's law."""
        match along:
            case forces.LinearSpring():
                made = self.given(along, ("stiffness", "damping", "rest"), what, stiffness=0.0, damping=0.0, rest=0.0)
                return {rest if name == "rest" else name: value for name, value in made.items()}
            case forces.PotentialSpring():
                return {"potential": self.formula(along.potential, ("x",), what),
                        **self.given(along, ("damping",), what, damping=0.0)}
            case forces.LawForce():
                return {"law": self.formula(along.law, ("x", "rate"), what)}
            case forces.MachineForce():
                return {"machine_law": self.of_machine(along.law, what)}
        raise ModelError(f"{what}: the force {type(along).__name__} is none of Bellcrank's own and cannot be written")

    def spring(self, spring: Spring) -> dict[str, Any]:
        what = f"spring {spring.name!r}"
        ends = {"first": self.bodies[spring.first], "second": self.bodies[spring.second],
                "first_point": self.numbers(spring.first_point, what),
                "second_point": self.numbers(spring.second_point, what)}
        return dump_ready(spring.along, ends, what, self) or {**ends, **self.along(spring.along, "length", what)}

    def joint_force(self, force: JointForce | JointSum) -> dict[str, Any]:
        what, along = f"joint force {force.name!r}", force.along
        ready = dump_ready(along, self.on(force), what, self)
        if ready is not None:
            return ready
        if isinstance(along, forces.Friction):
            return {"type": "friction", **self.on(force), **self.declared(along, Mechanism.add_friction, what)}
        if isinstance(along, forces.Limit):
            return {"type": "limit", **self.on(force), **self.declared(along, Mechanism.add_limit, what)}
        if isinstance(along, forces.Servo):
            aims = {name: self.timed([getattr(along, name)], f"{what}: {name}")[0]
                    for name in ("target", "target_rate", "offset")}
            return {"type": "servo", **self.on(force), **{k: v for k, v in aims.items() if not is_default(v, 0.0)},
                    **self.given(along, ("stiffness", "damping", "lower", "upper"), what, stiffness=0.0, damping=0.0)}
        kind = "law" if isinstance(along, (forces.LawForce, forces.MachineForce)) else "spring"
        return {"type": kind, **self.on(force), **self.along(along, "rest", what)}

    def on(self, record: Any) -> dict[str, Any]:
        """The joint and, if it has several, the coordinate; or the factors of a sum."""
        if isinstance(record, JointSum):
            what = f"joint force {record.name!r}"
            return {"joint": {self.key(j, i, what): self.number(f, what) for j, i, f in record.terms}}
        kind = self.m.joint(record.joint).joint
        names = kind.coordinate_names() if kind.nq == kind.nu else kind.speed_names
        one = len(names) > 1 and record.coordinate >= 0
        return {"joint": record.joint, **({"coordinate": names[record.coordinate]} if one else {})}

    def actuator(self, drive: Any) -> dict[str, Any]:
        names = ("limit", "no_load_speed", "lower")
        return {**self.on(drive), **self.given(drive.actuator, names, f"actuator {drive.name!r}")}

    def bushing(self, made: Any) -> dict[str, Any]:
        what = f"bushing {made.name!r}"
        fields = {name: self.numbers(getattr(made.bushing, name), f"{what}: {name}")
                  for name in ("stiffness", "turn_stiffness", "damping", "turn_damping")}
        return {"first": self.bodies[made.first], "second": self.bodies[made.second],
                **self.poses(made, ("first_pose", "second_pose"), what),
                **{k: v for k, v in fields.items() if not all(is_default(x, 0.0) for x in v)},
                **({"measure": made.bushing.measure} if made.bushing.measure != "chord" else {})}

    def drag(self, made: Any) -> dict[str, Any]:
        what = f"drag {made.name!r}"
        return {"body": self.bodies[made.body], **self._three("at", self.numbers(made.at, what)),
                **self.declared(made.drag, Mechanism.add_drag, what),
                **self._three("wind", self.timed(made.drag.wind, f"{what}: wind"))}

    def shape(self, placed: PlacedShape) -> dict[str, Any]:
        return {"body": self.bodies[placed.body], **dump_shape(placed.shape, placed.name, self.store),
                **self.poses(placed, ("pose",), f"shape {placed.name!r}"),
                **({} if placed.color is None else {"color": list(placed.color)}),
                **({"role": placed.role} if placed.role != "visual" else {}),
                **({} if placed.friction is None else {"friction": placed.friction}),
                **({} if placed.groups == (1, 1) else {"groups": [float(g) for g in placed.groups]})}

    def contact(self, made: PlacedContact) -> dict[str, Any]:
        names = ("stiffness", "dissipation", "restitution", "friction", "slip_speed", "exponent", "reach",
                 "bend_damping")
        return {"first": made.shape_names[0], "second": made.shape_names[1], **self.given(
            made.material, tuple(name for name in names if hasattr(made.material, name)), f"contact {made.name!r}",
            dissipation=0.0, restitution=0.0, friction=0.0, slip_speed=1e-3, exponent=1.0, reach=1e-4,
            bend_damping=1e-2), **({"friction_model": "bristle"} if made.bends else {})}

    def wrench(self, wrench: Any) -> dict[str, Any]:
        what = f"wrench {wrench.name!r}"
        ready = dump_ready(wrench.law, {"body": self.bodies[wrench.body]}, what, self)
        if ready is not None:
            return ready
        if wrench.law is not None:
            return {"body": self.bodies[wrench.body], "machine_law": self.of_machine(wrench.law, what, True),
                    **self._three("at", self.numbers(wrench.at, what)), "axes": wrench.axes}
        return {"body": self.bodies[wrench.body], **self._three("force", self.timed(wrench.force, f"{what}: force")),
                **self._three("moment", self.timed(wrench.moment, f"{what}: moment")),
                **self._three("at", self.numbers(wrench.at, what)), "axes": wrench.axes}

    @staticmethod
    def _three(name: str, values: list[Any]) -> dict[str, Any]:
        return {} if all(is_default(x, 0.0) for x in values) else {name: values}
