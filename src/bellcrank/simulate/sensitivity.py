"""How a run of fixed steps depends on its beginning, on forces and parameters: exact derivatives of discrete motion.

`variations` takes derivatives along forward, step by step and through events; `swept_back` goes back from an objective,
with states kept at every so many steps and the steps between made again. What is differentiated are the steps that the
run has made: `differentiated_steps` has those, `differentiated_events` what happens between them.

Controllers are differentiated with the machine. One that is held for some steps says k(t, y) at the first of them: that
is an input of these steps, which changes by k_y δy + k_p δp.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankWarning, ModelError, NotYetError, outside
from bellcrank.scalar.graph import Number
from bellcrank.simulate.differentiated_events import Passed, check_break, check_event, expressions_at, through
from bellcrank.simulate.differentiated_steps import Acting, DifferentiatedSteps, Leaf, Moved
from bellcrank.system.force_terms import forced_machine
from bellcrank.system.state_slopes import forward_slopes_at

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.simulate.events import Break, RunLog
    from bellcrank.simulate.result import Result
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["Variations", "check_differentiable", "swept_back", "variations", "with_sensitivities"]

#: by how much steps that are made again may end off the samples of a run, relative to these
_OFF = 1e-7

@dataclass(frozen=True)
class Unknown:
    """What a run is differentiated by: the beginning ("q0", "u0"), joint forces ("tau") or a parameter."""

    name: str
    leaves: tuple[Leaf, ...]  #: inputs of the kernels
    start: Floats  #: how the first state changes, (size, columns)
    columns: tuple[str, ...]


class Between(NamedTuple):
    """A part of a run between two moments that matter: a step, or what is left of one."""

    t: float
    goal: float
    asks: bool  #: whether held controllers are asked at its beginning
    samples: bool  #: whether its end is a sample
    at: Break | None  #: what happens there
    plan: LoopPlan | None  #: by which the run made it, if that is known


class DifferentiatedRun:
    """A run with what is needed to differentiate it."""

    def __init__(self, setup: Setup, log: RunLog, names: Sequence[str]) -> None:
        breaks = log.breaks
        if breaks and breaks[0].t <= setup.start:
            raise NotYetError(f"sensitivities: the run begins at a stop ({breaks[0].events[0].name})")
        for at in breaks:
            check_break(at)
        every = "tau" in names and not any(d.target == "tau" for d in setup.drives)  # each entry is a variable
        self.setup, self.system = setup, forced_machine(setup.system, None if every else setup.forced)
        y, nq = setup.y0[0], self.system.nq
        self.first = y.copy()
        self.held = [d for d in setup.drives if d.period is not None]
        given = {"tau": np.broadcast_to(setup.tau, (1, setup.tau.shape[-1]))[0].copy()}
        if setup.wrenches is not None:
            given["wrench"] = np.broadcast_to(setup.wrenches, (1, setup.wrenches.shape[-1]))[0].copy()
        self.found = unknowns(self.system, names, y[:nq], y[nq:], setup)
        leaves = [leaf for x in self.found for leaf in x.leaves]
        for d in self.held:
            leaves += [(d.target, i) for i in range(len(given[d.target]))]
        self.leaves = [*leaves, ("t", 0)] if breaks else leaves
        self.steps = DifferentiatedSteps(self.system, setup.stepper, Acting(given, _laws(setup)), self.leaves, y[:nq],
                                         setup.start)
        self.stretches = list(_ways(setup, log))
        self.log, self._off, self._when = log, 0.0, setup.start

    def met(self, y: Floats, sample: Floats, t: float) -> Floats:
        """A sample of the run, from which to go on; how far steps made again are off is kept."""
        off = float(np.abs(y - sample).max() / (1.0 + np.abs(sample).max()))
        if off > self._off:
            self._off, self._when = off, t
        return sample

    def judge(self) -> None:
        """Say so if derivatives are not those of the steps that the run made."""
        name, passages = self.system.model.name, self.log.passages
        if passages:
            warnings.warn(f"sensitivities of {name!r}: the run passes through a singular position at t = "
                          f"{passages[0]:.6g} s by a long step that cannot be differentiated; ordinary steps replace "
                          "it, and derivatives after it are approximate", BellcrankWarning, stacklevel=outside())
        elif self._off > _OFF:
            warnings.warn(f"sensitivities of {name!r}: steps that were made again with derivatives end {self._off:.2g} "
                          f"(relative) off the samples of the run, at t = {self._when:.6g} s: derivatives are "
                          "approximate; take smaller steps, or method='elimination'", BellcrankWarning,
                          stacklevel=outside())

    def columns(self) -> tuple[Moved, dict[str, slice]]:
        """The unknowns side by side, and which columns are whose."""
        widths = [x.start.shape[1] for x in self.found]
        change, at, places = np.hstack([x.start for x in self.found]), 0, {}
        by = np.zeros((len(self.leaves), change.shape[1]))
        for x, width in zip(self.found, widths, strict=True):
            for k, leaf in enumerate(x.leaves):
                by[self.leaves.index(leaf), at + k] = 1.0
            places[x.name] = slice(at, at + width)
            at += width
        none = np.zeros(at)
        return Moved(change, by, none, none), places

    def ask(self, y: Floats, t: float) -> list[tuple[list[int], Floats]]:
        """Let held controllers say what acts from now on; rows of the leaves that are theirs, and the derivatives by q,
        u and all leaves."""
        out = []
        for d in self.held:
            values, slope = expressions_at(self.steps, d.graph(self.system), y, t)
            self.steps.acting.inputs[d.target][:] = values
            out.append(([self.leaves.index((d.target, i)) for i in range(len(values))], slope))
        return out

    def asked(self, y: Floats, t: float, moved: Moved) -> Moved:
        """The same with derivatives along."""
        by = moved.by.copy()
        for rows, slope in self.ask(y, t):
            by[rows] = slope[:, :len(y)] @ moved.state + slope[:, len(y):] @ self.steps.at(moved, 0.0)
        return replace(moved, by=by)

    def whole(self, y: Floats, stretch: Between) -> Floats:
        """The derivatives of (state, time) at the end of a stretch by (state, leaves, time) at its beginning, for
        stretches that end in an event or begin in one."""
        n, p = len(y), len(self.leaves)
        eye = np.eye(n + p + 1)
        moved = Moved(eye[:n], eye[n:-1], eye[-1], -eye[-1])
        if stretch.at is None:
            return np.vstack([self.steps.forward(y, stretch.t, stretch.goal - stretch.t, moved)[1], 0.0 * eye[-1]])
        passed = through(self.steps, y, stretch.t, stretch.at, replace(moved, length=0.0 * eye[-1]))
        return np.vstack([passed.after, passed.time])

    def end(self, y: Floats, stretch: Between) -> Floats:
        """The state behind a stretch."""
        if stretch.at is not None:
            return np.concatenate([stretch.at.after.q, stretch.at.after.u])
        return self.steps.plain(y, stretch.t, stretch.goal - stretch.t)


def _laws(setup: Setup) -> dict[Leaf, Number]:
    """Forces that follow from the state in every stage."""
    return {(d.target, i): x for d in setup.drives if d.period is None for i, x in enumerate(d.graph(setup.system))}


def _ways(setup: Setup, log: RunLog) -> Iterator[Between]:
    """The way of a run, as it was."""
    assert setup.step is not None
    start, step, hold = setup.start, setup.step, setup.holds()
    number, t, ahead, plans = 0, start, list(log.breaks), list(log.plans)
    grid, plan = True, None
    while number < setup.steps:
        goal = start + (number + 1) * step
        asks = grid and number % hold == 0
        while plans and plans[0][0] <= t + 1e-6 * step:
            plan = plans.pop(0)[1]
        if ahead and ahead[0].t <= goal + 1e-12 * max(1.0, abs(goal)):
            at = ahead.pop(0)
            yield Between(t, at.t, asks, True, at, plan)
            if at.stop:
                return
            number = int(np.floor((at.t - start) / step + 1e-9))
            t = start + number * step
            grid = abs(at.t - t) < 1e-12 * max(1.0, abs(at.t))
            t = t if grid else at.t
            continue
        number, grid = number + 1, True
        yield Between(t, goal, asks, number % setup.every == 0 or number == setup.steps, None, plan)
        t = goal


# -- what is asked for ------------------------------------------------------------------------------
def unknowns(system: Machine, names: Sequence[str], q: Floats, u: Floats, setup: Setup) -> list[Unknown]:
    """What is asked for, by name. The beginning of a closed machine changes along the directions of its plan."""
    size, t = system.nq + system.nu, setup.start
    driven = any(d.target == "tau" for d in setup.drives)
    out = []
    for name in names:
        if name in ("q0", "u0"):
            out.append(_beginning(system, name, q, u, t))
        elif name == "tau" and not driven:
            forces = system.speed_names
            out.append(Unknown(name, tuple((name, i) for i in range(len(forces))), np.zeros((size, len(forces))),
                               forces))
        elif name in system.model.values:
            place = list(system.model.values).index(name)
            out.append(Unknown(name, (("parameters", place),), _start_by_parameter(system, q, u, place, t), (name,)))
        else:
            known = ", ".join(["q0", "u0", *(() if driven else ("tau",)), *system.model.values])
            raise ModelError(f"sensitivities: nothing called {name!r} to differentiate by; there are {known}")
    return out


def _beginning(system: Machine, name: str, q: Floats, u: Floats, t: float) -> Unknown:
    tree = system.model.tree
    plan = system.plans.first(q, t) if tree.looped else None
    independent = tree.free_speeds() if plan is None else list(system.plans.shown(q, t))
    placed = list(plan.placed) if plan is not None and plan.slipping else independent
    slopes = forward_slopes_at(system.plans, q, u, np.zeros(system.nu), None, t, placed, independent, ("tau",))
    columns = tuple(system.speed_names[v] for v in (placed if name == "q0" else independent))
    if name == "u0":
        return Unknown(name, (), np.vstack([np.zeros((system.nq, len(columns))), slopes.speeds[1]]), columns)
    rates = system.kernels.run("coordinate_rates", {"q": q, "u": np.vstack([slopes.moved.T, 0.0 * u])}, None, t)
    return Unknown(name, (), np.vstack([(rates[:-1] - rates[-1]).T, slopes.speeds[0]]), columns)


def _start_by_parameter(system: Machine, q: Floats, u: Floats, place: int, t: float) -> Floats:
    """How a closed first state follows a parameter, independent coordinates and speeds at rest."""
    if not system.model.tree.looped:
        return np.zeros((system.nq + system.nu, 1))
    steps = DifferentiatedSteps(system, "rk4", Acting({"tau": np.zeros(system.nu)}, {}), [("parameters", place)], q, t)
    slope, n = steps.corrected(np.concatenate([q, u]), t)[1][0], steps.size
    change = slope[:, n:]
    for _ in range(2):  # speeds see where positions have gone in the next round
        change = slope[:, :n] @ change + slope[:, n:]
    return change


def check_differentiable(setup: Setup) -> None:
    """Refuse what cannot be differentiated, by name and before anything runs."""
    if not setup.fixed or setup.step is None or setup.count != 1 or setup.batch:
        raise NotYetError("simulate: sensitivities are for one state and fixed steps")
    if setup.closing != "position":
        raise NotYetError("simulate: sensitivities are for closing='position'")
    for d in setup.drives:
        if not d.traced:
            what = "control" if d.target == "tau" else "wrenches"
            raise NotYetError(f"simulate: sensitivities: {what} is a Python function, which cannot be differentiated; "
                              "write it with bellcrank.math, as a Traced one")
    for event in setup.events:
        check_event(setup.system, event)


# -- forward ----------------------------------------------------------------------------------------
class Variations(dict[str, Floats]):
    """Derivatives of q and u at the samples, (samples, nq + nu, columns) by name; and of the times of samples."""

    columns: dict[str, tuple[str, ...]]
    times: dict[str, Floats]


def variations(setup: Setup, log: RunLog, states: Floats, names: Sequence[str]) -> Variations:
    """Derivatives of a run's samples, the `states` (samples, size)."""
    motion = DifferentiatedRun(setup, log, names)
    moved, places = motion.columns()
    y, rows, times = motion.first, [moved.state], [moved.start]
    for s in motion.stretches:
        motion.steps.follow(s.plan)
        if s.asks:
            moved = motion.asked(y, s.t, moved)
        if s.at is None:
            y, change = motion.steps.forward(y, s.t, s.goal - s.t, replace(moved, length=-moved.start))
            moved = replace(moved, state=change, start=0.0 * moved.start)
            seen = [change] if s.samples else []
            y = motion.met(y, states[len(rows)], s.goal) if seen else y
        else:
            passed: Passed = through(motion.steps, y, s.t, s.at, moved)
            y, moved = motion.end(y, s), replace(moved, state=passed.after, start=passed.time)
            seen = [passed.before, passed.after] if s.at.changed else [passed.before]
        rows += seen
        times += [moved.start] * len(seen)
    motion.judge()
    whole, when = np.stack(rows), np.stack(times)
    out = Variations({name: whole[..., place] for name, place in places.items()})
    out.columns = {x.name: x.columns for x in motion.found}
    out.times = {name: when[:, place] for name, place in places.items()}
    return out


