"""Loops in URDF files: joints beside the tree, in the spellings of the programs that read them.

Each handler takes the reader, the mechanism and one element of <robot>. All of them add exact joints between links
that the tree has connected already; the library cuts the loops by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.io.report import Limits
from bellcrank.io.urdf_common import ASIDE, ZERO, blame
from bellcrank.io.urdf_drake import DRAKE
from bellcrank.io.urdf_joints import JointReader, axis_of, joint_of, made_unit
from bellcrank.io.xml import Element, clipped
from bellcrank.mechanism.joints import Joint, Spherical, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf_reader import Reader

__all__ = ["HANDLERS", "add_closing", "carried"]

_KINDS = "revolute, continuous, prismatic, spherical, ball, fixed, universal, cylindrical, planar, screw"
_WEIGHTLESS = {("turnGravityOff", "true"), ("turnGravityOff", "1"), ("gravity", "false"), ("gravity", "0")}


def add_closing(reader: Reader, machine: Mechanism, element: Element, joint: Joint, ends: tuple[str, str],
                poses: tuple[Pose, Pose], prefix: str = "loop") -> str:
    """Add a joint between two bodies that are connected already; returns its name."""
    name = element.attribute("name") if "name" in element.attributes else reader.fresh(prefix)
    reader.names.add(name)
    with blame(element):
        machine.add_joint(name, joint, *ends, *poses)
    return name


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


def _unknown(element: Element, kind: str) -> Exception:
    return element.error(f"the joint type {clipped(kind)!r} closes no loop; known are {_KINDS}")


# -- <loop_joint>: old Drake, RigidBodyDynamics.jl, Isaac Sim ------------------------------------
def _loop_joint(reader: Reader, machine: Mechanism, element: Element) -> None:
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
        raise _unknown(element, kind)
    one, two = (reader.link(side.attribute("link"), side) for side in sides)
    add_closing(reader, machine, element, joint, (one, two), (reader.pose(sides[0]), reader.pose(sides[1])))


# -- <constraint>: the proposal of 2026 for URDF, and exporters that write it as <loop_joint> ------
def _constraint(reader: Reader, machine: Mechanism, element: Element) -> None:
    if element.first("parent") is None and element.first("child") is None:
        reader.note("warned", element, "a connection of a kind unknown here, not read: it has no <parent> and <child>")
        return
    _two_origins(reader, machine, element)


def _two_origins(reader: Reader, machine: Mechanism, element: Element) -> None:
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
            across = _across(axis)
            if other is not None:
                inner = inner @ Pose(ZERO, carried(across, second))
            joint = joint_of(kind, axis, across)
        else:
            joint = joint_of(kind, axis, pitch=_pitch(element))
            if tuple(second) != tuple(axis) and joint is not None and not isinstance(joint, Weld | Spherical):
                inner = inner @ Pose(ZERO, carried(axis, second))
    if joint is None:
        raise _unknown(element, kind)
    add_closing(reader, machine, element, joint, ends, (outer, inner))


def _aligned(reader: Reader, element: Element, links: tuple[str, str], outer: Pose, inner: Pose,
             axis: Sequence[float], frame: str) -> tuple[Pose, tuple[float, ...]]:
    """The child's frame turned so that both sides agree at zero, and the axis in their common coordinates."""
    place = reader.place(links[0] if frame == "parent" else links[1]).matrix
    world_outer = reader.place(links[0]).matrix @ outer.matrix
    with blame(element):
        turned = Pose(inner.position, reader.place(links[1]).matrix.T @ world_outer)
    return turned, tuple((world_outer.T @ place @ np.asarray(axis)).tolist())


def _across(axis: Sequence[float]) -> tuple[float, ...]:
    """A unit vector across `axis`: y for x."""
    a = np.asarray(axis, dtype=float)
    across = np.cross(np.roll(np.eye(3)[int(np.argmax(np.abs(a)))], -1), a)
    return tuple((across / np.sqrt(across @ across)).tolist())


def _pitch(element: Element) -> float:
    """The advance of a screw [m/rad]; files give it per turn."""
    for tag in ("thread_pitch", "screw_thread_pitch", "drake:screw_thread_pitch"):
        found = element.first(tag)
        if found is not None and "value" in found.attributes:
            return found.number("value") / (2.0 * math.pi)
    return 0.0


# -- <gazebo><joint>: an SDF joint between two links ---------------------------------------------
def _gazebo(reader: Reader, machine: Mechanism, element: Element) -> None:
    found = False
    for inner in element.walk():
        below = {child.tag for child in inner.children}
        if inner.tag == "joint" and {"parent", "child"} <= below:
            _sdf_joint(reader, machine, inner)
        elif "joint" in inner.tag and ({"parent", "child"} <= below or {"body1", "body2"} <= below):
            reader.note("warned", inner, "closes a loop in a simulator, not read: only <joint> with <parent> and "
                                         "<child> is")
        elif inner.tag == "springStiffness" or (inner.tag, inner.text) in _WEIGHTLESS:
            reader.note("warned", inner, "acts on the motion in a simulator, not read")
        else:
            continue
        found = True
    if not found:
        reader.note("ignored", element, ASIDE["gazebo"])


