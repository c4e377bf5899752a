"""Drives whose force is an input, within limits."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Element, positive_part
from bellcrank.mechanism.forces.servo import within
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number

__all__ = ["Actuator"]


@dataclass(frozen=True)
class Actuator(Element):
    """Passes the joint force tau on within ±`limit` [N or N m], or from `lower` (at most zero) to `limit`.

    With `no_load_speed` [m/s or rad/s] it follows the straight speed-torque line of a motor: the force in the direction
    of motion is at most ``limit (1 - |rate| / no_load_speed)``, and nothing beyond that speed; braking has the full
    limit. It stores no energy: what it does is the work of tau.

    >>> motor = Actuator(limit=10.0, no_load_speed=4.0)
    >>> motor.output(3.0, 0.0), motor.output(20.0, 1.0), motor.output(-20.0, 1.0), motor.output(5.0, 9.0)
    (3.0, 7.5, -10.0, 0.0)
    >>> Actuator(limit=10.0, lower=-2.0).output(-20.0, 0.0)
    -2.0
    """

    limit: Number
    no_load_speed: Number | None = None
    lower: Number | None = None

    def output(self, tau: Number, rate: Number) -> Number:
        """The force that acts when `tau` is asked for at the rate of the joint."""
        upper, lower = self.limit, -self.limit if self.lower is None else self.lower
        if self.no_load_speed is not None:
            part = rate / self.no_load_speed
            upper, lower = upper * _share(1.0 - part), lower * _share(1.0 + part)
        return within(tau, lower, upper)


def _share(x: Number) -> Number:
    return positive_part(select_less(x, 1.0, x, 1.0))
