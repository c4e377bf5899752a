"""What a run is asked for, checked: states, times, forces, method of integration."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats, check_finite, flat, one_time
from bellcrank.errors import ModelError, StateError
from bellcrank.loops.closer import Target, project
from bellcrank.loops.tolerances import OPEN, ROUNDING
from bellcrank.simulate.contact_checks import check_contacts
from bellcrank.simulate.control import Drive, drive_of, force_rows, on_bodies, wrench_rows
from bellcrank.simulate.early import begin_code
from bellcrank.simulate.events import Change, Event, Watch
from bellcrank.simulate.external import SCIPY, SUNDIALS
from bellcrank.simulate.going_on import ended, happened, last_state
from bellcrank.simulate.sizes import check_count, check_samples, grid, positive
from bellcrank.simulate.steppers import STEPPERS, Integrator
from bellcrank.simulate.stops import Stop
from bellcrank.system.loop_errors import open_shares
from bellcrank.system.state import State, parts_of

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Setup", "along_loops"]

#: what may be said of closing: loops in position and velocity after every step; dependent speeds from independent
#: ones in every evaluation, positions left alone; nothing
CLOSING = ("position", "velocity", "none")


@dataclass(frozen=True)
class Setup:
    """Everything about a run but its progress."""

    system: Machine
    stepper: str
    start: float
    duration: float
    batch: tuple[int, ...]
    y0: Floats  #: (q, u) of all states, loops closed, shape (count, nq + nu)
    step: float | None
    steps: int  #: fixed steps in all
    every: int  #: fixed steps per sample
    times: Floats  #: sample times after the start (adaptive methods)
    tau: Floats
    wrenches: Floats | None
    drives: tuple[Drive, ...]
    events: tuple[Event, ...]
    rtol: float
    atol: float
    threads: int | None
    closing: str = "position"  #: what steps close of the loops: see `CLOSING`
    forced: tuple[str, ...] = ()  #: loop joints along which forces act
    #: of every state, names of events that happened at the start, at the end of the run that is continued
    happened: tuple[frozenset[str], ...] = (frozenset(),)

    @property
    def count(self) -> int:
        return len(self.y0)

    @property
    def samples(self) -> int:
        """How many there will be, of every state."""
        return self.steps // self.every + 1 if self.fixed else len(self.times)

    @property
    def sample_times(self) -> Floats:
        """When samples are taken, the start included; those at events are others."""
        if not self.fixed or self.step is None:
            return np.concatenate([[self.start], self.times])
        numbers = np.append(np.arange(0, self.steps, self.every), self.steps)
        return np.asarray(self.start + numbers * self.step, dtype=float)

    @property
    def one_by_one(self) -> bool:
        """Whether states of a batch are runs of their own: they have events at times of their own."""
        return self.count > 1 and bool(self.events)

    @property
    def alters(self) -> bool:
        """Whether some event may change the machine."""
        return any(isinstance(e, Stop) or callable(e.action) or (isinstance(e.action, Change) and e.action.alters)
                   for e in self.events)

    @property
    def fixed(self) -> bool:
        return self.stepper in STEPPERS and not STEPPERS[self.stepper].adaptive

    @staticmethod
    def of(system: Machine, state: Any, duration: Any, step: Any, stepper: str, output: Any, tau: Any, wrenches: Any,
           control: Any, events: Sequence[Event], rtol: float, atol: float, threads: int | None,
           file: str | os.PathLike[str] | None = None, closing: str = "position") -> Setup:
        """Check what was given."""
        kind = _stepper(stepper)
        if closing not in CLOSING:
            raise ModelError(f"simulate: closing is one of {', '.join(map(repr, CLOSING))}, got {closing!r}")
        if closing == "none" and system.model.method == "complement" and system.model.tree.looped:
            raise ModelError("simulate: 'complement' takes its loops for closed, and without closing their errors "
                             "grow: take closing='velocity' or 'position', or another method")
        fixed = kind is not None and not kind.adaptive
        length = positive("duration", duration)
        q, u, t, batch = _states(system, last_state(system, state))
        for name, value in (("rtol", rtol), ("atol", atol)):
            positive(name, value)
        h = positive("step", 1e-3 if step is None and fixed else step) if fixed or step is not None else None
        interval = positive("output", output) if output is not None and not np.ndim(output) else None
        check_count(length, t, h, interval)
        check_samples(len(q), system.nq + 2 * system.nu, length, h, output, interval, fixed, file)
        steps, every, times = grid(length, h, output, fixed, t)
        if fixed:
            h = length / steps
        drives = [drive_of(control, "tau")]
        if callable(wrenches) or hasattr(wrenches, "function"):
            drives.append(drive_of(wrenches, "wrench"))
            wrenches = np.zeros((len(system.body_names), 6))
        events = _events(system, events)
        threads = _threads(threads)
        for d in drives:
            if d is not None and d.traced:
                d.graph(system)  # says what is wrong with it
        if control is not None and tau is not None:
            raise ModelError("simulate: give control or tau, not both")
        rows = force_rows(system, tau, len(q))
        forced = along_loops(system, rows, drives[0])
        made = Setup(system, stepper, t, length, batch, np.concatenate([q, u], axis=-1), h, steps, every, times,
                     rows, wrench_rows(system, wrenches, len(q)),
                     tuple(d for d in drives if d is not None), tuple(events), rtol, atol, threads, closing, forced,
                     happened=happened(state, len(q)))
        made.holds()
        begin_code(system, kind, len(q), made.samples)
        made = replace(made, y0=made.closed())
        made.check_stops()
        check_contacts(system, stepper, made.y0, t, goes_on=ended(system, state))
        return made

    def check_stops(self) -> None:
        """Refuse states beyond a rigid stop: they would pass it from the wrong side."""
        for stop in self.events:
            if isinstance(stop, Stop):
                for y in self.y0:
                    stop.check(State(y[:self.system.nq], y[self.system.nq:], self.start), self.system)

    def settings(self) -> dict[str, Any]:
        """For the record."""
        out: dict[str, Any] = {"stepper": self.stepper, "duration": self.duration, "start": self.start,
                               "wrenches": self.wrenches is not None and bool(self.wrenches.any())}
        if self.closing != "position":
            out["closing"] = self.closing
        if self.fixed:
            out |= {"step": self.step, "every": self.every}
        else:
            out |= {"rtol": self.rtol, "atol": self.atol}
        for d in self.drives:
            out["control" if d.target == "tau" else "wrench_control"] = {
                "function": d.given.function, "traced": d.traced, "period": d.period}
        return out

    @property
    def advice(self) -> str:
        """What to do if the energy of a run does not balance."""
        if not self.fixed:
            return f"ask for more accuracy (rtol={self.rtol:g} and atol={self.atol:g} now)"
        others = {"semi_implicit": "or stepper='rk4'", "gauss": "", "moreau": "",
                  "radau": "or stepper='gauss', which keeps energy"}
        other = others.get(self.stepper, "stepper='gauss' or 'dop853'; stiff springs: 'radau'")
        return f"take smaller steps (step={self.step:g} s now){', ' * bool(other)}{other}"

    def holds(self) -> int:
        """Steps between updates of sampled controllers."""
        periods = {float(d.period) for d in self.drives if d.period is not None}
        if any(not d.traced and d.period is None for d in self.drives):
            if self.step is None or not self.fixed:
                raise ModelError("simulate: a Python controller with an adaptive method needs a period: "
                                 "Sampled(function, period=...)")
            periods.add(self.step)
        if len(periods) > 1:
            raise ModelError(f"simulate: controllers need one common period, got {sorted(periods)}")
        if not periods:
            return 1
        period = periods.pop()
        if not self.fixed or self.step is None:
            return 1
        n = round(period / self.step)
        if n < 1 or abs(n * self.step - period) > 1e-6 * period:
            raise ModelError(f"simulate: the controller's period {period:g} s must be a multiple of the step "
                             f"{self.step:g} s")
        return n

    @property
    def period(self) -> float | None:
        """Time between updates of sampled controllers, if there are any."""
        periods = [d.period for d in self.drives if d.period is not None]
        if any(not d.traced and d.period is None for d in self.drives):
            periods.append(self.step or 0.0)
        return periods[0] if periods else None

    def closed(self) -> Floats:
        """The states with what rounding and prescribed motions need put right; refuses states that are far off."""
        system, nq, y = self.system, self.system.nq, self.y0.copy()
        with np.errstate(all="ignore"):
            y[:, :nq] = system.normalize(y[:, :nq])
        if not np.isfinite(y).all():
            entry = int(np.argwhere(~np.isfinite(y))[0, 1])
            raise StateError(f"simulate: the quaternion at {system.coordinate_names[entry]} is zero")
        driven = system.model.prescribed_mask()
        if driven.any():
            moved = system.kernels.run("displaced", {"q": y[:, :nq], "dq": np.zeros(system.nu)}, None, self.start)
            speeds = system.kernels.run("driven_speeds", {"q": y[:, :nq], "u": y[:, nq:]}, None, self.start)
            y[:, :nq], y[:, nq:] = moved, np.where(driven, speeds, y[:, nq:])
        if not system.model.tree.looped:
            return self._measured(y)
        gap, rate = open_shares(system.plans, y[:, :nq], y[:, nq:], self.start)
        if gap.max() > OPEN or rate.max() > OPEN:
            raise self._open(y)
        some = np.flatnonzero((gap > ROUNDING) | (rate > ROUNDING))
        y = self._measured(y)
        if len(some) and not system.model.batched:
            target = Target(system.model.bound_mask(), 1.0 / system.model.tree.speed_sizes)
            y[some, :nq], _ = system.plans.closer.close(y[some, :nq], target, self.start)
            y[some, nq:], _ = project(system.plans.loops, y[some, :nq], y[some, nq:], target, self.start)
        return y

    def _measured(self, y: Floats) -> Floats:
        """The states with what their links say of loop joints; refuses states that say otherwise. Joints that are
        released stand still where they are given."""
        system, nq = self.system, self.system.nq
        tree = system.model.tree
        if not tree.loop_joints:
            return y
        q, t = y[:, :nq].copy(), self.start
        found = system.plans.loops.measured(q, t)
        for own in tree.loop_joints:
            if not own.open:
                q[:, own.q] = found[:, own.q]
        u = system.kernels.run("joint_speeds", {"q": q, "u": y[:, nq:]}, None, t)
        fast = 1.0 + np.abs(u / tree.speed_sizes).max(axis=-1, keepdims=True)
        for what, given, known, sizes in (("q", y[:, :nq], q, tree.coordinate_sizes),
                                          ("u", y[:, nq:], u, fast * tree.speed_sizes)):
            for own in tree.loop_joints:
                entries = own.q if what == "q" else own.u
                off = np.abs(given - known)[:, entries]
                if not own.open and (off / np.broadcast_to(sizes, given.shape)[:, entries]).max() > OPEN:
                    row = int(off.max(axis=-1).argmax())
                    raise StateError(
                        f"simulate: {what} of joint {own.name!r} is {_listed(given[row, entries])}, but its links put "
                        f"it at {_listed(known[row, entries])} ({'position' if what == 'q' else 'speed'} of a joint "
                        "that closes a loop); use the state that assemble() or project() returns")
        return np.concatenate([q, u], axis=-1)

    def _open(self, y: Floats) -> StateError:
        """A state whose loops are open: which ones, and the two things that can be meant."""
        system, nq = self.system, self.system.nq
        errors = np.abs(system.loop_error(y[:, :nq], t=self.start)).max(axis=0)
        rates = np.abs(system.loop_rate_error(y[:, :nq], y[:, nq:], t=self.start))
        closures, loops = system.model.tree.closures, system.plans.loops
        shares = loops.shares(errors)
        names = dict.fromkeys(closures[k].name for row, k in enumerate(loops.closure_of_row) if shares[row] > OPEN)
        text = (f"simulate: the loops of {system.model.name!r} are open by {errors.max():.3g} and open at "
                f"{rates.max():.3g} per second in the state given; use the state that assemble() returns")
        if names:
            some = ", ".join(map(repr, list(names)[:8]))
            text += (f". To begin with open loops: system.release({some}).simulate(...), where an event with the "
                     f"action attach({some}) can close them")
        return StateError(text)

    def recorded(self, target: str, times: Floats, q: Floats, u: Floats) -> Floats | None:
        """Joint forces ("tau") or external wrenches ("wrench") at samples (samples, count, entries), if there are any
        to record; sampled ones are held."""
        drive = next((d for d in self.drives if d.target == target), None)
        if drive is not None:
            return drive.along(self.system, times, q, u) if drive.traced and drive.period is None else None
        rows = self.tau if target == "tau" else self.wrenches
        if rows is None or not rows.any():
            return None
        return np.broadcast_to(rows, (*u.shape[:-1], rows.shape[-1]))

    @cached_property
    def pushed(self) -> tuple[int, ...]:
        """Bodies of the machine, by number, on which external wrenches act or may act."""
        drive = next((d for d in self.drives if d.target == "wrench"), None)
        bodies = len(self.system.body_names)
        if drive is not None and not drive.traced:
            return tuple(range(bodies))
        if drive is None and self.wrenches is None:
            return ()
        rows = self.wrenches
        if drive is not None:
            rows = np.array([[0.0 if type(x) is float and x == 0.0 else 1.0 for x in drive.graph(self.system)]])
        assert rows is not None
        by_body = on_bodies(self.system, np.abs(rows).max(axis=0))
        return tuple(b for b in range(bodies) if by_body[b].any())


def _listed(values: Floats) -> str:
    text = ", ".join(f"{x:.6g}" for x in values)
    return text if len(values) == 1 else f"[{text}]"


def _stepper(name: str) -> Integrator | None:
    if name in STEPPERS:
        return STEPPERS[name]
    library, _, method = name.partition("/") if isinstance(name, str) else ("", "", "")
    known = {"scipy": SCIPY, "sundials": SUNDIALS}.get(library)
    if known is not None and method:
        if method not in known:
            raise ModelError(f"stepper {name}: {library} has {', '.join(known)}")
        return None
    raise ModelError(f"no stepper {name!r}; there are {', '.join(STEPPERS)}, scipy/RK45, scipy/DOP853, scipy/Radau, "
                     "scipy/LSODA, sundials/BDF, sundials/Adams")


def along_loops(system: Machine, rows: Floats, drive: Drive | None = None) -> tuple[str, ...]:
    """Loop joints along which forces (..., nu) act, or may act if a Python function says."""
    if drive is not None and drive.traced:
        rows = np.array([0.0 if type(x) is float and x == 0.0 else 1.0 for x in drive.graph(system)])
    elif drive is not None:
        rows = np.ones(system.nu)
    return tuple(own.name for own in system.model.tree.loop_joints if rows[..., own.u].any())


def _events(system: Machine, events: Any) -> tuple[Event, ...]:
    try:
        listed = tuple(events)
    except TypeError:
        raise ModelError(f"simulate: events must be a list of Event objects, got {type(events).__name__}") from None
    for e in listed:
        if not isinstance(e, Event):
            raise ModelError(f"simulate: events must be Event objects, got {type(e).__name__} (joint_limit returns a "
                             "list of them)")
    Watch(system, listed)  # says what is wrong with their functions
    return listed


def _threads(threads: Any) -> int | None:
    if threads is None:
        return None
    if not isinstance(threads, (int, np.integer)) or isinstance(threads, bool) or threads < 1:
        raise ModelError(f"simulate: threads must be a positive whole number, got {threads!r}")
    return int(threads)


def _states(system: Machine, state: Any) -> tuple[Floats, Floats, float, tuple[int, ...]]:
    """q (count, nq), u (count, nu), the time, and the shape of the batch."""
    q, u, own = parts_of(state, system.model.configuration.state_names, "simulate",
                         "a State, (q, u), or a result to go on from")
    if isinstance(state, State) and state.failures:
        index, many = state.failures[0].index, int(np.prod(state.shape))
        raise StateError(f"simulate: {len(state.failures)} of {many} states have no coordinates, since assemble() "
                         f"could not reach them; the first is batch index {index}: {state.failures[0].reason}. Leave "
                         "them out, and their values of parameters: state.failures has their indices")
    t = one_time(own)
    if not np.isfinite(t):
        raise StateError(f"simulate: the time {t} of the state is not finite")
    q, u = flat("q", q, system.nq, "the coordinates"), flat("u", u, system.nu, "one for every speed")
    params = np.broadcast_shapes((), *(np.shape(v) for v in system.model.values.values()))
    try:
        batch = np.broadcast_shapes(q.shape[:-1], u.shape[:-1], params)
    except ValueError:
        raise StateError(f"simulate: q {q.shape}, u {u.shape} and parameters {params} are batches that do not fit") \
            from None
    check_finite("simulate", "q", q, system.coordinate_names)
    check_finite("simulate", "u", u, system.speed_names)
    q, u = (np.broadcast_to(x, (*batch, x.shape[-1])).reshape(-1, x.shape[-1]).copy() for x in (q, u))
    if not len(q):
        raise StateError("simulate: the batch is empty")
    return q, u, t, batch
