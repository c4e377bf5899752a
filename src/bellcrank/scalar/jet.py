"""Jets: a value with its first and second time derivative, over any scalar.

A motion law ``f(t)`` evaluated on ``Jet(t, 1, 0)`` gives position, rate and acceleration at once,
exactly, for floats and for traced scalars alike.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar import functions as fn
from bellcrank.scalar.graph import Number

__all__ = ["Jet", "as_jet"]


class Jet(NamedTuple):
    """Value, rate and acceleration of a quantity that depends on time."""

    value: Number
    rate: Number
    acceleration: Number

    def __add__(self, other: Number) -> Jet:
        o = as_jet(other)
        return Jet(self.value + o.value, self.rate + o.rate, self.acceleration + o.acceleration)

    def __radd__(self, other: Number) -> Jet:
        return self.__add__(other)

    def __neg__(self) -> Jet:
        return Jet(-self.value, -self.rate, -self.acceleration)

    def __abs__(self) -> Jet:
        return Jet.select_less(self, 0.0, -self, self)

    def __sub__(self, other: Number) -> Jet:
        return self + (-as_jet(other))

    def __rsub__(self, other: Number) -> Jet:
        return as_jet(other) + (-self)

    def __mul__(self, other: Number) -> Jet:
        o = as_jet(other)
        return Jet(self.value * o.value,
                   self.rate * o.value + self.value * o.rate,
                   self.acceleration * o.value + 2.0 * (self.rate * o.rate) + self.value * o.acceleration)

    def __rmul__(self, other: Number) -> Jet:
        return self.__mul__(other)

    def __truediv__(self, other: Number) -> Jet:
        o = as_jet(other)
        return self * o.chain(1.0 / o.value, -1.0 / (o.value * o.value), 2.0 / (o.value * o.value * o.value))

    def __rtruediv__(self, other: Number) -> Jet:
        return as_jet(other) / self

    def __pow__(self, power: object) -> Jet:
        if power == 0.5:
            return self.sqrt()
        if not isinstance(power, int):
            raise TypeError("a motion law can use whole powers and 0.5 only; write exp(p * log(x))")
        if power < 0:
            return 1.0 / self**-power
        result = as_jet(1.0)
        for _ in range(power):
            result = result * self
        return result

    def __lt__(self, other: object) -> bool:
        raise TypeError("quantities that depend on time have no order: use bellcrank.math.select_less(a, b, x, y)")

    def __le__(self, other: object) -> bool:
        return self < other

    def __gt__(self, other: object) -> bool:
        return self < other

    def __ge__(self, other: object) -> bool:
        return self < other

    def chain(self, f: Number, df: Number, ddf: Number) -> Jet:
        """The jet of f(x) given f, f' and f'' at this value."""
        return Jet(f, df * self.rate, df * self.acceleration + ddf * self.rate * self.rate)

    def sin(self) -> Jet:
        s, c = fn.sin(self.value), fn.cos(self.value)
        return self.chain(s, c, -s)

    def cos(self) -> Jet:
        s, c = fn.sin(self.value), fn.cos(self.value)
        return self.chain(c, -s, -c)

    def exp(self) -> Jet:
        e = fn.exp(self.value)
        return self.chain(e, e, e)

    def tanh(self) -> Jet:
        y = fn.tanh(self.value)
        slope = 1.0 - y * y
        return self.chain(y, slope, -2.0 * (y * slope))

    def log(self) -> Jet:
        r = 1.0 / self.value
        return self.chain(fn.log(self.value), r, -r * r)

    def sqrt(self) -> Jet:
        root = fn.sqrt(self.value)
        return self.chain(root, 0.5 / root, -0.25 / (root * self.value))

    @staticmethod
    def atan2(y: Number, x: Number) -> Jet:
        b, a = as_jet(y), as_jet(x)
        r = 1.0 / (a.value * a.value + b.value * b.value)
        turn = a.value * b.rate - b.value * a.rate
        along = a.value * a.rate + b.value * b.rate
        bend = a.value * b.acceleration - b.value * a.acceleration
        return Jet(fn.atan2(b.value, a.value), turn * r, bend * r - 2.0 * turn * along * r * r)

    @staticmethod
    def select_less(a: Number, b: Number, if_less: Number, otherwise: Number) -> Jet:
        x, y = as_jet(if_less), as_jet(otherwise)
        test = as_jet(a).value, as_jet(b).value
        return Jet(*(fn.select_less(*test, p, q) for p, q in zip(x, y, strict=True)))


Jet.__array_ufunc__ = None  # type: ignore[attr-defined]  # let np.float64 * Jet reach __rmul__


def as_jet(value: Number) -> Jet:
    """`value` as a jet; plain numbers do not change in time."""
    return value if isinstance(value, Jet) else Jet(value, 0.0, 0.0)
