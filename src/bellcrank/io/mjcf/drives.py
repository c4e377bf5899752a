"""Servos, actuators and forces on sums of joints in written MJCF files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bellcrank.errors import ModelError
from bellcrank.io.common.names import unused
from bellcrank.io.mjcf.activations import ActivatedForce, ActivationRate, MuscleCurves
from bellcrank.io.mjcf.attributes import given, line
from bellcrank.io.mjcf.layout import BodyLayout, floats
from bellcrank.mechanism.forces import Friction, Limit, LinearSpring, MachineForce, Servo
from bellcrank.mechanism.placed_elements import JointForce, JointSum
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, LESS, Scalar, reachable

if TYPE_CHECKING:
    from bellcrank.io.mjcf.write_rest import Parts
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["activated", "actuators", "dry_friction", "joint_sum", "law_of", "servo"]

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
