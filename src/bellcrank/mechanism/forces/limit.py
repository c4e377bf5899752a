"""Compliant stops at the ends of a coordinate's range."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Along, positive_part
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number

__all__ = ["Limit"]

#: angles [rad] of stops that give way and still end well before half a turn
_WELL_WITHIN = math.pi - 0.5


@dataclass(frozen=True)
class Limit(Along):
    """Stops at `lower` and `upper` [m or rad] (None: no stop), springs with dampers that only push.

    At a depth d inside a stop it pushes back with ``stiffness d + damping * rate of d``, never less than zero. The
    damping grows from nothing to its full value over the depth `onset`, so that the force is continuous. Stored
    energy: ``stiffness d^2 / 2``. Stiffness [N/m or N m/rad], damping [N s/m or N m s/rad].

    >>> stop = Limit(lower=-1.0, upper=0.5, stiffness=100.0, damping=2.0)
    >>> stop.force(0.2, 3.0), stop.force(0.75, 1.0), stop.force(0.75, -1e3), stop.force(-1.5, 0.0)
    (0.0, -27.0, 0.0, 50.0)
    >>> stop.energy(0.75)
    3.125
    """

    lower: Number | None
    upper: Number | None
    stiffness: Number
    damping: Number = 0.0
    onset: Number = 1e-3

    @property
    def sees_turns(self) -> bool:
        """Not where both stops are well within half a turn, which then is never left."""
        return not all(isinstance(end, float) and abs(end) < _WELL_WITHIN for end in (self.lower, self.upper))

    def force(self, x: Number, rate: Number) -> Number:
        total: Number = 0.0
        if self.upper is not None:
            total = total - self._push(x - self.upper, rate)
        if self.lower is not None:
            total = total + self._push(self.lower - x, -rate)
        return total

    def _push(self, depth: Number, rate: Number) -> Number:
        depth = positive_part(depth)
        share = select_less(depth, self.onset, depth / self.onset, 1.0)
        return positive_part(self.stiffness * depth + self.damping * share * rate)

    def energy(self, x: Number) -> Number:
        total: Number = 0.0
        for depth in (None if self.upper is None else x - self.upper, None if self.lower is None else self.lower - x):
            if depth is not None:
                inside = positive_part(depth)
                total = total + self.stiffness * (inside * inside) * 0.5
        return total
