"""What a joint coordinate adds to a coupler: a multiple of it (gears, belts), or a function of it (cams, cranks)."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet

__all__ = ["Law1", "Part", "Share", "share"]

#: a function of one coordinate, written with `bellcrank.math`
Law1 = Callable[[Number], Number]
#: what is coupled of a coordinate: a multiple or a function of it
Part = float | Law1


class Share(NamedTuple):
    """What a coordinate adds to a coupler's sum, and the first and second derivative of that by the coordinate."""

    value: Number
    slope: Number
    curvature: Number


def share(part: Part, q: Number) -> Share:
    """The share of the coordinate q; exact derivatives for floats, arrays and traced scalars alike.

    >>> share(3.0, 0.5), share(lambda q: q**2, 0.5)
    (Share(value=1.5, slope=3.0, curvature=0.0), Share(value=0.25, slope=1.0, curvature=2.0))
    """
    if isinstance(part, float):
        return Share(q * part, part, 0.0)
    return Share(*as_jet(part(Jet(q, 1.0, 0.0))))
