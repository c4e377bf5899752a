"""Radau IIA of order 5 with step-size control and dense output in compiled code, one state at a time.

E. Hairer and G. Wanner, "Solving Ordinary Differential Equations II", 1996, section IV.8.

| there | here |
|---|---|
| z_i, w = (T⁻¹ (x) I) z (8.2a), (8.6) | ``z``, ``w`` |
| γ, α ± iβ, T, T⁻¹ (8.5) | `tableaux.stiff_radau` |
| h⁻¹γ I - J, h⁻¹(α ± iβ) I - J (8.10), (8.11) | ``first``, ``second`` (twice the size, real) |
| θ, η, κ (8.8), (8.10) of IV.8 | ``theta``, ``newton`` |
| err (8.19), (8.20) | `error` |
| the collocation polynomial | `interpolate`, and the first guess of the next step |

The Jacobian of the rates is exact, by blocks of the list `derivatives`; where there are none, by differences. It is
kept while the iteration converges quickly, its factors while the step does not change. After a step the loops are
closed like after any other.
"""

from __future__ import annotations

from bellcrank.integrate.adaptive import ADAPTIVE, Adaptive, integrate
from bellcrank.integrate.implicit import by_differences, factorise, not_finite, solve_factored
from bellcrank.integrate.tableaux import StiffRadau, stiff_radau
from bellcrank.target.array_loops import copy
from bellcrank.target.program import Builder, DriverLayout, Int, Memory, Real

__all__ = ["STIFF", "stiff_pair"]

STIFF = DriverLayout((*ADAPTIVE.integers, "n_derivatives", "differentiated", "factored", "iterations", "guessed",
                      "stale", "here"),
                     (*ADAPTIVE.reals, "newton", "before", "of"),
                     (*ADAPTIVE.pointers, "z", "w", "change", "jacobian", "first", "second", "pivots", "pivots2",
                      "last", "derivatives"),
                     returned=(*ADAPTIVE.returned, "differentiated", "factored", "iterations", "guessed", "stale",
                               "here", "before", "of"), tables=ADAPTIVE.tables)

#: rounds of an iteration at most
ROUNDS = 7
#: below this rate of convergence the Jacobian is good for the next step, too
QUICK = 1e-3
#: steps that would grow by less than this stay, and with them the factors
SAME = 1.2
#: what the error is if an iteration does not converge: the step becomes a fifth
FAILED = 1e6