def _sdf_joint(reader: Reader, machine: Mechanism, element: Element) -> None:
    kind = element.attribute("type")
    if kind in ("gearbox", "revolute2"):
        reader.note("warned", element, f"a {kind} joint of a simulator, not read")
        return
    names = [_word(element.only(tag)) for tag in ("parent", "child")]
    ends = reader.link(names[0], element, world=True), reader.link(names[1], element, world=True)
    here = _sdf_pose(reader, element, names[1])
    # SDF: the two sides coincide where the tree has the links while all joints are at zero
    with blame(element):
        world = reader.place(names[1]) @ here
        outer = reader.place(names[0]).inverse() @ world
    axes = [_sdf_axis(reader, element, tag, world, names) for tag in ("axis", "axis2")]
    with blame(element):
        joint = joint_of(kind, axes[0] or (0.0, 0.0, 1.0), axes[1] or _across(axes[0] or (0.0, 0.0, 1.0)),
                         _sdf_pitch(element))
    if joint is None:
        raise _unknown(element, kind)
    name = add_closing(reader, machine, element, joint, (ends[0], ends[1]), (outer, here))
    _sdf_data(reader, machine, element, name, joint)


def _word(element: Element) -> str:
    name = element.attributes.get("link", element.text).strip()
    if not name:
        raise element.error("names no link")
    return name


def _sdf_pose(reader: Reader, element: Element, child: str) -> Pose:
    """The joint frame in the child link."""
    pose = element.first("pose")
    if pose is None:
        return Pose()
    numbers = _sdf_numbers(pose, 6) if pose.text else ZERO + ZERO
    own = reader.turned(numbers[:3], numbers[3:])
    base = (pose.attributes.get("relative_to") or pose.attributes.get("frame") or "").strip()
    if base in ("", child):
        return own
    with blame(pose):
        return reader.place(child).inverse() @ (_sdf_frame(reader, pose, base) @ own)


def _sdf_frame(reader: Reader, element: Element, name: str) -> Pose:
    """Where a link, or the frame of a tree joint, or the model lies in the root link."""
    if name in reader.links:
        return reader.place(name)
    for edge in reader.order:
        if edge.name == name:
            return reader.place(edge.child)
    if name not in ("__model__", "world"):
        raise element.error(f"there is no link or joint {clipped(name)!r}")
    return Pose()


def _sdf_axis(reader: Reader, joint: Element, tag: str, world: Pose, names: Sequence[str]) -> tuple[float, ...] | None:
    """An axis in the joint frame, which lies at `world` in the root link."""
    element = joint.first(tag)
    if element is None or element.first("xyz") is None:
        return None
    xyz = element.only("xyz")
    axis = made_unit(reader, xyz, _sdf_numbers(xyz, 3))
    base = xyz.attributes.get("expressed_in", "").strip()
    old = element.first("use_parent_model_frame")
    if not base and old is not None and old.text in ("1", "true"):
        base = "__model__"
    if not base or base == joint.attributes.get("name"):
        return axis
    turn = _sdf_frame(reader, xyz, base).matrix
    return tuple((world.matrix.T @ turn @ np.asarray(axis)).tolist())


def _sdf_numbers(element: Element, count: int) -> tuple[float, ...]:
    """Numbers in the text of an element, read as strictly as those in attributes."""
    text = Element(element.tag, {**element.attributes, "text": element.text}, element.line, element.source,
                   element.parent)
    return text.numbers("text", count)


def _sdf_pitch(element: Element) -> float:
    """The advance of a screw [m/rad]."""
    found = element.first("screw_thread_pitch")
    if found is not None:
        return _sdf_numbers(found, 1)[0] / (2.0 * math.pi)
    found = element.first("thread_pitch")  # older: minus radians per metre
    if found is None:
        return 0.0
    value = _sdf_numbers(found, 1)[0]
    if value == 0.0 or not math.isfinite(1.0 / value):
        raise found.error("a thread pitch of zero radians per metre is no screw")
    return -1.0 / value


def _sdf_data(reader: Reader, machine: Mechanism, element: Element, name: str, joint: Joint) -> None:
    axis = element.first("axis")
    if axis is None or joint.nu != 1:
        return
    limit, dynamics = axis.first("limit"), axis.first("dynamics")

    def number(inside: Element, tag: str, default: float) -> float:
        found = inside.first(tag)
        if found is None or not found.text or "inf" in found.text.lower():
            return default
        return _sdf_numbers(found, 1)[0]

    if limit is not None:
        reader.limits[name] = Limits(number(limit, "lower", -math.inf), number(limit, "upper", math.inf),
                                     number(limit, "effort", math.inf), number(limit, "velocity", math.inf))
        reader.note("kept", limit, "limits do not act on the motion; kept in report.limits")
    if dynamics is not None:
        JointReader(reader, machine).friction(name, dynamics, number(dynamics, "damping", 0.0),
                                              number(dynamics, "friction", 0.0))


HANDLERS: dict[str, Callable[[Reader, Mechanism, Element], None]] = {
    "loop_joint": _loop_joint, "constraint": _constraint, "gazebo": _gazebo, **DRAKE}
