"""Explicit Runge-Kutta pairs with step-size control and dense output in compiled code, one state at a time.

Steps are as long as the error estimate allows; samples at given times come from the pair's interpolant (and are put
back onto the constraints like steps are). The driver returns after `limit` steps, at the end, or when a step gives
numbers that are not finite (`status` 1) or becomes too short (`status` 2).
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.integrate.fixed_step import STEPPING, correct
from bellcrank.target.program import Builder, DriverLayout, Int, Real

__all__ = ["ADAPTIVE", "embedded_pair"]

#: a sample whose correction is larger than this, in units of the tolerance, is not to be trusted
_PROPORTION = 30.0
#: unless that of the step itself was nearly as large: so many times
_UNLIKE = 10.0

ADAPTIVE = DriverLayout(
    ("size", "stages", "more", "powers", "limit", "steps", "rejected", "status", "sampled", "samples", "known",
     "shrink", "n_rates", "n_forces", "n_holds", "n_corrections", "n_shift", "rounds", "n_inputs"),
    ("time", "step", "end", "rtol", "atol", "near", "far", "smallest", "exponent"),
    (*STEPPING.pointers, "new", "times", "trace", "e", "e3", "dense", "more_a", "more_c"))


class _Adaptive:
    def __init__(self, f: Builder) -> None:
        self.f = f
        self.size, self.stages, self.more = f.count("size"), f.count("stages"), f.count("more")
        self.y, self.stage, self.rate, self.clock, self.slopes, self.new = (
            f.memory(n) for n in ("y", "stage", "rate", "clock", "slopes", "new"))
        self.time, self.step = f.variable(f.real("time")), f.variable(f.real("step"))
        self.end = f.real("end")
        self.moved = f.variable(0.0)  #: by how much the last step was corrected

    def slope(self, index: Int | int) -> None:
        """Evaluate what is in `stage` as slope `index`."""
        f = self.f
        f.call_all("rates", f.count("n_rates"))
        f.call_all("forces", f.count("n_forces"))
        with f.loop(self.size) as j:
            row = index * self.size if isinstance(index, Int) else self.size * index
            self.slopes[row + j] = self.rate[j]

    def combine(self, weight: Callable[[Int], Real], count: Int, h: Real) -> None:
        """stage = y + h * the weighted sum of the first `count` slopes."""
        f = self.f
        with f.loop(self.size) as j:
            total = f.variable(0.0)
            with f.loop(count) as r:
                total.set(total.value + self.slopes[r * self.size + j] * weight(r))
            self.stage[j] = self.y[j] + h * total.value

    def attempt(self, h: Real) -> None:
        """All slopes of a step and its result, corrected, in `new`."""
        f, a, b, c = self.f, self.f.table("a"), self.f.table("b"), self.f.table("c")
        with f.loop(self.stages, 1) as i:
            row = i * self.stages
            self.combine(lambda r: a[row + r], i, h)
            self.clock[0] = self.time.value + c[i] * h
            self.slope(i)
        self.combine(lambda r: b[r], self.stages, h)
        self.clock[0] = self.time.value + h
        self.corrected()
        with f.loop(self.size) as j:
            self.new[j] = self.stage[j]
        self.moved.set(self.shift())
        self.slope(self.stages)

    def corrected(self) -> None:
        """Correct `stage`, which is kept in `rate` as it was."""
        with self.f.loop(self.size) as j:
            self.rate[j] = self.stage[j]
        correct(self.f, self.size)

    def error(self, h: Real) -> Real:
        """The step's error in units of the tolerance."""
        f = self.f
        squares = [f.variable(0.0), f.variable(0.0)]
        with f.loop(self.size) as j:
            scale = f.real("atol") + f.real("rtol") * self.y[j].abs().max(self.new[j].abs())
            for square, table in zip(squares, (f.table("e"), f.table("e3")), strict=True):
                total = f.variable(0.0)
                with f.loop(self.stages + 1) as i:
                    total.set(total.value + table[i] * self.slopes[i * self.size + j])
                part = total.value / scale
                square.set(square.value + part * part)
        five, three = squares[0].value, squares[1].value
        below = ((five + three * 0.01) * self.size.real()).sqrt() + 1e-300
        return h.abs() * five / below

    def further(self, h: Real) -> None:
        """The slopes that only the interpolant needs."""
        f, weights, nodes = self.f, self.f.table("more_a"), self.f.table("more_c")
        width = self.stages + self.more + 1
        with f.loop(self.more) as i:
            known, row = i + self.stages + 1, i * width
            self.combine(lambda r: weights[row + r], known, h)
            self.clock[0] = self.time.value + nodes[i] * h
            self.slope(known)

    def interpolate(self, x: Real, h: Real) -> None:
        """The interpolant at the part x of the step, corrected, in `stage`, and as it was in `rate`."""
        f, dense, powers = self.f, self.f.table("dense"), self.f.count("powers")

        def weight(r: Int) -> Real:
            total = f.variable(0.0)
            with f.loop(powers) as p:  # Horner, from the highest power
                total.set((total.value + dense[r * powers + (powers - 1 - p)]) * x)
            return total.value

        self.combine(weight, self.stages + self.more + 1, h)
        self.clock[0] = self.time.value + x * h
        self.corrected()

    def shift(self) -> Real:
        """By how much `stage` was corrected, in units of the tolerance, squared; NaN if that failed."""
        f = self.f
        total = f.variable(0.0)
        with f.loop(self.size) as j:
            scale = f.real("atol") + f.real("rtol") * self.y[j].abs().max(self.new[j].abs())
            part = (self.stage[j] - self.rate[j]) / scale
            total.set(total.value + part * part)
        return total.value

    def sample(self, h: Real) -> None:
        """Write the samples that lie within the accepted step, each with its shift. One whose correction is out of
        proportion (the step has passed over a place where its corrections are bad) is written as interpolated."""
        f, times, out = self.f, self.f.table("times"), self.f.memory("out")
        stop = self.time.value + h
        ready = f.counter(0)
        with f.forever() as leave:
            at = f.count("sampled")
            leave(at >= f.count("samples"))
            when = times[at]
            leave((when > stop).any())
            with f.when(ready.value == 0):
                self.further(h)
                ready.set(1)
            self.interpolate((when - self.time.value) / h, h)
            last = when == stop
            shift = last.pick(0.0, self.shift())
            most = (self.moved.value * _UNLIKE**2).max(_PROPORTION**2)
            good, row = shift <= most, at * (self.size + 1)
            with f.loop(self.size) as j:
                out[row + j] = last.pick(self.new[j], good.pick(self.stage[j], self.rate[j]))
            out[row + self.size] = good.pick(0.0, 1.0)
            f.set_count("sampled", at + 1)

    def take(self, h: Real) -> None:
        """Go on from the result of the step."""
        f, trace = self.f, self.f.memory("trace")
        self.sample(h)
        steps = f.count("steps")
        row = steps * (self.size + 1)
        stop = self.time.value + h
        stop = ((self.end - stop) <= 0.0).pick(self.end, stop)
        self.time.set(stop)
        trace[row] = stop
        last = self.stages * self.size
        with f.loop(self.size) as j:
            self.y[j] = self.new[j]
            trace[row + 1 + j] = self.new[j]
            self.slopes[j] = self.slopes[last + j]
        f.set_count("steps", steps + 1)


