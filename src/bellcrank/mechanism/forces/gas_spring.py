"""Gas springs: a closed volume of gas behind a rod."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from bellcrank.mechanism.forces.element import Along
from bellcrank.scalar.functions import exp, log, sqrt
from bellcrank.scalar.graph import Number

__all__ = ["GasSpring"]


@dataclass(frozen=True)
class GasSpring(Along):
    """Pushes apart with ``push (reach / (reach - s))^exponent - damping rate``, where ``s = length - x`` is how far it
    is pushed in from its full `length` [m].

    `push` [N] is its force there; `reach` [m] the volume of gas divided by the area of the rod, which s must not come
    near; `exponent` that of the polytrope, 1 for slow motion, 1.4 for fast; `damping` [N s/m].

    >>> spring = GasSpring(push=400.0, length=0.5, reach=0.6, exponent=1.0)
    >>> round(spring.force(0.5, 0.0), 9), round(spring.force(0.2, 0.0), 9)
    (400.0, 800.0)
    """

    push: Number
    length: Number
    reach: Number
    exponent: float = 1.0
    damping: Number = 0.0

    def _ratio(self, x: Number) -> Number:
        """How much denser the gas is than at full length."""
        return self.reach / (self.reach - (self.length - x))

    def force(self, x: Number, rate: Number) -> Number:
        root = sqrt(self._ratio(x))  # beyond the reach no number comes out, whatever the exponent
        risen = root * root if self.exponent == 1.0 else exp(2.0 * self.exponent * log(root))
        return self.push * risen - self.damping * rate

    def undefined(self, x: Number) -> str:
        reach, pushed = np.broadcast_arrays(*(np.asarray(a, dtype=float) for a in (self.reach, self.length - x)))
        beyond = np.flatnonzero(pushed >= reach)
        if not len(beyond):
            return ""
        return (f"it is pushed in by {pushed.flat[beyond[0]]:.6g} m, and at its reach of {reach.flat[beyond[0]]:.6g} m "
                "no volume is left to the gas; give it a larger reach (volume of gas by area of the rod), or a stop "
                "that keeps it longer (add_bump_stop)")

    def energy(self, x: Number) -> Number:
        """The work put in from full length on."""
        height = log(self._ratio(x))
        if self.exponent == 1.0:
            return self.push * self.reach * height
        more = self.exponent - 1.0
        return self.push * self.reach * (exp(more * height) - 1.0) * (1.0 / more)
