"""What acts along the joints of a machine, as far as SDF has words for it."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.errors import ModelError
from bellcrank.mechanism.forces import Friction, Limit, LinearSpring
from bellcrank.mechanism.joints import Prismatic, Revolute, Screw, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.placed_elements import Coupler, JointForce
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["Axes", "AxisForces", "axis_forces"]

_USUAL = Friction()
_ONSET = Limit(None, 0.0, 1.0).onset


@dataclass(slots=True)
class AxisForces:
    """The numbers of one <axis>; None where nothing is written."""

    damping: float | None = None
    friction: float | None = None
    rest: float | None = None
    stiffness: float | None = None
    lower: float | None = None
    upper: float | None = None
    stop_stiffness: float | None = None
    stop_damping: float | None = None
    leader: tuple[str, int] | None = None
    multiplier: float = 1.0
    offset: float = 0.0


Axes = dict[tuple[str, int], AxisForces]


def axis_forces(machine: Mechanism, start: dict[str, tuple[float, ...]]) -> Axes:
    """Forces and couplings by joint and coordinate; coordinates are counted from `start`."""
    axes: Axes = {}
    for force in machine.joint_forces:
        what = f"joint force {force.name!r}"
        values = [v for v in vars(force.along).values() if v is not None]
        if any(isinstance(value, Scalar) for value in values):
            raise ModelError(f"{what}: SDF cannot hold parameters; give it numbers")
        if not isinstance(machine.joint(force.joint).joint, (Revolute, Prismatic, Screw, Universal)):
            raise ModelError(f"{what}: SDF has no forces along the coordinates of joint {force.joint!r}")
        here = axes.setdefault((force.joint, force.coordinate), AxisForces())
        _add(what, force, here, start[force.joint][force.coordinate])
    for coupler in machine.couplers:
        _couple(coupler, axes, start)
    return axes


def _add(what: str, force: JointForce, here: AxisForces, zero: float) -> None:
    along = force.along
    if isinstance(along, LinearSpring):
        here.damping = _sum(here.damping, along.damping)
        if along.stiffness:
            if here.stiffness is not None:
                raise ModelError(f"{what}: SDF has one spring for a coordinate")
            here.stiffness, here.rest = float(along.stiffness), float(along.rest) - zero
    elif type(along) is Friction:
        if along.coulomb and here.friction is not None:
            raise ModelError(f"{what}: SDF has one dry friction for a coordinate")
        if along.static is not None or (along.coulomb and along.speed != _USUAL.speed):
            raise ModelError(f"{what}: SDF cannot hold static friction, nor another speed than {_USUAL.speed:g}")
        here.damping = _sum(here.damping, along.viscous)
        if along.coulomb:
            here.friction = float(along.coulomb)
    elif type(along) is Limit:
        if here.stop_stiffness is not None:
            raise ModelError(f"{what}: SDF has one pair of stops for a coordinate")
        if along.onset != _ONSET:
            raise ModelError(f"{what}: SDF cannot hold an onset of damping other than {_ONSET:g}")
        here.stop_stiffness, here.stop_damping = float(along.stiffness), float(along.damping)
        here.lower = None if along.lower is None else float(along.lower) - zero
        here.upper = None if along.upper is None else float(along.upper) - zero
    else:
        raise ModelError(f"{what}: SDF cannot hold its law")


def _sum(one: float | None, other: Number) -> float | None:
    return one if not other else float(other) + (one or 0.0)


def _couple(coupler: Coupler, axes: Axes, start: dict[str, tuple[float, ...]]) -> None:
    """Two coupled coordinates: one mimics the other."""
    if len(coupler.terms) != 2:
        raise ModelError(f"coupler {coupler.name!r}: SDF couples two coordinates, this one has {len(coupler.terms)}")
    factors = {(joint, i): part for joint, i, part in coupler.terms if isinstance(part, float)}
    if len(factors) != 2 or not isinstance(coupler.offset, float):
        raise ModelError(f"coupler {coupler.name!r}: SDF couples coordinates by plain factors only, not by functions "
                         "or parameters")
    rest = coupler.offset - sum(factor * start[joint][i] for (joint, i), factor in factors.items())
    for follower, leader in ((0, 1), (1, 0)):
        (joint, i), factor = list(factors.items())[follower]
        (other, j), lead = list(factors.items())[leader]
        here = axes.setdefault((joint, i), AxisForces())
        if here.leader is None:
            here.leader, here.multiplier, here.offset = (other, j), -lead / factor, rest / factor
            return
    raise ModelError(f"coupler {coupler.name!r}: both its coordinates follow others already, which SDF cannot hold")
