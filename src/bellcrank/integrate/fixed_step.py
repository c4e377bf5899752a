"""Time stepping in compiled code, for any program of kernels: no Python runs between steps.

A driver knows nothing of mechanics. It has a state y of `size` numbers per lane and lists of calls (function, frame)
that compiled code makes:

- *rates*: from `stage` and `clock`, the first `split` entries of `rate`; *forces*: the others;
- *holds*: what is computed once every `hold` steps and then held, such as a sampled controller;
- *corrections*: put `stage` back onto its constraints in place; `shift` tells how far it moved (repeated while that is
  not small).

A lane whose new state is not finite stays at its last good one and its count in `all_done` stops: the caller finds out
why, and goes on from there. Every `every` steps the state is written to `out`. All blocks of lanes of a batch are run
one after another: states, and the inputs that go with them, are copied in and out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.integrate.tableaux import Explicit
from bellcrank.target.array_loops import copy, each, largest_of, sum_of
from bellcrank.target.program import Bool, Builder, DriverLayout, Int, Memory, Program, Real

__all__ = ["STEPPING", "OneStep", "Stepping", "correct", "explicit", "explicit_step", "semi_implicit",
           "semi_implicit_step", "single_step", "weighted"]

#: what a method does in step `number`: the new state is left in `stage`
OneStep = Callable[[Int], None]

#: arguments of the fixed-step drivers
STEPPING = DriverLayout(
    ("size", "split", "steps", "first", "every", "hold", "n_rates", "n_forces", "n_holds", "n_corrections",
     "n_shift", "rounds", "blocks", "samples", "n_inputs"),
    ("start", "step", "near", "far"),
    ("y", "stage", "rate", "slopes", "clock", "shift", "inputs", "all_y", "all_inputs", "all_done", "out", "rates",
     "forces", "holds", "corrections", "lost"))


class Stepping:
    """What all fixed-step drivers do around their step."""

    def __init__(self, f: Builder) -> None:
        self.f = f
        self.size, self.split = f.count("size"), f.count("split")
        self.y, self.stage, self.rate, self.clock = (f.memory(n) for n in ("y", "stage", "rate", "clock"))
        self.step, self.begin = f.real("step"), f.real("start")

    def advanced(self, y: Real, change: Real, j: Int) -> Real:
        """y, entry j of the state, with the change of a step. In few digits what the sum loses is kept in ``lost`` for
        the next step: the two-sum of D. E. Knuth, "The art of computer programming", vol. 2, section 4.2.2, theorem
        B, as W. Kahan uses it."""
        if not self.f.compensates:
            return y + change
        lost = self.f.memory("lost")
        a, b = y.exact(), (change.exact() + lost[j])
        total = a + b
        part = total - a
        lost[j] = (a - (total - part)) + (b - part)
        return total

    def evaluate(self) -> None:
        """`rate` of what is in `stage` at `clock`."""
        self.f.call_all("rates", self.f.count("n_rates"))
        self.f.call_all("forces", self.f.count("n_forces"))

    def at(self, number: Int, part: Real | float = 0.0) -> None:
        """Set the clock to a step's beginning plus a part of it."""
        self.clock[0] = self.begin + (number.real() + part) * self.step

    def held(self, number: Int) -> None:
        """Sampled quantities, at the beginning of every `hold`-th step."""
        f = self.f
        n = f.count("n_holds")
        due = (number % f.count("hold")) == 0
        with f.when((n > 0) & due):
            copy(f, self.y, self.stage, self.size)
            self.at(number)
            f.call_all("holds", n)

    def correct(self) -> None:
        """Bring `stage` back onto its constraints; NaN if that does not succeed."""
        correct(self.f, self.size)

    def accept(self, leave: Callable[[Bool], None]) -> None:
        """Take over `stage` in the lanes in which all has gone well so far."""
        f = self.f
        good = sum_of(f, self.size, lambda j: self.stage[j] * 0.0) == 0.0
        self.active.set(good.pick(self.active.value, 0.0))
        alive = self.active.value > 0.5
        if f.width > 1:
            with f.loop(self.size) as j:
                self.y[j] = alive.pick(self.stage[j], self.y[j])
        else:
            with f.when(alive.any()):
                copy(f, self.stage, self.y, self.size)
        self.done.set(self.done.value + self.active.value)
        leave(~alive.any())

    def sample(self, number: Int, every: Int) -> None:
        """Write the state if it is time to."""
        f = self.f
        with f.when(((number + 1) % every) == 0):
            copy(f, self.y, f.memory("out").at(self.row.value * self.size), self.size)
            self.row.set(self.row.value + 1)

    def run(self, one_step: Callable[[Int], None], begin: Callable[[], None] = lambda: None) -> None:
        """The whole driver; `one_step` leaves the new state in `stage`, `begin` prepares for a block."""
        f = self.f
        self.active, self.done, self.row = f.variable(1.0), f.variable(0.0), f.counter(0)
        number, last = f.counter(0), f.count("first") + f.count("steps")
        inputs, given, n = f.memory("inputs"), f.memory("all_inputs"), f.count("n_inputs")
        every = f.count("every")
        with f.loop(f.count("blocks")) as block:
            states = f.memory("all_y").at(block * self.size)
            copy(f, given.at(block * n), inputs, n)
            copy(f, states, self.y, self.size)
            self.active.set(1.0)
            self.done.set(0.0)
            self.row.set(block * f.count("samples"))
            number.set(f.count("first"))
            if f.compensates:
                with f.loop(self.size) as j:
                    f.memory("lost")[j] = 0.0
            begin()
            with f.forever() as leave:
                now = number.value
                leave(now >= last)
                f.together()
                self.held(now)
                one_step(now)
                self.at(now + 1)
                self.correct()
                self.accept(leave)
                self.sample(now, every)
                number.set(now + 1)
            copy(f, self.y, states, self.size)
            copy(f, inputs, given.at(block * n), n)
            f.memory("all_done")[block] = self.done.value
        f.finish()


