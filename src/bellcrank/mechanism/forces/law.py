"""A force given as a function."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Along
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number

__all__ = ["Law2", "LawForce", "TableLaw", "required_arguments"]

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


@dataclass(frozen=True)
class TableLaw:
    """A table as a force law: of the displacement, or of the displacement and its rate."""

    table: Table

    def __call__(self, x: Number, rate: Number) -> Number:
        return self.table(x) if self.table.arguments == 1 else self.table(x, rate)


def required_arguments(law: object) -> int:
    """How many arguments a law must be given: 1 of those that see the machine, 2 of those of a displacement and its
    rate (and of what does not say)."""
    try:
        parameters = inspect.signature(law).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return 2
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)
