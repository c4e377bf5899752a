"""Forward dynamics: trees by one kernel, closed machines by a plan of elimination, and what happens when one fails."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, by_name, check_time, flat, leading
from bellcrank.errors import AssemblyError, SingularError, StateError
from bellcrank.loops.null_space import null_space, solve_kkt
from bellcrank.loops.plan import LoopPlan
from bellcrank.system.element_trouble import explain_elements
from bellcrank.system.evaluator import Evaluator, warn_of_interpretation
from bellcrank.system.force_elements import actuator_forces
from bellcrank.system.force_terms import acting
from bellcrank.system.kernels import NO_DOORS, DoorPair, Evaluation, Wrenches
from bellcrank.system.tree_dynamics import mass_matrix, run_forced, tree_forces, with_elements
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["dense_dynamics", "evaluator_of", "forward_doors", "forward_dynamics", "hamilton", "interpreted",
           "run_by_plan", "warn_if_interpreted"]

#: a constraint with this part of its size left is a reason for results that are not finite
_NEAR = 1e-2


def forward_doors(plans: LoopPlans) -> DoorPair:
    """Forward dynamics at the least cost, (q, u, tau), where that is one kernel: with loops, by the first plan."""
    if plans.model.dense_loops or plans.kernels.springs_outside:
        return NO_DOORS
    form = DoorForm(defaults=(np.zeros(plans.tree.nu),))
    if not plans.tree.looped:
        return plans.kernels.door_pair("forward_dynamics", form)

    def instead(q: Floats, u: Floats, tau: Floats) -> Evaluator | None:
        """By a plan for a state where the first has no result."""
        try:
            return plans.kernels.planned(plans.at(q, START))
        except SingularError:
            return None

    try:
        return plans.kernels.door_pair("forward_dynamics", form, plans.kernels.planned(plans.reference().plan), instead)
    except AssemblyError:  # plans are made where the states are
        return NO_DOORS


def forward_dynamics(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
                     wrenches: Wrenches = None, t: npt.ArrayLike = START,
                     loop_tau: Mapping[str, npt.ArrayLike] | None = None) -> Floats:
    """Accelerations udot of the joints."""
    check_time(t)
    if loop_tau is not None:
        own = by_name("loop_tau", loop_tau, plans.configuration.speed_entries, plans.tree.nu)
        if tau is not None:
            given_tau = flat("tau", plans.configuration.forces(tau), plans.tree.nu, "one for every speed")
            leading([own, given_tau])
            own = own + given_tau
        tau = own
    force = np.zeros(plans.tree.nu) if tau is None else plans.configuration.forces(tau)
    given = {"q": q, "u": u, "tau": force}
    if not plans.tree.looped:
        return run_forced(plans, "forward_dynamics", given, wrenches, t)
    if wrenches is None:  # without a result where forces act along loop joints (`lowering.loop_joints`)
        out: Floats | None = plans.kernels.kept("forward doors", lambda: forward_doors(plans)).one(q, u, force)
        if out is not None:
            return out
    machine = acting(plans, force)
    if machine is not plans:
        return forward_dynamics(machine, q, u, force, wrenches=wrenches, t=t)
    return _run_looped(plans, given, wrenches, t)


def hamilton(plans: LoopPlans, q: npt.ArrayLike, p: npt.ArrayLike, tau: Forces | None = None, *,
             wrenches: Wrenches = None, t: npt.ArrayLike = START) -> tuple[Floats, Floats]:
    """Hamilton's equations: speeds u and rates dp/dt of the state (q, p)."""
    check_time(t)
    nu = plans.tree.nu
    force = np.zeros(nu) if tau is None else plans.configuration.forces(tau)
    plans, given = acting(plans, force), {"q": q, "p": p, "tau": force}
    pairs = _run_looped(plans, given, wrenches, t, "constrained_hamilton") if plans.tree.looped else \
        run_forced(plans, "hamilton", given, wrenches, t)
    pairs = pairs.reshape(*pairs.shape[:-1], nu, 2)
    return pairs[..., 0], pairs[..., 1]


def interpreted(plans: LoopPlans) -> str:
    """What of the machine is not compiled although that was asked for, or nothing."""
    if plans.model.dense_loops:
        return "" if plans.kernels.backend == "numpy" else "loops solved by LAPACK"
    return "forward dynamics interpreted" if plans.kernels.interprets("forward_dynamics") else ""


def warn_if_interpreted(plans: LoopPlans) -> None:
    """Who chooses 'dense' wants LAPACK; others are told."""
    if interpreted(plans) and not plans.model.dense_loops:
        parts = "loops" if plans.tree.looped else "of them"
        warn_of_interpretation(f"compile: {plans.tree.name!r} has {plans.tree.n} links, method {plans.model.method!r} "
                               f"looks at all {parts} at once", plans.tree)


def evaluator_of(plans: LoopPlans, name: str) -> Evaluator:
    """What runs a function: with loops, forward dynamics follows a plan of elimination, here the one made first."""
    if not plans.tree.looped or name not in ("forward_dynamics", "constrained_hamilton"):
        return plans.kernels.evaluator
    return plans.kernels.planned(plans.general())


