"""A force given as a function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.graph import Number

__all__ = ["Law2", "LawForce"]

#: a force law: displacement and its rate in, force out; written with `bellcrank.math`
Law2 = Callable[[Number, Number], Number]


@dataclass(frozen=True)
class LawForce(Along):
    """Force ``sign * law(x, rate)`` [N or N m].

    What a function stores cannot be known: its energy counts as zero, and all of its power as lost. Give a potential
    (see `PotentialSpring`) to have the energy counted.

    >>> LawForce(lambda x, rate: -3.0 * x**3).force(2.0, 0.0)
    -24.0
    """

    law: Law2
    sign: float = 1.0
    energy_known = False

    def force(self, x: Number, rate: Number) -> Number:
        return self.law(x, rate) if self.sign == 1.0 else -self.law(x, rate)
