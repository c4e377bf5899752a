"""Many walks at once: closed positions of one machine, perhaps with parameters of their own, each on its way to what it
shall hold.

The rules are those of `walking.Walker`, word for word, for arrays of positions: every walk has its own stride, and all
that are on their way take their next step together, by compiled Newton steps (`near_closer`). Walks that come to a dead
point, and those that take too many steps, are given up: they are for `nearest.Nearest.walked`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.near_closer import NearCloser
from bellcrank.loops.tolerances import BENT, CLOSED, CONTRACTION, LONGEST, STRAIGHT, WALKED

__all__ = ["WalksTogether"]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

#: steps of all together, after which the slowest walk alone
_MOST = 300
#: the least stride, as in walks of one
_LEAST = 1e-12
#: Newton steps
_NEWTON = 12


@dataclass
class WalksTogether:
    """Walks from closed positions `start` (n, nq) to where coordinates `places` are `values` (n, places)."""

    closer: NearCloser
    start: Floats
    held: Mask  #: speeds that do not move freely
    weights: Floats
    places: list[int]
    values: Floats
    t: float
    lengths: Floats  #: what is a long step for each speed, (nu,)

    def __post_init__(self) -> None:
        n = len(self.start)
        ends = self.start.copy()
        ends[:, self.places] = self.values
        self.ways = np.where(self.held, self.closer.difference(self.start, self.closer.normalize(ends)), 0.0)
        self._q, self._here = self.start.copy(), np.zeros(n)
        self._last_q, self._last_here = self.start.copy(), np.full(n, np.nan)
        self._stride, self._grow = np.full(n, np.inf), np.ones(n)

    def ends(self) -> tuple[Floats, Mask]:
        """The positions at the ends, good to about 1e-8, and which of the walks got there."""
        going = np.arange(len(self.start))
        for _ in range(_MOST):
            if not len(going):
                break
            going = self._advance(going)
        return self._q, self._here == 1.0

    def _advance(self, some: Ints) -> Ints:
        """The next step of some walks; those that still have a way to go."""
        here = self._here[some]
        stride = np.minimum(self._stride[some], 1.0 - here)
        there = np.where(stride >= 1.0 - here, 1.0, here + stride)
        found, good = self._step(some, here, there)
        free = stride >= self._stride[some]
        grown = np.maximum(stride * self._grow[some], 2.0 * _LEAST)
        after = np.where(free | (there != 1.0), grown, self._stride[some])
        self._stride[some] = np.where(good, after, 0.5 * stride)
        went = some[good]
        self._last_q[went], self._last_here[went] = self._q[went], here[good]
        self._q[went], self._here[went] = found[good], there[good]
        return some[(self._here[some] < 1.0) & (self._stride[some] >= _LEAST)]

    def _step(self, some: Ints, here: Floats, there: Floats) -> tuple[Floats, Mask]:
        """Close at new parameters, and which of the ways were short enough."""
        q = self._q[some]
        found = self._put(some, self._ahead(some, here, there), there)
        good = self._length(self.closer.difference(q, found)) <= LONGEST
        going = good.copy()
        before, first, worst = np.full(len(some), np.inf), np.zeros(len(some)), np.zeros(len(some))
        for iteration in range(_NEWTON):
            at = np.flatnonzero(going)
            if not len(at):
                break
            size, step = self.closer.only(some[at]).newton(found[at], self.held, self.weights, self.t)
            length = self._length(step)
            fair = np.isfinite(length) & ((length <= LONGEST) if iteration == 0 else True)
            if iteration == 0:
                first[at] = length
            known = np.isfinite(before[at]) & (before[at] > 1e-7)
            ratio = length / np.where(np.isfinite(before[at]), np.maximum(before[at], 1e-300), 1.0)
            worst[at] = np.where(known, np.maximum(worst[at], ratio), worst[at])
            fair &= worst[at] <= CONTRACTION
            left = np.where(np.isfinite(before[at]), length * np.minimum(1.0, ratio), length)
            found[at] = self.closer.normalize(self.closer.integrate(found[at], np.where(fair[:, None], step, 0.0)))
            done = fair & (left < WALKED)
            good[at] = fair & ~(done & (size > CLOSED + 1e4 * length))  # not a gap that no step closes
            before[at], going[at] = length, good[at] & ~done
        good &= ~going
        way = self._length(self.closer.difference(q, found))
        doubtful = np.flatnonzero(good & ((worst > STRAIGHT) | (first > 0.2 * way)))
        if len(doubtful):
            good[doubtful] = self._lead_back(some[doubtful], found[doubtful], here[doubtful], way[doubtful])
        grow = np.minimum.reduce([np.full(len(some), 2.0), 0.7 * CONTRACTION / np.maximum(worst, 1e-3),
                                  np.sqrt(BENT / np.maximum(first, 1e-9)), 0.9 * LONGEST / np.maximum(way, 1e-9)])
        self._grow[some[good]] = grow[good]
        return found, good

    def _put(self, some: Ints, q: Floats, at: Floats) -> Floats:
        """q with what is held on its way."""
        q = q.copy()
        if (at == 1.0).all():
            q[:, self.places] = self.values[some]
            return q
        moved = self.closer.integrate(self.start[some], at[:, None] * self.ways[some])[:, self.places]
        q[:, self.places] = np.where((at == 1.0)[:, None], self.values[some], moved)
        return q

    def _ahead(self, some: Ints, here: Floats, there: Floats) -> Floats:
        """Straight on by the last steps, prolonged or shortened."""
        q = self._q[some]
        back = here - self._last_here[some]
        if not (back > 0.0).any():
            return q
        part = np.where(back > 0.0, (there - here) / np.where(back > 0.0, back, 1.0), 0.0)  # none yet: not a number
        part = np.where(np.abs(part) < 1e3, part, 0.0)
        change = self.closer.difference(self._last_q[some], q)
        return self.closer.normalize(self.closer.integrate(q, part[:, None] * change))

    def _lead_back(self, some: Ints, found: Floats, here: Floats, way: Floats) -> Mask:
        """Whether tangents at new positions lead back to where walks came from: if not, they are on other branches."""
        back = self._put(some, found, here)
        step = self.closer.only(some).newton(back, self.held, self.weights, self.t)[1]
        there = self.closer.integrate(back, np.where(np.isfinite(step), step, 0.0))
        near = self._length(self.closer.difference(self._q[some], there)) <= np.maximum(0.5 * way, WALKED)
        return np.asarray(near & np.isfinite(step).all(axis=-1))

    def _length(self, change: Floats) -> Floats:
        return np.asarray(np.abs(change / self.lengths).max(axis=-1, initial=0.0))
