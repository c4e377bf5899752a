"""Steps with rigid contacts of machines whose forces may be stiff: friction that sticks, brakes, motors, cylinders,
laws. See `contact_step`.

There (2) is iterated with forces as the last round left them, which ends only if they change little with the speeds in
a step. Here speeds w solve

    w = F(w) + M^-1 J_m^T p,   F(w) = u + h M^-1 f(q_m + h/4 H (w - u), (u + w)/2)

by Newton's method: with S = (1 - F'(w))^-1 the speeds are w + S (F(w) - w), the free motion, plus S M^-1 J_m^T p, so
that impulses know how forces give way to them. F' is a difference of F along every speed, states of elements included.
Forces along speeds which they would stop within half a step are those at its end, (u + w)/2 replaced by w: such speeds
would change their signs from step to step.

Before contacts are looked at it is solved with the contact forces of the last step, with steps halved as long as they
lead away, as S sees it (natural monotonicity test: P. Deuflhard, "Newton methods for nonlinear problems", 2004):
friction that sticks is a jump, nearly. Where forces hardly change with the speeds S is 1, and steps are the usual ones.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.integrate.contact_slots import CONTACT, SLOW
from bellcrank.integrate.contact_step import ContactSteps
from bellcrank.target.array_loops import copy, each, in_registers, sum_of
from bellcrank.target.program import Builder, DriverLayout, Int, Mask, Memory, Real

__all__ = ["STIFF_CONTACT", "stiff_contact_steps", "stiff_memory"]

_POINTERS = ("slope", "made", "inverse", "bare", "guess", "here", "miss", "way", "tried_way", "share")
STIFF_CONTACT = DriverLayout(CONTACT.integers, CONTACT.reals, (*CONTACT.pointers, *_POINTERS), CONTACT.returned,
                             CONTACT.tables)

#: rounds of Newton's method, and the share of the largest speed to which they are solved
ROUNDS, SOLVED = 40, 1e-9
#: forces are not stiff where F changes by less than this share of w, unless the iteration takes more rounds than that
CALM, PATIENT = 0.1, 2
#: change of a speed for its column of F', relative to it plus what is slow: in doubles, and in floats
DIFFER, DIFFER_ROUGHLY = 1e-7, 3e-4


def stiff_memory(nu: int, stride: int) -> dict[str, int]:
    """Reals of each buffer, for one state, besides those of all steps with rigid contacts."""
    return {**dict.fromkeys(("slope", "made", "inverse"), nu * nu), "bare": stride * nu,
            **dict.fromkeys(_POINTERS[4:], nu)}


class StiffSteps(ContactSteps):
    """The driver."""

    def __init__(self, f: Builder) -> None:
        super().__init__(f)
        (self.slope, self.made_inverse, self.inverse, self.bare, self.guess, self.here, self.missed, self.way,
         self.tried, self.share) = (f.memory(name) for name in _POINTERS)
        self.gentle = f.variable(0.0)  #: lanes in which forces are not stiff
        self._apart_by = DIFFER_ROUGHLY if f.compensates else DIFFER
        self._solved = 1e-5 if f.compensates else SOLVED

    # -- Newton's method ------------------------------------------------------------------------------
    def first_motion(self, number: Int) -> None:
        f, w = self.f, self.guess
        with f.loop(self.nu) as j:
            self.share[j] = 0.5
        self.midway.set(1.0)
        super().first_motion(number)
        copy(f, self.along, w, self.nu)
        self._unit(self.inverse)
        self._miss(number, w, 1.0)
        size = f.variable(self._ahead(self.missed))
        self.gentle.set(self._probed(number, size.value))
        with f.when(~(self.gentle.value > 0.5).all()):
            self.fly_no_halves(1.0 - self.gentle.value)
            self._stop()
            self._newton(number)
            self._take_over(1.0 - self.gentle.value)

    def _take_over(self, there: Real) -> None:
        """What was found is free motion, with the contact forces of the last step in `along` and `ahead`; in some
        lanes."""
        f, w = self.f, self.guess
        some = f.variable(there)

        def less(j: Int, h: Real, there: Real) -> None:
            self.missed[j] = self.missed[j] - h * self.inherited[j]
            self.along[j] = (there > 0.5).pick(w[j], self.along[j])
            self.ahead[j] = (there > 0.5).pick(w[j] + self.tried[j], self.ahead[j])

        each(f, self.nu, less, self.step, some.value)
        self._set_free(w, some.value > 0.5)

    def _stop(self) -> None:
        """Speeds that change their signs on the way to F(w) begin with none, where friction sticks, in lanes that are
        not gentle."""
        f, u, w = self.f, self.y.at(self.nq), self.guess
        with f.loop(self.nu) as j:
            now = self.between(u, w, j)
            turns = (now * (now + self.missed[j] * self.share[j]) < 0.0).pick(1.0 - self.gentle.value, 0.0)
            w[j] = (turns * self.scaled[j] > 0.5).pick(u[j] - u[j] / self.share[j], w[j])

    def _newton(self, number: Int) -> None:
        """w and S, in lanes that are not gentle."""
        f, w = self.f, self.guess
        last, todo, round_ = f.variable(1e300), f.variable(1.0 - self.gentle.value), f.counter(0)
        with f.forever() as leave:
            self._miss(number, w, 1.0)
            size = f.variable(self._ahead(self.missed))
            better = f.variable((size.value <= last.value).pick(todo.value, 0.0))
            goal = self.fastest_of(lambda j: w[j]) * self._solved + self.still()
            with f.when(round_.value > 0):
                todo.set((size.value > goal).pick(todo.value, todo.value - better.value))
            leave(~(todo.value > 0.5).any() | (round_.value >= ROUNDS))
            better.set(better.value * todo.value)
            with f.when((better.value > 0.5).any()):
                self._turn_over(number, w, better.value, 1.0)
                last.set((better.value > 0.5).pick(self._ahead(self.missed), last.value))
            self._walk(better.value, todo.value)
            round_.set(round_.value + 1)

    def _probed(self, number: Int, size: Real) -> Real:
        """Lanes (1.0, else 0.0) in which forces change little with the speeds: along the way to F(w), which is `size`
        long, and along some other."""
        f, w, h, other = self.f, self.guess, self.step, self.way
        length = f.variable(size)

        def some(j: Int) -> Real:
            return self._apart(w[j], j) * ((j % 3).real() * 0.37 + 0.5)

        with f.loop(self.nu) as j:
            other[j] = w[j] + some(j)
        across = f.variable(self._change(number, lambda j: 1.0 / some(j)))
        with f.loop(self.nu) as j:
            other[j] = w[j] + self.missed[j]
        along = self._change(number, lambda j: self.spans[j]) / length.value.max(1e-300)
        return (across.value.max((length.value > self.still()).pick(along, 0.0)) * h < CALM).pick(1.0, 0.0)

    def _apart(self, speed: Real, j: Int) -> Real:
        """By how much a speed changes for its column of F'."""
        return (speed.abs() + SLOW / self.step / self.spans[j]) * self._apart_by

    def _change(self, number: Int, weight: Callable[[Int], Real]) -> Real:
        """The largest change of an acceleration from w to what is in `way`, times its weight."""
        f, most, rate = self.f, self.f.variable(0.0), self.rate.at(self.nq)
        self.halfway(number, self.way)
        with f.loop(self.nu) as j:
            change = (rate[j] - self.here[j]).abs() * weight(j)
            most.set(change.is_nan().pick(1e300, most.value.max(change)))
        return most.value

    def _miss(self, number: Int, w: Memory, share: float) -> None:
        """F(w) - w, with a share of what contacts did in the last step, in `missed`; accelerations in `here`."""
        f, u, rate = self.f, self.y.at(self.nq), self.rate.at(self.nq)
        (self.halfway if share else self.fly)(number, w)

        def one(j: Int, h: Real) -> None:
            self.here[j] = rate[j]
            self.missed[j] = u[j] + h * (rate[j] + self.inherited[j] * share) - w[j]

        each(f, self.nu, one, self.step)

    def _ahead(self, missed: Memory) -> Real:
        """tried = S missed, and its largest entry."""
        f, nu = self.f, self.nu
        total = f.variable(0.0)
        with f.loop(nu) as j:
            row = self.inverse.at(j * nu)
            entry = sum_of(f, nu, lambda k, row=row: row[k] * missed[k])
            self.tried[j] = entry
            total.set(entry.is_nan().pick(1e301, total.value.max(entry.abs() * self.spans[j])))
        return total.value

    def _walk(self, better: Real, todo: Real) -> None:
        """w goes ahead where the last step was good, else half of that back."""
        f, w = self.f, self.guess

        def one(j: Int, better: Real, todo: Real) -> None:
            way = (better > 0.5).pick(self.tried[j], self.way[j] * 0.5)
            self.way[j] = way
            w[j] = w[j] + (better > 0.5).pick(way, -way) * todo

        each(f, self.nu, one, better, todo)

    def _turn_over(self, number: Int, w: Memory, there: Real, share: float) -> None:
        """S at w, where accelerations are `here`, in some lanes (1.0, else 0.0); `share` as in `_miss`."""
        f, nu = self.f, self.nu
        some = f.variable(there)
        self._differentiate(number, w)
        with f.when((self._be_late(w, some.value) > 0.5).any()):
            self._miss(number, w, share)
            self._differentiate(number, w)
        self._unit(self.made_inverse)
        self._invert()

        def take(j: Int, there: Real) -> None:
            self.inverse[j] = (there > 0.5).pick(self.made_inverse[j], self.inverse[j])

        each(f, nu * nu, take, some.value)

    def _differentiate(self, number: Int, w: Memory) -> None:
        """1 - F'(w) in `slope`."""
        f, nu, h, rate = self.f, self.nu, self.step, self.rate.at(self.nq)
        with f.loop(nu) as k:
            held = f.variable(w[k])
            step = f.variable(self._apart(held.value, k))
            w[k] = held.value + step.value
            self.halfway(number, w)
            with f.loop(nu) as j:
                self.slope[j * nu + k] = (self.here[j] - rate[j]) * h / step.value
            w[k] = held.value
            self.slope[k * nu + k] = self.slope[k * nu + k] + 1.0

    def _be_late(self, w: Memory, there: Real) -> Real:
        """Lanes in which a force is to be that at the end of the step, and was not, among some: where it would stop its
        speed within half a step, which would change its sign from step to step with the one half way. Forces stay as
        they are: w becomes what it was half way."""
        f, nu, u = self.f, self.nu, self.y.at(self.nq)
        new = f.variable(0.0)
        with f.loop(nu) as k:
            late = (self.slope[k * nu + k] > 2.0).pick(there, 0.0) * 0.5 + 0.5
            turned = late > self.share[k]
            w[k] = turned.pick(self.between(u, w, k), w[k])
            new.set(turned.pick(1.0, new.value))
            self.share[k] = self.share[k].max(late)
        self.midway.set((new.value > 0.5).pick(0.0, self.midway.value))
        return new.value

    def between(self, first: Memory, last: Memory, j: Int) -> Real:
        return first[j] + (last[j] - first[j]) * self.share[j]

    def _unit(self, matrix: Memory) -> None:
        f, nu = self.f, self.nu

        def nothing(j: Int, zero: Real) -> None:
            matrix[j] = zero

        each(f, nu * nu, nothing, f.constant(0.0))
        with f.loop(nu) as j:
            matrix[j * nu + j] = 1.0

    def _invert(self) -> None:
        """made = slope^-1 made, by Gauss and Jordan; pivots are the largest of their column, each lane by itself."""
        f, nu = self.f, self.nu
        both = (self.slope, self.made_inverse)
        with f.loop(nu) as k:
            with f.loop(nu, k + 1) as i:
                swap = self.slope[i * nu + k].abs() > self.slope[k * nu + k].abs()
                with f.when(swap.any()):
                    for matrix in both:
                        self._exchange(matrix.at(k * nu), matrix.at(i * nu), swap.pick(1.0, 0.0))
            pivot = f.variable(1.0 / self.slope[k * nu + k])
            for matrix in both:
                self._scale(matrix.at(k * nu), pivot.value)
            with f.loop(nu) as i, f.when(~(i == k)):
                factor = f.variable(self.slope[i * nu + k])
                for matrix in both:
                    self._subtract(matrix.at(k * nu), matrix.at(i * nu), factor.value)

    def _exchange(self, upper: Memory, lower: Memory, swap: Real) -> None:
        def one(j: Int, swap: Real) -> None:
            a, b = upper[j], lower[j]
            upper[j] = (swap > 0.5).pick(b, a)
            lower[j] = (swap > 0.5).pick(a, b)

        each(self.f, self.nu, one, swap)

    def _scale(self, row: Memory, factor: Real) -> None:
        def one(j: Int, factor: Real) -> None:
            row[j] = row[j] * factor

        each(self.f, self.nu, one, factor)

    def _subtract(self, upper: Memory, lower: Memory, factor: Real) -> None:
        def one(j: Int, factor: Real) -> None:
            lower[j] = lower[j] - factor * upper[j]

        each(self.f, self.nu, one, factor)

    # -- what it is for -------------------------------------------------------------------------------
    def _set_free(self, w: Memory, there: Mask) -> None:
        """Free motion w + S missed, in some lanes."""
        f = self.f
        share = f.variable(there.pick(1.0, 0.0))
        self._ahead(self.missed)

        def one(j: Int, share: Real) -> None:
            self.free[j] = (share > 0.5).pick(w[j] + self.tried[j], self.free[j])

        each(f, self.nu, one, share.value)

    def again(self, number: Int) -> None:
        f = self.f
        with f.when(self.round.value > PATIENT):
            self.gentle.set((self.going.value > 0.5).pick(0.0, self.gentle.value))
            self.fly_no_halves(self.going.value)
        self._miss(number, self.wanted, 0.0)
        self.more.set(0)
        stiff = f.variable(self.going.value * (1.0 - self.gentle.value))
        with f.when((stiff.value > 0.5).any()):
            self._turn_over(number, self.wanted, stiff.value, 0.0)
        self._set_free(self.wanted, self.going.value > 0.5)
        with f.when((self.count.value > 0) & (stiff.value > 0.5).any()):
            self._give_way()
            self.multiply(self.rows)
            with f.when((self.phase.value > 0) & (self.meeting.value > 0.5).any()):
                self.multiply(self.pushing, self.meeting.value > 0.5)

    def answered(self) -> None:
        f = self.f
        with f.loop(self.nu) as j:
            row, kept = self.response.at(j * self.stride), self.bare.at(j * self.stride)

            def one(r: Int, row: Memory = row, kept: Memory = kept) -> None:
                kept[r] = row[r]

            in_registers(f, self.cone.rows(), one)
        self._give_way()

    def _give_way(self) -> None:
        """response = S M^-1 J_m^T."""
        f, nu, stride = self.f, self.nu, self.stride
        with f.loop(nu) as j:
            row, weights = self.response.at(j * stride), self.inverse.at(j * nu)

            def one(r: Int, row: Memory = row, weights: Memory = weights) -> None:
                row[r] = f.fold(nu, f.constant(0.0),
                                lambda k, x: x + weights.everywhere(k) * self.bare[k * stride + r])

            in_registers(f, self.cone.rows(), one)

    def moved_alone(self, p: Memory, j: Int) -> Real:
        row = self.bare.at(j * self.stride)
        return sum_of(self.f, self.cone.rows(), lambda r: row[r] * p[r])


def stiff_contact_steps(f: Builder) -> None:
    """The driver."""
    s = StiffSteps(f)
    s.run(s.one_step, lambda: f.call_all("adding", f.count("n_adding")))
