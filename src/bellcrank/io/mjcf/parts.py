"""What a written MJCF file holds beside the tree: loops, forces, actuators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.mjcf.layout import Axis, Layout, floats
from bellcrank.io.mjcf.text import given, line, where
from bellcrank.io.tree import unused
from bellcrank.mechanism.constraints import Distance
from bellcrank.mechanism.elements import FrameBushing, JointForce
from bellcrank.mechanism.forces import Friction, LinearSpring, Wrench
from bellcrank.mechanism.joints import Free, Revolute, Screw, Weld
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Connection, Mechanism

__all__ = ["Parts", "add_parts"]

_SPEED = Friction().speed


@dataclass(slots=True)
class Parts:
    """Lines for the sections of a file; sites by body."""

    sites: dict[int, list[str]] = field(default_factory=dict)
    tendon: list[str] = field(default_factory=list)
    equality: list[str] = field(default_factory=list)
    actuator: list[str] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)

    def site(self, wish: str, body: int, pose: Pose) -> str:
        """A site and its name."""
        name = unused(wish, self.names)
        self.names[name] = None
        self.sites.setdefault(body, []).append(f"<site{given(name=name, **where(pose))}/>")
        return name


def add_parts(mechanism: Mechanism, layout: Layout) -> Parts:
    """Everything but the tree; joint settings go into the layout."""
    parts = Parts()
    for frame in mechanism.frames:
        parts.site(frame.name, frame.body, frame.pose)
    for record in layout.closing:
        _closure(parts, record)
    for record in mechanism.joints:
        if (record.name, 1) in layout.axes and isinstance(record.joint, Screw):
            angle, slide = layout.axes[record.name, 0].name, layout.axes[record.name, 1].name
            (pitch,) = floats(f"joint {record.name!r}: the pitch", [record.joint.pitch])
            parts.equality.append(line("joint", name=f"{record.name}_pitch", joint1=slide, joint2=angle,
                                       polycoef=(0.0, pitch, 0.0, 0.0, 0.0)))
    _springs(mechanism, layout, parts)
    for force in mechanism.joint_forces:
        _joint_force(layout, force)
    for armature in getattr(mechanism, "armatures", ()):
        axis = layout.balls.get(armature.joint) or _axis(layout, f"armature {armature.name!r}", armature.joint,
                                                         armature.coordinate)
        (inertia,) = floats(f"armature {armature.name!r}", [armature.inertia])
        axis.settings["armature"] = axis.settings.get("armature", 0.0) + inertia
    for wrench in mechanism.wrenches:
        _wrench(mechanism, layout, wrench)
    for bushing in mechanism.bushings:
        _bushing(mechanism, layout, bushing)
    for drag in mechanism.drags:
        raise ModelError(f"drag {drag.name!r}: MJCF cannot hold it")
    _couplers(mechanism, layout, parts)
    _actuators(mechanism, layout, parts)
    return parts


def _axis(layout: Layout, what: str, joint: str, coordinate: int) -> Axis:
    try:
        return layout.axes[joint, coordinate]
    except KeyError:
        raise ModelError(f"{what}: joint {joint!r} closes a loop, where MJCF has no joint that a force could act on"
                         ) from None


def _closure(parts: Parts, record: Connection) -> None:
    """A loop as an equality between sites, which do not depend on the position the machine is drawn in."""
    ends = (record.parent, record.parent_pose, "parent"), (record.child, record.child_pose, "child")
    for _, pose, _ in ends:
        floats(f"joint {record.name!r}: a pose", pose.position)
    one, two = (parts.site(f"{record.name}_{side}", body, pose) for body, pose, side in ends)
    if isinstance(record.joint, Weld):
        parts.equality.append(line("weld", name=record.name, site1=one, site2=two))
        return
    parts.equality.append(line("connect", name=record.name, site1=one, site2=two))
    if isinstance(record.joint, Revolute):
        step = Pose(record.joint.axis)
        one, two = (parts.site(f"{record.name}_axis_{side}", body, pose @ step) for body, pose, side in ends)
        parts.equality.append(line("connect", name=f"{record.name}_axis", site1=one, site2=two))


def _springs(mechanism: Mechanism, layout: Layout, parts: Parts) -> None:
    """Springs between points and rods without mass, as tendons between two sites."""
    for spring in mechanism.springs:
        what = f"spring {spring.name!r}"
        if not isinstance(spring.along, LinearSpring):
            raise ModelError(f"{what}: MJCF holds linear springs only")
        stiffness, damping, length = floats(what, (spring.along.stiffness, spring.along.damping, spring.along.rest))
        points = [(spring.first, Pose(floats(what, spring.first_point))),
                  (spring.second, Pose(floats(what, spring.second_point)))]
        if length < 0.0:
            raise ModelError(f"{what}: MJCF has no negative lengths")
        _tendon(parts, spring.name, points, stiffness=stiffness, damping=damping, springlength=length)
    for constraint in mechanism.constraints:
        if not isinstance(constraint.kind, Distance):
            raise ModelError(f"constraint {constraint.name!r}: MJCF cannot hold {constraint.kind!r}")
        points = [(constraint.parent, constraint.parent_pose), (constraint.child, constraint.child_pose)]
        ends = [layout.world(body) @ pose for body, pose in points]
        drawn = float(np.linalg.norm(np.array(ends[0].position, dtype=float) - np.array(ends[1].position, dtype=float)))
        _tendon(parts, constraint.name, points)
        parts.equality.append(line("tendon", name=constraint.name, tendon1=constraint.name,
                                    polycoef=(constraint.kind.length - drawn, 0.0, 0.0, 0.0, 0.0)))


def _tendon(parts: Parts, name: str, points: list[tuple[int, Pose]], **settings: Any) -> None:
    sites = [parts.site(f"{name}_{i}", body, Pose(pose.position)) for i, (body, pose) in enumerate(points, 1)]
    parts.tendon += [f"<spatial{given(name=name, **settings)}>", *(f"  {line('site', site=s)}" for s in sites),
                     "</spatial>"]


def _joint_force(layout: Layout, force: JointForce) -> None:
    what = f"joint force {force.name!r}"
    axis = _axis(layout, what, force.joint, force.coordinate)
    match force.along:
        case LinearSpring(stiffness, damping, rest):
            k, d, at = floats(what, (stiffness, damping, rest))
            if k < 0.0 or d < 0.0:
                raise ModelError(f"{what}: MJCF has no negative stiffness and damping")
            before = axis.settings.get("stiffness", 0.0)
            if k:
                mean = (before * axis.settings.get("springref", 0.0) + k * at) / (before + k)
                axis.settings |= {"stiffness": before + k, "springref": mean}
        case Friction(coulomb, viscous, speed, None):
            dry, d, regular = floats(what, (coulomb, viscous, speed))
            if dry and regular != _SPEED:
                raise ModelError(f"{what}: MJCF does not hold the speed {regular:g} of dry friction, only the usual "
                                 f"{_SPEED:g}")
            if dry:
                axis.settings["frictionloss"] = axis.settings.get("frictionloss", 0.0) + dry
        case other:
            raise ModelError(f"{what}: MJCF cannot hold a {type(other).__name__}")
    if d:
        axis.settings["damping"] = axis.settings.get("damping", 0.0) + d


def _wrench(mechanism: Mechanism, layout: Layout, wrench: Wrench) -> None:
    """Forces that lift a body against gravity are gravcomp; others have no place."""
    what = f"wrench {wrench.name!r}"
    body = mechanism.bodies[wrench.body - 1]
    force = np.array(floats(what, wrench.force))
    weight = np.array(floats(what, mechanism.gravity)) * floats(what, [body.inertia.mass])[0]
    size = float(weight @ weight)
    share = -float(force @ weight) / size if size else 0.0
    at, com = (np.array(floats(what, x)) for x in (wrench.at, body.inertia.com))
    lifts = np.abs(force + share * weight).max() <= 1e-12 * np.abs(force).max() and np.abs(at - com).max() == 0.0
    if wrench.axes != "world" or any(floats(what, wrench.moment)) or not lifts:
        raise ModelError(f"{what}: MJCF holds only forces that balance a body's weight")
    settings = layout.places[wrench.body].settings
    settings["gravcomp"] = settings.get("gravcomp", 0.0) + share


def _bushing(mechanism: Mechanism, layout: Layout, made: FrameBushing) -> None:
    """Damping that is the same in all directions belongs to a ball or free joint between the same frames."""
    what, b = f"bushing {made.name!r}", made.bushing
    turn, along = floats(what, b.turn_damping), floats(what, b.damping)
    for name, axis in layout.balls.items():
        r = mechanism.joint(name)
        same = (r.parent, r.child, r.parent_pose, r.child_pose) == (made.first, made.second, made.first_pose,
                                                                    made.second_pose)
        wanted = turn if isinstance(r.joint, Free) else [0.0, 0.0, 0.0]
        if same and turn == turn[:1] * 3 and along == wanted and not any(floats(what, (*b.stiffness,
                                                                                       *b.turn_stiffness))):
            axis.settings["damping"] = axis.settings.get("damping", 0.0) + turn[0]
            return
    raise ModelError(f"{what}: MJCF holds only equal damping in all directions of a ball or free joint")


def _couplers(mechanism: Mechanism, layout: Layout, parts: Parts) -> None:
    for coupler in mechanism.couplers:
        axes = [(_axis(layout, f"coupler {coupler.name!r}", joint, i).name, f) for joint, i, f in coupler.terms]
        (first, factor), *rest = axes
        if len(rest) <= 1:
            other = {"joint2": rest[0][0]} if rest else {}
            slope = -rest[0][1] / factor if rest else 0.0
            parts.equality.append(line("joint", name=coupler.name, joint1=first, **other,
                                        polycoef=(coupler.offset / factor, slope, 0.0, 0.0, 0.0)))
            continue
        name = f"{coupler.name}_sum"
        parts.tendon += [f'{line("fixed", name=name)[:-2]}>',
                         *(f"  {line('joint', joint=joint, coef=f)}" for joint, f in axes), "</fixed>"]
        parts.equality.append(line("tendon", name=coupler.name, tendon1=name,
                                    polycoef=(coupler.offset, 0.0, 0.0, 0.0, 0.0)))


def _actuators(mechanism: Mechanism, layout: Layout, parts: Parts) -> None:
    for drive in mechanism.drives:
        what = f"actuator {drive.name!r}"
        if drive.actuator.no_load_speed is not None:
            raise ModelError(f"{what}: MJCF has no speed-torque line")
        (limit,) = floats(what, [drive.actuator.limit])
        axis = _axis(layout, what, drive.joint, drive.coordinate)
        parts.actuator.append(line("motor", name=drive.name, joint=axis.name, ctrlrange=(-limit, limit)))
