"""From a machine and a state to a motion: the loop around the compiled steps.

Work is done in pieces of about a tenth of a second. Between pieces Python looks after sampled controllers, events,
progress and the file; nothing that has been computed is lost if it is interrupted or a callback fails.
"""

from __future__ import annotations

import contextlib
import os
import time as clock
import traceback
import warnings
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import BellcrankError, StateError
from bellcrank.simulate.courses import Course, Piece
from bellcrank.simulate.events import Change, Event, Watch
from bellcrank.simulate.fixed import Failure
from bellcrank.simulate.impulse import impulse
from bellcrank.simulate.interrupt import Patience, patient
from bellcrank.simulate.setup import Setup
from bellcrank.simulate.store import Writer
from bellcrank.system.assembly import State

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result
    from bellcrank.system.system import System

__all__ = ["SimulationWarning", "simulate"]

Floats = npt.NDArray[np.float64]
Progress = Callable[[float, float], object]

#: events closer together than this, again and again, are an infinite sequence
_CROWD, _CROWDED = 1e-9, 20


class SimulationWarning(UserWarning):
    """A run ended before its time; what was computed is in its result, with the reason."""


def simulate(system: System, state: Any, duration: float, *, step: float | None = None, stepper: str = "rk4",
             output: Any = None, tau: Any = None, wrenches: Any = None, control: Any = None,
             events: Sequence[Event] = (), rtol: float = 1e-9, atol: float = 1e-12,
             file: str | os.PathLike[str] | None = None, progress: Progress | None = None,
             threads: int | None = None) -> Result:
    """See `System.simulate`."""
    setup = Setup.of(system, state, duration, step, stepper, output, tau, wrenches, control, events, rtol, atol,
                     threads)
    writer = Writer(system, batch=setup.batch, settings=setup.settings(), file=file)
    with patient() as patience:
        return _Run(setup, writer, progress, patience).go()


