"""The loops of a machine in a state: their Jacobian, the joints that close them, and the forces they transmit."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, check_time, check_unmasked, flat
from bellcrank.compiled.system import System
from bellcrank.system import loop_errors
from bellcrank.system import loop_loads as loads
from bellcrank.system.kernels import Wrenches
from bellcrank.system.state_methods import of_motion, of_position

__all__ = ["drawing_errors", "loop_acceleration_error", "loop_coordinates", "loop_drive", "loop_jacobian", "loop_loads",
           "loop_speeds"]


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
