"""Fixed steps of a batch of states: blocks of lanes, threads, and new plans where a plan's pivots vanish."""

from __future__ import annotations

import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, SingularError
from bellcrank.simulate.crossing import Crossing, at_rest, weak
from bellcrank.simulate.early import width_of
from bellcrank.simulate.equations import Equations
from bellcrank.simulate.failure import Failure, trouble_ahead
from bellcrank.simulate.machine import Code
from bellcrank.simulate.resident import ResidentStates
from bellcrank.simulate.steppers import FixedStepper, Integrator, StepsTaken, Taken

__all__ = ["Failure", "FixedRun", "StepInPieces"]

Ints = npt.NDArray[np.int64]


class StepInPieces(NamedTuple):
    """Where a step has led that was taken in shorter ones; to be followed as a passage is."""

    last: Floats
    forces: Floats | None = None  #: of contacts, their mean

    def packed(self, last: Floats, t: float) -> Floats:
        return last

    def sample(self, passage: Any, t: float) -> Floats:
        return self.last


class FixedRun:
    """A batch of states on a common grid of time."""

    resident = True  #: whether states stay on a device between calls

    def __init__(self, equations: Equations, kind: Integrator, y: Floats, start: float, step: float, hold: int = 1,
                 threads: int | None = None) -> None:
        self.equations, self.kind, self.step, self.hold = equations, kind, step, hold
        self._y, self.start, self.done = y.copy(), start, 0
        self.failures: list[Failure] = []
        self.switches = self.crossings = 0
        self.passages: list[float] = []  #: when crossings began
        #: passages through singular positions that states are on, and the steps since the start with which they end
        self._ahead: dict[int, tuple[Any, Any, int]] = {}  # Crossing and Passage, or StepInPieces
        self._unhelpful: set[int] = set()  #: states that weak plans serve better than passages
        self.threads = threads or equations.backend.threads()
        nq = equations.system.nq
        self._plans: list[Any] = [equations.first_plan(y[0, :nq], start)] * len(y)
        #: plans of a single state, and the times from which on its steps are made by them
        self.plans_taken: list[tuple[float, Any]] = [(start, self._plans[0])]
        self.idle = equations.idle(kind.name)
        self._token = object()  #: tells steppers that it is still the same state
        self._failed = np.zeros(len(y), dtype=bool)
        self._width = width_of(kind, equations.backend, len(y))
        device = equations.backend.foreign() if self._width > 1 and self.resident else None
        self._there = None if device is None else ResidentStates(equations, device, self._y)

    @property
    def y(self) -> Floats:
        """The states, (states, size); not to be changed but by another array."""
        return self._y if self._there is None else self._there.numbers()

    @y.setter
    def y(self, states: Floats) -> None:
        self._y = states
        if self._there is not None:
            self._there.forget()
            self._there.y = states

    def _replace_states(self, members: Ints, states: Floats) -> None:
        """Let some states be others."""
        if self._there is not None:
            self._there.forget(members)
        self._y[members] = states

    def bring_back(self) -> None:
        """Have all that is known of states in this process."""
        if self._there is not None:
            self._there.forget()

    @property
    def time(self) -> float:
        return self.start + self.done * self.step

    def forgive(self) -> None:
        """Let states that have failed go on, from other positions."""
        self.failures = []
        self._failed[:] = False
        self._ahead = {}
        if len(self._y) == 1:  # what was decided later than that is forgotten
            self.plans_taken = [x for x in self.plans_taken if self._begun(x[0], self.time)]
            self._plans[0] = self.plans_taken[-1][1]

    def _begun(self, when: float, t: float) -> bool:
        return when <= t + 1e-6 * self.step

    def _plan_of(self, state: int, t: float) -> Any:
        """The plan by which a state's step at t was made; of batches, the one that it has now."""
        if len(self._y) > 1:
            return self._plans[state]
        return next((plan for when, plan in reversed(self.plans_taken) if self._begun(when, t)), self._plans[0])

    def _adopt(self, i: int, plan: Any, t: float) -> None:
        """Let steps of a state be made by another plan."""
        self._plans[i] = plan
        if len(self._y) == 1:
            self.plans_taken.append((t, plan))

    def begin(self) -> None:
        """Begin to compile what the first steps need."""
        self.equations.code(self._plans[0], self._width)

    def prepare(self) -> None:
        """Compile what the first steps need: what a method does not cover is an error before anything is computed."""
        self._give(self._plans[0], self._width, self._take(self._plans[0], self._width))

    def give_up(self, failure: Failure, y: Floats) -> None:
        """A state shall not go on from where it was."""
        self.failures = [*(f for f in self.failures if f.state != failure.state), failure]
        self._failed[failure.state] = True
        self._replace_states(np.array([failure.state]), y)

    def advance(self, steps: int, every: int) -> Floats:
        """Take steps; samples (samples, states, size) after every `every`-th one since the start."""
        samples = (self.done + steps) // every - self.done // every
        out = np.full((samples, *self._y.shape), np.nan)
        states, already = np.flatnonzero(~self._failed), np.zeros(len(self._y), dtype=np.int64)
        for i in list(self._ahead):
            already[i] = self._follow(i, 0, steps, every, out)
        self._run(states[already[states] < steps], already, steps, every, out)
        self.done += steps
        return out

    def partial(self, y: Floats, t: float, step: float, state: int = 0) -> Floats:
        """One step of any length from one state, without changing where the run is."""
        tried = self.tried(y, t, step, state)
        if tried is not None:
            self.noted(tried[0], state)
            return np.asarray(tried[0].y[0])
        crossing = Crossing.of(self.equations, state)
        found = crossing.passage(crossing.state(y, t), t, step, 1)
        if found is not None:
            return crossing.packed(found.last, t + step)
        raise BellcrankError(f"a step from t = {t:.6g} gives numbers that are not finite")

    def tried(self, y: Floats, t: float, step: float, state: int) -> tuple[Taken, Code] | None:
        """The same, with what made it; None if no plan serves."""
        plan = self._plan_of(state, t)
        for _ in range(4):
            stepper = self._take(plan, 1)
            inputs = self.equations.inputs(np.full(1, state, dtype=np.int64))
            got = stepper.run(y[None], inputs, t - step, step, 1, 1, 1, 2)  # held controllers are not asked
            self._give(plan, 1, stepper)
            if got.done[0]:
                return got, stepper.code
            if self.crowded(got.inputs):
                continue
            try:
                plan = self.equations.plan_at(y[:self.equations.system.nq], t)
            except SingularError:
                break
        return None

    # -- jobs -----------------------------------------------------------------------------------
    def _run(self, states: Ints, already: Ints, steps: int, every: int, out: Floats) -> None:
        """Bring states from `already` to `steps` steps; those whose plan fails get another one and go on."""
        fresh: set[int] = set()  # states whose plan was made where they are now
        while len(states):
            done = np.zeros(len(self._y), dtype=np.int64)

            def work(job: Ints, done: Ints = done, begun: Ints = already) -> None:
                done[job] = self._job(job, int(begun[job[0]]), steps, every, out)

            self._all(work, self._jobs(states, already))
            already = already + done
            states = states[already[states] < steps]
            states = self.plan_again(states, already, done, fresh)
            for i in states[[i in self._ahead for i in states.tolist()]].tolist() if self._ahead else ():
                already[i] = self._follow(i, int(already[i]), steps, every, out)
            states = states[already[states] < steps]

    def _jobs(self, states: Ints, already: Ints) -> list[Ints]:
        """States that share plan and progress, shared between threads in whole blocks."""
        groups: dict[Any, list[int]] | dict[Any, Ints] = {None: states}
        if len(set(map(id, self._plans))) > 1 or (already[states] != already[states[0]]).any():
            lists: dict[Any, list[int]] = {}
            for i in states.tolist():
                plan = self._plans[i]
                lists.setdefault((plan.key if plan is not None else None, int(already[i])), []).append(i)
            groups = lists
        jobs = []
        for members in groups.values():
            width = self._width
            part = max(1, -(-len(members) // (width * self.threads))) * width
            jobs += [np.array(members[k:k + part]) for k in range(0, len(members), part)]
        return jobs

    def _all(self, work: Callable[[Ints], None], jobs: list[Ints]) -> None:
        if len(jobs) < 2 or self.threads < 2:
            for job in jobs:
                work(job)
            return
        for job in jobs:  # compile before threads start
            plan, width = self._plans[int(job[0])], self._width
            self._give(plan, width, self._take(plan, width))
        with ThreadPoolExecutor(min(self.threads, len(jobs))) as pool:
            list(pool.map(work, jobs))

    def _job(self, job: Ints, already: int, steps: int, every: int, out: Floats) -> Ints:
        """Run some states; returns the steps done."""
        rest, first = steps - already, self.done + already
        plan, width = self._plans[int(job[0])], self._width
        stepper = self._take(plan, width)
        got = self._steps_taken(stepper, job, first, rest, every)
        self._give(plan, width, stepper)
        at = first // every - self.done // every
        if (got.done == rest).all():
            self.take(out, got, slice(0, len(got.samples)), at, slice(None), job)
            return got.done
        for k, state in enumerate(job.tolist()):
            have = (first + int(got.done[k])) // every - first // every
            self.take(out, got, slice(0, have), at, k, state)
        return got.done

    def _steps_taken(self, stepper: FixedStepper, job: Ints, first: int, steps: int, every: int) -> StepsTaken:
        """What some states have done, where they are computed."""
        if self._there is not None:
            return self._there.advance(stepper, job, self.start, self.step, first, steps, every, self.hold)
        owner = self._token if len(self._y) == 1 else None
        got = stepper.run(self._y[job], self.equations.inputs(job), self.start, self.step, first, steps, every,
                          self.hold, owner)
        self.equations.remember(job, stepper.code, got.inputs)
        self._y[job] = got.y
        return StepsTaken(got.samples, got.done, got.forces)

    def take(self, out: Floats, got: StepsTaken, rows: slice, at: int, lanes: slice | int, states: Ints | int) -> None:
        """Put samples of some states where they belong, from row `at` on."""
        out[at:at + rows.stop, states] = got.samples[rows, lanes]

    def noted(self, got: Taken, state: int) -> None:
        """A step of one state has been made between those of the run."""

    def crowded(self, inputs: Floats) -> bool:
        """Whether a step has failed for want of memory, of which there is more now."""
        return False

    def stepper(self, code: Code) -> FixedStepper:
        """What runs a program."""
        return FixedStepper(code, self.kind)

    def _take(self, plan: Any, width: int) -> FixedStepper:
        key = (plan.key if plan is not None else None, width)
        idle = self.idle.setdefault(key, queue.SimpleQueue())
        try:
            stepper: FixedStepper = idle.get_nowait()
            return stepper
        except queue.Empty:
            return self.stepper(self.equations.code(plan, width))

    def _give(self, plan: Any, width: int, stepper: FixedStepper) -> None:
        self.idle[plan.key if plan is not None else None, width].put(stepper)

    # -- plans ----------------------------------------------------------------------------------
    def plan_again(self, states: Ints, already: Ints, done: Ints, fresh: set[int]) -> Ints:
        """Choose other independent speeds for states that stopped, or a passage where no choice is good; those for
        which nothing helps have failed."""
        left = []
        for i in states.tolist():
            number = self.done + int(already[i])
            t = self.start + number * self.step
            again = i in fresh and not done[i]  # the plan made here does not last a step
            fresh.discard(i)
            try:
                plan, reason = self._another(i, t, again), ""
            except BellcrankError as error:
                plan, reason = None, str(error)
            q = self.y[i, :self.equations.system.nq]
            if plan is None or (i not in self._unhelpful and weak(self.equations.single(i), q, t)):
                if self.cross(i, number, t):
                    left.append(i)
                    continue
                self._unhelpful.add(i)
            if plan is None and self.in_pieces(i, number, t):
                left.append(i)
                continue
            if plan is None:
                self._failed[i] = True
                self.failures.append(Failure(i, t, reason or self._why(i, t), self._grown(i)))
                continue
            self._adopt(i, plan, t)
            self.switches += 1
            fresh.add(i)
            left.append(i)
        return np.array(left, dtype=np.int64)

    def _another(self, i: int, t: float, again: bool) -> Any:
        """A plan for where a state is, None if that is the one that has just failed there."""
        system = self.equations.system
        try:
            plan = self.equations.plan_at(self.y[i, :system.nq], t, wishes=not again)
        except SingularError as error:
            raise SingularError(str(error) + at_rest(system, self.y[i])) from None
        return None if plan is None or (again and plan.key == self._plans[i].key) else plan

    def in_pieces(self, i: int, number: int, t: float) -> bool:
        """Take the step of a state after `number` of them in shorter ones; false if that does not help, either."""
        return False

    # -- singular positions -----------------------------------------------------------------------
    def cross(self, i: int, number: int, t: float) -> bool:
        """Find a passage for a state after `number` steps, with whole steps; false if there is none."""
        equations = self.equations
        if not equations.system.model.tree.looped or self._grown(i):
            return False
        most = self.hold - number % self.hold if equations.sampled else 1_000_000
        try:
            crossing = Crossing.of(equations, i)
            found = crossing.passage(crossing.state(self.y[i], t), t, self.step, most)
            if found is None:
                return False
            steps = round(found.length / self.step)
            with suppress(SingularError):
                end = t + found.length
                self._adopt(i, equations.plan_at(found.last[:equations.system.nq], end), end)
        except (BellcrankError, ArithmeticError):
            return False
        self._ahead[i] = crossing, found, number + steps
        self.crossings += 1
        self.passages.append(t)
        return True

    def _follow(self, i: int, already: int, steps: int, every: int, out: Floats) -> int:
        """Take a state along its passage, from `already` to `steps` steps at most; the steps done."""
        crossing, passage, last = self._ahead[i]
        goal = min(last, self.done + steps)
        for n in range(self.done + already + 1, goal + 1):
            if n % every == 0 or n == goal:
                t = self.start + n * self.step
                self._replace_states(np.array([i]), crossing.packed(passage.last, t) if n == last else
                                     crossing.sample(passage, t))
            if n % every == 0:
                out[n // every - self.done // every - 1, i] = self._y[i]
        if goal == last:
            del self._ahead[i]
        return goal - self.done

    def _grown(self, i: int) -> bool:
        """Whether a state's numbers are beyond all bounds."""
        return bool(np.abs(self.y[i]).max() > 1e10)

    def _why(self, i: int, t: float) -> str:
        """What is wrong with the step from a state's last good position."""
        system = self.equations.system
        if self._grown(i):
            return (f"the numbers grow without bound (at t = {t:.6g} s): the step is too long for so fast or stiff a "
                    "motion; take smaller steps, or stepper='radau'")
        q, u = self.equations.unpack(self.y[i], t)
        try:
            system.forward_dynamics(q, u, t=t)
        except BellcrankError as error:
            return str(error)
        trouble = trouble_ahead(self.equations.single(i), q, u, t, self.step)
        if trouble:
            return f"the step from t = {t:.6g} s gives numbers that are not finite: {trouble}; or take smaller steps"
        if system.model.tree.looped and weak(self.equations.single(i), q, t):
            return (f"the step from t = {t:.6g} s gives numbers that are not finite or loops that do not close: the "
                    "machine is next to a singular position, where branches of its motion meet, and no smooth motion "
                    "through it was found; take another step size, or stepper='dop853'")
        return (f"the step from t = {t:.6g} s gives numbers that are not finite or loops that do not close: the motion "
                "is too fast for the step, or the machine cannot move on; take smaller steps")
