"""Dry friction that truly sticks: brakes and clutches.

The contact is a brush of bristles that bend until they slide (P. R. Dahl, "A solid friction model", 1968; C. Canudas de
Wit, H. Olsson, K. J. Astrom and P. Lischinsky, "A new model for control of systems with friction", IEEE Trans. Autom.
Control 40 (1995)). Their bend s, a state, is a share of what they hold at most: s' = (v - |v| s) / reach at the slip
speed v; the force is - capacity (s + w (sign(v) - s)) with w = damping |v| / (reach + damping |v|), so never more than
the capacity. Under a load within that the contact comes to rest at s = load / capacity and stays there.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.graph import Number

__all__ = ["Bristle", "BristleForce", "BristleRate"]


@dataclass(frozen=True)
class Bristle(Element):
    """A contact along a coordinate or a sum of some: its capacity [N or N m], a number or a law of the machine, the
    `reach` [m or rad] that bristles bend before they slide, and the time constant of their damping [s]."""

    name: str
    capacity: Number | MachineLaw
    reach: Number
    damping: Number

    @property
    def bend(self) -> str:
        """The name of the state."""
        return f"{self.name} bend"

    def holds(self, at: Any) -> Number:
        """The capacity now."""
        return self.capacity(at) if callable(self.capacity) else self.capacity


@dataclass(frozen=True)
class BristleRate(Element):
    """s' = (v - |v| s) / reach."""

    bristle: Bristle

    def __call__(self, at: Any) -> Number:
        slip = at.element(self.bristle.name).rate
        return (slip - abs(slip) * at.state(self.bristle.bend)) * (1.0 / self.bristle.reach)


@dataclass(frozen=True)
class BristleForce(Element):
    """- capacity (s + damping (v - |v| s) / (reach + damping |v|))."""

    bristle: Bristle

    def __call__(self, at: Any) -> Number:
        b = self.bristle
        slip, bend = at.element(b.name).rate, at.state(b.bend)
        return -(b.holds(at) * (bend + b.damping * (slip - abs(slip) * bend) / (b.reach + b.damping * abs(slip))))

    def energy(self, at: Any) -> Number:
        """In the bent bristles [J], at the capacity of now."""
        b = self.bristle
        bend = at.state(b.bend)
        return 0.5 * b.reach * b.holds(at) * (bend * bend)
