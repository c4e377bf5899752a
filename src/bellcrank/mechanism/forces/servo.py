"""Drives that follow a target by themselves."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number, is_zero

__all__ = ["Servo", "within"]

_OF_TIME = ("target", "target_rate", "offset")


@dataclass(frozen=True)
class Servo(Along):
    """Force ``stiffness (target - x) + damping (target_rate - rate) + offset``, kept between `lower` and `upper`.

    Stiffness [N/m or N m/rad] and damping [N s/m or N m s/rad] are the gains of the servo, `target` [m or rad] and
    `target_rate` [m/s or rad/s] what it follows, `offset` [N or N m] a force that it adds in any case. Those three are
    numbers, parameters or functions of time. `lower` and `upper` [N or N m] are limits of the force, None for none.

    A servo is a drive: it stores no energy, though at rest it may hold like a spring. All its power counts as lost,
    with a minus where it drives the machine, so that energies balance.

    >>> servo = Servo(stiffness=100.0, damping=2.0, target=0.25, lower=-5.0, upper=15.0)
    >>> servo.force(0.125, 1.0), servo.force(0.0, 0.0), servo.force(1.0, 0.0)
    (10.5, 15.0, -5.0)
    >>> servo.energy(0.7), servo.loss(0.125, 1.0)
    (0.0, -10.5)
    """

    stiffness: Number = 0.0
    damping: Number = 0.0
    target: Number = 0.0
    target_rate: Number = 0.0
    offset: Number = 0.0
    lower: Number | None = None
    upper: Number | None = None
    energy_known = False

    @property
    def placed(self) -> bool:
        return not is_zero(self.stiffness)

    @property
    def timed(self) -> bool:
        return any(callable(getattr(self, name)) for name in _OF_TIME)

    def at(self, time: Number) -> Servo:
        if not self.timed:
            return self
        now = {name: getattr(self, name) for name in _OF_TIME}
        return replace(self, **{name: value(time) if callable(value) else value for name, value in now.items()})

    def force(self, x: Number, rate: Number) -> Number:
        wanted = self.stiffness * (self.target - x) + self.damping * (self.target_rate - rate) + self.offset
        return within(wanted, self.lower, self.upper)


def within(x: Number, lower: Number | None, upper: Number | None) -> Number:
    """x, or the limit that it is beyond.

    >>> [within(x, -1.0, 2.0) for x in (-3.0, 0.5, 3.0)], within(9.0, 0.0, None)
    ([-1.0, 0.5, 2.0], 9.0)
    """
    if lower is not None:
        x = select_less(x, lower, lower, x)
    return x if upper is None else select_less(upper, x, upper, x)
