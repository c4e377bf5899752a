"""Forces that make a motion: of all joints of a tree, of the actuated joints of a closed machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, absent, by_name, check_time, flat
from bellcrank.errors import AssemblyError, ModelError, NotYetError, SingularError, StateError
from bellcrank.loops.closer import factors, sparse_least, times
from bellcrank.loops.null_space import null_space
from bellcrank.loops.tolerances import OPEN, RANK
from bellcrank.system.drive_programs import allowed_motions, drive_entries, drive_program
from bellcrank.system.force_elements import actuator_forces
from bellcrank.system.force_terms import TERMS, acting, in_terms
from bellcrank.system.forward_dynamics import forward_dynamics
from bellcrank.system.held_values import weighting
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_errors import (
    loop_acceleration_error,
    loop_error,
    loop_jacobian,
    loop_rate_error,
    loop_rows,
)
from bellcrank.system.loop_loads import loop_loads
from bellcrank.system.tree_dynamics import tree_forces
from bellcrank.system.whole_programs import run_whole, with_careful_states
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["check_motion", "consistent_acceleration", "drive_forces", "inverse_dynamics", "least_forces"]

#: machines with more speeds than this are solved by sparse factors, state by state
_LARGE = 300
#: and those with more degrees of freedom not by virtual motions
_MANY = 60
#: forces that are lacking by less than this part are rounding
_SUPPLIED = 1e-9


def inverse_dynamics(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                     wrenches: Wrenches = None, t: npt.ArrayLike = START, actuated: Sequence[str] | None = None,
                     weights: Mapping[str, float] | None = None, terms: tuple[str, ...] = TERMS) -> Floats:
    """Joint forces tau for accelerations udot."""
    check_time(t)
    if plans.tree.looped:
        return in_terms(plans, terms, lambda machine, felt: _looped_inverse(
            machine, q, u, udot, actuated, weights, felt, t), wrenches)
    forces = in_terms(plans, terms, lambda machine, felt: tree_forces(machine, q, u, udot, felt, t), wrenches)
    return forces if actuated is None else _actuated_tree(plans, forces, actuated)


def drive_forces(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                 wrenches: Wrenches = None, t: npt.ArrayLike = START) -> Floats:
    """All joint forces: tau where the motion is free, the enforcing force where it is prescribed."""
    udot = forward_dynamics(plans, q, u, tau, wrenches=wrenches, t=t)
    if plans.tree.looped:
        return _looped_drives(plans, q, u, tau, udot, wrenches, t)
    return tree_forces(plans, q, u, udot, wrenches, t)


def _actuated_tree(plans: LoopPlans, forces: Floats, actuated: Sequence[str]) -> Floats:
    """Forces of a tree, all of which must be those of actuated joints: nothing else can make the motion."""
    names = plans.configuration
    driven = np.array([v for name in actuated for v in names.speed_entries(name)], dtype=np.int64)
    others = np.setdiff1d(plans.tree.free_speeds(), driven)
    sizes = plans.tree.speed_sizes
    size = float(np.abs(forces * sizes).max(initial=0.0))
    for v in others.tolist():
        if np.abs(forces[..., v]).max(initial=0.0) * sizes[v] > 1e-9 * (plans.tree.effort + size):
            raise ModelError(f"inverse_dynamics: the motion needs a force at {names.speed_names[v]}, which is not "
                             f"among the actuated joints ({', '.join(actuated) or 'none'})")
    forces[..., others] = 0.0
    return forces


def _looped_inverse(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike,
                    actuated: Sequence[str] | None, weights: Mapping[str, float] | None, wrenches: Wrenches,
                    t: npt.ArrayLike) -> Floats:
    """Forces of the actuated joints, zero elsewhere: by the program for these drives; the careful way where there is
    none, and for states in which its pivots vanish or whose motion opens the loops."""
    drives = drive_entries(plans, q, t, actuated)
    program = drive_program(plans, q, t, drives)
    scale = 1.0 / np.sqrt(weighting(plans, weights))[list(drives)]
    if program is None:
        quick = _by_groups(plans, q, u, udot, drives, wrenches, t)
        return _careful_inverse(plans, q, u, udot, drives, scale, wrenches, t) if quick is None else quick
    if program.shared and weights is not None:
        return _careful_inverse(plans, q, u, udot, drives, scale, wrenches, t)
    given = {"q": q, "u": u, "udot": udot}

    def careful(given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        return _careful_inverse(plans, given["q"], given["u"], given["udot"], drives, scale, wrenches, t)

    found = plans.kernels.evaluate(program.name, given, wrenches, t, program.run)
    return with_careful_states(plans, found, given, wrenches, t, careful)


def _by_groups(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, drives: tuple[int, ...],
               wrenches: Wrenches, t: npt.ArrayLike) -> Floats | None:
    """Forces of the independent joints of large machines, in two parts: what the tree needs, and what that amounts to
    group by group. None where it takes other drives or another plan."""
    if plans.model.dense_loops or plans.model.prescribed_mask().any():
        return None
    try:
        plan = plans.first(q, t)
    except AssemblyError:  # open, and closed nowhere near
        return None
    if drives != plan.independent or not drives:
        return None
    kernels, run = plans.kernels, plans.kernels.planned(plan)
    needed: Floats | None = None
    if wrenches is None and not kernels.springs_outside and not plans.tree.joint_forces:
        needed = kernels.doors["inverse_dynamics"].one(q, u, udot)
    if needed is not None:
        doors = kernels.kept(("drives group by group", plan.key),
                             lambda: kernels.door_pair("independent_forces", DoorForm(), run))
        one: Floats | None = doors.one(q, u, udot, needed)
        if one is not None:
            return one
    given = {"q": q, "u": u, "udot": udot, "tau": tree_forces(plans, q, u, udot, wrenches, t)}
    found = kernels.evaluate("independent_forces", given, None, t, run)
    return found.result if found.finite else None


def _careful_inverse(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike,
                     drives: tuple[int, ...], scale: Floats, wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
    """B tau = what the motion needs, modulo the loops, by singular values or sparse factors; `scale`: of the forces."""
    needed = tree_forces(plans, q, u, udot, wrenches, t)
    check_motion(plans, q, u, udot, t)
    out = np.zeros(needed.shape)
    free = np.array(plans.tree.free_speeds())
    if plans.tree.nu > _LARGE and not plans.tree.loop_speeds()[list(drives)].any():
        _sparse_drives(plans, q, t, needed, list(drives), scale, out)
    else:
        _dense_drives(plans, q, t, needed, list(drives), scale, free, out)
    _enforce(plans, q, u, udot, needed, out, wrenches, t)
    out[np.broadcast_to(absent(q), out.shape[:-1])] = np.nan
    return out


def _virtual_motions(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike) -> Floats | None:
    """Speeds that the loops allow, (..., dof, nu): each independent one in turn 1, the others 0. None if it takes
    another plan, or a method without plans."""
    if plans.model.dense_loops or plans.model.batched:
        return None
    try:
        plan = plans.first(q, t)
    except AssemblyError:  # open, and closed nowhere near
        return None
    if len(plan.independent) > _MANY:
        return None
    if not len(plan.independent):
        return np.zeros((*np.shape(q)[:-1], 0, plans.tree.nu))
    quick = allowed_motions(plans, q, np.zeros(plans.tree.nu), t)
    if quick is not None:
        return np.swapaxes(quick[0], -1, -2)
    units = np.zeros((len(plan.independent) + 1, plans.tree.nu))  # the last: what prescribed motions make of it
    units[np.arange(len(plan.independent)), list(plan.independent)] = 1.0
    place, when = np.asarray(q, dtype=float)[..., None, :], np.asarray(t, dtype=float)[..., None]
    try:
        change = units + plans.kernels.run("speed_changes", {"q": place, "u": units}, None, when,
                                           plans.kernels.planned(plan))
    except SingularError:
        return None
    return np.asarray(change[..., :-1, :] - change[..., -1:, :])


def _looped_drives(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None, udot: npt.ArrayLike,
                   wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
    """All joint forces: tau where the motion is free, the enforcing force where it is prescribed."""
    force = actuator_forces(plans, q, u, np.zeros(plans.tree.nu) if tau is None else tau, t=t)
    if not plans.model.prescribed_mask().any():
        out = np.array(np.broadcast_to(force, np.broadcast_shapes(force.shape, np.shape(udot))))
    else:
        plans, given = acting(plans, force), {"q": q, "u": u, "udot": udot, "tau": force}
        out = run_whole(plans, "enforced_forces", given, wrenches, t, partial(_careful_drives, plans))
        out = np.where(plans.tree.loop_speeds(), force, out)
    lost = absent(q)
    return np.where(lost[..., None], np.nan, out) if lost.any() else out


def _careful_drives(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                    ) -> Floats:
    """The same by the multipliers of all constraints."""
    q, u, udot = given["q"], given["u"], given["udot"]
    needed = tree_forces(plans, q, u, udot, wrenches, t, given["tau"])
    out = np.array(np.broadcast_to(given["tau"], needed.shape))
    _enforce(plans, q, u, udot, needed, out, wrenches, t)
    return out


def _enforce(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, needed: Floats, out: Floats,
             wrenches: Wrenches, t: npt.ArrayLike) -> None:
    """Put what enforces prescribed motions into joint forces: what the tree needs there, less what the loops supply."""
    driven = plans.model.prescribed_mask()
    if driven.any():
        machine = acting(plans, out)
        if machine is not plans:  # the tree needs to know of forces along loop joints, too
            needed = tree_forces(machine, q, u, udot, wrenches, t, out)
        loads = loop_loads(machine, q, u, out, udot, wrenches, t)
        out[..., driven] = (needed - plans.loops.driven_loads(q, loads, t))[..., driven]


def _dense_drives(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, needed: Floats, drives: list[int],
                  scale: Floats, free: npt.NDArray[np.int64], out: Floats) -> None:
    jacobian = loop_jacobian(plans, q, t=t)[..., free]
    _, basis, kept = null_space(jacobian, plans.loops.row_sizes, plans.tree.speed_sizes[free])
    rows = np.swapaxes(basis, -1, -2)  # N^T, zero rows where it is padded
    every = np.zeros((*rows.shape[:-1], plans.tree.nu))
    every[..., free] = rows
    if plans.tree.loop_speeds()[drives].any():
        every = every + every @ np.swapaxes(loop_rows(plans, q, t), -1, -2)
    solved, rank, left = least_forces(every[..., drives] * scale, times(rows, needed[..., free]), plans.tree.effort)
    if left.any():
        raise _underactuated(plans, drives, int(np.min(rank)), int(np.max((~kept).sum(axis=-1))))
    out[..., drives] = solved * scale


def least_forces(columns: Floats, wanted: Floats, effort: float) -> tuple[Floats, npt.NDArray[np.int64], Floats]:
    """The smallest forces x (..., k) with columns x = wanted, (..., d, k) and (..., d) [J]; how many of these they
    control; and what they cannot supply (..., d), zero where that is rounding."""
    u, s, vt, _ = factors(columns)
    good = s > RANK * np.maximum(s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
    inverse = np.where(good, 1.0 / np.where(good, s, 1.0), 0.0)
    forces = times(np.swapaxes(vt, -1, -2), inverse * times(np.swapaxes(u, -1, -2), wanted))
    left = wanted - times(columns, forces)
    size = effort + np.abs(wanted).max(axis=-1, keepdims=True, initial=0.0)
    return forces, good.sum(axis=-1), np.where(np.abs(left) > _SUPPLIED * size, left, 0.0)


def _sparse_drives(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, needed: Floats, drives: list[int],
                   scale: Floats, out: Floats) -> None:
    """J^T lambda + B tau = needed, the smallest solution, by sparse factors."""
    loops, sizes = plans.loops, plans.tree.speed_sizes
    lead = needed.shape[:-1]
    where = np.broadcast_to(np.asarray(q, dtype=float), (*lead, plans.tree.nq))
    when = np.broadcast_to(np.asarray(t, dtype=float), lead)
    for index in np.ndindex(*lead):
        entries = loops.linearized(where[index], when[index])[1] / loops.row_sizes[loops.all_rows]
        rows = np.concatenate([loops.all_vars, drives])
        columns = np.concatenate([loops.all_rows, loops.m + np.arange(len(drives))])
        values = np.concatenate([entries, scale]) * sizes[rows]
        every = np.arange(loops.m + len(drives))
        x = np.zeros(len(every))
        wanted = needed[index] * sizes  # all of them work on ordinary changes [J]
        rest = wanted
        for _ in range(4):  # each pass removes what the damping left over
            step = sparse_least(rows, columns, values, plans.tree.nu, every, np.ones(len(every)), rest, 1e-10)
            x += step
            rest = wanted - np.bincount(rows, values * x[columns], minlength=plans.tree.nu)
        if np.abs(rest).max() > 1e-7 * max(plans.tree.effort, float(np.abs(wanted).max())):
            raise _underactuated(plans, drives, len(drives),
                                 len(plans.tree.free_speeds()) - len(plans.general().kept))
        out[(*index, drives)] = x[loops.m:] * scale


def _underactuated(plans: LoopPlans, drives: list[int], rank: int, freedom: int) -> ModelError:
    names = ", ".join(plans.configuration.speed_names[v] for v in drives[:8]) or "none"
    return ModelError(f"inverse_dynamics of {plans.tree.name!r}: the machine has {freedom} degrees of freedom, but "
                      f"the actuated joints ({names}) control only {rank}, and the motion needs other forces as well; "
                      "name more of them in actuated=, also the joint of a floating base, or the contacts in "
                      "bellcrank.analyze.inverse_dynamics_with_contacts")


def check_motion(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, t: npt.ArrayLike) -> None:
    """A motion that opens the loops has no drives."""
    fast, fierce = (float(np.fmax.reduce(np.abs(np.asarray(x) / plans.tree.speed_sizes), axis=None, initial=0.0))
                    for x in (u, udot))
    size = 1.0 + fierce + fast**2
    for what, error, scale in (
            ("positions", loop_error(plans, q, t=t), 1.0), ("speeds", loop_rate_error(plans, q, u, t=t), size),
            ("accelerations", loop_acceleration_error(plans, q, u, udot, t=t), size)):
        share = np.nan_to_num(np.abs(plans.loops.shares(error)), nan=0.0)  # of states that are absent
        if float(share.max(initial=0.0)) > OPEN * scale:
            worst = np.unravel_index(int(np.argmax(share)), share.shape)
            raise StateError(f"inverse_dynamics: these {what} open the loop closed by "
                             f"{plans.loops.row_names[int(worst[-1])]} (by {abs(float(error[worst])):.3g}); use "
                             "assemble() and consistent_acceleration()")


def consistent_acceleration(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike,
                            udot: Mapping[str, Any] | npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
    """Accelerations that keep the loops closed. See `System.consistent_acceleration`."""
    place = flat("q", q, plans.tree.nq, "the coordinates")
    speeds = flat("u", u, plans.tree.nu, "one for every speed")
    driven, entries = plans.model.prescribed_mask(), plans.configuration.speed_entries
    held, wanted = driven.copy(), plans.kernels.run("prescribed", {"q": place, "u": speeds}, None, t)
    if isinstance(udot, Mapping):
        given = by_name("udot", udot, entries, plans.tree.nu)
        for key in udot:
            held[entries(key)] = True
        wanted = np.where(held & ~driven, given, wanted)
    else:
        wanted = np.where(driven, wanted, flat("udot", udot, plans.tree.nu, "one for every speed"))
    if not plans.tree.looped:
        return wanted
    motions = _virtual_motions(plans, place, t)
    if motions is not None:
        return _quick_acceleration(plans, place, speeds, wanted, held & ~driven, motions, t)
    if plans.tree.loop_speeds()[held].any():
        raise NotYetError(f"consistent_acceleration: {plans.tree.name!r} is too large to give accelerations of joints "
                          "at which loops are cut; give those of others")
    found = _careful_acceleration(plans, place, speeds, wanted, np.flatnonzero(~(held | plans.tree.loop_speeds())), t)
    return plans.kernels.run("joint_accelerations", {"q": place, "u": speeds, "udot": found}, None, t)


def _careful_acceleration(plans: LoopPlans, q: Floats, u: Floats, wanted: Floats, free: npt.NDArray[np.int64],
                          t: npt.ArrayLike) -> Floats:
    """By singular values of the loop Jacobian."""
    sizes = plans.tree.speed_sizes
    solved = factors(loop_jacobian(plans, q, t=t)[..., free] * sizes[free] / plans.loops.row_sizes[:, None])
    for _ in range(2):  # the second removes rounding
        error = loop_acceleration_error(plans, q, u, wanted, t=t)
        wanted = np.array(np.broadcast_to(wanted, (*error.shape[:-1], plans.tree.nu)))
        wanted[..., free] -= solved.solve(plans.loops.shares(error), 0.0, RANK)[0] * sizes[free]
    left = plans.loops.shares(loop_acceleration_error(plans, q, u, wanted, t=t))
    _refuse_contradiction(np.abs(left), wanted / sizes)
    return wanted


def _quick_acceleration(plans: LoopPlans, q: Floats, u: Floats, wanted: Floats, held: npt.NDArray[np.bool_],
                        motions: Floats, t: npt.ArrayLike) -> Floats:
    """A possible acceleration plus the combination of virtual motions that brings it to what is held, and nearest
    to what is wanted otherwise."""
    some, sizes = forward_dynamics(plans, q, u, t=t), plans.tree.speed_sizes
    own = sizes[list(plans.first(q, t).independent)]
    basis, lack = np.swapaxes(motions, -1, -2) * own / sizes[:, None], (wanted - some) / sizes
    free = ~(held | plans.model.bound_mask())
    pinned = factors(np.broadcast_to(basis[..., held, :], (*lack.shape[:-1], int(held.sum()), motions.shape[-2])))
    weights = pinned.solve(lack[..., held], 0.0, RANK)[0]
    _refuse_contradiction(np.abs(times(basis[..., held, :], weights) - lack[..., held]), wanted / sizes)
    kept = pinned.s > RANK * np.maximum(pinned.s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
    rows = pinned.vt * kept[..., None]
    one, ways = np.linalg.eigh(np.eye(motions.shape[-2]) - np.swapaxes(rows, -1, -2) @ rows)
    loose = ways * (one > 0.5)[..., None, :]  # combinations that leave what is held, and zeros, not their rounding
    rest = lack[..., free] - times(basis[..., free, :], weights)
    more = factors(basis[..., free, :] @ loose).solve(rest, 0.0, RANK)[0]
    return np.asarray(some + times(basis, weights + times(loose, more)) * sizes)


def _refuse_contradiction(left: Floats, wanted: Floats) -> None:
    """Refuse accelerations by what is left of them; both are shares of the machine's size."""
    share = left.max(axis=-1, initial=0.0) / (1.0 + np.abs(wanted).max(axis=-1, initial=0.0))
    if (share > 1e-7).any():
        raise StateError("consistent_acceleration: the accelerations held contradict the loops (by "
                         f"{float(share.max()):.3g} of their size)")
