"""Actuators of MJCF: motors as limits of the joint forces tau, those with an activation as laws with a state, others as
servos; controls are parameters.

Motors of MJCF by their electrical constants, <dcmotor>: v = R i + L di/dt + k w, and the torque k i.

Without inductance the force is k / R (v - k w): an affine function of the control and of the rate. With it the current
is a state, as in `bellcrank.Mechanism.add_dc_motor`. Motors with friction, cogging, heat or controllers are not
read.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.io.common.xml import XmlElement, unused
from bellcrank.io.mjcf.activations import ActivatedForce, ActivationRate, MuscleCurves
from bellcrank.io.mjcf.loops import tendon_joints
from bellcrank.io.mjcf.sites import site_pose
from bellcrank.io.report import Actuation
from bellcrank.mechanism.forces.motors import within
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import MjcfReader

__all__ = ["read_actuators"]


# -- motors of MJCF by their electrical constants, <dcmotor> ----------------------------------------
class MotorConstants(NamedTuple):
    """Resistance [ohm], constant of torque and back voltage [N m/A], inductance [H]."""

    resistance: float
    constant: float
    inductance: float

    @property
    def gain(self) -> float:
        """Force by voltage; by current where that is a state."""
        return self.constant if self.inductance else self.constant / self.resistance

    @property
    def bias(self) -> tuple[float, float, float]:
        """What the back voltage does, by the rate."""
        return 0.0, 0.0, 0.0 if self.inductance else -(self.constant**2) / self.resistance


@dataclass(frozen=True)
class ControlVoltage:
    """The control of an actuator, a parameter, kept in its range."""

    control: str
    low: float | None
    high: float | None

    def __call__(self, at: Any) -> Number:
        return within(at.parameter(self.control), self.low, self.high)


def is_dc_motor(reader: MjcfReader, index: int) -> bool:
    """Whether it is one; older versions of MuJoCo have none."""
    kind = getattr(reader.mujoco.mjtDyn, "mjDYN_DCMOTOR", None)
    return kind is not None and int(reader.model.actuator_dyntype[index]) == int(kind)


def motor_constants(reader: MjcfReader, index: int) -> MotorConstants | None:
    """The constants of a motor that is described by these alone; None of others."""
    model = reader.model
    resistance, constant, *more = (float(x) for x in model.actuator_gainprm[index])
    time, *rest = (float(x) for x in model.actuator_dynprm[index])
    if not is_dc_motor(reader, index) or any((*more, *rest, *model.actuator_biasprm[index])) or resistance <= 0.0:
        return None
    return MotorConstants(resistance, constant, time * resistance)


# -- actuators of MJCF ------------------------------------------------------------------------------
Range = tuple[float, float]
_FREE, _BALL = 0, 1
_ALL: Range = (-math.inf, math.inf)
#: the last group that can be switched off
_GROUPS = 30
#: limits beyond are none
_HUGE = 1e100
#: a target is computed from forces only if it is not absurdly far away
_FAR = 1e6


@dataclass(frozen=True, slots=True)
class _Drive:
    """An actuator that can be modelled: force = (gain . (1, l, v)) control + bias . (1, l, v), times the gear.

    l and v are the length and its rate of the transmission, the gear included: l = gear * (x + start), with x the
    joint coordinate, or the sum of coordinates times their factors.
    """

    name: str
    index: int
    element: XmlElement
    factors: dict[str, float]
    start: float
    tendon: int  #: or -1
    data: Actuation
    gain: tuple[float, float, float]
    dynamics: str = "none"  #: how its activation follows the control
    muscle: bool = False

    @property
    def plain(self) -> bool:
        """Whether it is a motor on one joint, whose force is the joint's tau."""
        return self.tendon < 0 and not any(self.data.bias) and not any(self.gain[1:]) and not self.own

    @property
    def own(self) -> bool:
        """Whether its force follows the control with a state, or is that of a muscle."""
        return self.dynamics != "none" or self.muscle


