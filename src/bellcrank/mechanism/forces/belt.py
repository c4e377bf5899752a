"""Belt and chain drives."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Along, positive_part
from bellcrank.scalar.functions import maximum, minimum
from bellcrank.scalar.graph import Number

__all__ = ["Belt"]


@dataclass(frozen=True)
class Belt(Along):
    """Two spans between pulleys, which only pull: along the stretch s [m] of one span (the other gets as much
    shorter), ``-(pull(s) - pull(-s))`` with ``pull(s) = max(0, pretension + stiffness (s - slack))``. The
    `damping` [N s/m] is that of both, shared as they pull, and at most what they pull: loose spans do not damp.

    `stiffness` [N/m] is that of one span, `pretension` [N]; `slack` [m] is how far one sprocket of a loose chain moves
    before its span is straight.

    >>> belt = Belt(stiffness=1000.0, pretension=50.0, damping=10.0)
    >>> belt.force(0.02, 0.0), belt.force(0.02, 0.5), belt.force(0.1, 0.0)
    (-40.0, -45.0, -150.0)
    >>> Belt(stiffness=1000.0, slack=0.01, damping=10.0).force(0.005, 3.0)
    0.0
    """

    stiffness: Number
    pretension: Number = 0.0
    damping: Number = 0.0
    slack: Number = 0.0

    def _pull(self, stretch: Number) -> Number:
        return positive_part(self.pretension + self.stiffness * (stretch - self.slack))

    def force(self, x: Number, rate: Number) -> Number:
        one, two = self._pull(x), self._pull(-x)
        return two - one - minimum(maximum(self.damping * rate, -(one + two)), one + two)

    def energy(self, x: Number) -> Number:
        """That of both spans, less what their pretension stores."""
        one, two, rest = self._pull(x), self._pull(-x), self._pull(0.0)
        return (one * one + two * two - 2.0 * (rest * rest)) / (2.0 * self.stiffness)
