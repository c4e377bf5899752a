"""Adaptive steps of a batch whose states are threads of a device, each with its own steps.

A state that has stopped gets another plan for its loops, or shorter steps; one for which nothing of that helps, or
whose samples need a closer look, is the CPU's for the rest of the run, where it may pass singular positions or is told
of. No state's numbers depend on the others, or on where pieces end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, SingularError
from bellcrank.simulate.crossing import weak
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.failure import Failure
from bellcrank.simulate.lane_steppers import LanesReached, LaneStepper
from bellcrank.simulate.steppers import Integrator
from bellcrank.simulate.varying import LIMIT, StateRun, VaryingRun

__all__ = ["VaryingLanes"]

Ints = npt.NDArray[np.int64]


@dataclass
class _LanesThere:
    """Some states on the device; `known`: whether the process has the same numbers."""

    members: Ints
    stepper: LaneStepper
    y: Any
    given: Any
    token: tuple[Any, ...]  #: the inputs that were given
    known: bool = True


class VaryingLanes(VaryingRun):
    """See `VaryingRun`."""

    def __init__(self, equations: Equations, kind: Integrator, y: Floats, start: float, step: float | None, rtol: float,
                 atol: float, threads: int | None, reach: Floats) -> None:
        super().__init__(equations, kind, y[:0], start, step, rtol, atol, threads, reach)
        self._y, self._t, self._first_step = y.copy(), np.full(len(y), start), step
        self._h: Floats | None = None
        self._plans: list[Any] = [equations.first_plan(y[0, :equations.system.nq], start)] * len(y)
        self._shrink = np.zeros(len(y), dtype=bool)  #: states whose next step may become as short as it has to
        self._worse = np.zeros(len(y), dtype=np.int64)  #: 1 for states whose last attempt at a step was rejected
        self._fresh = np.zeros(len(y), dtype=bool)  #: states whose plan was made where they are now
        self._alone: dict[int, StateRun] = {}  #: states that the CPU looks after
        self._steppers: dict[Any, LaneStepper] = {}
        self._there: dict[bytes, _LanesThere] = {}  #: groups of states on the device, where `_y` may lag behind
        self._taken = self._rejections = self._changes = 0  #: of all states here
        #: a method that begins each piece with a new Jacobian: where pieces end must not depend on the clock
        self.steady = "radau" in kind.name

    @property
    def y(self) -> Floats:
        self._fetch()
        out = self._y.copy()
        for i, s in self._alone.items():
            out[i] = s.y
        return out

    def begin(self) -> None:
        self._stepper(self._plans[0])

    def _stepper(self, plan: Any) -> LaneStepper:
        key = None if plan is None else plan.key
        if key not in self._steppers:
            code = self.equations.code(plan, self.equations.backend.lanes())
            self._steppers[key] = LaneStepper(code, self.kind, self.rtol, self.atol, self.reach)
        return self._steppers[key]

    def advance(self, times: Floats, need: int, end: float, steps: int) -> Floats:
        """See `VaryingRun.advance`."""
        out = np.full((need, *self._y.shape), np.nan)
        if self._h is None:
            first = self._first_step
            self._h = np.full(len(self._y), min(1e-3, 0.01 * max(end - self.time, 1e-9)) if first is None else first)
        have = np.zeros(len(self._y), dtype=np.int64)
        going = np.setdiff1d(np.arange(len(self._y)), list(self._alone))
        while len(going):
            stopped = [self._launch(group, times[:need], end, need < len(times), have, out)
                       for group in self._groups(going)]
            self._plan_again(np.concatenate(stopped))
            going = np.array([i for i in going.tolist() if i not in self._alone], dtype=np.int64)
            going = going[(self._t[going] < end) & ((have[going] < need) | (need == len(times)))]
        for i, s in self._alone.items():
            self._by_the_cpu(s, times, need, end, int(have[i]), out)
        self.time = end if need == len(times) else float(times[need - 1])
        self._count()
        return out

    def _groups(self, states: Ints) -> list[Ints]:
        """States that share a plan, and whether steps are to become shorter."""
        groups: dict[Any, list[int]] = {}
        for i in states.tolist():
            plan = self._plans[i]
            groups.setdefault((None if plan is None else plan.key, bool(self._shrink[i])), []).append(i)
        return [np.array(members) for members in groups.values()]

    def _launch(self, group: Ints, times: Floats, end: float, pause: bool, have: Ints, out: Floats) -> Ints:
        """Go on with states of one plan; those that have stopped."""
        assert self._h is not None
        shrink = bool(self._shrink[group[0]])
        lanes = self._placed(group)
        got = lanes.stepper.run(lanes.y, lanes.given, self._t[group], self._h[group], end, times, have[group],
                                self._worse[group], 1 if shrink else LIMIT, shrink, pause)
        lanes.known = False
        self._sampled(group, got, have, out)
        self._t[group], self._h[group] = got.t, got.h
        self._worse[group] = np.where(got.status == 0, got.worse, 0)
        self._taken += int(got.steps.sum())
        self._rejections += int(got.rejected.sum())
        moved = group[got.steps > 0]
        self._changes += int((self._fresh[moved] & ~self._shrink[moved]).sum())
        self._fresh[moved] = self._shrink[moved] = False
        for i in group[got.status >= 2].tolist():
            self._leave(i)
        stopped: Ints = group[got.status == 1]
        return stopped

    # -- states on the device -------------------------------------------------------------------------
    def _placed(self, group: Ints) -> _LanesThere:
        """States on the device: as they are if they are, with inputs made anew if these have changed."""
        equations, key = self.equations, group.tobytes()
        stepper, token = self._stepper(self._plans[int(group[0])]), (equations.tau, equations.wrenches)
        lanes = self._there.get(key)
        if lanes is None or lanes.stepper is not stepper:
            self._fetch()
            for other, some in list(self._there.items()):
                if np.isin(some.members, group).any():
                    del self._there[other]
            self._there[key] = lanes = _LanesThere(group, stepper, stepper.placed(self._y[group]), None, ())
        if not lanes.token or any(a is not b for a, b in zip(token, lanes.token, strict=True)):
            lanes.given, lanes.token = stepper.given(equations.inputs(group), len(group)), token
        return lanes

    def _fetch(self) -> None:
        """Bring the states of this process up to date."""
        for lanes in self._there.values():
            if not lanes.known:
                self._y[lanes.members] = lanes.stepper.rows(lanes.y, len(lanes.members))
                lanes.known = True

    def _sampled(self, group: Ints, got: LanesReached, have: Ints, out: Floats) -> None:
        before, after = have[group], got.sampled
        rows, lanes = np.nonzero((np.arange(len(got.samples))[:, None] >= before)
                                 & (np.arange(len(got.samples))[:, None] < after))
        out[rows, group[lanes]] = got.samples[rows, lanes]
        have[group] = after

    # -- states that have stopped ---------------------------------------------------------------------
    def _plan_again(self, states: Ints) -> None:
        """Each state by itself: its plan must not depend on which others have stopped in the same piece."""
        if len(states):
            self._fetch()
        for i in states.tolist():
            try:
                plan = self._another(i, bool(self._fresh[i]))
            except BellcrankError:  # there is none, or a weak one: the CPU finds a passage, or says why not
                self._leave(i)
                continue
            old = self._plans[i]
            self._shrink[i], self._plans[i], self._fresh[i] = plan is old or plan.key == old.key, plan, True

    def _another(self, i: int, tried: bool) -> Any:
        """A plan for where a state is: it may be the old one, if steps are to blame."""
        equations, q, t = self.equations, self._y[i, :self.equations.system.nq], float(self._t[i])
        plan = equations.plan_at(q, t, wishes=not tried)
        if plan is not None and weak(equations.single(i), q, t):
            raise SingularError("a singular position")
        return plan

    def _leave(self, i: int) -> None:
        """Leave a state to the CPU."""
        assert self._h is not None
        self._fetch()
        self._alone[i] = state = StateRun(self, i, self._y[i], float(self._t[i]), float(self._h[i]))
        state.plan = self._plans[i]

    def _by_the_cpu(self, s: StateRun, times: Floats, need: int, end: float, have: int, out: Floats) -> None:
        while s.failure is None and (have + len(s.queue) < need or (need == len(times) and s.t < end)):
            s.go(times[have + len(s.queue):], end, LIMIT)
        rows = s.taken(min(need - have, len(s.queue)))
        out[have:have + len(rows), s.index] = rows

    def _count(self) -> None:
        alone = list(self._alone.values())
        self.steps = self._taken + sum(s.steps for s in alone)
        self.rejected = self._rejections + sum(s.rejected for s in alone)
        self.switches = self._changes + sum(s.switches for s in alone)
        self.crossings = sum(s.crossings for s in alone)
        self.failures: list[Failure] = [s.failure for s in alone if s.failure is not None]

