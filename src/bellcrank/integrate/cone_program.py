"""Impulses of rigid contacts with Coulomb friction in compiled code, for as many states as there are lanes.

Find impulses p (normal, two along the surface) with v = G p + c such that at every place

    0 <= p_n, 0 <= v_n, p_n v_n = 0                                                               (Signorini)
    |p_t| <= mu p_n, and against the slip where it is that                                        (Coulomb)

They hold where p = P(p - R v), P the projection on the half line and then on the disc of radius mu p_n, for any
positive R: P. Alart and A. Curnier, "A mixed formulation for frictional contact problems prone to Newton like solution
methods", Comput. Methods Appl. Mech. Eng. 92 (1991). Newton's method for that equation, its derivative taken on the
side where the numbers are, ends after a few iterations. Where it does not (redundant places that cannot all stick, as
their distances close at different rates), a proximal point method (R. T. Rockafellar, "Monotone operators and the
proximal point algorithm", SIAM J. Control Optim. 14 (1976)) leads there: Newton's method finds impulses for
G + e/R, c - (e/R) p' with the last ones as p', and e becomes smaller as often as it ends, larger where it does not.

| paper | here |
|---|---|
| reaction, relative velocity | ``p``, ``v`` |
| G (Delassus operator) | ``g``, J M^-1 J^T |
| R (augmentation) | the inverse of ``sizes``, those of the diagonal blocks |
| p' | ``center`` |

Deviations: places that are redundant (a box on four corners) make G singular; its diagonal is a little larger in
Newton's matrix, not in the residual, so that the solution is not changed. Pivots are the largest of their column, each
lane by itself: a row is exchanged with the first as often as it has a larger one. Places that are not `on` have p = 0
and zeros in all sums: what a lane computes does not depend on the places of others. Rows of matrices are `stride`
entries apart, and vectors as long; those behind the last row are zeros (`clear`), so that sums may run over them.
"""

from __future__ import annotations

from bellcrank.target.array_loops import in_registers, sum_of, whole_registers
from bellcrank.target.program import Builder, Int, IntVariable, Mask, Memory, Real, RealVariable

__all__ = ["CONE_POINTERS", "ConeSolver", "cone_memory"]

#: iterations of Newton's method, and how often it begins again
NEWTON, ROUNDS = 12, 120
#: what is added to the diagonal of G in Newton's matrix, relative
SHIFT = 1e-10
#: the first e, its least, and by how much it becomes smaller or larger
PROXIMAL, LEAST, LESS, MORE = 1e-3, 1e-12, 0.3, 10.0
#: conditions are met to this share of the largest velocity at which bodies meet or slide, plus `slow`: in doubles, and
#: in floats
TOLERANCE, ROUGH = 1e-11, 3e-6
#: where a first guess meets them, but not to this share of that, Newton's method improves it once: in a machine at rest
#: what is missed would stay, as speeds that change their signs from step to step
FINE = 3e-2

#: memory of the solver; the first ones are what it is given
CONE_POINTERS = ("g", "c", "p", "mu", "on", "sizes", "tried", "center", "x", "wanted", "matrix", "change")


def cone_memory(most: int, stride: int) -> dict[str, int]:
    """Reals of each, for so many places."""
    return {"mu": most, "sizes": most, "g": 3 * most * stride, "matrix": 3 * most * stride,
            **dict.fromkeys(("c", "p", "on", "tried", "center", "x", "wanted", "change"), stride)}


