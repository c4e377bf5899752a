"""Explicit Runge-Kutta pairs with step-size control and dense output in compiled code, one state at a time.

Steps are as long as the error estimate allows; samples at given times come from the pair's interpolant (and are put
back onto the constraints like steps are). The driver returns after `limit` steps, at the end, or when a step gives
numbers that are not finite (`status` 1) or becomes too short (`status` 2). With `pause` it returns when all samples are
known, at the beginning of the step that has passed the last one: that is taken again, to the same numbers, when the
next samples are asked for. `worse`: whether the last attempt was rejected. `traced`: all steps are written down.

What the error does not see, because nothing acts there at any stage, a step may pass over: of the `watched` rows of
``reach``, each times the rates of the state at the step's end, none may be more than one over the step.

The state is in ``y``, or, where `blocks` is not 0, that of each thread among ``all_y``, and its inputs likewise; such a
thread stops before a step with samples that are left open (`status` 3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.integrate.fixed_step import STEPPING, correct, weighted
from bellcrank.integrate.tableaux import Explicit
from bellcrank.target.array_loops import copy, each, sum_of
from bellcrank.target.program import Bool, Builder, DriverLayout, Int, Program, Real

__all__ = ["ADAPTIVE", "Adaptive", "embedded_pair", "integrate"]

#: a sample whose correction is larger than this, in units of the tolerance, is not to be trusted
_PROPORTION = 30.0
#: unless that of the step itself was nearly as large: so many times
_UNLIKE = 10.0

ADAPTIVE = DriverLayout(
    ("size", "limit", "steps", "rejected", "status", "sampled", "samples", "known", "shrink", "n_rates", "n_forces",
     "n_holds", "n_corrections", "n_shift", "rounds", "n_inputs", "traced", "pause", "blocks", "worse", "watched"),
    ("time", "step", "end", "rtol", "atol", "near", "far", "smallest", "exponent"),
    (*STEPPING.pointers, "next", "times", "open", "trace", "reach"),
    returned=("steps", "rejected", "status", "sampled", "known", "worse", "time", "step"), tables=("times", "reach"))


class Adaptive:
    """What adaptive methods share: slopes, samples, and going on from a step."""

    growth = 10.0  #: a step is at most so many times as long as the one before

    def __init__(self, f: Builder, stages: int) -> None:
        self.f, self.size, self.stages = f, f.count("size"), stages
        self.y, self.stage, self.rate, self.clock, self.slopes, self.new = (
            f.memory(n) for n in ("y", "stage", "rate", "clock", "slopes", "next"))
        self.time, self.step = f.variable(f.real("time")), f.variable(f.real("step"))
        self.end = f.real("end")
        self.moved = f.variable(0.0)  #: by how much the last step was corrected
        self.doubtful = f.counter(0)  #: whether a sample of the last step was left open

    def rates(self) -> None:
        """Evaluate what is in `stage`."""
        f = self.f
        f.call_all("rates", f.count("n_rates"))
        f.call_all("forces", f.count("n_forces"))

    def slope(self, index: int) -> None:
        """Evaluate what is in `stage` as slope `index`."""
        self.rates()
        copy(self.f, self.rate, self.slopes.at(self.size * index), self.size)

    def corrected(self) -> None:
        """Correct `stage`, which is kept in `rate` as it was."""
        copy(self.f, self.stage, self.rate, self.size)
        correct(self.f, self.size)

    def land(self, h: Real) -> None:
        """`stage` is the result of a step: correct it, put it into `new`, and find the slope there."""
        self.clock[0] = self.time.value + h
        self.corrected()
        copy(self.f, self.stage, self.new, self.size)
        self.moved.set(self.shift())
        self.slope(self.stages)

    def scale(self, j: Int, atol: Real, rtol: Real) -> Real:
        """What entry j may be wrong by."""
        return atol + rtol * self.y[j].abs().max(self.new[j].abs())

    def attempt(self, h: Real) -> None:
        """All slopes of a step and its result, corrected, in `new`."""
        raise NotImplementedError

    def error(self, h: Real) -> Real:
        """The step's error in units of the tolerance; NaN if something in it is not finite."""
        raise NotImplementedError

    def further(self, h: Real) -> None:
        """The slopes that only the interpolant needs."""
        raise NotImplementedError

    def interpolate(self, x: Real, h: Real) -> None:
        """The interpolant at the part x of the step, corrected, in `stage`, and as it was in `rate`."""
        raise NotImplementedError

    def stride(self, h: Real) -> Real:
        """The largest of the `watched` rows over the step; more than one: it is too long."""
        f, reach, last = self.f, self.f.table("reach"), self.slopes.at(self.size * self.stages)
        most, total = f.variable(0.0), f.variable(0.0)
        with f.loop(f.count("watched")) as row:
            total.set(0.0)
            with f.loop(self.size) as j:
                total.set(total.value + reach[row * self.size + j] * last[j].abs())
            most.set(most.value.max(total.value))
        return most.value * h

    def change_of_step(self, error: Real, worse: Real) -> Real:
        """By how much the step may grow or must shrink; it does not grow right after a rejection (`worse` is 1)."""
        wish = (error + 1e-30).power(self.f.real("exponent")) * self.safety()
        return wish.min((worse > 0.5).pick(1.0, self.growth)).max(0.2)

    def safety(self) -> float | Real:
        """The part of the step that the error would allow."""
        return 0.9

    def next_step(self, h: Real, factor: Real) -> Real:
        """The step after an accepted one."""
        return h * factor

    def keep(self) -> None:
        """What the next call goes on with, besides the state."""

    def shift(self) -> Real:
        """By how much `stage` was corrected, in units of the tolerance, squared; NaN if that failed."""
        f, total = self.f, self.f.variable(0.0)

        def term(j: Int, atol: Real, rtol: Real) -> Real:
            part = (self.stage[j] - self.rate[j]) / self.scale(j, atol, rtol)
            return part * part

        with f.when(f.count("n_corrections") > 0):
            total.set(sum_of(f, self.size, term, f.real("atol"), f.real("rtol")))
        return total.value

    def sample(self, h: Real) -> None:
        """Write the samples that lie within the accepted step. One whose correction is out of proportion (the step has
        passed over a place where its corrections are bad) is left open, as interpolated."""
        f, times, out, left_open = self.f, self.f.table("times"), self.f.memory("out"), self.f.memory("open")
        stop = self.time.value + h
        ready = f.counter(0)
        with f.forever() as leave:
            at = f.count("sampled")
            leave(at >= f.count("samples"))
            when = times[at]
            leave((when > stop).any())
            last = (when == stop).any()
            row = out.at(at * self.size)
            left_open[at] = 0.0
            with f.when(last):
                copy(f, self.new, row, self.size)
            with f.when(~last):
                with f.when(ready.value == 0):
                    self.further(h)
                    ready.set(1)
                self.interpolate((when - self.time.value) / h, h)
                good = (self.shift() <= (self.moved.value * _UNLIKE**2).max(_PROPORTION**2)).any()
                with f.when(good):
                    copy(f, self.stage, row, self.size)
                with f.when(~good):
                    copy(f, self.rate, row, self.size)
                    left_open[at] = 1.0
                    self.doubtful.set(1)
            f.set_count("sampled", at + 1)

    def paused(self) -> Bool:
        """Whether there is no room for further samples, which are wanted."""
        f = self.f
        return (f.count("pause") == 1) & (f.count("sampled") >= f.count("samples"))

    def take(self, h: Real) -> None:
        """Go on from the result of the step."""
        f, trace = self.f, self.f.memory("trace")
        steps = f.count("steps")
        row = steps * (self.size + 1)
        stop = self.time.value + h
        stop = ((self.end - stop) <= 0.0).pick(self.end, stop)
        self.time.set(stop)
        copy(f, self.new, self.y, self.size)
        with f.when(f.count("traced") == 1):
            trace[row] = stop
            copy(f, self.new, trace.at(row + 1), self.size)
        copy(f, self.slopes.at(self.size * self.stages), self.slopes, self.size)
        f.set_count("steps", steps + 1)


