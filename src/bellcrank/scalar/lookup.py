"""Constants that are looked up: where a number lies among others, and one entry of many.

Both are operations of the graph with an array of constants, `Constants`, beside their argument. Their results change by
jumps only, so that derivatives pass by them: a polynomial whose coefficients are entries has the derivatives of the
piece it is on, exactly.
"""

from __future__ import annotations

import hashlib
import math
import struct
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any

import numpy as np

from bellcrank.scalar.graph import ENTRY, FLOOR, LOCATE, Number, Scalar, is_constant
from bellcrank.scalar.jet import Jet

__all__ = ["Constants", "entry", "floor", "locate"]


class Constants:
    """Numbers that never change, as one argument of an operation: equal where all of them are."""

    __slots__ = ("_hash", "key", "values")

    def __init__(self, values: Iterable[float]) -> None:
        self.values = tuple(float(x) for x in values)
        self.key = hashlib.sha256(struct.pack(f"<{len(self.values)}d", *self.values)).hexdigest()
        self._hash = hash(self.key)

    def hex(self) -> str:
        """What stands for it in fingerprints."""
        return f"constants {self.key}"

    def __len__(self) -> int:
        return len(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constants) and other.key == self.key

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return Constants, (self.values,)

    def __repr__(self) -> str:
        return f"<{len(self.values)} constants>"


def locate(x: Number, knots: Constants) -> Number:
    """How many of the knots, which rise, are not above x.

    >>> knots = Constants((0.0, 1.0, 3.0))
    >>> [locate(x, knots) for x in (-1.0, 0.0, 2.0, 3.0)]
    [0.0, 1.0, 2.0, 3.0]
    """
    if type(x) is Scalar:
        return x.graph.node(LOCATE, x, knots)
    if isinstance(x, Jet):
        return locate(x.value, knots)
    if is_constant(x):
        return float(bisect_right(knots.values, x)) if x == x else 0.0
    array = np.asarray(x, dtype=float)
    return np.where(np.isnan(array), 0.0, np.searchsorted(knots.values, array, side="right").astype(float))


def entry(index: Number, values: Constants) -> Number:
    """The entry at a whole number.

    >>> entry(2.0, Constants((5.0, 6.0, 7.0)))
    7.0
    """
    if type(index) is Scalar:
        return index.graph.node(ENTRY, index, values)
    if is_constant(index):
        return values.values[int(index)]
    return np.asarray(values.values)[np.asarray(index).astype(np.int64)]


def floor(x: Number) -> Number:
    """The largest whole number that is not above x.

    >>> floor(-1.5), floor(2.0)
    (-2.0, 2.0)
    """
    if type(x) is Scalar:
        return x.graph.node(FLOOR, x)
    if isinstance(x, Jet):
        return floor(x.value)
    if is_constant(x):
        return float(math.floor(x)) if math.isfinite(x) else float(x)
    return np.floor(x)
