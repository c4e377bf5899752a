"""From the checked content of a model file to a `Mechanism`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import bellcrank.io.native.schema as schema
from bellcrank.errors import FileError, ModelError, hint
from bellcrank.io.common.model_meshes import MeshFinder, NotFoundError
from bellcrank.io.native.formula import Formula, parse, table_word
from bellcrank.io.native.machine_laws import WrittenLaw
from bellcrank.io.native.part_files import (
    add_ready_joint_force,
    add_ready_spring,
    add_tyre,
    element_states,
    read_flexible,
    read_solid,
)
from bellcrank.io.native.part_schema import ContactPart, ContactRulePart, CouplerPart, ShapePart
from bellcrank.io.native.schema_part import MachineLawPart
from bellcrank.io.native.source_lines import Marked
from bellcrank.io.native.trace import run
from bellcrank.io.report import Note
from bellcrank.mechanism import constraints, joints
from bellcrank.mechanism.carried_joints import AT_CLOSING
from bellcrank.mechanism.contact.contact_material import BendRate
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.motion import Part
from bellcrank.mechanism.parts import FirstOrder
from bellcrank.mechanism.pose import Pose
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Symmetric3

__all__ = ["build"]


# -- what entries of a model file stand for: numbers, laws and poses, with the parameters and tables of the file ---
class FileValues:
    """Reads entries; parameters and tables are known from where they stand in the file."""

    def __init__(self) -> None:
        self.names: tuple[str, ...] = ()  #: of parameters
        self.values: tuple[Number, ...] = ()
        self.tables: tuple[Table, ...] = ()

    def number(self, value: float | str) -> Number:
        """A number, or what a formula of parameters stands for."""
        return value if isinstance(value, float) else run(parse(value, self.names), self.values)

    def numbers(self, values: Sequence[float | str]) -> tuple[Number, ...]:
        """Several of these."""
        return tuple(self.number(v) for v in values)

    def timed(self, values: Sequence[float | str]) -> tuple[Any, ...]:
        """Numbers, formulas of parameters and, if they name t, formulas of time."""
        return tuple(self.of_time(v) for v in values)

    def of_time(self, value: float | str) -> Any:
        """One of these."""
        if isinstance(value, float):
            return value
        if value.startswith("="):
            return self.law(value[1:], "t")
        law = self.law(value, "t")
        return law if law.program.uses("t") else self.number(value)

    def law(self, text: float | str, *arguments: str) -> Formula:
        """A formula of these arguments, and of parameters."""
        text = text if isinstance(text, str) else repr(text)
        made = Formula(text, arguments, self.tables, self.names, self.values)
        return made if made.parametric else Formula(text, arguments, self.tables)  # parsed now: mistakes show now

    def on(self, joint: str | dict[str, float | str]) -> str | dict[str, Number]:
        """A joint, or factors by joint."""
        return joint if isinstance(joint, str) else {key: self.number(factor) for key, factor in joint.items()}

    def machine_law(self, part: MachineLawPart) -> WrittenLaw:
        """A law of what it reads of the machine."""
        return WrittenLaw.of([x if isinstance(x, str) else repr(x) for x in part.formulas], part.reads, self.tables)

    def optional(self, **values: float | str | None) -> dict[str, Number]:
        """Those numbers that are given."""
        return {name: self.number(v) for name, v in values.items() if v is not None}

    def pose(self, pose: Any) -> Pose:
        """A place, by its position alone or with a rotation."""
        if pose is None:
            return Pose()
        if isinstance(pose, list):
            return Pose(self.numbers(pose))
        position = self.numbers(pose.position)
        if pose.rpy is not None:
            if pose.rotation is not None:
                raise ModelError("a pose has either rotation or rpy, not both")
            return Pose.rpy(position, *self.numbers(pose.rpy))
        if pose.rotation is None:
            return Pose(position)
        turn: Any = self.numbers(pose.rotation) if len(pose.rotation) == 4 else [self.numbers(r) for r in pose.rotation]
        return Pose(position, turn)

    def axis(self, axis: str | Sequence[float | str]) -> str | tuple[Number, ...]:
        """An axis, by its name or by numbers."""
        return axis if isinstance(axis, str) else self.numbers(axis)


def build(document: schema.Document, marks: Marked, source: str, finder: MeshFinder) -> tuple[Mechanism, list[Note]]:
    """The machine, and notes about meshes that are missing; what it objects to is told with the line of the file."""
    made = _Build(document, marks, source, finder)
    return made.mechanism(), made.notes


class _Build(FileValues):
    def __init__(self, document: schema.Document, marks: Marked, source: str, finder: MeshFinder) -> None:
        super().__init__()
        self.finder = finder
        self.notes: list[Note] = []
        self.document, self.marks, self.source = document, marks, source

    @contextmanager
    def at(self, *path: Any) -> Iterator[None]:
        """Complaints of the model, told with the place in the file."""
        try:
            yield
        except (ModelError, ArithmeticError, ValueError, TypeError) as error:
            if isinstance(error, FileError):
                raise
            text = str(error) if isinstance(error, ModelError) else f"cannot be computed: {error}"
            label = f"{schema.SINGULAR[path[0]]} {path[1]!r}" if path[0] in schema.SINGULAR else str(path[0])
            named = text if text.startswith(label) else f"{label}: {text}"
            raise FileError(f"{self.source}:{self.marks.find(path).line}: {named}") from None

    def mechanism(self) -> Mechanism:
        d = self.document
        m = self.m = Mechanism(d.name)
        for name, value in d.parameters.items():
            with self.at("parameters", name):
                self.values += (m.parameter(name, value),)
                self.names += (name,)
        with self.at("gravity"):
            m.gravity = self.numbers(d.gravity)
        for name, table in d.tables.items():
            with self.at("tables", name):
                self.tables += (Table(table.points, table.values, kind=table.kind, extrapolate=table.extrapolate,
                                      name=name if table.name is None else table.name),)
                if table_word(self.tables[-1]) != name:
                    raise ModelError(f"table {name!r}: formulas cannot call it so; write {table_word(self.tables[-1])}")
        for name, body in d.bodies.items():
            with self.at("bodies", name):
                self.body(name, body)
        for section, adder in (
                ("joints", self.joint), ("states", self.state), ("frames", self.frame), ("couplers", self.coupler),
                ("constraints", self.constraint), ("springs", self.spring), ("bushings", self.bushing),
                ("drags", self.drag), ("wrenches", self.wrench), ("joint_forces", self.joint_force),
                ("actuators", self.actuator), ("armatures", self.armature), ("ranges", self.range),
                ("shapes", self.shape), ("contacts", self.contact), ("contact_rules", self.contact_rule),
                ("outputs", self.output)):
            for name, part in getattr(d, section).items():
                with self.at(section, name):
                    adder(name, part)
        m.larger_friction = d.larger_friction
        return m

    # -- states, outputs, ranges ------------------------------------------------------------------
    def state(self, name: str, part: Any) -> None:
        rate, units, initial = self.state_of(name, part)
        self.m.add_state(name, rate, units=units, initial=initial)

    def state_of(self, name: str, part: Any) -> tuple[Any, str, Number]:
        """Rate, units and start of a state."""
        if part is None:
            raise ModelError(f"{name!r} is listed as the place of a state, but there is no state {name!r}")
        if (part.rate is None) == (part.element is None):
            raise ModelError(f"state {name!r}: give either a rate or the ready-made element it belongs to")
        if part.rate is not None:
            return self.machine_law(part.rate), part.units, 0.0 if part.initial is None else self.number(part.initial)
        bend = BendRate.called(name) if part.element in self.document.contacts else None
        if bend is not None and bend.contact == part.element:
            return bend, part.units, 0.0 if part.initial is None else self.number(part.initial)
        found = [made[name] for section in ("springs", "joint_forces", "wrenches")
                 for made in [self.states_of(section, part.element)] if name in made]
        if len(found) != 1:
            raise ModelError(f"state {name!r}: no element {part.element!r} has such a state")
        rate, units, usual = found[0]
        return rate, units, usual if part.initial is None else self.number(part.initial)

    def states_of(self, section: str, name: str) -> dict[str, Any]:
        """The states of an element by their names."""
        return element_states(name, getattr(self.document, section).get(name), self)

    def other_states(self, section: str, name: str) -> None:
        """States of an element that the file does not list."""
        for label, (rate, units, usual) in self.states_of(section, name).items():
            if label not in self.document.states:
                self.m.add_state(label, rate, units=units, initial=usual)

    def output(self, name: str, part: schema.OutputPart) -> None:
        self.m.add_output(name, self.machine_law(part.law), units=part.units)

    def range(self, name: str, part: schema.RangePart) -> None:
        self.m.set_range(name, -math.inf if part.lower is None else part.lower,
                         math.inf if part.upper is None else part.upper)

    # -- parts --------------------------------------------------------------------------------
    def body(self, name: str, body: schema.BodyPart) -> None:
        if body.state:
            if body.model_fields_set != {"state"} or getattr(self.document.joints.get(name), "type", "") != "state":
                raise ModelError(f"body {name!r}: the place of a state has nothing else, and a joint of the type state")
            self.m.add_body(name)
            return
        if body.flexible is None:
            self.m.add_body(name, self.inertia(body), present=body.present)
            return
        if body.model_fields_set != {"flexible"}:
            raise ModelError(f"body {name!r}: what deforms has its inertia in `flexible`; leave out the rest")
        self.m.add_body(name, read_flexible(body.flexible))
        for mode, law in (body.flexible.prescribed or {}).items():
            self.m.prescribe(name, self.law(law, "t"), mode)

    def inertia(self, body: schema.BodyPart) -> Inertia:
        given: Any = body.inertia
        if isinstance(given, list) and given and isinstance(given[0], list):
            inertia: Any = [self.numbers(row) for row in given]
        elif isinstance(given, list):
            if len(given) not in (3, 6):
                raise ModelError(f"inertia: needs one, three or six numbers or a matrix, got {len(given)} numbers")
            values = self.numbers(given)
            inertia = Symmetric3(*values) if len(values) == 6 else values
        else:
            inertia = self.number(given)
        return Inertia(self.number(body.mass), self.numbers(body.com), inertia, checked=body.checked)

    def ends(self, part: Any, what: str) -> tuple[Pose | str, Pose | str]:
        """The poses of a joint or constraint."""
        if part.at_closing is not None and getattr(part, f"{part.at_closing}_pose") is not None:
            raise ModelError(f"{what}: {part.at_closing}_pose is defined at closing and cannot be given")
        first, second = (AT_CLOSING if part.at_closing == side else self.pose(getattr(part, f"{side}_pose"))
                         for side in ("parent", "child"))
        return first, second

    def joint(self, name: str, part: Any) -> None:
        if part.type == "state":
            units = self.state_of(name, self.document.states.get(name))[1]
            if not getattr(self.document.bodies.get(name), "state", False):
                raise ModelError(f"joint {name!r}: the place of a state needs a body {name!r} with state: true")
            self.m.add_joint(name, FirstOrder(units), "ground", name)
            return
        match part.type:
            case "screw":
                kind: joints.Joint = joints.Screw(self.axis(part.axis), self.number(part.pitch))
            case "universal":
                kind = joints.Universal(self.axis(part.axis1), self.axis(part.axis2))
            case "planar":
                kind = joints.Planar(self.axis(part.normal))
            case "free":
                kind = joints.Free(self.pose(part.start))
            case "spherical" | "weld":
                kind = getattr(joints, part.type.capitalize())()
            case _:
                kind = getattr(joints, part.type.capitalize())(self.axis(part.axis))
        if part.at is not None:
            if part.parent_pose is not None or part.child_pose is not None:
                raise ModelError(f"joint {name!r}: give either `at` or parent_pose and child_pose, not both")
            if part.at_closing is not None:
                raise ModelError(f"joint {name!r}: give either `at` or `at_closing`, not both")
            self.m.add_joint(name, kind, part.parent, part.child, at=self.numbers(part.at), closed=part.closed)
        else:
            self.m.add_joint(name, kind, part.parent, part.child, *self.ends(part, f"joint {name!r}"),
                             closed=part.closed)
        if part.prescribed is not None:
            with self.at("joints", name, "prescribed"):
                self.prescribe(name, part.prescribed)

    def prescribe(self, name: str, given: Any) -> None:
        if isinstance(given, dict):
            for coordinate, text in given.items():
                self.m.prescribe(name, self.law(text, "t"), coordinate)
        elif isinstance(given, list):
            self.m.prescribe(name, _Whole(self.law(text, "t") for text in given))
        else:
            self.m.prescribe(name, self.law(given, "t"))

    def frame(self, name: str, part: schema.FramePart) -> None:
        self.m.add_frame(name, part.body, self.pose(part.pose))

    def coupler(self, name: str, part: CouplerPart) -> None:
        self.m.add_coupler(name, {key: self._coupled(name, key, factor) for key, factor in part.factors.items()},
                           self.of_time(part.offset))

    def _coupled(self, name: str, key: str, factor: float | str) -> Part:
        if isinstance(factor, float):
            return factor
        law = self.law(factor, "q")
        if not law.program.uses("q") and not law.parametric:
            raise ModelError(f"coupler {name!r}: {factor!r} of {key!r} is not a formula of q; write a factor as a "
                             "number, without quotes")
        return law if law.program.uses("q") else law(0.0)

    def constraint(self, name: str, part: Any) -> None:
        match part.type:
            case "distance":
                kind: object = constraints.Distance(self.of_time(part.length))
            case "point_on_line":
                kind = constraints.PointOnLine(self.axis(part.axis))
            case "angle":
                kind = constraints.Angle(self.of_time(part.angle), self.axis(part.axis), self.axis(part.child_axis))
            case "rolling_ball":
                kind = constraints.RollingBall(self.number(part.radius), self.axis(part.normal))
            case "rolling_disk":
                kind = constraints.RollingDisk(self.number(part.radius), self.axis(part.normal), self.axis(part.axis))
            case "knife_edge":
                kind = constraints.KnifeEdge(self.axis(part.across))
            case _:
                kind = constraints.PointOnPlane(self.axis(part.normal), self.of_time(part.offset))
        self.m.add_constraint(name, kind, part.parent, part.child, *self.ends(part, f"constraint {name!r}"),
                              closed=part.closed)

    # -- forces -------------------------------------------------------------------------------
    def spring(self, name: str, part: Any) -> None:
        if part.type != "spring":
            add_ready_spring(name, part, self)
            self.other_states("springs", name)
            return
        if part.law is not None and {"stiffness", "damping", "length"} & part.model_fields_set:
            raise ModelError(f"spring {name!r}: a law takes the place of stiffness, damping and length; "
                             "give one or the other")
        if part.machine_law is not None:
            self.m.add_force_between(name, part.first, part.second, self.numbers(part.first_point),
                                     self.numbers(part.second_point), self.machine_law(part.machine_law))
            return
        self.m.add_spring(name, part.first, part.second, self.numbers(part.first_point),
                          self.numbers(part.second_point), stiffness=self.number(part.stiffness),
                          damping=self.number(part.damping), length=self.number(part.length),
                          law=None if part.law is None else self.law(part.law, "x", "rate"),
                          potential=None if part.potential is None else self.law(part.potential, "x"))

    def bushing(self, name: str, part: schema.BushingPart) -> None:
        self.m.add_bushing(name, part.first, part.second, self.pose(part.first_pose), self.pose(part.second_pose),
                           stiffness=self.numbers(part.stiffness), turn_stiffness=self.numbers(part.turn_stiffness),
                           damping=self.numbers(part.damping), turn_damping=self.numbers(part.turn_damping),
                           measure=part.measure)

    def drag(self, name: str, part: schema.DragPart) -> None:
        self.m.add_drag(name, part.body, coefficient=self.number(part.coefficient), area=self.number(part.area),
                        density=self.number(part.density), at=self.numbers(part.at),
                        turn_linear=self.number(part.turn_linear), turn_quadratic=self.number(part.turn_quadratic),
                        wind=self.timed(part.wind))

    def wrench(self, name: str, part: Any) -> None:
        if part.type == "tyre":
            add_tyre(name, part, self)
            self.other_states("wrenches", name)
            return
        if part.machine_law is not None:
            self.m.add_wrench(name, part.body, at=self.numbers(part.at), axes=part.axes,
                              law=self.machine_law(part.machine_law))
            return
        self.m.add_wrench(name, part.body, force=self.timed(part.force), moment=self.timed(part.moment),
                          at=self.numbers(part.at), axes=part.axes)

    def joint_force(self, name: str, part: Any) -> None:
        match part.type:
            case "law":
                if (part.law is None) == (part.machine_law is None):
                    raise ModelError(f"joint force {name!r}: give either law or machine_law")
                law: Any = self.law(part.law, "x", "rate") if part.machine_law is None else self.machine_law(
                    part.machine_law)
                self.m.add_joint_force(name, self.on(part.joint), law, part.coordinate)
            case "friction":
                self.m.add_friction(name, self.on(part.joint), coordinate=part.coordinate, **self.optional(
                    coulomb=part.coulomb, viscous=part.viscous, speed=part.speed, static=part.static,
                    stribeck=part.stribeck))
            case "servo":
                if (part.lower is None) != (part.upper is None):
                    raise ModelError(f"servo {name!r}: give both lower and upper, or none")
                limit = None if part.lower is None else (self.number(part.lower), self.number(part.upper))
                target, rate, offset = self.timed((part.target, part.target_rate, part.offset))
                self.m.add_servo(name, self.on(part.joint), coordinate=part.coordinate, target=target, target_rate=rate,
                                 offset=offset, limit=limit,
                                 **self.optional(stiffness=part.stiffness, damping=part.damping))
            case "limit":
                self.m.add_limit(name, self.on(part.joint), coordinate=part.coordinate, **self.optional(
                    lower=part.lower, upper=part.upper, stiffness=part.stiffness, damping=part.damping,
                    onset=part.onset))
            case "spring":
                potential = None if part.potential is None else self.law(part.potential, "x")
                self.m.add_joint_spring(name, self.on(part.joint), coordinate=part.coordinate, potential=potential,
                                        **self.optional(stiffness=part.stiffness, damping=part.damping,
                                                        rest=part.rest))
            case _:
                add_ready_joint_force(name, part, self)
                self.other_states("joint_forces", name)

    def actuator(self, name: str, part: schema.ActuatorPart) -> None:
        limit: Any = self.number(part.limit)
        if part.lower is not None:
            limit = (self.number(part.lower), limit)
        self.m.add_actuator(name, part.joint, limit, coordinate=part.coordinate,
                            **self.optional(no_load_speed=part.no_load_speed))

    def armature(self, name: str, part: schema.ArmaturePart) -> None:
        self.m.add_armature(name, part.joint, self.number(part.inertia), part.coordinate)

    def shape(self, name: str, part: ShapePart) -> None:
        try:
            made = read_solid(part, self.finder, self.source)
        except NotFoundError as error:
            line = self.marks.find(("shapes", name)).line
            self.notes.append(Note("missing", "mesh", part.body, line, f"shape {name!r}: {error}"))
            return
        if any(g != int(g) for g in part.groups):
            raise ModelError(f"shape {name!r}: groups are two whole numbers")
        self.m.add_shape(part.body, made, self.pose(part.pose), color=part.color, name=name, role=part.role,
                         friction=part.friction, groups=(int(part.groups[0]), int(part.groups[1])))

    def contact_rule(self, name: str, part: ContactRulePart) -> None:
        made = self.m.set_contact_rule(part.first, part.second, touch=part.touch, friction=part.friction)
        if made.name != name:
            raise ModelError(f"contact rule {name!r}: it is called after its parts, {made.name!r}")

    def contact(self, name: str, part: ContactPart) -> None:
        shapes = {shape.name: shape for shape in self.m.shapes}
        for end in (part.first, part.second):
            if end not in shapes:
                raise ModelError(f"contact {name!r}: no shape called {end!r}{hint(end, list(shapes))}")
        self.m.add_contact(name, shapes[part.first], shapes[part.second], friction=self.number(part.friction),
                           slip_speed=self.number(part.slip_speed), exponent=part.exponent,
                           **self.optional(stiffness=part.stiffness, dissipation=part.dissipation,
                                           restitution=part.restitution), friction_model=part.friction_model,
                           reach=self.number(part.reach), bend_damping=self.number(part.bend_damping))


class _Whole(tuple[Formula, ...]):
    """The laws of all coordinates of a joint as one law."""

    __slots__ = ()

    def __call__(self, t: Number) -> list[Number]:
        return [law(t) for law in self]
