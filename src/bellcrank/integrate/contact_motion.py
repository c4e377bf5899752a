"""Free motion in a step with rigid contacts. See `contact_step`.

With f in the middle of the step, velocities in axes that turn by x in it turn by 2 atan(x/2) = x - x^3/12; the axes, by
(1) and (5), by 2 atan(x/4) + 2 asin(x/4) = x - x^3/192. What flies and spins would go a wrong way. So in steps with
turns of more than `SPINS`, far from all places, the two halves are also taken one after the other, each with f in its
own middle:

    u_m = u + h/2 M^-1 f(q_a, (u + u_m)/2),   u+ = u_m + h/2 M^-1 f(q_b, (u_m + u+)/2)

with q_a and q_b a quarter and three quarters on the way. By these velocities turn by x - x^3/48; `HALVES` of them less
the rest of the others make x - x^3/192: momentum stays to the fifth power.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.integrate.contact_impulses import ContactImpulses
from bellcrank.target.array_loops import copy, each, sum_of
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["FreeMotion"]

#: speeds times the step [rad] above which a step is taken in halves, too, and their weight; of distances: see `spans`
SPINS, HALVES = 0.02, 1.25
#: by what share of the largest speed the two ways may differ: beyond that loops are nearly singular on the way
OTHER = 0.1


class FreeMotion(ContactImpulses):
    """How bodies move on, and what forces do half way."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self._spins = f.variable(0.0)  #: lanes that take the step in halves

    def begin_motion(self) -> None:
        """Which lanes spin; accelerations of their halves are those without contacts in the step before."""
        f, u, nu = self.f, self.y.at(self.nq), self.nu
        turned = self.fastest_of(lambda j: u[j] * self.scaled.along(j)) * self.step
        self._spins.set((turned > SPINS).pick(1.0, 0.0))

        def as_before(j: Int) -> None:
            self.early[j] = self.inherited[nu + j] - self.inherited[j]
            self.late[j] = self.early[j]

        with f.when((self._spins.value > 0.5).any()):
            each(f, nu, as_before)

    def fly_no_halves(self, there: Real) -> None:
        """Some lanes (1.0, else 0.0) do not take the step in halves."""
        self._spins.set((there > 0.5).pick(0.0, self._spins.value))

    def fly(self, number: Int, along: Memory) -> None:
        """Accelerations (2) in `rate` for speeds that change as `along` says."""
        f, nu, rate, spins = self.f, self.nu, self.rate.at(self.nq), self._spins.value > 0.5
        self.halfway(number, along)
        with f.when(spins.any()):
            copy(f, rate, self.calm, nu)
            self._in_halves(number, along)
            speed = self.fastest_of(lambda j: along[j] * self.scaled.along(j))
            other = sum_of(f, nu, lambda j: (rate[j] - self.calm[j]).abs() * self.spans.along(j)) * self.step
            both = f.variable((other <= speed * OTHER).pick(self._spins.value, 0.0))
            with f.loop(nu) as j:
                rate[j] = (both.value > 0.5).pick(self.calm[j] + (rate[j] - self.calm[j]) * HALVES, self.calm[j])

    def land(self, number: Int) -> None:
        """Lanes in which places are near do not take the step in halves: accelerations, and speeds in `free`."""
        f, u, rate = self.f, self.y.at(self.nq), self.rate.at(self.nq)
        near = f.fold(self.count.value, f.constant(0.0), lambda k, x: x.max(self.real[k]))
        lands = f.variable((near > 0.5).pick(self._spins.value, 0.0))
        with f.when((lands.value > 0.5).any()):
            self._spins.set(self._spins.value - lands.value)
            self.halfway(number, self.along)
            with f.loop(self.nu) as j:
                self.free[j] = (lands.value > 0.5).pick(u[j] + self.step * rate[j], self.free[j])

    def _in_halves(self, number: Int, along: Memory) -> None:
        """The mean of both, from what they were in the last iteration."""
        f, u, stage, rate = self.f, self.y.at(self.nq), self.stage.at(self.nq), self.rate.at(self.nq)
        early, late = self.early, self.late

        def evaluate(part: float, q: Memory, way: Callable[[Int, Real], Real], mean: Callable[[Int, Real], Real],
                     found: Memory) -> None:
            def on_the_way(j: Int, half: Real) -> None:
                stage[j] = way(j, half)

            def there(j: Int, half: Real) -> None:
                stage[j] = mean(j, half)

            self.at(number, part)
            copy(f, q, self.stage, self.nq)
            each(f, self.nu, on_the_way, self.step * 0.5)
            self.move_on(q, self.stage)
            each(f, self.nu, there, self.step * 0.5)
            f.call_all("forces", f.count("n_forces"))
            copy(f, rate, found, self.nu)

        def change(j: Int, h: Real) -> None:
            self.extra[j] = self.added[j] * (along[j] - u[j]) / h

        each(f, self.nu, change, self.step)
        evaluate(0.25, self.y, lambda j, half: (u[j] * 2.0 + half * early[j]) * 0.25,
                 lambda j, half: u[j] + half * early[j] * 0.5, early)
        evaluate(0.75, self.middle, lambda j, half: half * early[j] * 0.5 + (along[j] * 2.0 - half * late[j]) * 0.25,
                 lambda j, half: along[j] - half * late[j] * 0.5, late)

        def both(j: Int) -> None:
            rate[j] = (early[j] + late[j]) * 0.5

        each(f, self.nu, both)

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
        """The same with f in the middle of the step. What the
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
            stage[j] = self.between(u, along, j)

        each(f, self.nu, half)
        f.call_all("forces", f.count("n_forces"))

    def between(self, first: Memory, last: Memory, j: Int) -> Real:
        """The speed for which forces are taken, of those at the start and the end of the step."""
        return (last[j] + first[j]) * 0.5
