"""Mechanisms as MJCF files."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from bellcrank.errors import BellcrankWarning, ModelError, outside
from bellcrank.io.common.model_meshes import Meshes, MeshStore
from bellcrank.io.common.writing import write_model
from bellcrank.io.common.xml import unused
from bellcrank.io.mjcf.activations import ActivatedForce, ActivationRate, MuscleCurves, coefficients_of
from bellcrank.io.mjcf.joint_forces import DeadBand
from bellcrank.io.mjcf.layout import BodyLayout, PlacedBody, floats, given, layout_of, line, where
from bellcrank.mechanism.constraints import Distance
from bellcrank.mechanism.forces import Friction, Limit, LinearSpring, MachineForce, PotentialSpring, Servo, Wrench
from bellcrank.mechanism.geometry.placed_shape import PlacedShape, as_mesh
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Revolute, Screw, Weld, quaternion
from bellcrank.mechanism.mechanism import Connection, Mechanism
from bellcrank.mechanism.parts import Coupler, FrameBushing, JointForce, JointSum
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, LESS, Scalar, reachable

__all__ = ["mjcf_text", "write_mjcf"]


# -- what a written MJCF file holds beside the tree: loops, forces, actuators -----------------------
# -- servos, actuators and forces on sums of joints in written MJCF files ---------------------------
_SPEED = Friction().speed
#: how far a control is tried where it has no range
_FAR = 1.0


def actuators(mechanism: Mechanism, layout: BodyLayout, parts: Parts) -> None:
    """Limits of joint forces as motors."""
    for drive in mechanism.drives:
        what = f"actuator {drive.name!r}"
        if drive.actuator.no_load_speed is not None:
            raise ModelError(f"{what}: MJCF has no speed-torque line")
        (upper,) = floats(what, [drive.actuator.limit])
        lower = -upper if drive.actuator.lower is None else floats(what, [drive.actuator.lower])[0]
        axis = layout.axis(what, drive.joint, drive.coordinate)
        _add(parts, what, "motor", drive.name, joint=axis.name, ctrlrange=(lower, upper))


def dry_friction(what: str, friction: Friction) -> tuple[float, float]:
    """Dry and viscous friction of a joint or sum."""
    dry, viscous, regular = floats(what, (friction.coulomb, friction.viscous, friction.speed))
    if friction.static is not None:
        raise ModelError(f"{what}: MJCF cannot hold static friction")
    if dry and regular != _SPEED:
        raise ModelError(f"{what}: MJCF does not hold the speed {regular:g} of dry friction, only the usual {_SPEED:g}")
    return dry, viscous


# -- sums of joints ---------------------------------------------------------------------------------
def joint_sum(mechanism: Mechanism, layout: BodyLayout, parts: Parts, force: JointSum) -> None:
    """A force along a sum of joint coordinates as a fixed tendon."""
    what, settings = f"joint force {force.name!r}", {}
    match force.along:
        case LinearSpring(stiffness, damping, rest):
            k, d, at = floats(what, (stiffness, damping, rest))
            if k < 0.0 or d < 0.0:
                raise ModelError(f"{what}: MJCF has no negative stiffness and damping")
            settings = {"stiffness": k, "damping": d, "springlength": _lengths(at, at)}
        case Friction():
            dry, viscous = dry_friction(what, force.along)
            settings = {"frictionloss": dry, "damping": viscous}
        case Limit(lower, upper, stiffness, damping) if damping == 0.0 and lower is not None and upper is not None:
            low, high, k = floats(what, (lower, upper, stiffness))
            settings = {"stiffness": k, "springlength": _lengths(low, high)}
        case Servo():
            servo(mechanism, layout, parts, force)
            return
        case MachineForce() if isinstance(law_of(force), ActivatedForce):
            activated(mechanism, layout, parts, force)
            return
        case other:
            raise ModelError(f"{what}: MJCF cannot hold a {type(other).__name__} on a sum of joints")
    _fixed(layout, parts, force, **settings)


def _lengths(low: float, high: float) -> tuple[float, ...]:
    """Lengths of a tendon at rest; -1 has a meaning of its own, but not the number beside it."""
    if low == -1.0 == high:
        low = high = -1.0000000000000002
    return low, high


def _fixed(layout: BodyLayout, parts: Parts, force: JointSum, **settings: Any) -> str:
    what = f"joint force {force.name!r}"
    factors = floats(f"{what}: a factor", [factor for *_, factor in force.terms])
    axes = [(layout.axis(what, joint, i).name, f) for (joint, i, _), f in zip(force.terms, factors, strict=True)]
    name = unused(f"{force.name}_sum", parts.tendons)
    parts.tendons[name] = None
    parts.tendon += [f"<fixed{given(name=name, **settings)}>",
                     *(f"  {line('joint', joint=joint, coef=f)}" for joint, f in axes), "</fixed>"]
    return name


# -- servos -----------------------------------------------------------------------------------------
def servo(mechanism: Mechanism, layout: BodyLayout, parts: Parts, force: JointForce | JointSum) -> None:
    """A servo as a general actuator; the parameter it depends on is its control."""
    what, along = f"servo {force.name!r}", force.along
    assert isinstance(along, Servo)
    if along.timed:
        raise ModelError(f"{what} depends on time, which MJCF cannot hold")
    push = along.stiffness * along.target + along.damping * along.target_rate + along.offset
    name, ends, laws = _control(mechanism, what, [push, along.stiffness, along.damping])
    signs = (1.0, -1.0, -1.0)
    settings: dict[str, Any] = {
        "biastype": "affine", "gaintype": "affine",
        "gainprm": [s * slope for s, (_, slope) in zip(signs, laws, strict=True)],
        "biasprm": [s * start for s, (start, _) in zip(signs, laws, strict=True)]}
    if ends is not None:
        settings["ctrlrange"] = ends
    if (along.lower is None) != (along.upper is None):
        raise ModelError(f"{what}: MJCF holds two limits of a force, or none")
    if along.lower is not None:
        settings["forcerange"] = floats(what, (along.lower, along.upper))
    _add(parts, what, "general", name or force.name, **_on(layout, parts, what, force), **settings)


def _on(layout: BodyLayout, parts: Parts, what: str, force: JointForce | JointSum) -> dict[str, str]:
    if isinstance(force, JointSum):
        return {"tendon": _fixed(layout, parts, force)}
    return {"joint": layout.axis(what, force.joint, force.coordinate).name}


def law_of(force: JointForce | JointSum) -> object:
    """The law of the machine that gives a force."""
    return getattr(force.along, "law", None)


def activated(mechanism: Mechanism, layout: BodyLayout, parts: Parts, force: JointForce | JointSum) -> None:
    """A force with an activation as the general actuator it came from; lengths begin where the machine is drawn."""
    what, law = f"joint force {force.name!r}", law_of(force)
    assert isinstance(law, ActivatedForce)
    rate = next((s.rate for s in mechanism.states if s.name == law.state), None)
    if not isinstance(rate, ActivationRate):
        raise ModelError(f"{what}: its state {law.state!r} is no activation")
    if mechanism.parameters[rate.control] != 0.0:
        raise ModelError(f"{what}: the default of the parameter {rate.control!r} is not zero, where controls of MJCF "
                         "start")
    settings: dict[str, Any] = {"gear": [law.gear], "dyntype": rate.kind, "dynprm": rate.times}
    for name, value in (("gain", law.gain), ("bias", law.bias)):
        kind, numbers = ("muscle", value.numbers) if isinstance(value, MuscleCurves) else (
            "affine", (value[0] + value[1] * law.gear * law.start, value[1], value[2]))
        settings |= {f"{name}type": kind, f"{name}prm": numbers}
    if isinstance(law.gain, MuscleCurves):
        settings["lengthrange"] = [x - law.gear * law.start for x in law.gain.lengths]
    low, high = law.limits
    forces = (None, None) if low is None or high is None else tuple(sorted((low / law.gear, high / law.gear)))
    for label, ends in (("ctrlrange", rate.control_range), ("actrange", rate.state_range), ("forcerange", forces)):
        if None not in ends:
            settings[label] = ends
    _add(parts, what, "general", rate.control, **_on(layout, parts, what, force), **settings)


def _add(parts: Parts, what: str, tag: str, name: str, **settings: Any) -> None:
    if name in parts.drives:
        raise ModelError(f"{what}: MJCF has one actuator {name!r} already; give each servo a parameter of its own")
    parts.drives[name] = None
    parts.actuator.append(line(tag, name=name, **settings))


def _control(mechanism: Mechanism, what: str, values: list[Any]
             ) -> tuple[str, tuple[float, float] | None, list[tuple[float, float]]]:
    """The parameter that the values depend on, its range, and every value as start + slope * parameter."""
    nodes = reachable(values)
    names = [node.args[0][1] for node in nodes if node.op is LEAF]
    if not names:
        return "", None, [(x, 0.0) for x in floats(what, values)]
    if len(names) > 1:
        raise ModelError(f"{what} depends on the parameters {', '.join(map(repr, names))}; MJCF has one control for an "
                         "actuator")
    (name,) = names
    if mechanism.parameters[name] != 0.0:
        raise ModelError(f"{what}: the parameter {name!r} has the default {mechanism.parameters[name]:g}; controls of "
                         "MJCF start at zero")
    ends = _clamp(nodes)
    low, high = ends or (-_FAR, _FAR)
    first = 0.0 if low <= 0.0 < high else low

    def at(control: float) -> list[float]:
        return [float(x) for x in evaluate(values, {("parameter", name): control})]

    start, end = at(first), at(high)
    laws = [(a - (b - a) / (high - first) * first, (b - a) / (high - first)) for a, b in zip(start, end, strict=True)]
    for control in (low - 1.0, low, 0.3 * low + 0.7 * high, high, high + 2.0):
        inside = control if ends is None else min(max(control, low), high)
        for (offset, slope), found in zip(laws, at(control), strict=True):
            size = abs(offset) + abs(slope) * (abs(low) + abs(high))
            if abs(offset + slope * inside - found) > 1e-12 * size:
                raise ModelError(f"{what} is not a straight function of the parameter {name!r}, as MJCF wants it")
    return name, ends, laws


def _clamp(nodes: list[Scalar]) -> tuple[float, float] | None:
    """The range that a parameter is kept in, as `within` does it."""
    chosen = [node.args for node in nodes if node.op is LESS]
    lows = [args[1] for args in chosen if type(args[0]) is Scalar and args[0].op is LEAF and type(args[1]) is float]
    highs = [args[0] for args in chosen if type(args[0]) is float]
    return (lows[0], highs[0]) if len(lows) == len(highs) == 1 and lows[0] < highs[0] else None


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


# -- shapes as geoms of MJCF, and their meshes as assets --------------------------------------------
#: what MuJoCo opens
_KNOWN = (".stl", ".obj")
#: as models usually have it: what is seen in group 2, what collides in group 3
_SEEN = {"group": "2", "contype": "0", "conaffinity": "0"}
_TOUCHED = {"group": "3"}


class GeomLines:
    """The lines of geoms, and of the meshes that they need."""

    def __init__(self, store: MeshStore) -> None:
        self.store = store
        self.assets: list[str] = []
        self._names: dict[str, None] = {}
        self._known: list[tuple[Mesh, str]] = []

    def geom(self, placed: PlacedShape) -> str:
        """The line of a shape."""
        role = _SEEN if placed.role == "visual" else _TOUCHED
        color = {} if placed.color is None else {"rgba": placed.color}
        return f"<geom{given(name=placed.name, **self._form(placed), **where(placed.pose), **color, **role)}/>"

    def _form(self, placed: PlacedShape) -> dict[str, Any]:
        shape = placed.shape
        match shape:
            case Box():
                return {"type": "box", "size": [0.5 * x for x in shape.size]}
            case Sphere():
                return {"type": "sphere", "size": shape.radius}
            case Ellipsoid():
                return {"type": "ellipsoid", "size": shape.radii}
            case Cylinder() | Capsule():
                return {"type": type(shape).__name__.lower(), "size": (shape.radius, 0.5 * shape.length)}
            case Plane() if not placed.body or shape.size is None:  # on bodies that move MJCF has none
                x, y = shape.size or (0.0, 0.0)
                return {"type": "plane", "size": (0.5 * x, 0.5 * y, 1.0)}
        return {"type": "mesh", "mesh": self._asset(as_mesh(shape), placed.name)}

    def _asset(self, mesh: Mesh, wish: str) -> str:
        for other, name in self._known:
            if other == mesh:
                return name
        name = unused(wish, self._names)
        self._names[name] = None
        self._known.append((mesh, name))
        if mesh.path is not None and mesh.path.lower().endswith(_KNOWN):
            self.assets.append(line("mesh", name=name, file=self.store.name(mesh, wish), scale=mesh.scale))
        elif mesh.path is not None:
            plain = Mesh(mesh.vertices, mesh.faces)
            self.assets.append(line("mesh", name=name, file=self.store.name(plain, wish)))
        else:
            corners = " ".join(map(str, mesh.faces.ravel().tolist()))
            self.assets.append(line("mesh", name=name, vertex=mesh.vertices, face=corners, inertia="shell"))
        return name


#: MuJoCo refuses moving bodies with less mass or inertia
_LEAST = 2e-15


def write_mjcf(mechanism: Mechanism, path: str | os.PathLike[str], *, meshes: Meshes = "copy") -> None:
    """Write a mechanism as an MJCF file; the package mujoco is not needed.

    Loops are cut where MJCF can close them again: Spherical joints become a connect, Revolute ones two, Weld ones a
    weld, between sites. Read back by `read_mjcf` the machine has the same dynamics; joints with several coordinates
    come back as several joints, named ``joint.coordinate``, and free joints are measured in the world. Principal
    moments of inertia of zero become 2e-15 kg m^2, which MuJoCo wants. Shapes of bodies are written as geoms; mesh
    files that do not lie beside the file are copied to a folder there, or, with ``meshes="refer"``, only named. What
    MJCF cannot hold is a `ModelError` that names the part, and nothing is written.
    """
    write_model(mechanism, path, "MJCF", meshes, lambda store: mjcf_text(mechanism, store))


def mjcf_text(mechanism: Mechanism, store: MeshStore) -> str:
    """The text of the file `write_mjcf` writes."""
    layout = layout_of(mechanism)
    parts = add_parts(mechanism, layout)
    geoms = GeomLines(store)
    for shape in mechanism.shapes:
        endless = isinstance(shape.shape, Plane) and shape.shape.size is None
        if shape.body and (endless or shape.body not in layout.places):
            what = "a plane without end" if endless else "on a body without mass between two joints"
            warnings.warn(f"shape {shape.name!r} is {what}, which MJCF has no place for; it is left out",
                          BellcrankWarning, stacklevel=outside())
            continue
        parts.sites.setdefault(shape.body, []).append(geoms.geom(shape))
    lines = [f"<mujoco{given(model=mechanism.name)}>",
             '  <compiler angle="radian" autolimits="true" inertiafromgeom="false" fusestatic="false"/>',
             f"  <option{given(gravity=floats('gravity', mechanism.gravity))}/>"]
    if geoms.assets:
        lines += ["  <asset>", *(f"    {line}" for line in geoms.assets), "  </asset>"]
    lines.append("  <worldbody>")
    lines += [f"    {line}" for line in parts.sites.get(0, ())]
    for root in layout.roots:
        lines += _body(layout, parts, root, "    ")
    lines.append("  </worldbody>")
    for section in ("tendon", "equality", "actuator"):
        inside = getattr(parts, section)
        if inside:
            lines += [f"  <{section}>", *(f"    {line}" for line in inside), f"  </{section}>"]
    return "\n".join([*lines, "</mujoco>", ""])


def _body(layout: BodyLayout, parts: Parts, index: int, indent: str) -> Iterable[str]:
    """The lines of a body and what it carries, without recursion: chains may be long."""
    stack: list[int | str] = [index]
    depth = 0
    while stack:
        here = stack.pop()
        if isinstance(here, str):
            depth -= 1
            yield f"{indent}{'  ' * depth}{here}"
            continue
        place = layout.places[here]
        space = indent + "  " * depth
        yield f"{space}<body{given(name=_body_name(place), **where(place.pose), **place.settings)}>"
        for axis in place.axes:
            at = {} if axis.kind in ("free", "slide") or not axis.at.any() else {"pos": axis.at}
            along = {} if axis.kind in ("free", "ball") else {"axis": axis.axis}
            yield f"{space}  <joint{given(name=axis.name, type=axis.kind, **at, **along, **axis.settings)}/>"
        yield from (f"{space}  {line}" for line in _inertial(place))
        yield from (f"{space}  {line}" for line in parts.sites.get(here, ()))
        depth += 1
        stack.append("</body>")
        stack.extend(reversed(place.children))


def _body_name(place: PlacedBody) -> str:
    if place.body.name == "world":
        raise ModelError("body 'world': that is the name of the ground in MJCF; give the body another one")
    return place.body.name


def _inertial(place: PlacedBody) -> list[str]:
    """The <inertial> of a body: principal moments and axes."""
    inertia, what = place.body.inertia, f"body {place.body.name!r}: the inertia"
    if inertia == Inertia.zero():
        return []
    mass, *six = floats(what, (inertia.mass, *inertia.inertia))
    com = floats(what, inertia.com)
    if mass < _LEAST or inertia.problem():
        raise ModelError(f"{what} cannot be held by MJCF: {inertia.problem() or 'the mass is too small'}")
    xx, xy, xz, yy, yz, zz = six
    turn = np.eye(3)
    moments = np.array([xx, yy, zz])
    if xy or xz or yz:
        moments, turn = np.linalg.eigh(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
        turn = turn * (1.0 if np.linalg.det(turn) > 0.0 else -1.0)
    moments = np.maximum(moments, _LEAST)
    largest = int(np.argmax(moments))
    moments[largest] = min(moments[largest], float(np.delete(moments, largest).sum()))  # but for rounding, it is less
    axes = {} if (turn == np.eye(3)).all() else {"quat": quaternion.from_matrix(turn)}
    return [f"<inertial{given(pos=com, **axes, mass=mass, diaginertia=moments)}/>"]