class _Pair(Adaptive):
    def __init__(self, f: Builder, tableau: Explicit) -> None:
        super().__init__(f, tableau.stages)
        self.tableau = tableau

    def combine(self, weights: Sequence[float | Real], h: Real) -> None:
        """stage = y + h * the weighted sum of the first slopes."""
        def one(j: Int, step: Real, *known: Real) -> None:
            feed = iter(known)
            total = weighted(self.slopes, self.size, [next(feed) if isinstance(w, Real) else w for w in weights], j)
            self.stage[j] = self.y[j] + step * total

        each(self.f, self.size, one, h, *(w for w in weights if isinstance(w, Real)))

    def attempt(self, h: Real) -> None:
        """All slopes of a step and its result, corrected, in `new`."""
        t = self.tableau
        for i in range(1, self.stages):
            self.combine(t.a[i].tolist(), h)
            self.clock[0] = self.time.value + h * float(t.c[i])
            self.slope(i)
        self.combine(t.b.tolist(), h)
        self.land(h)

    def error(self, h: Real) -> Real:
        """The step's error in units of the tolerance; NaN if something in it is not finite."""
        f, last = self.f, self.slopes.at(self.size * self.stages)

        def square(table: Sequence[float]) -> Real:
            def term(j: Int, atol: Real, rtol: Real) -> Real:
                total = weighted(self.slopes, self.size, table, j)
                assert isinstance(total, Real)
                part = (total + last[j] * 0.0) / self.scale(j, atol, rtol)
                return part * part

            return sum_of(f, self.size, term, f.real("atol"), f.real("rtol"))

        assert self.tableau.e is not None
        five, three = square(self.tableau.e.tolist()), f.constant(0.0)
        if self.tableau.e3 is not None:
            three = square(self.tableau.e3.tolist())
        below = ((five + three * 0.01) * self.size.real()).sqrt() + 1e-300
        return h.abs() * five / below

    def further(self, h: Real) -> None:
        """The slopes that only the interpolant needs."""
        t = self.tableau
        if t.more is None or t.more_c is None:
            return
        for i, (weights, node) in enumerate(zip(t.more.tolist(), t.more_c.tolist(), strict=True)):
            self.combine(weights, h)
            self.clock[0] = self.time.value + h * float(node)
            self.slope(self.stages + 1 + i)

    def interpolate(self, x: Real, h: Real) -> None:
        """The interpolant at the part x of the step, corrected, in `stage`, and as it was in `rate`."""
        assert self.tableau.dense is not None

        def weight(powers: Sequence[float]) -> float | Real:
            if not any(powers):
                return 0.0
            total = x * powers[-1]
            for p in reversed(powers[:-1]):  # Horner, from the highest power
                total = (total + p) * x
            return total

        self.combine([weight(row) for row in self.tableau.dense.tolist()], h)
        self.clock[0] = self.time.value + x * h
        self.corrected()


