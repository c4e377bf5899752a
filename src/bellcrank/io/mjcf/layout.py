"""The bodies and joints of a mechanism as MJCF has them: a tree, with hinges, slides, balls and free joints only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.io.mjcf.activations import ActivationRate
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import (
    Cylindrical,
    Free,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    Weld,
    quaternion,
)
from bellcrank.mechanism.mechanism import Body, Connection, Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Scalar
from bellcrank.topology.spanning_tree import Topology, spanning_tree

__all__ = ["BodyLayout", "MjcfJoint", "PlacedBody", "floats", "given", "layout_of", "line", "where"]

_CLOSING = (Spherical, Revolute, Weld)


@dataclass(slots=True)
class MjcfJoint:
    """One <joint> of MJCF."""

    name: str
    kind: str
    at: Floats
    axis: Floats
    owner: tuple[str, int]  #: joint and coordinate
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class PlacedBody:
    """One <body> of MJCF."""

    body: Body
    parent: int
    pose: Pose
    axes: list[MjcfJoint]
    children: list[int] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)


@dataclass(slots=True)
class BodyLayout:
    """All bodies by index, and the joints that close loops."""

    places: dict[int, PlacedBody]
    roots: list[int]
    closing: list[Connection]
    axes: dict[tuple[str, int], MjcfJoint]
    balls: dict[str, MjcfJoint]

    def axis(self, what: str, joint: str, coordinate: int) -> MjcfJoint:
        """The MJCF joint of a coordinate."""
        try:
            return self.axes[joint, coordinate]
        except KeyError:
            raise ModelError(f"{what}: MJCF has no forces along single speeds of the ball joint {joint!r}"
                             if joint in self.balls else f"{what}: joint {joint!r} closes a loop, where MJCF has no "
                             "joint that a force could act on") from None

    def world(self, body: int) -> Pose:
        """Where a body lies with all coordinates at zero."""
        pose = Pose()
        while body:
            pose = self.places[body].pose @ pose
            body = self.places[body].parent
        return pose


def floats(what: str, values: Any) -> list[float]:
    """Plain numbers; a file cannot hold parameters."""
    out = []
    for value in values:
        if isinstance(value, Scalar) or callable(value):
            raise ModelError(f"{what} depends on a parameter or on time, which MJCF cannot hold")
        out.append(float(value))
    return out


def layout_of(mechanism: Mechanism) -> BodyLayout:
    """Cut the loops where MJCF can close them, and lay out the tree."""
    busy = {f.joint for f in mechanism.joint_forces} | {d.joint for d in mechanism.drives}
    busy |= {a.joint for a in mechanism.armatures} | {joint for s in mechanism.joint_sums for joint, _, _ in s.terms}
    keep = [r.name for r in mechanism.joints if r.name in busy or not isinstance(r.joint, _CLOSING)]
    topology = spanning_tree(mechanism, (), keep)
    layout = BodyLayout({}, [], [mechanism.joints[j] for j in topology.closing], {}, {})
    for record in layout.closing:
        if not isinstance(record.joint, _CLOSING):
            raise ModelError(f"joint {record.name!r}: MJCF can close loops by Spherical, Revolute and Weld joints, not "
                             f"by a {type(record.joint).__name__}")
    activations = {state.name: isinstance(state.rate, ActivationRate) for state in mechanism.states}
    for body in topology.order:
        name = mechanism.joints[topology.joint[body]].name
        if name not in activations:
            _place(mechanism, topology, body, layout)
        elif not activations[name]:
            raise ModelError(f"state {name!r}: MJCF holds states of its own kinds of actuators only")
    for siblings in (layout.roots, *(place.children for place in layout.places.values())):
        siblings.sort()  # as they were added, whatever the order in which loops were closed
    _merge_massless(mechanism, layout)
    for place in layout.places.values():
        for axis in place.axes:
            if axis.kind in ("ball", "free"):
                layout.balls[axis.owner[0]] = axis
            else:
                layout.axes[axis.owner] = axis
    return layout


def _place(mechanism: Mechanism, topology: Topology, body: int, layout: BodyLayout) -> None:
    record, parent = mechanism.joints[topology.joint[body]], topology.parent[body]
    back = topology.backwards[body]
    outer, inner = (record.child_pose, record.drawn_pose) if back else (record.drawn_pose, record.child_pose)
    for pose in (outer, inner):
        floats(f"joint {record.name!r}: a pose", pose.position)
    if isinstance(record.joint, Free) and parent:
        raise ModelError(f"joint {record.name!r}: MJCF has Free joints to the ground only")
    layout.places[body] = PlacedBody(mechanism.bodies[body - 1], parent, outer @ inner.inverse(),
                                     _axes(record, inner, back))
    (layout.places[parent].children if parent else layout.roots).append(body)


def _axes(record: Connection, inner: Pose, back: bool) -> list[MjcfJoint]:
    """The joint as a chain of MJCF joints in the frame of its outer body."""
    joint, at = record.joint, np.array(inner.position, dtype=float)
    parts: list[tuple[str, Any, int]]  # kind, axis in the joint frame, coordinate
    match joint:
        case Revolute():
            parts = [("hinge", joint.axis, 0)]
        case Prismatic():
            parts = [("slide", joint.axis, 0)]
        case Cylindrical():
            parts = [("hinge", joint.axis, 0), ("slide", joint.axis, 1)]
        case Universal():
            parts = [("hinge", joint.axis1, 0), ("hinge", joint.axis2, 1)]
        case Planar():
            x, y, z = joint.alignment().T
            parts = [("slide", x, 0), ("slide", y, 1), ("hinge", z, 2)]
        case Spherical():
            return [MjcfJoint(record.name, "ball", at, np.zeros(3), (record.name, 0))]
        case Free():
            return [MjcfJoint(record.name, "free", np.zeros(3), np.zeros(3), (record.name, 0))]
        case Weld():
            return []
        case Screw():  # the slide is coupled to the turn by an equality
            parts = [("hinge", joint.axis, 0), ("slide", joint.axis, 1)]
        case _:
            raise ModelError(f"joint {record.name!r}: MJCF cannot hold a {type(joint).__name__}")
    names = (*joint.coordinate_names(), "advance")
    sign = -1.0 if back else 1.0
    made = [MjcfJoint(record.name if len(parts) == 1 else f"{record.name}.{names[i]}", kind, at,
                 sign * (inner.rotation @ np.array(axis, dtype=float)), (record.name, i)) for kind, axis, i in parts]
    return made[::-1] if back else made


def _merge_massless(mechanism: Mechanism, layout: BodyLayout) -> None:
    """Bodies without mass that only join two joints become several joints of one body, as MJCF wants it."""
    used = {b for r in layout.closing for b in (r.parent, r.child)} | {f.body for f in mechanism.frames}
    used |= {b for c in mechanism.constraints for b in (c.parent, c.child)} | {w.body for w in mechanism.wrenches}
    used |= {b for s in mechanism.springs for b in (s.first, s.second)}
    used |= {b for s in mechanism.bushings for b in (s.first, s.second)}
    for index, place in list(layout.places.items()):
        if place.body.inertia != Inertia.zero() or not place.axes or _weighty(layout, place):
            continue
        joined = place.children[0] if len(place.children) == 1 else 0
        movable = joined and not any(a.kind == "free" for a in place.axes)
        if not movable or index in used:
            raise ModelError(f"body {place.body.name!r} moves and has no mass, which MJCF cannot hold (except between "
                             "two joints, with nothing attached to it)")
        child = layout.places[joined]
        back = child.pose.inverse()
        for axis in place.axes:
            axis.at = back.rotation @ axis.at + np.array(back.position, dtype=float)
            axis.axis = back.rotation @ axis.axis
        child.axes[:0] = place.axes
        child.pose = place.pose @ child.pose
        child.parent = place.parent
        siblings = layout.places[place.parent].children if place.parent else layout.roots
        siblings[siblings.index(index)] = joined
        del layout.places[index]


def _weighty(layout: BodyLayout, place: PlacedBody) -> bool:
    """Whether something with mass is rigidly fixed to a body."""
    return any(not layout.places[c].axes and (layout.places[c].body.inertia != Inertia.zero()
                                              or _weighty(layout, layout.places[c])) for c in place.children)


# -- attributes and elements as text ----------------------------------------------------------------
def where(pose: Pose) -> dict[str, Any]:
    """Attributes of a pose, those that matter."""
    at = np.array(floats("a pose", pose.position))
    out: dict[str, Any] = {}
    if at.any():
        out["pos"] = at
    if not (pose.rotation == np.eye(3)).all():
        out["quat"] = quaternion.from_matrix(pose.rotation)
    return out


def given(**attributes: Any) -> str:
    """Attributes as text; numbers so that they are read back unchanged."""
    out = []
    for name, value in attributes.items():
        if isinstance(value, str):
            if not value.isprintable():
                raise ModelError(f"the name {value!r} has characters that a file cannot hold")
            out.append(f" {name}={quoteattr(value)}")
        else:
            out.append(f' {name}="{" ".join(repr(float(x) + 0.0) for x in np.ravel(value))}"')
    return "".join(out)


def line(tag: str, **attributes: Any) -> str:
    """An element without children."""
    return f"<{tag}{given(**attributes)}/>"
