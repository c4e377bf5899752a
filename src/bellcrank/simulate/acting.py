"""Forces that act in states of a run: along joints, of single elements, on bodies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, hint
from bellcrank.lowering.machine_view import MachineView
from bellcrank.mechanism.parts import JointDrive, JointForce, JointSum
from bellcrank.system.force_elements import (
    actuator_forces,
    machine_view,
    with_values,
)
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_loads import loop_loads
from bellcrank.topology.pairs import SumForce

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["PARTS", "States", "along_joints", "element_force", "joint_reactions"]

#: which of the forces along joints are wanted
PARTS = ("all", "given", "elements")


class States(NamedTuple):
    """States of a run with the forces that were given, all of one shape but for the last axis."""

    system: Machine
    q: Floats
    u: Floats
    tau: Floats | None
    t: Floats
    wrenches: Wrenches  #: external ones, and rigid contacts
    unknown: npt.NDArray[np.bool_] | None = None  #: where what acts is not on record

    def known(self, values: Floats) -> Floats:
        """Values (..., size) that follow from all that acts; NaN where that is not on record."""
        return values if self.unknown is None else np.where(self.unknown[..., None], np.nan, values)

    def accelerations(self) -> Floats:
        """By forward dynamics, (..., nu)."""
        return self.known(self.system.forward_dynamics(self.q, self.u, self.tau, wrenches=self.wrenches, t=self.t))


def joint_reactions(states: States) -> dict[str, Floats]:
    """`System.reactions` at all states."""
    system, q, u, tau, t = states[:5]
    found = system.reactions(q, u, tau, wrenches=states.wrenches, t=t)
    return {name: states.known(wrench) for name, wrench in found.items()}


def along_joints(states: States, of: str) -> Floats:
    """Forces along the coordinates of joints, (..., nu): those given within the limits of actuators, those of elements
    on joints and on sums of joint coordinates, or all; NaN along loop joints that are released."""
    system, q, u, tau, t = states[:5]
    total = np.zeros(u.shape)
    if of in ("all", "given") and tau is not None:
        total = total + actuator_forces(system.plans, q, u, tau, t=t)
    if of in ("all", "elements"):
        if system.model.tree.joint_forces:
            total = total + system.kernels.run("joint_laws", {"q": q, "u": u}, None, t)
        sums = {pair.name for pair in system.model.tree.pairs if isinstance(pair, SumForce)}
        every: tuple[JointForce | JointSum, ...] = (  # laws of machines that are seen link by link are among them
            *system.model.mechanism.joint_sums, *system.model.mechanism.joint_forces)
        for element in every:
            if element.name in sums:
                total = total + _spread(states, element)
    for own in system.model.tree.loop_joints:
        if own.name in system.model.released:
            total[..., own.u] = np.nan
    return total


def _terms(states: States, element: JointForce | JointSum) -> tuple[tuple[str, int, Any], ...]:
    if isinstance(element, JointForce):
        return ((element.joint, element.coordinate, 1.0),)
    terms: tuple[tuple[str, int, Any], ...] = with_values(states.system.plans, element.terms)
    return terms


def _spread(states: States, element: JointForce | JointSum) -> Floats:
    """What a force along a coordinate, or a sum of some, does to each of them, (..., nu)."""
    out, force = np.zeros(states.u.shape), _along(states, element)
    for joint, coordinate, factor in _terms(states, element):
        out[..., states.system.model.configuration.starts[joint][1] + coordinate] += factor * force
    return out


def _along(states: States, element: JointForce | JointSum) -> Floats:
    """The force of an element on a joint coordinate or a sum of some, (...)."""
    terms = _terms(states, element)
    x, rate = np.zeros(states.u.shape[:-1]), np.zeros(states.u.shape[:-1])
    for joint, k, factor in terms:
        place, speed = _coordinate(states, joint, k)
        x, rate = x + factor * place, rate + factor * speed
    along = with_values(states.system.plans, element.along).at(states.t)
    return _scalar(states, along.seen(_sight(states)).force(x, rate))


def _sight(states: States) -> MachineView:
    return machine_view(states.system.plans, states.q, states.u, states.t)


def _scalar(states: States, value: Any) -> Floats:
    return np.array(np.broadcast_to(np.asarray(value, dtype=float), states.u.shape[:-1]))


def _coordinate(states: States, joint: str, k: int) -> tuple[Floats, Floats]:
    system, q, u = states[:3]
    if joint in system.model.released:
        none = np.full(u.shape[:-1], np.nan)
        return none, none
    i, j = system.model.configuration.starts[joint]
    return q[..., i + k], u[..., j + k]


def element_force(states: States, name: str) -> tuple[Floats, str, tuple[str, ...]]:
    """The force of one element: a number along its coordinate or line (...), or a wrench (..., 6) on its second body;
    what it is, and its units. Of constraints: see `constraint_forces`."""
    mechanism = states.system.model.mechanism
    on_joints: tuple[JointForce | JointSum, ...] = (*mechanism.joint_forces, *mechanism.joint_sums)
    for element in on_joints:
        if element.name == name:
            return _along(states, element), f"force of {name} along its coordinate", _units(states.system, element)
    for drive in mechanism.drives:
        if drive.name == name:
            entry = states.system.model.configuration.starts[drive.joint][1] + drive.coordinate
            return (along_joints(states, "given")[..., entry], f"force of {name} within its limits",
                    _units(states.system, drive))
    if any(c.name == name for c in mechanism.constraints):
        return constraint_forces(states, name)
    if any(c.name == name for c in mechanism.couplers):
        return coupler_force(states, name)
    some: tuple[Any, ...] = (*mechanism.springs, *mechanism.bushings, *mechanism.drags, *mechanism.wrenches,
                             *(c for c in mechanism.contacts if not c.rigid))
    between = {e.name for e in some}
    if name not in between:
        if any(c.name == name for c in mechanism.contacts):
            raise ModelError(f"forces: the contact {name!r} is rigid; element({name!r}) says what its impulses did")
        known = [*(e.name for e in on_joints), *(d.name for d in mechanism.drives), *sorted(between),
                 *(c.name for c in mechanism.constraints), *(c.name for c in mechanism.couplers)]
        raise ModelError(f"forces: no force element called {name!r}; there are {', '.join(known) or 'none'}"
                         f"{hint(name, known)}")
    return _between(states, name)


def constraint_forces(states: States, name: str) -> tuple[Floats, str, tuple[str, ...]]:
    """What holds each condition of a constraint: one number (...), or one a condition (..., conditions). Times the rate
    at which a law of time changes the condition's length, it is the power put in."""
    plans = states.system.plans
    where = [k for k, c in enumerate(plans.tree.closures) if c.name == name]
    if not where:
        raise ModelError(f"forces: the constraint {name!r} is released: it exerts none")
    closure, start = plans.tree.closures[where[0]], int(plans.loops.starts[where[0]])
    loads = _multipliers(states)[..., start:start + closure.rows]
    unit = "N m" if closure.kind.condition_names == ("angle",) else "N"
    return (loads[..., 0] if closure.rows == 1 else loads), f"force of {name} along its conditions", \
        (unit,) * closure.rows