def embedded_pair(tableau: Callable[[], Explicit]) -> Program:
    """A driver of an embedded pair, in one lane."""
    return lambda f: integrate(f, _Pair(f, tableau()))


def integrate(f: Builder, x: Adaptive) -> None:
    """The driver of an adaptive method."""
    f.set_count("status", 0)
    _begin(f, x)
    with f.forever() as leave:
        left = x.end - x.time.value
        leave((left <= 0.0).any())
        leave(f.count("steps") >= f.count("limit"))
        leave(x.paused())
        # a last step that would be a little too short is stretched, one a little too long is cut
        close = x.step.value * 1.01 >= left
        h = close.pick(left, x.step.value)
        x.attempt(h)
        found = f.variable(x.error(h))
        bad = found.value.is_nan()
        with f.when((f.count("watched") > 0) & ~bad.any()):  # a stride too long makes the step as much shorter
            found.set(found.value.max(x.stride(h).power(-1.0 / f.real("exponent"))))
        error = found.value
        factor = x.change_of_step(error, f.count("worse").real())
        with f.when(bad.any() & (f.count("shrink") == 0)):
            f.set_count("status", 1)
        leave(bad.any() & (f.count("shrink") == 0))
        good = error <= 1.0
        before = f.count("sampled")
        with f.when(good.any()):
            x.sample(h)
        doubtful = (x.doubtful.value == 1) & (f.count("blocks") > 0)
        with f.when(doubtful):
            f.set_count("sampled", before)
            f.set_count("status", 3)
        leave(doubtful)
        leave(good.any() & x.paused())
        with f.when(good.any()):
            x.take(h)
            f.set_count("worse", 0)
            longer = x.next_step(h, factor)
            x.step.set(close.pick(x.step.value.max(longer), longer))
        with f.when(~good.any()):
            f.set_count("rejected", f.count("rejected") + 1)
            f.set_count("worse", 1)
            x.step.set(h * bad.pick(0.2, factor))
        short = x.step.value < f.real("smallest")
        with f.when(short.any()):
            f.set_count("status", 2)
        leave(short.any())
    _end(f, x)


def _begin(f: Builder, x: Adaptive) -> None:
    """The state from which the driver goes on, and the slope there."""
    inputs, given, n = f.memory("inputs"), f.memory("all_inputs"), f.count("n_inputs")
    with f.when(f.count("blocks") > 0):
        copy(f, given, inputs, n)
        copy(f, f.memory("all_y"), x.y, x.size)
    with f.when(f.count("known") == 0):
        copy(f, x.y, x.stage, x.size)
        x.clock[0] = x.time.value
        x.slope(0)
        f.set_count("known", 1)


def _end(f: Builder, x: Adaptive) -> None:
    """Give back where it is, and what the next call goes on with."""
    f.set_real("time", x.time.value)
    f.set_real("step", x.step.value)
    with f.when(f.count("blocks") > 0):
        copy(f, x.y, f.memory("all_y"), x.size)
    x.keep()
    f.finish()
