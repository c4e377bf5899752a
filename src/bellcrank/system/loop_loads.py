"""Multipliers of the loops' constraints: what the closures must supply for a motion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces
from bellcrank.errors import AssemblyError, SingularError
from bellcrank.loops.closer import sparse_least
from bellcrank.loops.null_space import null_space
from bellcrank.system.evaluator import Evaluator
from bellcrank.system.force_terms import acting
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_errors import loop_jacobian
from bellcrank.system.tree_dynamics import tree_forces
from bellcrank.system.whole_programs import run_whole

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["group_program", "lacking_forces", "loop_loads"]

#: machines with more speeds than this are solved by sparse factors, state by state
_LARGE = 300


def loop_loads(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, udot: npt.ArrayLike,
               wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
    """Multipliers of all constraints, shape (..., constraints): J^T lambda = what the tree lacks. Where constraints
    are redundant they are the smallest of all possible (minimum norm)."""
    rows = plans.configuration.forces(tau)
    plans, given = acting(plans, rows), {"q": q, "u": u, "udot": udot, "tau": rows}
    return run_whole(plans, "constraint_multipliers", given, wrenches, t, partial(_careful_loads, plans))


def group_program(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, name: str = "group_multipliers"
                  ) -> Evaluator | None:
    """What runs functions, such as this one, that take constraints group by group, for any number of links; None where
    the plan to try first does not, since a closure belongs to several groups or a redundant coupler to none."""
    if plans.model.dense_loops or not plans.kernels.covers(name) or plans.drawing is not None:
        return None
    try:
        plan = plans.first(q, t)
    except AssemblyError:  # open, and closed nowhere near
        return None
    closures = sorted(k for group in plan.groups for k in group.closures)
    couplers = [r for r in plan.redundant if r >= plans.loops.m_closures]
    whole = closures == list(range(len(plans.tree.closures))) and not couplers
    return plans.kernels.planned(plan) if whole else None


def lacking_forces(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                   ) -> Floats:
    """What the constraints must supply at the free speeds, zero at prescribed ones and at loop joints, (..., nu)."""
    needed = tree_forces(plans, given["q"], given["u"], given["udot"], wrenches, t, given["tau"])
    return np.where(plans.model.bound_mask(), 0.0, needed - np.asarray(given["tau"], dtype=float))


def _careful_loads(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                   ) -> Floats:
    """Of large machines group by group; by singular values or sparse factors where that fails, and of others."""
    lack, q = lacking_forces(plans, given, wrenches, t), given["q"]
    run = None if plans.kernels.direct else group_program(plans, q, t)
    if run is not None:
        found = plans.kernels.evaluate("group_multipliers", {"q": q, "tau": lack}, None, t, run)
        if found.finite:
            return found.result
    return _least_loads(plans, q, t, lack)


def _least_loads(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, lack: Floats) -> Floats:
    """By singular values or sparse factors."""
    if plans.tree.nu > _LARGE:
        return _sparse_loads(plans, q, t, lack)
    jacobian = loop_jacobian(plans, q, t=t)
    pseudo, _, _ = null_space(jacobian, plans.loops.row_sizes, plans.tree.speed_sizes)
    return np.asarray((np.swapaxes(pseudo, -1, -2) @ lack[..., None])[..., 0])


def _sparse_loads(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, lack: Floats) -> Floats:
    loops = plans.loops
    lead = lack.shape[:-1]
    where = np.broadcast_to(np.asarray(q, dtype=float), (*lead, plans.tree.nq))
    out = np.zeros((*lead, loops.m))
    every, sizes = np.arange(loops.m), plans.tree.speed_sizes
    times = np.broadcast_to(np.asarray(t, dtype=float), lead)
    for index in np.ndindex(*lead):
        entries = loops.linearized(where[index], times[index])[1] * sizes[loops.all_vars] / loops.row_sizes[
            loops.all_rows]
        wanted, load = lack[index] * sizes, np.zeros(loops.m)  # all of them work on ordinary changes [J]
        rest = wanted
        for _ in range(4):
            load += sparse_least(loops.all_vars, loops.all_rows, entries, plans.tree.nu, every, np.ones(loops.m), rest,
                                 1e-10)
            rest = wanted - np.bincount(loops.all_vars, entries * load[loops.all_rows], minlength=plans.tree.nu)
        out[index] = load / loops.row_sizes
        if np.abs(rest).max() > 1e-6 * max(plans.tree.effort, float(np.abs(wanted).max())):
            raise SingularError(f"reactions of {plans.tree.name!r}: the loops cannot supply the forces needed")
    return out
