"""The way of a run on a grid of time."""

from __future__ import annotations

import math
import time as clock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.simulate.chosen_run import fixed_run
from bellcrank.simulate.courses import Course, Piece
from bellcrank.simulate.fixed import FixedRun
from bellcrank.simulate.moreau import MoreauRun
from bellcrank.simulate.reference import ReferenceRun
from bellcrank.simulate.rigid_run import ContactLog, RigidRun
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["FixedCourse"]

#: steps that a piece on a device has at least
_LAUNCHED = 32.0
#: steps times coordinates of all states in the pieces of implicit methods
_STEADY = 3e4


class FixedCourse(Course):
    """Steps on a grid of time."""

    run: FixedRun | ReferenceRun

    def __init__(self, setup: Setup, system: Machine, y: Floats, t: float) -> None:
        super().__init__(setup, system)
        assert setup.step is not None
        self.step = setup.step
        self.run = fixed_run(setup, system, y, t, self.tau, self.wrenches)
        if isinstance(self.run, ReferenceRun):
            self.pace = 10.0
        elif self.run.equations.backend.foreign() is not None:  # what comes back from a device takes longer than steps
            self.least = _LAUNCHED
            self.pace = max(self.pace, min(self.least, self.most * setup.every))
        #: batches of implicit methods begin each piece with new Jacobians: its length must not depend on the clock
        self._steady = isinstance(self.run, FixedRun) and not self.run.kind.lanes and setup.count > 1
        if self._steady:
            self.pace = float(np.clip(_STEADY / (system.nq * setup.count), 10.0, 1000.0))
        self.pending: tuple[float, Floats] | None = None
        self._contacts = ContactLog(self.run, setup.samples) if isinstance(self.run, (MoreauRun, RigidRun)) else None
        self._hold = setup.holds()
        #: traced controllers that are held by the steps themselves
        self._held = tuple(d for d in setup.drives if d.traced and d.period is not None)
        self._sampled = any(not d.traced for d in setup.drives) or (
            isinstance(self.run, ReferenceRun) and any(d.period is not None for d in setup.drives))

    @property
    def compiled_holds(self) -> bool:
        return isinstance(self.run, (FixedRun, ReferenceRun))

    @property
    def index(self) -> int:
        """Grid steps done."""
        return self.run.done

    @property
    def time(self) -> float:
        return self.pending[0] if self.pending is not None else self.setup.start + self.index * self.step

    @property
    def finished(self) -> bool:
        return self.pending is None and self.index >= self.setup.steps

    def notes(self) -> dict[str, Any]:
        steps = self.index
        if self.failures and self.setup.count == 1:
            steps = round((self.failures[0].time - self.setup.start) / self.step)
        own = {"contact_residual": self.run.residual} if isinstance(self.run, (MoreauRun, RigidRun)) else {}
        return {**own, "steps": steps, "switches": self.before["switches"] + self.run.switches,
                "crossings": self.before["crossings"] + int(getattr(self.run, "crossings", 0))}

    def cautions(self) -> list[str]:
        return self.run.cautions() if isinstance(self.run, (MoreauRun, RigidRun)) else []

    def contact_names(self) -> tuple[str, ...]:
        return () if self._contacts is None else self._contacts.names

    def contact_forces(self, times: Floats) -> Floats | None:
        return None if self._contacts is None else self._contacts.at(times)

    def advance(self, watching: bool) -> Piece:
        if self.pending is not None:
            return self._to_grid()
        setup, first = self.setup, self.index
        n = min(int(self.pace), setup.steps - first)
        if self._sampled or (watching and self.setup.drives):  # what is held must not change within a piece
            n = min(n, self._hold - first % self._hold)
        every = 1 if watching else setup.every if not self._held else math.gcd(setup.every, self._hold)
        before, begun = self.y[0].copy() if watching else np.zeros(0), clock.perf_counter()
        rows = self.run.advance(n, every)
        spent = clock.perf_counter() - begun
        if not self._steady:
            self.adapt(spent, self.most * every)
        numbers = np.arange(first // every + 1, first // every + 1 + len(rows)) * every
        times: Floats = np.asarray(setup.start + numbers * self.step, dtype=float)
        if self._contacts is not None and isinstance(self.run, (MoreauRun, RigidRun)):
            self._contacts.note(times, self.run)
        if self._held:
            asked = (numbers % self._hold == 0) & (numbers < setup.steps)
            self._note_held(times[asked], rows[asked])
        points = np.concatenate([before[None], rows[:, 0]]) if watching else np.zeros((0, 0))
        point_times = np.concatenate([[setup.start + first * self.step], times]) if watching else np.zeros(0)
        chosen = numbers % setup.every == 0
        chosen |= numbers == setup.steps  # the end is always a sample
        if not watching and setup.steps % every and self.finished:
            times, rows, chosen = self._with_end(times, rows, chosen)
        self.due = self._sampled and self.index % self._hold == 0
        return Piece(times[chosen], rows[chosen], point_times, points)

    def _note_held(self, times: Floats, y: Floats) -> None:
        """What traced controllers that are held inside the steps say in states (times, states, size)."""
        for drive in self._held if len(times) else ():
            with np.errstate(all="ignore"):  # states that have failed
                rows = drive.along(self.setup.system, times, *self.unpack(y, times))
            self.said[drive.target] += zip(times.tolist(), rows, strict=True)

    def begin(self) -> Piece:
        piece = super().begin()
        self._note_held(piece.times, piece.samples)
        return piece

    def _with_end(self, times: Floats, rows: Floats, chosen: npt.NDArray[np.bool_]
                  ) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Add the final states, which are no multiple of the sampling interval."""
        last = self.y.copy()
        last[[f.state for f in self.failures]] = np.nan
        times = np.append(times, self.setup.start + self.setup.duration)
        return times, np.concatenate([rows, last[None]]), np.append(chosen, True)

    def _to_grid(self) -> Piece:
        """From a state between grid points to the next one."""
        assert self.pending is not None
        t, y = self.pending
        number = self.index + 1
        goal = self.setup.start + number * self.step
        new = self.partial(y, t, goal - t)
        self.pending = None
        if self._contacts is not None and isinstance(self.run, (MoreauRun, RigidRun)):
            self._contacts.note(np.array([goal]), self.run)
        self.run.y, self.run.done = new[None].copy(), number
        if number % self._hold == 0 and number < self.setup.steps:
            self._note_held(np.array([goal]), new[None, None])
        self.due = self._sampled and number % self._hold == 0
        sample = number % self.setup.every == 0 or number == self.setup.steps
        return Piece(np.array([goal] if sample else []), new[None, None][:int(sample)], np.array([t, goal]),
                     np.stack([y, new]))

    def restart(self, state: State) -> None:
        y = self.pack(state.q[None], state.u[None], state.t)
        number = int(np.floor((state.t - self.setup.start) / self.step + 1e-9))
        self.run.y, self.run.done = y.copy(), number
        self.run.forgive()
        on_grid = abs(state.t - self.setup.start - number * self.step) < 1e-12 * max(1.0, abs(state.t))
        self.pending = None if on_grid else (state.t, y[0])
        if on_grid and number % self._hold == 0 and number < self.setup.steps:
            self._note_held(np.array([state.t]), y[None])
        self.due = on_grid and self._sampled and number % self._hold == 0
        self.feed()

    def run_again(self, y: Floats) -> None:
        done = self.run.done
        self.run = fixed_run(self.setup, self.system, y, self.setup.start, self.tau, self.wrenches)
        self.run.done = done