def embedded_pair(f: Builder) -> None:
    """An embedded pair, in one lane."""
    x = _Adaptive(f)
    worse = f.counter(0)  # whether the last attempt was rejected
    f.set_count("status", 0)
    with f.when(f.count("known") == 0):
        with f.loop(x.size) as j:
            x.stage[j] = x.y[j]
        x.clock[0] = x.time.value
        x.slope(0)
        f.set_count("known", 1)
    with f.forever() as leave:
        left = x.end - x.time.value
        leave((left <= 0.0).any())
        leave(f.count("steps") >= f.count("limit"))
        # a last step that would be a little too short is stretched, one a little too long is cut
        close = x.step.value * 1.01 >= left
        h = close.pick(left, x.step.value)
        x.attempt(h)
        error = x.error(h)
        bad = error.is_nan()
        factor = _factor(f, error, worse.value.real())
        with f.when(bad.any() & (f.count("shrink") == 0)):
            f.set_count("status", 1)
        leave(bad.any() & (f.count("shrink") == 0))
        good = error <= 1.0
        with f.when(good.any()):
            x.take(h)
            worse.set(0)
            longer = h * factor
            x.step.set(close.pick(x.step.value.max(longer), longer))
        with f.when(~good.any()):
            f.set_count("rejected", f.count("rejected") + 1)
            worse.set(1)
            x.step.set(h * bad.pick(0.2, factor))
        short = x.step.value < f.real("smallest")
        with f.when(short.any()):
            f.set_count("status", 2)
        leave(short.any())
    f.set_real("time", x.time.value)
    f.set_real("step", x.step.value)
    f.finish()


def _factor(f: Builder, error: Real, worse: Real) -> Real:
    """By how much the step may grow or must shrink; it does not grow right after a rejection."""
    wish = (error + 1e-30).power(f.real("exponent")) * 0.9
    most = (worse > 0.5).pick(1.0, 10.0)
    return wish.min(most).max(0.2)

