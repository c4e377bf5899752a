"""Stepping in plain NumPy: the same methods of integration for systems that are not compiled, and the yardstick for
those that are. One call of `System.forward_dynamics` per stage; loops are closed by the assembler."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, SingularError, StateError
from bellcrank.integrate.tableaux import Collocation, Explicit
from bellcrank.loops.closer import Target, project
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number
from bellcrank.simulate.control import Drive, numbers
from bellcrank.simulate.failure import Failure
from bellcrank.simulate.steppers import NEAR, ROUNDS, Integrator
from bellcrank.system.forward_dynamics import dense_dynamics, run_by_plan
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine

__all__ = ["ReferenceRun", "Rhs"]

#: speeds of a machine that is brought to the nearest closed state in every stage, by methods without plans
_FEW = 20


class Rhs:
    """The equations of motion of a batch: y = (q, u), shape (states, nq + nu)."""

    def __init__(self, system: Machine, tau: Floats, wrenches: Floats | None, drives: Sequence[Drive] = (),
                 closing: str = "position") -> None:
        self.system, self.tau, self.wrenches, self.closing = system, tau, wrenches, closing
        self.drives = tuple(d for d in drives if d.traced)
        self._nq = system.nq
        self._laws: dict[Drive, list[Number]] = {}  #: what traced drives compute
        self._plan: LoopPlan | None = None  #: the one that served last: runs stay with it

    def prepare(self, t: float, y: Floats) -> None:
        """Make one evaluation, for what it refuses whatever the state is."""
        with suppress(SingularError, StateError, ArithmeticError), np.errstate(all="ignore"):
            if not self.drives:  # controllers are asked by the run alone
                self(t, y)

    def hold(self, t: float, y: Floats) -> None:
        """Evaluate the sampled ones of the traced drives, to be held."""
        for d in self.drives:
            if d.period is not None:
                self._apply(d, t, y)

    def _apply(self, d: Drive, t: float, y: Floats) -> None:
        system, nq = self.system, self._nq
        if d not in self._laws:
            self._laws[d] = d.graph(system)
        entries = evaluate(self._laws[d], numbers(system, t, y[..., :nq], y[..., nq:]))
        columns = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in entries), y[..., 0])[:-1]
        rows = np.stack(columns, axis=-1)
        if d.target == "tau":
            self.tau = rows
        else:
            self.wrenches = rows

    def __call__(self, t: float, y: Floats) -> Floats:
        q, u, udot = self.accelerations(t, y)
        return np.concatenate([self.system.model.configuration.qdot(q, u), udot], axis=-1)

    def accelerations(self, t: float, y: Floats) -> tuple[Floats, Floats, Floats]:
        """Accelerations, and the states they are those of: closed ones where the method needs that."""
        system = self.system
        for d in self.drives:
            if d.period is None:
                self._apply(d, t, y)
        if system.model.tree.looped and (self.closing == "velocity" or (
                self.closing == "position" and system.model.dense_loops)):  # redundant only where loops are closed
            y = self.correct(y, t)
        q, u = y[..., :self._nq], y[..., self._nq:]
        tau, wrenches = self.forces(t, q, u)
        if self._plan is None:
            udot = system.forward_dynamics(q, u, tau, wrenches=wrenches, t=t)
        else:
            udot, self._plan = run_by_plan(system.plans, "forward_dynamics", {"q": q, "u": u, "tau": tau}, wrenches, t,
                                           self._plan)
        return q, u, udot

    def forces(self, t: npt.ArrayLike, q: Floats, u: Floats) -> tuple[Floats, Floats | None]:
        """Joint forces, and wrenches on bodies as users order them."""
        system, wrenches = self.system, None
        if self.wrenches is not None:
            shaped = self.wrenches.reshape(*self.wrenches.shape[:-1], -1, 6)
            wrenches = np.empty_like(shaped)
            wrenches[..., wrench_order(system.model.tree), :] = shaped
        return np.broadcast_to(self.tau, (*u.shape[:-1], self.tau.shape[-1])), wrenches

    def dense(self, t: npt.ArrayLike, y: Floats) -> Floats:
        """The same rates from the full equations, whatever the method, of closed states; times fit the states unless
        there are drives."""
        system = self.system
        for d in self.drives:
            if d.period is None:
                self._apply(d, float(np.asarray(t)), y)
        q, u = y[..., :self._nq], y[..., self._nq:]
        tau, wrenches = self.forces(t, q, u)
        udot = dense_dynamics(system.plans, {"q": q, "u": u, "tau": tau}, wrenches, t)[0]
        return np.concatenate([system.model.configuration.qdot(q, u), udot], axis=-1)

    def acting(self, t: float, x: Floats) -> tuple[Floats, Floats | None, Floats]:
        """Joint forces, wrenches on bodies and accelerations of one state, x of shape (size,)."""
        kept = self.tau, self.wrenches
        self.tau, self.wrenches = kept[0][0], None if kept[1] is None else kept[1][0]
        try:
            rates = self(t, x)[self._nq:]
            return *self.forces(t, x[:self._nq], x[self._nq:]), rates
        finally:
            self.tau, self.wrenches = kept

    def of_one(self, state: int, t: float, x: Floats) -> Floats:
        """The rate of one state of the batch, x of shape (size,)."""
        tau, wrenches = self.tau, self.wrenches
        self.tau = tau[state if len(tau) > 1 else 0]
        self.wrenches = None if wrenches is None else wrenches[state if len(wrenches) > 1 else 0]
        try:
            return self(t, x)
        finally:
            self.tau, self.wrenches = tau, wrenches

    def correct(self, y: Floats, t: float) -> Floats:
        """Back onto loops, unit quaternions and prescribed motions."""
        system = self.system
        q, u = system.normalize(y[..., :self._nq]), y[..., self._nq:].copy()
        driven = system.model.prescribed_mask()
        if driven.any():
            u = np.where(driven, system.kernels.run("driven_speeds", {"q": q, "u": u}, None, t), u)
            q = system.kernels.run("displaced", {"q": q, "dq": np.zeros(system.nu)}, None, t)
        if system.model.tree.looped and self.closing != "none":
            closed = None if system.model.dense_loops and system.nu <= _FEW else self._onto_loops(q, u, t)
            q, u = self._nearest(q, u, t) if closed is None else closed
        return np.concatenate([q, u], axis=-1)

    def _nearest(self, q: Floats, u: Floats, t: float) -> tuple[Floats, Floats]:
        """The nearest states with closed loops. Methods without plans correct all stages of a step: along the plan of
        another method that does harm near bad pivots. Cost: O(nu^3) per state, so that large machines go without."""
        system = self.system
        target = Target(system.model.bound_mask(), 1.0 / system.model.tree.speed_sizes)
        if self.closing == "position":
            q, _ = system.plans.closer.close(q, target, t)
        return q, project(system.plans.loops, q, u, target, t)[0]

    def _onto_loops(self, q: Floats, u: Floats, t: float) -> tuple[Floats, Floats] | None:
        """The corrections of the compiled steps (see `formulations.elimination.projection`); None, and another plan for
        the next step, if the plan's pivots have shrunk too much."""
        system = self.system
        plan = self._plan or system.plans.first(q, t)
        run = system.kernels.planned(plan)
        try:
            for _ in range(ROUNDS if self.closing == "position" else 0):
                shift = system.kernels.run("displacements", {"q": q}, None, t, run)
                q = system.integrate(q, shift)
                if np.abs(shift).max(initial=0.0) <= NEAR:
                    break
            return q, u + system.kernels.run("speed_changes", {"q": q, "u": u}, None, t, run)
        except SingularError:
            with suppress(SingularError):
                self._plan = system.plans.at(q.reshape(-1, self._nq)[0], t)
            return None


