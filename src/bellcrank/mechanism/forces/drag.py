"""Drag of a body in air or water."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.functions import maximum, sqrt
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.spatial import Vector

__all__ = ["Drag"]

#: the square of a speed at which nothing moves
_NOTHING = 1e-300


@dataclass(frozen=True)
class Drag(Element):
    """Force ``-density coefficient area / 2 |v| v`` at the speed v through the air, and a moment
    ``-(turn_linear + turn_quadratic |omega|) omega``.

    Density [kg/m^3], area [m^2], `turn_linear` [N m s/rad], `turn_quadratic` [N m s^2/rad^2]; the coefficient has no
    unit and does not depend on the attitude. `wind` is the velocity of the air [m/s] in world axes: numbers,
    parameters or functions of time. It stores no energy.

    >>> drag = Drag(coefficient=0.5, area=2.0, density=1.2)
    >>> tuple(round(x, 12) for x in drag.force(Vector(3.0, 0.0, 4.0)))
    (-9.0, -0.0, -12.0)
    """

    coefficient: Number = 0.0
    area: Number = 1.0
    density: Number = 1.2
    turn_linear: Number = 0.0
    turn_quadratic: Number = 0.0
    wind: tuple[Number, ...] = (0.0, 0.0, 0.0)

    @property
    def timed(self) -> bool:
        """Whether the wind changes in time."""
        return any(callable(x) for x in self.wind)

    def wind_at(self, time: Number) -> Vector:
        """The wind at a time, world axes."""
        return Vector(*(x(time) if callable(x) else x for x in self.wind))

    def force(self, velocity: Vector) -> Vector:
        """The force at a velocity through the air, in the same axes."""
        factor = self.density * self.coefficient * self.area * 0.5
        if is_zero(factor):
            return Vector.zero()
        k = factor * _length(velocity)
        return Vector(*(-(k * v) for v in velocity))

    def moment(self, omega: Vector) -> Vector:
        """The moment at an angular velocity, in the same axes."""
        k = self.turn_linear
        if not is_zero(self.turn_quadratic):
            k = k + self.turn_quadratic * _length(omega)
        return Vector(*(-(k * w) for w in omega))


def _length(v: Vector) -> Number:
    """The length of a vector, at least a number that is nothing: so it has a derivative at rest."""
    return sqrt(maximum(v.dot(v), _NOTHING))
