"""Gearboxes and mimic axes of SDF files: exact linear relations of joint coordinates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from bellcrank.io.common.xml import blame, clipped
from bellcrank.io.report import Dynamics, Mimic
from bellcrank.io.sdf.frames import FrameNode, relative
from bellcrank.io.sdf.joints import Hinge, Note, read_along, read_axis
from bellcrank.io.sdf.text_values import number_in, text_in
from bellcrank.mechanism.joints import Revolute
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["Between", "between", "couple_gearbox", "couple_mimics"]

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

