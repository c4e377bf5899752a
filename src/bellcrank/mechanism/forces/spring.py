"""Springs with dampers in parallel: linear, or by any potential."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet

__all__ = ["LinearSpring", "PotentialSpring"]


@dataclass(frozen=True)
class LinearSpring(Along):
    """Force ``-stiffness (x - rest) - damping rate``; energy ``stiffness (x - rest)^2 / 2``.

    Stiffness [N/m or N m/rad], damping [N s/m or N m s/rad], rest [m or rad]; all may be parameters.

    >>> spring = LinearSpring(stiffness=100.0, damping=2.0, rest=0.3)
    >>> round(spring.force(0.5, 1.0), 12), round(spring.energy(0.5), 12)
    (-22.0, 2.0)
    """

    stiffness: Number = 0.0
    damping: Number = 0.0
    rest: Number = 0.0

    @property
    def damped(self) -> bool:
        return not (isinstance(self.damping, (int, float)) and self.damping == 0.0)

    @property
    def placed(self) -> bool:
        return not is_zero(self.stiffness)

    def force(self, x: Number, rate: Number) -> Number:
        return -(self.stiffness * (x - self.rest) + self.damping * rate)

    def energy(self, x: Number) -> Number:
        stretch = x - self.rest
        return self.stiffness * (stretch * stretch) * 0.5


@dataclass(frozen=True)
class PotentialSpring(Along):
    """Force ``-dV/dx - damping rate`` of a potential V(x) [J], which is written with `bellcrank.math`.

    The force is the exact derivative of the potential, so that energies always balance.

    >>> spring = PotentialSpring(lambda x: 5.0 * x**2 + 100.0 * x**4, damping=1.0)  # grows stiffer
    >>> round(spring.force(0.1, 0.5), 12), round(spring.energy(0.1), 12)
    (-1.9, 0.06)
    """

    potential: Callable[[Number], Number]
    damping: Number = 0.0

    @property
    def damped(self) -> bool:
        return not (isinstance(self.damping, (int, float)) and self.damping == 0.0)

    def force(self, x: Number, rate: Number) -> Number:
        return -(as_jet(self.potential(Jet(x, 1.0, 0.0))).rate + self.damping * rate)

    def energy(self, x: Number) -> Number:
        return self.potential(x)
