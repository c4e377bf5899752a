"""Compiled runs with rigid contacts: `integrate.contact_step` for blocks of states, as `fixed` runs other methods."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.integrate.contact_step import CONTACT, contact_memory, contact_steps
from bellcrank.simulate.fixed import FixedRun
from bellcrank.simulate.machine import Code
from bellcrank.simulate.rigid_equations import ContactEquations, Paths
from bellcrank.simulate.steppers import NEAR_AND_FAR, ROUNDS, FixedStepper, Integrator

__all__ = ["RigidRun"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]

#: places that may be near at the same time, to begin with; there is memory for more as soon as it is needed
SLOTS = 12


class ContactStepper(FixedStepper):
    """Runs the driver with rigid contacts on one block of states."""

    def __init__(self, code: Code, kind: Integrator, paths: Paths, added: Floats | None, most: int) -> None:
        self.code, self.kind, self.most = code, kind, most
        self.places = len(paths.start) - 1
        self._run = code.backend.driver(contact_steps, CONTACT, code.width, loops=True)
        self.memory = m = code.memory(CONTACT, {
            "slopes": code.size, "lost": code.size if code.real == "float" else 0,
            **contact_memory(code.nq, code.nu, self.places, most)})
        m.set(size=code.size, split=code.nq, n_shift=code.shift, rounds=ROUNDS if code.shift else 1,
              places=self.places, most=most, stiff=int(added is not None), memory=code.inputs["contact"])
        near, far = NEAR_AND_FAR[code.real]
        m.set_real(near=near, far=far)
        m.point("added", np.zeros(code.nu) if added is None else np.ascontiguousarray(added, dtype=float))
        m.point("path_start", paths.start)
        m.point("path_speed", paths.speed)
        m.point("path_sign", paths.sign)
        m.point("slots", np.zeros(most + 1, dtype=np.int64))
        self._implicit, self._owner = False, None
        #: forces at all places, in the axes of the ground link, at the samples of the last call
        self.forces: Floats = np.zeros((0, 0, 0))

    def advance(self, states: Any, given: Any, done: Any, out: Any, start: float, step: float, first: int, steps: int,
                every: int, hold: int = 1, owner: object = None) -> None:
        samples = (first + steps) // every - first // every
        forces = np.zeros((len(states), max(samples, 1), max(3 * self.places, 1), self.code.width))
        self.memory.set(forces_out=int(self.places > 0))
        self.memory.address("out_forces", forces)
        super().advance(states, given, done, out, start, step, first, steps, every, hold, owner)
        self.forces = forces.transpose(1, 0, 3, 2).reshape(forces.shape[1], -1, forces.shape[2])[:samples]


class RigidRun(FixedRun):
    """Fixed steps of a batch of states with rigid contacts, compiled."""

    equations: ContactEquations

    def __init__(self, equations: ContactEquations, added: Floats | None, *given: Any) -> None:
        super().__init__(equations, *given)
        self.paths, self.added = Paths.of(equations.system.model.tree), added
        self.most = max(min(equations.places, SLOTS), 1)
        self.idle = equations.idle(self._kind())

    @property
    def residual(self) -> float:
        """The largest of all steps [m/s]."""
        return float(self.equations.handed_on[:, -2].max(initial=0.0))

    def _kind(self) -> str:
        """What steppers differ in, besides plan and width."""
        return f"moreau {self.most} {'' if self.added is None else self.added.tobytes().hex()}"

    def stepper(self, code: Code) -> ContactStepper:
        return ContactStepper(code, self.kind, self.paths, self.added, self.most)

    def crowded(self, inputs: Floats) -> bool:
        need = int(inputs[:, -1].max())
        if need <= self.most:
            return False
        self.most = min(max(need, 2 * self.most), self.equations.places)
        self.idle = self.equations.idle(self._kind())
        return True

    def plan_again(self, states: Ints, already: Ints, done: Ints, fresh: set[int]) -> Ints:
        need = self.equations.handed_on[states, -1]
        short = states[need > self.most]
        if len(short):
            self.crowded(self.equations.handed_on[short])
            self.equations.handed_on[short, -1] = 0.0
        others = np.setdiff1d(states, short)
        return np.sort(np.concatenate([short, super().plan_again(others, already, done, fresh)]))

    def cross(self, i: int, number: int, t: float) -> bool:
        """Passages through singular positions know nothing of contacts."""
        return False if self.equations.places else super().cross(i, number, t)
