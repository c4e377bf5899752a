"""Forces along one coordinate: functions of its value and its rate."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bellcrank.mechanism.forces.element import Along, positive_part
from bellcrank.scalar.functions import exp, log, maximum, minimum, select_less, sqrt, tanh
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet

__all__ = ["Belt", "BumpStop", "Friction", "GasSpring", "Limit", "LinearSpring", "PotentialSpring", "TorsionBar",
           "torsion_stiffness"]


# -- springs with dampers in parallel: linear, or by any potential ----------------------------------
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


# -- gas springs: a closed volume of gas behind a rod -----------------------------------------------
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


# -- compliant stops at the ends of a coordinate's range --------------------------------------------
#: angles [rad] of stops that give way and still end well before half a turn
_WELL_WITHIN = math.pi - 0.5


@dataclass(frozen=True)
class Limit(Along):
    """Stops at `lower` and `upper` [m or rad] (None: no stop), springs with dampers that only push.

    At a depth d inside a stop it pushes back with ``stiffness d + damping * rate of d``, never less than zero. The
    damping grows from nothing to its full value over the depth `onset`, so that the force is continuous. Stored
    energy: ``stiffness d^2 / 2``. Stiffness [N/m or N m/rad], damping [N s/m or N m s/rad].

    >>> stop = Limit(lower=-1.0, upper=0.5, stiffness=100.0, damping=2.0)
    >>> stop.force(0.2, 3.0), stop.force(0.75, 1.0), stop.force(0.75, -1e3), stop.force(-1.5, 0.0)
    (0.0, -27.0, 0.0, 50.0)
    >>> stop.energy(0.75)
    3.125
    """

    lower: Number | None
    upper: Number | None
    stiffness: Number
    damping: Number = 0.0
    onset: Number = 1e-3

    @property
    def sees_turns(self) -> bool:
        """Not where both stops are well within half a turn, which then is never left."""
        return not all(isinstance(end, float) and abs(end) < _WELL_WITHIN for end in (self.lower, self.upper))

    def force(self, x: Number, rate: Number) -> Number:
        total: Number = 0.0
        if self.upper is not None:
            total = total - self._push(x - self.upper, rate)
        if self.lower is not None:
            total = total + self._push(self.lower - x, -rate)
        return total

    def _push(self, depth: Number, rate: Number) -> Number:
        depth = positive_part(depth)
        share = select_less(depth, self.onset, depth / self.onset, 1.0)
        return positive_part(self.stiffness * depth + self.damping * share * rate)

    def energy(self, x: Number) -> Number:
        total: Number = 0.0
        for depth in (None if self.upper is None else x - self.upper, None if self.lower is None else self.lower - x):
            if depth is not None:
                inside = positive_part(depth)
                total = total + self.stiffness * (inside * inside) * 0.5
        return total


# -- bump stops: soft at first touch, ever stiffer --------------------------------------------------
@dataclass(frozen=True)
class BumpStop(Limit):
    """A `Limit` whose push grows as ``stiffness d + progression d^3`` with the depth d; `progression` [N/m^3].

    >>> stop = BumpStop(lower=0.2, upper=None, stiffness=1000.0, progression=1e6)
    >>> round(stop.force(0.1, 0.0), 9), round(stop.energy(0.1), 9), stop.force(0.3, 0.0)
    (1100.0, 30.0, 0.0)
    """

    progression: Number = 0.0

    def _push(self, depth: Number, rate: Number) -> Number:
        depth = positive_part(depth)
        share = select_less(depth, self.onset, depth / self.onset, 1.0)
        elastic = (self.stiffness + self.progression * (depth * depth)) * depth
        return positive_part(elastic + self.damping * share * rate)

    def energy(self, x: Number) -> Number:
        total: Number = super().energy(x)
        for depth in (None if self.upper is None else x - self.upper, None if self.lower is None else self.lower - x):
            if depth is not None:
                square = positive_part(depth) * positive_part(depth)
                total = total + self.progression * (square * square) * 0.25
        return total


# -- torsion bars by their dimensions ---------------------------------------------------------------
def torsion_stiffness(length: Number, diameter: Number, bore: Number, shear_modulus: Number) -> Number:
    """Stiffness [N m/rad] of a round bar, or of a tube with a `bore`: G pi (D^4 - d^4) / (32 L).

    >>> round(torsion_stiffness(1.0, 0.02, 0.0, 79e9), 3)
    1240.929
    """
    fourth = diameter**4 - bore**4
    return shear_modulus * fourth * (math.pi / 32.0) / length


@dataclass(frozen=True)
class TorsionBar(LinearSpring):
    """A spring on a joint with the stiffness of a bar: dimensions [m], shear modulus [Pa].

    >>> round(TorsionBar.of(1.0, 0.02, 0.0, 79e9).force(0.1, 0.0), 3)
    -124.093
    """

    length: Number = 1.0
    diameter: Number = 0.0
    bore: Number = 0.0
    shear_modulus: Number = 79e9

    @classmethod
    def of(cls, length: Number, diameter: Number, bore: Number, shear_modulus: Number, damping: Number = 0.0,
           rest: Number = 0.0) -> TorsionBar:
        """A bar of these dimensions."""
        return cls(torsion_stiffness(length, diameter, bore, shear_modulus), damping, rest, length, diameter, bore,
                   shear_modulus)


# -- belt and chain drives --------------------------------------------------------------------------
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


# -- coulomb and viscous friction along a coordinate ------------------------------------------------
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
