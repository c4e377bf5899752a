"""The largest of numbers over any scalar, as shares of their sizes (`loops.constraint_sizes`)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bellcrank.scalar.functions import maximum
from bellcrank.scalar.graph import Number

__all__ = ["largest", "largest_share"]


def largest(values: Iterable[Number]) -> Number:
    """The largest size."""
    out: Number = 0.0
    for x in values:
        out = maximum(out, abs(x))
    return out


def largest_share(values: Sequence[Number], sizes: Sequence[float]) -> Number:
    """The largest size, each by its own: one factor for all of the same.

    >>> largest_share([1.0, -4.0, 3.0], [1.0, 4.0, 4.0])
    1.0
    """
    out: Number = 0.0
    for size in dict.fromkeys(sizes):
        some = largest(x for x, own in zip(values, sizes, strict=True) if own == size)
        out = maximum(out, some if size == 1.0 else some * (1.0 / size))
    return out
