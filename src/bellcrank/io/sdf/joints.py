"""Joints of an SDF file: types, axes, and what acts along them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bellcrank.io.common.angles import unit
from bellcrank.io.common.xml import HUGE, XmlElement, blame, clipped
from bellcrank.io.report import Dynamics, Kind, Limits
from bellcrank.io.sdf.frames import FrameNode, relative
from bellcrank.io.sdf.text_values import boolean, number_in, text_in
from bellcrank.mechanism.joints import Joint, Prismatic, Revolute, Screw, Spherical, Universal, Weld
from bellcrank.mechanism.pose import Pose

__all__ = ["AlongAxis", "Hinge", "make_hinge", "read_along", "read_axis", "screw_pitch"]

Note = Callable[[Kind, XmlElement, str], None]

_TYPES = ("revolute", "continuous", "prismatic", "screw", "revolute2", "universal", "ball", "fixed", "gearbox")
_TWO = ("revolute2", "universal")
_ASIDE = {"physics": "settings of a simulator", "sensor": "a sensor", "plugin": "a plug-in of a simulator",
          "provide_feedback": "settings of a simulator"}
_KNOWN = ("pose", "parent", "child", "axis", "axis2", "thread_pitch", "screw_thread_pitch", "gearbox_ratio",
          "gearbox_reference_body", "frame")


@dataclass(eq=False, slots=True)
class Hinge:
    """A <joint> with its two links. Gearboxes have no joint: they only relate two others."""

    node: FrameNode
    kind: str
    parent: FrameNode
    child: FrameNode
    joint: Joint | None
    parent_pose: Pose
    child_pose: Pose

    @property
    def name(self) -> str:
        return self.node.name

    @property
    def element(self) -> XmlElement:
        return self.node.element

    def axes(self) -> list[tuple[XmlElement, int | None]]:
        """The <axis> elements that mean something, each with its coordinate."""
        tags = ("axis", "axis2") if self.kind in _TWO else ("axis",)
        if self.joint is None or self.joint.nu != len(tags):
            return []
        found = [(self.element.first(tag), i if len(tags) > 1 else None) for i, tag in enumerate(tags)]
        return [(element, i) for element, i in found if element is not None]


@dataclass(frozen=True, slots=True)
class AlongAxis:
    """What acts along one coordinate of a joint."""

    limits: Limits
    dynamics: Dynamics
    stiffness: float = 0.0
    rest: float = 0.0
    stop_stiffness: float | None = None
    stop_damping: float | None = None


def make_hinge(node: FrameNode, note: Note) -> Hinge:
    """A joint between two links as the file says."""
    element = node.element
    kind = element.attribute("type")
    if kind not in _TYPES:
        raise element.error(f"the joint type {clipped(kind)!r} is unknown; SDF has {', '.join(_TYPES)}")
    ends = []
    for tag in ("parent", "child"):
        end = node.scope.find(text_in(element, tag), element.only(tag))
        assert end.holder is not None
        ends.append(end.holder)
    parent, child = ends
    if parent is child:
        raise element.error(f"connects {clipped(parent.name)!r} with itself")
    _remarks(element, kind, note)
    with blame(element):
        return Hinge(node, kind, parent, child, _joint(node, kind, note), relative(parent, node),
                     relative(child, node))


def _remarks(element: XmlElement, kind: str, note: Note) -> None:
    seen: set[str] = set()
    for child in element.children:
        if child.tag in _ASIDE:
            note("ignored", child, _ASIDE[child.tag])
        elif child.tag not in _KNOWN:
            note("ignored", child, "not an element of SDF inside <joint>")
        elif child.tag in seen and child.tag != "frame":
            note("warned", child, f"a second <{child.tag}>; only the first counts")
        elif (child.tag in ("axis", "axis2") and kind in ("ball", "fixed")) or \
                (child.tag == "axis2" and kind not in (*_TWO, "gearbox")):
            note("ignored", child, f"has no meaning for a {kind} joint")
        seen.add(child.tag)


def _joint(node: FrameNode, kind: str, note: Note) -> Joint | None:
    match kind:
        case "revolute" | "continuous":
            return Revolute(read_axis(node, "axis", note))
        case "prismatic":
            return Prismatic(read_axis(node, "axis", note))
        case "screw":
            return Screw(read_axis(node, "axis", note), screw_pitch(node.element, note))
        case "revolute2" | "universal":
            return Universal(read_axis(node, "axis", note), read_axis(node, "axis2", note))
        case "ball":
            return Spherical()
        case "fixed":
            return Weld()
        case _:
            return None


def screw_pitch(element: XmlElement, note: Note) -> float:
    """Advance of a screw [m/rad]."""
    new, old = element.first("screw_thread_pitch"), element.first("thread_pitch")
    if new is not None:
        return new.text_number() / (2.0 * math.pi)
    if old is None:
        note("changed", element, "no <screw_thread_pitch>: 1 m per turn, as SDF says")
        return 1.0 / (2.0 * math.pi)
    pitch = old.text_number()
    if abs(pitch) < 1.0 / HUGE:
        raise old.error("a thread pitch of 0 rad/m gives no motion")
    return -1.0 / pitch  # radians per metre, positive for a left-handed thread


def read_axis(node: FrameNode, tag: str, note: Note) -> tuple[float, ...]:
    """A unit axis in the joint's frame."""
    axis = node.element.first(tag)
    if axis is None:
        if tag == "axis2" or node.scope.version < (1, 7):
            raise node.element.error(f"needs an <{tag}> element")
        note("changed", node.element, f"no <{tag}>: 0 0 1, as SDF says")
        return (0.0, 0.0, 1.0)
    xyz = axis.first("xyz")
    given = (0.0, 0.0, 1.0) if xyz is None else xyz.text_numbers(3)
    at = axis if xyz is None else xyz
    if given == (0.0, 0.0, 0.0):
        raise at.error("the axis 0 0 0 has no direction")
    length = math.hypot(*given)
    if abs(length - 1.0) > 1e-3:
        note("changed", at, f"the axis had length {length:.6g}, now 1")
    direction = np.array(unit(given))
    frame = _axis_frame(node, axis, xyz, note)
    if frame is None or frame is node:
        return tuple(direction.tolist())
    turned = relative(node, frame).rotation @ direction
    whole = np.round(turned)
    return tuple(np.where(np.abs(turned - whole) < 1e-15, whole, turned).tolist())


