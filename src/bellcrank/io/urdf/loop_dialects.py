"""Loops in URDF files: joints beside the tree, in the spellings of the programs that read them.

Each handler takes the reader, the mechanism and one element of <robot>. All of them add exact joints between links
that the tree has connected already; the library cuts the loops by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.io.common.xml import XmlElement, blame
from bellcrank.io.urdf.drake import DRAKE
from bellcrank.io.urdf.gazebo import gazebo
from bellcrank.io.urdf.loop_joint import across, add_closing, unknown
from bellcrank.io.urdf.tree_joints import axis_of, joint_of
from bellcrank.io.urdf.vocabulary import ZERO
from bellcrank.mechanism.joints import Spherical, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["HANDLERS", "carried"]


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
