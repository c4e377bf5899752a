"""Free motion in a step with rigid contacts. See `contact_step`."""

from __future__ import annotations

from bellcrank.integrate.contact_impulses import ContactImpulses
from bellcrank.target.array_loops import copy, each
from bellcrank.target.program import Int, Memory, Real

__all__ = ["FreeMotion"]


class FreeMotion(ContactImpulses):
    """How bodies move on, and what forces do half way."""

    def move_on(self, q: Memory, target: Memory) -> None:
        """`target` = q after half a step, with the rates of coordinates at what is in `stage`."""
        f, stage, rate = self.f, self.stage, self.rate
        f.call_all("rates", f.count("n_rates"))

        def one(j: Int, half: Real) -> None:
            stage[j] = q[j] + half * rate[j]

        each(f, self.nq, one, self.step * 0.5)
        f.call_all("placing", f.count("n_placing"))
        copy(f, stage, target, self.nq)

    def halfway(self, number: Int, along: Memory) -> None:
        """Accelerations (2) in `rate` for speeds that change as `along` says: f in the middle of the step. What the
        machine has in addition to its inertia is taken off again, so that the result does not depend on it once the
        change is right."""
        f, u, stage = self.f, self.y.at(self.nq), self.stage.at(self.nq)
        self.at(number, 0.5)
        copy(f, self.middle, self.stage, self.nq)

        def change(j: Int, h: Real) -> None:
            stage[j] = (along[j] - u[j]) * 0.5
            self.extra[j] = self.added[j] * (along[j] - u[j]) / h

        each(f, self.nu, change, self.step)
        self.move_on(self.middle, self.stage)

        def half(j: Int) -> None:
            stage[j] = (along[j] + u[j]) * 0.5

        each(f, self.nu, half)
        f.call_all("forces", f.count("n_forces"))
