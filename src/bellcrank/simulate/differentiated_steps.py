"""Steps of fixed length with their derivatives, as the methods of integration make them.

The stages are differentiated as they are made. Explicit methods,

    k_i = f(y + h Σ a_ij k_j),    δk_i = J_i (δy + h Σ a_ij δk_j + δh Σ a_ij k_j) + P_i δp_i    (1)

collocation, whose stages z_i = h Σ a_ij f(y + z_j) are solved by Newton's method first,

    δz_i - h Σ a_ij J_j δz_j = Σ a_ij [h (J_j δy + P_j δp_j) + δh k_j]    (2)

and semi-implicit Euler, u⁺ = u + h u̇(q, u), q⁺ = q + h q̇(q, u⁺). P are derivatives by forces, parameters and time, δp
their changes; at a stage time changes by δt + c_i δh. Then the loops are closed, y⁺ = C(y), round by round. Backwards,
weights λ of the result become weights of what it was made of:

    λ ← Cᵀ λ,    μ_i = h b_i λ + h Σ_{j>i} a_ji J_jᵀ μ_j,    λ ← λ + Σ J_iᵀ μ_i,    ∇p ← ∇p + Σ P_iᵀ μ_i    (3)

Every step is made as a whole by one choice of independent speeds (a plan), as the run makes it: between closed states
stages of different plans differ.

Python runs between stages, compiled code in them: some ten microseconds a stage of a small machine.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.derivatives.rates import corrected_with_jacobian, rates_with_jacobian
from bellcrank.errors import AssemblyError, NotYetError, SingularError, StateError
from bellcrank.integrate.tableaux import Collocation, Explicit
from bellcrank.lowering.function import Function
from bellcrank.scalar.graph import Number
from bellcrank.simulate.steppers import FAR, NEAR, ROUNDS, STEPPERS
from bellcrank.topology.tree import Tree

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine

__all__ = ["Acting", "DifferentiatedSteps", "Leaf", "Moved"]

#: (input, entry)
Leaf = tuple[str, int]
#: rounds of Newton's method at most
_NEWTON = 20
_T = TypeVar("_T")


@dataclass(frozen=True)
class Acting:
    """The forces of a run: arrays by input, and laws that are evaluated in every stage."""

    inputs: Mapping[str, Floats]  #: "tau" and "wrench"
    laws: Mapping[Leaf, Number]

    @property
    def wrenches(self) -> bool:
        """Whether forces act on bodies."""
        return "wrench" in self.inputs


@dataclass(frozen=True)
class Moved:
    """How what a step begins with changes, by columns."""

    state: Floats  #: (size, columns)
    by: Floats  #: (leaves, columns), time left out
    start: Floats  #: (columns,)
    length: Floats  #: (columns,)


class DifferentiatedSteps:
    """Steps from one state, forward with derivatives and back with weights."""

    def __init__(self, system: Machine, stepper: str, acting: Acting, leaves: Sequence[Leaf], q: Floats, t: float
                 ) -> None:
        kind = STEPPERS.get(stepper)
        if kind is None or kind.adaptive or kind.program is None:
            raise NotYetError(f"sensitivities: stepper {stepper!r} cannot be differentiated; take one of fixed steps")
        if kind.name == "moreau":
            raise NotYetError("sensitivities: stepper 'moreau' cannot be differentiated: rigid bodies meet and slide "
                              "at once. Give contacts a stiffness, and take a stepper such as 'radau'")
        if system.model.method == "momenta" or system.model.batched or any(system.model.options.baumgarte):
            raise NotYetError("sensitivities: one machine at a time, without baumgarte, and not with Hamilton's "
                              "equations")
        self.system, self.acting = system, acting
        self.leaves = tuple(leaves)
        self.nq, self.size = system.nq, system.nq + system.nu
        tableau = kind.tableau() if kind.tableau is not None else None
        self._scheme: _Scheme = _RungeKutta(self, tableau) if isinstance(tableau, Explicit) else \
            _Collocated(self, tableau) if isinstance(tableau, Collocation) else _SemiImplicit(self)
        self._q, self._u, self._t = np.zeros(system.nq), np.zeros(system.nu), np.zeros(1)
        self._parameters = np.array([float(v) for v in system.model.values.values()])
        self._calls: dict[Any, Callable[[], Floats]] = {}
        self._plan = system.plans.first(q, t) if system.model.tree.looped else None  # what runs begin with

    # -- compiled functions -----------------------------------------------------------------------
    def follow(self, plan: LoopPlan | None) -> None:
        """Make the next steps by a plan that the run took."""
        self._plan = plan or self._plan

    def call(self, key: str, make: Callable[[Tree], Function], y: Floats, t: float, wrenches: bool = False) -> Floats:
        """A function of a closed state, made by `make` for the tree of a plan that serves there."""
        return self._served(y, t, lambda: self._run(key, make, y, t, wrenches))

    def _served(self, y: Floats, t: float, work: Callable[[], _T]) -> _T:
        """Work by the plan at hand, or as a whole by one for the state y, as runs do where pivots vanish."""
        for wishes in (True, False):
            try:
                return work()
            except StateError:
                if self._plan is None:
                    raise
                self._plan = self.system.plans.at(y[:self.nq], t, wishes)
        return work()

    def _run(self, key: str, make: Callable[[Tree], Function], y: Floats, t: float, wrenches: bool = False) -> Floats:
        """A function by the plan at hand."""
        self._q[:], self._u[:], self._t[0] = y[:self.nq], y[self.nq:], t
        place = key, None if self._plan is None else self._plan.key
        if place not in self._calls:
            kernels = self.system.kernels
            run = kernels.evaluator if self._plan is None else kernels.planned(self._plan)
            function = make(run.tree)
            kernels.functions[function.name] = function
            known = {**self.acting.inputs, "q": self._q, "u": self._u, "t": self._t, "parameters": self._parameters}
            arrays = [known[name] for name in run.inputs(function, wrenches)]
            self._calls[place] = kernels.bound(function.name, arrays, np.empty(function.size(run.tree)), run, wrenches)
        return self._calls[place]()

    def rates(self, y: Floats, t: float) -> tuple[Floats, Floats]:
        """f, and [J P]."""
        acting, n = self.acting, self.size
        out = self._run("rates", lambda tree: rates_with_jacobian(tree, self.leaves, acting.laws), y, t,
                        acting.wrenches)
        return out[:n].copy(), out[n:].reshape(n, -1).copy()

    def corrected(self, y: Floats, t: float) -> tuple[Floats, list[Floats]]:
        """The state after closing, and the derivatives of every round, first to last."""
        return self._served(y, t, lambda: self._closed(y, t))

    def _closed(self, y: Floats, t: float) -> tuple[Floats, list[Floats]]:
        n, rounds, far = self.size, [], 0.0
        for _ in range(ROUNDS):
            out = self._run("corrected", lambda tree: corrected_with_jacobian(tree, self.leaves), y, t)
            y = out[:n].copy()
            rounds.append(out[n + self.system.nu:].reshape(n, -1).copy())
            far = float(np.abs(out[n:n + self.system.nu]).max(initial=0.0))
            if far <= NEAR:
                break
        if far > FAR:
            raise AssemblyError(f"sensitivities: the loops of {self.system.model.name!r} do not close at t = {t:.9g} s")
        return y, rounds

    # -- steps --------------------------------------------------------------------------------------
    def _step(self, y: Floats, t: float, h: float) -> tuple[Made, Floats, list[Floats]]:
        """A step before closing, its end, and the derivatives of closing, round by round."""
        def whole() -> tuple[Made, Floats, list[Floats]]:
            made = self._scheme.made(y, t, h)
            return made, *self._closed(made.end, t + h)

        try:
            return self._served(y, t, whole)
        except (StateError, SingularError) as error:
            raise StateError(f"sensitivities: the step from t = {t:.6g} s cannot be made with derivatives ({error}); "
                             "take smaller steps, or end the run before it") from None

    def plain(self, y: Floats, t: float, h: float) -> Floats:
        """The next state."""
        return self._step(y, t, h)[1]

    def forward(self, y: Floats, t: float, h: float, moved: Moved) -> tuple[Floats, Floats]:
        """The next state and its derivatives (size, columns)."""
        made, end, rounds = self._step(y, t, h)
        change, by = self._scheme.along(made, h, moved), self.at(moved, 1.0)
        for slope in rounds:
            change = slope[:, :self.size] @ change + slope[:, self.size:] @ by
        return end, change

    def backward(self, y: Floats, t: float, h: float, weights: Floats, total: Floats) -> Floats:
        """(3) of the step that begins at y; the gradient by the leaves is added to `total`."""
        (made, _, rounds), n = self._step(y, t, h), self.size
        for slope in reversed(rounds):
            total += slope[:, n:].T @ weights
            weights = slope[:, :n].T @ weights
        return self._scheme.back(made, h, weights, total)

    def at(self, moved: Moved, part: float) -> Floats:
        """Changes of the leaves (leaves, columns) at a part of a step: time goes on."""
        if ("t", 0) not in self.leaves:
            return moved.by
        by = moved.by.copy()
        by[self.leaves.index(("t", 0))] += moved.start + part * moved.length
        return by


class Made(NamedTuple):
    """A step before closing: slopes, their Jacobians, and where it ends."""

    slopes: list[Floats]
    jacobians: list[Floats]  #: [J P]
    end: Floats


class _Scheme(ABC):
    def __init__(self, steps: DifferentiatedSteps) -> None:
        self.steps, self.n = steps, steps.size

    @abstractmethod
    def made(self, y: Floats, t: float, h: float) -> Made:
        """A step."""

    @abstractmethod
    def along(self, made: Made, h: float, moved: Moved) -> Floats:
        """How its end changes."""

    @abstractmethod
    def back(self, made: Made, h: float, weights: Floats, total: Floats) -> Floats:
        """Weights of its end as weights of its beginning."""


class _RungeKutta(_Scheme):
    def __init__(self, steps: DifferentiatedSteps, tableau: Explicit) -> None:
        super().__init__(steps)
        self.tableau = tableau

    def made(self, y: Floats, t: float, h: float) -> Made:
        a, c = self.tableau.a, self.tableau.c
        slopes: list[Floats] = []
        jacobians: list[Floats] = []
        for i in range(self.tableau.stages):
            k, slope = self.steps.rates(y + h * _sum(a[i], slopes), t + h * c[i])
            slopes.append(k)
            jacobians.append(slope)
        return Made(slopes, jacobians, y + h * _sum(self.tableau.b, slopes))

    def along(self, made: Made, h: float, moved: Moved) -> Floats:
        """(1)"""
        a, b, c, n = self.tableau.a, self.tableau.b, self.tableau.c, self.n
        changes: list[Floats] = []
        for i, slope in enumerate(made.jacobians):
            at = moved.state + h * _sum(a[i], changes) + np.outer(_sum(a[i], made.slopes[:i]), moved.length)
            changes.append(slope[:, :n] @ at + slope[:, n:] @ self.steps.at(moved, c[i]))
        return np.asarray(moved.state + h * _sum(b, changes) + np.outer(_sum(b, made.slopes), moved.length))

    def back(self, made: Made, h: float, weights: Floats, total: Floats) -> Floats:
        """(3)"""
        a, b, n = self.tableau.a, self.tableau.b, self.n
        backs: list[Floats] = []  # J_iᵀ μ_i, last stage first
        for i in range(len(made.slopes) - 1, -1, -1):
            mu = h * (b[i] * weights + _sum(a[:i:-1, i], backs))
            backs.append(made.jacobians[i][:, :n].T @ mu)
            total += made.jacobians[i][:, n:].T @ mu
        return np.asarray(weights + sum(backs))


class _Collocated(_Scheme):
    def __init__(self, steps: DifferentiatedSteps, tableau: Collocation) -> None:
        super().__init__(steps)
        self.tableau = tableau

    def made(self, y: Floats, t: float, h: float) -> Made:
        a, c, s = self.tableau.a, self.tableau.c, self.tableau.stages
        z, scale = np.zeros((s, self.n)), 1.0 + float(np.abs(y).max())
        smaller = np.inf
        for _ in range(_NEWTON):
            found = [self.steps.rates(y + z[i], t + h * c[i]) for i in range(s)]
            slopes, jacobians = [k for k, _ in found], [j for _, j in found]
            left = h * a @ np.stack(slopes) - z
            change = np.linalg.solve(self._matrix(jacobians, h), left.reshape(-1)).reshape(s, self.n)
            size = float(np.abs(change).max())
            if not size < smaller:  # rounding
                break
            z, smaller = z + change, size
            if size <= 1e-15 * scale:
                break
        return Made(slopes, jacobians, y + self.tableau.d @ z)

    def _matrix(self, jacobians: Sequence[Floats], h: float) -> Floats:
        """I - h a ⊗ J"""
        n, a = self.n, self.tableau.a
        blocks = [[(i == j) * np.eye(n) - h * a[i, j] * slope[:, :n] for j, slope in enumerate(jacobians)]
                  for i in range(len(jacobians))]
        return np.block(blocks)

    def along(self, made: Made, h: float, moved: Moved) -> Floats:
        """(2)"""
        a, c, d, n = self.tableau.a, self.tableau.c, self.tableau.d, self.n
        inside = [h * (slope[:, :n] @ moved.state + slope[:, n:] @ self.steps.at(moved, c[j]))
                  + np.outer(made.slopes[j], moved.length) for j, slope in enumerate(made.jacobians)]
        right = np.concatenate([_sum(row, inside) for row in a])
        changes = np.linalg.solve(self._matrix(made.jacobians, h), right)
        return np.asarray(moved.state + _sum(d, list(changes.reshape(len(d), n, -1))))

    def back(self, made: Made, h: float, weights: Floats, total: Floats) -> Floats:
        """The transpose of (2)."""
        a, d, n = self.tableau.a, self.tableau.d, self.n
        right = np.concatenate([x * weights for x in d])
        loads = np.linalg.solve(self._matrix(made.jacobians, h).T, right).reshape(len(d), n)
        out = weights
        for j, slope in enumerate(made.jacobians):
            mu = h * (a[:, j] @ loads)
            out = out + slope[:, :n].T @ mu
            total += slope[:, n:].T @ mu
        return np.asarray(out)


class _SemiImplicit(_Scheme):
    def made(self, y: Floats, t: float, h: float) -> Made:
        nq = self.steps.nq
        first, before = self.steps.rates(y, t)
        middle = y.copy()
        middle[nq:] += h * first[nq:]
        second, after = self.steps.rates(middle, t)
        end = middle.copy()
        end[:nq] += h * second[:nq]
        return Made([first, second], [before, after], end)

    def along(self, made: Made, h: float, moved: Moved) -> Floats:
        nq, n, by = self.steps.nq, self.n, self.steps.at(moved, 0.0)
        (first, second), (before, after) = made.slopes, made.jacobians
        out = moved.state.copy()
        out[nq:] += (h * (before[:, :n] @ moved.state + before[:, n:] @ by) + np.outer(first, moved.length))[nq:]
        out[:nq] += (h * (after[:, :n] @ out + after[:, n:] @ by) + np.outer(second, moved.length))[:nq]
        return out

    def back(self, made: Made, h: float, weights: Floats, total: Floats) -> Floats:
        nq, n = self.steps.nq, self.n
        before, after = made.jacobians
        out = weights.copy()
        for slope, rows in ((after, slice(0, nq)), (before, slice(nq, None))):
            mu = h * out[rows]
            total += slope[rows, n:].T @ mu
            out = out + slope[rows, :n].T @ mu
        return out


def _sum(weights: Sequence[float] | Floats, terms: Sequence[Floats]) -> Floats | float:
    """Weights times terms, as many as there are."""
    return sum((w * x for w, x in zip(weights, terms, strict=False) if w), 0.0)
