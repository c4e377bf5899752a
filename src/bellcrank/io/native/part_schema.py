"""What a model file may hold of joints, constraints, shapes, contacts, force elements and bodies that deform."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag

from bellcrank.io.native.schema_part import (
    Axis,
    Fixed,
    Law,
    MachineLawPart,
    Matrix,
    Name,
    Num,
    Part,
    Pose,
    Text,
    Three,
    Timed,
    form,
)

__all__ = ["AnyConstraint", "AnyJoint", "AnyShapePart", "BeltPart", "BetweenPoints", "BrakePart", "BumpStopPart",
           "ContactPart", "ContactRulePart", "CouplerPart", "CylinderPart", "DcMotorPart", "FlexiblePart",
           "GasSpringPart", "OnJoint", "OnJoints", "RollingResistancePart", "ShapePart", "StatePart", "TorsionBarPart",
           "TyrePart", "type_or"]


# -- joints, couplers and constraints in the published form of model files --------------------------
class JointPart(Part):
    """Connects two bodies; at zero coordinates the two poses coincide."""

    parent: Name
    child: Name
    parent_pose: Pose | None = None
    child_pose: Pose | None = None
    at: Three | None = Field(default=None, description="in place of poses: the joint in the design position [m]")
    closed: bool = Field(default=True, description="false: open when a run begins; an event closes it")
    at_closing: Literal["parent", "child"] | None = Field(
        default=None, description="whose pose is that of the other side at the moment at which the joint closes")
    prescribed: Annotated[
        Annotated[Law, Tag("number")] | Annotated[list[Law], Tag("list")] | Annotated[dict[Name, Law], Tag("mapping")],
        Discriminator(form)] | None = Field(
        default=None, description="laws of the time t by coordinate; all of q for joints with a quaternion")


class RevolutePart(JointPart):
    type: Literal["revolute"]
    axis: Axis


class PrismaticPart(JointPart):
    type: Literal["prismatic"]
    axis: Axis


class ScrewPart(JointPart):
    type: Literal["screw"]
    axis: Axis
    pitch: Num = Field(description="[m/rad]")


class CylindricalPart(JointPart):
    type: Literal["cylindrical"]
    axis: Axis


class UniversalPart(JointPart):
    type: Literal["universal"]
    axis1: Axis
    axis2: Axis


class PlanarPart(JointPart):
    type: Literal["planar"]
    normal: Axis


class SphericalPart(JointPart):
    type: Literal["spherical"]


class FreePart(JointPart):
    type: Literal["free"]
    start: Pose | None = Field(default=None, description="where the child is drawn in the joint frame")


class WeldPart(JointPart):
    type: Literal["weld"]


class StateJointPart(Part):
    """The place of a state among the joints."""

    type: Literal["state"]


AnyJoint = Annotated[
    RevolutePart | PrismaticPart | ScrewPart | CylindricalPart | UniversalPart | PlanarPart | SphericalPart | FreePart
    | WeldPart | StateJointPart, Field(discriminator="type")]


class CouplerPart(Part):
    """The sum of factor * coordinate equals the offset; a formula of q may stand in place of a factor."""

    factors: dict[Name, Law] = Field(description="by joint, or joint.coordinate for joints with several: a factor, or "
                                                 "a formula of parameters and of the coordinate q")
    offset: Timed = Field(default=0.0, description="what the sum equals: a number, or a formula of t")


class ConstraintPart(Part):
    """A condition between two bodies that is no joint."""

    parent: Name
    child: Name
    parent_pose: Pose | None = None
    child_pose: Pose | None = None
    closed: bool = Field(default=True, description="false: open when a run begins; an event closes it")
    at_closing: Literal["parent", "child"] | None = Field(
        default=None, description="whose pose is that of the other side at the moment at which it closes")


class DistancePart(ConstraintPart):
    type: Literal["distance"]
    length: Timed = Field(description="[m]")


class PointOnLinePart(ConstraintPart):
    type: Literal["point_on_line"]
    axis: Axis


class PointOnPlanePart(ConstraintPart):
    type: Literal["point_on_plane"]
    normal: Axis
    offset: Timed = Field(default=0.0, description="height of the plane above the parent's origin [m]")


class AnglePart(ConstraintPart):
    type: Literal["angle"]
    angle: Timed = Field(description="between the axes [rad]")
    axis: Axis
    child_axis: Axis


class RollingBallPart(ConstraintPart):
    type: Literal["rolling_ball"]
    radius: Num = Field(description="[m]")
    normal: Axis


class RollingDiskPart(ConstraintPart):
    type: Literal["rolling_disk"]
    radius: Num = Field(description="[m]")
    normal: Axis
    axis: Axis


class KnifeEdgePart(ConstraintPart):
    type: Literal["knife_edge"]
    across: Axis


AnyConstraint = Annotated[
    DistancePart | PointOnLinePart | PointOnPlanePart | AnglePart | RollingBallPart | RollingDiskPart | KnifeEdgePart,
    Field(discriminator="type")]


# -- what a model file may hold of shapes -----------------------------------------------------------
class ShapePart(Part):
    """A shape on a body, in a frame of its own; it moves nothing."""

    body: Name
    pose: Pose = [0.0, 0.0, 0.0]
    color: Annotated[list[Fixed], Field(min_length=3, max_length=4)] | None = Field(
        default=None, description="red, green, blue and opacity in 0..1")
    role: Literal["visual", "collision"] = "visual"
    friction: Fixed | None = Field(default=None, description="of contacts for which none is given")
    groups: Annotated[list[Fixed], Field(min_length=2, max_length=2)] = Field(
        default=[1.0, 1.0], description="bits of what it is, and of what it touches")


class BoxShapePart(ShapePart):
    type: Literal["box"]
    size: Annotated[list[Fixed], Field(min_length=3, max_length=3)] = Field(description="edges [m]")


class SphereShapePart(ShapePart):
    type: Literal["sphere"]
    radius: Fixed


class EllipsoidShapePart(ShapePart):
    type: Literal["ellipsoid"]
    radii: Annotated[list[Fixed], Field(min_length=3, max_length=3)] = Field(description="half axes [m]")


class RoundShapePart(ShapePart):
    type: Literal["cylinder", "capsule", "cone"]
    radius: Fixed
    length: Fixed = Field(description="along z [m]")


class PlaneShapePart(ShapePart):
    type: Literal["plane"]
    size: Annotated[list[Fixed], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="edges [m]; nothing if it has no end")


class MeshShapePart(ShapePart):
    type: Literal["mesh"]
    file: Name | None = Field(default=None, description="relative to the model file, with slashes")
    scale: Annotated[list[Fixed], Field(min_length=3, max_length=3)] | None = None
    vertices: Matrix | None = Field(default=None, description="in place of a file [m]")
    faces: Matrix | None = Field(default=None, description="three numbers of vertices each, from 0")
    colors: Matrix | None = Field(default=None, description="of the faces: red, green, blue, opacity in 0..1")


class HeightFieldPart(ShapePart):
    type: Literal["heightfield"]
    x: list[Fixed] = Field(description="places of the grid [m]")
    y: list[Fixed] = Field(description="places of the grid [m]")
    heights: Matrix = Field(description="[m], a row for every x")
    kind: Literal["linear", "cubic", "akima", "monotone"] = "monotone"


AnyShapePart = Annotated[BoxShapePart | SphereShapePart | EllipsoidShapePart | RoundShapePart | PlaneShapePart
                         | HeightFieldPart | MeshShapePart, Field(discriminator="type")]


# -- contacts in model files ------------------------------------------------------------------------
class ContactPart(Part):
    """Two shapes that may touch; rigid if there is no stiffness."""

    first: Name = Field(description="a shape")
    second: Name
    stiffness: Num | None = Field(default=None, description="[N/m^exponent]")
    dissipation: Num | None = Field(default=None, description="Hunt and Crossley's [s/m]")
    restitution: Num | None = Field(default=None, description="of rigid contacts")
    friction: Num = 0.0
    slip_speed: Num = Field(default=1e-3, description="[m/s]")
    exponent: Fixed = 1.0
    friction_model: Literal["regularized", "bristle"] = "regularized"
    reach: Num = Field(default=1e-4, description="what bristles bend before they slide [m]")
    bend_damping: Num = Field(default=1e-2, description="time constant of their damping [s]")


class ContactRulePart(Part):
    """Whether a pair of bodies or shapes may touch where contacts are added to many at once, and with what friction."""

    first: Name = Field(description="a body or a shape")
    second: Name
    touch: bool = True
    friction: Fixed | None = None


# -- what a model file may hold of bodies that deform -----------------------------------------------
class IntegralsPart(Part):
    """Coefficients of the kinetic energy of a body that deforms, by rows: see `ShapeIntegrals`."""

    mass: Fixed = Field(description="[kg]")
    first: Matrix
    first_rates: Matrix
    second: Matrix
    second_rates: Matrix
    second_curves: Matrix
    linear: Matrix
    angular: Matrix
    angular_rates: Matrix
    modal: Matrix
    moment: list[Fixed]


class StiffeningPart(Part):
    """Second-order displacements: products of two modes, by their numbers from 0."""

    products: Matrix
    shapes: Matrix
    integrals: IntegralsPart


class StressesPart(Part):
    """Stresses of unit modal coordinates at points: six numbers (xx, yy, zz, xy, yz, xz) for every mode."""

    nodes: list[Fixed] = Field(description="the node that each point belongs to")
    positions: Matrix = Field(description="[m]")
    stress: Matrix = Field(description="one row a point: xx of all modes, yy, zz, xy, yz, xz [Pa]")
    strain: Matrix | None = None
    places: list[str] | None = Field(default=None, description="names of points in the cross sections of a beam")


class FlexiblePart(Part):
    """How a body deforms: nodes, modes (six numbers a mode and node), modal stiffness, damping and inertia."""

    nodes: Matrix = Field(description="[m]")
    modes: Matrix = Field(description="one row a node: ux of all modes, uy, uz, rx, ry, rz")
    stiffness: Matrix
    damping: Matrix
    integrals: IntegralsPart
    names: dict[Name, Fixed] = Field(default={}, description="nodes by name")
    inertia: Literal["lumped", "consistent_nodal", "continuum"] = "consistent_nodal"
    clamped: Name | None = Field(default=None, description="the node that the frame is held at")
    stiffening: StiffeningPart | None = None
    forces: Matrix | None = Field(default=None, description="of a beam, a row a node: N of all modes, Vy, Vz, ...")
    stresses: StressesPart | None = None
    edges: Matrix | None = Field(default=None, description="pairs of nodes that pictures connect")
    prescribed: dict[Name, Law] | None = Field(default=None, description="laws of the time t by mode")


# -- what a model file may hold of ready-made force elements ----------------------------------------
JointOrSum = Annotated[Annotated[Name, Tag("number")] | Annotated[dict[Name, Num], Tag("mapping")], Discriminator(form)]
NumberOrLaw = Annotated[Annotated[Num, Tag("number")] | Annotated[MachineLawPart, Tag("mapping")],
                        Discriminator(form)]


def type_or(plain: str) -> Discriminator:
    """Chooses by `type`, which the plain kind does not need."""

    def type_of(value: Any) -> Any:
        return value.get("type", plain) if isinstance(value, dict) else plain

    return Discriminator(type_of)


class BetweenPoints(Part):
    """Something between two points."""

    first: Name
    second: Name
    first_point: Three
    second_point: Three


class OnJoint(Part):
    """Something on one coordinate of a joint."""

    joint: Name
    coordinate: Name | None = Field(default=None, description="its name, for joints with several")


class OnJoints(Part):
    """Something on one coordinate of a joint, or on the sum of several, each times a factor."""

    joint: JointOrSum = Field(
        description="a joint, or factors by joint, or by joint.coordinate for joints with several")
    coordinate: Name | None = Field(default=None, description="its name, for joints with several")


class StatePart(Part):
    """A state of an element: with a rate of its own, or one of a ready-made element."""

    rate: MachineLawPart | None = None
    element: Name | None = Field(default=None, description="in place of a rate: the ready-made element it belongs to")
    initial: Num | None = Field(default=None, description="where it begins; zero, or what is usual for the element")
    units: Text = "1"


# -- between points -------------------------------------------------------------------------------
class GasSpringPart(BetweenPoints):
    type: Literal["gas_spring"]
    force: Num = Field(description="at full length [N]")
    length: Num = Field(description="[m]")
    reach: Num = Field(description="volume of gas over the area of the rod [m]")
    exponent: Fixed = 1.0
    damping: Num = 0.0


class BumpStopPart(BetweenPoints):
    type: Literal["bump_stop"]
    lower: Num | None = Field(default=None, description="[m]")
    upper: Num | None = Field(default=None, description="[m]")
    stiffness: Num
    progression: Num = Field(default=0.0, description="[N/m^3]")
    damping: Num = 0.0
    onset: Num = 1e-3


class CylinderPart(BetweenPoints):
    """A hydraulic cylinder; its states are called after it, `head` and `rod` [MPa]."""

    type: Literal["hydraulic_cylinder"]
    head_area: Num
    rod_area: Num
    closed: Num
    stroke: Num
    dead_volume: Num = 1e-4
    bulk_modulus: Num = 1.4e9
    leakage: Num = 0.0
    friction: Num = 0.0
    gain: Num = 0.0
    supply: Num = 2e7
    tank: Num = 1e5
    opening: NumberOrLaw | None = None


# -- on joints ------------------------------------------------------------------------------------
class TorsionBarPart(OnJoints):
    type: Literal["torsion_bar"]
    length: Num = Field(description="[m]")
    diameter: Num = Field(description="[m]")
    bore: Num = 0.0
    shear_modulus: Num = Field(default=79e9, description="[Pa]")
    damping: Num = 0.0
    rest: Num = 0.0


class BeltPart(Part):
    """A belt or chain over two pulleys."""

    type: Literal["belt"]
    pulleys: dict[Name, Num] = Field(description="radius [m] by joint; one is negative for a crossed belt")
    stiffness: Num
    pretension: Num = 0.0
    damping: Num = 0.0
    slack: Num = 0.0


class DcMotorPart(Part):
    """A motor with a gear; its state is called after it, `current` [A]. The rotor is an armature of its own."""

    type: Literal["dc_motor"]
    joint: Name
    voltage: NumberOrLaw
    resistance: Num
    inductance: Num
    constant: Num
    gear: Num = 1.0
    friction: Num = 0.0


class BrakePart(OnJoints):
    """A brake, or a clutch on a difference of joints; its state is called after it, `bend`."""

    type: Literal["brake"]
    capacity: NumberOrLaw
    reach: Num = 1e-3
    damping: Num = 1e-3


class RollingResistancePart(Part):
    type: Literal["rolling_resistance"]
    joint: Name
    coefficient: Num
    radius: Num
    load: NumberOrLaw
    speed: Num = 1e-2


# -- on bodies ------------------------------------------------------------------------------------
class TyrePart(Part):
    """A tyre on a wheel; its states, if slip is transient, are called after it, `ahead` and `across` [m]."""

    type: Literal["tyre"]
    body: Name
    radius: Num
    stiffness: Num
    damping: Num = 0.0
    mu: Num = 1.0
    slope: Num = 20.0
    model: Literal["brush", "magic", "set"] = "brush"
    c: Num = 1.65
    e: Num = 0.0
    slowest: Num = 0.1
    half_length: Num = 0.0
    rolling: Num = 0.0
    relaxation: Annotated[list[Fixed], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="lengths ahead and across [m]")
    settling: Num = 0.05
    coefficients: dict[Name, Fixed] | None = Field(default=None, description="of the Magic Formula, by name")
    mirrored: bool = False
    center: Annotated[list[Fixed], Field(min_length=3, max_length=3)] = [0.0, 0.0, 0.0]
    axle: Axis = "y"
    height: Law | None = Field(default=None, description="of the ground [m], a formula of x and y")
