"""Loops in URDF files: joints beside the tree, in the spellings of the programs that read them.

Each handler takes the reader, the mechanism and one element of <robot>. All of them add exact joints between links
that the tree has connected already; the library cuts the loops by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.errors import FileError
from bellcrank.io.common.xml import XmlElement, blame, clipped, near, plain_number
from bellcrank.io.report import Dynamics
from bellcrank.io.sdf.frames import Poses, boolean
from bellcrank.io.sdf.joints import AlongAxis, read_along, screw_pitch
from bellcrank.io.urdf.tree_joints import ASIDE, ZERO, JointReader, axis_of, joint_of, made_unit
from bellcrank.mechanism.joints import Spherical, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["HANDLERS", "carried", "unknown"]


# -- what all spellings of loops in URDF files share ------------------------------------------------
_KINDS = "revolute, continuous, prismatic, spherical, ball, fixed, universal, cylindrical, planar, screw"


def add_closing(reader: RobotReader, machine: Mechanism, element: XmlElement, joint: Joint, ends: tuple[str, str],
                poses: tuple[Pose, Pose], prefix: str = "loop") -> str:
    """Add a joint between two bodies that are connected already; returns its name."""
    name = element.attribute("name") if "name" in element.attributes else reader.names.fresh(prefix)
    reader.names.add(name)
    with blame(element):
        machine.add_joint(name, joint, *ends, *poses)
    return name


def unknown(element: XmlElement, kind: str) -> FileError:
    """The exception for a joint type that is not known."""
    return element.error(f"the joint type {clipped(kind)!r} closes no loop; known are {_KINDS}")


def across(axis: Sequence[float]) -> tuple[float, ...]:
    """A unit vector across `axis`: y for x."""
    a = np.asarray(axis, dtype=float)
    found = np.cross(np.roll(np.eye(3)[int(np.argmax(np.abs(a)))], -1), a)
    return tuple((found / np.sqrt(found @ found)).tolist())


# -- drake's elements in URDF files: ball and weld constraints, bushings, springs, and frames -------
_TURNS = ("torque_stiffness", "torque_damping")
_SLIDES = ("force_stiffness", "force_damping")


def _name(reader: RobotReader, element: XmlElement, prefix: str) -> str:
    return element.attributes.get("name", "").strip() or reader.names.fresh(prefix)


def _close(reader: RobotReader, machine: Mechanism, element: XmlElement, joint: Joint, ends: tuple[str, str],
           poses: tuple[Pose, Pose], prefix: str) -> None:
    name = _name(reader, element, prefix)
    reader.names.add(name)
    with blame(element):
        machine.add_joint(name, joint, *ends, *poses)


def _named_frame(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """<frame name link xyz rpy/>, or Isaac Sim's <fixed_frame> with <parent> and <origin>."""
    name = element.attribute("name")
    if element.tag == "frame":
        link, pose = reader.link(element.attribute("link"), element, world=True), reader.pose(element)
    else:
        parent = element.only("parent")
        link, pose = reader.link(parent.attribute("link"), parent), reader.pose(element.first("origin"))
    if name in reader.frames or name in reader.links or name in (machine.ground.name, *reader.renamed.values()):
        reader.note("ignored", element, "another frame or link has this name")
        return
    with blame(element):
        machine.add_frame(name, link, pose)
    reader.frames[name] = link, pose


def _end(reader: RobotReader, element: XmlElement, tag: str) -> tuple[str, Pose]:
    """The body and pose that <tag name=.../> stands for: a frame or a link."""
    side = element.only(tag)
    name = side.attributes.get("name") or side.text
    if not name:
        raise side.error("needs the attribute 'name'")
    if name in reader.frames:
        return reader.frames[name]
    if name in reader.links:
        return reader.body(name), Pose()
    if name in ("world", "WorldBody", "world_body"):
        return "ground", Pose()
    known = {**reader.links, **reader.frames}
    raise side.error(f"there is no frame or link {clipped(name)!r}{near(name, known)}")


