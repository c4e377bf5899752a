"""Bump stops: soft at first touch, ever stiffer."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import positive_part
from bellcrank.mechanism.forces.limit import Limit
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number

__all__ = ["BumpStop"]


@dataclass(frozen=True)
class BumpStop(Limit):
    """A `Limit` whose push grows as ``stiffness d + progression d^3`` with the depth d; `progression` [N/m^3].

    >>> stop = BumpStop(lower=0.2, upper=None, stiffness=1000.0, progression=1e6)
    >>> round(stop.force(0.1, 0.0), 9), round(stop.energy(0.1), 9), stop.force(0.3, 0.0)
    (1100.0, 30.0, 0.0)
    """

    progression: Number = 0.0

    def _push(self, depth: Number, rate: Number) -> Number:
        depth = positive_part(depth)
        share = select_less(depth, self.onset, depth / self.onset, 1.0)
        elastic = (self.stiffness + self.progression * (depth * depth)) * depth
        return positive_part(elastic + self.damping * share * rate)

    def energy(self, x: Number) -> Number:
        total: Number = super().energy(x)
        for depth in (None if self.upper is None else x - self.upper, None if self.lower is None else self.lower - x):
            if depth is not None:
                square = positive_part(depth) * positive_part(depth)
                total = total + self.progression * (square * square) * 0.25
        return total