class ReferenceRun:
    """Fixed steps of a batch of states; see `FixedRun`, whose interface it has."""

    def __init__(self, rhs: Rhs, kind: Integrator, y: Floats, start: float, step: float, hold: int = 1) -> None:
        self.rhs, self.kind, self.step, self.hold = rhs, kind, step, hold
        self.y, self.start, self.done = y.copy(), start, 0
        self.failures: list[Failure] = []
        self.switches = 0

    @property
    def time(self) -> float:
        return self.start + self.done * self.step

    def forgive(self) -> None:
        """Let states that have failed go on, from other positions."""
        self.failures = []

    def begin(self) -> None:
        """Nothing is compiled for the whole run."""

    def prepare(self) -> None:
        """See `FixedRun.prepare`."""
        self.rhs.prepare(self.time, self.y)

    def give_up(self, failure: Failure, y: Floats) -> None:
        """A state shall not go on from where it was."""
        self.failures = [*(f for f in self.failures if f.state != failure.state), failure]
        self.y[failure.state] = y

    def advance(self, steps: int, every: int) -> Floats:
        """Take steps; samples (samples, states, size) after every `every`-th one since the start."""
        out = np.full(((self.done + steps) // every - self.done // every, *self.y.shape), np.nan)
        row = 0
        for _ in range(steps):
            t = self.time
            if self.done % self.hold == 0:
                self.rhs.hold(t, self.y)
            self._all(t)
            self.done += 1
            if self.done % every == 0:
                out[row] = self.y
                out[row, [f.state for f in self.failures]] = np.nan
                row += 1
        return out

    def _all(self, t: float) -> None:
        """One step of all states; if that fails, one after another."""
        failed = {f.state for f in self.failures}
        if not failed:
            try:
                self.y = self.rhs.correct(self._one(self.y, t, self.step), t + self.step)
                return
            except (BellcrankError, ArithmeticError):
                pass
        for i in sorted(set(range(len(self.y))) - failed):
            try:
                self.y[i] = self.partial(self.y[i], t, self.step, i)
            except (BellcrankError, ArithmeticError) as error:
                self.failures.append(Failure(i, t, str(error)))

    def partial(self, y: Floats, t: float, step: float, state: int = 0) -> Floats:
        """One step of any length from one state, without changing where the run is."""
        if self.rhs.system.model.batched:  # each state has its own: all of them make the step
            y = np.repeat(y[None], len(self.y), axis=0)
            return np.asarray(self.rhs.correct(self._one(y, t, step), t + step)[state])
        tau, wrenches = self.rhs.tau, self.rhs.wrenches
        self.rhs.tau = tau[state:state + 1] if len(tau) > 1 else tau
        self.rhs.wrenches = wrenches[state:state + 1] if wrenches is not None and len(wrenches) > 1 else wrenches
        try:
            return np.asarray(self.rhs.correct(self._one(y[None], t, step), t + step)[0])
        finally:
            self.rhs.tau, self.rhs.wrenches = tau, wrenches

    def _one(self, y: Floats, t: float, h: float) -> Floats:
        tableau = self.kind.tableau() if self.kind.tableau else None
        if isinstance(tableau, Explicit):
            return explicit_step(self.rhs, tableau, y, t, h)
        if isinstance(tableau, Collocation):
            return np.stack([collocation_step(self.rhs, tableau, row[None], t, h)[0] for row in y])
        nq = self.rhs.system.nq
        new = y.copy()
        new[..., nq:] += h * self.rhs(t, y)[..., nq:]
        speeds = self.rhs.correct(np.concatenate([y[..., :nq], new[..., nq:]], axis=-1), t)[..., nq:] \
            if self.rhs.closing == "velocity" else new[..., nq:]
        new[..., :nq] += h * self.rhs.system.model.configuration.qdot(y[..., :nq], speeds)
        return new


def explicit_step(rhs: Rhs, tableau: Explicit, y: Floats, t: float, h: float) -> Floats:
    """One step of an explicit method."""
    slopes: list[Floats] = []
    for row, c in zip(tableau.a, tableau.c, strict=True):
        stage = y + h * sum((w * k for w, k in zip(row, slopes, strict=False)), np.zeros_like(y))
        slopes.append(rhs(t + c * h, stage))
    return np.asarray(y + h * sum((w * k for w, k in zip(tableau.b, slopes, strict=True)), np.zeros_like(y)))


def collocation_step(rhs: Rhs, tableau: Collocation, y: Floats, t: float, h: float) -> Floats:
    """One step of an implicit method for one state, y of shape (1, size), by simplified Newton iteration."""
    size, s = y.shape[-1], tableau.stages
    delta = 1.5e-8 * (1.0 + np.abs(y[0]))
    jacobian = ((rhs(t, y + np.diag(delta)) - rhs(t, y)) / delta[:, None]).T
    matrix = np.eye(s * size) - h * np.kron(tableau.a, jacobian)
    z = np.zeros((s, size))
    before = np.inf
    for _ in range(30):
        slopes = np.concatenate([rhs(t + c * h, y + z[i]) for i, c in enumerate(tableau.c)])
        change = np.linalg.solve(matrix, (h * tableau.a @ slopes - z).ravel()).reshape(s, size)
        z = z + change
        largest = float((np.abs(change) / (1.0 + np.abs(y))).max())
        if largest <= 1e-14 or (largest > 0.3 * before and largest < 1e-9):
            return np.asarray(y + tableau.d @ z)
        before = largest
    raise BellcrankError(f"the implicit step from t = {t:.6g} s does not converge; take smaller steps")
