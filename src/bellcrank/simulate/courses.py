"""The way of a run through time, piece by piece: where samples, controllers and steps fall."""

from __future__ import annotations

import math
import time as clock
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.loops.closer import State
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.fixed import Failure, FixedRun
from bellcrank.simulate.moreau import MoreauRun
from bellcrank.simulate.reference import ReferenceRun, Rhs
from bellcrank.simulate.rigid_run import ContactLog, RigidRun
from bellcrank.simulate.varying import VaryingRun

if TYPE_CHECKING:
    from bellcrank.simulate.external import ExternalRun
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["Course", "FixedCourse", "Piece", "VaryingCourse"]

Floats = npt.NDArray[np.float64]

#: seconds of work between two looks at the keyboard, and numbers of samples kept until they are written
_PIECE, _NUMBERS = 0.1, 4_000_000
#: steps that a piece on a device has at least
_LAUNCHED = 32.0
#: steps times coordinates of all states in the pieces of implicit methods
_STEADY = 3e4
#: samples between restarts of other libraries' integrators: a fixed number, so that results do not depend on the clock
PER_PIECE = 100


class Piece(NamedTuple):
    """A stretch of a run: its samples, and if events are watched for, all steps of its single state."""

    times: Floats
    samples: Floats  #: (samples, states, size)
    point_times: Floats  #: the start and the end of every step
    points: Floats  #: (points, size)