def _run_looped(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
                name: str = "forward_dynamics") -> Floats:
    """Dynamics with loops; states in which the plan's pivots vanish get a plan of their own."""
    if plans.model.dense_loops and name == "forward_dynamics":
        return dense_dynamics(plans, given, wrenches, t)[0]
    return run_by_plan(plans, name, given, wrenches, t, plans.first(given["q"], t))[0]


def run_by_plan(plans: LoopPlans, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
                plan: LoopPlan) -> tuple[Floats, LoopPlan]:
    """A function of the loops by a plan, and the plan that served the last states if that one did not."""
    own, run = with_elements(plans, given, wrenches, t) if "tau" in given else wrenches, plans.kernels.planned(plan)
    found = plans.kernels.evaluate(name, given, own, t, run)
    if not found.finite:
        plans.kernels.check_inputs(found)
        plan = _replan(plans, found, own is not None, plan)
    return found.result, plan


def _replan(plans: LoopPlans, found: Evaluation, wrenches: bool, plan: LoopPlan) -> LoopPlan:
    """Compute the states that failed with plans made for them, into the result; returns the last of these plans."""
    function, given = plans.kernels.functions[found.name], dict(zip(found.inputs, found.arrays, strict=True))
    q, at_t, out = given["q"], given.get("t", np.zeros((1, 1))), found.out
    while True:
        bad = found.lacking
        if not len(bad):
            return plan
        first = int(bad[0])
        plan = plans.at(q[first if len(q) > 1 else 0], float(at_t[first if len(at_t) > 1 else 0, 0]))
        some = [a if len(a) == 1 else np.ascontiguousarray(a[bad]) for a in found.arrays]
        again, _ = plans.kernels.planned(plan).run(function, wrenches, some, len(bad))
        fixed = np.asarray(np.isfinite(again).all(axis=-1))
        if not fixed[0]:
            if plan.smallest < _NEAR:
                raise _too_near(plans, found.name, plan)
            explain_elements(plans, *found.failed())
            plans.kernels.refuse(found)
        out[bad[fixed]] = again[fixed]


def _too_near(plans: LoopPlans, name: str, plan: LoopPlan) -> SingularError:
    """An error for a position that is singular as far as a method can see."""
    other = "; method='elimination' goes nearer" if plans.model.method != "elimination" else ""
    return SingularError(f"{name} of {plans.tree.name!r} by {plans.model.method!r}: the position is so nearly singular "
                         f"(its weakest constraint has {plan.smallest:.1g} of its size) that no digit would be "
                         f"right{other}")


def dense_dynamics(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                   ) -> tuple[Floats, Floats]:
    """Accelerations and multipliers from the full equations, by singular values. Cost: O((nu + m)^3)."""
    q, u = given["q"], given["u"]
    matrix = mass_matrix(plans.kernels, q, t)
    rows = plans.loops.rows(q, u, t)
    jacobian = plans.loops.jacobian(q, rows, t)
    gamma = plans.loops.gamma(q, u, t, rows)
    driven = plans.kernels.run("prescribed", {"q": q, "u": u}, None, t)
    tau = flat("tau", given["tau"], plans.tree.nu, "one for every speed")
    if not np.isfinite(tau).all():
        raise StateError(f"forward_dynamics: tau[{int(np.argwhere(~np.isfinite(tau))[0, -1])}] is not finite")
    tau = actuator_forces(plans, q, u, tau, t=t)
    free = plans.tree.free_speeds()
    space = null_space(jacobian[..., free], plans.loops.row_sizes, plans.tree.speed_sizes[free])
    _check_rank(plans, np.asarray(q, dtype=float), np.asarray(space[2].sum(axis=-1)), t)
    try:
        bias = tree_forces(plans, q, u, np.zeros(plans.tree.nu), wrenches, t, tau)
        udot, loads = solve_kkt(matrix, jacobian, gamma, tau - bias, driven, free, space)
    except np.linalg.LinAlgError:
        raise SingularError(f"forward_dynamics of {plans.tree.name!r} has no unique result: nothing resists some "
                            "motion that its loops allow") from None
    return plans.kernels.run("joint_accelerations", {"q": q, "u": u, "udot": udot}, None, t), loads


def _check_rank(plans: LoopPlans, q: Floats, ranks: npt.NDArray[np.int64], t: npt.ArrayLike) -> None:
    """Refuse positions at which fewer constraints are independent than in general: accelerations are not determined."""
    try:
        general = len(plans.first(q, t).kept)
    except AssemblyError:  # states that are not closed can be asked for, too
        return
    low = np.argwhere(ranks < general)
    if len(low):
        index = tuple(int(i) for i in low[0])
        place = np.broadcast_to(q, (*ranks.shape, plans.tree.nq))[index]
        plan = plans.at(place, float(np.broadcast_to(np.asarray(t, dtype=float), ranks.shape)[index]))
        raise _too_near(plans, "forward_dynamics", plan)
