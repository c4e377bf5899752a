"""What a mechanism has beside bodies and joints, as URDF: friction and couplers; the rest is refused by name."""

from __future__ import annotations

from bellcrank.errors import ModelError
from bellcrank.mechanism.forces import Friction, LinearSpring
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.graph import Scalar

__all__ = ["dynamics_of", "mimics_of", "refuse_rest"]

_EARTH = (0.0, 0.0, -9.81)
_REFUSED = (("wrenches", "wrench"), ("springs", "spring"), ("bushings", "bushing"), ("drags", "drag"),
            ("contacts", "contact"), ("drives", "actuator"), ("constraints", "constraint"), ("armatures", "armature"),
            ("joint_sums", "joint force"))


def refuse_rest(mechanism: Mechanism, drop_gravity: bool) -> None:
    """Refuse what the format has no place for."""
    for collection, what in _REFUSED:
        for part in getattr(mechanism, collection):
            raise ModelError(f"{what} {getattr(part, 'name', part)!r}: URDF cannot hold it")
    for record in mechanism.joints:
        if record.prescribed is not None:
            raise ModelError(f"joint {record.name!r} follows a law of time, which URDF cannot hold")
    if any(isinstance(x, Scalar) for x in mechanism.gravity) or (mechanism.gravity != _EARTH and not drop_gravity):
        raise ModelError(f"mechanism {mechanism.name!r}: URDF holds no gravity and is read with {_EARTH}; "
                         "drop_gravity=True leaves it out")


def dynamics_of(mechanism: Mechanism) -> dict[str, tuple[float, float]]:
    """Damping and dry friction of joints."""
    found: dict[str, tuple[float, float]] = {}
    for force in mechanism.joint_forces:
        along, what = force.along, f"joint force {force.name!r}"
        if isinstance(along, Friction) and along.static is None and along.speed == Friction().speed:
            damping, friction = along.viscous, along.coulomb
        elif isinstance(along, LinearSpring) and isinstance(along.stiffness, float) and along.stiffness == 0.0:
            damping, friction = along.damping, 0.0
        else:
            raise ModelError(f"{what}: URDF holds damping and plain friction (speed=0.001) only")
        if isinstance(damping, Scalar) or isinstance(friction, Scalar):
            raise ModelError(f"{what} has parameters; URDF holds numbers only")
        if mechanism.joint(force.joint).joint.nu != 1:
            raise ModelError(f"{what}: joint {force.joint!r} has several coordinates; URDF holds friction of one")
        before = found.get(force.joint, (0.0, 0.0))
        found[force.joint] = before[0] + damping, before[1] + friction
    return found


def mimics_of(mechanism: Mechanism, usable: set[str]) -> dict[str, tuple[str, float, float]]:
    """Couplers as joints that follow others: leader, multiplier and offset."""
    found: dict[str, tuple[str, float, float]] = {}

    def leads_to(joint: str, target: str) -> bool:
        while joint in found:
            joint = found[joint][0]
        return joint == target

    for coupler in mechanism.couplers:
        what = f"coupler {coupler.name!r}"
        if len(coupler.terms) != 2 or not all(joint in usable for joint, _, _ in coupler.terms):
            raise ModelError(f"{what}: URDF couples two revolute or prismatic joints of the tree only")
        (one, _, a), (two, _, b) = coupler.terms
        if not isinstance(a, float) or not isinstance(b, float) or not isinstance(coupler.offset, float):
            raise ModelError(f"{what}: URDF couples joints by plain factors only, not by functions or parameters")
        for follower, leader, own, other in ((one, two, a, b), (two, one, b, a)):
            if follower not in found and not leads_to(leader, follower):
                found[follower] = leader, -other / own, coupler.offset / own + 0.0
                break
        else:
            raise ModelError(f"{what}: both joints follow others already; in URDF a joint follows one")
    return found
