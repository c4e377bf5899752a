"""What acts in a machine in a state: force elements, what they store and lose, and what they exert; contacts; loops."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, check_time, check_unmasked, flat
from bellcrank.compiled.system import System
from bellcrank.errors import NotYetError
from bellcrank.mechanism.parts import StateRate
from bellcrank.system import force_elements, loop_errors
from bellcrank.system import loop_loads as loads
from bellcrank.system.contact_states import ContactState, contact_states
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state_methods import of_motion, of_position
from bellcrank.topology.pairs import SumForce

__all__ = ["BodyEnergies", "actuator_forces", "body_energies", "contacts", "dissipated_power", "drawing_errors",
           "element_wrenches", "loop_acceleration_error", "loop_coordinates", "loop_drive", "loop_jacobian",
           "loop_loads", "loop_speeds", "stored_energy"]


# -- force elements of a machine in a state: what they store and lose, and what they exert ----------
class BodyEnergies(NamedTuple):
    """Energies of all bodies, (..., bodies)."""

    kinetic: Floats
    potential: Floats


@of_position()
def stored_energy(system: System, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
    """Energy stored in springs, bushings and stops [J], shape (...). Laws given as functions count as none: their
    energy is not known. Cost: O(n + elements).

    >>> import bellcrank as bc
    >>> m = bc.load("pendulum")
    >>> _ = m.add_joint_spring("spring", "hinge", stiffness=3.0, rest=0.5)
    >>> round(float(bc.analyze.stored_energy(bc.compile(m), [1.5])), 12)
    1.5
    """
    return force_elements.stored_energy(system.plans, q, t=t)


@of_motion()
def dissipated_power(system: System, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
    """Power [W] that force elements take from the machine and do not store, shape (...): dampers, friction, drag.

    Laws given as functions count with all their power, since what they store is not known. Drag in wind can be
    negative: the wind does work. Cost: O(n + elements).

    >>> import bellcrank as bc
    >>> m = bc.load("pendulum")
    >>> _ = m.add_joint_spring("spring", "hinge", stiffness=3.0, damping=0.5)
    >>> float(bc.analyze.dissipated_power(bc.compile(m), [0.0], [2.0]))
    2.0
    """
    return force_elements.dissipated_power(system.plans, q, u, t=t)


@of_motion()
def actuator_forces(system: System, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, *, t: npt.ArrayLike = START
                    ) -> Floats:
    """The joint forces tau within the limits of actuators, shape (..., nu): what acts when tau is asked for. O(n).

    >>> import bellcrank as bc
    >>> bc.analyze.actuator_forces(bc.compile(bc.load("pendulum")), [0.0], [0.0], {"hinge": 3.0})
    array([3.])
    """
    return force_elements.actuator_forces(system.plans, q, u, tau, t=t)


@of_motion()
def element_wrenches(system: System, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
    """What elements between bodies (springs, bushings, drag), and forces on closing joints, exert on all bodies:
    (..., bodies, 6), [moment; force] in world axes about each body's origin. Of bodies that are welded together the
    first one feels what acts on any of them; `System.element_forces` has elements one by one. Cost: O(n + elements).

    >>> import bellcrank as bc
    >>> m = bc.load("pendulum")
    >>> _ = m.add_spring("rope", m.ground, m.bodies[0].name, (0, 0, 1), (0, 0, 0), stiffness=2.0, length=0.5)
    >>> bc.analyze.element_wrenches(bc.compile(m), [0.0], [0.0]).shape
    (1, 6)
    """
    tree = system.model.tree  # large machines have laws on joints and rates of states among their pairs
    between = tuple(pair for pair in tree.pairs if not isinstance(pair, SumForce) or not (
        pair.name in tree.named_forces or isinstance(pair.along, StateRate)))
    return system.model.of_described(force_elements.element_wrenches(
        system.plans, q, u, t=t, pairs=between if len(between) < len(tree.pairs) else None))


@of_motion()
def body_energies(system: System, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START) -> BodyEnergies:
    """Kinetic energy and potential energy of gravity [J] of every body, (..., bodies) in the order of `body_names`.
    Rotors (`add_armature`) belong to no body. Cost: O(n).

    >>> import bellcrank as bc
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> found = bc.analyze.body_energies(arm, [0.3, 0.1], [1.0, 2.0])
    >>> bool(abs(found.kinetic.sum() - arm.kinetic_energy([0.3, 0.1], [1.0, 2.0])) < 1e-12)
    True
    """
    if system.model.tree.flexible:
        raise NotYetError("body_energies does not cover bodies that deform; see kinetic_energy and potential_energy")
    kinetic, potential = [], []
    gravity = np.asarray(system.model.values_of(system.model.tree.gravity))
    for body in system.model.described.bodies:
        made = body.inertia
        numbers = np.asarray(system.model.values_of((made.mass, *made.com, *made.inertia)))
        mass, com, six = numbers[..., 0], numbers[..., 1:4], numbers[..., 4:]
        about = six[..., [0, 1, 2, 1, 3, 4, 2, 4, 5]].reshape(*six.shape[:-1], 3, 3)
        pose, motion = system.pose(q, body.name, t=t), system.velocity(q, u, body.name, t=t)
        arm = (pose.rotation @ com[..., None])[..., 0]
        spin, speed = motion[..., :3], motion[..., 3:] + np.cross(motion[..., :3], arm)
        own = (np.swapaxes(pose.rotation, -1, -2) @ spin[..., None])[..., 0]
        kinetic.append(0.5 * (mass * (speed**2).sum(-1) + (own * (about @ own[..., None])[..., 0]).sum(-1)))
        potential.append(np.broadcast_to(-mass * (gravity * (pose.position + arm)).sum(-1), kinetic[-1].shape))
    return BodyEnergies(np.stack(kinetic, axis=-1), np.stack(potential, axis=-1))


# -- contacts of a machine in a state ---------------------------------------------------------------
@of_motion()
def contacts(system: System, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START
             ) -> dict[str, ContactState]:
    """Every contact by name: which of its places are closed, how deep, where, how fast they slide, and the forces.
    Batches have their axes in front. Cost: O(n + places).

    >>> import bellcrank as bc
    >>> m = bc.Mechanism("weight")
    >>> ball = m.add_body("ball", bc.Inertia(1.0, (0, 0, 0), (0.1, 0.1, 0.1)))
    >>> slide = m.add_joint("slide", bc.Prismatic("z"), m.ground, ball)
    >>> shape = m.add_shape(ball, bc.Sphere(0.1), role="collision")
    >>> floor = m.add_contacts("all", bc.Plane(), stiffness=1e4)
    >>> found = bc.analyze.contacts(bc.compile(m), [0.099], [0.0])["ball sphere, ground plane"]
    >>> bool(found.closed[0]), round(float(found.normal_force[0]), 9)
    (True, 10.0)
    """
    return contact_states(system.plans, q, u, t=t)


# -- the loops of a machine in a state: their Jacobian, the joints that close them, and the forces they transmit ---
@of_motion()
def loop_acceleration_error(system: System, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                            t: npt.ArrayLike = START) -> Floats:
    """Second derivatives of `System.loop_error`, shape (..., constraints). Cost: O(n).

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    >>> udot = linkage.forward_dynamics(state)
    >>> bool(abs(bc.analyze.loop_acceleration_error(linkage, state, udot)).max() < 1e-10)
    True
    """
    return loop_errors.loop_acceleration_error(system.plans, q, u, udot, t=t)


@of_position()
def drawing_errors(system: System, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> dict[str, Floats]:
    """Errors [m, or cosines] of redundant constraints that are dropped since the drawing contradicts itself, by name,
    shape (...) each; empty where all constraints agree. Cost: O(n).

    Dimensions with few digits cause them: axes of a planar mechanism that are not quite parallel. The constraints kept
    are closed to rounding (`System.loop_error`); `drawing_tolerance` of `bellcrank.compile` limits what is dropped.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> bc.analyze.drawing_errors(linkage, linkage.assemble(q={"A": 0.5}))
    {}
    """
    plans = system.plans
    if not system.model.tree.looped or plans.drawing is None:
        return {}
    error = plans.drawn.error(q, t)
    return {plans.drawn.row_names[r]: error[..., r] for r in np.flatnonzero(~plans.drawing.used).tolist()}


@of_position()
def loop_jacobian(system: System, q: npt.ArrayLike, *, t: npt.ArrayLike = START) -> Floats:
    """d(loop_rate_error)/du for the free speeds, shape (..., constraints, nu). Cost: O(n + entries).

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    >>> bool(abs(bc.analyze.loop_jacobian(linkage, state) @ state.u).max() < 1e-12)
    True
    """
    return loop_errors.loop_jacobian(system.plans, q, t=t)


@of_position()
def loop_coordinates(system: System, q: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = START) -> Floats:
    """Coordinates of a joint, shape (..., nq of the joint). Of a joint that closes a loop they are measured between
    its two bodies, whatever q says of it: angles within half a turn. Cost: O(n).

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> bc.analyze.loop_coordinates(linkage, linkage.assemble(q={"A": 0.5}), linkage.loops[0]).shape
    (1,)
    """
    return loop_errors.loop_coordinates(system.plans, q, joint, t=t)


@of_motion()
def loop_speeds(system: System, q: npt.ArrayLike, u: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = START) -> Floats:
    """Speeds of a joint, shape (..., nu of the joint); of one that closes a loop measured between its two bodies.
    Cost: O(n).

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> bc.analyze.loop_speeds(linkage, linkage.assemble(q={"A": 0.5}, u={"A": 1.0}), "D").round(3)
    array([-0.035])
    """
    return loop_errors.loop_speeds(system.plans, q, u, joint, t=t)


@of_position()
def loop_drive(system: System, q: npt.ArrayLike, forces: Mapping[str, npt.ArrayLike], *, t: npt.ArrayLike = START
               ) -> Floats:
    """Forces at the joints that carry links, with the same power for every motion as forces
    {joint: (..., nu of the joint)} of joints that close loops. Shape (..., nu). Cost: O(n) for each joint.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state, joint = linkage.assemble(q={"A": 0.5}, u={"A": 1.0}), linkage.loops[0]
    >>> tau, speed = bc.analyze.loop_drive(linkage, state, {joint: 2.0}), bc.analyze.loop_speeds(linkage, state, joint)
    >>> bool(abs(tau @ state.u - 2.0 * speed[0]) < 1e-12)
    True
    """
    check_time(t)
    total = np.zeros(system.nu)
    rows = loop_errors.loop_rows(system.plans, q, t) if forces else total
    for joint, value in forces.items():
        loop_errors.closure_index(system.plans, joint)
        check_unmasked(f"force of {joint!r}", value)
        entries = system.model.configuration.speed_entries(joint)
        amount = flat(f"force of {joint!r}", np.atleast_1d(np.asarray(value, dtype=float)), len(entries),
                      "one for every speed of the joint")
        total = total + (rows[..., entries, :] * amount[..., None]).sum(axis=-2)
    return total


@of_motion()
def loop_loads(system: System, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, udot: npt.ArrayLike, *,
               wrenches: Wrenches = None, t: npt.ArrayLike = START) -> Floats:
    """Multipliers of all constraints, shape (..., constraints): J^T lambda = what the tree lacks. Where constraints
    are redundant they are the smallest of all possible (minimum norm). Cost: O(n + m), by compiled code.

    >>> import bellcrank as bc
    >>> import numpy as np
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
    >>> bc.analyze.loop_loads(linkage, state, np.zeros(4), linkage.forward_dynamics(state)).shape
    (5,)
    """
    return loads.loop_loads(system.plans, q, u, tau, udot, wrenches, t)
