"""What a model file may hold: the published form of it, checked before anything is built."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, PlainValidator, Tag, WithJsonSchema
from pydantic_core import PydanticCustomError

from bellcrank.io.native.part_schema import (
    AnyConstraint,
    AnyJoint,
    AnyShapePart,
    BeltPart,
    BetweenPoints,
    BrakePart,
    BumpStopPart,
    ContactPart,
    ContactRulePart,
    CouplerPart,
    CylinderPart,
    DcMotorPart,
    FlexiblePart,
    GasSpringPart,
    OnJoint,
    OnJoints,
    RollingResistancePart,
    StatePart,
    TorsionBarPart,
    TyrePart,
    type_or,
)
from bellcrank.io.native.schema_part import (
    Fixed,
    Law,
    MachineLawPart,
    Name,
    Num,
    NumRows,
    Part,
    Pose,
    Text,
    Three,
    ThreeTimed,
    Timed,
    form,
    shown,
)

__all__ = ["SINGULAR", "VERSION", "Document", "Law", "Num", "json_schema"]

#: the version of the form
VERSION = 1
#: sections, and what one thing in them is called
SINGULAR = {
    "parameters": "parameter", "bodies": "body", "joints": "joint", "frames": "frame", "couplers": "coupler",
    "constraints": "constraint", "springs": "spring", "bushings": "bushing", "drags": "drag", "wrenches": "wrench",
    "joint_forces": "joint force", "actuators": "actuator", "armatures": "armature", "shapes": "shape",
    "contacts": "contact", "contact_rules": "contact rule", "tables": "table", "states": "state", "outputs": "output",
    "ranges": "range"}
_ADDRESS = "https://json-schema.org/draft/2020-12/schema"


def _version(value: Any) -> int:
    if isinstance(value, bool) or value != VERSION:
        raise PydanticCustomError("version", "the form is version {got}; this Bellcrank reads version {known}",
                                  {"got": shown(value), "known": VERSION})
    return VERSION


# -- places and masses --------------------------------------------------------------------------
class BodyPart(Part):
    """A body. Inertia is about the centre of mass, in body axes."""

    mass: Num = Field(default=0.0, description="[kg]")
    com: Three = Field(default=[0.0, 0.0, 0.0], description="centre of mass [m]")
    inertia: Annotated[
        Annotated[Num, Tag("number")] | Annotated[Annotated[list[Num], Field(min_length=3, max_length=6)], Tag("list")]
        | Annotated[NumRows, Tag("matrix")], Discriminator(form)] = Field(
        default=0.0, description="[kg m^2] one number, three principal moments, xx xy xz yy yz zz, or a matrix")
    checked: bool = Field(default=True, description="false: an inertia that no real body has is meant")
    present: bool = Field(default=True, description="false: an event lets it enter a run")
    state: bool = Field(default=False, description="true: the place of a state among the bodies")
    flexible: FlexiblePart | None = Field(default=None, description="in place of the others: how it deforms")


class FramePart(Part):
    """A named place on a body."""

    body: Name
    pose: Pose = [0.0, 0.0, 0.0]


class TablePart(Part):
    """A function by points, of one number or of two."""

    points: list[Fixed] | list[list[Fixed]] = Field(description="rising; a pair of lists for two arguments")
    values: list[Fixed] | list[list[Fixed]]
    kind: Literal["linear", "cubic", "akima", "monotone"] = "linear"
    extrapolate: Literal["hold", "linear", "error", "periodic"]
    name: Text | None = Field(default=None, description="if it is not that by which formulas call it")


class OutputPart(Part):
    """A number that results hold."""

    law: MachineLawPart
    units: Text = "1"


# -- forces -------------------------------------------------------------------------------------
class SpringPart(BetweenPoints):
    """Between two points: linear, or by a law of x (distance) and rate, or by a potential of x."""

    type: Literal["spring"] = "spring"
    stiffness: Num = 0.0
    damping: Num = 0.0
    length: Num = 0.0
    law: Law | None = Field(default=None, description="tension [N], a formula of x and rate")
    potential: Law | None = Field(default=None, description="energy [J], a formula of x")
    machine_law: MachineLawPart | None = Field(default=None, description="tension [N]")


class BushingPart(Part):
    """Six stiffnesses and dampings between two frames."""

    first: Name
    second: Name
    first_pose: Pose | None = None
    second_pose: Pose | None = None
    stiffness: Three = [0.0, 0.0, 0.0]
    turn_stiffness: Three = [0.0, 0.0, 0.0]
    damping: Three = [0.0, 0.0, 0.0]
    turn_damping: Three = [0.0, 0.0, 0.0]
    measure: Literal["chord", "angle"] = Field(default="chord", description="of rotations")


class DragPart(Part):
    """Drag of a body in air or water."""

    body: Name
    at: Three = [0.0, 0.0, 0.0]
    coefficient: Num = 0.0
    area: Num = 1.0
    density: Num = 1.2
    turn_linear: Num = 0.0
    turn_quadratic: Num = 0.0
    wind: ThreeTimed = [0.0, 0.0, 0.0]


class WrenchPart(Part):
    """A force and moment on a body, constant or of time."""

    type: Literal["wrench"] = "wrench"
    body: Name
    force: ThreeTimed = [0.0, 0.0, 0.0]
    moment: ThreeTimed = [0.0, 0.0, 0.0]
    at: Three = [0.0, 0.0, 0.0]
    axes: Literal["world", "body"] = "world"
    machine_law: MachineLawPart | None = Field(default=None, description="force and moment, in place of the others")


class JointSpringPart(OnJoints):
    type: Literal["spring"]
    stiffness: Num = 0.0
    damping: Num = 0.0
    rest: Num = 0.0
    potential: Law | None = Field(default=None, description="energy [J], a formula of x")


class JointLawPart(OnJoints):
    type: Literal["law"]
    law: Law | None = Field(default=None, description="force [N or N m], a formula of x and rate")
    machine_law: MachineLawPart | None = Field(default=None, description="force [N or N m]")


class FrictionPart(OnJoints):
    type: Literal["friction"]
    coulomb: Num = 0.0
    viscous: Num = 0.0
    speed: Num = 1e-3
    static: Num | None = None
    stribeck: Num = 1e-2


class LimitPart(OnJoints):
    type: Literal["limit"]
    lower: Num | None = None
    upper: Num | None = None
    stiffness: Num
    damping: Num = 0.0
    onset: Num = 1e-3


class ServoPart(OnJoints):
    type: Literal["servo"]
    target: Timed = 0.0
    target_rate: Timed = 0.0
    stiffness: Num = 0.0
    damping: Num = 0.0
    offset: Timed = Field(default=0.0, description="a force that is added [N or N m]")
    lower: Num | None = Field(default=None, description="the least force [N or N m]; given with upper")
    upper: Num | None = Field(default=None, description="the largest force [N or N m]")


AnyJointForce = Annotated[
    JointSpringPart | JointLawPart | FrictionPart | LimitPart | ServoPart | TorsionBarPart | BeltPart | DcMotorPart
    | BrakePart | RollingResistancePart, Field(discriminator="type")]
AnySpring = Annotated[
    Annotated[SpringPart, Tag("spring")] | Annotated[GasSpringPart, Tag("gas_spring")]
    | Annotated[BumpStopPart, Tag("bump_stop")] | Annotated[CylinderPart, Tag("hydraulic_cylinder")], type_or("spring")]
AnyWrench = Annotated[Annotated[WrenchPart, Tag("wrench")] | Annotated[TyrePart, Tag("tyre")], type_or("wrench")]


class ActuatorPart(OnJoint):
    limit: Num = Field(description="the largest force [N or N m]")
    lower: Num | None = Field(default=None, description="the least force [N or N m], if it is not -limit")
    no_load_speed: Num | None = Field(default=None, description="[m/s or rad/s]")


class ArmaturePart(OnJoint):
    inertia: Num = Field(description="[kg m^2 or kg]")


class RangePart(Part):
    """Where a joint is meant to stay; nothing acts there."""

    lower: Fixed | None = Field(default=None, description="[rad or m]")
    upper: Fixed | None = None


class Document(Part):
    """A machine: bodies, joints and what acts on them, by name. SI units, radians."""

    bellcrank: Annotated[int, PlainValidator(_version), WithJsonSchema({"const": VERSION})] = Field(
        description="the version of this form")
    name: Text = "mechanism"
    gravity: Three = Field(default=[0.0, 0.0, -9.81], description="acceleration of free fall [m/s^2], world axes")
    parameters: dict[Name, Fixed] = Field(default={}, description="default values")
    tables: dict[Name, TablePart] = Field(default={}, description="called by formulas, as functions")
    bodies: dict[Name, BodyPart] = {}
    joints: dict[Name, AnyJoint] = {}
    frames: dict[Name, FramePart] = {}
    couplers: dict[Name, CouplerPart] = {}
    constraints: dict[Name, AnyConstraint] = {}
    springs: dict[Name, AnySpring] = {}
    bushings: dict[Name, BushingPart] = {}
    drags: dict[Name, DragPart] = {}
    wrenches: dict[Name, AnyWrench] = {}
    joint_forces: dict[Name, AnyJointForce] = {}
    actuators: dict[Name, ActuatorPart] = {}
    armatures: dict[Name, ArmaturePart] = {}
    ranges: dict[Name, RangePart] = Field(default={}, description="by joint")
    shapes: dict[Name, AnyShapePart] = {}
    contacts: dict[Name, ContactPart] = {}
    contact_rules: dict[Name, ContactRulePart] = {}
    larger_friction: bool = Field(default=False, description="contacts take the larger friction of two shapes")
    states: dict[Name, StatePart] = {}
    outputs: dict[Name, OutputPart] = {}


def json_schema() -> dict[str, Any]:
    """The JSON Schema of model files, as published in ``docs/reference/model.schema.json``.

    >>> json_schema()["required"]
    ['bellcrank']
    """
    return {"$schema": _ADDRESS, **Document.model_json_schema(), "title": "Bellcrank model file"}
