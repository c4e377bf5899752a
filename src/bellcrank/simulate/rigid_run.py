"""Compiled runs with rigid contacts: `integrate.contact_step` for blocks of states, as `fixed` runs other methods."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.integrate.contact_slots import CONTACT, OVERLAP, SLOW, contact_memory
from bellcrank.integrate.contact_step import contact_steps
from bellcrank.integrate.contact_stiff import STIFF_CONTACT, stiff_contact_steps, stiff_memory
from bellcrank.simulate.fixed import FixedRun, StepInPieces
from bellcrank.simulate.machine import Code
from bellcrank.simulate.rigid_equations import (
    ContactEquations,
    length_of,
    may_be_stiff,
    paths,
    scaled,
    spans,
    thinnest,
)
from bellcrank.simulate.steppers import NEAR_AND_FAR, ROUNDS, FixedStepper, Integrator, StepsTaken, Taken
from bellcrank.topology.tree import Tree

__all__ = ["PIECES", "SLOTS", "ContactLog", "ContactStepper", "RigidRun", "contact_cautions"]

Ints = npt.NDArray[np.int64]

#: numbers of forces at places that are put on record in a run; in larger ones none are
RECORD = 20_000_000
#: places that may be near at the same time, to begin with; there is memory for more as soon as it is needed
SLOTS = 12
#: by how much conditions of rigid contacts may be missed, as a share of what is slow, and by what share of the smaller
#: shape two may overlap, before it is told
MISSED, DEEP = 1e-4, 1e-2
#: in how many pieces a step is taken that fails as a whole, one after the other
PIECES = (2, 4, 8, 16, 32, 64)


class ContactStepper(FixedStepper):
    """Runs the driver with rigid contacts on one block of states."""

    def __init__(self, code: Code, kind: Integrator, tree: Tree, most: int) -> None:
        self.code, self.kind, self.most = code, kind, most
        self.places = sum(pair.places for pair in tree.contacts)
        stiff = may_be_stiff(tree)
        program, layout = (stiff_contact_steps, STIFF_CONTACT) if stiff else (contact_steps, CONTACT)
        self._run = code.backend.driver(program, layout, code.width, loops=False)
        lanes = code.backend.beside() if code.width == 1 else 1
        stride = -(-3 * most // lanes) * lanes
        self.memory = m = code.memory(layout, {
            "slopes": code.size, "lost": code.size if code.real == "float" else 0,
            **contact_memory(code.nq, code.nu, self.places, most, stride),
            **(stiff_memory(code.nu, stride) if stiff else {})})
        m.set(size=code.size, split=code.nq, n_shift=code.shift, rounds=ROUNDS if code.shift else 1,
              places=self.places, most=most, stride=stride, together=code.sizes["column"] // max(code.nu, 1),
              views=code.sizes["shown"] // (code.size + 1), memory=code.inputs["contact"],
              prescribes=int(tree.rheonomic))
        near, far = NEAR_AND_FAR[code.real]
        m.set_real(near=near, far=far, length=length_of(tree))
        m.point("paths", np.append(paths(tree).ravel(), 0.0))
        m.point("scaled", np.append(scaled(tree), 0.0))
        m.point("spans", np.append(spans(tree), 1.0))
        m.point("thin", np.append(1.0 / thinnest(tree), 0.0))
        m.point("slots", np.zeros(most + 1, dtype=np.int64))
        self._implicit, self._owner = False, None
        self.recorded = self.places > 0  #: whether forces at samples are wanted
        self._forces: Any = None

    def advance(self, states: Any, given: Any, done: Any, out: Any, start: float, step: float, first: int, steps: int,
                every: int, hold: int = 1, owner: object = None) -> None:
        samples = (first + steps) // every - first // every
        wanted = self.recorded and samples > 0
        shape = (len(states), samples, 3 * self.places, self.code.width) if wanted else (len(states), 1, 1, 1)
        device = self.code.backend.foreign()
        forces = device.empty(shape, states.dtype.type) if device is not None and device.holds(states) else \
            np.zeros(shape)
        self.memory.set(forces_out=int(wanted))
        self.memory.address("out_forces", forces)
        super().advance(states, given, done, out, start, step, first, steps, every, hold, owner)
        self._forces = forces if wanted else None

    def recorded_forces(self) -> Any:
        return self._forces

    def run(self, y: Floats, *given: Any) -> Taken:
        found, forces = super().run(y, *given), self._forces
        if forces is not None:
            forces = forces.transpose(1, 0, 3, 2).reshape(forces.shape[1], -1, forces.shape[2])[:, :len(y)]
        return Taken(found.samples, found.y, found.done, found.inputs, forces)


def contact_cautions(tree: Tree, step: float, residual: float, handed_on: Floats) -> list[str]:
    """What there is to say of steps with rigid contacts, by their largest residual and by the numbers that they have
    handed on, (states, ...)."""
    out = []
    if residual > MISSED * SLOW * length_of(tree) / step:
        out.append(f"the conditions of rigid contacts were missed by up to {residual:.2g} m/s: bodies are wedged in; "
                   "take smaller steps")
    overlaps = handed_on[:, -2 - OVERLAP:-2]
    state = int(overlaps[:, 0].argmax()) if len(overlaps) else 0
    share, place, time = overlaps[state] if len(overlaps) else np.zeros(OVERLAP)
    if share > DEEP:
        name = [pair.name for pair in tree.contacts for _ in range(pair.places)][int(place)]
        where, depth = f" of state {state}" if len(overlaps) > 1 else "", share * thinnest(tree)[int(place)]
        out.append(f"shapes of the rigid contact {name!r}{where} overlap by {depth:.3g} m, "
                   f"{share:.2g} of the smaller one, at t = {time:.6g} s; take smaller steps")
    return out


class RigidRun(FixedRun):
    """Fixed steps of a batch of states with rigid contacts, compiled."""

    equations: ContactEquations
    recorded = True  #: whether forces at the samples are wanted

    def __init__(self, equations: ContactEquations, *given: Any) -> None:
        super().__init__(equations, *given)
        kernels = equations.system.kernels
        self.tree, self.places = kernels.tree, equations.places
        self.most = max(min(equations.places, SLOTS), 1)
        self.idle = equations.idle(f"moreau {self.most}")

    def advance(self, steps: int, every: int) -> Floats:
        samples = (self.done + steps) // every - self.done // every
        #: forces at all places, in the axes of the ground link [N], at the samples of the last call
        self.forces = np.full((samples, len(self._y), 3 * self.equations.places if self.recorded else 0), np.nan)
        return super().advance(steps, every)

    def take(self, out: Floats, got: StepsTaken, rows: slice, at: int, lanes: slice | int, states: Ints | int) -> None:
        super().take(out, got, rows, at, lanes, states)
        if got.forces is not None:
            self.forces[at:at + rows.stop, states] = got.forces[rows, lanes]

    def partial(self, y: Floats, t: float, step: float, state: int = 0) -> Floats:
        self.forces = np.full((1, len(self._y), 3 * self.equations.places if self.recorded else 0), np.nan)
        return super().partial(y, t, step, state)

    def noted(self, got: Taken, state: int) -> None:
        if got.forces is not None and got.forces.size:
            self.forces[0, state] = got.forces[0, 0]

    @property
    def residual(self) -> float:
        """The largest of all steps [m/s]."""
        known = float(self.equations.handed_on[:, -2].max(initial=0.0))
        return known if self._there is None else max(known, self._there.largest_input(-2))

    def cautions(self) -> list[str]:
        self.bring_back()
        return contact_cautions(self.tree, self.step, self.residual, self.equations.handed_on)

    def stepper(self, code: Code) -> ContactStepper:
        return ContactStepper(code, self.kind, self.tree, self.most)

    def _take(self, plan: Any, width: int) -> FixedStepper:
        stepper = super()._take(plan, width)
        assert isinstance(stepper, ContactStepper)
        stepper.recorded = self.recorded and self.equations.places > 0
        return stepper

    def crowded(self, inputs: Floats) -> bool:
        need = int(inputs[:, -1].max())
        if need <= self.most:
            return False
        self.most = min(max(need, 2 * self.most), self.equations.places)
        self.idle = self.equations.idle(f"moreau {self.most}")
        return True

    def plan_again(self, states: Ints, already: Ints, done: Ints, fresh: set[int]) -> Ints:
        if self._there is not None:
            self._there.forget(states)
        need = self.equations.handed_on[states, -1]
        short = states[need > self.most]
        if len(short):
            self.crowded(self.equations.handed_on[short])
            self.equations.handed_on[short, -1] = 0.0
        others = np.setdiff1d(states, short)
        return np.sort(np.concatenate([short, super().plan_again(others, already, done, fresh)]))

    def in_pieces(self, i: int, number: int, t: float) -> bool:
        found = None if self._grown(i) else next(filter(None, (self._pieces(i, t, n) for n in PIECES)), None)
        if found is not None:
            self._ahead[i] = found, found, number + 1
        return found is not None

    def _pieces(self, i: int, t: float, n: int) -> StepInPieces | None:
        """A step in n pieces; None if one of them fails."""
        one, y, h, known = np.array([i]), np.array(self.y[i]), self.step / n, self.equations.handed_on[i].copy()
        forces: list[Floats] = []
        for k in range(n):
            tried = self.tried(y, t + k * h, h, i)
            if tried is None:
                self.equations.handed_on[i] = known
                return None
            got, code = tried
            self.equations.remember(one, code, got.inputs)
            y = np.array(got.y[0])
            forces += [] if got.forces is None else [got.forces[0, 0]]
        return StepInPieces(y, np.mean(forces, axis=0) if forces else None)

    def _follow(self, i: int, already: int, steps: int, every: int, out: Floats) -> int:
        passage, last = self._ahead[i][1:]
        reached = super()._follow(i, already, steps, every, out)
        if isinstance(passage, StepInPieces) and passage.forces is not None and last % every == 0:
            self.forces[last // every - self.done // every - 1, i] = passage.forces
        return reached

    def cross(self, i: int, number: int, t: float) -> bool:
        """Passages through singular positions know nothing of contacts."""
        return False if self.equations.places else super().cross(i, number, t)


class Recorded(Protocol):
    """A run with rigid contacts: `RigidRun`, or one that is not compiled as a whole."""

    tree: Tree
    places: int
    recorded: bool

    @property
    def y(self) -> Floats: ...

    @property
    def forces(self) -> Floats: ...


class ContactLog:
    """Forces at places of rigid contacts at the samples of a run, until they are written."""

    def __init__(self, run: Recorded, samples: int) -> None:
        tree = run.tree
        few = samples * len(run.y) * 3 * run.places <= RECORD
        #: contact, place and axis of every component; none if they would be too many
        self.names = tuple(f"{pair.name}[{i}].{axis}" for pair in tree.contacts for i in range(pair.places)
                           for axis in "xyz") if few else ()
        run.recorded = few
        turn = np.asarray(tree.ground_turn, dtype=float)
        self._turn, self._states = None if np.array_equal(turn, np.eye(3)) else turn, len(run.y)
        self._known: list[tuple[float, Floats]] = []

    def note(self, times: Floats, run: Recorded) -> None:
        """Keep what a run says of its last samples."""
        if self.names and len(times) and run.forces.shape[-1] == len(self.names):
            forces = run.forces
            if self._turn is not None:
                forces = (forces.reshape(*forces.shape[:-1], -1, 3) @ self._turn.T).reshape(forces.shape)
            self._known += zip(times.tolist(), forces, strict=True)

    def at(self, times: Floats) -> Floats | None:
        """The forces (samples, states, components), NaN where they are not known: at the start, and at events."""
        if not self.names:
            return None
        out = np.full((len(times), self._states, len(self.names)), np.nan)
        found = dict(self._known)
        for row, t in enumerate(times.tolist()):
            if t in found:
                out[row] = found[t]
        last = times[-1] if len(times) else -np.inf
        self._known = [(t, rows) for t, rows in self._known if t > last]
        return out
