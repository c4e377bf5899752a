"""Polynomials of a joint coordinate: as functions for couplers, and back from functions to coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from bellcrank.mechanism.motion import Part
from bellcrank.scalar.graph import Number

__all__ = ["Polynomial", "coefficients_of"]


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