class _Stiff(Adaptive):
    growth = 8.0

    def __init__(self, f: Builder, figures: StiffRadau) -> None:
        super().__init__(f, 4)  # slopes: at the beginning, three stages, at the end
        self.figures = figures
        self.z, self.w, self.change = f.memory("z"), f.memory("w"), f.memory("change")
        self.last = f.memory("last")  #: z of the last step
        self.jacobian, self.first, self.second = f.memory("jacobian"), f.memory("first"), f.memory("second")
        self.pivots, self.pivots2 = f.integers_at("pivots"), f.integers_at("pivots2")
        # kept from one call to the next: where calls end must not show
        self.stale = f.counter(f.count("stale"))  #: whether the Jacobian is to be made anew
        self.here = f.counter(f.count("here"))  #: whether it belongs to the present state
        self.of = f.variable(f.real("of"))  #: the step that the factors belong to
        self.theta, self.rounds, self.good = f.variable(0.0), f.counter(0), f.counter(0)

    # -- Jacobian and factors -----------------------------------------------------------------------
    def differentiate(self) -> None:
        """The Jacobian at the step's beginning."""
        f, size = self.f, self.size
        copy(f, self.y, self.stage, size)
        self.clock[0] = self.time.value
        with f.when(f.count("n_derivatives") > 0):
            f.call_all("derivatives", f.count("n_derivatives"))
        without = (f.count("n_derivatives") == 0) | not_finite(f, self.jacobian, size * size)
        with f.when(without):
            by_differences(f, self.jacobian, size, self.y, self.stage, self.rate, self.slopes, self.rates)
        f.set_count("differentiated", f.count("differentiated") + 1)
        self.stale.set(0)
        self.here.set(1)
        self.of.set(0.0)

    def factor(self, h: Real) -> None:
        """(8.10), (8.11)"""
        f, size, g = self.f, self.size, self.figures
        real, a, b = (f.constant(x) / h for x in (g.real, g.complex.real, g.complex.imag))
        twice = size * 2
        with f.loop(size) as r:
            with f.loop(size) as c:
                entry = -self.jacobian[r * size + c]
                self.first[r * size + c] = entry
                self.second[r * twice + c] = entry
                self.second[(r + size) * twice + c + size] = entry
                self.second[r * twice + c + size] = 0.0
                self.second[(r + size) * twice + c] = 0.0
            self.first[r * size + r] = self.first[r * size + r] + real
            self.second[r * twice + r] = self.second[r * twice + r] + a
            self.second[(r + size) * twice + r + size] = self.second[(r + size) * twice + r + size] + a
            self.second[r * twice + r + size] = -b
            self.second[(r + size) * twice + r] = b
        factorise(f, self.first, self.pivots, size)
        factorise(f, self.second, self.pivots2, twice)
        f.set_count("factored", f.count("factored") + 1)
        self.of.set(h)

    # -- the stages -----------------------------------------------------------------------------------
    def guess(self, h: Real) -> None:
        """z from the polynomial of the last step, or zero; and w."""
        f, size = self.f, self.size
        known = f.count("guessed") == 1
        ratio = h / f.real("before")
        with f.loop(size) as j:
            for i in range(3):
                self.z[size * i + j] = 0.0
            with f.when(known):
                for i, c in enumerate(self.figures.c):
                    ahead = self._polynomial(self.last, j, ratio * float(c) + 1.0)
                    self.z[size * i + j] = ahead - self.last[size * 2 + j]
        self.mix(self.figures.inverse, self.z, self.w)

    def _polynomial(self, z: Memory, j: Int, x: Real) -> Real:
        """The collocation polynomial's increment at the part x of a step."""
        total: Real | None = None
        for i, powers in enumerate(self.figures.dense.tolist()):  # of x, x^2, x^3
            weight = ((x * powers[2] + powers[1]) * x + powers[0]) * x
            part = weight * z[self.size * i + j]
            total = part if total is None else total + part
        assert total is not None
        return total

    def mix(self, table: object, source: Memory, target: Memory) -> None:
        """Three vectors as combinations of three others."""
        f, size = self.f, self.size
        with f.loop(size) as j:
            old = [source[size * i + j] for i in range(3)]
            for i, row in enumerate(table.tolist()):  # type: ignore[attr-defined]
                target[size * i + j] = (old[0] * row[0] + old[1] * row[1]) + old[2] * row[2]

    def iterate(self, h: Real) -> None:
        """Simplified Newton iteration, (8.13), until the change is small enough; sets `good`."""
        f, size, g = self.f, self.size, self.figures
        before, estimate = f.variable(0.0), f.variable(0.0)
        self.rounds.set(0)
        self.good.set(0)
        self.theta.set(0.0)
        real, a, b = (f.constant(x) / h for x in (g.real, g.complex.real, g.complex.imag))
        with f.forever() as leave:
            for i, c in enumerate(g.c):
                with f.loop(size) as j:
                    self.stage[j] = self.y[j] + self.z[size * i + j]
                self.clock[0] = self.time.value + h * float(c)
                self.slope(i + 1)
            self.mix(g.inverse, self.slopes.at(size), self.change)
            with f.loop(size) as j:
                w = [self.w[size * i + j] for i in range(3)]
                self.change[j] = self.change[j] - real * w[0]
                self.change[size + j] = self.change[size + j] - (a * w[1] - b * w[2])
                self.change[size * 2 + j] = self.change[size * 2 + j] - (a * w[2] + b * w[1])
            solve_factored(f, self.first, self.pivots, size, self.change)
            solve_factored(f, self.second, self.pivots2, size * 2, self.change.at(size))
            change = self.norm(self.change)
            self.rounds.set(self.rounds.value + 1)
            f.set_count("iterations", f.count("iterations") + 1)
            later = self.rounds.value > 1
            with f.when(later):
                self.theta.set(change / before.value)
                estimate.set(self.theta.value / (1.0 - self.theta.value) * change)
            bad = change.is_nan().any() | (later & (self.theta.value >= 0.99).any())
            leave(bad)
            with f.loop(size * 3) as j:
                self.w[j] = self.w[j] + self.change[j]
            self.mix(g.matrix, self.w, self.z)
            done = (change <= 1e-300).any() | (later & (estimate.value <= f.real("newton")).any())
            with f.when(done):
                self.good.set(1)
            leave(done)
            leave(self.rounds.value >= ROUNDS)
            before.set(change)

    def norm(self, x: Memory) -> Real:
        """Root mean square of three vectors, in units of the tolerance."""
        f, total = self.f, self.f.variable(0.0)
        atol, rtol = f.real("atol"), f.real("rtol")
        with f.loop(self.size) as j:
            scale = atol + rtol * self.y[j].abs()
            for i in range(3):
                part = x[self.size * i + j] / scale
                total.set(total.value + part * part)
        return (total.value / (self.size.real() * 3.0)).sqrt()

    def attempt(self, h: Real) -> None:
        """The stages, with new factors where they are needed, and the result of the step, corrected, in `new`."""
        f = self.f
        with f.forever() as leave:
            with f.when(self.stale.value == 1):
                self.differentiate()
            with f.when((self.of.value < h).any() | (self.of.value > h).any()):
                self.factor(h)
            self.guess(h)
            self.iterate(h)
            leave(self.good.value == 1)
            leave(self.here.value == 1)
            self.stale.set(1)  # the Jacobian was an old one
        with f.loop(self.size) as j:
            self.stage[j] = self.y[j] + self.z[self.size * 2 + j]
        self.land(h)

    # -- error and samples ------------------------------------------------------------------------------
    def error(self, h: Real) -> Real:
        """(8.19), and (8.20) for steps that would be rejected; in units of the tolerance."""
        f, found = self.f, self.f.variable(0.0)
        self._estimate(h, self.slopes)
        found.set(self._measure())
        with f.when((found.value > 1.0).any()):
            with f.loop(self.size) as j:
                self.stage[j] = self.y[j] + self.change[j]
            self.clock[0] = self.time.value
            self.rates()
            self._estimate(h, self.rate)
            found.set(self._measure())
        last = self.slopes.at(self.size * self.stages)
        with f.loop(self.size) as j:  # NaN if the end is not finite
            found.set(found.value + last[j] * 0.0)
        return (self.good.value.real() > 0.5).pick(found.value, FAILED)

    def _estimate(self, h: Real, slope: Memory) -> None:
        f, size = self.f, self.size
        with f.loop(size) as j:
            total = slope[j]
            for i, e in enumerate(self.figures.e.tolist()):
                total = total + self.z[size * i + j] * e / h
            self.change[j] = total
        solve_factored(f, self.first, self.pivots, size, self.change)

    def _measure(self) -> Real:
        f, total = self.f, self.f.variable(0.0)
        atol, rtol = f.real("atol"), f.real("rtol")
        with f.loop(self.size) as j:
            part = self.change[j] / self.scale(j, atol, rtol)
            total.set(total.value + part * part)
        return (total.value / self.size.real()).sqrt()

    def further(self, h: Real) -> None:
        """The interpolant needs nothing else."""

    def interpolate(self, x: Real, h: Real) -> None:
        with self.f.loop(self.size) as j:
            self.stage[j] = self.y[j] + self._polynomial(self.z, j, x)
        self.clock[0] = self.time.value + x * h
        self.corrected()

    def take(self, h: Real) -> None:
        super().take(h)
        f = self.f
        copy(f, self.z, self.last, self.size * 3)
        f.set_real("before", h)
        f.set_count("guessed", 1)
        self.here.set(0)
        with f.when((self.theta.value > QUICK).any()):
            self.stale.set(1)

    def safety(self) -> Real:
        """Less where the iteration took long."""
        return 0.9 * (2.0 * ROUNDS + 1.0) / (self.rounds.value.real() + 2.0 * ROUNDS)

    def next_step(self, h: Real, factor: Real) -> Real:
        return h * (factor < SAME).pick(factor.min(1.0), factor)

    def keep(self) -> None:
        f = self.f
        f.set_count("stale", self.stale.value)
        f.set_count("here", self.here.value)
        f.set_real("of", self.of.value)


def stiff_pair(f: Builder) -> None:
    """A driver of Radau IIA with step-size control, in one lane."""
    integrate(f, _Stiff(f, stiff_radau()))