def _axis_frame(node: FrameNode, axis: XmlElement, xyz: XmlElement | None, note: Note) -> FrameNode | None:
    """The frame in which an axis is given, None for the joint's own."""
    flag = axis.first("use_parent_model_frame")
    version = node.scope.version
    if version >= (1, 7):
        if flag is not None:
            note("warned", flag, "has no meaning since SDF 1.7; the axis is taken in the joint's frame (expressed_in)")
        name = "" if xyz is None else xyz.attributes.get("expressed_in", "").strip()
        return node.scope.find(name, axis) if name else None
    if version < (1, 5) or (flag is not None and boolean(flag, flag.text)):
        return node.scope.model
    return None


def read_along(axis: XmlElement, kind: str, note: Note) -> AlongAxis:
    """Limits, damping, friction and spring of one axis."""
    limit, dynamics = axis.first("limit"), axis.first("dynamics")
    if axis.first("initial_position") is not None:
        note("ignored", axis.only("initial_position"), "machines start where the file draws them")
    lower, upper = (number_in(limit, "lower", -math.inf, infinite=True),
                    number_in(limit, "upper", math.inf, infinite=True))
    if kind == "continuous":
        lower, upper = -math.inf, math.inf
    most = [number_in(limit, tag, math.inf, infinite=True) for tag in ("effort", "velocity")]
    limits = Limits(lower, upper, *(math.inf if x < 0.0 else x for x in most))
    if limits.lower > limits.upper and limit is not None:
        note("warned", limit, f"the lower limit {lower:g} is above the upper one {upper:g}")
    stops = [None if limit is None or limit.first(tag) is None else number_in(limit, tag, 0.0)
             for tag in ("stiffness", "dissipation")]
    return AlongAxis(limits, Dynamics(number_in(dynamics, "damping", 0.0), number_in(dynamics, "friction", 0.0)),
                 number_in(dynamics, "spring_stiffness", 0.0), number_in(dynamics, "spring_reference", 0.0), *stops)