def read_actuators(reader: MjcfReader, machine: Mechanism) -> None:
    """Add every actuator whose force follows from its control and the state of its joints."""
    site, pushing = int(reader.mujoco.mjtTrn.mjTRN_SITE), reader.drives and "actuation" not in reader.off
    on_sites = [index for index, kind in enumerate(reader.model.actuator_trntype) if int(kind) == site]
    found = [drive for index in range(len(reader.model.actuator_trntype)) if index not in on_sites
             for drive in _drives(reader, index)]
    for index in on_sites if pushing else ():
        _thrust(reader, machine, index)
    for drive in found:
        reader.place = drive.element
        reader.actuations[drive.name] = drive.data
        _rotor(reader, machine, drive)
    if not pushing:
        return
    for joint in dict.fromkeys(d.data.joint for d in found if d.plain):
        _motors(reader, machine, joint, [d for d in found if d.plain and d.data.joint == joint])
    for drive in found:
        reader.place = drive.element
        if drive.dynamics == "current":
            _motor_with_current(reader, machine, drive, _shared(reader, drive, found))
        elif drive.own:
            _activated(reader, machine, drive, _shared(reader, drive, found))
        elif not drive.plain:
            _servo(reader, machine, drive, _shared(reader, drive, found))


# -- what is there ----------------------------------------------------------------------------------
def _drives(reader: MjcfReader, index: int) -> list[_Drive]:
    """The actuator, or nothing if it cannot be modelled."""
    model = reader.model
    name, element = _listed(reader, index)
    if element is None:
        return []
    place = _transmission(reader, index)
    trouble = _law_trouble(reader, index) if isinstance(place, tuple) else place
    if isinstance(place, str) or trouble:
        reader.note("warned", element, f"not modelled, makes no force: {trouble}")
        return []
    factors, start, tendon = place
    kind = element.tag if element.tag != "mujoco" else "general"
    on = next(iter(factors)) if tendon < 0 else reader.source.name("tendon", tendon) or f"tendon{tendon}"
    electric = motor_constants(reader, index)
    gain = model.actuator_gainprm[index] if electric is None else (electric.gain, 0.0, 0.0)
    bent = int(model.actuator_gaintype[index]) == int(reader.mujoco.mjtGain.mjGAIN_AFFINE)
    return [_Drive(name, index, element, factors, start, tendon, _actuation(reader, index, kind, on),
                   (float(gain[0]), float(gain[1]), float(gain[2])) if bent else (float(gain[0]), 0.0, 0.0),
                   _dynamics(reader, index), _is_muscle(reader, index))]


def _listed(reader: MjcfReader, index: int) -> tuple[str, XmlElement | None]:
    """The name of an actuator and its element; none if the file switches it off."""
    element, group = reader.source.element("actuator", index), int(reader.model.actuator_group[index])
    name = reader.source.name("actuator", index) or f"actuator{index}"
    if int(getattr(reader.model, "actuator_actearly", np.zeros(index + 1))[index]):
        reader.note("ignored", element, "actearly: MuJoCo's force is that of the activation one step later")
    if 0 <= group <= _GROUPS and int(reader.model.opt.disableactuator) >> group & 1:
        reader.note("ignored", element, "its group is switched off by the file")
        return name, None
    return name, element


def _dynamics(reader: MjcfReader, index: int) -> str:
    """How the activation follows the control, or "" for ways that are not modelled."""
    kinds, found = reader.mujoco.mjtDyn, int(reader.model.actuator_dyntype[index])
    known = {"none": kinds.mjDYN_NONE, "integrator": kinds.mjDYN_INTEGRATOR, "filter": kinds.mjDYN_FILTER,
             "exact": kinds.mjDYN_FILTEREXACT, "muscle": kinds.mjDYN_MUSCLE}
    name = next((name for name, kind in known.items() if found == int(kind)), "")
    electric = motor_constants(reader, index)
    if electric is not None:
        return "current" if electric.inductance else "none"
    return "filter" if name == "exact" else name


def _is_muscle(reader: MjcfReader, index: int) -> bool:
    return int(reader.model.actuator_gaintype[index]) == int(reader.mujoco.mjtGain.mjGAIN_MUSCLE)


