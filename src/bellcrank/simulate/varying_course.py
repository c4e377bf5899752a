"""The way of a run whose steps have any length, between sample times that are given."""

from __future__ import annotations

import time as clock
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.simulate.chosen_run import varying_run
from bellcrank.simulate.courses import Course, Piece
from bellcrank.simulate.varying import VaryingRun
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.simulate.external import ExternalRun
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["VaryingCourse"]

#: samples between restarts of other libraries' integrators: a fixed number, so that results do not depend on the clock
PER_PIECE = 100


class VaryingCourse(Course):
    """Steps of any length between given sample times."""

    run: VaryingRun | ExternalRun

    def __init__(self, setup: Setup, system: Machine, y: Floats, t: float) -> None:
        super().__init__(setup, system)
        self.pace = float(np.clip(5000.0 / setup.count, 1.0, 50.0))  # the first piece of a large batch, too, is short
        self.glances = tuple((i + 1) / 8 for i in range(8))  # steps are long
        self._next = 0  #: the first sample that is not known yet
        self.run = varying_run(setup, system, y, t, self.tau, self.wrenches)
        self.end = setup.start + setup.duration
        self._period = setup.period

    @property
    def time(self) -> float:
        return self.run.time

    @property
    def finished(self) -> bool:
        return self.time >= self.end

    def advance(self, watching: bool) -> Piece:
        setup, now, hard = self.setup, self.time, self.end
        if self._period is not None:  # controllers are asked at multiples of their period
            number = int(np.floor((now - setup.start) / self._period + 1e-9)) + 1
            hard = min(setup.start + number * self._period, self.end)
        times = setup.times[self._next:]
        times = times[times <= hard + 1e-12 * max(1.0, abs(hard))]
        begun = clock.perf_counter()
        if isinstance(self.run, VaryingRun):
            need = min(int(self.pace), len(times))
            rows = self.run.advance(np.minimum(times, hard), need, hard, int(self.pace))
            if not self.run.steady:
                self.adapt(clock.perf_counter() - begun, self.most)
            path = self.run.states[0].path if watching else []
            point_times, points = ([t for t, _ in path], [y for _, y in path])
        else:
            times = times[:PER_PIECE]
            goals = times if len(times) == PER_PIECE else np.append(times[times < hard - 1e-12], hard)
            before, got = self.y[0].copy(), self.run.advance(goals)
            rows = got[:len(times)]
            seen = goals[:len(got)]
            point_times, points = [np.array([now]), seen], [before[None], got[:, 0]]
            if self.time > (seen[-1] if len(seen) else now):  # a Ctrl-C between samples
                point_times, points = [*point_times, np.array([self.time])], [*points, self.y[:1]]
        taken = times[:len(rows)]
        self._next += len(rows)
        self.due = self._period is not None and self.time >= hard - 1e-12 * max(1.0, abs(hard))
        return Piece(taken, rows, *((np.concatenate(point_times), np.concatenate(points)) if watching else
                                    (np.zeros(0), np.zeros((0, 0)))))

    def restart(self, state: State) -> None:
        self.run.restart(state.t, self.pack(state.q[None], state.u[None], state.t))
        self._next = int(np.searchsorted(self.setup.times, state.t + 1e-12 * max(1.0, abs(state.t)), side="right"))
        self.due = self._period is not None and abs(
            (state.t - self.setup.start) / self._period - round((state.t - self.setup.start) / self._period)) < 1e-9
        self.feed()

    def run_again(self, y: Floats) -> None:
        self.run = varying_run(self.setup, self.system, y, self.time, self.tau, self.wrenches)
