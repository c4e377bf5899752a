"""Multipliers of the loops' constraints: what the closures must supply for a motion."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces
from bellcrank.errors import SingularError
from bellcrank.loops.closer import sparse_least
from bellcrank.loops.null_space import null_space
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_errors import loop_jacobian
from bellcrank.system.tree_dynamics import tree_forces
from bellcrank.system.whole_programs import run_whole

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["loop_loads"]

#: machines with more speeds than this are solved by sparse factors, state by state
_LARGE = 300


def loop_loads(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, udot: npt.ArrayLike,
               wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
    """Multipliers of all constraints, shape (..., constraints): J^T lambda = what the tree lacks. Where constraints
    are redundant they are the smallest of all possible (minimum norm)."""
    given = {"q": q, "u": u, "udot": udot, "tau": plans.configuration.forces(tau)}
    return run_whole(plans, "constraint_multipliers", given, wrenches, t, partial(_careful_loads, plans))


def _careful_loads(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                   ) -> Floats:
    """By singular values or sparse factors."""
    q = given["q"]
    needed = tree_forces(plans, q, given["u"], given["udot"], wrenches, t)
    lack = np.where(plans.model.prescribed_mask(), 0.0, needed - np.asarray(given["tau"], dtype=float))
    if plans.tree.nu > _LARGE:
        return _sparse_loads(plans, q, t, lack)
    jacobian = loop_jacobian(plans, q, t=t)
    pseudo, _, _ = null_space(jacobian)
    return np.asarray((np.swapaxes(pseudo, -1, -2) @ lack[..., None])[..., 0])


def _sparse_loads(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, lack: Floats) -> Floats:
    loops = plans.loops
    lead = lack.shape[:-1]
    where = np.broadcast_to(np.asarray(q, dtype=float), (*lead, plans.tree.nq))
    out = np.zeros((*lead, loops.m))
    every = np.arange(loops.m)
    times = np.broadcast_to(np.asarray(t, dtype=float), lead)
    for index in np.ndindex(*lead):
        entries = loops.linearized(where[index], times[index])[1]
        rest = lack[index].copy()
        for _ in range(4):
            out[index] += sparse_least(loops.all_vars, loops.all_rows, entries, plans.tree.nu, every, np.ones(loops.m),
                                       rest, 1e-10)
            rest = lack[index] - np.bincount(loops.all_vars, entries * out[index][loops.all_rows],
                                             minlength=plans.tree.nu)
        if np.abs(rest).max() > 1e-6 * max(1.0, float(np.abs(lack[index]).max())):
            raise SingularError(f"reactions of {plans.tree.name!r}: the loops cannot supply the forces needed")
    return out
