"""Values of the neutral language: what programs compute with, by ordinary operators.

A value is a `Builder` and an *operand*: a text that means something to the printer alone. Comparisons of integers are
a `Bool`, those of reals a `Mask`, which has a truth value in every lane; comparisons with NaN do not hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from bellcrank.target.program import Builder

__all__ = ["Bits", "Bool", "Int", "IntVariable", "Integers", "Mask", "Memory", "Real", "RealVariable", "SharedReals"]


class Value:
    """An operand of a builder."""

    __slots__ = ("builder", "operand")

    def __init__(self, builder: Builder, operand: str) -> None:
        self.builder, self.operand = builder, operand


class Bool(Value):
    """A truth value."""

    def __and__(self, other: Bool) -> Bool:
        return Bool(self.builder, self.builder.bool_op("&", self.operand, other.operand))

    def __or__(self, other: Bool) -> Bool:
        return Bool(self.builder, self.builder.bool_op("|", self.operand, other.operand))

    def __invert__(self) -> Bool:
        return Bool(self.builder, self.builder.bool_not(self.operand))

    def integer(self) -> Int:
        """1 if it holds, else 0."""
        return Int(self.builder, self.builder.bool_int(self.operand))


class Int(Value):
    """An integer, the same for all lanes."""

    __hash__ = None  # type: ignore[assignment]

    def _with(self, op: str, other: Int | int) -> Int:
        return Int(self.builder, self.builder.int_op(op, self.operand, int_operand(other)))

    def __add__(self, other: Int | int) -> Int:
        return self._with("+", other)

    def __sub__(self, other: Int | int) -> Int:
        return self._with("-", other)

    def __mul__(self, other: Int | int) -> Int:
        return self._with("*", other)

    def __mod__(self, other: Int | int) -> Int:
        return self._with("%", other)

    def __or__(self, other: Int | int) -> Int:
        return self._with("|", other)

    def _compare(self, op: str, other: Int | int) -> Bool:
        return Bool(self.builder, self.builder.int_compare(op, self.operand, int_operand(other)))

    def __lt__(self, other: Int | int) -> Bool:
        return self._compare("<", other)

    def __le__(self, other: Int | int) -> Bool:
        return self._compare("<=", other)

    def __gt__(self, other: Int | int) -> Bool:
        return self._compare(">", other)

    def __ge__(self, other: Int | int) -> Bool:
        return self._compare(">=", other)

    def __eq__(self, other: Int | int) -> Bool:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: Int | int) -> Bool:  # type: ignore[override]
        return self._compare("!=", other)

    def min(self, other: Int) -> Int:
        """The smaller one."""
        return Int(self.builder, self.builder.int_least(self.operand, other.operand))

    def real(self) -> Real:
        """The same number in every lane."""
        return Real(self.builder, self.builder.int_real(self.operand))


class Mask(Value):
    """A truth value in every lane."""

    def any(self) -> Bool:
        """Whether it holds in some lane."""
        return Bool(self.builder, self.builder.mask_any(self.operand))

    def all(self) -> Bool:
        """Whether it holds in every lane."""
        return Bool(self.builder, self.builder.mask_all(self.operand))

    def pick(self, yes: Real | float, no: Real | float) -> Real:
        """`yes` where it holds, else `no`."""
        b = self.builder
        return Real(b, b.select(self.operand, b.real_operand(yes), b.real_operand(no)))


class Bits(Value):
    """The 64 bits of a double in every lane; sums wrap around."""

    def _with(self, op: str, other: Bits | int) -> Bits:
        b = self.builder
        return Bits(b, b.bits_op(op, self.operand, other.operand if isinstance(other, Bits) else b.bits_number(other)))

    def __add__(self, other: int) -> Bits:
        return self._with("+", other)

    def __lshift__(self, other: int) -> Bits:
        return self._with("<<", other)

    def __and__(self, other: int) -> Bits:
        return self._with("&", other)

    def __xor__(self, other: Bits) -> Bits:
        return self._with("^", other)

    def odd(self) -> Mask:
        """Where the last bit is set."""
        return Mask(self.builder, self.builder.bits_odd(self.operand))

    def real(self) -> Real:
        """The double with these bits."""
        return Real(self.builder, self.builder.from_bits(self.operand), exact=True)


class Real(Value):
    """A real number in every lane.

    Products may be fused with the sums they are added to, unless the left operand is `exact`.
    """

    __slots__ = ("fuse",)
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, builder: Builder, operand: str, exact: bool = False) -> None:
        self.builder, self.operand, self.fuse = builder, operand, not exact

    def exact(self) -> Real:
        """The same number; what is computed from it is rounded after each operation."""
        return Real(self.builder, self.operand, exact=True)

    def fused(self, factor: Real, term: Real) -> Real:
        """self * factor + term, in one rounding where the machine has such an instruction."""
        b = self.builder
        return Real(b, b.add(b.mul(self.operand, factor.operand), term.operand), exact=not self.fuse)

    def __add__(self, other: Real | float) -> Real:
        b = self.builder
        return Real(b, b.add(self.operand, b.real_operand(other), self.fuse), not self.fuse)

    def __sub__(self, other: Real | float) -> Real:
        b = self.builder
        return Real(b, b.sub(self.operand, b.real_operand(other), self.fuse), not self.fuse)

    def __rsub__(self, other: float) -> Real:
        b = self.builder
        return Real(b, b.sub(b.number(other), self.operand, self.fuse), not self.fuse)

    def __mul__(self, other: Real | float) -> Real:
        b = self.builder
        return Real(b, b.mul(self.operand, b.real_operand(other), self.fuse), not self.fuse)

    def __truediv__(self, other: Real | float) -> Real:
        b = self.builder
        return Real(b, b.div(self.operand, b.real_operand(other)), not self.fuse)

    def __rtruediv__(self, other: float) -> Real:
        b = self.builder
        return Real(b, b.div(b.number(other), self.operand), not self.fuse)

    def __neg__(self) -> Real:
        return Real(self.builder, self.builder.neg(self.operand), not self.fuse)

    def _compare(self, op: str, other: Real | float) -> Mask:
        b = self.builder
        return Mask(b, b.real_compare(op, self.operand, b.real_operand(other)))

    def __lt__(self, other: Real | float) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: Real | float) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: Real | float) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: Real | float) -> Mask:
        return self._compare(">=", other)

    def __eq__(self, other: Real | float) -> Mask:  # type: ignore[override]
        return self._compare("==", other)

    def is_nan(self) -> Mask:
        return Mask(self.builder, self.builder.is_nan(self.operand))

    def abs(self) -> Real:
        return Real(self.builder, self.builder.absolute(self.operand), not self.fuse)

    def sqrt(self) -> Real:
        return Real(self.builder, self.builder.sqrt(self.operand), not self.fuse)

    def max(self, other: Real | float) -> Real:
        """The larger one; NaN counts as missing."""
        return Real(self.builder, self.builder.largest(self.operand, self.builder.real_operand(other)))

    def min(self, other: Real | float) -> Real:
        """The smaller one; NaN counts as missing."""
        return Real(self.builder, self.builder.least(self.operand, self.builder.real_operand(other)))

    def power(self, exponent: Real) -> Real:
        """self ** exponent."""
        return Real(self.builder, self.builder.library("pow", self.operand, exponent.operand))

    def in_all_lanes(self) -> Real:
        """A real from outside, where lanes are entries of one state."""
        return Real(self.builder, self.builder.in_all_lanes(self.operand), not self.fuse)

    def lane_sum(self) -> Real:
        """The sum of all lanes, where these are entries of one state."""
        return Real(self.builder, self.builder.lane_sum(self.operand))

    def lane_max(self) -> Real:
        """The largest of all lanes, where these are entries of one state; NaN counts as missing."""
        return Real(self.builder, self.builder.lane_max(self.operand))

    def bits(self) -> Bits:
        """The bits of the double in every lane."""
        return Bits(self.builder, self.builder.bits(self.operand))


class Memory:
    """Reals in memory, a lane for each state: ``m[i]`` is a `Real`.

    `place` means something to the printer alone. `aligned`: begins at a multiple of the size of all lanes.
    """

    __slots__ = ("aligned", "builder", "place")

    def __init__(self, builder: Builder, place: Any, aligned: bool = False) -> None:
        self.builder, self.place, self.aligned = builder, place, aligned

    def __getitem__(self, index: Int | int) -> Real:
        return Real(self.builder, self.builder.load(self.place, int_operand(index), self.aligned))

    def __setitem__(self, index: Int | int, value: Real | float) -> None:
        b = self.builder
        b.store(self.place, int_operand(index), b.real_operand(value), self.aligned)

    def at(self, start: Int | int, times: int = 1) -> Memory:
        """The memory that begins at entry ``start * times``."""
        return Memory(self.builder, self.builder.move(self.place, int_operand(start), times), self.aligned)

    def everywhere(self, index: Int | int) -> Real:
        """One entry in all lanes, where these are entries of one state."""
        return Real(self.builder, self.builder.everywhere(self.place, int_operand(index)))

    def gathered(self, starts: Sequence[Int]) -> Memory:
        """The memory of which each lane begins at an entry of its own."""
        return Memory(self.builder, self.builder.gather(self.place, [s.operand for s in starts]))


class SharedReals:
    """Reals that are the same in every lane: ``table[i]`` is a `Real`."""

    __slots__ = ("builder", "place")

    def __init__(self, builder: Builder, place: Any) -> None:
        self.builder, self.place = builder, place

    def __getitem__(self, index: Int | int) -> Real:
        return Real(self.builder, self.builder.table_load(self.place, int_operand(index)))

    def along(self, index: Int | int) -> Real:
        """An entry; where lanes are entries of one state, one in each of them, from that on."""
        return Real(self.builder, self.builder.table_along(self.place, int_operand(index)))

    def at(self, start: Int) -> SharedReals:
        """The table that begins at entry `start`."""
        return SharedReals(self.builder, self.builder.table_move(self.place, start.operand))


class Integers:
    """Integers in memory: ``m[i]`` is an `Int`."""

    __slots__ = ("builder", "place")

    def __init__(self, builder: Builder, place: Any) -> None:
        self.builder, self.place = builder, place

    def __getitem__(self, index: Int | int) -> Int:
        return Int(self.builder, self.builder.integer_load(self.place, int_operand(index)))

    def __setitem__(self, index: Int | int, value: Int | int) -> None:
        self.builder.integer_store(self.place, int_operand(index), int_operand(value))


class RealVariable:
    """A `Real` that changes."""

    def __init__(self, builder: Builder, value: Real | float) -> None:
        self.builder, self.slot = builder, builder.slot("real")
        self.set(value)

    def set(self, value: Real | float) -> None:
        self.builder.write("real", self.slot, self.builder.real_operand(value))

    @property
    def value(self) -> Real:
        return Real(self.builder, self.builder.read("real", self.slot))


class IntVariable:
    """An `Int` that changes."""

    def __init__(self, builder: Builder, value: Int | int) -> None:
        self.builder, self.slot = builder, builder.slot("integer")
        self.set(value)

    def set(self, value: Int | int) -> None:
        self.builder.write("integer", self.slot, int_operand(value))

    @property
    def value(self) -> Int:
        return Int(self.builder, self.builder.read("integer", self.slot))


def int_operand(value: Int | int) -> str:
    """The operand of an integer."""
    return value.operand if isinstance(value, Int) else str(value)


def reals(builder: Builder, operands: Sequence[str]) -> tuple[Real, ...]:
    """Operands as values."""
    return tuple(Real(builder, x) for x in operands)