class ConeSolver:
    """Writes the solver into a program; `count` is the number of places. There is memory for `stride` rows at least,
    which is a multiple of the lanes that are free. `slow` is a velocity [m/s] of which the tolerance is no matter."""

    def __init__(self, f: Builder, count: IntVariable, stride: Int, slow: Real) -> None:
        self.f, self.count, self.stride, self.slow = f, count, stride, slow
        (self.g, self.c, self.p, self.mu, self.on, self.sizes, self.tried, self.center, self.x, self.wanted,
         self.matrix, self.change) = (f.memory(name) for name in CONE_POINTERS)
        self.e, self.tolerance = f.variable(0.0), ROUGH if f.compensates else TOLERANCE
        self.fine = self.tolerance * (1.0 if f.compensates else FINE)

    def rows(self) -> Int:
        """Rows of all places, in whole registers."""
        return whole_registers(self.f, self.count.value * 3)

    def clear(self) -> None:
        """Nothing acts, nowhere."""
        def nothing(j: Int, zero: Real) -> None:
            for x in (self.p, self.on, self.center, self.wanted, self.change):
                x[j] = zero

        in_registers(self.f, self.rows(), nothing, self.f.constant(0.0))

    def solve(self, going: Real) -> tuple[Real, Real]:
        """Impulses `p`, from what they are as a first guess, in the lanes that are `going` (1.0, else 0.0): the
        residual [m/s], and those of the lanes in which it is above the tolerance."""
        f = self.f
        goal = f.variable(0.0)
        with f.loop(self.count.value) as k:  # bodies that part are no matter, however fast they do
            c, on = self.c.at(k * 3), self.on[k * 3]
            goal.set(goal.value.max(on * (-c[0]).max(c[1].abs()).max(c[2].abs())))
        goal.set((goal.value + self.slow) * self.tolerance)
        best, todo, turn = f.variable(1e300), f.variable(going), f.counter(0)
        self.e.set(0.0)

        def guess(j: Int) -> None:
            self.tried[j] = self.p[j]
            self.center[j] = self.p[j]

        in_registers(f, self.rows(), guess)
        with f.forever() as leave:
            reached = self.newton(best, todo, goal.value)
            turn.set(turn.value + 1)
            leave(~(todo.value > 0.5).any())
            leave(turn.value >= ROUNDS)
            self.begin_again(turn.value, reached)
        self.project(going > 0.5)
        return best.value, todo.value

    def begin_again(self, turn: Int, reached: Mask) -> None:
        """The next e, and where to begin: lanes that have `reached` the last solution go on from there."""
        f, m, e = self.f, self.count.value * 3, self.e
        with f.when(turn == 1):
            e.set(PROXIMAL)
            with f.loop(m) as j:
                self.tried[j] = self.center[j]
        with f.when(turn > 1):
            e.set(reached.pick((e.value * LESS).max(LEAST), e.value * MORE))
            with f.loop(m) as j:
                start = reached.pick(self.tried[j], self.center[j])
                self.tried[j] = start
                self.center[j] = start

    def newton(self, best: RealVariable, todo: RealVariable, goal: Real) -> Mask:
        """Newton's method from `tried`, the best point for the problem itself in `p`; which lanes have solved the one
        with G + e/R."""
        f, number = self.f, self.f.counter(0)
        busy, left = f.variable(todo.value), f.variable(1e300)
        asked = f.variable(goal * (self.fine / self.tolerance))
        with f.forever() as leave:
            residual, miss = self.evaluate()
            better = (residual < best.value).pick(busy.value, 0.0)
            in_registers(f, self.rows(), self._improve, better)
            best.set((better > 0.5).pick(residual, best.value))
            left.set((busy.value > 0.5).pick(miss, left.value))
            todo.set((best.value > goal).pick(todo.value, 0.0))
            busy.set((miss > asked.value).pick(busy.value * (asked.value < goal).pick(1.0, todo.value), 0.0))
            asked.set(goal)
            leave(~(busy.value > 0.5).any())
            leave(number.value >= NEWTON)
            self.linearise()
            self.eliminate()
            in_registers(f, self.rows(), self._advance, busy.value)
            number.set(number.value + 1)
        return left.value <= goal

    def _improve(self, j: Int, better: Real) -> None:
        self.p[j] = (better > 0.5).pick(self.tried[j], self.p[j])

    def _advance(self, j: Int, busy: Real) -> None:
        self.tried[j] = (busy > 0.5).pick(self.tried[j] + self.change[j], self.tried[j])

    # -- conditions -------------------------------------------------------------------------------
    def velocity(self, row: Int) -> Real:
        """v: an entry of G p + c at `tried`."""
        g = self.g.at(row * self.stride)
        return sum_of(self.f, self.rows(), lambda j: g[j] * self.tried[j]) + self.c[row]

    def projected(self, x: tuple[Real, Real, Real], mu: Real) -> tuple[Real, Real, Real]:
        """P(x)."""
        normal = x[0].max(0.0)
        length, most = (x[1] * x[1] + x[2] * x[2]).sqrt(), mu * normal
        slides = length > most
        scale = slides.pick(most / slides.pick(length, 1.0), 1.0)
        return normal, x[1] * scale, x[2] * scale

    def evaluate(self) -> tuple[Real, Real]:
        """x = p - R v and P(x) at `tried`, for G + e/R; by how much that and the problem itself are missed [m/s], the
        latter first."""
        f, e = self.f, self.e.value
        true, near = f.variable(0.0), f.variable(0.0)
        with f.loop(self.count.value) as k:
            inverse, row = 1.0 / self.sizes[k], k * 3
            p = [self.tried[row + i] for i in range(3)]
            x = [p[i] - self.velocity(row + i) * inverse for i in range(3)]
            with f.when((e > 0.0).any()):
                self.miss(k, (x[0], x[1], x[2]), true)
            here = [x[i] - e * (p[i] - self.center[row + i]) for i in range(3)]
            for i in range(3):
                self.x[row + i] = here[i]
            for i, goal in enumerate(self.miss(k, (here[0], here[1], here[2]), near)):
                self.wanted[row + i] = (self.on[row] > 0.5).pick(goal, 0.0)
        return (e > 0.0).pick(true.value, near.value), near.value

    def miss(self, k: Int, x: tuple[Real, Real, Real], most: RealVariable) -> tuple[Real, Real, Real]:
        """P(x) at place k; `most` becomes at least that by which `tried` misses it [m/s]."""
        wanted, active = self.projected(x, self.mu[k]), self.on[k * 3] > 0.5
        for i in range(3):
            miss = active.pick((self.tried[k * 3 + i] - wanted[i]).abs() * self.sizes[k], 0.0)
            most.set(miss.is_nan().pick(1e300, most.value.max(miss)))
        return wanted

    def project(self, moving: Mask) -> None:
        """No impulse pulls, no friction is larger than it can be."""
        f = self.f
        with f.loop(self.count.value) as k:
            p = [self.p[k * 3 + i] for i in range(3)]
            for i, x in enumerate(self.projected((p[0], p[1], p[2]), self.mu[k])):
                self.p[k * 3 + i] = moving.pick(x, p[i])

    # -- Newton's equations -----------------------------------------------------------------------
    def linearise(self) -> None:
        """The matrix I - P'(I - R G - e), and P(x) - p."""
        f, more = self.f, self.e.value + (SHIFT - 1.0)
        with f.loop(self.count.value) as k:
            slope = self.slope(k)
            inverse = 1.0 / self.sizes[k]
            g = [self.g.at((k * 3 + i) * self.stride) for i in range(3)]
            for i in range(3):
                row = self.matrix.at((k * 3 + i) * self.stride)
                used = [s for s in range(3) if slope[i][s] is not None]

                def entry(j: Int, *factors: Real, row=row, used=used, g=g) -> None:  # type: ignore[no-untyped-def]
                    total = factors[0] * g[used[0]][j]
                    for s, factor in zip(used[1:], factors[1:], strict=True):
                        total = total + factor * g[s][j]
                    row[j] = total * self.on[j]

                in_registers(f, self.rows(), entry, *(slope[i][s] * inverse for s in used))  # type: ignore[operator]
                for s in range(3):
                    part = slope[i][s]
                    unit = 1.0 if s == i else 0.0
                    add = unit if part is None else part * more + unit
                    row[k * 3 + s] = row[k * 3 + s] + add
                self.change[k * 3 + i] = self.wanted[k * 3 + i] - self.tried[k * 3 + i]

    def slope(self, k: Int) -> list[list[Real | None]]:
        """The derivative of P at place k, 3 x 3; None is zero."""
        mu, x = self.mu[k], [self.x[k * 3 + i] for i in range(3)]
        closed = (x[0] > 0.0).pick(self.on[k * 3], 0.0)
        normal = x[0].max(0.0)
        length = (x[1] * x[1] + x[2] * x[2]).sqrt()
        slides = length > mu * normal
        safe = slides.pick(length, 1.0)
        shrink = closed * slides.pick(mu * normal / safe, 1.0)
        a, b = slides.pick(x[1] / safe, 0.0), slides.pick(x[2] / safe, 0.0)
        push = closed * mu
        cross = -(shrink * a * b)
        return [[closed, None, None], [push * a, shrink - shrink * a * a, cross],
                [push * b, cross, shrink - shrink * b * b]]

    def eliminate(self) -> None:
        """change = matrix^-1 change."""
        f, m, change = self.f, self.count.value * 3, self.change
        with f.loop(m) as k:
            upper = self.matrix.at(k * self.stride)
            self._bring_up(k, upper)
            pivot = upper[k]
            inverse = 1.0 / (pivot == 0.0).pick(1.0, pivot)
            with f.loop(m, k + 1) as i:
                lower = self.matrix.at(i * self.stride)
                with f.when(~(lower[k] == 0.0).all()):
                    factor = lower[k] * inverse

                    def less(j: Int, factor: Real, upper=upper, lower=lower) -> None:  # type: ignore[no-untyped-def]
                        lower[j] = lower[j] - factor * upper[j]

                    in_registers(f, self.rows(), less, factor, start=whole_registers(f, k, start=True))
                    lower[k] = 0.0
                    change[i] = change[i] - factor * change[k]
        with f.loop(m, back=True) as i:
            row, start = self.matrix.at(i * self.stride), whole_registers(f, i, start=True)
            pivot = row[i]
            row[i] = 0.0
            behind, known = row.at(start), change.at(start)
            total = sum_of(f, self.rows() - start, lambda j, row=behind, known=known: row[j] * known[j])
            change[i] = (change[i] - total) / pivot

    def _bring_up(self, k: Int, upper: Memory) -> None:
        """The row with the largest pivot to the place of row k, in every lane."""
        f, change = self.f, self.change
        with f.loop(self.count.value * 3, k + 1) as i:
            lower = self.matrix.at(i * self.stride)
            swap = lower[k].abs() > upper[k].abs()
            with f.when(swap.any()):

                def both(j: Int, swapped: Real, lower=lower) -> None:  # type: ignore[no-untyped-def]
                    a, b = upper[j], lower[j]
                    upper[j] = (swapped > 0.5).pick(b, a)
                    lower[j] = (swapped > 0.5).pick(a, b)

                in_registers(f, self.rows(), both, swap.pick(1.0, 0.0), start=whole_registers(f, k, start=True))
                a, b = change[k], change[i]
                change[k] = swap.pick(b, a)
                change[i] = swap.pick(a, b)
