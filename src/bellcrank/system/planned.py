"""Forward dynamics of machines with loops: plans of elimination, their evaluators, and what happens when one fails."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import AssemblyError, NotYetError, SingularError, StateError
from bellcrank.formulations.groups import LoopPlan
from bellcrank.formulations.program import Function
from bellcrank.mechanism.tree import Tree
from bellcrank.system.arrays import Floats, batch, flat, wrench_array
from bellcrank.system.evaluator import UNROLL_LINKS, Evaluator, free_speeds
from bellcrank.system.kinematics import Wrenches
from bellcrank.system.kkt import solve_kkt
from bellcrank.system.loop_forces import LoopForces

__all__ = ["Planned"]


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
        return self._planned_evaluator(self._current_plan())

    def _own_inverse(self, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, wrenches: Wrenches,
                     t: npt.ArrayLike) -> Floats:
        run = self._planned_evaluator(self._reference_plan())
        return self._run("constrained_inverse", {"q": q, "u": u, "udot": udot}, wrenches, t, run)

    def _planned_evaluator(self, plan: LoopPlan) -> Evaluator:
        if plan.key not in self._planned:
            pairs = () if self._sprung else self.tree.pairs
            self._planned[plan.key] = self._make(replace(self.tree, plan=plan, pairs=pairs))
        return self._planned[plan.key]

    def _prepare(self, q: npt.ArrayLike, t: npt.ArrayLike) -> None:
        """Make the first plan. A machine that does not close near its neutral position may do so in the state given."""
        try:
            self._reference_plan()
        except AssemblyError:
            place = flat("q", q, self.nq, "the coordinates").reshape(-1, self.nq)[:1]
            when = float(np.ravel(np.asarray(t, dtype=float))[0])
            if not len(place) or float(np.abs(self.loop_error(place[0], t=when)).max(initial=0.0)) > 1e-6:
                if self._by_kkt:
                    return
                raise
            self._plan_state.setdefault("closed", (place[0], when))
            self._reference_plan()

    def _run_looped(self, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        """Forward dynamics with loops; states in which the plan's pivots vanish get a plan of their own."""
        if self._by_kkt:
            return self._kkt(given, wrenches, t)[0]
        function = self._functions["forward_dynamics"]
        if self._sprung:
            wrenches = self._with_springs(given, wrenches, t)
        run = self._planned_evaluator(self._current_plan())
        names = run.inputs(function, wrenches is not None)
        arrays = [self._input(n, size, given, wrenches, t, run.tree) for n, size in names.items()]
        ready, lead, n = batch(arrays)
        out, finite = run.run(function, wrenches is not None, ready, n)
        if not finite:
            if not all(bool(np.isfinite(a).all()) for a in ready):
                self._explain("forward_dynamics", list(names), ready, lead, out)
            self._replan(function, wrenches is not None, list(names), ready, lead, out)
        return out.reshape(*lead, out.shape[-1])

    def _replan(self, function: Function, wrenches: bool, names: list[str], ready: list[Floats], lead: tuple[int, ...],
                out: Floats) -> None:
        """Compute the states that failed with plans made for them."""
        at_t = ready[names.index("t")] if "t" in names else np.zeros((1, 1))
        q = ready[names.index("q")]
        while True:
            bad = np.flatnonzero(~np.isfinite(out).all(axis=-1))
            if not len(bad):
                return
            first = int(bad[0])
            plan = self._plan_at(q[first if len(q) > 1 else 0], float(at_t[first if len(at_t) > 1 else 0, 0]))
            some = [a if len(a) == 1 else np.ascontiguousarray(a[bad]) for a in ready]
            again, _ = self._planned_evaluator(plan).run(function, wrenches, some, len(bad))
            fixed = np.asarray(np.isfinite(again).all(axis=-1))
            if not fixed[0]:
                self._explain("forward_dynamics", names, ready, lead, out)
            self._plan_state["current"] = plan  # stay with what works here
            self._doors = {}
            out[bad[fixed]] = again[fixed]

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
        try:
            return solve_kkt(matrix, jacobian, gamma, tau - bias, driven, free_speeds(self.tree))
        except np.linalg.LinAlgError:
            raise SingularError(f"forward_dynamics of {self.tree.name!r} has no unique result: nothing resists some "
                                "motion that its loops allow") from None

    def _with_springs(self, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        """External wrenches with those of the springs between links added."""
        if "u" not in given:
            raise NotYetError(f"{self.tree.name!r} has over {UNROLL_LINKS} links and springs between distant ones, "
                              "whose dampers need speeds: Hamilton's equations are not supported for it")
        springs = self.spring_wrenches(given["q"], given["u"], t=t)
        return springs if wrenches is None else springs + wrench_array(wrenches, self.body_names)