class _Run:
    def __init__(self, setup: Setup, writer: Writer, progress: Progress | None, patience: Patience) -> None:
        self.setup, self.writer, self.progress, self.patience = setup, writer, progress, patience
        self.system = setup.system
        self.released: tuple[str, ...] = ()
        self.recent: list[float] = []
        self.events, self.lost = 0, 0.0

    def go(self) -> Result:
        status, reason = "finished", ""
        course = None
        try:
            course = self.setup.course(self.system, self.setup.y0, self.setup.start)
            self.write(course, course.begin())
            status, reason = self.travel(course)
        except KeyboardInterrupt:
            status, reason = "interrupted", "interrupted from the keyboard"
        except BellcrankError as error:
            status, reason = "failed", str(error)
        except Exception as error:  # a callback of the user: what is computed must come back
            place = traceback.extract_tb(error.__traceback__)[-1]
            status = "failed"
            reason = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        if course is not None:
            self.last(course, status)
            for name, value in course.notes().items():
                self.writer.note(name, value)
        result = self.writer.finish(status, reason)
        if status in ("failed", "interrupted"):
            warnings.warn(f"simulate {self.system.name!r}: {status}: {reason}", SimulationWarning, stacklevel=4)
        return result

    def travel(self, course: Course) -> tuple[str, str]:
        """Piece after piece, to the end or to what prevents it."""
        watch = Watch(self.system, self.setup.events)
        if watch.events:
            watch.begin(course.time, *self.one(course))
        begun = clock.perf_counter()
        while not course.finished:
            piece = course.advance(watching=bool(watch.events))
            stop = self.handle(course, watch, piece) if watch.events else self.write(course, piece)
            if self.progress is not None and clock.perf_counter() - begun > 0.1:
                self.progress(course.time - self.setup.start, self.setup.duration)
            if course.trouble is not None:
                raise course.trouble
            if stop:
                return "stopped", stop
            self.patience.check()
            if course.failures and len(course.failures) >= self.setup.count:
                return "failed", _told(course.failures[0])
        if course.failures:
            some = course.failures[0]
            return "failed", (f"{len(course.failures)} of {self.setup.count} states could not finish; state "
                              f"{some.state}: {_told(some)}")
        return "finished", ""

    # -- samples --------------------------------------------------------------------------------
    def write(self, course: Course, piece: Piece) -> str:
        """Hand samples to the writer; states that have failed are NaN, and a run of one state ends before that."""
        times, y = piece.times, piece.samples
        if self.setup.count == 1:
            n = _finite(y)
            times, y = times[:n], y[:n]
        if not len(times):
            return ""
        q, u = course.unpack(y, times)
        lead = (len(times), *self.setup.batch)
        forces = course.forces(times, q, u)
        self.writer.add(times, q.reshape(*lead, -1), u.reshape(*lead, -1),
                        None if forces is None else forces.reshape(*lead, -1))
        return ""

    def last(self, course: Course, status: str) -> None:
        """A run that ends early ends with the last state it reached."""
        if status not in ("interrupted", "failed"):
            return
        failed = course.failures and self.setup.count == 1
        t, y = course.failures[0].time if failed else course.time, course.y.copy()
        if not failed:
            y[[f.state for f in course.failures]] = np.nan
        if t > self.writer.last_time and np.isfinite(y).any():
            with contextlib.suppress(BellcrankError):  # it may be what the run failed of
                self.write(course, Piece(np.array([t]), y[None], np.zeros(0), np.zeros((0, 0))))

    def one(self, course: Course) -> tuple[Floats, Floats]:
        q, u = course.unpack(course.y, course.time)
        return q[0], u[0]

    # -- events ---------------------------------------------------------------------------------
    def handle(self, course: Course, watch: Watch, piece: Piece) -> str:
        """Look for events along the piece; if there is one, keep what came before it and go on from there."""
        n = _finite(piece.points)
        q, u = course.unpack(piece.points[:n], piece.point_times[:n])
        at, crossed = watch.crossings(watch.values(piece.point_times[1:n], q[1:], u[1:]))
        if at < 0:
            return self.write(course, piece)
        t0, h = float(piece.point_times[at]), float(piece.point_times[at + 1] - piece.point_times[at])
        y0 = piece.points[at]
        hits = []
        for k in crossed:
            part = self.root(course, watch, k, y0, t0, h, piece.points[at + 1])
            hits.append((part, k))
        part, k = min(hits)
        t = t0 + part * h
        y = course.partial(y0, t0, part * h) if 0.0 < part < 1.0 else y0 if part == 0.0 else piece.points[at + 1]
        before = piece.times < t
        self.write(course, Piece(piece.times[before], piece.samples[before], piece.point_times, piece.points))
        return self.act(course, watch, watch.events[k], t, y)

    def root(self, course: Course, watch: Watch, k: int, y0: Floats, t0: float, h: float, y1: Floats) -> float:
        """Where in the step an event's function vanishes, as a part of the step."""
        from scipy.optimize import brentq

        def value(part: float) -> float:
            y = y0 if part == 0.0 else y1 if part == 1.0 else course.partial(y0, t0, part * h)
            q, u = course.unpack(y[None], np.array([t0 + part * h]))
            return float(watch.values(np.array([t0 + part * h]), q, u)[0, k])

        first, last = value(0.0), value(1.0)
        if first == 0.0 or first * last > 0.0:  # at zero already, where the last event was
            return 0.0
        return float(brentq(value, 0.0, 1.0, xtol=1e-15, rtol=1e-14))

    def act(self, course: Course, watch: Watch, event: Event, t: float, y: Floats) -> str:
        """Do what an event asks for and restart from there; returns the reason if the run is to stop."""
        q, u = course.unpack(y[None], np.array([t]))
        state = State(q[0].copy(), u[0].copy(), t)
        self.writer.note("event", (t, event.name))
        self.events += 1
        change = event.act(state, self.system)
        self.crowd(t, event)
        if change.state is not None or change.detach or change.attach:
            self.sample(state)
            state = self.changed(state, change)
            course.replace_system(self.system)
        if change.state is not None or change.detach or change.attach or change.stop:
            self.sample(state)
        if change.stop:
            return f"event {event.name!r} at t = {t:.9g} s"
        course.restart(state)
        watch.begin(t, state.q, state.u)
        return ""

    def sample(self, state: State) -> None:
        """The state at an event is a sample of its own."""
        lead = (1, *self.setup.batch)
        forces = self.setup.recorded_forces(np.array([state.t]), state.q[None, None], state.u[None, None])
        self.writer.add([state.t], state.q.reshape(*lead, -1), state.u.reshape(*lead, -1),
                        None if forces is None else forces.reshape(*lead, -1))

    def changed(self, state: State, change: Change) -> State:
        """The machine and the state after an event; the impulse that takes is noted."""
        for name in change.attach:
            if name not in self.released:
                raise StateError(f"attach: {name!r} is not detached")
        names = tuple(n for n in (*self.released, *change.detach) if n not in change.attach)
        full = self.setup.system
        if names != self.released:
            self.system, self.released = full.release(*names), names
            self.writer.change_system(self.system)
        wanted = change.state or state
        q = np.asarray(wanted.q, dtype=float)
        gap = float(np.abs(self.system.loop_error(q, t=state.t)).max(initial=0.0))
        if gap > 1e-6:
            raise StateError(f"at t = {state.t:.6g} s the loops of {self.system.name!r} are open by {gap:.3g}: they "
                             "can only be attached where they are closed")
        if gap > 1e-12:
            held = self.system._prescribed_mask()
            q, _ = self.system._assembler.close(q, held, np.ones(self.system.nu), state.t)
        after = impulse(self.system, q, np.asarray(wanted.u, dtype=float), t=state.t)
        self.lost += after.loss
        self.writer.note("energy_lost_in_events", self.lost)
        return State(q, after.u, state.t)

    def crowd(self, t: float, event: Event) -> None:
        """Refuse endless sequences of events in no time."""
        self.recent = [*self.recent[-_CROWDED:], t]
        if len(self.recent) > _CROWDED and t - self.recent[0] < _CROWD * max(1.0, abs(t)):
            raise StateError(f"event {event.name!r} happens again and again at t = {t:.9g} s: a bounce that has come "
                             "to rest cannot go on; stop there, or use a compliant limit (Mechanism.add_limit)")


def _finite(y: Floats) -> int:
    """How many rows come before the first that is not finite."""
    bad = np.flatnonzero(~np.isfinite(y.reshape(len(y), int(np.prod(y.shape[1:])))).all(axis=1))
    return int(bad[0]) if len(bad) else len(y)


def _told(failure: Failure) -> str:
    """The reason with the time, if that is not in it."""
    return failure.reason if "t = " in failure.reason else f"{failure.reason} (at t = {failure.time:.6g} s)"
