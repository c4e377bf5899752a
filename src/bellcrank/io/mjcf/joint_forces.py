"""Forces in the joints and tendons of MJCF: springs, dampers, friction, rotors and ranges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.common.xml import unused
from bellcrank.io.mjcf.actuators import sum_at_rest
from bellcrank.io.mjcf.loops import tendon_joints
from bellcrank.io.mjcf.sites import tendon_sites
from bellcrank.io.report import Dynamics, Limits
from bellcrank.mechanism.forces.element import positive_part
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.io.mjcf.read import MjcfReader

__all__ = ["DeadBand", "read_joint_forces", "read_tendons"]

_FREE, _BALL = 0, 1
_NONE = (0.0, 0.0, 0.0)


# -- joints -----------------------------------------------------------------------------------------
def read_joint_forces(reader: MjcfReader, machine: Mechanism, joint: int) -> None:
    """What acts in one joint."""
    model, name, kind = reader.model, reader.joints[joint], int(reader.model.jnt_type[joint])
    dof = int(model.jnt_dofadr[joint])
    damping = 0.0 if "damper" in reader.off else float(model.dof_damping[dof])
    stiffness = 0.0 if "spring" in reader.off else float(model.jnt_stiffness[joint])
    dry = float(model.dof_frictionloss[dof])
    if damping or dry:
        reader.dynamics[name] = Dynamics(damping, dry)
    if reader.off & {"frictionloss", "constraint"}:
        dry = 0.0
    for array, index, what in (("jnt_stiffnesspoly", joint, "stiffness"), ("dof_dampingpoly", dof, "damping"),
                               ("jnt_springyield", joint, "the yield of springs")):
        if hasattr(model, array) and np.any(getattr(model, array)[index]):
            reader.note("warned", reader.place, f"{what} beyond the linear part is not modelled")
    if kind in (_FREE, _BALL):
        _ball_forces(reader, machine, joint, stiffness, damping)
        if dry and kind == _FREE:
            reader.note("warned", reader.place, "dry friction of free joints is not modelled")
        elif dry:
            for axis in machine.joint(name).joint.speed_names:
                machine.add_friction(f"{name}_friction_{axis}", name, coulomb=dry, coordinate=axis)
            reader.note("changed", reader.place, "frictionloss is a smooth law of the speeds here (see add_friction)")
    else:
        if stiffness or damping:
            at = int(model.jnt_qposadr[joint])
            rest = float(model.qpos_spring[at] - model.qpos0[at])
            machine.add_joint_spring(f"{name}_spring", name, stiffness=stiffness, damping=damping, rest=rest)
        if dry:
            machine.add_friction(f"{name}_friction", name, coulomb=dry)
            reader.note("changed", reader.place, "frictionloss is a smooth law of the speed here (see add_friction)")
    _armature(reader, machine, joint, float(model.dof_armature[dof]))
    _range(reader, machine, joint)


def _ball_forces(reader: MjcfReader, machine: Mechanism, joint: int, stiffness: float, damping: float) -> None:
    """Springs and dampers alike in all directions, at rest in the layout drawn."""
    if not (stiffness or damping):
        return
    record = machine.joint(reader.joints[joint])
    shares = (1.0,) * 3 if isinstance(record.joint, Free) else _NONE
    bodies = (machine.ground, *machine.bodies)
    machine.add_bushing(f"{record.name}_spring" if stiffness else f"{record.name}_damping", bodies[record.parent],
                        bodies[record.child], record.drawn_pose, record.child_pose, measure="angle",
                        stiffness=[stiffness * x for x in shares], turn_stiffness=(stiffness,) * 3,
                        damping=[damping * x for x in shares], turn_damping=(damping,) * 3)


def _armature(reader: MjcfReader, machine: Mechanism, joint: int, armature: float) -> None:
    if not armature:
        return
    name = reader.joints[joint]
    if int(reader.model.jnt_type[joint]) != _FREE:
        machine.add_armature(f"{name}_armature", name, armature)
        return
    # the same as a weightless body at the origin of the one that is free
    body = reader.bodies[int(reader.model.jnt_bodyid[joint])]
    taken = dict.fromkeys([*reader.bodies, *(b.name for b in machine.bodies)])
    extra = unused(f"{body}_armature", taken)
    machine.add_body(extra, Inertia(armature, _NONE, armature))
    machine.add_joint(reader.new_name(f"{extra}_weld"), Weld(), body, extra)
    if any(machine.gravity):
        machine.add_wrench(f"{extra}_gravcomp", extra, force=[-armature * g for g in machine.gravity])
    reader.note("changed", reader.place, f"the armature {armature:g} of a free joint is the body {extra!r}, without "
                                         "weight")


def _range(reader: MjcfReader, machine: Mechanism, joint: int) -> None:
    model, name, kind = reader.model, reader.joints[joint], int(reader.model.jnt_type[joint])
    effort = np.inf
    if model.jnt_actfrclimited[joint]:
        effort = float(np.abs(model.jnt_actfrcrange[joint]).max())
    if not model.jnt_limited[joint]:
        if np.isfinite(effort):
            reader.limits[name] = Limits(effort=effort)
        return
    if kind == _BALL:
        reader.note("ignored", reader.place, "the range of a ball joint")
        return
    start = float(model.qpos0[int(model.jnt_qposadr[joint])])
    lower, upper = (float(x) - start for x in model.jnt_range[joint])
    reader.limits[name] = Limits(lower, upper, effort)
    if not reader.stops or reader.off & {"limit", "constraint"}:
        reader.note("kept", reader.place, "the range does not act on the motion; kept in report.limits")
        return
    weight = float(model.dof_invweight0[int(model.jnt_dofadr[joint])])
    stiffness, damping = _softness(model.jnt_solref[joint], model.jnt_solimp[joint], weight)
    machine.add_limit(f"{name}_range", name, lower, upper, stiffness=stiffness, damping=damping)
    reader.note("changed", reader.place, "the range is a spring and damper as soft as solreflimit says")


def _softness(solref: Any, solimp: Any, weight: float) -> tuple[float, float]:
    """Stiffness and damping of a stop from solref and solimp, with the inverse inertia in the layout drawn."""
    one, two = (float(x) for x in solref)
    most = min(max(float(solimp[1]), 1e-4), 0.9999)
    if one > 0.0:
        k, b = 1.0 / (most * one * two) ** 2 if two else 1.0 / (most * one) ** 2, 2.0 / (most * one)
    else:
        k, b = -one / most**2, -two / most
    inertia = most / max(weight, 1e-12)
    return max(k * inertia, 1e-9), max(b * inertia, 0.0)


# -- tendons ----------------------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class DeadBand:
    """The energy [J] of a spring that is at rest anywhere from `low` to `high` [m].

    >>> slack = DeadBand(stiffness=100.0, low=0.0, high=0.5)
    >>> slack(0.4), round(slack(0.6), 12)
    (0.0, 0.5)
    """

    stiffness: float
    low: float
    high: float

    def __call__(self, x: Number) -> Number:
        short, long = positive_part(self.low - x), positive_part(x - self.high)
        return (short * short + long * long) * (0.5 * self.stiffness)


def read_tendons(reader: MjcfReader, machine: Mechanism) -> None:
    """What acts along tendons that are straight or sums of joints; the rest is noted."""
    model = reader.model
    for tendon in range(model.ntendon):
        element = reader.place = reader.source.element("tendon", tendon)
        name = reader.source.name("tendon", tendon) or f"tendon{tendon}"
        for what in ("stiffnesspoly", "dampingpoly", "springyield"):
            if np.any(getattr(model, f"tendon_{what}", np.zeros(model.ntendon))[tendon]):
                reader.note("warned", element, f"{what} of a tendon is not modelled")
        factors = tendon_joints(reader, tendon)
        if factors is None:
            _spatial(reader, machine, tendon, name)
        else:
            _fixed(reader, machine, tendon, name, {joint: f for joint, f in factors.items() if f})


def _strength(reader: MjcfReader, tendon: int) -> tuple[float, float, float]:
    """Stiffness, damping and dry friction, as far as they are switched on."""
    model = reader.model
    return (float(model.tendon_stiffness[tendon]) * ("spring" not in reader.off),
            float(model.tendon_damping[tendon]) * ("damper" not in reader.off),
            float(model.tendon_frictionloss[tendon]) * (not reader.off & {"frictionloss", "constraint"}))


def _spatial(reader: MjcfReader, machine: Mechanism, tendon: int, name: str) -> None:
    model, element = reader.model, reader.place
    stiffness, damping, dry = _strength(reader, tendon)
    low, high = (float(x) for x in model.tendon_lengthspring[tendon])
    if dry or model.tendon_armature[tendon]:
        reader.note("warned", element, "frictionloss and armature of a tendon between sites are not modelled")
    if model.tendon_limited[tendon]:
        reader.note("warned" if reader.stops else "ignored", element, "the range of a tendon between sites")
    if not (stiffness or damping):
        reader.note("ignored", element, "a tendon without stiffness and damping")
        return
    ends = tendon_sites(reader, tendon)
    if ends is None:
        reader.note("warned", element, "the spring and damper of this tendon are not modelled")
        return
    (a, first), (b, second) = ends
    law: dict[str, Any] = {"stiffness": stiffness, "length": low}
    if low != high and stiffness:
        law = {"potential": DeadBand(stiffness, low, high)}
    machine.add_spring(name, reader.bodies[a], reader.bodies[b], first.position, second.position, damping=damping,
                       **law)


def _fixed(reader: MjcfReader, machine: Mechanism, tendon: int, name: str, factors: dict[str, float]) -> None:
    """A sum of joint coordinates."""
    model, element = reader.model, reader.place
    if not factors:
        reader.note("ignored", element, "a tendon without joints")
        return
    stiffness, damping, dry = _strength(reader, tendon)
    start = sum_at_rest(reader, factors)
    low, high = (float(x) - start for x in model.tendon_lengthspring[tendon])
    if low != high and stiffness:
        machine.add_limit(f"{name}_slack", factors, low, high, stiffness=stiffness)
        stiffness = 0.0
    if stiffness or damping:
        machine.add_joint_spring(f"{name}_tendon", factors, stiffness=stiffness, damping=damping,
                                 rest=low if stiffness else 0.0)
    if dry:
        machine.add_friction(f"{name}_friction", factors, coulomb=dry)
        reader.note("changed", element, "frictionloss is a smooth law of the speed here (see add_friction)")
    _tendon_armature(reader, machine, tendon, name, factors)
    if not model.tendon_limited[tendon]:
        return
    if not reader.stops or reader.off & {"limit", "constraint"}:
        reader.note("ignored", element, "the range of a tendon, which does not act on the motion")
        return
    lower, upper = (float(x) - start for x in model.tendon_range[tendon])
    soft = _softness(model.tendon_solref_lim[tendon], model.tendon_solimp_lim[tendon],
                     float(model.tendon_invweight0[tendon]))
    machine.add_limit(f"{name}_range", factors, lower, upper, stiffness=soft[0], damping=soft[1])


def _tendon_armature(reader: MjcfReader, machine: Mechanism, tendon: int, name: str, factors: dict[str, float]) -> None:
    armature = float(reader.model.tendon_armature[tendon])
    if armature and len(factors) == 1:
        (joint, factor), = factors.items()
        try:
            machine.add_armature(f"{name}_armature", joint, armature * factor**2)
        except ModelError as error:
            reader.note("warned", reader.place, f"the armature {armature:g} is left out: {error}")
    elif armature:
        reader.note("warned", reader.place, "the armature of a tendon along several joints is not modelled")