def with_sensitivities(setup: Setup, result: Result, log: RunLog, names: Sequence[str]) -> Result:
    """A result with the derivatives of its samples, ``d_q_<name>`` and ``d_u_<name>``; with events that change
    something, or end the run, also of the times of samples, ``d_time_<name>``."""
    if result.attrs["status"] not in ("finished", "stopped"):
        return result
    nq = setup.system.nq
    found = variations(setup, log, np.hstack([result.q.values, result.u.values]), names)
    more: dict[str, Any] = {}
    for name, rows in found.items():
        label = f"by_{name}"
        more[f"d_q_{name}"] = (("time", "coordinate", label), rows[:, :nq])
        more[f"d_u_{name}"] = (("time", "speed", label), rows[:, nq:])
        if log.breaks:
            more[f"d_time_{name}"] = (("time", label), found.times[name])
        result = result.assign_coords({label: list(found.columns[name])})
    return result.assign(more)


# -- back -------------------------------------------------------------------------------------------
def swept_back(setup: Setup, log: RunLog, states: Floats, names: Sequence[str],
               slope: Callable[[Floats], tuple[float, Floats]]) -> tuple[float, dict[str, Floats]]:
    """The value of an objective of the last state, and its gradient. `states` are the samples of the run; `slope` gives
    value and derivatives of a state."""
    motion = DifferentiatedRun(setup, log, names)
    n, stretches = setup.y0.shape[1], motion.stretches
    value, weights = slope(states[-1])
    total, late = np.zeros(len(motion.leaves)), 0.0  # gradients by the leaves, and by the time of what comes
    end = states[-1]
    for first, last, row in reversed(_blocks(motion)):
        ys = [states[row]]
        for s in stretches[first:last]:
            motion.steps.follow(s.plan)
            if s.asks:
                motion.ask(ys[-1], s.t)
            ys.append(motion.end(ys[-1], s))
        motion.met(ys[-1], end, s.goal)
        end = ys[0]
        for k in range(last - 1, first - 1, -1):
            y, s = ys[k - first], stretches[k]
            held = _held(motion, ys, first, k)
            motion.steps.follow(s.plan)
            if s.at is None and (k == 0 or stretches[k - 1].at is None):
                weights, late = motion.steps.backward(y, s.t, s.goal - s.t, weights, total), 0.0
            else:
                back = motion.whole(y, s).T @ np.append(weights, late)
                weights, total, late = back[:n], total + back[n:-1], float(back[-1])
            for rows, by in held if s.asks else ():
                own = total[rows].copy()
                total[rows] = 0.0
                weights, total = weights + by[:, :n].T @ own, total + by[:, n:].T @ own
                late += float(by[:, -1] @ own) if log.breaks else 0.0
    motion.judge()
    out = {}
    for x in motion.found:
        own = np.array([total[motion.leaves.index(leaf)] for leaf in x.leaves])
        out[x.name] = x.start.T @ weights + own if len(own) else x.start.T @ weights
    return value, out


def _blocks(motion: DifferentiatedRun) -> list[tuple[int, int, int]]:
    """Pieces of the run that begin at samples: first stretch, the one behind the last, and the sample. What held
    controllers say is known from the beginning of a piece on."""
    begins, row = [(0, 0)], 0
    for k, s in enumerate(motion.stretches[:-1]):
        row += 1 + s.at.changed if s.at is not None else int(s.samples)
        if s.samples and (motion.stretches[k + 1].asks or not motion.held):
            begins.append((k + 1, row))
    ends = [*(first for first, _ in begins[1:]), len(motion.stretches)]
    return [(first, end, row) for (first, row), end in zip(begins, ends, strict=True)]


def _held(motion: DifferentiatedRun, ys: Sequence[Floats], first: int, k: int) -> list[tuple[list[int], Floats]]:
    """Let held controllers say again what they said for a stretch."""
    if not motion.held:
        return []
    last = max(i for i in range(first, k + 1) if motion.stretches[i].asks)
    return motion.ask(ys[last - first], motion.stretches[last].t)
