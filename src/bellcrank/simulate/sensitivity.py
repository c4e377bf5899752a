"""How a run of fixed steps depends on its beginning, on forces and parameters: exact derivatives of discrete motion.

The steps of an explicit method are differentiated as they are made, stage by stage,

    k_i = f(y + h Σ a_ij k_j),    δk_i = J_i (δy + h Σ a_ij δk_j) + P_i δp    (1)

and so is the closing of the loops after a step, y⁺ = C(y). `variations` takes derivatives along forward; `swept_back`
goes back from an objective, with states kept at every so many steps and the steps between made again:

    λ ← Cᵀ λ,    μ_i = h b_i λ + h Σ_{j>i} a_ji J_jᵀ μ_j,    λ ← λ + Σ J_iᵀ μ_i,    ∇p ← ∇p + Σ P_iᵀ μ_i    (2)

Python runs between stages, compiled code in them: some ten microseconds a stage of a small machine.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.derivatives.rates import corrected_with_jacobian, rates_with_jacobian
from bellcrank.errors import ModelError, NotYetError, StateError
from bellcrank.integrate.tableaux import Explicit
from bellcrank.simulate.steppers import NEAR, ROUNDS, STEPPERS
from bellcrank.system.derivatives import forward_slopes_at

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.simulate.result import Result
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["Variations", "Walk", "swept_back", "variations", "with_sensitivities"]

Floats = npt.NDArray[np.float64]
Leaf = tuple[str, int]


@dataclass(frozen=True)
class Unknown:
    """What a run is differentiated by: the beginning ("q0", "u0"), joint forces ("tau") or a parameter."""

    name: str
    leaves: tuple[Leaf, ...]  #: inputs of the kernels
    start: Floats  #: how the first state changes, (size, columns)
    columns: tuple[str, ...]


class Variations(dict[str, Floats]):
    """Derivatives of q and u at the samples, (samples, nq + nu, columns) by name."""

    columns: dict[str, tuple[str, ...]]


class Walk:
    """Steps of an explicit method with their derivatives, from one state."""

    def __init__(self, system: Machine, stepper: str, step: float, tau: Floats, leaves: Sequence[Leaf], q: Floats,
                 t: float) -> None:
        kind = STEPPERS.get(stepper)
        tableau = kind.tableau() if kind is not None and kind.tableau is not None else None
        if not isinstance(tableau, Explicit) or (kind is not None and kind.adaptive):
            raise NotYetError(f"sensitivities: stepper {stepper!r} cannot be differentiated; take 'rk4' or 'rk8'")
        if system.model.method == "momenta" or system.model.batched or any(system.model.options.baumgarte):
            raise NotYetError("sensitivities: one machine at a time, without baumgarte, and not with Hamilton's "
                              "equations")
        self.system, self.tableau, self.h, self.leaves = system, tableau, step, tuple(leaves)
        self.nq, self.size = system.nq, system.nq + system.nu
        self.stage_q, self.stage_u, self.tau = np.zeros(system.nq), np.zeros(system.nu), np.ascontiguousarray(tau)
        self.clock = np.zeros(1)
        self._bind(system.plans.first(q, t) if system.model.tree.looped else None)  # what runs begin with

    def _bind(self, plan: LoopPlan | None) -> None:
        """Bind the kernels; with loops, for a plan."""
        system, kernels = self.system, self.system.kernels
        run = kernels.evaluator if plan is None else kernels.planned(plan)
        tree = run.tree
        self._calls: list[tuple[Callable[[], Floats], Floats]] = []
        for function in (rates_with_jacobian(tree, self.leaves), corrected_with_jacobian(tree, self.leaves)):
            kernels.functions[function.name] = function
            inputs = {"q": self.stage_q, "u": self.stage_u, "tau": self.tau, "t": self.clock,
                      "parameters": np.array([float(v) for v in system.model.values.values()])}
            arrays = [inputs[name] for name in run.inputs(function, False)]
            out = np.empty(function.size(tree))
            self._calls.append((kernels.bound(function.name, arrays, out, run), out))

    def _run(self, which: int, y: Floats, t: float) -> Floats:
        self.stage_q[:], self.stage_u[:], self.clock[0] = y[:self.nq], y[self.nq:], t
        try:
            self._calls[which][0]()
        except StateError:
            if not self.system.model.tree.looped:
                raise
            self._bind(self.system.plans.at(y[:self.nq], t))  # a pivot vanished: other speeds take over
            self._calls[which][0]()
        return self._calls[which][1]

    def rates(self, y: Floats, t: float) -> tuple[Floats, Floats]:
        """f, and [J P]."""
        out, n = self._run(0, y, t), self.size
        return out[:n].copy(), out[n:].reshape(n, -1).copy()

    def corrected(self, y: Floats, t: float) -> tuple[Floats, list[Floats]]:
        """The state after closing, and the derivatives of every round, first to last."""
        n, rounds = self.size, []
        for _ in range(ROUNDS):
            out = self._run(1, y, t)
            y = out[:n].copy()
            rounds.append(out[n + self.system.nu:].reshape(n, -1).copy())
            if not np.abs(out[n:n + self.system.nu]).max(initial=0.0) > NEAR:
                break
        return y, rounds

    def stages(self, y: Floats, t: float) -> tuple[list[Floats], list[Floats]]:
        """Slopes of a step, and [J P] at each."""
        a, c = self.tableau.a, self.tableau.c
        slopes: list[Floats] = []
        jacobians: list[Floats] = []
        for i in range(self.tableau.stages):
            at = y + self.h * sum((a[i, j] * k for j, k in enumerate(slopes) if a[i, j]), np.zeros(self.size))
            k, slope = self.rates(at, t + self.h * c[i])
            slopes.append(k)
            jacobians.append(slope)
        return slopes, jacobians

    def end(self, y: Floats, slopes: Sequence[Floats]) -> Floats:
        """The step's result before closing."""
        return y + self.h * sum((b * k for b, k in zip(self.tableau.b, slopes, strict=True)), np.zeros(self.size))

    def forward(self, y: Floats, change: Floats, by: Floats, t: float) -> tuple[Floats, Floats]:
        """(1) and the closing: the next state and its derivatives (size, columns); `by` (leaves, columns) is δp."""
        slopes, jacobians = self.stages(y, t)
        a, n = self.tableau.a, self.size
        changes: list[Floats] = []
        for i, slope in enumerate(jacobians):
            at = change + self.h * sum((a[i, j] * k for j, k in enumerate(changes) if a[i, j]), np.zeros(change.shape))
            changes.append(slope[:, :n] @ at + slope[:, n:] @ by)
        change = change + self.h * sum((b * k for b, k in zip(self.tableau.b, changes, strict=True)),
                                       np.zeros(change.shape))
        y, rounds = self.corrected(self.end(y, slopes), t + self.h)
        for slope in rounds:
            change = slope[:, :n] @ change + slope[:, n:] @ by
        return y, change

    def backward(self, y: Floats, weights: Floats, total: Floats, t: float) -> Floats:
        """(2) of the step that begins at y: what weights of its result are as weights of its beginning; the gradient by
        the leaves is added to `total`."""
        slopes, jacobians = self.stages(y, t)
        _, rounds = self.corrected(self.end(y, slopes), t + self.h)
        n, a, b = self.size, self.tableau.a, self.tableau.b
        for slope in reversed(rounds):
            total += slope[:, n:].T @ weights
            weights = slope[:, :n].T @ weights
        backs: dict[int, Floats] = {}  # J_iᵀ μ_i
        for i in range(len(slopes) - 1, -1, -1):
            mu = self.h * (b[i] * weights + sum((a[j, i] * back for j, back in backs.items()), np.zeros(n)))
            backs[i] = jacobians[i][:, :n].T @ mu
            total += jacobians[i][:, n:].T @ mu
        return np.asarray(weights + sum(backs.values(), np.zeros(n)))