def correct(f: Builder, size: Int) -> None:
    """Call the corrections until the shift is below `near`; NaN in the lanes in which it stays above `far`.

    Lanes that are there already keep what they have while others go on: no state's numbers depend on its neighbours.
    """
    n, entries = f.count("n_corrections"), f.count("n_shift")
    with f.when(n > 0):
        shift, stage, kept = f.memory("shift"), f.memory("stage"), f.memory("slopes")  # slopes have served by now
        largest, round_ = f.variable(1e300), f.counter(0)
        with f.forever() as leave:
            going = largest.value > f.real("near")
            settled = ~going.all()
            if f.width > 1:
                with f.when(settled):
                    copy(f, stage, kept, size)
            f.call_all("corrections", n)
            moved = largest_of(f, entries, lambda j: shift[j].abs())
            if f.width > 1:
                with f.when(settled), f.loop(size) as j:
                    stage[j] = going.pick(stage[j], kept[j])
            largest.set(going.pick(moved, largest.value))
            round_.set(round_.value + 1)
            leave(round_.value >= f.count("rounds"))
            leave(~(largest.value > f.real("near")).any())
        spoilt = largest.value > f.real("far")
        with f.when(spoilt.any()), f.loop(size) as j:
            stage[j] = spoilt.pick(float("nan"), stage[j])


def weighted(slopes: Memory, size: Int, weights: Sequence[float | Real], j: Int) -> Real | float:
    """The weighted sum of entry j of the first slopes; weights that are known to be zero are not there."""
    total: Real | float = 0.0
    for r, weight in enumerate(weights):
        if not (isinstance(weight, float) and weight == 0.0):
            part = slopes[size * r + j] * weight
            total = part if isinstance(total, float) else total + part
    return total