def _transmission(reader: MjcfReader, index: int) -> tuple[dict[str, float], float, int] | str:
    """Joints with factors, the length at q = 0 and the tendon if it is one; or why not."""
    model, kinds = reader.model, reader.mujoco.mjtTrn
    kind, part = int(model.actuator_trntype[index]), int(model.actuator_trnid[index][0])
    if kind in (int(kinds.mjTRN_JOINT), int(kinds.mjTRN_JOINTINPARENT)):
        if int(model.jnt_type[part]) in (_FREE, _BALL):
            return "it acts on a ball or free joint"
        return {reader.joints[part]: 1.0}, float(model.qpos0[int(model.jnt_qposadr[part])]), -1
    if kind == int(kinds.mjTRN_TENDON):
        factors = tendon_joints(reader, part)
        if factors is None or not any(factors.values()):
            return "it pulls at a tendon that is not a sum of joints"
        return {joint: f for joint, f in factors.items() if f}, sum_at_rest(reader, factors), part
    names = {"mjTRN_SLIDERCRANK": "a slider-crank", "mjTRN_BODY": "contacts of a body"}
    what = next((text for label, text in names.items() if kind == int(getattr(kinds, label))), "no joint")
    return f"it acts on {what}"


def sum_at_rest(reader: MjcfReader, factors: dict[str, float]) -> float:
    """The length of a tendon that is a sum of joints, at q = 0."""
    model = reader.model
    return sum(f * float(model.qpos0[int(model.jnt_qposadr[reader.joints.index(j)])]) for j, f in factors.items())


def _law_trouble(reader: MjcfReader, index: int) -> str:
    model, mujoco = reader.model, reader.mujoco
    if not _dynamics(reader, index):
        return "its force follows the control with a state of its own (activation), of a kind that is not modelled"
    if _dynamics(reader, index) != "none" and int(model.actuator_actnum[index]) != 1:
        return "it has several states (activation)"
    if motor_constants(reader, index) is not None:
        tendon = int(model.actuator_trntype[index]) == int(mujoco.mjtTrn.mjTRN_TENDON)
        return "it is a motor with inductance on a tendon" if tendon and _dynamics(reader, index) == "current" else ""
    gains, biases = mujoco.mjtGain, mujoco.mjtBias
    gain, bias = int(model.actuator_gaintype[index]), int(model.actuator_biastype[index])
    muscle = gain == int(gains.mjGAIN_MUSCLE), bias == int(biases.mjBIAS_MUSCLE)
    if any(muscle):
        if not all(muscle) or _dynamics(reader, index) == "none":
            return "it is a muscle in part only"
        if not model.actuator_lengthrange[index][0] < model.actuator_lengthrange[index][1]:
            return "it is a muscle whose lengthrange is not in the file"
    elif gain not in (int(gains.mjGAIN_FIXED), int(gains.mjGAIN_AFFINE)) or bias not in (
            int(biases.mjBIAS_NONE), int(biases.mjBIAS_AFFINE)):
        return "its force is not an affine function of length and rate"
    if np.any(getattr(model, "actuator_delay", np.zeros(index + 1))[index]):
        return "its force follows the control with a delay"
    return ""


def _actuation(reader: MjcfReader, index: int, kind: str, joint: str) -> Actuation:
    model = reader.model
    at = _control(reader, index)
    control = force = _ALL
    if model.actuator_ctrllimited[at] and "clampctrl" not in reader.off:
        control = _pair(model.actuator_ctrlrange[at])
    if model.actuator_forcelimited[index]:
        force = _pair(model.actuator_forcerange[index])
    gear, electric = float(model.actuator_gear[index][0]), motor_constants(reader, index)
    if electric is not None:
        return Actuation(kind, joint, gear, control, force, electric.gain, electric.bias)
    bias = model.actuator_biasprm[index]
    straight = int(model.actuator_biastype[index]) == int(reader.mujoco.mjtBias.mjBIAS_AFFINE)
    return Actuation(kind, joint, gear, control, force, float(model.actuator_gainprm[index][0]),
                     (float(bias[0]), float(bias[1]), float(bias[2])) if straight else (0.0, 0.0, 0.0))