def coupler_force(states: States, name: str) -> tuple[Floats, str, tuple[str, ...]]:
    """The force of a coupler along its sum of coordinates (...): times the factor of a coordinate, the force on it."""
    plans, mechanism = states.system.plans, states.system.model.mechanism
    row = plans.loops.m_closures + [r.name for r in plans.tree.relations].index(name)
    joint, coordinate = next(c for c in mechanism.couplers if c.name == name).terms[0][:2]
    return _multipliers(states)[..., row], f"force of {name} along its sum of coordinates", \
        (_unit(states.system, joint, coordinate),)


def _multipliers(states: States) -> Floats:
    """Of all constraints, (..., constraints)."""
    system, q, u, tau, t = states[:5]
    given = np.zeros(system.nu) if tau is None else actuator_forces(system.plans, q, u, tau, t=t)
    udot = system.forward_dynamics(q, u, tau, wrenches=states.wrenches, t=t)
    return states.known(loop_loads(system.plans, q, u, given, udot, states.wrenches, t))


def _between(states: States, name: str) -> tuple[Floats, str, tuple[str, ...]]:
    """Springs between points: the force along their line. Bushings, drag, contacts and wrenches: the wrench on their
    (second) body."""
    mechanism, tree = states.system.model.mechanism, states.system.model.tree
    acting: tuple[Any, ...] = (*tree.pairs, *(w for several in tree.applied.values() for w in several))
    if all(e.name != name for e in acting):
        raise ModelError(f"forces: {name!r} acts on a body that is welded to the ground, where it moves nothing")
    found = _sight(states).element(name)
    if any(e.name == name for e in mechanism.springs):
        return _scalar(states, found.force), f"force of {name} along its line, apart", ("N",)
    others: tuple[Any, ...] = (*mechanism.bushings, *mechanism.contacts, *mechanism.drags, *mechanism.wrenches)
    own = next(e for e in others if e.name == name)
    body = tree.body_names[own.second if hasattr(own, "second") else own.body]
    wrench = np.stack([_scalar(states, x) for v in (found.torque, found.vector) for x in v], axis=-1)
    return wrench, f"wrench of {name} on {body}, world axes, about its point there", ("N m",) * 3 + ("N",) * 3


def _units(system: Machine, element: JointForce | JointSum | JointDrive) -> tuple[str, ...]:
    joint, coordinate = (element.terms[0][0], element.terms[0][1]) if isinstance(element, JointSum) else (
        element.joint, element.coordinate)
    return (_unit(system, joint, coordinate),)


def _unit(system: Machine, joint: str, coordinate: int) -> str:
    from bellcrank.simulate.fields import force_units

    return force_units(system.model.mechanism.joint(joint).joint)[coordinate]