def unknowns(system: Machine, names: Sequence[str], q: Floats, u: Floats, tau: Floats, t: float) -> list[Unknown]:
    """What is asked for, by name. The beginning of a closed machine changes along its independent speeds."""
    nu, size = system.nu, system.nq + system.nu
    out = []
    for name in names:
        if name in ("q0", "u0"):
            out.append(_beginning(system, name, q, u, tau, t))
        elif name == "tau":
            out.append(Unknown(name, tuple(("tau", i) for i in range(nu)), np.zeros((size, nu)), system.speed_names))
        elif name in system.model.values:
            place = list(system.model.values).index(name)
            out.append(Unknown(name, (("parameters", place),), _start_by_parameter(system, q, u, place, t), (name,)))
        else:
            known = ", ".join(["q0", "u0", "tau", *system.model.values])
            raise ModelError(f"sensitivities: nothing called {name!r} to differentiate by; there are {known}")
    return out


def _beginning(system: Machine, name: str, q: Floats, u: Floats, tau: Floats, t: float) -> Unknown:
    tree = system.model.tree
    independent = list(system.plans.first(q, t).independent) if tree.looped else tree.free_speeds()
    slopes = forward_slopes_at(system.plans, q, u, tau, None, t, independent, ("tau",))
    columns = tuple(system.speed_names[v] for v in independent)
    if name == "u0":
        return Unknown(name, (), np.vstack([np.zeros((system.nq, len(columns))), slopes.speeds[1]]), columns)
    rates = system.kernels.run("coordinate_rates", {"q": q, "u": np.vstack([slopes.moved.T, 0.0 * u])}, None, t)
    return Unknown(name, (), np.vstack([(rates[:-1] - rates[-1]).T, slopes.speeds[0]]), columns)