def _control(reader: MjcfReader, index: int) -> int:
    """The place of an actuator's control among all."""
    model = reader.model
    return int(model.actuator_ctrladr[index]) if hasattr(model, "actuator_ctrladr") else index


def _pair(values: Any) -> Range:
    low, high = (float(x) if abs(x) < _HUGE else math.copysign(math.inf, x) for x in values)
    return low, high


def _times(ends: Range, factor: float) -> Range:
    """A range times a factor, which may turn it round; a factor of zero leaves nothing of infinity."""
    low, high = sorted(0.0 if factor == 0.0 else factor * x for x in ends)
    return low, high


def _both(one: Range, other: Range) -> Range:
    """The part of a range that is in another: values are clamped to the first, then to the second."""
    low, high = (min(max(x, other[0]), other[1]) for x in one)
    return low, high


# -- what acts in any case --------------------------------------------------------------------------
def _rotor(reader: MjcfReader, machine: Mechanism, drive: _Drive) -> None:
    """Armature and damping of an actuator belong to its joints."""
    model, index, square = reader.model, drive.index, drive.data.gear**2
    armature, damping = (square * float(np.ravel(getattr(model, f"actuator_{what}", np.zeros(index + 1))[index])[0])
                         for what in ("armature", "damping"))
    if damping and "damper" not in reader.off:
        machine.add_joint_spring(_name(machine, f"{drive.name}_damping"), drive.factors, damping=damping)
    if armature and len(drive.factors) == 1:
        (joint, factor), = drive.factors.items()
        machine.add_armature(unused(f"{drive.name}_armature", {a.name: None for a in machine.armatures}), joint,
                             armature * factor**2)
    elif armature:
        reader.note("warned", drive.element, "the armature of an actuator on several joints is not modelled")
    if np.any(getattr(model, "actuator_dampingpoly", np.zeros(index + 1))[index]):
        reader.note("warned", drive.element, "damping beyond the linear part is not modelled")


def _name(machine: Mechanism, wish: str) -> str:
    taken = [f.name for f in machine.joint_forces] + [f.name for f in machine.joint_sums]
    return unused(wish, dict.fromkeys(taken))


# -- motors -----------------------------------------------------------------------------------------
def _motors(reader: MjcfReader, machine: Mechanism, joint: str, motors: list[_Drive]) -> None:
    """Motors of one joint: together they can make any force tau within the sum of their limits."""
    ranges = [_times(_both(_times(d.data.control, d.data.gain), d.data.force), d.data.gear) for d in motors]
    low, high = _both((sum(r[0] for r in ranges), sum(r[1] for r in ranges)), _joint_limit(reader, joint))
    for drive in motors:
        reader.note("kept", drive.element, f"on joint {joint!r}, gear {drive.data.gear:g}: its force is the input tau "
                                           "of the joint; kept in report.actuators")
    if (low, high) == _ALL:
        return
    limit: Any = high if low == -high else (low, high)
    if math.isfinite(low) and math.isfinite(high) and low <= 0.0 <= high and low < high:
        machine.add_actuator(motors[0].name, joint, limit)
    else:
        reader.note("warned", motors[0].element, f"its force can be from {low:g} to {high:g}, which does not limit tau")


def _joint_limit(reader: MjcfReader, joint: str) -> Range:
    index = reader.joints.index(joint)
    model = reader.model
    return _pair(model.jnt_actfrcrange[index]) if model.jnt_actfrclimited[index] else _ALL


# -- servos -----------------------------------------------------------------------------------------
def _shared(reader: MjcfReader, drive: _Drive, found: list[_Drive]) -> Range:
    """What its joints and tendon let through of the force of an actuator. They limit the sum of all actuators: where
    several share a limit, it limits each of them by itself, which is noted."""
    model, through, shared = reader.model, _ALL, False
    if drive.tendon >= 0 and model.tendon_actfrclimited[drive.tendon]:
        through = _pair(model.tendon_actfrcrange[drive.tendon])
        shared = sum(d.tendon == drive.tendon for d in found) > 1
    for joint, factor in drive.factors.items():
        limit = _joint_limit(reader, joint)
        if limit != _ALL:
            through = _both(through, _times(limit, 1.0 / factor))
            lifted = model.jnt_actgravcomp[reader.joints.index(joint)] and np.any(model.body_gravcomp)
            shared = shared or len(drive.factors) > 1 or bool(lifted) or sum(joint in d.factors for d in found) > 1
    if shared:
        reader.note("warned", drive.element, "joint and tendon limit the sum of all actuator forces (compensation of "
                                             "gravity included, if it is an actuator's); here each force by itself")
    return through


