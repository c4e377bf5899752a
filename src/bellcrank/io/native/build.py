"""From the checked content of a model file to a `Mechanism`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import NoneType
from typing import Any, get_args, get_type_hints

import bellcrank.io.native.schema as schema
from bellcrank.errors import FileError, ModelError, hint
from bellcrank.io.common.model_meshes import MeshFinder, NotFoundError
from bellcrank.io.native.formula import Formula, WrittenLaw, parse, table_word
from bellcrank.io.native.part_files import KINDS, read_flexible, read_solid
from bellcrank.io.native.part_schema import (
    BetweenPoints,
    ConstraintPart,
    ContactPart,
    ContactRulePart,
    CouplerPart,
    JointOrSum,
    JointPart,
    NumberOrLaw,
    OnJoints,
    ShapePart,
)
from bellcrank.io.native.schema_part import Axis, MachineLawPart, Num, Part, Three, ThreeTimed, Timed
from bellcrank.io.native.schema_part import Pose as PoseEntry
from bellcrank.io.native.source_lines import Marked
from bellcrank.io.native.trace import run
from bellcrank.io.report import Note
from bellcrank.mechanism import ready_made
from bellcrank.mechanism.carried_joints import AT_CLOSING
from bellcrank.mechanism.contact.contact_material import BendRate
from bellcrank.mechanism.forces.machine_force import BristleForce, BristleRate
from bellcrank.mechanism.forces.motors import CurrentRate, CylinderForce, MotorTorque, PressureRate
from bellcrank.mechanism.forces.tyre import TyreRate
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.motion import Part as CoupledPart
from bellcrank.mechanism.parts import FirstOrder
from bellcrank.mechanism.pose import Pose
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Symmetric3

__all__ = ["build", "entries_of"]


# -- what entries of a model file stand for: numbers, laws and poses, with the parameters and tables of the file ---
#: joints and constraints by the names of their types
_CLASSES = {name: kind for kind, (name, _) in KINDS.items()}
#: what reads entries that are not what they are written as
_READERS = ((Num, "number"), (Three, "numbers"), (Timed, "of_time"), (ThreeTimed, "timed"), (Axis, "axis"),
            (PoseEntry, "pose"), (NumberOrLaw, "number_or_law"), (MachineLawPart, "machine_law"), (JointOrSum, "on"))


@cache
def entries_of(kind: type[Part]) -> tuple[tuple[str, str | None], ...]:
    """The entries of a part but for its type, and what reads each of them."""
    def reader(written: Any) -> str | None:
        entry = get_args(written)[0] if NoneType in get_args(written) else written
        return next((read for known, read in _READERS if known is entry), None)

    hints = get_type_hints(kind, include_extras=True)
    return tuple((name, reader(hints[name])) for name in kind.model_fields if name != "type")


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

    def number_or_law(self, value: Any) -> Any:
        """A number, or a law of the machine."""
        return self.number(value) if isinstance(value, (float, str)) else self.machine_law(value)

    def fields(self, part: Part, *without: str) -> dict[str, Any]:
        """What a part says but for its type, each entry read as what the schema calls it."""
        given = ((name, reader, getattr(part, name)) for name, reader in entries_of(type(part)) if name not in without)
        return {name: value if reader is None else getattr(self, reader)(value)
                for name, reader, value in given if value is not None}

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

    def other_states(self, section: str, name: str) -> None:
        """States of an element that the file does not list."""
        for label, (rate, units, usual) in self.states_of(section, name).items():
            if label not in self.document.states:
                self.m.add_state(label, rate, units=units, initial=usual)

    def output(self, name: str, part: schema.OutputPart) -> None:
        self.m.add_output(name, **self.fields(part))

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
        kind: Any = _CLASSES[part.type](**self.fields(part, *JointPart.model_fields))
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
        self.m.add_frame(name, **self.fields(part))

    def coupler(self, name: str, part: CouplerPart) -> None:
        self.m.add_coupler(name, {key: self._coupled(name, key, factor) for key, factor in part.factors.items()},
                           self.of_time(part.offset))

    def _coupled(self, name: str, key: str, factor: float | str) -> CoupledPart:
        if isinstance(factor, float):
            return factor
        law = self.law(factor, "q")
        if not law.program.uses("q") and not law.parametric:
            raise ModelError(f"coupler {name!r}: {factor!r} of {key!r} is not a formula of q; write a factor as a "
                             "number, without quotes")
        return law if law.program.uses("q") else law(0.0)

    def constraint(self, name: str, part: Any) -> None:
        kind: Any = _CLASSES[part.type](**self.fields(part, *ConstraintPart.model_fields))
        self.m.add_constraint(name, kind, part.parent, part.child, *self.ends(part, f"constraint {name!r}"),
                              closed=part.closed)

    # -- forces -------------------------------------------------------------------------------
    def spring(self, name: str, part: Any) -> None:
        match part.type:
            case "gas_spring" | "bump_stop":
                getattr(self.m, f"add_{part.type}")(name, **self.fields(part))
            case "hydraulic_cylinder":
                self.m.add_force_between(name, **self.fields(part, *self.law_fields(part)),
                                         law=CylinderForce(self.element(name, part)))
            case _ if part.machine_law is not None:
                law = self.machine_law(part.machine_law)
                self.m.add_force_between(name, **self.fields(part, *self.law_fields(part)), law=law)
            case _:
                if part.law is not None and {"stiffness", "damping", "length"} & part.model_fields_set:
                    raise ModelError(f"spring {name!r}: a law takes the place of stiffness, damping and length; "
                                     "give one or the other")
                self.m.add_spring(name, **self.fields(part, "law", "potential"),
                                  law=None if part.law is None else self.law(part.law, "x", "rate"),
                                  potential=None if part.potential is None else self.law(part.potential, "x"))
        self.other_states("springs", name)

    @staticmethod
    def law_fields(part: BetweenPoints) -> list[str]:
        """Entries that say how something acts, and not where."""
        return [name for name in type(part).model_fields if name not in BetweenPoints.model_fields]

    def bushing(self, name: str, part: schema.BushingPart) -> None:
        self.m.add_bushing(name, **self.fields(part))

    def drag(self, name: str, part: schema.DragPart) -> None:
        self.m.add_drag(name, **self.fields(part))

    def wrench(self, name: str, part: Any) -> None:
        if part.type == "tyre":
            law = self.element(name, part)
            self.m.add_wrench(name, part.body, at=law.center, law=law)
        elif part.machine_law is not None:
            self.m.add_wrench(name, **self.fields(part, "force", "moment", "machine_law"),
                              law=self.machine_law(part.machine_law))
        else:
            self.m.add_wrench(name, **self.fields(part))
        self.other_states("wrenches", name)

    def joint_force(self, name: str, part: Any) -> None:
        match part.type:
            case "law":
                if (part.law is None) == (part.machine_law is None):
                    raise ModelError(f"joint force {name!r}: give either law or machine_law")
                law: Any = self.law(part.law, "x", "rate") if part.machine_law is None else self.machine_law(
                    part.machine_law)
                self.m.add_joint_force(name, self.on(part.joint), law, part.coordinate)
            case "servo":
                if (part.lower is None) != (part.upper is None):
                    raise ModelError(f"servo {name!r}: give both lower and upper, or none")
                limit = None if part.lower is None else (self.number(part.lower), self.number(part.upper))
                self.m.add_servo(name, **self.fields(part, "lower", "upper"), limit=limit)
            case "spring":
                potential = None if part.potential is None else self.law(part.potential, "x")
                self.m.add_joint_spring(name, **self.fields(part, "potential"), potential=potential)
            case "dc_motor":
                self.m.add_joint_force(name, part.joint, MotorTorque(self.element(name, part)))
            case "brake":
                self.m.add_joint_force(name, self.on(part.joint), BristleForce(self.element(name, part)),
                                       part.coordinate)
            case "belt":
                pulleys = {joint: self.number(radius) for joint, radius in part.pulleys.items()}
                self.m.add_belt(name, pulleys, **self.fields(part, "pulleys"))
            case _:  # friction, limit, torsion_bar, rolling_resistance
                getattr(self.m, f"add_{part.type}")(name, **self.fields(part))
        self.other_states("joint_forces", name)

    # -- ready-made elements with states ------------------------------------------------------
    def element(self, name: str, part: Any) -> Any:
        """A ready-made element without its states, which a file lists by themselves."""
        match part.type:
            case "hydraulic_cylinder":
                return ready_made.cylinder(name, **self.fields(part, *BetweenPoints.model_fields))
            case "dc_motor":
                return ready_made.dc_motor(name, **self.fields(part))
            case "brake":
                return ready_made.bristle(name, **self.fields(part, *OnJoints.model_fields))
        height: Any = None
        if part.height is not None:
            height = self.law(part.height, "x", "y")
            step = height.program.steps[0] if len(height.program.steps) == 1 else None
            if step is not None and isinstance(step.op, Table) and step.args == (0, 1):
                height = step.op  # the table itself
        return ready_made.tyre(name, **self.fields(part, "height"), height=height)

    def states_of(self, section: str, name: str) -> dict[str, tuple[Callable[[Any], Any], str, float]]:
        """The states of an element by their names: the rate of each, its units and where it begins."""
        part = getattr(self.document, section).get(name)
        match getattr(part, "type", None):
            case "hydraulic_cylinder":
                cylinder = self.element(name, part)
                ends = (cylinder.head, True), (cylinder.rod, False)
                return {label: (PressureRate(cylinder, head), "MPa", 0.1) for label, head in ends}
            case "dc_motor":
                motor = self.element(name, part)
                return {motor.current: (CurrentRate(motor), "A", 0.0)}
            case "brake":
                bristle = self.element(name, part)
                return {bristle.bend: (BristleRate(bristle), "1", 0.0)}
            case "tyre" if part.relaxation is not None:
                tyre = self.element(name, part)
                return {label: (TyreRate(tyre, k), "m", 0.0) for k, label in enumerate(tyre.bent)}
        return {}

    def actuator(self, name: str, part: schema.ActuatorPart) -> None:
        given = self.fields(part)
        if "lower" in given:
            given["limit"] = given.pop("lower"), given["limit"]
        self.m.add_actuator(name, **given)

    def armature(self, name: str, part: schema.ArmaturePart) -> None:
        self.m.add_armature(name, **self.fields(part))

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
        made = self.m.set_contact_rule(**self.fields(part))
        if made.name != name:
            raise ModelError(f"contact rule {name!r}: it is called after its parts, {made.name!r}")

    def contact(self, name: str, part: ContactPart) -> None:
        shapes = {shape.name: shape for shape in self.m.shapes}
        for end in (part.first, part.second):
            if end not in shapes:
                raise ModelError(f"contact {name!r}: no shape called {end!r}{hint(end, list(shapes))}")
        self.m.add_contact(name, shapes[part.first], shapes[part.second], **self.fields(part, "first", "second"))


class _Whole(tuple[Formula, ...]):
    """The laws of all coordinates of a joint as one law."""

    __slots__ = ()

    def __call__(self, t: Number) -> list[Number]:
        return [law(t) for law in self]
