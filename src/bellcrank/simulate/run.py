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
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, BellcrankWarning, ModelError, StateError, outside
from bellcrank.simulate.account import DRIFT, ROUGHLY
from bellcrank.simulate.alarm import Alarm
from bellcrank.simulate.changing import Changing
from bellcrank.simulate.control import on_bodies
from bellcrank.simulate.courses import Course, Piece
from bellcrank.simulate.early import begin_errors, in_lanes
from bellcrank.simulate.event_times import beyond, looks, root, side_after, state_within
from bellcrank.simulate.events import Break, Change, Event, RunLog, Watch
from bellcrank.simulate.failure import trouble_ahead
from bellcrank.simulate.fields import Laws
from bellcrank.simulate.fixed_course import FixedCourse
from bellcrank.simulate.interrupt import Patience, patient
from bellcrank.simulate.law_jumps import NEAR, Branch, JumpCheck
from bellcrank.simulate.outside_forces import wrench_names
from bellcrank.simulate.pieces_read import finite_rows, how_it_ended, time_within, told_failure
from bellcrank.simulate.result_place import check_target
from bellcrank.simulate.setup import Setup
from bellcrank.simulate.step_check import StepCheck
from bellcrank.simulate.steppers import STEPPERS
from bellcrank.simulate.stops import LiftOff, Stop
from bellcrank.simulate.store import Writer
from bellcrank.simulate.varying_course import VaryingCourse
from bellcrank.system.arrangements import known_closures
from bellcrank.system.foreign_arrays import foreign_to, to_numpy
from bellcrank.system.state import State
from bellcrank.system.usual_cut import cut_for

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result
    from bellcrank.system.machine_functions import Machine

__all__ = ["SimulationWarning", "recorded", "simulate"]

#: told (seconds done, duration); one with a method `samples` also gets times, coordinates, speeds, joint forces (or
#: nothing) of a single state as they come, the machine, and whether wrenches from outside act
Progress = Callable[[float, float], object]

#: more events than this within a step are an infinite sequence
_CROWDED = 60
#: jumps of laws back to where they came from, at once, that are one too many
_RETURNS = 10
#: steps in a piece of a run whose laws may jump: those behind a jump are made again
_BEFORE_JUMPS = 10


class SimulationWarning(BellcrankWarning):
    """A run ended before its time, or went on although its energy does not balance; what was computed is in its result,
    with the reason."""


def _where_events_cut(system: Machine, events: Sequence[Event]) -> Machine:
    """The machine with its loops cut at the joints that events let go."""
    every = events if isinstance(events, (list, tuple)) else ()
    names = [name for e in every if isinstance(e, Event) and isinstance(e.action, Change) for name in e.action.detach]
    plans = cut_for(system.plans, names) if names else system.plans
    return system if plans is system.plans else type(system)(plans.kernels)


def simulate(system: Machine, state: Any, duration: float, *, step: float | None = None, stepper: str = "rk4",
             output: Any = None, tau: Any = None, wrenches: Any = None, control: Any = None,
             events: Sequence[Event] = (), rtol: float = 1e-9, atol: float = 1e-12,
             file: str | os.PathLike[str] | None = None, progress: Progress | None = None,
             threads: int | None = None, closing: str = "position", sensitivities: Sequence[str] = (),
             streamed: Laws | None = None, happened: frozenset[str] | None = None) -> Result:
    """See `System.simulate`; `streamed` are outputs that go to the file with the samples, `happened` names events that
    happened at the start."""
    if isinstance(sensitivities, str):
        raise ModelError(f"simulate: sensitivities is a list of names; write [{sensitivities!r}]")
    elsewhere = foreign_to(system.kernels)
    if elsewhere is not None:  # samples are NumPy's, wherever they were computed
        state, tau, wrenches = (to_numpy(elsewhere, x, []) for x in (state, tau, wrenches))
    system = _where_events_cut(system, events)
    setup = Setup.of(system, state, duration, step, stepper, output, tau, wrenches, control, events, rtol, atol,
                     threads, file, closing)
    setup = setup if happened is None else replace(setup, happened=(happened,))
    if progress is not None and not callable(progress):
        raise ModelError(f"simulate: progress must be a function of (seconds done, duration), got {progress!r}")
    if sensitivities is not None and len(sensitivities):
        from bellcrank.simulate.sensitivity import check_differentiable, with_sensitivities

        check_differentiable(setup)
        return with_sensitivities(setup, *recorded(setup, progress, file), sensitivities)
    if setup.one_by_one:
        from bellcrank.simulate.one_by_one import one_by_one

        return one_by_one(setup, simulate, {
            "duration": duration, "step": step, "stepper": stepper, "output": output, "tau": tau, "wrenches": wrenches,
            "control": control, "events": events, "rtol": rtol, "atol": atol, "file": file, "progress": progress,
            "threads": threads, "closing": closing})
    return recorded(setup, progress, file, streamed)[0]