def _servo(reader: MjcfReader, machine: Mechanism, drive: _Drive, through: Range) -> None:
    data, gear = drive.data, drive.data.gear
    if gear == 0.0:
        reader.note("ignored", drive.element, "its gear is zero")
        return
    still = not any(drive.gain)  # whatever the control is
    control = 0.0 if still else machine.parameter(drive.name, 0.0)
    low, high = data.control
    clamped = within(control, low if low > -math.inf else None, high if high < math.inf else None)
    stiffness, damping = ((0.0 - (b + g * clamped if g else b)) * gear**2
                          for b, g in zip(data.bias[1:], drive.gain[1:], strict=True))
    push = (drive.gain[0] * clamped + data.bias[0]) * gear
    size = max(abs(drive.gain[0]), abs(data.bias[0])) * abs(gear)
    aims: dict[str, Any] = {"target": -drive.start}
    if any(drive.gain[1:]):
        aims["offset"] = push
    elif stiffness and size <= _FAR * abs(stiffness):
        aims["target"] = push / stiffness - drive.start
    elif damping and size <= _FAR * abs(damping):
        aims["target_rate"] = push / damping
    else:
        aims["offset"] = push
    limit = _both(_times(data.force, gear), through)
    machine.add_servo(_name(machine, drive.name), _joints(drive), stiffness=stiffness, damping=damping, **aims,
                      limit=_limit(reader, drive, limit))
    said = "without control"
    if not still:
        reader.controls[drive.name] = _control(reader, drive.index)
        said = f"its control is the parameter {drive.name!r}"
    reader.note("changed", drive.element, f"a servo on {', '.join(map(repr, drive.factors))}; {said}")


# -- sites ------------------------------------------------------------------------------------------
def _thrust(reader: MjcfReader, machine: Mechanism, index: int) -> None:
    """An actuator that pushes and twists a body at a site, along the site's axes: the thrust of a drone."""
    model, (name, element) = reader.model, _listed(reader, index)
    if element is None:
        return
    site, reference = (int(i) for i in model.actuator_trnid[index])
    trouble = _law_trouble(reader, index)
    data = _actuation(reader, index, element.tag, reader.source.name("site", site))
    if reference >= 0:
        trouble = "it acts on a site relative to another one"
    elif not trouble and (_dynamics(reader, index) != "none" or any(data.bias[1:]) or _is_bent(reader, index)):
        trouble = "it acts on a site with a force that depends on more than the control"
    if trouble:
        reader.note("warned", element, f"not modelled, makes no force: {trouble}")
        return
    body, pose = site_pose(reader, site)
    if not body:
        reader.note("ignored", element, "it acts on the world")
        return
    control = machine.parameter(name, 0.0)
    size = within(data.gain * within(control, *_ends_of(data.control)) + data.bias[0], *_ends_of(data.force))
    force, moment = np.array(model.actuator_gear[index], dtype=float).reshape(2, 3) @ pose.rotation.T
    machine.add_wrench(unused(name, {w.name: None for w in machine.wrenches}), reader.bodies[body], axes="body",
                       at=pose.position, force=[x * size if x else 0.0 for x in force.tolist()],
                       moment=[x * size if x else 0.0 for x in moment.tolist()])
    reader.actuations[name] = data
    reader.controls[name] = _control(reader, index)
    reader.note("changed", element, f"a wrench on {reader.bodies[body]!r}; its control is the parameter {name!r}")


def _is_bent(reader: MjcfReader, index: int) -> bool:
    """Whether the gain of an actuator depends on length or rate."""
    return int(reader.model.actuator_gaintype[index]) == int(reader.mujoco.mjtGain.mjGAIN_AFFINE) and bool(
        np.any(reader.model.actuator_gainprm[index][1:3]))


