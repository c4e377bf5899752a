"""The machine of a run as events leave it: loops that are open, joints that are locked, energy that is lost."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import AssemblyError, StateError
from bellcrank.loops.closer import Target
from bellcrank.loops.tolerances import OPEN
from bellcrank.simulate.altering import altered, let_go, moved
from bellcrank.simulate.control import joint_places, number_now
from bellcrank.simulate.courses import Course
from bellcrank.simulate.events import Change, Event
from bellcrank.simulate.fixed import FixedRun
from bellcrank.simulate.impulse import impulse
from bellcrank.simulate.reference import Rhs
from bellcrank.simulate.setup import Setup
from bellcrank.simulate.stops import Leaving, LiftOff, Stop
from bellcrank.simulate.varying import VaryingRun
from bellcrank.system.arrangements import Arrangement, arranged, arrangement_of, closing_frame, pin_values
from bellcrank.system.force_elements import actuator_forces
from bellcrank.system.force_terms import forced_machine
from bellcrank.system.loop_loads import loop_loads
from bellcrank.system.reactions import closure_wrenches
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine

__all__ = ["Changing", "Outcome"]



class Outcome(NamedTuple):
    """What an event does to the energy [J], and the impulses it takes: total energy changes by `added` - `lost`."""

    lost: float = 0.0  #: in impulses
    added: float = 0.0  #: by bodies that come and go, springs of joints that close or open, a state that was given
    #: of every closure on its child: [moment; force] impulse [N m s, N s], world axes, about the joint's origin there
    impulses: Mapping[str, Floats] = MappingProxyType({})


class Changing:
    """A machine whose topology changes; q and u keep their meaning throughout."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.system: Machine = setup.system  #: as it is now
        self.now = arrangement_of(setup.system)
        self.known = [self.now]  #: all arrangements so far, by their numbers
        self.number = 0  #: that of the present one
        self.lost = self.added = 0.0  #: in all events [J]
        self._near = setup.y0[0, :setup.system.nq]  #: where the machine was last
        self._machines: dict[Arrangement, Machine] = {self.now: setup.system}
        self._plans: dict[Any, list[LoopPlan]] = {}  #: those of every topology

    def changed(self, state: State, change: Change) -> tuple[State, Outcome]:
        """The machine and the state after an event; the impulse that takes is noted."""
        wanted = change.state or state
        q, u = np.array(wanted.q, dtype=float), np.array(wanted.u, dtype=float)
        goal = self._pinned(altered(self._setup.system.model, self.now, change), q, state.t)
        moved(self._setup.system.model, change, q, u)
        frames = {n: numbers for n in change.attach
                  if (numbers := closing_frame(self._setup.system.kernels, n, q, state.t))}
        goal = replace(goal, frames=tuple(sorted((*goal.frames, *frames.items()))))
        # closing joints that are held are constraints like those of loops, and feel their impulse as these do
        fresh = tuple(n for n in goal.locked if n not in self.now.locked and n not in dict(goal.pins))
        still = {i: 0.0 for n in fresh for i in self.system.model.configuration.speed_entries(n)}
        before, self._near = float(self.system.energy(state.q, state.u, t=state.t)), q
        loose = self.variant(replace(goal, locked=tuple(n for n in goal.locked if n not in fresh)))  # feels the impulse
        system = self.variant(goal)
        q = self._closed(system, q, state.t, change)
        start = float(loose.energy(q, u, t=state.t))
        after = impulse(loose, q, u, t=state.t, speeds=still)
        self.system = system
        self._take(goal)
        outcome = Outcome(after.loss, start - before, after.closures)
        self.lost, self.added = self.lost + outcome.lost, self.added + outcome.added
        return system.model.configuration.state(q, after.u, state.t), outcome

    def _pinned(self, goal: Arrangement, q: Floats, t: float) -> Arrangement:
        """Closing joints that are locked are held where they are, if their loops are closed; others go on being held
        where they were."""
        model = self._setup.system.model
        joints = {n: model.configuration.split(n)[0] for n in goal.locked}
        pins = {n: at for n, at in goal.pins if n in joints}
        pins |= {n: pin_values(self._setup.system.plans, n, q, t) for n, joint in joints.items()
                 if joint in model.tree.loop_joint_names and n not in pins and joint not in goal.released}
        return replace(goal, pins=tuple(pins.items()))

    def _take(self, goal: Arrangement) -> None:
        """Go over to another arrangement. Machines with frames of another moment do not come back."""
        self.now = goal
        if goal not in self.known:
            self.known.append(goal)
        self.number = self.known.index(goal)
        self._machines = {a: m for a, m in self._machines.items() if not a.frames or a == goal}

    def _closed(self, system: Machine, q: Floats, t: float, change: Change) -> Floats:
        """The position with what rounding needs put right; refuses one in which the loops are open."""
        loops, error = system.plans.loops, np.abs(system.loop_error(q, t=t))
        shares = loops.shares(error)
        if float(shares.max(initial=0.0)) > OPEN:
            gap, names = error.max(), dict.fromkeys(loops.row_names[r] for r in np.flatnonzero(shares > OPEN))
            fixed = [n for n in change.attach if any(r.startswith(f"{n}: ") for r in names)]
            what = ", ".join(map(repr, fixed)) if fixed else f"the loops of {system.model.name!r}"
            raise StateError(f"at t = {t:.6g} s {what} {'is' if len(fixed) == 1 else 'are'} open by {gap:.3g} "
                             f"({', '.join(list(names)[:6])}): loops can only be attached where they are closed, or "
                             "with a frame that is defined at closing (add_joint, pose 'at closing')")
        if float(shares.max(initial=0.0)) > 1e-12:
            target = Target(system.model.bound_mask(), 1.0 / system.model.tree.speed_sizes)
            q, _ = system.plans.closer.close(q, target, t)
        q, measured = q.copy(), system.plans.loops.measured(q, t)
        for own in system.model.tree.loop_joints:
            if own.name in change.attach:
                q[own.q] = measured[own.q]
        return q

    def variant(self, wanted: Arrangement) -> Machine:
        """The machine in another arrangement; made once, with a plan that its topology had before if one serves."""
        if wanted not in self._machines:
            known = self._plans.setdefault(wanted.key, [])
            made = arranged(self._setup.system, wanted, self._near, known)
            if made.model.tree.looped:
                with suppress(AssemblyError):  # plans are then made where the machine is
                    if (plan := made.plans.reference().plan) not in known:
                        known.append(plan)
            self._machines[wanted] = made
        return self._machines[wanted]

    def held(self, course: Course, stop: Stop, state: State, change: Change) -> tuple[Change, float]:
        """What a stop does: it throws the joint back, or holds it if that would not last; and energy lost by that."""
        after = change.state or state
        push = stop.acceleration(self.system, self.push(course, self.system, after.t, after.q, after.u))
        if not stop.holds(after, self.system, push, self._setup.step or 1e-4 * self._setup.duration):
            before, now = (float(self.system.kinetic_energy(s.q, s.u, t=s.t)) for s in (state, after))
            return change, before - now
        q = state.q.copy()
        key = stop.key(self.system)
        bound = stop.at(self.system)
        q[joint_places(self.system, False)[stop.joint][stop.coordinate]] = bound
        if stop.closes(self.system):
            self.now = replace(self.now, pins=(*(p for p in self.now.pins if p[0] != key), (key, (bound,))))
        return Change(state=state.replace(q), lock=(key,)), 0.0

    def leaving(self, course: Course, stop: Stop) -> Event:
        """Where a joint that is held would move away from its stop if that let go."""
        key = stop.key(self.system)

        def function(t: Any, q: Any, u: Any) -> float:
            free = self.variant(let_go(self.now, (key,)))
            state = State(np.array([*q]), np.array([*u]), float(t))
            return stop.acceleration(free, self.push(course, free, state.t, state.q, state.u)) * stop.sign

        return Leaving(function, f"{stop.name}: left", 1, Change(unlock=(key,)), active=lambda: key in self.now.locked)

    def lifting(self, course: Course, event: LiftOff) -> Event:
        """Where what can only push would have to pull."""
        def function(t: Any, q: Any, u: Any) -> float:
            wrench = self.exerted(course, event.closure, float(t), np.array([*q]), np.array([*u]))
            return float(np.dot(wrench[3:], [number_now(self.system, x, event.name) for x in event.normal]))

        return replace(event, function=function, active=lambda: event.closure not in self.now.released)

    def exerted(self, course: Course, name: str, t: float, q: Floats, u: Floats) -> Floats:
        """What a closure exerts on its child under all forces that act: [moment; force], world axes."""
        plans = self.system.plans
        tau, wrenches, udot = self._rhs(course, self.system).acting(t, np.concatenate([q, u]))
        loads = loop_loads(plans, q, u, actuator_forces(plans, q, u, tau, t=t), udot, wrenches, t)
        return closure_wrenches(plans, q, None, loads, t)[name][1]

    def push(self, course: Course, system: Machine, t: float, q: Floats, u: Floats) -> Floats:
        """Accelerations under all forces that act."""
        return self._rhs(course, system).acting(t, np.concatenate([q, u]))[2]

    def _rhs(self, course: Course, system: Machine) -> Rhs:
        run: Any = course.run
        source = run.equations if isinstance(run, (FixedRun, VaryingRun)) else run.rhs
        return Rhs(forced_machine(system, self._setup.forced), source.tau, source.wrenches,
                   [d for d in self._setup.drives if d.period is None])
