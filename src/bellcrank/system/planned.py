"""Forward dynamics of machines with loops: plans of elimination, their evaluators, and what happens when one fails."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, batch, flat, wrench_array
from bellcrank.errors import AssemblyError, NotYetError, SingularError, StateError
from bellcrank.loops.groups import LoopPlan
from bellcrank.loops.null_space import null_space, solve_kkt
from bellcrank.lowering.function import Function
from bellcrank.system.evaluator import (
    UNROLL_LINKS,
    CompiledEvaluator,
    Evaluator,
    warn_of_interpretation,
)
from bellcrank.system.kinematics import Wrenches
from bellcrank.system.loop_forces import LoopForces
from bellcrank.topology.tree import Tree

__all__ = ["Planned"]

#: a condition with this part of its size left is a reason for results that are not finite
_NEAR = 1e-2


class Planned(LoopForces):
    """How a `System` with loops evaluates its forward dynamics."""

    method: str
    _evaluator: Evaluator
    _make: Callable[[Tree], Evaluator]
    _planned: dict[Any, Evaluator]
    _doors: dict[str, Any]
    _sprung: bool

    @property
    @abstractmethod
    def body_names(self) -> tuple[str, ...]:
        """All bodies but the ground."""

    @abstractmethod
    def _input(self, name: str, size: int, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
               t: npt.ArrayLike, tree: Tree) -> Floats:
        """One input of a function as an array."""

    @abstractmethod
    def _explain(self, name: str, names: list[str], arrays: list[Floats], lead: tuple[int, ...], out: Floats) -> None:
        """Raise an error that says which input is not finite, or that the state is singular."""

    @abstractmethod
    def mass_matrix(self, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
        """Joint-space mass matrix of the spanning tree."""

    @abstractmethod
    def bias(self, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None, t: npt.ArrayLike = 0.0) -> Floats:
        """Joint forces at zero acceleration."""

    @property
    def _by_kkt(self) -> bool:
        return self.tree.looped and self.method == "dense"

    def _evaluator_for(self, function: Function) -> Evaluator:
        """What runs a function: with loops, forward dynamics follows a plan of elimination."""
        if not self.tree.looped or function.name != "forward_dynamics":
            return self._evaluator
        return self._planned_evaluator(self._reference_plan())

    @property
    def _interpreted(self) -> str:
        """What of the machine is not compiled although that was asked for, or nothing."""
        if not isinstance(self._evaluator, CompiledEvaluator):
            return ""
        if self._by_kkt:
            return "loops solved by LAPACK"
        return "forward dynamics interpreted" if self._evaluator.too_large(self._functions["forward_dynamics"]) else ""

    def _warn_if_interpreted(self, stacklevel: int) -> None:
        """Who chooses 'dense' wants LAPACK; others are told."""
        if self._interpreted and not self._by_kkt:
            warn_of_interpretation(f"compile: {self.tree.name!r} has {self.tree.n} links, method {self.method!r} looks "
                                   "at all loops at once", self.tree, stacklevel + 1)

    def _own_inverse(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, wrenches: Wrenches,
                     t: npt.ArrayLike) -> Floats:
        run = self._planned_evaluator(self._reference_plan())
        return self._run("constrained_inverse", {"q": q, "u": u, "udot": udot}, wrenches, t, run)

    def _planned_evaluator(self, plan: LoopPlan) -> Evaluator:
        if plan.key not in self._planned:
            pairs = () if self._sprung else self.tree.pairs
            self._planned[plan.key] = self._make(replace(self.tree, plan=plan, pairs=pairs))
        return self._planned[plan.key]

    def _first_plan(self, q: npt.ArrayLike, t: npt.ArrayLike) -> LoopPlan:
        """The plan to try first: the reference. A machine that does not close near its neutral position may do so in
        the (first) state given."""
        if "reference" in self._plan_state and not isinstance(self._plan_state["reference"], str):
            plan: LoopPlan = self._plan_state["reference"].plan
            return plan
        place = flat("q", q, self.nq, "the coordinates").reshape(-1, self.nq)[:1]
        if not len(place) or not np.isfinite(place).all():
            return self._reference().plan
        return self._reference_near(place[0], float(np.ravel(np.asarray(t, dtype=float))[0])).plan

    def _run_looped(self, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
                    name: str = "forward_dynamics") -> Floats:
        """Dynamics with loops; states in which the plan's pivots vanish get a plan of their own."""
        if self._by_kkt and name == "forward_dynamics":
            return self._kkt(given, wrenches, t)[0]
        return self._run_by_plan(name, given, wrenches, t, self._first_plan(given["q"], t))[0]

    def _run_by_plan(self, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
                     plan: LoopPlan) -> tuple[Floats, LoopPlan]:
        """A function of the loops by a plan, and the plan that served the last states if that one did not."""
        function = self._functions[name]
        if self._sprung:
            wrenches = self._with_springs(given, wrenches, t)
        run = self._planned_evaluator(plan)
        names = run.inputs(function, wrenches is not None)
        arrays = [self._input(n, size, given, wrenches, t, run.tree) for n, size in names.items()]
        ready, lead, n = batch(arrays)
        out, finite = run.run(function, wrenches is not None, ready, n)
        if not finite:
            if not all(bool(np.isfinite(a).all()) for a in ready):
                self._explain(name, list(names), ready, lead, out)
            plan = self._replan(function, wrenches is not None, list(names), ready, lead, out, plan)
        return out.reshape(*lead, out.shape[-1]), plan

    def _replan(self, function: Function, wrenches: bool, names: list[str], ready: list[Floats], lead: tuple[int, ...],
                out: Floats, plan: LoopPlan) -> LoopPlan:
        """Compute the states that failed with plans made for them; returns the last of these."""
        at_t = ready[names.index("t")] if "t" in names else np.zeros((1, 1))
        q = ready[names.index("q")]
        while True:
            bad = np.flatnonzero(~np.isfinite(out).all(axis=-1))
            if not len(bad):
                return plan
            first = int(bad[0])
            plan = self._plan_at(q[first if len(q) > 1 else 0], float(at_t[first if len(at_t) > 1 else 0, 0]))
            some = [a if len(a) == 1 else np.ascontiguousarray(a[bad]) for a in ready]
            again, _ = self._planned_evaluator(plan).run(function, wrenches, some, len(bad))
            fixed = np.asarray(np.isfinite(again).all(axis=-1))
            if not fixed[0]:
                if plan.smallest < _NEAR:
                    raise self._too_near(function.name, plan)
                self._explain(function.name, names, ready, lead, out)
            out[bad[fixed]] = again[fixed]

    def _too_near(self, name: str, plan: LoopPlan) -> SingularError:
        """An error for a position that is singular as far as a method can see."""
        other = "; method='elimination' goes nearer" if self.method != "elimination" else ""
        return SingularError(f"{name} of {self.tree.name!r} by {self.method!r}: the position is so nearly singular "
                             f"(its weakest condition has {plan.smallest:.1g} of its size) that no digit would be "
                             f"right{other}")

    def _kkt(self, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """Accelerations and multipliers from the full equations, by singular values. Cost: O((nu + m)^3)."""
        q, u = given["q"], given["u"]
        matrix = self.mass_matrix(q, t=t)
        bias = self.bias(q, u, wrenches=wrenches, t=t)
        rows = self._loops.rows(q, u, t)
        jacobian = self._loops.jacobian(q, rows, t)
        gamma = self._loops.gamma(q, u, t, rows)
        driven = self._run("prescribed", {"q": q, "u": u}, None, t)
        tau = flat("tau", given["tau"], self.nu, "one for every speed")
        if not np.isfinite(tau).all():
            raise StateError(f"forward_dynamics: tau[{int(np.argwhere(~np.isfinite(tau))[0, -1])}] is not finite")
        tau = self.actuator_forces(q, u, tau, t=t)
        free = self.tree.free_speeds()
        space = null_space(jacobian[..., free])
        self._check_rank(np.asarray(q, dtype=float), np.asarray(space[2].sum(axis=-1)), t)
        try:
            return solve_kkt(matrix, jacobian, gamma, tau - bias, driven, free, space)
        except np.linalg.LinAlgError:
            raise SingularError(f"forward_dynamics of {self.tree.name!r} has no unique result: nothing resists some "
                                "motion that its loops allow") from None

    def _check_rank(self, q: Floats, ranks: npt.NDArray[np.int64], t: npt.ArrayLike) -> None:
        """Refuse positions at which fewer conditions count than in general: accelerations are not determined there."""
        try:
            general = len(self._first_plan(q, t).kept)
        except AssemblyError:  # states that are not closed can be asked for, too
            return
        low = np.argwhere(ranks < general)
        if len(low):
            index = tuple(int(i) for i in low[0])
            place = np.broadcast_to(q, (*ranks.shape, self.nq))[index]
            plan = self._plan_at(place, float(np.broadcast_to(np.asarray(t, dtype=float), ranks.shape)[index]))
            raise self._too_near("forward_dynamics", plan)

    def _with_springs(self, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        """External wrenches with those of the springs between links added."""
        if "u" not in given:
            raise NotYetError(f"{self.tree.name!r} has over {UNROLL_LINKS} links and springs between distant ones, "
                              "whose dampers need speeds: Hamilton's equations are not supported for it")
        springs = self.spring_wrenches(given["q"], given["u"], t=t)
        return springs if wrenches is None else springs + wrench_array(wrenches, self.body_names)
