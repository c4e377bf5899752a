"""Steps with rigid contacts make no energy. See `contact_step`.

Impulses do no work that they should not, with the bodies where they are half way. But in a step in which bodies meet,
speeds change at once, and by much; if joints turn by much in the same step, the kinetic energy that these speeds have
at its end is another one, and may be larger than what there was. So the energy of the machine, E = T + V, is looked at
at the start and at the end of such a step. What it has more than forces that are not in V have given,

    E+ - E - max(W, 0) - D,   W = h P,   P = dE/dt half way, with the accelerations of free motion,

is taken from the speeds, all of them in the same ratio: bodies that do not part, stick or roll still do so with them,
those that part still part, and loops stay closed. D is what impulses get from motions that are prescribed (a bat hits
a ball): T(q_m, u+) - T(q_m, u_f) less p J_m (u_f + u+)/2, zero where nothing is. When in the step they act is not
known: with the speeds that such motions have at its start or at its end, whichever gives more.

In other steps with turns of more than `TURNS` what impulses take is known, too, p J_m (u + u+)/2, nothing where bodies
roll: the change of energy is between W and that with it, and speeds are made smaller or larger such that it is.
Slower motions are as they are: their energy is right to the third power of what they turn in a step. So are those of
machines with prescribed motions: what drives give to the bodies they move is known no better, and would be missed, or
too much, elsewhere.
"""

from __future__ import annotations

from bellcrank.integrate.contact_motion import FreeMotion
from bellcrank.target.array_loops import copy, each, sum_of
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["ContactEnergy"]

#: speeds times the step [rad] above which the energy of every step is looked at; of distances: see `spans`
TURNS = 0.005
#: dE/dt is a difference over this share of a step, or in which speeds change by that share of the largest: in doubles,
#: and in floats
DIFFER, DIFFER_ROUGHLY = (1e-3, 3e-5), (0.1, 0.03)
#: energy that is not more than rounding, relative to T+: in doubles, and in floats
ROUNDING, ROUGH_ROUNDING = 1e-13, 1e-5
#: where speeds would change by so many times the largest in a step, loops are nearly singular half way, where dE/dt is
#: no matter
WILD = 4.0
#: a step that has made more than T+ and this share of T fails: a stiff stop was passed, or loops have gone elsewhere;
#: what is at rest has no T, and rounding of E is no energy made: less than this share of E, in doubles and in floats
BEYOND, REST, ROUGH_REST = 0.1, 1e-6, 1e-3
#: the largest ratio by which T+ becomes larger
MORE = 1.1