def explicit_step(tableau: Callable[[], Explicit]) -> Callable[[Stepping], OneStep]:
    """Explicit Runge-Kutta methods; the weights are numbers of the code."""

    def method(s: Stepping) -> OneStep:
        f, size, y, stage, slopes, made = s.f, s.size, s.y, s.stage, s.f.memory("slopes"), tableau()

        def combine(weights: Sequence[float], last: bool = False) -> None:
            """stage = y + step * the weighted sum of the slopes."""
            def one(j: Int, step: Real) -> None:
                total = weighted(slopes, size, weights, j)
                if isinstance(total, float):
                    stage[j] = y[j]
                else:
                    stage[j] = s.advanced(y[j], step * total, j) if last else y[j] + step * total

            each(f, size, one, s.step)

        if f.inlines_calls and made.chained:
            return chained_stages(s, made)

        def one_step(number: Int) -> None:
            for i in range(made.stages):
                combine(made.a[i].tolist())
                s.at(number, float(made.c[i]))
                s.evaluate()
                copy(f, s.rate, slopes.at(size * i), size)
            combine(made.b.tolist(), last=True)

        return one_step

    return method


def chained_stages(s: Stepping, made: Explicit) -> OneStep:
    """A method each of whose stages needs the slope before it alone, as a loop: one place evaluates."""
    f, size, y, stage, rate, total = s.f, s.size, s.y, s.stage, s.rate, s.f.memory("slopes")
    ahead = [*(float(made.a[i, i - 1]) for i in range(1, made.stages)), 0.0]

    def one_step(number: Int) -> None:
        here, share, forth, stages = f.variable(0.0), f.variable(0.0), f.variable(0.0), f.counter(0)

        def weights(i: int) -> Callable[[], None]:
            def put() -> None:
                for variable, value in ((here, made.c[i]), (share, made.b[i]), (forth, ahead[i])):
                    variable.set(float(value))

            return put

        def begin(j: Int) -> None:
            total[j] = 0.0
            stage[j] = y[j]

        def gather(j: Int, step: Real, share: Real, forth: Real) -> None:
            total[j] = total[j] + rate[j] * share
            stage[j] = y[j] + step * (rate[j] * forth)

        def end(j: Int, step: Real) -> None:
            stage[j] = s.advanced(y[j], step * total[j], j)

        each(f, size, begin)
        with f.forever() as leave:
            f.switch(stages.value, [(i, weights(i)) for i in range(made.stages)])
            s.at(number, here.value)
            s.evaluate()
            each(f, size, gather, s.step, share.value, forth.value)
            stages.set(stages.value + 1)
            leave(stages.value >= made.stages)
        each(f, size, end, s.step)

    return one_step


def semi_implicit_step(s: Stepping) -> OneStep:
    """Semi-implicit (symplectic) Euler: speeds first, then coordinates with the new speeds."""
    f, y, stage, rate = s.f, s.y, s.stage, s.rate

    def forward(first: Int | int, count: Int) -> None:
        """stage = y + step * rate, from the entry `first` on."""
        new, old, slope = (m.at(first) for m in (stage, y, rate))

        def one(j: Int, step: Real) -> None:
            new[j] = s.advanced(old[j], step * slope[j], j + first)

        each(f, count, one, s.step)

    def one_step(number: Int) -> None:
        copy(f, y, stage, s.size)
        s.at(number)
        f.call_all("forces", f.count("n_forces"))
        forward(s.split, s.size - s.split)
        f.call_all("rates", f.count("n_rates"))
        forward(0, s.split)

    return one_step


def explicit(tableau: Callable[[], Explicit]) -> Program:
    """A driver of an explicit Runge-Kutta method."""

    def program(f: Builder) -> None:
        s = Stepping(f)
        s.run(explicit_step(tableau)(s))

    return program


def semi_implicit(f: Builder) -> None:
    """A driver of semi-implicit Euler."""
    s = Stepping(f)
    s.run(semi_implicit_step(s))


def single_step(method: Callable[[Stepping], OneStep]) -> Program:
    """One step from y at `start`: the new state, put back onto its constraints, is left in `stage`."""

    def program(f: Builder) -> None:
        s, first = Stepping(f), Int(f, "0")
        method(s)(first)
        s.at(first + 1)
        s.correct()
        f.finish()

    return program
