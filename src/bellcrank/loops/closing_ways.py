"""Coordinates of joints that close loops, on their way from where they are to where they shall be."""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats, half_turn
from bellcrank.loops.closer import Closer, Extra
from bellcrank.mechanism.joints import Joint

__all__ = ["ClosingWays"]


class ClosingWays:
    """Ways of coordinates of closing joints from where they are to where they shall be: angles the shorter way round,
    as they are measured within a turn."""

    def __init__(self, close: Closer, q: Floats, t: float, extra: tuple[Extra, ...]) -> None:
        self.end = np.array([e.value for e in extra])
        self.start, self.slope = np.zeros(len(extra)), np.zeros(len(extra))
        self.whole: list[tuple[list[int], Joint, Floats, Floats]] = []
        for closure in dict.fromkeys(e.closure for e in extra):
            kind, now = close.loops.tree.closures[closure].kind, close.coordinates(q, closure, t)
            mine = [i for i, e in enumerate(extra) if e.closure == closure]
            for i in mine:
                gap = extra[i].value - now[extra[i].coordinate]
                self.start[i] = now[extra[i].coordinate]
                self.slope[i] = half_turn(gap) if close.turns(extra[i]) else gap
            if kind.nq != kind.nu and len({extra[i].coordinate for i in mine}) == kind.nq:
                mine.sort(key=lambda i: extra[i].coordinate)
                end = kind.normalize(self.end[mine])
                self.whole.append((mine, kind, now, kind.difference(now, end)))

    def at(self, part: float) -> Floats:
        """The values at part of the way."""
        if part == 1.0:
            return self.end
        out = self.start + part * self.slope
        for mine, kind, now, turn in self.whole:
            out[mine] = kind.integrate(now, part * turn)
        return out
