"""Joints of an SDF file: types, axes, and what acts along them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.io.common.readings import unit
from bellcrank.io.common.xml import HUGE, XmlElement, blame, clipped
from bellcrank.io.report import Dynamics, Kind, Limits, Mimic
from bellcrank.io.sdf.frames import FrameNode, boolean, number_in, relative, text_in
from bellcrank.mechanism.joints import Prismatic, Revolute, Screw, Spherical, Universal, Weld
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["AlongAxis", "Hinge", "align", "between", "couple_gearbox", "couple_mimics", "make_hinge", "read_along",
           "read_axis", "screw_pitch"]

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


# -- gearboxes and mimic axes of SDF files: exact linear relations of joint coordinates -------------
#: sines of angles up to this pass for rounding of the file's decimals
_PARALLEL = 1e-3


#: joints by the two nodes they connect
Between = Mapping[frozenset[FrameNode], Sequence[Hinge]]


def between(hinges: Sequence[Hinge]) -> Between:
    """The joints by what they connect, in file order."""
    found: dict[frozenset[FrameNode], list[Hinge]] = {}
    for hinge in hinges:
        found.setdefault(frozenset((hinge.parent, hinge.child)), []).append(hinge)
    return found


def couple_gearbox(machine: Mechanism, gear: Hinge, hinges: Between, note: Note) -> None:
    """theta_2 = -ratio theta_1, of the parent (1) and of the child (2), both against the reference body."""
    element = gear.element
    ratio = number_in(element, "gearbox_ratio", 1.0)
    if ratio == 0.0:
        raise element.only("gearbox_ratio").error("a ratio of 0 is no gear; use a fixed joint")
    reference = gear.node.scope.find(text_in(element, "gearbox_reference_body"),
                                     element.only("gearbox_reference_body")).holder
    assert reference is not None
    first, one = _angle(gear, "axis", gear.parent, reference, hinges, note)
    second, two = _angle(gear, "axis2", gear.child, reference, hinges, note)
    if first is second:
        raise element.error(f"both angles are that of the joint {clipped(first.name)!r}")
    with blame(element):
        machine.add_coupler(gear.name, {first.name: ratio * one, second.name: two})
    note("changed", element, "a relation between the angles of two other joints")
    for tag in ("axis", "axis2"):
        axis = element.only(tag)
        along = read_along(axis, gear.kind, note)
        if along.dynamics != Dynamics() or along.stiffness:
            note("warned", axis, "damping, friction and springs of a gearbox are not modelled; give them to the joints "
                                 "it couples")
        elif axis.first("limit") is not None:
            note("ignored", axis, "limits of a gearbox; those of the joints it couples are kept")


def _angle(gear: Hinge, tag: str, link: FrameNode, reference: FrameNode, hinges: Between, note: Note
           ) -> tuple[Hinge, float]:
    """The joint whose angle a gearbox means, and 1 or -1 if its angle counts the other way."""
    if gear.element.first(tag) is None:
        raise gear.element.error(f"needs an <{tag}> element")
    axis = np.array(read_axis(gear.node, tag, note))
    crooked: Hinge | None = None
    for hinge in hinges.get(frozenset((link, reference)), ()):
        if not isinstance(hinge.joint, Revolute):
            continue
        other = relative(gear.node, hinge.node).rotation @ np.array(hinge.joint.axis)
        crooked = hinge
        if float(np.abs(np.cross(axis, other)).max()) > _PARALLEL:
            continue
        return hinge, float(np.sign(axis @ other)) * (1.0 if hinge.parent is reference else -1.0)
    if crooked is not None:
        raise gear.element.error(f"its <{tag}> is not parallel to the axis of the joint {clipped(crooked.name)!r}")
    raise gear.element.error(f"no revolute joint connects {clipped(link.name)!r} with the reference body "
                             f"{clipped(reference.name)!r}, so that there is no angle for the gear to act on")


def couple_mimics(machine: Mechanism, hinge: Hinge, hinges: Mapping[FrameNode, Hinge], mimics: dict[str, Mimic],
                  note: Note) -> None:
    """Axes that follow others (SDF 1.11): follower = multiplier (leader - reference) + offset."""
    for axis, coordinate in hinge.axes():
        element = axis.first("mimic")
        if element is None:
            continue
        node = hinge.node.scope.find(element.attribute("joint").strip(), element)
        leader = hinges.get(node)
        if leader is None or leader.joint is None:
            raise element.error(f"{clipped(node.name)!r} is no joint that moves")
        which = element.attributes.get("axis", "axis")
        places = {a.tag: i for a, i in leader.axes()}
        if which not in places:
            raise element.error(f"the joint {clipped(node.name)!r} has no <{clipped(which)}>")
        multiplier, offset = number_in(element, "multiplier", 1.0), number_in(element, "offset", 0.0)
        offset -= multiplier * number_in(element, "reference", 0.0)
        names = [_coordinate(hinge, coordinate), _coordinate(leader, places[which])]
        if names[0] == names[1]:
            raise element.error("an axis cannot follow itself")
        mimics[names[0]] = Mimic(names[1], multiplier, offset)
        with blame(element):
            if multiplier == 0.0:
                machine.prescribe(hinge.name, offset, coordinate)
                note("warned", element, f"the joint it mimics counts zero times: held at {offset:g}")
                continue
            machine.add_coupler(f"{names[0]}_mimic", {names[0]: 1.0, names[1]: -multiplier}, offset)
        note("kept", element, f"coupled exactly: {multiplier:g} times {clipped(names[1])!r}, kept in report.mimics")


def _coordinate(hinge: Hinge, coordinate: int | None) -> str:
    return hinge.name if coordinate is None else f"{hinge.name}.angle{coordinate + 1}"


# -- axes that are meant to be parallel: decimals tilt them, and a planar linkage with tilted axes is locked ---
#: tilts between these [rad] come from decimals, not from rounding of floats nor from the design
_ROUNDED, _MEANT = 1e-12, 2e-3
_MOST = 2000


def align(hinges: Sequence[Hinge], links: int, tolerance: float, note: Note) -> None:
    """Make axes parallel that are so within `tolerance` [rad]; warn about those of loops that are only nearly so.

    Cost: number of joints times number of directions.
    """
    axes = [h for h in hinges if isinstance(h.joint, (Revolute, Prismatic, Screw))]
    moving = [h for h in hinges if h.joint is not None]
    if len(moving) < links or len(axes) > _MOST:
        return  # without loops nothing is locked
    leaders: list[Hinge] = []
    directions = np.zeros((0, 3))
    worst, tilted, example = 0.0, 0, ("", "")
    for hinge in axes:
        joint = hinge.joint
        assert isinstance(joint, (Revolute, Prismatic, Screw))
        turn = hinge.node.absolute.rotation
        own = turn @ np.array(joint.axis)
        tilts = np.linalg.norm(np.cross(directions, own), axis=1)
        best = int(tilts.argmin()) if len(leaders) else -1
        if best >= 0 and tilts[best] <= max(tolerance, _MEANT):
            tilt = float(tilts[best])
            if _ROUNDED < tilt <= tolerance:
                leader = directions[best] * np.sign(directions[best] @ own)
                hinge.joint = _with_axis(joint, turn.T @ leader)
                note("changed", hinge.element, f"turned by {tilt:.2g} rad: parallel to joint "
                                               f"{clipped(leaders[best].name)!r}")
                continue
            if tilt > _ROUNDED:
                tilted += 1
                if tilt > worst:
                    worst, example = tilt, (leaders[best].name, hinge.name)
            elif tilt <= _ROUNDED:
                continue
        leaders.append(hinge)
        directions = np.vstack([directions, own])
    if tilted:
        some = f"{tilted} axes are" if tilted > 1 else "an axis is"
        note("warned", axes[0].element.parent or axes[0].element,
             f"there are loops, and {some} parallel to others within {_MEANT:g} rad but not exactly, such as those of "
             f"{clipped(example[0])!r} and {clipped(example[1])!r} ({worst:.2g} rad); planar linkages may lock by "
             f"that; parallel={_MEANT:g} makes them parallel")


def _with_axis(joint: Revolute | Prismatic | Screw, axis: np.ndarray) -> Revolute | Prismatic | Screw:
    whole = np.round(axis)
    exact = tuple(np.where(np.abs(axis - whole) < 1e-15, whole, axis).tolist())
    return Screw(exact, joint.pitch) if isinstance(joint, Screw) else type(joint)(exact)
