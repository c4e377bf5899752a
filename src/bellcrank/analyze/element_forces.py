"""Force elements of a machine in a state: what they store and lose, and what they exert."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces
from bellcrank.compiled.system import System
from bellcrank.errors import NotYetError
from bellcrank.mechanism.parts import StateRate
from bellcrank.system import force_elements
from bellcrank.system.contact_states import ContactState, contact_states
from bellcrank.system.state_methods import of_motion, of_position
from bellcrank.topology.pairs import SumForce

__all__ = ["BodyEnergies", "actuator_forces", "body_energies", "contacts", "dissipated_power", "element_wrenches",
           "stored_energy"]


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
