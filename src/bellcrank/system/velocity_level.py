"""Loops closed at the velocity level: speeds that depend on others follow from them, and so do accelerations.

The state of such a machine is (q, independent u). Which speeds are independent is said by a plan; each function takes
one and returns the one that served the last states, which is another where the pivots of the first vanish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, check_time
from bellcrank.loops.plan import LoopPlan
from bellcrank.system.forward_dynamics import forward_dynamics, run_by_plan
from bellcrank.system.kernels import Wrenches

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["dependent_speeds", "independent_dynamics"]


def dependent_speeds(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = START,
                     plan: LoopPlan | None = None) -> tuple[Floats, LoopPlan]:
    """All speeds (..., nu) of closed positions q from the independent ones (`plan.independent`) of u, which alone are
    read; the loops' rates vanish. Cost: O(n + m)."""
    check_time(t)
    plans.need_loops("dependent_speeds")
    return run_by_plan(plans, "dependent_speeds", {"q": q, "u": u}, None, t, plan or plans.first(q, t))


def independent_dynamics(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                         wrenches: Wrenches = None, t: npt.ArrayLike = START, plan: LoopPlan | None = None
                         ) -> tuple[Floats, Floats, LoopPlan]:
    """All speeds from the independent ones of u, and the accelerations of all: qdot and udot of the state (q,
    independent u). Cost: that of `dependent_speeds` and of forward dynamics."""
    speeds, plan = dependent_speeds(plans, q, u, t=t, plan=plan)
    return speeds, forward_dynamics(plans, q, speeds, tau, wrenches=wrenches, t=t), plan