def _point(element: XmlElement, tag: str) -> Pose:
    side = element.first(tag)
    return Pose() if side is None else Pose(side.numbers("value", 3))


def _ball(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    ends = [_end(reader, element, f"drake:ball_constraint_body_{side}") for side in "AB"]
    points = _point(element, "drake:ball_constraint_p_AP"), _point(element, "drake:ball_constraint_p_BQ")
    with blame(element):
        poses = ends[0][1] @ points[0], ends[1][1] @ points[1]
    _close(reader, machine, element, Spherical(), (ends[0][0], ends[1][0]), poses, "ball_constraint")


def _weld(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    one, two = _end(reader, element, "parent"), _end(reader, element, "child")
    _close(reader, machine, element, Weld(), (one[0], two[0]), (one[1], two[1]), "weld_constraint")


def _bushing(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    one, two = (_end(reader, element, f"drake:bushing_frame{side}") for side in "AC")
    turn, turn_damping, slide, slide_damping = (element.only(f"drake:bushing_{what}").numbers("value", 3)
                                                for what in _TURNS + _SLIDES)
    name = _name(reader, element, "bushing")
    with blame(element):
        machine.add_bushing(name, one[0], two[0], one[1], two[1], stiffness=slide, turn_stiffness=turn,
                            damping=slide_damping, turn_damping=turn_damping)
    reader.note("warned", element, "equal to Drake's bushing for small displacements and turns only: it acts along the "
                                   "first frame's axes and measures large turns differently")


def _spring_of_points(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """<drake:linear_spring_damper>: a spring between two points, exactly."""
    what = "drake:linear_spring_damper_"
    one, two = _end(reader, element, f"{what}body_A"), _end(reader, element, f"{what}body_B")
    with blame(element):
        poses = one[1] @ _point(element, f"{what}p_AP"), two[1] @ _point(element, f"{what}p_BQ")
    length, stiffness, damping = (element.only(f"{what}{part}").number("value")
                                  for part in ("free_length", "stiffness", "damping"))
    name = _name(reader, element, "spring")
    with blame(element):
        machine.add_spring(name, one[0], two[0], poses[0].position, poses[1].position, stiffness=stiffness,
                           damping=damping, length=length)


DRAKE: dict[str, Callable[[RobotReader, Mechanism, XmlElement], None]] = {
    "frame": _named_frame, "fixed_frame": _named_frame, "drake:ball_constraint": _ball, "drake:weld_constraint": _weld,
    "drake:linear_bushing_rpy": _bushing, "drake:linear_spring_damper": _spring_of_points}


# -- <gazebo> elements of URDF files: SDF joints that close loops, springs of joints, and settings of a simulator ---
_TWO_AXES = ("universal", "revolute2")
_ENDS, _OLD_ENDS = {"parent", "child"}, {"body1", "body2"}


def gazebo(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """One <gazebo> element of a file."""
    found = _spring_of_joint(reader, machine, element)
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
def _spring_of_joint(reader: RobotReader, machine: Mechanism, element: XmlElement) -> bool:
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


def carried(first: Sequence[float], second: Sequence[float]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    """A rotation matrix that takes the unit vector `first` to `second`, the smallest one."""
    a, b = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    a, b = a / np.sqrt(a @ a), b / np.sqrt(b @ b)
    if (a == b).all():
        return np.eye(3)
    if a @ b < 0.0:  # half a turn about an axis across first, so that what is left is well-conditioned
        across = np.cross(a, np.eye(3)[int(np.argmin(np.abs(a)))])
        return np.asarray(carried(-a, b) @ (2.0 * np.outer(across, across) / (across @ across) - np.eye(3)))
    middle = a + b  # the product of two reflections
    return np.asarray((np.eye(3) - 2.0 * np.outer(middle, middle) / (middle @ middle))
                      @ (np.eye(3) - 2.0 * np.outer(a, a)))


# -- <loop_joint>: old Drake, RigidBodyDynamics.jl, Isaac Sim ------------------------------------
def _loop_joint(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    if element.first("parent") is not None:
        _two_origins(reader, machine, element)
        return
    sides = [child for child in element.children if child.tag in ("link1", "link2")]
    if len(sides) != 2:
        raise element.error("needs <link1> and <link2>, each with the attributes link, xyz and rpy")
    if sides[0].tag == "link2" and sides[1].tag == "link1":
        sides.reverse()
    kind = element.attributes.get("type", "revolute")
    with blame(element):
        joint = joint_of(kind, axis_of(reader, element.first("axis")), pitch=_pitch(element))
    if joint is None:
        raise unknown(element, kind)
    one, two = (reader.link(side.attribute("link"), side) for side in sides)
    add_closing(reader, machine, element, joint, (one, two), (reader.pose(sides[0]), reader.pose(sides[1])))


# -- <constraint>: the proposal of 2026 for URDF, and exporters that write it as <loop_joint> ------
def _constraint(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    if element.first("parent") is None and element.first("child") is None:
        reader.note("warned", element, "a connection of a kind unknown here, not read: it has no <parent> and <child>")
        return
    _two_origins(reader, machine, element)


def _two_origins(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    parent, child = element.only("parent"), element.only("child")
    ends = reader.link(parent.attribute("link"), parent), reader.link(child.attribute("link"), child)
    outer, inner = reader.pose(element.first("parent_origin")), reader.pose(element.first("child_origin"))
    kind = element.attribute("type")
    axis_element = element.first("parent_axis") or element.first("axis")
    axis = axis_of(reader, axis_element)
    other = element.first("child_axis")
    if axis_element is not None and axis_element.attributes.get("frame") in ("parent", "child"):
        # along a link's axes; the other link meets it where the tree has it while all joints are at zero
        inner, axis = _aligned(reader, element, (parent.attribute("link"), child.attribute("link")), outer, inner, axis,
                               axis_element.attributes["frame"])
        second: Sequence[float] = axis
    else:
        second = axis if other is None else axis_of(reader, other)
    with blame(element):
        if kind == "universal":
            crossing = across(axis)
            if other is not None:
                inner = inner @ Pose(ZERO, carried(crossing, second))
            joint = joint_of(kind, axis, crossing)
        else:
            joint = joint_of(kind, axis, pitch=_pitch(element))
            if tuple(second) != tuple(axis) and joint is not None and not isinstance(joint, Weld | Spherical):
                inner = inner @ Pose(ZERO, carried(axis, second))
    if joint is None:
        raise unknown(element, kind)
    add_closing(reader, machine, element, joint, ends, (outer, inner))


def _aligned(reader: RobotReader, element: XmlElement, links: tuple[str, str], outer: Pose, inner: Pose,
             axis: Sequence[float], frame: str) -> tuple[Pose, tuple[float, ...]]:
    """The child's frame turned so that both sides agree at zero, and the axis in their common coordinates."""
    place = reader.place(links[0] if frame == "parent" else links[1]).rotation
    world_outer = reader.place(links[0]).rotation @ outer.rotation
    with blame(element):
        turned = Pose(inner.position, reader.place(links[1]).rotation.T @ world_outer)
    return turned, tuple((world_outer.T @ place @ np.asarray(axis)).tolist())


def _pitch(element: XmlElement) -> float:
    """The advance of a screw [m/rad]; files give it per turn."""
    if element.attributes.get("type") != "screw":
        return 0.0
    for tag in ("thread_pitch", "screw_thread_pitch", "drake:screw_thread_pitch"):
        found = element.first(tag)
        if found is not None and "value" in found.attributes:
            return found.number("value") / (2.0 * math.pi)
    raise element.error("a screw needs <thread_pitch value=\"metres per turn\"/>")


HANDLERS: dict[str, Callable[[RobotReader, Mechanism, XmlElement], None]] = {
    "loop_joint": _loop_joint, "constraint": _constraint, "gazebo": gazebo, **DRAKE}
