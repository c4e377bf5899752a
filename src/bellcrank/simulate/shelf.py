"""Samples of a run in memory: arrays that grow at their end, so that what came in pieces need not be put together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from bellcrank.arrays import Floats

__all__ = ["Shelf"]


class Shelf:
    """Arrays by name with one row for every sample, all of the same number of rows. Memory for rows to come costs
    nothing until they come."""

    def __init__(self) -> None:
        self._arrays: dict[str, Floats] = {}
        self.count = 0

    def add(self, rows: Mapping[str, Floats]) -> None:
        """Copy rows to the end. Arrays that were handed out stay what they were."""
        more = len(next(iter(rows.values())))
        end = self.count + more
        for name, values in rows.items():
            have = self._arrays.get(name)
            if have is None or len(have) < end:
                grown = np.empty((max(end, 2 * self.count), *values.shape[1:]))
                if have is not None:
                    grown[:self.count] = have[:self.count]
                self._arrays[name] = have = grown
            have[self.count:end] = values
        self.count = end

    def between(self, begin: int, end: int) -> dict[str, Floats]:
        """Some of the rows; not copied."""
        return {name: array[begin:end] for name, array in self._arrays.items()}

    def clear(self) -> None:
        """Forget all rows, but not their memory: what comes next lies where they lay."""
        self.count = 0