class ContactEnergy(FreeMotion):
    """A driver that knows the energy of the machine."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        self.met = f.variable(0.0)  #: lanes in which bodies meet
        self.midway = f.variable(1.0)  #: lanes in which forces are those half way, as far as speeds go
        self._differ, self._rounding = (DIFFER_ROUGHLY, ROUGH_ROUNDING) if f.compensates else (DIFFER, ROUNDING)

    def energy(self) -> tuple[Real, Real]:
        """E and T of what is in `stage` at `clock`, without the inertia that is added."""
        f, u = self.f, self.stage.at(self.nq)
        total = f.variable(self._total())
        lent = f.variable(sum_of(f, self.nu, lambda j: self.added[j] * u[j] * u[j]) * 0.5)
        return total.value - lent.value, f.memory("energy")[0] - lent.value

    def _total(self) -> Real:
        f, energy = self.f, self.f.memory("energy")
        f.call_all("energies", f.count("n_energies"))
        return energy[0] + energy[1] + energy[2]

    def given(self, number: Int, ends: Memory) -> Real:
        """W, for speeds with which the step `ends`."""
        f, stage, u, a = self.f, self.stage, self.stage.at(self.nq), self.rate.at(self.nq)
        self.halfway(number, ends)
        with f.when(f.count("n_corrections") > 0):  # forces of loops do no work where these are closed
            super().correct()
            f.call_all("forces", f.count("n_forces"))
        f.call_all("rates", f.count("n_rates"))
        lent = f.variable(sum_of(f, self.nu, lambda j: u[j] * self.extra[j]) * self.step)
        change = self.fastest_of(lambda j: a[j] * self.scaled.along(j)).max(1e-300)
        speed = self.fastest_of(lambda j: u[j] * self.scaled.along(j))
        share = f.variable((self.step * self._differ[0]).min(speed / change * self._differ[1]))

        def moved(by: float) -> Real:
            def one(j: Int, way: Real) -> None:
                stage[j] = stage[j] + self.rate[j] * way

            each(f, self.size, one, share.value * by)
            self.clock[0] = self.clock[0] + share.value * by
            return f.variable(self._total()).value

        later = moved(1.0)
        work = (later - moved(-2.0)) * (self.step * 0.5 / share.value.max(1e-300)) - lent.value
        found = (work * 0.0 == 0.0).pick(share.value * WILD, 0.0)
        return (found >= self.step * self._differ[1]).pick(work, 0.0)

    def lost(self, ends: Memory) -> Real:
        """What impulses may have taken, p J_m (u + u+)/2 or nothing, for speeds with which the step `ends`."""
        f, first, last, p = self.f, self.cone.x, self.cone.wanted, self.acted
        self.velocities(self.pushing, self.y.at(self.nq), first)
        self.velocities(self.pushing, ends, last)
        return sum_of(f, self.cone.rows(), lambda r: p[r] * (first[r] + last[r]) * 0.5).min(0.0)

    def driven(self, number: Int) -> Real:
        """D, where motions are prescribed."""
        f, speed, x = self.f, self.stage.at(self.nq), self.cone.x
        got = f.variable(0.0)
        with f.when((f.count("prescribes") > 0) & (self.count.value > 0)):
            self.at(number, 0.5)
            self.stand(self.middle, self.free)

            def push(share: float) -> None:
                with f.loop(self.nu) as j:
                    speed[j] = speed[j] + self.moved_alone(self.acted, j) * share

            self._total()
            got.set(-f.memory("energy")[0])
            push(0.5)
            self.velocities(self.pushing, speed, x)
            got.set(got.value - sum_of(f, self.cone.rows(), lambda r: self.acted[r] * x[r]))
            push(0.5)
            self._total()
            got.set(got.value + f.memory("energy")[0])
            with f.loop(self.nu) as j:
                speed[j] = (1.0 - self.scaled[j]) * (self.ahead[j] - self.y[self.nq + j])
            self.velocities(self.pushing, speed, x)
            got.set(got.value + sum_of(f, self.cone.rows(), lambda r: self.acted[r] * x[r]).max(0.0))
        return got.value

    def make_none(self, number: Int) -> None:
        """Take from the speeds in `stage` what the step has made."""
        f, u, new = self.f, self.y.at(self.nq), self.stage.at(self.nq)
        turned = self.fastest_of(lambda j: u[j].abs().max(new[j].abs()) * self.scaled.along(j)) * self.step
        fast = f.variable((turned > TURNS).pick((1.0 - self.met.value) * (1.0 - f.count("prescribes").real()), 0.0))
        with f.when((fast.value.max(self.met.value) > 0.5).any()), f.loop(f.count("prescribes") + 1):
            self._take_back(number, fast.value)

    def _take_back(self, number: Int, fast: Real) -> None:
        f = self.f
        copy(f, self.stage, self.end, self.nq)
        copy(f, self.stage.at(self.nq), self.ahead, self.nu)
        last, kinetic = (f.variable(x) for x in self.energy())
        self.at(number)
        copy(f, self.y, self.stage, self.size)
        first, before = (f.variable(x) for x in self.energy())
        made = f.variable(last.value - first.value)
        up = f.variable((made.value > kinetic.value * self._rounding).pick(self.met.value, 0.0).max(fast))
        with f.when((up.value > 0.5).any()):
            work = f.variable(self.given(number, self.ahead))
            most = f.variable((fast > 0.5).pick(work.value, work.value.max(0.0)) + self.driven(number))
            least = (fast * self.midway.value > 0.5).pick(most.value + self.lost(self.ahead), -1e300)
            change = made.value.max(least).min(most.value) - made.value
            left = (change / kinetic.value.max(1e-300) + 1.0).max(0.0).min(MORE)
            still = (last.value.abs() + first.value.abs()) * (ROUGH_REST if f.compensates else REST)
            lost = (-change > kinetic.value + before.value * BEYOND + still).pick(up.value, 0.0) > 0.5
            ratio = f.variable(lost.pick(float("nan"), (up.value > 0.5).pick(left.sqrt(), 1.0)))
            with f.loop(self.nu) as j:
                self.ahead[j] = self.ahead[j] * (self.scaled[j] * (ratio.value - 1.0) + 1.0)
        self.stand(self.end, self.ahead)
        self.at(number, 1.0)
        with f.when((up.value > 0.5).any()):
            super().correct()  # motions that are prescribed
            for old, start, count in ((self.end, 0, self.nq), (self.ahead, self.nq, self.nu)):
                new = self.stage.at(start)
                with f.loop(count) as j:
                    new[j] = (up.value > 0.5).pick(new[j], old[j])
