"""Complete pivoting of a group's constraints over its own speeds, with a preference for some pivots."""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats

__all__ = ["Pivoting", "Place"]

#: a pivot smaller than this, relative to its row, is none
_NOTHING = 1e-7
#: one smaller than this costs digits
_SMALL = 0.03
#: what groups alike did is done again if it is no worse than this, relative to the best
_HABIT = 0.2

Place = tuple[int, int]


class Pivoting:
    """Eliminates in place: rows are constraints, the first `n` columns own speeds, the others speeds of other groups.

    `size` and `whole` are the sizes of the rows, by themselves and among those of their closure; `favour` measures
    the own speeds. `habit` lists the pivots that groups alike chose:
    regular machines get regular code.
    """

    def __init__(self, a: Floats, n: int, size: Floats, whole: Floats, favour: Floats, habit: tuple[Place, ...]
                 ) -> None:
        self.a, self.n, self.size, self.favour, self.habit = a, n, size, favour, habit
        # of constraints that depend on each other, the one with the largest row is solved
        self.weight = np.abs(a).max(axis=1, initial=0.0) / np.where(whole > 0.0, whole, 1.0)
        self.waiting = [i for i in range(len(a)) if size[i] > 1e-12]
        self.columns = list(range(n))
        self.chosen: list[Place] = []  #: row and column of every pivot
        self.sizes: list[float] = []
        self.smallest = 1.0  #: relative to the pivots' rows

    def run(self) -> bool:
        """Choose until constraints or speeds run out. False if speeds of other groups are needed, or are better."""
        while self.waiting and self.columns:
            block = np.abs(self.a[np.ix_(self.waiting, self.columns)]) / self.size[self.waiting][:, None]
            score = block * self.weight[self.waiting][:, None]
            best = _largest(score * self.favour[self.columns])
            if block[best] < _SMALL:
                best = _largest(score)
                if block[best] < _NOTHING:
                    break
                if block[best] < _SMALL and self._elsewhere() > 10.0 * block[best]:
                    return False
            self._take(*self._customary(block, score, best))
        return all(np.abs(self.a[i, self.n:]).max(initial=0.0) <= _NOTHING * self.size[i] for i in self.waiting)

    def _elsewhere(self) -> float:
        """The largest pivot that the speeds of other groups offer."""
        rest = np.abs(self.a[self.waiting][:, self.n:]).max(axis=1, initial=0.0) / self.size[self.waiting]
        return float(rest.max())

    def _customary(self, block: Floats, score: Floats, best: Place) -> Place:
        """The best pivot, or the habitual one if that is nearly as good."""
        i, j = self.waiting[best[0]], self.columns[best[1]]
        if len(self.chosen) < len(self.habit):
            row, column = self.habit[len(self.chosen)]
            if row in self.waiting and column in self.columns:
                there = self.waiting.index(row), self.columns.index(column)
                enough = _HABIT * score[best] * self.favour[j]
                if score[there] * self.favour[column] > enough and block[there] > _SMALL:
                    return row, column
        return i, j

    def _take(self, i: int, j: int) -> None:
        """Eliminate speed j by constraint i."""
        a = self.a
        self.chosen.append((i, j))
        self.sizes.append(abs(float(a[i, j])))
        self.smallest = min(self.smallest, float(abs(a[i, j]) / self.size[i]))
        self.waiting.remove(i)
        self.columns.remove(j)
        if self.waiting:
            a[self.waiting] -= np.outer(a[self.waiting, j] / a[i, j], a[i])


def _largest(score: Floats) -> Place:
    i, j = np.unravel_index(int(np.argmax(score)), score.shape)
    return int(i), int(j)