def recorded(setup: Setup, progress: Progress | None = None, file: str | os.PathLike[str] | None = None,
             streamed: Laws | None = None) -> tuple[Result, RunLog]:
    """The run, and how it came about."""
    system = setup.system
    check_target(file, setup.batch)
    with patient() as patience:
        course = (FixedCourse if setup.fixed else VaryingCourse)(setup, system, setup.y0, setup.start)
        course.run.begin()
        begin_errors(system, setup.y0[:, :system.nq], setup.start, setup.count * setup.samples)
        import bellcrank.simulate.result  # noqa: F401  (takes a while: time for the compiler)

        course.run.prepare()
        writer = Writer(system, batch=setup.batch, settings=setup.settings(), file=file,
                        advice=setup.advice, share=ROUGHLY if setup.stepper == "semi_implicit" else DRIFT,
                        lanes=in_lanes(system, setup.count * setup.samples),
                        closures=known_closures(system.model) if setup.alters else None,
                        contacts=course.contact_names(), wrenches=wrench_names(system, setup.pushed),
                        outputs=streamed)
        run = _Run(setup, course, writer, progress, patience)
        result = run.go()
        return result, RunLog(run.breaks, *(list(getattr(course.run, x, ())) for x in ("plans_taken", "passages")))


class _Run:
    def __init__(self, setup: Setup, course: Course, writer: Writer, progress: Progress | None, patience: Patience
                 ) -> None:
        self.setup, self.course, self.writer, self.progress = setup, course, writer, progress
        self.patience = patience
        self.watcher = getattr(progress, "samples", None) if not setup.batch else None
        self.machine = Changing(setup)
        self.alarm = Alarm(setup.count, setup.step) if setup.fixed and setup.step is not None else None
        self.check = StepCheck(setup, STEPPERS[setup.stepper].order) if setup.fixed else None
        self.law_check = JumpCheck(setup) if setup.fixed and STEPPERS[setup.stepper].order > 1 else None
        self.recent: list[float] = []
        self.jumped, self.returns = -np.inf, 0  #: when a law jumped last, and how often one jumped back at once
        self.breaks: list[Break] = []
        self.withheld: tuple[Floats, Floats] | None = None
        self.anchor: tuple[Course, Piece, State] | None = None  #: the event at hand
        self.on_grid = -np.inf  #: time of the last sample, if it is one of the steps and not of an event

    def go(self) -> Result:
        status, reason = "finished", ""
        course = self.course
        try:
            self.write(course, course.begin())
            status, reason = self.run_pieces(course)
        except KeyboardInterrupt:
            status, reason = "interrupted", "interrupted from the keyboard"
        except BellcrankError as error:
            status, reason = "failed", str(error)
        except Exception as error:  # a callback of the user: what is computed must come back
            place = traceback.extract_tb(error.__traceback__)[-1]
            status = "failed"
            reason = f"{type(error).__name__}: {error} ({place.name}, line {place.lineno})"
        if status in ("failed", "diverged"):
            reason = self.with_laws(course, reason)
        self.last(course, status)
        notes = course.notes()
        for name, value in notes.items():
            self.writer.note(name, value)
        for text in course.cautions():
            self.writer.caution(text)
        if len(self.machine.known) > 1:
            self.writer.note("topologies", [a.plain() for a in self.machine.known])
        self.judge_steps(course, status)
        if self.law_check is not None and self.law_check.told and status in ("finished", "stopped"):
            self.writer.caution(self.law_check.told)
        if self.setup.batch:
            self.writer.remark((f.state, how_it_ended([f]), told_failure(f)) for f in course.failures)
        result = self.writer.finish(status, reason)
        status, reason = result.attrs["status"], result.attrs["reason"]  # it may have found out more
        if status in ("failed", "interrupted", "diverged"):
            self.warn(f"{status}: {reason}")
        if result.attrs.get("warnings"):
            self.warn(result.attrs["warnings"])
        return result

    def judge_steps(self, course: Course, status: str) -> None:
        """Say so if the steps of a run that came to its end were too long for it."""
        if self.check is None or not isinstance(course, FixedCourse) or status not in ("finished", "stopped"):
            return
        text, state = self.check.verdict(course.run, course.system)
        if text:
            self.writer.caution(f"state {state}: {text}" if self.setup.batch else text)
            if self.setup.batch:
                self.writer.remark([(state, "finished", text)])

    def with_laws(self, course: Course, reason: str) -> str:
        """The reason why the run ended, with what elements say of where it was going: a table may end there, or a gas
        spring have no room."""
        if self.setup.count > 1:
            return reason
        q, u = (x[0] for x in course.unpack(course.y[:1], np.array([course.time])))
        trouble = trouble_ahead(course.system, q, u, course.time, self.setup.step or 1e-3, self.setup.drives)
        return f"{reason}; {trouble}" if trouble and trouble not in reason else reason

    def warn(self, text: str) -> None:
        warnings.warn(f"simulate {self.machine.system.model.name!r}: {text}", SimulationWarning, stacklevel=outside())

    def run_pieces(self, course: Course) -> tuple[str, str]:
        """Piece after piece, to the end or to what prevents it."""
        stops = [e for e in self.setup.events if isinstance(e, Stop)]
        given = [self.machine.lifting(course, e) if isinstance(e, LiftOff) else e for e in self.setup.events]
        watch = Watch(self.machine.system, [*given, *(self.machine.leaving(course, s) for s in stops),
                                            *Branch.of(self.setup)])
        if watch.events:
            watch.begin(course.time, *self.one(course))
            watch.forget(self.setup.happened[0])
        self.settle(course, watch)
        begun, jumps = clock.perf_counter(), any(isinstance(e, Branch) for e in watch.events)
        while not course.finished:
            course.pace = min(course.pace, _BEFORE_JUMPS) if jumps else course.pace
            closely = self.law_check is not None and self.law_check.every_step
            piece = course.advance(watching=bool(watch.events) or closely)
            if closely and self.law_check is not None:
                self.law_check.look(piece.point_times, *(x[:, None] for x in course.unpack(
                    piece.points, piece.point_times)))
            stop = self.handle(course, watch, piece) if watch.events else self.write(course, piece)
            if self.progress is not None and clock.perf_counter() - begun > 0.1:
                self.progress(course.time - self.setup.start, self.setup.duration)
            if stop:
                return "stopped", stop
            self.patience.check()
            course.control_if_due()
            self.release_sample(course)
            if course.failures and len(course.failures) >= self.setup.count:
                return how_it_ended(course.failures), told_failure(course.failures[0])
        if course.failures:
            some = course.failures[0]
            return how_it_ended(course.failures), (
                f"{len(course.failures)} of {self.setup.count} states could not finish; state {some.state}: "
                f"{told_failure(some)}")
        return "finished", ""

    # -- samples --------------------------------------------------------------------------------
    def write(self, course: Course, piece: Piece) -> str:
        """Hand samples to the writer; states that have failed are NaN, and a run of one state ends before that."""
        times, y = piece.times, piece.samples
        if self.setup.count == 1 and course.failures:
            n = finite_rows(y)
            times, y = times[:n], y[:n]
        if course.due and len(times) and abs(times[-1] - course.time) <= 1e-12 * max(1.0, abs(course.time)):
            self.withheld = (times[-1:], y[-1:])  # until controllers have said what acts from there on
            times, y = times[:-1], y[:-1]
        if not len(times):
            return ""
        q, u = course.unpack(y, times)
        if self.alarm is not None and isinstance(course, FixedCourse):
            self.alarm.look(course.run, times, y, u)
            if self.setup.count == 1 and course.failures:
                n = finite_rows(y)
                times, q, u = times[:n], q[:n], u[:n]
        if self.check is not None:
            self.check.look(course.system, times, y, u)
        if self.law_check is not None and not self.law_check.every_step:
            self.law_check.look(times, q, u)
        self.add(course, times, q, u)
        self.on_grid = float(times[-1])
        return ""

    def add(self, course: Course, times: Floats, q: Floats, u: Floats) -> None:
        """Hand states (times, states, ...) on, with joint forces and wrenches."""
        lead, forces = (len(times), *self.setup.batch), course.given("tau", times, q, u)
        tau = None if forces is None else forces.reshape(*lead, -1)
        self.writer.add(times, q.reshape(*lead, -1), u.reshape(*lead, -1), tau, self.contacts(times, lead),
                        self.wrenches(course, times, q, u))
        if self.watcher is not None:
            n = len(times)
            self.watcher(np.asarray(times), q.reshape(n, -1), u.reshape(n, -1),
                         None if tau is None else tau.reshape(n, -1), self.machine.system,
                         self.setup.wrenches is not None or bool(self.setup.system.model.tree.contacts))

    def contacts(self, times: Floats, lead: tuple[int, ...]) -> Floats | None:
        """Forces at places of rigid contacts, if they are put on record."""
        found = self.course.contact_forces(times)
        return None if found is None else found.reshape(*lead, -1)

    def wrenches(self, course: Course, times: Floats, q: Floats, u: Floats) -> Floats | None:
        """External wrenches on the bodies on which some may act."""
        rows = course.given("wrench", times, q, u) if self.setup.pushed else None
        if rows is None:
            return None
        table = on_bodies(self.setup.system, rows)[..., list(self.setup.pushed), :]
        return table.reshape(len(times), *self.setup.batch, -1)

    def release_sample(self, course: Course) -> None:
        """Write the sample at which controllers were asked."""
        if self.withheld is not None:
            (times, y), self.withheld, course.due = self.withheld, None, False
            self.write(course, Piece(times, y, np.zeros(0), np.zeros((0, 0))))

    def last(self, course: Course, status: str) -> None:
        """A run that ends early ends with the last state it reached."""
        self.release_sample(course)
        if status not in ("interrupted", "failed", "diverged"):
            return
        if self.anchor is not None:  # it ended in an event
            course, piece, state = self.anchor
            before = piece.times < state.t - 1e-12 * max(1.0, abs(state.t))
            self.write(course, Piece(piece.times[before], piece.samples[before], piece.point_times, piece.points))
            self.sample(course, state)
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

    def state_now(self, course: Course, t: float) -> State:
        """Where the course is."""
        return self.machine.system.model.configuration.state(*self.one(course), t)

    # -- events ---------------------------------------------------------------------------------
    def handle(self, course: Course, watch: Watch, piece: Piece) -> str:
        """Look for events along the piece; where one changes something, keep what came before and go on from there."""
        n = finite_rows(piece.points)
        for s, part, values in looks(course, watch, piece, n):
            crossed = watch.crossed(values[1])
            hits = sorted((at, k) for k in crossed if (at := root(course, watch, piece, s, part, k)) is not None)
            while hits:
                at, t = hits[0][0], time_within(piece, s, hits[0][0])
                law = isinstance(watch.events[hits[0][1]], Branch)  # its jump is passed by a little
                together = [j for other, j in hits if abs(time_within(piece, s, other) - t) <= 1e-12 * max(1.0, abs(t))
                            or (law and other - at < NEAR)]
                branches = [j for j in together if isinstance(watch.events[j], Branch)]
                wanted = [j for j in together if watch.wanted(j) and j not in branches]
                if wanted:
                    own = next(other for other, j in hits if j == wanted[0])
                    stop = self.act(course, watch, piece, wanted, time_within(piece, s, own), s, own)
                    if stop is not None:
                        return stop
                hits = hits[len(together):]
                if any(self.jump(course, watch, piece, j, s, at) for j in branches):
                    return ""
                for j in together:
                    watch.passed(j)
        at_end = self.at_end(course, watch, piece) if course.finished and n == len(piece.points) > 1 else None
        return self.write(course, piece) if at_end is None else at_end

    def at_end(self, course: Course, watch: Watch, piece: Piece) -> str | None:
        """Act on events whose functions reach zero exactly at the end of the run, and would go on to the other side;
        None if they change nothing."""
        s, t = len(piece.points) - 2, float(piece.point_times[-1])
        state = self.state_now(course, t)
        reached = [k for k in watch.at_zero(t, state.q, state.u) if watch.wanted(k)
                   and not isinstance(watch.events[k], Branch)]
        events = [k for k in reached if self.side_after(course, watch, k, state, watch.side[k]) != watch.side[k]]
        return self.act(course, watch, piece, events, t, s, 1.0) if events else None

    def act(self, course: Course, watch: Watch, piece: Piece, events: list[int], t: float, s: int, part: float
            ) -> str | None:
        """Do what events at one time ask for; None if they change nothing, else the reason to stop or nothing."""
        y = state_within(course, piece, s, part)
        q, u = course.unpack(y[None], np.array([t]))
        first = state = self.machine.system.model.configuration.state(q[0], u[0], t)
        kept, stop, changed = {k: float(watch.side[k]) for k in events}, "", False
        changes = []
        self.anchor = (course, piece, state)
        for k in events:
            event = watch.events[k]
            self.writer.note("event", (t, event.name))
            change, loss = event.act(state, self.machine.system), 0.0
            if isinstance(event, Stop):
                change, loss = self.machine.held(course, event, state, change)
            self.crowd(t, event)
            changes.append(change)
            if change.alters:
                met, machine = state, self.machine.system
                state, changed = self.change(state, change, loss), True
                if isinstance(event, Stop):
                    self.writer.tell_stop(event.impulse(met, state, machine))
            if change.stop:
                stop = stop or f"event {event.name!r} at t = {t:.9g} s"
        self.anchor = None
        if not (changed or stop):
            return None
        done = tuple(watch.events[k] for k in events)
        self.breaks.append(Break(t, done, tuple(changes), state, changed, bool(stop)))
        before = piece.times < t - 1e-12 * max(1.0, abs(t))
        self.write(course, Piece(piece.times[before], piece.samples[before], piece.point_times, piece.points))
        if abs(self.on_grid - t) > 1e-12 * max(1.0, abs(t)):  # else the piece before ended here, with this sample
            self.sample(course, first)
        if changed:
            self.writer.change_system(self.machine.system, self.machine.number)
            self.sample(course, state)
        self.go_on(course, watch, state, kept if not stop else None)
        return stop

    def jump(self, course: Course, watch: Watch, piece: Piece, k: int, s: int, at: float) -> bool:
        """Where a law jumps a step ends; whether it is so."""
        branch = watch.events[k]
        assert isinstance(branch, Branch) and branch.laws is not None
        parts = (0.0, max(at - NEAR, 0.0), min(at + NEAR, 1.0), 1.0)
        times = np.array([time_within(piece, s, x) for x in parts])
        states = course.unpack(np.stack([state_within(course, piece, s, x) for x in parts]), times)
        if not branch.laws.jumps(branch.number, (times, *states)) or self.chatters(
                branch, float(times[1]), float(piece.point_times[s]) == self.jumped and at < NEAR):
            return False
        state = beyond(course, watch, piece, s, at, k)
        passed = piece.times <= state.t + 1e-12 * max(1.0, abs(state.t))
        self.write(course, Piece(piece.times[passed], piece.samples[passed], piece.point_times, piece.points))
        course.restart(state)
        watch.begin(state.t, state.q, state.u, {k: -float(watch.side[k])})
        self.jumped = state.t
        return True

    def chatters(self, branch: Branch, t: float, back: bool) -> bool:
        """Whether a law jumps to and fro without end: its jumps are no longer located then, and the run says so."""
        self.returns += back
        if self.returns < _RETURNS:
            return False
        branch.off.append(True)
        self.writer.caution(f"the law of {branch.name!r} jumps to and fro from t = {t:.6g} s on, which is not located "
                            "any more; use a smooth law (tanh), or add_friction")
        return True

    def change(self, state: State, change: Change, loss: float) -> State:
        """Do what an event asks for, and put it on record; `loss` is energy that the state given has lost already."""
        state, outcome = self.machine.changed(state, change)
        self.machine.lost, self.machine.added = self.machine.lost + loss, self.machine.added + loss
        self.writer.tell_event(outcome.lost + loss, outcome.added + loss, outcome.impulses)
        self.writer.note("energy_lost_in_events", self.machine.lost)
        if self.machine.added:
            self.writer.note("energy_added_in_events", self.machine.added)
        return state

    def go_on(self, course: Course, watch: Watch, state: State, kept: dict[int, float] | None) -> None:
        """From another state, perhaps of another machine; `kept` are the sides of the functions that are at zero."""
        course.replace_system(self.machine.system)
        course.restart(state)
        if kept is not None:
            sides = {k: self.side_after(course, watch, k, state, side) for k, side in kept.items()}
            watch.begin(state.t, state.q, state.u, sides)

    def side_after(self, course: Course, watch: Watch, k: int, state: State, side: float) -> float:
        """On which side of zero a function at zero will be next."""
        return side_after(course, watch, k, state, side, self.setup.step or 1e-3)

    def sample(self, course: Course, state: State) -> None:
        """The state at an event is a sample of its own."""
        when = np.array([max(state.t, self.writer.last_time)])  # equal but for rounding
        q, u = state.q[None, None], state.u[None, None]
        self.add(course, when, q, u)
        self.on_grid = -np.inf

    # -- stops ----------------------------------------------------------------------------------
    def settle(self, course: Course, watch: Watch) -> None:
        """A run may begin at a stop."""
        for k, stop in enumerate(watch.events):
            if not isinstance(stop, Stop):
                continue
            state = self.state_now(course, course.time)
            if stop.touched(state, self.machine.system):
                change, _ = self.machine.held(course, stop, state, stop.act(state, self.machine.system))
                state, _ = self.machine.changed(state, change)
                self.breaks.append(Break(state.t, (stop,), (change,), state, True, False))
                self.writer.change_system(self.machine.system, self.machine.number)
                self.go_on(course, watch, state, {k: 1.0})

    def crowd(self, t: float, event: Event) -> None:
        """Refuse endless sequences of events in no time."""
        self.recent = [*self.recent[-_CROWDED:], t]
        if len(self.recent) > _CROWDED and t - self.recent[0] < (self.setup.step or 1e-4 * self.setup.duration):
            raise StateError(f"event {event.name!r} happens again and again at t = {t:.9g} s: a bounce that has come "
                             "to rest cannot go on; stop there, or use joint_limit, which holds")
