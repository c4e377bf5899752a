"""Implicit Runge-Kutta methods (collocation) in compiled code, one state at a time.

The stages z_i = h sum_j a_ij f(y + z_j) are found by a simplified Newton iteration: the Jacobian of f (exact, by
blocks of the list `derivatives`, or by differences) and the factors of I - h A (x) J are kept over many steps and made
anew when the iteration becomes slow. Without factors (`newton` 0, for large problems that are not stiff) the iteration
is by substitution.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.integrate.fixed_step import STEPPING, Stepping
from bellcrank.target.program import Bool, Builder, DriverLayout, Int, Integers, Memory, Real

__all__ = ["IMPLICIT", "by_differences", "collocation", "factorise", "not_finite", "solve_factored"]

IMPLICIT = DriverLayout((*STEPPING.integers, "stages", "newton", "anew", "iterations", "factored",
                         "n_derivatives"),
                        (*STEPPING.reals, "tolerance"),
                        (*STEPPING.pointers, "a", "c", "d", "ahead", "z", "change", "jacobian", "matrix", "pivots",
                         "derivatives"),
                        returned=("iterations", "factored"), tables=("a", "c", "d", "ahead"))

#: an iteration is given up after this many rounds; above SLOW the Jacobian is made anew for the next step
LIMIT, SLOW = 30, 6


class _Implicit:
    def __init__(self, f: Builder) -> None:
        self.f, self.s = f, Stepping(f)
        self.size, self.stages = self.s.size, f.count("stages")
        self.order = self.size * self.stages
        self.a, self.c, self.d = f.table("a"), f.table("c"), f.table("d")
        self.z, self.slopes, self.change = f.memory("z"), f.memory("slopes"), f.memory("change")
        self.jacobian, self.matrix, self.pivots = f.memory("jacobian"), f.memory("matrix"), f.integers_at("pivots")
        self.newton = f.count("newton")
        self.stale, self.rounds, self.good = f.counter(0), f.counter(0), f.counter(0)

    def differentiate(self, number: Int) -> None:
        """The Jacobian at the step's beginning, exact, or by forward differences."""
        f, s, size = self.f, self.s, self.size
        with f.loop(size) as j:
            s.stage[j] = s.y[j]
        s.at(number)
        with f.when(f.count("n_derivatives") > 0):
            f.call_all("derivatives", f.count("n_derivatives"))
        with f.when((f.count("n_derivatives") == 0) | not_finite(f, self.jacobian, size * size)):
            self.difference()

    def difference(self) -> None:
        """The same by forward differences."""
        f, s, size = self.f, self.s, self.size
        s.evaluate()
        with f.loop(size) as j:
            self.change[j] = s.rate[j]
        by_differences(f, self.jacobian, size, s.y, s.stage, s.rate, self.change, s.evaluate)

    def assemble(self) -> None:
        """I - h A (x) J."""
        f, size, m = self.f, self.size, self.order
        with f.loop(self.stages) as i, f.loop(self.stages) as j:
            weight = self.s.step * self.a[i * self.stages + j]
            with f.loop(size) as r, f.loop(size) as c:
                self.matrix[(i * size + r) * m + j * size + c] = -(self.jacobian[r * size + c] * weight)
        with f.loop(m) as r:
            self.matrix[r * m + r] = self.matrix[r * m + r] + 1.0

    def residual(self, number: Int) -> None:
        """change = h sum_j a_ij f(y + z_j) - z_i."""
        f, s, size = self.f, self.s, self.size
        with f.loop(self.stages) as i:
            with f.loop(size) as j:
                s.stage[j] = s.y[j] + self.z[i * size + j]
            s.at(number, self.c[i])
            s.evaluate()
            with f.loop(size) as j:
                self.slopes[i * size + j] = s.rate[j]
        with f.loop(self.stages) as i, f.loop(size) as j:
            total = f.variable(0.0)
            with f.loop(self.stages) as r:
                total.set(total.value + self.a[i * self.stages + r] * self.slopes[r * size + j])
            self.change[i * size + j] = s.step * total.value - self.z[i * size + j]

    def advance(self) -> Real:
        """z += change; returns how large the change was."""
        f, size = self.f, self.size
        largest = f.variable(0.0)
        with f.loop(self.stages) as i, f.loop(size) as j:
            change = self.change[i * size + j]
            self.z[i * size + j] = self.z[i * size + j] + change
            relative = change.abs() / (self.s.y[j].abs() + 1.0)
            bad = relative.is_nan()
            largest.set(bad.pick(1e300, largest.value.max(relative)))
        return largest.value

    def forget(self) -> None:
        """Begin with no guess."""
        with self.f.loop(self.order) as j:
            self.z[j] = 0.0

    def begin(self) -> None:
        """Forget what belongs to another state."""
        with self.f.when(self.f.count("anew") == 1):
            self.stale.set(1)
            self.forget()

    def iterate(self, number: Int) -> None:
        """Until the change is at rounding; sets `good` to 1 if it gets there."""
        f, before = self.f, self.f.variable(1e300)
        self.rounds.set(0)
        with f.forever() as leave:
            self.residual(number)
            with f.when(self.newton == 1):
                solve_factored(f, self.matrix, self.pivots, self.order, self.change)
            change = self.advance()
            self.rounds.set(self.rounds.value + 1)
            f.set_count("iterations", f.count("iterations") + 1)
            slow = change > before.value * 0.3
            floor = slow.any() & (change < 1e-9).any()
            done = (change <= f.real("tolerance")).any() | floor
            with f.when(done):
                self.good.set(1)
            leave(done)
            leave(self.rounds.value >= LIMIT)
            leave((self.rounds.value > 3) & (change > before.value * 2.0).any())
            before.set(change)

    def one_step(self, number: Int) -> None:
        """Stages by iteration, with a new Jacobian where the old one does not serve, and the step's result."""
        f = self.f
        fresh = f.counter(0)
        self.good.set(0)
        with f.when(self.newton == 0):
            fresh.set(1)
        with f.forever() as leave:
            with f.when((self.stale.value == 1) & (self.newton == 1)):
                self.differentiate(number)
                self.assemble()
                factorise(f, self.matrix, self.pivots, self.order)
                f.set_count("factored", f.count("factored") + 1)
                self.stale.set(0)
                fresh.set(1)
            self.iterate(number)
            leave(self.good.value == 1)
            leave(fresh.value == 1)
            self.stale.set(1)
            self.forget()
        with f.when(self.rounds.value > SLOW):
            self.stale.set(1)
        self.combine()

    def combine(self) -> None:
        """stage = y + sum_i d_i z_i, and the next step's first guess; NaN if the iteration failed."""
        f, s, size = self.f, self.s, self.size
        ahead = f.table("ahead")
        with f.loop(size) as j:
            total = f.variable(s.y[j])
            with f.loop(self.stages) as i:
                total.set(total.value + self.d[i] * self.z[i * size + j])
            s.stage[j] = total.value
            with f.loop(self.stages) as i:
                guess = f.variable(0.0)
                with f.loop(self.stages) as r:
                    guess.set(guess.value + ahead[i * self.stages + r] * self.z[r * size + j])
                self.change[i * size + j] = guess.value
        with f.loop(self.order) as j:
            self.z[j] = self.change[j]
        with f.when(self.good.value == 0):
            self.stale.set(1)
            self.forget()
            with f.loop(size) as j:
                s.stage[j] = float("nan")


