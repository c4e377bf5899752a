"""Adaptive steps: each state of a batch has its own, samples are at common times."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import BellcrankError
from bellcrank.loops.tolerances import CLOSED
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.fixed import Failure
from bellcrank.simulate.steppers import AdaptiveStepper, FixedStepper, Integrator, Stretch

__all__ = ["VaryingRun"]

Floats = npt.NDArray[np.float64]

#: steps between returns to Python
LIMIT = 2000
#: steps after which momenta are freed of the loops' impulses
GATHERED = 500


class VaryingRun:
    """A batch of states with step-size control."""

    def __init__(self, equations: Equations, kind: Integrator, y: Floats, start: float, step: float | None, rtol: float,
                 atol: float, threads: int | None = None) -> None:
        self.equations, self.kind, self.rtol, self.atol = equations, kind, rtol, atol
        self.time = start
        self.failures: list[Failure] = []
        self.switches, self.steps, self.rejected = 0, 0, 0
        self.threads = threads or os.cpu_count() or 1
        self.states = [_StateRun(self, i, row, start, step) for i, row in enumerate(y)]

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
        self.failures = [s.failure for s in self.states if s.failure is not None]
        return out

    def _together(self, times: Floats, need: int, end: float) -> Floats:
        out = np.full((need, len(self.states), len(self.states[0].y)), np.nan)

        def work(s: _StateRun) -> None:
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
        """One step of a given length from one state."""
        from bellcrank.simulate.steppers import STEPPERS

        explicit = STEPPERS["rk8"]  # higher order than any pair's own step needs
        stepper = FixedStepper(self.equations.code(self.states[0].plan, 1), explicit)
        inputs = self.equations.inputs(np.zeros(1, dtype=np.int64))
        got = stepper.run(y[None], inputs, t - step, step, 1, 1, 1, 2)
        if not got.done[0]:
            raise BellcrankError(f"a step from t = {t:.6g} gives numbers that are not finite")
        return np.asarray(got.y[0])

    def restart(self, t: float, y: Floats) -> None:
        """Go on from other states at time t."""
        self.time = t
        for s, row in zip(self.states, y, strict=True):
            s.begin(row, t, s.stepper.step if s.stepper is not None else None)
        self.failures = []


class _StateRun:
    """One state on its way."""

    def __init__(self, run: VaryingRun, index: int, y: Floats, t: float, step: float | None) -> None:
        self.run, self.index = run, index
        self.plan: Any = run.equations.first_plan(y[:run.equations.system.nq], t)
        self.failure: Failure | None = None
        self._spare: Any = None  #: a plan for places that steps pass over
        self.steps = self.rejected = self.switches = self._gathered = 0
        self.stepper: AdaptiveStepper | None = None
        self.path: list[tuple[Floats, Floats]] = []  #: times and states of the last stretch's steps
        self.begin(y, t, step)

    def begin(self, y: Floats, t: float, step: float | None) -> None:
        self.y, self.t, self.h = y.copy(), t, step
        self.queue = np.zeros((0, len(y)))  #: samples passed and not taken yet
        self.failure = None
        self.stepper = None

    def _start(self, end: float) -> AdaptiveStepper:
        """A stepper for the current plan, loaded with the state."""
        run = self.run
        stepper = AdaptiveStepper(run.equations.code(self.plan, 1), run.kind, run.rtol, run.atol)
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
            elif part.status == 1:
                shrink, fresh = self._plan_again(fresh and not len(part.times))
            else:
                self._fail("steps become too short: the motion cannot go on past this point (an unbounded force, a "
                           "stop, or a singular position)")

    def _mend(self, part: Stretch, times: Floats) -> None:
        """Samples inside a step are corrected with the plan of the step. Where a long step passes over a position at
        which that plan is no good, they come as interpolated, and are brought to the nearest state that is closed; if
        not even the interpolant is finite there, steps are made to the sample."""
        ends = np.concatenate([self.path[-1][0][-1:], part.times])
        states = np.concatenate([self.path[-1][1][-1:], part.states])
        for k in np.flatnonzero(part.open):
            t = float(times[k])
            if np.isfinite(part.samples[k]).all():
                part.samples[k], left = self.run.equations.closed(part.samples[k], t, self.index)
            else:
                i = min(max(int(np.searchsorted(ends, t)), 1), len(ends) - 1)
                part.samples[k], left = self._reached(states[i - 1], float(ends[i - 1]), t, states[i])
            if left > CLOSED:
                self._fail(f"the sample at t = {t:.9g} s cannot be computed: it is next to a singular position")
                return

    def _reached(self, y: Floats, t: float, goal: float, beyond: Floats) -> tuple[Floats, float]:
        """The state at `goal` between two states, by steps that end there; and 0, or infinity if that fails."""
        system = self.run.equations.system
        other = _StateRun(self.run, self.index, y, t, goal - t)
        if self._spare is None:
            with suppress(BellcrankError):
                self._spare = self.run.equations.plan_at(system.normalize(0.5 * (y + beyond)[:system.nq]), goal)
        other.plan = self._spare or self.plan
        other.go(np.zeros(0), goal, LIMIT)
        self._spare = other.plan  # good there: samples near it need it too
        return other.y, 0.0 if other.failure is None and other.t >= goal else np.inf

    def _plan_again(self, tried: bool) -> tuple[bool, bool]:
        """Other independent speeds, if they are to blame; else shorter steps. Returns (shrink, fresh)."""
        try:
            plan = self.run.equations.plan_at(self.y[:self.run.equations.system.nq], self.t, wishes=not tried)
        except BellcrankError as error:
            self._fail(str(error))
            return True, True
        if plan is None or plan.key == self.plan.key:
            return True, True
        self.plan, self.stepper = plan, None
        self.switches += 1
        return False, True

    def _fail(self, reason: str) -> None:
        self.failure = Failure(self.index, self.t, reason)
