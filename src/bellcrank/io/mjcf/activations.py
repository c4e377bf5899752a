"""Laws of MJCF: actuators with a state of their own, and polynomials of joint coordinates.

Actuators of MJCF with a state of their own: integrators, filters and muscles, as MuJoCo computes them.

The activation w is a state of the machine; the force is gain(l, v) w + bias(l, v), with the length l and the rate v of
the transmission. Both gain and bias are affine or those of a muscle, whose curves of length and speed are piecewise
quadratic. "filterexact" is "filter": here time is continuous in any case.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from bellcrank.mechanism.forces.motors import within
from bellcrank.mechanism.motion import Part
from bellcrank.scalar.functions import maximum, minimum, select_less
from bellcrank.scalar.graph import Number

__all__ = ["ActivatedForce", "ActivationRate", "MuscleCurves", "Polynomial", "coefficients_of"]


# -- actuators of MJCF with a state of their own ----------------------------------------------------
Three = tuple[float, float, float]
Ends = tuple[float | None, float | None]
#: what MuJoCo divides by at least
_LEAST = 1e-15


@dataclass(frozen=True)
class ActivationRate:
    """The rate of an activation: the control is a parameter, kept in its range.

    `kind` is "integrator" (w' = c), "filter" (w' = (c - w) / times[0]) or "muscle": that with the times of activation
    and deactivation, longer the more it is active, and a width of smoothing. An activation with a range stays in it.
    """

    state: str
    control: str
    kind: str
    times: Three
    control_range: Ends = (None, None)
    state_range: Ends = (None, None)

    def __call__(self, at: Any) -> Number:
        control, state = within(at.parameter(self.control), *self.control_range), at.state(self.state)
        if self.kind == "integrator":
            rate = control
        elif self.kind == "filter":
            rate = (control - state) * (1.0 / max(self.times[0], _LEAST))
        else:
            rate = self._muscle(control, state)
        low, high = self.state_range
        if high is not None:
            rate = select_less(state, high, rate, minimum(rate, 0.0))
        return rate if low is None else select_less(low, state, rate, maximum(rate, 0.0))

    def _muscle(self, control: Number, state: Number) -> Number:
        up, down, width = self.times
        more = within(control, 0.0, 1.0) - state
        active = 0.5 + 1.5 * within(state, 0.0, 1.0)
        rising, falling = up * active, down / active
        if width < _LEAST:
            time = select_less(0.0, more, rising, falling)
        else:
            x = within(more * (1.0 / width) + 0.5, 0.0, 1.0)
            time = falling + (rising - falling) * (x * x * x * (3.0 * x * (2.0 * x - 5.0) + 10.0))
        return more / maximum(time, _LEAST)


@dataclass(frozen=True)
class MuscleCurves:
    """Force over length and speed: the largest force [N], the range of lengths that is `unit` of the muscle's own,
    where the active force ends, the speed at which it vanishes, passive force and that of stretching."""

    force: float
    lengths: tuple[float, float]
    unit: tuple[float, float]
    ends: tuple[float, float]
    speed: float
    passive: float
    stretched: float

    @property
    def numbers(self) -> tuple[float, ...]:
        """As gainprm and biasprm have them."""
        return (*self.unit, self.force, 1.0, *self.ends, self.speed, self.passive, self.stretched)

    def _own(self, length: Number) -> tuple[Number, float]:
        """Length in those of the muscle, and how long one of these is [m or rad]."""
        one = (self.lengths[1] - self.lengths[0]) / max(_LEAST, self.unit[1] - self.unit[0])
        return self.unit[0] + (length - self.lengths[0]) * (1.0 / max(_LEAST, one)), one

    def gain(self, length: Number, rate: Number) -> Number:
        """Minus the force of full activation."""
        own, one = self._own(length)
        speed = rate * (1.0 / max(_LEAST, one * self.speed))
        y = self.stretched - 1.0
        lack = (y - speed) * (y - speed) * (1.0 / max(_LEAST, y))
        late = select_less(speed, y, self.stretched - lack, self.stretched)
        slow = select_less(0.0, speed, late, (speed + 1.0) * (speed + 1.0))
        return -(self.force * (self._of_length(own) * select_less(speed, -1.0, 0.0, slow)))

    def _of_length(self, x: Number) -> Number:
        low, high = self.ends
        a, b = 0.5 * (low + 1.0), 0.5 * (1.0 + high)

        def part(value: Number, width: float) -> Number:
            share = value * (1.0 / max(_LEAST, width))
            return 0.5 * (share * share)

        right = select_less(b, x, part(high - x, high - b), 1.0 - part(x - 1.0, b - 1.0))
        left = select_less(a, x, 1.0 - part(1.0 - x, 1.0 - a), part(x - low, a - low))
        inside = select_less(1.0, x, right, left)
        return select_less(x, low, 0.0, select_less(high, x, 0.0, inside))

    def bias(self, length: Number) -> Number:
        """Minus the passive force."""
        own, _ = self._own(length)
        b = 0.5 * (1.0 + self.ends[1])
        near, far = ((own - x) * (1.0 / max(_LEAST, b - 1.0)) for x in (1.0, b))
        pull = select_less(own, b, 0.5 * (near * near), 0.5 + far)
        return -(self.force * self.passive * select_less(1.0, own, pull, 0.0))


@dataclass(frozen=True)
class ActivatedForce:
    """gear * (gain w + bias), within limits, along a joint coordinate or a sum of some, which is zero where l is
    gear * start."""

    name: str  #: of the element
    state: str
    gear: float
    start: float
    gain: Three | MuscleCurves
    bias: Three | MuscleCurves
    limits: Ends = (None, None)

    def __call__(self, at: Any) -> Number:
        own = at.element(self.name)
        length, rate = self.gear * (own.length + self.start), self.gear * own.rate
        gain = self.gain.gain(length, rate) if isinstance(self.gain, MuscleCurves) else _affine(self.gain, length, rate)
        bias = self.bias.bias(length) if isinstance(self.bias, MuscleCurves) else _affine(self.bias, length, rate)
        return within(self.gear * (gain * at.state(self.state) + bias), *self.limits)


def _affine(numbers: Three, length: Number, rate: Number) -> Number:
    total: Number = numbers[0]
    for factor, value in ((numbers[1], length), (numbers[2], rate)):
        if factor:
            total = total + factor * value
    return total


# -- polynomials of a joint coordinate: as functions for couplers, and back from functions to coefficients ---
@dataclass(frozen=True)
class Polynomial:
    """A sum of coefficient * x**power, the lowest power first: a function of x, and a number to calculate with.

    >>> line = Polynomial((1.0, 2.0))
    >>> line(3.0), (line * line - 1.0).coefficients
    (7.0, (0.0, 4.0, 4.0))
    """

    coefficients: tuple[float, ...]

    def __call__(self, x: Number) -> Number:
        total: Number = 0.0
        for c in reversed(self.coefficients):  # Horner
            total = total * x + c
        return total

    def __add__(self, other: object) -> Polynomial:
        pairs = zip_longest(self.coefficients, _polynomial(other).coefficients, fillvalue=0.0)
        return Polynomial(tuple(a + b for a, b in pairs))

    def __mul__(self, other: object) -> Polynomial:
        factor = _polynomial(other).coefficients
        out = [0.0] * (len(self.coefficients) + len(factor) - 1)
        for i, a in enumerate(self.coefficients):
            for j, b in enumerate(factor):
                out[i + j] += a * b
        return Polynomial(tuple(out))

    def __pow__(self, power: object) -> Polynomial:
        if not isinstance(power, int) or not 0 <= power <= 16:
            raise TypeError("no polynomial of low degree")
        out = Polynomial((1.0,))
        for _ in range(power):
            out = out * self
        return out

    def __truediv__(self, other: object) -> Polynomial:
        divisor = _polynomial(other).coefficients
        if len(divisor) > 1:
            raise TypeError("a quotient of polynomials is none")
        return Polynomial(tuple(a / divisor[0] for a in self.coefficients))

    def __neg__(self) -> Polynomial:
        return Polynomial(tuple(-a for a in self.coefficients))

    def __sub__(self, other: object) -> Polynomial:
        return self + -_polynomial(other)

    def __rsub__(self, other: object) -> Polynomial:
        return _polynomial(other) + -self

    __radd__, __rmul__ = __add__, __mul__


def _polynomial(value: object) -> Polynomial:
    if isinstance(value, Polynomial):
        return value
    if isinstance(value, (int, float)):
        return Polynomial((float(value),))
    raise TypeError("neither a polynomial nor a number")


def coefficients_of(part: Part, degree: int) -> tuple[float, ...] | None:
    """The coefficients of a factor or a function of a coordinate, `degree` + 1 of them, or None if it is no such
    polynomial: the function is run on a polynomial.

    >>> import bellcrank as bc
    >>> coefficients_of(lambda q: 0.5 * (q - 1.0)**2, 4), coefficients_of(bc.math.sin, 4)
    ((0.5, -1.0, 0.5, 0.0, 0.0), None)
    """
    if isinstance(part, float):
        return (0.0, part, *(0.0,) * (degree - 1))
    try:
        found = list(_polynomial(part(Polynomial((0.0, 1.0)))).coefficients)
    except (TypeError, ValueError, AttributeError, ArithmeticError):
        return None
    while found and found[-1] == 0.0:
        found.pop()
    return tuple(found + [0.0] * (degree + 1 - len(found))) if len(found) <= degree + 1 else None
