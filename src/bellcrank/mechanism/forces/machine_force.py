"""A force that is a function of the whole machine."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.graph import Number

__all__ = ["KnownForce", "MachineForce", "MachineLaw", "stored_by"]

#: a law: what it sees of the machine in, a number or numbers out; written with `bellcrank.math`
MachineLaw = Callable[[Any], Any]


@dataclass(frozen=True)
class KnownForce(Along):
    """A force whose value is known, whatever the coordinate.

    >>> KnownForce(3.0).force(0.1, 0.2), KnownForce(3.0).loss(0.1, 0.2)
    (3.0, -0.6000000000000001)
    """

    value: Number
    energy_known = False

    def force(self, x: Number, rate: Number) -> Number:
        return self.value


@dataclass(frozen=True)
class MachineForce(Along):
    """Force ``sign * law(at)`` [N or N m], where ``at`` shows the machine: see `bellcrank.Mechanism.add_joint_force`.

    What a function stores cannot be known: its energy counts as zero, and all of its power as lost. Ready-made laws say
    by ``energy(at)`` what they store, for reports.
    """

    name: str  #: of the element
    law: MachineLaw
    sign: float = 1.0
    clock: bool = True  #: whether it looks at the time
    energy_known = False

    @property
    def placed(self) -> bool:
        return False  # but by what the law reads

    @property
    def timed(self) -> bool:
        return self.clock

    def pull_at_zero(self) -> Number:
        return math.inf  # nobody knows: where its ends meet, it has no direction

    def seen(self, machine: Any) -> Along:
        value = machine.value_of(self.name, self.law)
        return KnownForce(value if self.sign == 1.0 else -value)

    def stored(self, machine: Any, x: Number) -> Number:
        return stored_by(self.law, machine)

    def undefined(self, x: Number) -> str:
        told: Callable[[Number], str] | None = getattr(self.law, "undefined", None)
        return "" if told is None else told(x)

    def force(self, x: Number, rate: Number) -> Number:
        raise AssertionError("a law of the machine needs to see it")


def stored_by(law: Any, machine: Any) -> Number:
    """What a law of the machine says that it stores [J]."""
    energy = getattr(law, "energy", None)
    return 0.0 if energy is None else energy(machine)