class Course(ABC):
    """What fixed and adaptive runs have in common."""

    run: FixedRun | ReferenceRun | VaryingRun | ExternalRun

    def __init__(self, setup: Setup, system: Machine) -> None:
        self.setup, self.system = setup, system
        self.tau, self.wrenches = setup.tau, setup.wrenches
        self.before: dict[str, int] = {"switches": 0, "crossings": 0, "steps": 0, "rejected": 0}
        self.pace = float(np.clip(3e4 / (system.nq * setup.count), 1.0, 5000.0))  #: steps or samples in a piece
        self.least = 1.0  #: of these, if there is memory for so many samples
        self.due = False  #: whether sampled controllers are to be asked
        self._forces: list[tuple[float, Floats]] = []  #: what sampled controllers have said

    @property
    @abstractmethod
    def time(self) -> float:
        """Where the run is."""

    #: parts of a step at which events are looked for
    glances: tuple[float, ...] = (1.0,)

    @property
    @abstractmethod
    def finished(self) -> bool:
        """Whether the end is reached."""

    @abstractmethod
    def advance(self, watching: bool) -> Piece:
        """The next piece; `watching`: with all steps."""

    @abstractmethod
    def restart(self, state: State) -> None:
        """Go on from a state of the single run, anywhere in time."""

    @abstractmethod
    def replace_system(self, system: Machine) -> None:
        """Go on with another machine, from the next `restart`."""

    @property
    def y(self) -> Floats:
        return self.run.y

    @property
    def failures(self) -> list[Failure]:
        return self.run.failures

    def begin(self) -> Piece:
        """The initial states, as samples."""
        self.control()
        return Piece(np.array([self.time]), self.y[None].copy(), np.zeros(0), np.zeros((0, 0)))

    def unpack(self, y: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """q and u of states (..., size) at times that fit the leading axes from the left."""
        equations = getattr(self.run, "equations", None)
        if isinstance(equations, Equations):
            when = np.asarray(t, dtype=float)
            return equations.unpack(y, when.reshape(*when.shape, *(1,) * (y.ndim - 1 - when.ndim)))
        nq = self.system.nq
        return y[..., :nq], y[..., nq:]

    def pack(self, q: Floats, u: Floats, t: float) -> Floats:
        equations = getattr(self.run, "equations", None)
        return equations.pack(q, u, t) if isinstance(equations, Equations) else np.concatenate([q, u], axis=-1)

    def partial(self, y: Floats, t: float, step: float) -> Floats:
        """One step of any length, leaving the run where it is."""
        return self.run.partial(y, t, step)

    def notes(self) -> dict[str, Any]:
        """Counts for the record."""
        return {name: before + int(getattr(self.run, name, 0)) for name, before in self.before.items()}

    def keep_notes(self) -> None:
        """Before the run is replaced by another one."""
        self.before = self.notes()

    # -- contacts -------------------------------------------------------------------------------
    def contact_names(self) -> tuple[str, ...]:
        """Names of the components of forces at places of rigid contacts, if they are put on record."""
        return ()

    def contact_forces(self, times: Floats) -> Floats | None:
        """These forces at samples (samples, states, components), NaN where they are not known."""
        return None

    # -- controllers ----------------------------------------------------------------------------
    def control(self) -> None:
        """Ask sampled controllers for what holds from now on."""
        for d in self.setup.drives:
            if d.traced and (d.period is None or self.compiled_holds):
                continue
            q, u = self.unpack(self.y, self.time)
            if d.traced:
                rhs = Rhs(self.system, self.tau, self.wrenches, (d,), self.setup.cuts)
                rhs.hold(self.time, np.concatenate([q, u], axis=-1))
                rows = rhs.tau if d.target == "tau" else rhs.wrenches
                assert rows is not None
            else:
                single = self.setup.batch == ()
                rows = d.call(self.system, self.time, q[0].copy() if single else q.copy(),
                              u[0].copy() if single else u.copy())
            if d.target == "tau":
                self.tau = rows
                self._forces.append((self.time, rows))
            else:
                self.wrenches = rows
        self.feed()

    def control_if_due(self) -> None:
        """Ask the controllers if it is time to, after events and samples up to now have been looked after."""
        due, self.due = self.due, False
        if due and not self.finished:
            self.control()

    @property
    def compiled_holds(self) -> bool:
        """Whether held traced controllers are evaluated by the stepper itself."""
        return False

    def feed(self) -> None:
        """Hand forces to the run."""
        target: Any = self.run.equations if isinstance(self.run, (FixedRun, VaryingRun)) else self.run.rhs
        inside = {d.target for d in self.setup.drives if d.traced and d.period is not None} \
            if self.compiled_holds else set()  # the steps themselves know these
        if "tau" not in inside:
            target.tau = self.tau
        if "wrench" not in inside:
            target.wrenches = self.wrenches

    def forces(self, times: Floats, q: Floats, u: Floats) -> Floats | None:
        """Joint forces at samples (samples, states, nu), if there are any to record: what acts from the sample on."""
        if not self._forces:
            return self.setup.recorded_forces(times, q, u)
        known = np.array([t for t, _ in self._forces])
        at = np.maximum(np.searchsorted(known, times + 1e-12 * np.maximum(1.0, np.abs(times)), side="right") - 1, 0)
        shape = (*u.shape[1:-1], self._forces[0][1].shape[-1])
        out = np.stack([np.broadcast_to(self._forces[i][1], shape) for i in at.tolist()])
        self._forces = self._forces[int(at[-1]):] if len(at) else self._forces
        return out

    @property
    def _most(self) -> float:
        """Samples of all states that a piece may have."""
        return _NUMBERS / max(1, self.setup.count * (self.system.nq + self.system.nu))

    def adapt(self, seconds: float, most: float) -> None:
        """Choose the size of the next piece."""
        factor = min(max(_PIECE / max(seconds, 1e-6), 0.25), 4.0)
        self.pace = min(max(self.pace * factor, self.least), max(most, 1.0))


class FixedCourse(Course):
    """Steps on a grid of time."""

    run: FixedRun | ReferenceRun

    def __init__(self, setup: Setup, system: Machine, y: Floats, t: float) -> None:
        super().__init__(setup, system)
        assert setup.step is not None
        self.step = setup.step
        self.run = setup.fixed_run(system, y, t, self.tau, self.wrenches)
        if isinstance(self.run, ReferenceRun):
            self.pace = 10.0
        elif self.run.equations.backend.foreign() is not None:  # what comes back from a device takes longer than steps
            self.least = _LAUNCHED
            self.pace = max(self.pace, min(self.least, self._most * setup.every))
        #: batches of implicit methods begin each piece with new Jacobians: its length must not depend on the clock
        self._steady = isinstance(self.run, FixedRun) and not self.run.kind.lanes and setup.count > 1
        if self._steady:
            self.pace = float(np.clip(_STEADY / (system.nq * setup.count), 10.0, 1000.0))
        self.pending: tuple[float, Floats] | None = None
        self._contacts = ContactLog(self.run, setup.samples) if isinstance(self.run, RigidRun) else None
        self._hold = setup.holds()
        #: a traced controller that is held by the steps themselves
        self._held = next((d for d in setup.drives if d.traced and d.period is not None and d.target == "tau"), None)
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
        every = 1 if watching else setup.every if self._held is None else math.gcd(setup.every, self._hold)
        before, begun = self.y[0].copy() if watching else np.zeros(0), clock.perf_counter()
        rows = self.run.advance(n, every)
        spent = clock.perf_counter() - begun
        if not self._steady:
            self.adapt(spent, self._most * every)
        numbers = np.arange(first // every + 1, first // every + 1 + len(rows)) * every
        times: Floats = np.asarray(setup.start + numbers * self.step, dtype=float)
        if self._contacts is not None:
            self._contacts.note(times, self.run)
        if self._held is not None:
            asked = (numbers % self._hold == 0) & (numbers < setup.steps)
            self._note_held(times[asked], rows[asked])
        points = np.concatenate([before[None], rows[:, 0]]) if watching else np.zeros((0, 0))
        point_times = np.concatenate([[setup.start + first * self.step], times]) if watching else np.zeros(0)
        chosen = numbers % setup.every == 0
        chosen |= numbers == setup.steps  # the end is always a sample
        if not watching and setup.steps % setup.every and self.finished:
            times, rows, chosen = self._with_end(times, rows)
        self.due = self._sampled and self.index % self._hold == 0
        return Piece(times[chosen], rows[chosen], point_times, points)

    def _note_held(self, times: Floats, y: Floats) -> None:
        """What a traced controller that is held inside the steps says in states (times, states, size)."""
        if self._held is not None and len(times):
            with np.errstate(all="ignore"):  # states that have failed
                rows = self._held.along(self.setup.system, times, *self.unpack(y, times))
            self._forces += zip(times.tolist(), rows, strict=True)

    def begin(self) -> Piece:
        piece = super().begin()
        self._note_held(piece.times, piece.samples)
        return piece

    def _with_end(self, times: Floats, rows: Floats) -> tuple[Floats, Floats, npt.NDArray[np.bool_]]:
        """Add the final states, which are no multiple of the sampling interval."""
        last = self.y.copy()
        last[[f.state for f in self.failures]] = np.nan
        times = np.append(times, self.setup.start + self.setup.duration)
        return times, np.concatenate([rows, last[None]]), np.ones(len(times), dtype=bool)

    def _to_grid(self) -> Piece:
        """From a state between grid points to the next one."""
        assert self.pending is not None
        t, y = self.pending
        number = self.index + 1
        goal = self.setup.start + number * self.step
        new = self.partial(y, t, goal - t)
        self.pending = None
        if self._contacts is not None:
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

    def replace_system(self, system: Machine) -> None:
        if system is self.system:
            return
        self.keep_notes()
        q, u = self.unpack(self.y, self.time)
        done = self.run.done
        self.system = system
        y = np.concatenate([q, u], axis=-1)
        self.run = self.setup.fixed_run(system, y, self.setup.start, self.tau, self.wrenches)
        self.run.done = done


class VaryingCourse(Course):
    """Steps of any length between given sample times."""

    run: VaryingRun | ExternalRun

    def __init__(self, setup: Setup, system: Machine, y: Floats, t: float) -> None:
        super().__init__(setup, system)
        self.pace = float(np.clip(5000.0 / setup.count, 1.0, 50.0))  # the first piece of a large batch, too, is short
        self.glances = tuple((i + 1) / 8 for i in range(8))  # steps are long
        self._next = 0  #: the first sample that is not known yet
        self.run = setup.varying_run(system, y, t, self.tau, self.wrenches)
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
                self.adapt(clock.perf_counter() - begun, self._most)
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

    def replace_system(self, system: Machine) -> None:
        if system is self.system:
            return
        self.keep_notes()
        q, u = self.unpack(self.y, self.time)
        t = self.time
        self.system = system
        self.run = self.setup.varying_run(system, np.concatenate([q, u], axis=-1), t, self.tau, self.wrenches)
