"""Inverse dynamics of machines that touch their surroundings: forces of motors and at contact points, for a motion.

With N the motions that the loops leave and J_i the Jacobians of the contact points in the independent speeds,

    N^T B tau + sum J_i^T f_i = M vdot + h                                          (1)

has the forces tau of the motors and f_i of the contacts as unknowns; of many solutions the smallest is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, flat, wrench_array
from bellcrank.compiled.system import System
from bellcrank.errors import ModelError
from bellcrank.loops.closer import times
from bellcrank.system.body_places import body_and_frame
from bellcrank.system.drive_programs import drive_entries
from bellcrank.system.held_values import weighting
from bellcrank.system.inverse_dynamics import check_motion, least_forces
from bellcrank.system.kernels import Wrenches
from bellcrank.system.reduced import ReducedModel
from bellcrank.system.state_methods import of_motion

__all__ = ["ContactForces", "inverse_dynamics_with_contacts"]

_NAME = "inverse_dynamics_with_contacts"


class ContactForces(NamedTuple):
    """Forces that make a motion: ``forward_dynamics(state, tau, wrenches=wrenches)`` gives it back."""

    tau: Floats  #: joint forces (..., nu), zero where nothing acts
    contacts: dict[str, Floats]  #: the force on the machine at every contact [N], world axes, (..., 3)
    wrenches: Floats  #: what contacts, and the wrenches that were given, exert on all bodies, (..., bodies, 6)


class _Contact(NamedTuple):
    """A point of a body or frame, and the directions in which a force acts there, (k, 3) or (..., k, 3)."""

    place: str
    point: Floats
    directions: Floats

    def columns(self, model: ReducedModel) -> Floats:
        """J^T of unit forces, (..., d, k)."""
        return np.swapaxes(self.directions @ model.jacobian(self.place, self.point)[..., 3:, :], -1, -2)


@of_motion()
def inverse_dynamics_with_contacts(
        system: System, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
        contacts: Sequence[str] | Mapping[str, Any], actuated: Sequence[str] | None = None,
        weights: Mapping[str, float] | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START
        ) -> ContactForces:
    """Forces of the `actuated` joints (those of `compile` unless given) and at contact points that together make the
    motion udot: of legged robots on the ground and hands on objects, with loops or without.

    `contacts` are frames or bodies, by their names, at whose origins forces act, or {name: (body, point)} with the
    point in coordinates of the body or frame; (body, point, normal) for a force along a normal [world axes] alone.
    Contacts may pull and slide: look at the forces. A floating base that is held by an unknown wrench needs no
    contacts: take `System.inverse_dynamics` with the joint of the base among the actuated ones.

    More forces than degrees of freedom: the smallest, by the sum of w tau^2 and w (f L)^2 with a length L typical of
    the mechanism, where w is 1 or what `weights` {joint or contact: w} says. Too few for the motion: an error.

    >>> import numpy as np
    >>> import bellcrank as bc
    >>> m = bc.load("linkage_quadruped")
    >>> legs = ("FL", "FR", "HL", "HR")
    >>> motors = [f"{leg}_{motor}" for leg in legs for motor in ("abduction", "hip", "crank")]
    >>> robot = bc.compile(m, actuated=motors)
    >>> state, still = robot.assemble(), np.zeros(robot.nu)
    >>> feet = [f"{leg}_foot" for leg in legs]
    >>> found = bc.analyze.inverse_dynamics_with_contacts(robot, state, still, contacts=feet)
    >>> weight = 9.81 * sum(body.inertia.mass for body in m.bodies)
    >>> bool(abs(sum(force[2] for force in found.contacts.values()) - weight) < 1e-9)
    True
    >>> bool(abs(robot.forward_dynamics(state, found.tau, wrenches=found.wrenches)).max() < 1e-9)
    True
    """
    names = system.model.options.actuated if actuated is None else tuple(actuated)
    model, points = system.reduced(q, u, wrenches=wrenches, t=t), _contacts(system, contacts)
    if system.model.tree.looped:
        check_motion(system.plans, q, u, udot, t)
    drives = list(drive_entries(system.plans, q, t, names)) if names else []
    every = [np.swapaxes(model.motions[..., drives, :], -1, -2), *(point.columns(model) for point in points.values())]
    lead = np.broadcast_shapes(*(some.shape[:-2] for some in every))
    matrix = np.concatenate([np.broadcast_to(some, (*lead, *some.shape[-2:])) for some in every], axis=-1)
    rates = flat("udot", udot, system.nu, "one for every speed")[..., list(model.entries)]
    wanted, scale = times(model.mass_matrix, rates) + model.bias, _scale(system, drives, points, weights)
    sizes, effort = system.model.tree.speed_sizes[list(model.entries)], system.model.tree.effort
    forces, rank, left = least_forces(matrix * scale * sizes[:, None], wanted * sizes, effort)
    if left.any():
        raise _insufficient(system, model, left / sizes, int(np.min(rank)), (*names, *points))
    return _result(system, (q, u, t), points, drives, forces * scale, wrenches)


def _contacts(system: System, contacts: Sequence[str] | Mapping[str, Any]) -> dict[str, _Contact]:
    """Contacts by name."""
    given = contacts if isinstance(contacts, Mapping) else {name: (name,) for name in (
        (contacts,) if isinstance(contacts, str) else contacts)}
    out = {}
    for name, place in given.items():
        body, *rest = (place,) if isinstance(place, str) else place
        if len(rest) > 2 or body_and_frame(system.model, body)[0] == 0:
            raise ModelError(f"{_NAME}: contact {name!r} is a body or frame that moves, (body, point) or (body, point, "
                             f"normal), got {place!r}")
        point = flat(f"{_NAME}: the point of contact {name!r}", rest[0] if rest else np.zeros(3), 3, "x, y, z")
        directions = np.eye(3)
        if len(rest) == 2:
            normal = flat(f"{_NAME}: the normal of contact {name!r}", rest[1], 3, "x, y, z in the world")
            length = np.linalg.norm(normal, axis=-1, keepdims=True)
            if not (np.isfinite(length) & (length > 0.0)).all():
                raise ModelError(f"{_NAME}: the normal of contact {name!r} has no direction")
            directions = (normal / length)[..., None, :]
        out[name] = _Contact(body, point, directions)
    return out


def _scale(system: System, drives: Sequence[int], points: Mapping[str, _Contact], weights: Mapping[str, float] | None
           ) -> Floats:
    """Forces that count alike, motors first."""
    given, length = dict(weights or {}), system.model.tree.length
    own = {name: given.pop(name) for name in points if name in given}
    for name, weight in own.items():
        if not 0.0 < weight < np.inf:
            raise ModelError(f"{_NAME}: weights: {name!r} needs a positive number, got {weight!r}")
    every = [weighting(system.plans, given)[list(drives)], *(
        np.full(point.directions.shape[-2], own.get(name, 1.0) * length**2) for name, point in points.items())]
    return np.asarray(1.0 / np.sqrt(np.concatenate(every)))


def _insufficient(system: System, model: ReducedModel, left: Floats, rank: int, names: Sequence[str]) -> ModelError:
    worst = np.unravel_index(int(np.argmax(np.abs(left))), left.shape)
    where = f" at batch index {tuple(int(i) for i in worst[:-1])}" if len(worst) > 1 else ""
    return ModelError(f"{_NAME} of {system.model.name!r}{where}: the machine has {len(model.entries)} degrees of "
                      f"freedom, of which {', '.join(names) or 'no joint and no contact'} control {rank}, and the "
                      f"motion needs {float(left[worst]):.3g} more at {model.speeds[int(worst[-1])]}; name more "
                      "contacts or actuated joints, or find a motion that the others allow")


def _result(system: System, state: tuple[Any, Any, Any], points: Mapping[str, _Contact], drives: Sequence[int],
            forces: Floats, wrenches: Wrenches) -> ContactForces:
    """The forces by name, and as wrenches on bodies."""
    q, u, t = state
    lead, bodies = forces.shape[:-1], system.body_names
    tau, acting = np.zeros((*lead, system.nu)), np.zeros((*lead, len(bodies), 6))
    tau[..., drives] = forces[..., :len(drives)]
    begin, by_name = len(drives), {}
    for name, point in points.items():
        amounts = forces[..., begin:begin + point.directions.shape[-2]]
        begin += point.directions.shape[-2]
        force = by_name[name] = times(np.swapaxes(point.directions, -1, -2), amounts)
        pose, index = system.pose(q, point.place, t=t), body_and_frame(system.model, point.place)[0] - 1
        arm = pose.position + times(pose.rotation, point.point) - system.pose(q, bodies[index], t=t).position
        acting[..., index, :] += np.concatenate([np.cross(arm, force), force], axis=-1)
    if wrenches is not None:
        acting = acting + wrench_array(wrenches, bodies)
    if system.model.prescribed_mask().any():
        tau = system.drive_forces(q, u, tau, wrenches=acting, t=t)
    return ContactForces(tau, by_name, acting)
