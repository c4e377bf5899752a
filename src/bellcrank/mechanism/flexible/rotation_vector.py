"""Rotations by small vectors, over any scalar: smooth at zero, where sines divided by angles are not.

A rotation vector theta, s = theta . theta, turns by R = 1 + A theta~ + B theta~^2; its rate gives the angular velocity
w = theta' + B theta x theta' + C theta x (theta x theta') in the axes before the turn, and with -B in those after it.
A, B and C are sin(x)/x, (1 - cos x)/x^2 and (x - sin x)/x^3 of x = sqrt(s): power series of s that are exact to
rounding up to half a turn, far beyond what linear elasticity can describe.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.spatial import AboutX, AboutZ, General, Identity, Matrix3, Rotation, Vector

__all__ = ["rotation", "turning", "turning_drift"]

_TERMS = 14


def _series(first: int) -> tuple[float, ...]:
    """Coefficients (-1)^n / (2 n + first)!."""
    return tuple((-1.0) ** n / math.factorial(2 * n + first) for n in range(_TERMS))


_A, _B, _C = _series(1), _series(2), _series(3)


def _slope(series: Sequence[float]) -> tuple[float, ...]:
    return tuple(n * c for n, c in enumerate(series))[1:]


def _sum(series: Sequence[float], s: Number) -> Number:
    total: Number = series[-1]
    for c in reversed(series[:-1]):
        total = total * s + c
    return total


def rotation(theta: Vector) -> Rotation:
    """The rotation by a vector; about one axis it is that of an angle."""
    still = [is_zero(x) for x in theta]
    if all(still):
        return Identity()
    if still[1] and still[2]:
        return AboutX(cos(theta.x), sin(theta.x))
    if still[0] and still[1]:
        return AboutZ(cos(theta.z), sin(theta.z))
    s = theta.dot(theta)
    a, b = _sum(_A, s), _sum(_B, s)
    x, y, z = theta
    xy, xz, yz = b * x * y, b * x * z, b * y * z
    return General(Matrix3(Vector(1.0 - b * (y * y + z * z), xy - a * z, xz + a * y),
                           Vector(xy + a * z, 1.0 - b * (x * x + z * z), yz - a * x),
                           Vector(xz - a * y, yz + a * x, 1.0 - b * (x * x + y * y))))


def turning(theta: Vector, rate: Vector) -> Vector:
    """The angular velocity of a rotation vector's rate, in the axes after the turn."""
    s = theta.dot(theta)
    across = theta.cross(rate)
    found: Vector = rate - across * _sum(_B, s) + theta.cross(across) * _sum(_C, s)
    return found


def turning_drift(theta: Vector, rate: Vector) -> Vector:
    """The angular acceleration at a constant rate of the vector, as seen from before the turn, in the axes after it."""
    s, half = theta.dot(theta), theta.dot(rate)
    change = half + half  # ds/dt
    across = theta.cross(rate)
    twice = theta.cross(across)
    before = across * (_sum(_slope(_B), s) * change) + twice * (_sum(_slope(_C), s) * change) \
        + rate.cross(across) * _sum(_C, s)
    after: Vector = rotation(theta).inverse(before)
    return after
