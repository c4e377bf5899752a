"""Loops over the entries of arrays of one state: several entries at a time where lanes are free.

Bodies are written for one entry j. They compute with memory (``m[j]``), numbers, and the reals they are given; other
reals from outside are not known inside.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["copy", "each", "in_registers", "lanes_of", "largest_of", "sum_of", "whole_registers"]

#: arrays up to this length, where it is known, are left to the compiler, which unrolls loops over them
_SHORT = 32


def each(b: Builder, size: Int, body: Callable[..., None], *given: Real) -> None:
    """``body(j, *given)`` for all entries j below `size`."""
    whole: Int | int = 0
    with b.side_by_side() as lanes:
        if lanes > 1 and not short(size):
            whole = size - size % lanes
            spread = [x.in_all_lanes() for x in given]
            with b.loop(whole, step=lanes) as j:
                body(j, *spread)
    b.entries(size, whole, lambda j: body(j, *given))


def lanes_of(b: Builder) -> int:
    """How many entries of an array of one state lie side by side."""
    with b.side_by_side() as lanes:
        return lanes


def whole_registers(b: Builder, size: Int, start: bool = False) -> Int:
    """The next multiple of the lanes that are free (`start`: the one before): `size` where there are none."""
    lanes = lanes_of(b)
    if lanes == 1:
        return size
    above = size if start else size + (lanes - 1)
    return above - above % lanes


def in_registers(b: Builder, size: Int, body: Callable[..., None], *given: Real, start: Int | int = 0) -> None:
    """As `each`, for arrays with room for `whole_registers` of entries, all of which are computed: without a rest, so
    that bodies may be long, with loops in them. `start` is a multiple, too."""
    with b.side_by_side() as lanes:
        spread = [x.in_all_lanes() for x in given] if lanes > 1 else given
        with b.loop(size, start, step=lanes) as j:
            body(j, *spread)


def copy(b: Builder, source: Memory, target: Memory, count: Int) -> None:
    """Copy so many entries."""
    def one(j: Int) -> None:
        target[j] = source[j]

    each(b, count, one)


def sum_of(b: Builder, size: Int, term: Callable[..., Real], *given: Real) -> Real:
    """The sum of ``term(j, *given)``."""
    return _gathered(b, size, lambda total, x: total + x, Real.lane_sum, term, given)


def largest_of(b: Builder, size: Int, term: Callable[..., Real], *given: Real) -> Real:
    """The largest ``term(j, *given)``, at least 0; NaN counts as missing."""
    return _gathered(b, size, lambda total, x: total.max(x), Real.lane_max, term, given)


def _gathered(b: Builder, size: Int, add: Callable[[Real, Real], Real], across: Callable[[Real], Real],
              term: Callable[..., Real], given: tuple[Real, ...]) -> Real:
    whole: Int | int = 0
    first = b.constant(0.0)
    with b.side_by_side() as lanes:
        if lanes > 1 and not short(size):
            whole = size - size % lanes
            spread = [x.in_all_lanes() for x in given]
            first = across(b.fold(whole, b.constant(0.0), lambda j, x: add(x, term(j, *spread)), step=lanes))
    return b.fold(size, first, lambda j, x: add(x, term(j, *given)), start=whole)


def short(size: Int) -> bool:
    """Whether a length is known and small."""
    return size.operand.isdigit() and int(size.operand) <= _SHORT
