"""Joints, couplers and constraints in the published form of model files."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Discriminator, Field, Tag

from bellcrank.io.native.entries import Axis, Law, Name, Num, Three, Timed, form
from bellcrank.io.native.schema_part import Part, Pose

__all__ = ["AnyConstraint", "AnyJoint", "CouplerPart"]


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
