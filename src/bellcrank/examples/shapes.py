"""Shapes and points that the built-in machines share."""

from __future__ import annotations

import math
from collections.abc import Sequence

from bellcrank.errors import ModelError
from bellcrank.mechanism.inertia import Inertia

__all__ = ["Point", "bar", "cross", "direction", "meet", "slender", "truss", "vee"]

Point = tuple[float, float, float]


def bar(mass: float, start: Sequence[float], end: Sequence[float], radius: float) -> Inertia:
    """A solid round bar between two points: unlike `Inertia.rod`, it has inertia about its own axis."""
    length = math.dist(start, end)
    return _round(mass, start, end, mass * radius**2 / 2.0, mass * (3.0 * radius**2 + length**2) / 12.0)


def slender(mass: float, start: Sequence[float], end: Sequence[float], along: float) -> Inertia:
    """A slender rod between two points with the given inertia `along` its axis [kg m^2]."""
    return _round(mass, start, end, along, mass * math.dist(start, end) ** 2 / 12.0)


def _round(mass: float, start: Sequence[float], end: Sequence[float], along: float, across: float) -> Inertia:
    x, y, z = direction(start, end)
    more = along - across
    return Inertia(mass, [0.5 * (a + b) for a, b in zip(start, end, strict=True)],
                   [[across + more * x * x, more * x * y, more * x * z],
                    [more * x * y, across + more * y * y, more * y * z],
                    [more * x * z, more * y * z, across + more * z * z]])


def truss(mass: float, corners: Sequence[Sequence[float]], radius: float) -> Inertia:
    """Bars around a polygon, welded at its corners; the mass is shared by length."""
    sides = [(a, b) for a, b in zip(corners, [*corners[1:], corners[0]], strict=True)]
    around = math.fsum(math.dist(a, b) for a, b in sides)
    first, *others = (bar(mass * math.dist(a, b) / around, a, b, radius) for a, b in sides)
    return first.combined(*others)


def vee(mass: float, a: Sequence[float], b: Sequence[float], c: Sequence[float], radius: float) -> Inertia:
    """Two bars from `a` and from `b` to `c`, such as a wishbone."""
    first, second = math.dist(a, c), math.dist(b, c)
    return bar(mass * first / (first + second), a, c, radius).combined(
        bar(mass * second / (first + second), b, c, radius))


def direction(start: Sequence[float], end: Sequence[float]) -> Point:
    """The unit vector from one point to another."""
    length = math.dist(start, end)
    x, y, z = ((b - a) / length for a, b in zip(start, end, strict=True))
    return x, y, z


def cross(a: Sequence[float], b: Sequence[float]) -> Point:
    """The vector product."""
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]


def meet(p: Sequence[float], from_p: float, q: Sequence[float], from_q: float) -> Point:
    """The point of the x-y plane at given distances from p and q, to the left of the way from p to q."""
    x, y, far = q[0] - p[0], q[1] - p[1], math.dist(p, q)
    along = (far**2 + from_p**2 - from_q**2) / (2.0 * far)
    if abs(along) >= from_p:
        raise ModelError(f"bars of {from_p:g} m and {from_q:g} m do not meet over a distance of {far:g} m")
    off = math.sqrt(from_p**2 - along**2)
    return p[0] + (along * x - off * y) / far, p[1] + (along * y + off * x) / far, 0.0
