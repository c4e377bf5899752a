"""Coulomb and viscous friction along a coordinate."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.functions import exp, tanh
from bellcrank.scalar.graph import Number

__all__ = ["Friction"]


@dataclass(frozen=True)
class Friction(Along):
    """Dry friction `coulomb` [N or N m], smooth across zero, plus `viscous` times the rate [N s/m or N m s/rad].

    The force is ``-level(rate) tanh(rate / speed) - viscous rate``: below `speed` [m/s or rad/s] dry friction is a
    damper, so that a joint under load creeps instead of sticking. With `static` (at least `coulomb`) the level falls
    from it to `coulomb` as ``exp(-(rate / stribeck)^2)``, the Stribeck effect. It stores no energy.

    >>> friction = Friction(coulomb=2.0, viscous=0.1, speed=1e-3)
    >>> friction.force(0.0, 5.0), friction.energy(0.7), friction.loss(0.0, 5.0)
    (-2.5, 0.0, 12.5)
    """

    coulomb: Number = 0.0
    viscous: Number = 0.0
    speed: Number = 1e-3
    static: Number | None = None
    stribeck: Number = 1e-2

    @property
    def placed(self) -> bool:
        return False

    def force(self, x: Number, rate: Number) -> Number:
        level = self.coulomb
        if self.static is not None:
            slip = rate / self.stribeck
            level = level + (self.static - self.coulomb) * exp(-(slip * slip))
        return -(level * tanh(rate / self.speed) + self.viscous * rate)
