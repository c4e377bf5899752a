"""The joints of a URDF tree: their types and axes, and what they have beside their motion."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from bellcrank.errors import ModelError
from bellcrank.io.common.readings import MOMENTS, unit
from bellcrank.io.common.xml import XmlElement, blame, clipped, near
from bellcrank.io.report import Dynamics, Limits, Mimic
from bellcrank.mechanism.joints import Cylindrical, Free, Planar, Prismatic, Revolute, Screw, Spherical, Universal, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["ASIDE", "DEFAULT_AXIS", "KNOWN", "REPEATABLE", "ZERO", "Edge", "JointReader", "Sidecar", "axis_of",
           "by_name", "edge_of", "joint_of", "made_unit", "spanned"]


# -- the tree of links in a URDF file: who is joined to whom, and in which order --------------------
@dataclass(frozen=True, slots=True)
class Edge:
    """A <joint> with the links it connects."""

    name: str
    element: XmlElement
    parent: str
    child: str


def by_name(root: XmlElement, tag: str) -> dict[str, XmlElement]:
    """The elements with a tag, by name; names are unique."""
    found: dict[str, XmlElement] = {}
    for element in root.all(tag):
        first = found.setdefault(element.attribute("name"), element)
        if first is not element:
            raise element.error(f"the name is taken by the <{tag}> on line {first.line}; names must be unique")
    return found


def edge_of(name: str, element: XmlElement, links: Mapping[str, XmlElement]) -> Edge:
    """A <joint> whose links are known to exist."""
    ends = []
    for tag in ("parent", "child"):
        end = element.only(tag)
        link = end.attribute("link")
        if link not in links:
            raise end.error(f"there is no link {clipped(link)!r}{near(link, links)}")
        ends.append(link)
    if ends[0] == ends[1]:
        raise element.error(f"connects the link {clipped(ends[0])!r} with itself")
    return Edge(name, element, ends[0], ends[1])


def spanned(links: Mapping[str, XmlElement], edges: Sequence[Edge]) -> tuple[str, list[Edge]]:
    """The root link, and the joints depth first from it with siblings in file order."""
    above: dict[str, Edge] = {}
    below: dict[str, list[Edge]] = {}
    for edge in edges:
        other = above.setdefault(edge.child, edge)
        if other is not edge:
            raise edge.element.error(f"the link {clipped(edge.child)!r} is already the child of joint "
                                     f"{clipped(other.name)!r} (line {other.element.line}); write a joint that closes "
                                     "a loop as <loop_joint>, see docs/howto/urdf.md")
        below.setdefault(edge.parent, []).append(edge)
    roots = [name for name in links if name not in above]
    if len(roots) > 1:
        raise links[roots[1]].error(f"{len(roots)} links have no parent joint ({_listed(roots)}); a URDF file has one "
                                    "root link")
    order: list[Edge] = []
    stack = list(reversed(below.get(roots[0], []))) if roots else []
    while stack:
        edge = stack.pop()
        order.append(edge)
        stack.extend(reversed(below.get(edge.child, [])))
    if len(order) != len(edges):
        reached = {edge.child for edge in order}
        lost = [edge for edge in edges if edge.child not in reached]
        raise lost[0].element.error(f"the joints {_listed([e.name for e in lost])} run in a circle and hang on no root "
                                    "link; write a joint that closes a loop as <loop_joint>, see docs/howto/urdf.md")
    return roots[0], order


def _listed(names: Sequence[str]) -> str:
    shown = ", ".join(repr(clipped(name)) for name in names[:5])
    return shown if len(names) <= 5 else f"{shown} and {len(names) - 5} more"


# -- what the parts of the URDF reader share: names of elements, and what a side file can do --------
ZERO = (0.0, 0.0, 0.0)
ONE_AXIS = ("revolute", "continuous", "prismatic", "screw")

_JOINT = (("name", "type"), ("origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic",
                             "safety_controller", "drake:mimic", "drake:screw_thread_pitch"))
#: what URDF defines: attributes and children of each element that matters to the motion
KNOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "link": (("name",), ("inertial", "visual", "collision")),
    "inertial": ((), ("origin", "mass", "inertia")),
    "joint": _JOINT,
    "drake:joint": _JOINT,
    "origin": (("xyz", "rpy", "quat_xyzw"), ()),
    "mass": (("value",), ()),
    "inertia": (MOMENTS, ()),
    "parent": (("link",), ()),
    "child": (("link",), ()),
    "axis": (("xyz",), ()),
    "dynamics": (("damping", "friction"), ()),
    "limit": (("lower", "upper", "effort", "velocity"), ()),
    "mimic": (("joint", "multiplier", "offset"), ()),
}
REPEATABLE = ("visual", "collision")
ASIDE = {"gazebo": "settings of a simulator", "transmission": "wiring of actuators",
         "ros2_control": "wiring of actuators", "sensor": "a sensor", "calibration": "reference positions of sensors",
         "safety_controller": "settings of a controller"}


class Sidecar(Protocol):
    """A file beside the URDF file that says what URDF cannot."""

    def joint_types(self, reader: RobotReader) -> Mapping[str, Joint]:
        """Joints of the tree that have another type than the URDF file says."""

    def close(self, reader: RobotReader, machine: Mechanism) -> None:
        """Add the joints that close loops."""


DEFAULT_AXIS = (1.0, 0.0, 0.0)
_PLAIN = ("revolute", "continuous", "prismatic", "fixed", "floating", "planar")
_MORE = ("spherical", "ball", "universal", "screw")


def joint_of(kind: str, axis: Sequence[float] = DEFAULT_AXIS, second: Sequence[float] = (0.0, 1.0, 0.0),
             pitch: float = 0.0) -> Joint | None:
    """The joint that a word in a file stands for, or None; `pitch` is the advance per radian [m/rad]."""
    match kind:
        case "revolute" | "continuous" | "hinge":
            return Revolute(axis)
        case "prismatic" | "slider":
            return Prismatic(axis)
        case "spherical" | "ball":
            return Spherical()
        case "fixed" | "weld":
            return Weld()
        case "universal":
            return Universal(axis, second)
        case "cylindrical":
            return Cylindrical(axis)
        case "planar":
            return Planar(axis)
        case "screw":
            return Screw(axis, pitch)
    return None


def axis_of(reader: RobotReader, element: XmlElement | None, default: Sequence[float] = DEFAULT_AXIS
            ) -> tuple[float, ...]:
    """The unit vector in the attribute xyz of an element."""
    if element is None:
        return tuple(default)
    return made_unit(reader, element, element.numbers("xyz", 3))


def made_unit(reader: RobotReader, element: XmlElement, axis: tuple[float, ...]) -> tuple[float, ...]:
    """A direction read from `element` at length 1."""
    length = math.hypot(*axis)
    if length == 0.0:
        raise element.error("the axis 0 0 0 has no direction")
    if abs(length - 1.0) <= 1e-3:
        return axis  # decimals of a unit vector, made exact by the joint
    reader.note("changed", element, f"the axis had length {length:.6g}, now 1")
    return unit(axis)


class JointReader:
    """Adds the joints of the tree to a mechanism."""

    def __init__(self, reader: RobotReader, machine: Mechanism, base: str | None = None) -> None:
        self.reader = reader
        self.machine = machine
        self.standing = {} if base is None else {base: Pose()}  #: where links are that are fixed to the world
        self.followers: dict[str, XmlElement] = {}
        self.sound: set[str] = set()  # joints that end at one that mimics nothing

    def add(self, edge: Edge, retyped: Joint | None = None) -> None:
        """One joint whose links have become bodies, of the type in the file or of another one."""
        reader = self.reader
        joint = self._joint(edge)
        pose = reader.pose(edge.element.first("origin"))
        reader.origins[edge.name] = pose
        here = self.standing.get(edge.parent)
        with blame(edge.element):
            if isinstance(joint, Weld) and retyped is None and here is not None:
                self.standing[edge.child] = here @ pose
            if isinstance(joint, Free) and retyped is None and here is not None:  # measured in the world
                joint, pose = Free(here @ pose), Pose() if here == Pose() else here.inverse()
            self.machine.add_joint(edge.name, retyped or joint, reader.body(edge.parent), reader.body(edge.child), pose)
        self._data(edge, "retyped" if retyped else edge.element.attribute("type"))

    def _joint(self, edge: Edge) -> Joint:
        element, reader = edge.element, self.reader
        reader.strays(element)
        kind = element.attribute("type")
        if kind == "floating":
            return Free()
        if kind not in _PLAIN and kind not in _MORE:
            raise element.error(f"the joint type {clipped(kind)!r} is unknown; URDF has {', '.join(_PLAIN)}; "
                                f"{', '.join(_MORE)} are read, too")
        if kind == "universal":
            # Drake's: about the x axis of the joint frame, then about y
            return Universal("x", "y")
        axis = DEFAULT_AXIS if kind in ("fixed", "spherical", "ball") else axis_of(reader, element.first("axis"))
        pitch = 0.0
        if kind == "screw":
            pitch = element.only("drake:screw_thread_pitch").number("value") / (2.0 * math.pi)
        with blame(element):
            joint = joint_of(kind, axis, pitch=pitch)
        assert joint is not None
        return joint

    def _data(self, edge: Edge, kind: str) -> None:
        """What a joint has beside its motion."""
        seen: set[str] = set()
        for element in edge.element.children:
            if element.tag in ("limit", "dynamics", "mimic", "drake:mimic"):
                if kind not in ONE_AXIS:
                    lost = element.tag == "dynamics" and kind != "fixed" and any(
                        element.number(name, 0.0) for name in ("damping", "friction"))
                    self.reader.note("warned" if lost else "ignored", element, f"has no meaning for a {kind} joint")
                elif element.tag in seen:
                    continue  # noted as a stray
                elif element.tag == "limit":
                    self._limit(edge.name, kind, element)
                elif element.tag == "dynamics":
                    self.friction(edge.name, element, element.number("damping", 0.0), element.number("friction", 0.0))
                else:
                    self._mimic(edge.name, element)
            elif element.tag in ("calibration", "safety_controller"):
                self.reader.note("ignored", element, ASIDE[element.tag])
            seen.add(element.tag)

    def _limit(self, joint: str, kind: str, element: XmlElement) -> None:
        def number(name: str, default: float) -> float:
            return element.number(name, default, infinite=True)

        reader = self.reader
        lower, upper = (-math.inf, math.inf) if kind == "continuous" else (number("lower", 0.0), number("upper", 0.0))
        limits = Limits(lower, upper, number("effort", math.inf), number("velocity", math.inf))
        reader.limits[joint] = limits
        reader.note("kept", element, "limits do not act on the motion; kept in report.limits")
        missing = [name for name in ("effort", "velocity") if name not in element.attributes]
        if missing:
            reader.note("changed", element, f"no {' and no '.join(missing)} given: taken as unlimited")
        if limits.lower > limits.upper:
            reader.note("warned", element, f"the lower limit {limits.lower:g} is above the upper one {limits.upper:g}")

    def friction(self, joint: str, element: XmlElement, damping: float, friction: float) -> None:
        """Damping and dry friction: kept, and acting if asked for."""
        reader, found = self.reader, Dynamics(damping, friction)
        reader.dynamics[joint] = found
        if found == Dynamics():
            reader.note("kept", element, "kept in report.dynamics")
        elif not reader.act:
            reader.note("warned", element, "damping and friction do not act on the motion unless read with "
                                           "dynamics=True; kept in report.dynamics")
        else:
            with blame(element):
                self.machine.add_friction(f"{joint}_friction", joint, coulomb=friction, viscous=damping)
            if friction:
                reader.note("changed", element, "dry friction is smooth near zero speed, full beyond a few 0.001 rad/s "
                                                "or m/s")

    # -- joints that follow others ------------------------------------------------------------
    def _mimic(self, joint: str, element: XmlElement) -> None:
        reader = self.reader
        mimic = Mimic(element.attribute("joint"), element.number("multiplier", 1.0), element.number("offset", 0.0))
        if joint in self.followers:
            raise element.error("the joint has another <mimic> already")
        reader.mimics[joint] = mimic
        self.followers[joint] = element
        if mimic.joint not in reader.joints:
            if reader.coupled:
                raise element.error(f"there is no joint {clipped(mimic.joint)!r}{near(mimic.joint, reader.joints)}; "
                                    "mimic=\"free\" reads the file without its couplings")
            reader.note("warned", element, f"there is no joint {clipped(mimic.joint)!r}")
        if not reader.coupled:
            reader.note("changed", element, f"moves on its own, though the file wants it at {mimic.multiplier:g} times "
                                            f"joint {clipped(mimic.joint)!r} plus {mimic.offset:g}")

    def couple(self) -> None:
        """Couple the joints that mimic others, once all joints are there."""
        for joint, element in self.followers.items() if self.reader.coupled else ():
            self._refuse_circle(joint)
            with blame(element):
                self._couple(joint, element)

    def _couple(self, joint: str, element: XmlElement) -> None:
        mimic, machine = self.reader.mimics[joint], self.machine
        leader = machine.joint(mimic.joint).joint
        if leader.nu > 1:
            raise ModelError(f"joint {clipped(mimic.joint)!r} has several coordinates and cannot be mimicked")
        if leader.nu == 0 or mimic.multiplier == 0.0:
            machine.prescribe(joint, mimic.offset)
            reason = "is fixed" if leader.nu == 0 else "counts zero times"
            self.reader.note("warned", element, f"the joint it mimics {reason}: held at {mimic.offset:g}")
            return
        machine.add_coupler(f"{joint}_mimic", {joint: 1.0, mimic.joint: -mimic.multiplier}, mimic.offset)
        self.reader.note("kept", element, f"coupled exactly: {mimic.multiplier:g} times joint {clipped(mimic.joint)!r} "
                                          f"plus {mimic.offset:g}; mimic=\"free\" lets it move on its own")

    def _refuse_circle(self, joint: str) -> None:
        mimics = self.reader.mimics
        path: dict[str, None] = {}
        here = joint
        while here in mimics and here not in self.sound:
            path[here] = None
            here = mimics[here].joint
            if here in path:
                raise self.followers[here].error("mimics itself" if len(path) == 1
                                                 else "the mimic joints run in a circle")
        self.sound.update(path)