def _start_by_parameter(system: Machine, q: Floats, u: Floats, place: int, t: float) -> Floats:
    """How a closed first state follows a parameter, independent coordinates and speeds at rest."""
    if not system.model.tree.looped:
        return np.zeros((system.nq + system.nu, 1))
    walk = Walk(system, "rk4", 1e-3, np.zeros(system.nu), [("parameters", place)], q, t)
    slope, n = walk.corrected(np.concatenate([q, u]), t)[1][0], walk.size
    change = slope[:, n:]
    for _ in range(2):  # speeds see where positions have gone in the next round
        change = slope[:, :n] @ change + slope[:, n:]
    return change


def variations(system: Machine, q: Floats, u: Floats, t: float, step: float, steps: int, every: int, stepper: str,
               tau: Floats, names: Sequence[str]) -> Variations:
    """Derivatives of the motion at every `every`-th step."""
    found = unknowns(system, names, q, u, tau, t)
    leaves = [leaf for x in found for leaf in x.leaves]
    walk = Walk(system, stepper, step, tau, leaves, q, t)
    widths = [x.start.shape[1] for x in found]
    change = np.hstack([x.start for x in found])
    by, at = np.zeros((len(leaves), change.shape[1])), 0
    for x, width in zip(found, widths, strict=True):
        for k, leaf in enumerate(x.leaves):
            by[leaves.index(leaf), at + k] = 1.0
        at += width
    y, rows = np.concatenate([q, u]), [change]
    for i in range(steps):
        y, change = walk.forward(y, change, by, t + i * step)
        if (i + 1) % every == 0:
            rows.append(change)
    whole = np.stack(rows)
    out, at = Variations(), 0
    for x, width in zip(found, widths, strict=True):
        out[x.name] = whole[..., at:at + width]
        at += width
    out.columns = {x.name: x.columns for x in found}
    return out


def with_sensitivities(setup: Setup, result: Result, names: Sequence[str]) -> Result:
    """A result with the derivatives of its samples: ``d_q_<name>`` and ``d_u_<name>``."""
    system = setup.system
    plain = setup.fixed and setup.count == 1 and not (setup.drives or setup.events or setup.batch) and \
        setup.wrenches is None and setup.closing == "position" and not setup.cuts
    if not plain or setup.step is None:
        raise NotYetError("simulate: sensitivities are for one state, fixed steps, closing='position', and without "
                          "controllers, events, wrenches or forces on cut joints")
    if result.attrs["status"] != "finished":
        return result
    y, nq = setup.y0[0], system.nq
    tau = np.broadcast_to(setup.tau, (1, system.nu))[0]
    found = variations(system, y[:nq].copy(), y[nq:].copy(), setup.start, setup.step, setup.steps, setup.every,
                       setup.stepper, tau, names)
    more: dict[str, Any] = {}
    for name, rows in found.items():
        label = f"by_{name}"
        more[f"d_q_{name}"] = (("time", "coordinate", label), rows[:, :nq])
        more[f"d_u_{name}"] = (("time", "speed", label), rows[:, nq:])
        result = result.assign_coords({label: list(found.columns[name])})
    return result.assign(more)


def swept_back(system: Machine, q: Floats, u: Floats, t: float, step: float, steps: int, stepper: str, tau: Floats,
               names: Sequence[str], slope: Callable[[Floats], tuple[float, Floats]]
               ) -> tuple[float, dict[str, Floats]]:
    """The value of an objective of the last state, and its gradient. `slope` gives value and derivatives of a state."""
    found = unknowns(system, names, q, u, tau, t)
    leaves = [leaf for x in found for leaf in x.leaves]
    walk = Walk(system, stepper, step, tau, leaves, q, t)
    every = max(1, round(steps**0.5))
    kept, y = {0: np.concatenate([q, u])}, np.concatenate([q, u])
    for i in range(steps):
        y, _ = walk.corrected(walk.end(y, walk.stages(y, t + i * step)[0]), t + (i + 1) * step)
        if (i + 1) % every == 0:
            kept[i + 1] = y
    value, weights = slope(y)
    total = np.zeros(len(leaves))
    for first in sorted((k for k in kept if k < steps), reverse=True):
        last = min(first + every, steps)
        states = [kept[first]]
        for i in range(first, last - 1):
            y = states[-1]
            states.append(walk.corrected(walk.end(y, walk.stages(y, t + i * step)[0]), t + (i + 1) * step)[0])
        for i in range(last - 1, first - 1, -1):
            weights = walk.backward(states[i - first], weights, total, t + i * step)
    out = {}
    for x in found:
        own = np.array([total[leaves.index(leaf)] for leaf in x.leaves])
        moved = x.start.T @ weights
        out[x.name] = moved + own if len(own) else moved
    return value, out


