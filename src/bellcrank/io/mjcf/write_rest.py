"""What a written MJCF file holds beside the tree: loops, forces, actuators."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.common.names import unused
from bellcrank.io.mjcf.activations import ActivatedForce
from bellcrank.io.mjcf.attributes import given, line, where
from bellcrank.io.mjcf.drives import activated, actuators, dry_friction, joint_sum, law_of, servo
from bellcrank.io.mjcf.joint_forces import DeadBand
from bellcrank.io.mjcf.layout import BodyLayout, floats
from bellcrank.io.mjcf.polynomial import coefficients_of
from bellcrank.mechanism.constraints import Distance
from bellcrank.mechanism.forces import Friction, LinearSpring, PotentialSpring, Servo, Wrench
from bellcrank.mechanism.joints import Free, Revolute, Screw, Weld
from bellcrank.mechanism.placed_elements import Coupler, FrameBushing, JointForce
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Connection, Mechanism

__all__ = ["Parts", "add_parts"]

@dataclass(slots=True)
class Parts:
    """Lines for the sections of a file; sites by body."""

    sites: dict[int, list[str]] = field(default_factory=dict)
    tendon: list[str] = field(default_factory=list)
    equality: list[str] = field(default_factory=list)
    actuator: list[str] = field(default_factory=list)
    names: dict[str, None] = field(default_factory=dict)  #: of sites
    tendons: dict[str, None] = field(default_factory=dict)
    drives: dict[str, None] = field(default_factory=dict)

    def site(self, wish: str, body: int, pose: Pose) -> str:
        """A site and its name."""
        name = unused(wish, self.names)
        self.names[name] = None
        self.sites.setdefault(body, []).append(f"<site{given(name=name, **where(pose))}/>")
        return name


def add_parts(mechanism: Mechanism, layout: BodyLayout) -> Parts:
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
    _on_balls(mechanism, layout)
    for force in mechanism.joint_forces:
        if force.joint in layout.balls:
            continue
        if isinstance(force.along, Servo):
            servo(mechanism, layout, parts, force)
        elif isinstance(law_of(force), ActivatedForce):
            activated(mechanism, layout, parts, force)
        else:
            axis = layout.axis(f"joint force {force.name!r}", force.joint, force.coordinate)
            _joint_force(force, axis.settings)
    for many in mechanism.joint_sums:
        joint_sum(mechanism, layout, parts, many)
    for armature in getattr(mechanism, "armatures", ()):
        axis = layout.balls.get(armature.joint) or layout.axis(f"armature {armature.name!r}", armature.joint,
                                                         armature.coordinate)
        (inertia,) = floats(f"armature {armature.name!r}", [armature.inertia])
        axis.settings["armature"] = axis.settings.get("armature", 0.0) + inertia
    for wrench in mechanism.wrenches:
        _wrench(mechanism, layout, wrench)
    for bushing in mechanism.bushings:
        _bushing(mechanism, layout, bushing)
    for drag in mechanism.drags:
        raise ModelError(f"drag {drag.name!r}: MJCF cannot hold it")
    for contact in mechanism.contacts:
        raise ModelError(f"contact {contact.name!r}: it cannot be written to MJCF; write the machine without contacts")
    _couplers(mechanism, layout, parts)
    actuators(mechanism, layout, parts)
    return parts


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


def _springs(mechanism: Mechanism, layout: BodyLayout, parts: Parts) -> None:
    """Springs between points and rods without mass, as tendons between two sites."""
    for spring in mechanism.springs:
        what = f"spring {spring.name!r}"
        match spring.along:
            case LinearSpring(k, d, rest):
                stiffness, damping, low = floats(what, (k, d, rest))
                high = low
            case PotentialSpring(DeadBand(stiffness, low, high), d):
                (damping,) = floats(what, [d])
            case _:
                raise ModelError(f"{what}: MJCF holds linear springs only")
        points = [(spring.first, Pose(floats(what, spring.first_point))),
                  (spring.second, Pose(floats(what, spring.second_point)))]
        if low < 0.0:
            raise ModelError(f"{what}: MJCF has no negative lengths")
        _tendon(parts, spring.name, points, stiffness=stiffness, damping=damping, springlength=(low, high))
    for constraint in mechanism.constraints:
        if not isinstance(constraint.kind, Distance):
            raise ModelError(f"constraint {constraint.name!r}: MJCF cannot hold {constraint.kind!r}")
        (length,) = floats(f"constraint {constraint.name!r}: its length", [constraint.kind.length])
        points = [(constraint.parent, constraint.parent_pose), (constraint.child, constraint.child_pose)]
        ends = [layout.world(body) @ pose for body, pose in points]
        drawn = float(np.linalg.norm(np.array(ends[0].position, dtype=float) - np.array(ends[1].position, dtype=float)))
        _tendon(parts, constraint.name, points)
        parts.equality.append(line("tendon", name=constraint.name, tendon1=constraint.name,
                                    polycoef=(length - drawn, 0.0, 0.0, 0.0, 0.0)))


def _tendon(parts: Parts, name: str, points: list[tuple[int, Pose]], **settings: Any) -> None:
    if name in parts.tendons:
        raise ModelError(f"spring {name!r}: another spring, or a constraint, has that name, which MJCF cannot hold")
    parts.tendons[name] = None
    sites = [parts.site(f"{name}_{i}", body, Pose(pose.position)) for i, (body, pose) in enumerate(points, 1)]
    parts.tendon += [f"<spatial{given(name=name, **settings)}>", *(f"  {line('site', site=s)}" for s in sites),
                     "</spatial>"]


def _on_balls(mechanism: Mechanism, layout: BodyLayout) -> None:
    """Friction along the speeds of ball joints, of which MJCF has one for all three."""
    for joint, ball in layout.balls.items():
        axes: list[dict[str, Any]] = [{}, {}, {}]
        for force in mechanism.joint_forces:
            if force.joint == joint:
                _joint_force(force, axes[force.coordinate])
        if not axes[0] == axes[1] == axes[2]:
            raise ModelError(f"joint {joint!r}: MJCF has no friction of a ball joint that differs along its speeds")
        for key, value in axes[0].items():
            ball.settings[key] = ball.settings.get(key, 0.0) + value


def _joint_force(force: JointForce, settings: dict[str, Any]) -> None:
    what = f"joint force {force.name!r}"
    match force.along:
        case LinearSpring(stiffness, damping, rest):
            k, d, at = floats(what, (stiffness, damping, rest))
            if k < 0.0 or d < 0.0:
                raise ModelError(f"{what}: MJCF has no negative stiffness and damping")
            before = settings.get("stiffness", 0.0)
            if k:
                mean = (before * settings.get("springref", 0.0) + k * at) / (before + k)
                settings |= {"stiffness": before + k, "springref": mean}
        case Friction():
            dry, d = dry_friction(what, force.along)
            if dry:
                settings["frictionloss"] = settings.get("frictionloss", 0.0) + dry
        case other:
            raise ModelError(f"{what}: MJCF cannot hold a {type(other).__name__}")
    if d:
        settings["damping"] = settings.get("damping", 0.0) + d


def _wrench(mechanism: Mechanism, layout: BodyLayout, wrench: Wrench) -> None:
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


def _bushing(mechanism: Mechanism, layout: BodyLayout, made: FrameBushing) -> None:
    """What is the same in all directions belongs to a ball or free joint between the same frames."""
    what, b = f"bushing {made.name!r}", made.bushing
    stiffness, turn_stiffness, damping, turn_damping = (floats(what, x) for x in (
        b.stiffness, b.turn_stiffness, b.damping, b.turn_damping))
    alike = all(x == x[:1] * 3 for x in (turn_stiffness, turn_damping))
    by_angle = b.measure == "angle" or not any(turn_stiffness)
    for name, axis in layout.balls.items():
        r = mechanism.joint(name)
        same = (r.parent, r.child, r.drawn_pose, r.child_pose) == (made.first, made.second, made.first_pose,
                                                                   made.second_pose)
        wanted = (turn_stiffness, turn_damping) if isinstance(r.joint, Free) else ([0.0] * 3, [0.0] * 3)
        if same and alike and by_angle and (stiffness, damping) == wanted:
            for label, value in (("stiffness", turn_stiffness[0]), ("damping", turn_damping[0])):
                if value:
                    axis.settings[label] = axis.settings.get(label, 0.0) + value
            return
    raise ModelError(f"{what}: MJCF holds only equal stiffness (measured by angle) and damping in all directions of a "
                     "ball or free joint")


def _couplers(mechanism: Mechanism, layout: BodyLayout, parts: Parts) -> None:
    for coupler in mechanism.couplers:
        what = f"coupler {coupler.name!r}"
        floats(f"{what}: its offset", [coupler.offset])
        floats(f"{what}: a factor", [factor for *_, factor in coupler.terms if not callable(factor)])
        axes = [(layout.axis(what, joint, i).name, f) for joint, i, f in coupler.terms if isinstance(f, float)]
        if len(axes) < len(coupler.terms):
            parts.equality.append(_bent(layout, coupler))
            continue
        (first, factor), *rest = axes
        if len(rest) <= 1:
            other = {"joint2": rest[0][0]} if rest else {}
            slope = -rest[0][1] / factor if rest else 0.0
            parts.equality.append(line("joint", name=coupler.name, joint1=first, **other,
                                        polycoef=(coupler.offset / factor, slope, 0.0, 0.0, 0.0)))
            continue
        name = unused(f"{coupler.name}_sum", parts.tendons)
        parts.tendons[name] = None
        parts.tendon += [f'{line("fixed", name=name)[:-2]}>',
                         *(f"  {line('joint', joint=joint, coef=f)}" for joint, f in axes), "</fixed>"]
        parts.equality.append(line("tendon", name=coupler.name, tendon1=name,
                                    polycoef=(coupler.offset, 0.0, 0.0, 0.0, 0.0)))


def _bent(layout: BodyLayout, coupler: Coupler) -> str:
    """A coordinate that is a polynomial of another."""
    what = f"coupler {coupler.name!r}"
    for own, other in ((0, 1), (1, 0)):
        joint, i, factor = coupler.terms[own]
        leader, j, law = coupler.terms[other]
        powers = coefficients_of(law, 4)
        if len(coupler.terms) == 2 and isinstance(factor, float) and powers is not None:
            first, second = (layout.axis(what, *at).name for at in ((joint, i), (leader, j)))
            offset, *rest = (-p / factor for p in powers)
            return line("joint", name=coupler.name, joint1=first, joint2=second,
                        polycoef=(offset + coupler.offset / factor, *rest))
    raise ModelError(f"{what}: MJCF holds a coordinate that is a polynomial, of degree 4 at most, of one other")