def by_differences(f: Builder, jacobian: Memory, size: Int, y: Memory, stage: Memory, rate: Memory, here: Memory,
                   evaluate: Callable[[], None]) -> None:
    """A Jacobian at y by forward differences: `evaluate` makes the `rate` of a `stage`, `here` is that of y, which the
    stage is before and after."""
    with f.loop(size) as k:
        held = y[k]
        step = (held.abs() + 1.0) * 1.5e-8
        stage[k] = held + step
        evaluate()
        with f.loop(size) as j:
            jacobian[j * size + k] = (rate[j] - here[j]) / step
        stage[k] = held


def not_finite(f: Builder, entries: Memory, count: Int) -> Bool:
    """Whether an entry is not finite: at kinks, such as that of a length at zero, there is no derivative."""
    total = f.variable(0.0)
    with f.loop(count) as j:
        total.set(total.value + entries[j] * 0.0)
    return total.value.is_nan().any()


def factorise(f: Builder, matrix: Memory, pivots: Integers, m: Int) -> None:
    """LU factors with row exchanges, in place."""
    with f.loop(m) as k:
        best, row = f.variable(-1.0), f.counter(k)
        with f.loop(m, k) as i:
            size = matrix[i * m + k].abs()
            with f.when((size > best.value).any()):
                best.set(size)
                row.set(i)
        p = row.value
        pivots[k] = p
        with f.loop(m) as j:
            upper, lower = matrix[k * m + j], matrix[p * m + j]
            matrix[k * m + j] = lower
            matrix[p * m + j] = upper
        inverse = 1.0 / matrix[k * m + k]
        with f.loop(m, k + 1) as i:
            factor = matrix[i * m + k] * inverse
            matrix[i * m + k] = factor
            with f.loop(m, k + 1) as j:
                matrix[i * m + j] = matrix[i * m + j] - factor * matrix[k * m + j]


def solve_factored(f: Builder, matrix: Memory, pivots: Integers, m: Int, x: Memory) -> None:
    """x = matrix^-1 x, from the factors."""
    with f.loop(m) as k:
        p = pivots[k]
        upper, lower = x[k], x[p]
        x[k] = lower
        x[p] = upper
    with f.loop(m) as i:
        total = f.variable(x[i])
        with f.loop(i) as j:
            total.set(total.value - matrix[i * m + j] * x[j])
        x[i] = total.value
    with f.loop(m) as back:
        i = m - 1 - back
        total = f.variable(x[i])
        with f.loop(m, i + 1) as j:
            total.set(total.value - matrix[i * m + j] * x[j])
        x[i] = total.value / matrix[i * m + i]


def collocation(f: Builder) -> None:
    """A collocation method, in one lane."""
    x = _Implicit(f)
    x.s.run(x.one_step, x.begin)
