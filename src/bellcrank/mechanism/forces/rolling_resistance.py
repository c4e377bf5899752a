"""Rolling resistance of a wheel."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.functions import tanh
from bellcrank.scalar.graph import Number

__all__ = ["RollingResistance"]


@dataclass(frozen=True)
class RollingResistance(Element):
    """The moment ``- coefficient load radius tanh(u / speed)`` [N m] against the turning of a wheel's joint; the load
    [N] is a number or a law of the machine."""

    joint: str
    coefficient: Number
    load: Number | MachineLaw
    radius: Number
    speed: Number

    def __call__(self, at: Any) -> Number:
        load = self.load(at) if callable(self.load) else self.load
        return -(self.coefficient * self.radius * load * tanh(at.u(self.joint) / self.speed))
