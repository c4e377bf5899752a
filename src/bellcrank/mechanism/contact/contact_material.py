"""What touches: compliant by Hunt and Crossley's law, or rigid; both with Coulomb friction."""

from __future__ import annotations

import math
from dataclasses import dataclass

from bellcrank.errors import ModelError
from bellcrank.mechanism.forces.element import Element, positive_part
from bellcrank.scalar.functions import maximum, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Vector

__all__ = ["Compliant", "Unyielding", "dissipation_for"]

#: depths [m] below this have no square root of their own, so that there are derivatives where shapes just touch
_SHALLOW = 1e-30


@dataclass(frozen=True)
class Compliant(Element):
    """The force at every place where two shapes overlap by x, at the rate v.

    Normal force ``stiffness x^exponent max(0, 1 + dissipation v)``: K. H. Hunt and F. R. E. Crossley, "Coefficient of
    restitution interpreted as damping in vibroimpact", J. Appl. Mech. 42 (1975), with the pull left out. It is zero
    where the shapes part, never pulls, and takes energy out in both directions.

    Friction is ``-friction normal s / sqrt(|s|^2 + slip_speed^2)`` along the slip s: Coulomb's law but for slips about
    as slow as `slip_speed`. What sticks creeps, with the share r of the largest friction that is needed, at
    ``slip_speed r / sqrt(1 - r^2)``.

    >>> steel = Compliant(stiffness=1e5, dissipation=0.2, friction=0.5)
    >>> steel.normal_force(1e-3, 0.0), steel.normal_force(1e-3, -10.0), steel.normal_force(-1e-3, 1.0)
    (100.0, 0.0, 0.0)
    """

    stiffness: Number
    dissipation: Number = 0.0
    friction: Number = 0.0
    slip_speed: Number = 1e-3
    exponent: float = 1.0

    def normal_force(self, depth: Number, rate: Number) -> Number:
        """Force [N] that pushes the shapes apart; `depth` [m] and its `rate` [m/s]."""
        return self._elastic(positive_part(depth)) * positive_part(1.0 + self.dissipation * rate)

    def friction_force(self, normal_force: Number, slip: Vector) -> Vector:
        """Force [N] against the slip [m/s]."""
        speed = sqrt(slip.dot(slip) + self.slip_speed * self.slip_speed)
        out: Vector = slip * (-(self.friction * normal_force / speed))
        return out

    def energy(self, depth: Number) -> Number:
        """Energy stored [J]."""
        x = positive_part(depth)
        return self._elastic(x) * x / (self.exponent + 1.0)

    def normal_loss(self, depth: Number, rate: Number) -> Number:
        """Power [W] that the normal force turns into heat; never negative."""
        return (self.normal_force(depth, rate) - self._elastic(positive_part(depth))) * rate

    def _elastic(self, x: Number) -> Number:
        if self.exponent == 1.0:
            return self.stiffness * x
        root = sqrt(maximum(x, _SHALLOW))
        return self.stiffness * (x * root if self.exponent == 1.5 else x * x)


@dataclass(frozen=True)
class Unyielding(Element):
    """Shapes that do not give way: they part with `restitution` times the speed at which they met (Newton's law), and
    slide with Coulomb's `friction`, or do not slide at all."""

    restitution: Number = 0.0
    friction: Number = 0.0


def dissipation_for(restitution: float, impact_speed: float) -> float:
    """The dissipation [s/m] with which shapes that meet at `impact_speed` [m/s] part with `restitution` times that.

    Along the way v dv / (1 + d v) = -k x^n dx / m, whatever mass, stiffness and exponent are; both ways together give,
    with e the restitution and z = d v, ``(1 + e) z = log((1 + z) / (1 - e z))``: Y. Gonthier et al., "A regularized
    contact model with asymmetric damping and dwell-time dependent friction", Multibody Syst. Dyn. 11 (2004). For e near
    one it is Hunt and Crossley's ``d = 3 (1 - e) / (2 v)``.

    >>> round(dissipation_for(0.9, 2.0), 3), round(3 * (1 - 0.9) / (2 * 2.0), 3)
    (0.083, 0.075)
    """
    if not 0.0 < restitution <= 1.0:
        raise ModelError(f"restitution of a compliant contact must be above 0 and at most 1, got {restitution:g}; give "
                         "dissipation= instead, or leave out stiffness: rigid contacts may keep nothing")
    if not impact_speed > 0.0:
        raise ModelError(f"impact_speed must be positive, got {impact_speed:g}")
    if restitution == 1.0:
        return 0.0

    def excess(z: float) -> float:
        left = 1.0 - restitution * z  # none, to rounding, where little is kept
        return (1.0 + restitution) * z - math.log1p(z) + math.log(left) if left > 0.0 else -math.inf

    low, high = 0.0, 1.0 / restitution  # it is positive right of zero, and -inf at 1/e
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if excess(middle) > 0.0 else (low, middle)
    return low / impact_speed
