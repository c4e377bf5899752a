"""Adaptive steps: each state of a batch has its own, samples are at common times."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, SingularError
from bellcrank.loops.tolerances import CLOSED
from bellcrank.simulate.crossing import Crossing, at_rest, weak
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.failure import Failure, trouble_ahead
from bellcrank.simulate.steppers import AdaptiveStepper, FixedStepper, Integrator, Stretch

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan

__all__ = ["LIMIT", "StateRun", "VaryingRun"]

#: steps between returns to Python
LIMIT = 2000
#: steps after which momenta are freed of the loops' impulses
GATHERED = 500
_TOO_SHORT = BellcrankError("steps become too short: the motion cannot go on past this point (an unbounded force, a "
                            "stop, or a singular position)")


class VaryingRun:
    """A batch of states with step-size control."""

    steady = False  #: whether pieces must have the same length whenever it is run

    def __init__(self, equations: Equations, kind: Integrator, y: Floats, start: float, step: float | None, rtol: float,
                 atol: float, threads: int | None, reach: Floats) -> None:
        self.equations, self.kind, self.rtol, self.atol, self.reach = equations, kind, rtol, atol, reach
        self.time = start
        self.failures: list[Failure] = []
        self.switches = self.crossings = self.steps = self.rejected = 0
        self._single: FixedStepper | None = None  #: makes single steps
        self.threads = threads or os.cpu_count() or 1
        self.states = [StateRun(self, i, row, start, step) for i, row in enumerate(y)]

    @property
    def y(self) -> Floats:
        return np.stack([s.y for s in self.states])

    def begin(self) -> None:
        """Begin to compile what the first steps need."""
        self.equations.code(self.states[0].plan, 1)

    def prepare(self) -> None:
        """See `FixedRun.prepare`: there is nothing left to be done."""
        self.begin()

    def advance(self, times: Floats, need: int, end: float, steps: int) -> Floats:
        """Go on towards `end`, where steps are cut, sampling at the `times` up to there; samples (k, states, size).

        A single state takes `steps` steps and returns the samples it has passed. The states of a batch go on until
        `need` of the samples are known (all of them: to the end); NaN for states that have failed. Where pieces end
        does not change any number.
        """
        if len(self.states) == 1:
            state = self.states[0]
            state.go(times, end, steps)
            out = state.taken(len(state.queue))[:, None]
            self.time = state.t
        else:
            out = self._together(times, need, end)
            self.time = end if need == len(times) else float(times[need - 1])
        self.steps = sum(s.steps for s in self.states)
        self.rejected = sum(s.rejected for s in self.states)
        self.switches = sum(s.switches for s in self.states)
        self.crossings = sum(s.crossings for s in self.states)
        self.failures = [s.failure for s in self.states if s.failure is not None]
        return out

    def _together(self, times: Floats, need: int, end: float) -> Floats:
        out = np.full((need, len(self.states), len(self.states[0].y)), np.nan)

        def work(s: StateRun) -> None:
            while s.failure is None and (len(s.queue) < need or (need == len(times) and s.t < end)):
                s.go(times[len(s.queue):], end, LIMIT)
            rows = s.taken(min(need, len(s.queue)))
            out[:len(rows), s.index] = rows

        if self.threads < 2:
            for s in self.states:
                work(s)
        else:
            self.equations.code(self.states[0].plan, 1)  # compile before threads start
            with ThreadPoolExecutor(self.threads) as pool:
                list(pool.map(work, self.states))
        return out

    def partial(self, y: Floats, t: float, step: float) -> Floats:
        """One step of a given length from one state, by the plan that served before it or by one made there: it does
        not depend on how far the run has gone on."""
        state, inputs = self.states[0], self.equations.inputs(np.zeros(1, dtype=np.int64))
        for plan in (lambda: state.plan_before(t), lambda: self.equations.plan_at(y[:self.equations.system.nq], t)):
            with suppress(SingularError):
                got = self._one_step(plan()).run(y[None], inputs, t - step, step, 1, 1, 1, 2)
                if got.done[0]:
                    return np.asarray(got.y[0])
        crossing = Crossing.of(self.equations, 0)
        found = crossing.passage(crossing.state(y, t), t, step, 1)
        if found is None:
            raise BellcrankError(f"a step from t = {t:.6g} gives numbers that are not finite")
        return crossing.packed(found.last, t + step)

    def _one_step(self, plan: Any) -> FixedStepper:
        from bellcrank.simulate.steppers import STEPPERS

        code = self.equations.code(plan, 1)
        if self._single is None or self._single.code is not code:
            self._single = FixedStepper(code, STEPPERS["rk8"])  # higher order than any pair's own step needs
        return self._single

    def restart(self, t: float, y: Floats) -> None:
        """Go on from other states at time t, with nothing that was found out later."""
        self.time = t
        for s, row in zip(self.states, y, strict=True):
            s.forget_after(t)
            s.begin(row, t, s.step_to(t))
        self.failures = []


class StateRun:
    """One state on its way."""

    def __init__(self, run: VaryingRun, index: int, y: Floats, t: float, step: float | None) -> None:
        self.run, self.index = run, index
        self.plan: Any = run.equations.first_plan(y[:run.equations.system.nq], t)
        self.plans_taken: list[tuple[float, Any]] = [(t, self.plan)]  #: and the times from which on they serve
        self.failure: Failure | None = None
        self._spare: Any = None  #: a plan for places that steps pass over
        self.steps = self.rejected = self.switches = self.crossings = self._gathered = 0
        self._unhelpful = False  #: whether weak plans serve better than passages
        self.stepper: AdaptiveStepper | None = None
        self.path: list[tuple[Floats, Floats]] = []  #: times and states of the last stretch's steps
        self.begin(y, t, step)

    def plan_before(self, t: float) -> Any:
        """The plan of the steps that led to a time."""
        return next((plan for when, plan in reversed(self.plans_taken) if when < t), self.plans_taken[0][1])

    def _adopt(self, plan: Any) -> None:
        self.plan = plan
        self.plans_taken.append((self.t, plan))

    def forget_after(self, t: float) -> None:
        """Take the plan that had been taken up to a time."""
        self.plans_taken = [x for i, x in enumerate(self.plans_taken) if i == 0 or x[0] < t]
        self.plan = self.plans_taken[-1][1]

    def step_to(self, t: float) -> float | None:
        """The length of the step that led to a time or beyond, which does not depend on where the stretch ended."""
        ends = np.concatenate([times for times, _ in self.path]) if self.path else np.zeros(0)
        later = int(np.searchsorted(ends, t))
        if 0 < later < len(ends):
            return float(ends[later] - ends[later - 1])
        return self.stepper.step if self.stepper is not None else None

    def begin(self, y: Floats, t: float, step: float | None) -> None:
        self.y, self.t, self.h = y.copy(), t, step
        self.queue = np.zeros((0, len(y)))  #: samples passed and not taken yet
        self.failure = None
        self.stepper = None

    def _start(self, end: float) -> AdaptiveStepper:
        """A stepper for the current plan, loaded with the state."""
        run = self.run
        stepper = AdaptiveStepper(run.equations.code(self.plan, 1), run.kind, run.rtol, run.atol, run.reach)
        h = self.h if self.h is not None else min(1e-3, 0.01 * max(end - self.t, 1e-9))
        stepper.load(self.y, self.t, h)
        return stepper

    def _start_over(self) -> None:
        """Momenta of machines with loops gather impulses that mean nothing: they are left behind now and then."""
        equations = self.run.equations
        gathering = equations.momenta and equations.system.model.tree.looped and equations.closing != "none"
        if gathering and self.steps - self._gathered >= GATHERED:
            self._gathered = self.steps
            q, u = equations.unpack(self.y, self.t)
            self.y = equations.pack(q, u, self.t)
            if self.stepper is not None:
                self.stepper.load(self.y, self.t, self.stepper.step)

    def taken(self, count: int) -> Floats:
        """The first samples of the queue, which forgets them."""
        rows, self.queue = self.queue[:count], self.queue[count:]
        return rows

    def go(self, times: Floats, end: float, steps: int) -> None:
        """At most `steps` steps towards the end; samples at the times passed join the queue."""
        self.path = [(np.array([self.t]), self.y[None].copy())]
        reached, left, shrink, fresh = 0, steps, False, False
        while self.failure is None and self.t < end and left > 0:
            self._start_over()
            if self.stepper is None:
                self.stepper = self._start(end)
            self.stepper.feed(self.run.equations.inputs(np.array([self.index])))
            limit = min(left, GATHERED - (self.steps - self._gathered) % GATHERED)
            limit = 1 if shrink else limit  # a shorter step, and then another look at the plan
            part = self.stepper.run(end, times[reached:], limit, shrink)
            self._mend(part, times[reached:])
            self.queue = np.concatenate([self.queue, part.samples]) if len(self.queue) else part.samples
            reached += len(part.samples)
            left -= len(part.times)
            self.steps += len(part.times)
            self.rejected += part.rejected
            self.path.append((part.times, part.states))
            self.y, self.t, self.h = self.stepper.state, self.stepper.time, self.stepper.step
            if part.status == 0:
                shrink = fresh = False
                continue
            plan = self._another(fresh and not len(part.times)) if part.status == 1 else _TOO_SHORT
            passed = self._passed(times[reached:], end) if self._weak(plan) else None
            if passed is None:
                shrink, fresh = self._go_on_with(plan), True
                continue
            self.queue = np.concatenate([self.queue, passed])
            reached, left, shrink, fresh = reached + len(passed), left - 1, False, False

    def _mend(self, part: Stretch, times: Floats) -> None:
        """Samples inside a step are corrected with the plan of the step. Where a long step passes over a position at
        which that plan is no good, they come as interpolated, and are brought to the nearest state that is closed. Next
        to a singular position that is none in particular: there the step is looked at anew as a passage; if not even
        the interpolant is finite, steps are made to the sample."""
        ends = np.concatenate([self.path[-1][0][-1:], part.times])
        states = np.concatenate([self.path[-1][1][-1:], part.states])
        taken = times[:len(part.samples)]
        smooth: dict[int, bool] = {}  # steps looked at anew, and whether that helped
        for k in np.flatnonzero(part.open):
            t = float(times[k])
            i = min(max(int(np.searchsorted(ends, t)), 1), len(ends) - 1)
            if i not in smooth:
                inside = np.flatnonzero((taken > ends[i - 1]) & (taken < ends[i]))
                smooth[i] = self._singular(part.samples[k], t) and self._resampled(
                    part.samples, times, inside, states[i - 1], float(ends[i - 1]), float(ends[i]))
            if smooth[i]:
                continue
            if np.isfinite(part.samples[k]).all():
                part.samples[k], left = self.run.equations.closed(part.samples[k], t, self.index)
            else:
                part.samples[k], left = self._reached(states[i - 1], float(ends[i - 1]), t, states[i])
            if left > CLOSED:
                self._fail(f"the sample at t = {t:.9g} s cannot be computed: it is next to a singular position")
                return

    def _singular(self, y: Floats, t: float) -> bool:
        """Whether a state is next to a singular position, or is none at all."""
        system = self.run.equations.single(self.index)
        return not np.isfinite(y).all() or weak(system, y[:system.nq], t)

    def _resampled(self, samples: Floats, times: Floats, inside: npt.NDArray[np.int64], y: Floats, t: float, end: float
                   ) -> bool:
        """Samples of one step that passes a singular position, from a passage over it; false if there is none."""
        try:
            crossing = Crossing.of(self.run.equations, self.index)
            found = crossing.passage(crossing.state(y, t), t, end - t, 1)
            if found is not None:
                for k in inside.tolist():
                    samples[k] = crossing.sample(found, float(times[k]))
            return found is not None
        except (BellcrankError, ArithmeticError):
            return False

    def _reached(self, y: Floats, t: float, goal: float, beyond: Floats) -> tuple[Floats, float]:
        """The state at `goal` between two states, by steps that end there; and 0, or infinity if that fails."""
        system = self.run.equations.system
        other = StateRun(self.run, self.index, y, t, goal - t)
        if self._spare is None:
            with suppress(BellcrankError):
                self._spare = self.run.equations.plan_at(system.normalize(0.5 * (y + beyond)[:system.nq]), goal)
        other.plan = self._spare or self.plan
        other.go(np.zeros(0), goal, LIMIT)
        self._spare = other.plan  # good there: samples near it need it too
        return other.y, 0.0 if other.failure is None and other.t >= goal else np.inf

    def _another(self, tried: bool) -> LoopPlan | BellcrankError | None:
        """Other independent speeds for where the state is, if there are any; or why not."""
        equations, nq = self.run.equations, self.run.equations.system.nq
        try:
            return equations.plan_at(self.y[:nq], self.t, wishes=not tried)
        except BellcrankError as error:
            return BellcrankError(str(error) + at_rest(equations.system, self.y))

    def _go_on_with(self, plan: LoopPlan | BellcrankError | None) -> bool:
        """Take a plan; whether steps have to become shorter, because the plan is not to blame."""
        if isinstance(plan, BellcrankError):
            self._fail(str(plan))
            return True
        if plan is None or plan.key == self.plan.key:
            return True
        self._adopt(plan)
        self.stepper = None
        self.switches += 1
        return False

    # -- singular positions -----------------------------------------------------------------------
    def _weak(self, plan: LoopPlan | BellcrankError | None) -> bool:
        """Whether a passage is better than a plan."""
        if plan is None or isinstance(plan, BellcrankError):
            return self.run.equations.system.model.tree.looped and plan is not None
        system = self.run.equations.single(self.index)
        return not self._unhelpful and weak(system, self.y[:system.nq], self.t)

    def _passed(self, times: Floats, end: float) -> Floats | None:
        """Pass a singular position, at most to the end, as one step; samples at the times in it, None if there is no
        passage."""
        equations, h = self.run.equations, self.h or 1e-3
        room = end - self.t
        unit = min(h, room)
        try:
            crossing = Crossing.of(equations, self.index)
            found = crossing.passage(crossing.state(self.y, self.t), self.t, unit, int(room / unit))
            if found is None:
                self._unhelpful = True
                return None
            last = found.start + found.length
            last = end if last > end - 1e-9 * unit else last
            rows = [crossing.packed(found.last, t) if t >= last else crossing.sample(found, t)
                    for t in times[times <= last].tolist()]
            self.y, self.t = crossing.packed(found.last, last), last
        except (BellcrankError, ArithmeticError):
            return None
        self.stepper = None
        self.steps, self.crossings = self.steps + 1, self.crossings + 1
        self.path.append((np.array([last]), self.y[None]))
        with suppress(BellcrankError):
            self._adopt(equations.plan_at(self.y[:equations.system.nq], last))
        return np.stack(rows) if rows else np.zeros((0, len(self.y)))

    def _fail(self, reason: str) -> None:
        equations = self.run.equations
        q, u = equations.unpack(self.y, self.t)
        trouble = trouble_ahead(equations.single(self.index), q, u, self.t, self.h or 1e-3)
        reason = f"{reason}; {trouble}" if trouble and trouble not in reason else reason
        self.failure = Failure(self.index, self.t, reason)
