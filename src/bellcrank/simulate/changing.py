"""The machine of a run as events leave it: loops that are open, joints that are locked, energy that is lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import StateError
from bellcrank.loops.closer import State, Target
from bellcrank.simulate.closing import pinned
from bellcrank.simulate.control import joint_places
from bellcrank.simulate.courses import Course
from bellcrank.simulate.events import Change, Event
from bellcrank.simulate.fixed import FixedRun
from bellcrank.simulate.impulse import impulse
from bellcrank.simulate.reference import Rhs
from bellcrank.simulate.setup import Setup
from bellcrank.simulate.stops import Leaving, Stop
from bellcrank.simulate.varying import VaryingRun
from bellcrank.system.kernels import Kernels
from bellcrank.system.variants import closed_again, with_closures
from bellcrank.system.variants import released as opened

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["Changing"]

Floats = npt.NDArray[np.float64]


class Changing:
    """A machine whose topology changes; q and u keep their meaning throughout."""

    def __init__(self, setup: Setup) -> None:
        self._setup = setup
        self.system: Machine = setup.system  #: as it is now
        self.released: tuple[str, ...] = setup.system.model.released
        self.locked: tuple[str, ...] = ()
        self.lost = 0.0  #: kinetic energy lost in events [J]
        self._pins: dict[str, float] = {}  #: where stops hold joints that close loops
        self._variants: dict[Any, Machine] = {(self.released, ()): setup.system}

    def changed(self, state: State, change: Change) -> State:
        """The machine and the state after an event; the impulse that takes is noted."""
        for name in change.attach:
            if name not in self.released:
                known = ", ".join(map(repr, self.released)) or "nothing"
                raise StateError(f"attach: {name!r} is not detached ({known} is); System.release or an event with "
                                 "detach opens it")
        for name in change.unlock:
            if name not in self.locked:
                raise StateError(f"unlock: {name!r} is not locked")
        open_, locked = (tuple(n for n in dict.fromkeys((*old, *more)) if n not in less) for old, more, less in (
            (self.released, change.detach, change.attach), (self.locked, change.lock, change.unlock)))
        # closing joints that are held are constraints like those of loops, and feel their impulse as these do
        fresh = tuple(n for n in locked if n not in self.locked and n not in self._pins)
        still = {i: 0.0 for n in fresh for i in self.system.model.configuration.speed_entries(n)}
        loose = self.variant(open_, tuple(n for n in locked if n not in fresh))  # feels the impulse that stops them
        if (open_, locked) != (self.released, self.locked):
            self.system, self.released, self.locked = self.variant(open_, locked), open_, locked
        wanted = change.state or state
        q = np.asarray(wanted.q, dtype=float)
        gap = float(np.abs(self.system.loop_error(q, t=state.t)).max(initial=0.0))
        if gap > 1e-6:
            raise StateError(f"at t = {state.t:.6g} s the loops of {self.system.model.name!r} are open by {gap:.3g}: "
                             "they can only be attached where they are closed")
        if gap > 1e-12:
            target = Target(self.system.model.prescribed_mask(), np.ones(self.system.nu))
            q, _ = self.system.plans.closer.close(q, target, state.t)
        after = impulse(loose, q, np.asarray(wanted.u, dtype=float), t=state.t, speeds=still)
        self.lost += after.loss
        return State(q, after.u, state.t)

    def variant(self, released: tuple[str, ...], locked: tuple[str, ...]) -> Machine:
        """The machine with loops open and joints locked; made once."""
        pins = {name: self._pins[name] for name in locked if name in self._pins and name not in released}
        key = (released, tuple((name, pins.get(name)) for name in locked))
        if key not in self._variants:
            system = self._setup.system
            model = closed_again(system.model)
            if released:
                model = opened(model, released)
            if pins:
                model = with_closures(model, lambda tree: pinned(tree, pins))
            made = system if model is system.model else type(system)(Kernels(model, system.kernels.maker))
            self._variants[key] = made.lock(*(name for name in locked if name not in self._pins))
        return self._variants[key]

    def held(self, course: Course, stop: Stop, state: State, change: Change) -> Change:
        """What a stop does: it throws the joint back, or holds it if that would not last."""
        after = change.state or state
        push = stop.acceleration(after, self.system, self.push(course, self.system, after.t, after.q, after.u))
        if not stop.holds(after, self.system, push, self._setup.step or 1e-4 * self._setup.duration):
            before, now = (float(self.system.kinetic_energy(s.q, s.u, t=s.t)) for s in (state, after))
            self.lost += before - now
            return change
        q = state.q.copy()
        key = stop.key(self.system)
        if stop.entry(self.system) is None:
            self._pins[key] = stop.bound
        else:
            q[joint_places(self.system, False)[stop.joint][stop.coordinate]] = stop.bound
        return Change(state=State(q, state.u, state.t), lock=(key,))

    def leaving(self, course: Course, stop: Stop) -> Event:
        """Where a joint that is held would move away from its stop if that let go."""
        key = stop.key(self.system)

        def function(t: Any, q: Any, u: Any) -> float:
            free = self.variant(self.released, tuple(n for n in self.locked if n != key))
            state = State(np.array([*q]), np.array([*u]), float(t))
            return stop.acceleration(state, free, self.push(course, free, state.t, state.q, state.u)) * stop.sign

        return Leaving(function, f"{stop.name}: left", 1, Change(unlock=(key,)), active=lambda: key in self.locked)

    def push(self, course: Course, system: Machine, t: float, q: Floats, u: Floats) -> Floats:
        """Accelerations under all forces that act."""
        run: Any = course.run
        source = run.equations if isinstance(run, (FixedRun, VaryingRun)) else run.rhs
        rhs = Rhs(system, source.tau, source.wrenches, [d for d in self._setup.drives if d.period is None],
                  self._setup.cuts)
        return rhs.of_one(0, t, np.concatenate([q, u]))[system.nq:]