# -- activations ------------------------------------------------------------------------------------
def _activated(reader: MjcfReader, machine: Mechanism, drive: _Drive, through: Range) -> None:
    """An actuator whose activation is a state."""
    model, index, data = reader.model, drive.index, drive.data
    if data.gear == 0.0:
        reader.note("ignored", drive.element, "its gear is zero")
        return
    name, taken = _name(machine, drive.name), dict.fromkeys((*reader.taken, *(b.name for b in machine.bodies)))
    state = reader.new_name(unused(f"{drive.name}_activation", taken))  # a joint and a body are called so
    machine.parameter(drive.name, 0.0)
    kept: tuple[float | None, float | None] = (None, None)
    if model.actuator_actlimited[index]:
        kept = _ends_of(_pair(model.actuator_actrange[index]))
    times = [float(x) for x in model.actuator_dynprm[index][:3]]
    curves = _muscle(model, index) if drive.muscle else None
    limits = _ends_of(_both(_times(data.force, data.gear), through))
    machine.add_joint_force(name, _joints(drive), ActivatedForce(
        name, state, data.gear, drive.start, curves or drive.gain, curves or data.bias, limits))
    machine.add_state(state, ActivationRate(state, drive.name, drive.dynamics, (times[0], times[1], times[2]),
                                            _ends_of(data.control), kept))
    reader.controls[drive.name] = _control(reader, index)
    reader.activations[state] = int(model.actuator_actadr[index])
    reader.note("changed", drive.element, f"a force on {', '.join(map(repr, drive.factors))}; its control is the "
                                          f"parameter {drive.name!r}, its activation the state {state!r}")


def _motor_with_current(reader: MjcfReader, machine: Mechanism, drive: _Drive, through: Range) -> None:
    """A motor with inductance."""
    electric = motor_constants(reader, drive.index)
    assert electric is not None
    if drive.data.gear == 0.0:
        reader.note("ignored", drive.element, "its gear is zero")
        return
    if _both(drive.data.force, through) != _ALL:
        reader.note("warned", drive.element, "the limit of the force of a motor with inductance is not modelled")
    name, control = _name(machine, drive.name), machine.parameter(drive.name, 0.0)
    voltage = control if drive.data.control == _ALL else ControlVoltage(drive.name, *_ends_of(drive.data.control))
    machine.add_dc_motor(name, drive.data.joint, voltage=voltage, resistance=electric.resistance,
                         inductance=electric.inductance, constant=electric.constant, gear=drive.data.gear)
    state = reader.new_name(f"{name} current")
    reader.controls[drive.name] = _control(reader, drive.index)
    reader.activations[state] = int(reader.model.actuator_actadr[drive.index])
    reader.note("changed", drive.element, f"a motor on {drive.data.joint!r}; its voltage is the parameter "
                                          f"{drive.name!r}, its current the state {state!r}")


def _ends_of(ends: Range) -> tuple[float | None, float | None]:
    low, high = (None if math.isinf(x) else x for x in ends)
    return low, high


def _muscle(model: Any, index: int) -> MuscleCurves:
    low, high, force, scale, least, most, speed, passive, stretched = (float(x) for x in
                                                                       model.actuator_gainprm[index][:9])
    if force < 0.0:
        force = scale / max(1e-15, float(model.actuator_acc0[index]))
    lengths = model.actuator_lengthrange[index]
    return MuscleCurves(force, (float(lengths[0]), float(lengths[1])), (low, high), (least, most), speed, passive,
                        stretched)


def _joints(drive: _Drive) -> Any:
    return drive.data.joint if drive.tendon < 0 else drive.factors


def _limit(reader: MjcfReader, drive: _Drive, limit: Range) -> Any:
    if limit == _ALL:
        return None
    if limit[0] < limit[1] and math.isfinite(limit[0]) and math.isfinite(limit[1]):
        return limit
    reader.note("warned", drive.element, f"its force can be from {limit[0]:g} to {limit[1]:g}, which is not kept")
    return None
