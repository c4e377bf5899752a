"""What a joint coordinate adds to a coupler: a multiple of it (gears, belts), or a function of it (cams, cranks)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.mechanism.constraint_rows import timed
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet

__all__ = ["Coupled", "Law1", "Part", "Share", "coupled", "share"]

#: a function of one coordinate, written with `bellcrank.math`
Law1 = Callable[[Number], Number]
#: what is coupled of a coordinate: a multiple (a number or a parameter) or a function of it
Part = Number | Law1


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
    if not callable(part):
        return Share(q * part, part, 0.0)
    return Share(*as_jet(part(Jet(q, 1.0, 0.0))))


class Coupled(NamedTuple):
    """A coupler at coordinates q with rates u: what its sum lacks, the rate of that, the slopes by the coordinates,
    what the slopes times the accelerations must be, and the part of the rate that a law of time causes."""

    value: Number
    rate: Number
    slopes: tuple[Number, ...]
    gamma: Number
    partial: Number = 0.0


def coupled(parts: Sequence[Part], q: Sequence[Number], u: Sequence[Number], offset: Number) -> Coupled:
    """A coupler, over any scalar; the offset may be `Timed`.

    >>> coupled((2.0, -1.0), (0.5, 0.25), (1.0, 3.0), 0.5)
    Coupled(value=0.25, rate=-1.0, slopes=(2.0, -1.0), gamma=0.0, partial=0.0)
    """
    law = timed(offset)
    value: Number = -law.value
    rate: Number = 0.0 - law.rate
    gamma: Number = law.acceleration
    slopes = []
    for part, x, v in zip(parts, q, u, strict=True):
        mine = share(part, x)
        value, rate = value + mine.value, rate + v * mine.slope
        gamma = gamma - mine.curvature * (v * v)
        slopes.append(mine.slope)
    return Coupled(value, rate, tuple(slopes), gamma, 0.0 - law.rate)
