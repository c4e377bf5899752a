"""<gazebo> elements of URDF files: SDF joints that close loops, springs of joints, and settings of a simulator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bellcrank.io.common.xml import XmlElement, blame, clipped, plain_number
from bellcrank.io.report import Dynamics
from bellcrank.io.sdf.joints import AlongAxis, read_along, screw_pitch
from bellcrank.io.sdf.text_values import Poses, boolean
from bellcrank.io.urdf.loop_joint import add_closing, unknown
from bellcrank.io.urdf.tree_joints import JointReader, joint_of, made_unit
from bellcrank.io.urdf.vocabulary import ASIDE
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["gazebo"]

_TWO_AXES = ("universal", "revolute2")
_ENDS, _OLD_ENDS = {"parent", "child"}, {"body1", "body2"}


def gazebo(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """One <gazebo> element of a file."""
    found = _spring(reader, machine, element)
    for inner in element.walk():
        below = {child.tag for child in inner.children}
        if inner.tag == "joint" and inner.parent is element and below >= _ENDS:
            _joint(reader, machine, inner)
        elif "joint" in inner.tag and (below >= _ENDS or below >= _OLD_ENDS):
            reader.note("warned", inner, "closes a loop in a simulator, not read: only <joint> with <parent> and "
                                         "<child> directly inside <gazebo> is")
        elif _acts(inner):
            reader.note("warned", inner, "acts on the motion in a simulator, not read")
        else:
            continue
        found = True
    if not found:
        reader.note("ignored", element, ASIDE["gazebo"])


def _acts(element: XmlElement) -> bool:
    """Whether a setting changes the motion: no gravity, or damping of a whole link."""
    word = element.text.lower()
    match element.tag:
        case "turnGravityOff":
            return word in ("true", "1")
        case "gravity":
            return word in ("false", "0")
        case "dampingFactor":
            return plain_number(word) != 0.0
    return False


# -- springs --------------------------------------------------------------------------------------
def _spring(reader: RobotReader, machine: Mechanism, element: XmlElement) -> bool:
    """<springStiffness> and <springReference> of the joint that a <gazebo reference> names."""
    stiffness, rest = element.first("springStiffness"), element.first("springReference")
    if stiffness is None:
        return False
    joint = element.attributes.get("reference", "").strip()
    if joint not in reader.joints or machine.joint(joint).joint.nu != 1:
        reader.note("warned", stiffness, f"acts on the motion in a simulator, not read: {clipped(joint)!r} is no joint "
                                         "with one coordinate")
        return True
    _add_spring(reader, machine, stiffness, joint, stiffness.text_number(), 0.0 if rest is None else rest.text_number())
    return True


def _add_spring(reader: RobotReader, machine: Mechanism, element: XmlElement, joint: str, stiffness: float,
                rest: float) -> None:
    if not stiffness:
        return
    if not reader.act:
        reader.note("warned", element, "a spring that does not act unless read with dynamics=True")
        return
    with blame(element):
        machine.add_joint_spring(f"{joint}_spring", joint, stiffness=stiffness, rest=rest)


# -- joints ---------------------------------------------------------------------------------------
def _joint(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """An SDF joint between two links."""
    kind = element.attribute("type")
    if kind == "gearbox":
        reader.note("warned", element, "a gearbox of a simulator, not read")
        return
    parent, child = (_word(element.only(tag)) for tag in ("parent", "child"))
    ends = reader.link(parent, element, world=True), reader.link(child, element, world=True)
    here = _pose(reader, element, child)
    # SDF: the two sides coincide where the tree has the links while all joints are at zero
    with blame(element):
        world = reader.place(child) @ here
        outer = reader.place(parent).inverse() @ world
    first = _axis(reader, element, "axis", world)
    second = _axis(reader, element, "axis2", world) if kind in _TWO_AXES else first
    with blame(element):
        joint = joint_of("universal" if kind in _TWO_AXES else kind, first, second,
                         screw_pitch(element, reader.note) if kind == "screw" else 0.0)
    if joint is None:
        raise unknown(element, kind)
    name = add_closing(reader, machine, element, joint, ends, (outer, here))
    _data(reader, machine, element, name, joint)


def _word(element: XmlElement) -> str:
    name = element.attributes.get("link", element.text).strip()
    if not name:
        raise element.error("names no link")
    return name


def _pose(reader: RobotReader, element: XmlElement, child: str) -> Pose:
    """The joint frame in the child link."""
    pose = element.first("pose")
    if pose is None:
        return Pose()
    own = Poses(reader.turns)(pose)
    base = (pose.attributes.get("relative_to") or pose.attributes.get("frame") or "").strip()
    if base in ("", child):
        return own
    with blame(pose):
        return reader.place(child).inverse() @ (_frame(reader, pose, base) @ own)


def _frame(reader: RobotReader, element: XmlElement, name: str) -> Pose:
    """Where a link, or the frame of a tree joint, or the model lies in the root link."""
    if name in reader.links:
        return reader.place(name)
    if name in reader.joints:
        return reader.place(reader.joints[name].only("child").attribute("link"))
    if name not in ("__model__", "world"):
        raise element.error(f"there is no link or joint {clipped(name)!r}")
    return Pose()


def _axis(reader: RobotReader, joint: XmlElement, tag: str, world: Pose) -> tuple[float, ...]:
    """An axis in the joint frame, which lies at `world` in the root link."""
    element = joint.first(tag)
    if element is None and tag == "axis2":
        raise joint.error("needs an <axis2> element")
    xyz = None if element is None else element.first("xyz")
    if element is None or xyz is None:
        return (0.0, 0.0, 1.0)
    axis = made_unit(reader, xyz, xyz.text_numbers(3))
    base = xyz.attributes.get("expressed_in", "").strip()
    old = element.first("use_parent_model_frame")
    if not base and old is not None and boolean(old, old.text):
        base = "__model__"
    if not base or base == joint.attributes.get("name"):
        return axis
    turn = _frame(reader, xyz, base).rotation
    return tuple((world.rotation.T @ turn @ np.asarray(axis)).tolist())


def _data(reader: RobotReader, machine: Mechanism, element: XmlElement, name: str, joint: Joint) -> None:
    """Limits, damping, friction and springs."""
    for axis in (child for child in element.children if child.tag in ("axis", "axis2")):
        along = read_along(axis, element.attribute("type"), reader.note)
        if joint.nu != 1 or axis.tag == "axis2":
            if along != AlongAxis(along.limits, Dynamics()):
                reader.note("warned", axis, "damping, friction and springs of such a joint are not read")
            continue
        limit, dynamics = axis.first("limit"), axis.first("dynamics")
        if limit is not None:
            reader.limits[name] = along.limits
            reader.note("kept", limit, "limits do not act on the motion; kept in report.limits")
        if dynamics is not None:
            JointReader(reader, machine).friction(name, dynamics, along.dynamics.damping, along.dynamics.friction)
            _add_spring(reader, machine, dynamics, name, along.stiffness, along.rest)
