"""The neutral language of compiled programs, as the interface of a builder.

A program is a Python function that receives a `Builder`, as a formulation receives scalars: it computes with the
values of `target.values` by ordinary operators and opens loops and conditions with ``with``. What the builder makes of
it is the printer's affair: each target has one. No program names a target.

    with b.loop(n) as i:
        with b.when((i % 2) == 0):
            out[i] = x[i] * 2.0

There are integers (the same for all lanes), reals (one number in each of `width` lanes: as many states advance side by
side), masks (a truth value in every lane) and booleans; memory, tables and arrays of integers, which are arguments with
names; variables; loops; calls through lists of functions; elementary functions.

The methods on *operands* (texts that only the printer understands) are what a printer has to provide; programs use the
values instead, but for the walk over expression graphs (`target.graph_code`), where speed counts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple, TypeVar

from bellcrank.target.values import (
    Bits,
    Bool,
    Int,
    Integers,
    IntVariable,
    Mask,
    Memory,
    Real,
    RealVariable,
    SharedReals,
    reals,
)

__all__ = [
    "Bits",
    "Bool",
    "Builder",
    "DriverLayout",
    "Int",
    "IntVariable",
    "Integers",
    "Mask",
    "Memory",
    "Program",
    "Real",
    "RealVariable",
    "SharedReals",
]

Carried = TypeVar("Carried", Int, Real)


class DriverLayout(NamedTuple):
    """Names of the arguments of a driver: a program that runs on arrays of integers, reals and pointers."""

    integers: tuple[str, ...]
    reals: tuple[str, ...]
    pointers: tuple[str, ...]
    returned: tuple[str, ...] = ()  #: integers and reals that the driver gives back
    tables: tuple[str, ...] = ()  #: pointers to what is the same for all states


class Operands(ABC):
    """What a printer provides: operations on operands, memory, variables."""

    #: states side by side
    width: int
    #: whether code in pieces (`Builder.piece`) is better than in one
    cuts: bool = False
    #: whether calls are copies of what they call: few places should call
    inlines_calls = False
    #: whether reals have so few digits that sums over many steps keep what rounding loses
    compensates = False

    # -- integers and truth values ------------------------------------------------------------------
    @abstractmethod
    def int_op(self, op: str, a: str, b: str) -> str:
        """`op` is ``+ - * % |``."""

    @abstractmethod
    def int_compare(self, op: str, a: str, b: str) -> str:
        """A boolean; `op` is ``== != < <= > >=``."""

    @abstractmethod
    def int_least(self, a: str, b: str) -> str:
        """The smaller one."""

    @abstractmethod
    def int_real(self, a: str) -> str:
        """The number as a real in every lane."""

    @abstractmethod
    def bool_op(self, op: str, a: str, b: str) -> str:
        """`op` is ``&`` or ``|``."""

    @abstractmethod
    def bool_not(self, a: str) -> str: ...

    @abstractmethod
    def bool_int(self, a: str) -> str: ...

    @abstractmethod
    def mask_any(self, a: str) -> str: ...

    @abstractmethod
    def mask_all(self, a: str) -> str: ...

    # -- reals --------------------------------------------------------------------------------------
    @abstractmethod
    def number(self, value: float) -> str:
        """A constant in every lane."""

    @abstractmethod
    def add(self, a: str, b: str, fuse: bool = True) -> str: ...

    @abstractmethod
    def sub(self, a: str, b: str, fuse: bool = True) -> str: ...

    @abstractmethod
    def mul(self, a: str, b: str, fuse: bool = True) -> str: ...

    @abstractmethod
    def div(self, a: str, b: str) -> str: ...

    @abstractmethod
    def neg(self, a: str) -> str: ...

    @abstractmethod
    def absolute(self, a: str) -> str: ...

    @abstractmethod
    def sqrt(self, a: str) -> str: ...

    @abstractmethod
    def floor(self, a: str) -> str: ...

    @abstractmethod
    def locate(self, a: str, knots: Sequence[float]) -> str:
        """How many of these constants, which rise, are not above it; as a real."""

    @abstractmethod
    def entry(self, index: str, values: Sequence[float]) -> str:
        """One of these constants; the index is a real in range."""

    @abstractmethod
    def largest(self, a: str, b: str) -> str: ...

    @abstractmethod
    def least(self, a: str, b: str) -> str: ...

    @abstractmethod
    def library(self, function: str, *operands: str) -> str:
        """A function of the C library: sin, cos, exp, log, tanh, atan2, pow."""

    @abstractmethod
    def sincos(self, a: str) -> tuple[str, str]:
        """Sine and cosine."""

    @abstractmethod
    def real_compare(self, op: str, a: str, b: str) -> str:
        """A mask; `op` is ``== < <= > >=``, none of which holds for NaN."""

    @abstractmethod
    def is_nan(self, a: str) -> str: ...

    @abstractmethod
    def select(self, mask: str, yes: str, no: str) -> str: ...

    # -- bits ---------------------------------------------------------------------------------------
    @abstractmethod
    def bits(self, a: str) -> str: ...

    @abstractmethod
    def from_bits(self, a: str) -> str: ...

    @abstractmethod
    def bits_number(self, value: int) -> str: ...

    @abstractmethod
    def bits_op(self, op: str, a: str, b: str) -> str:
        """`op` is ``+ << & ^``."""

    @abstractmethod
    def bits_odd(self, a: str) -> str: ...

    # -- memory -------------------------------------------------------------------------------------
    @abstractmethod
    def load(self, place: Any, index: str, aligned: bool) -> str: ...

    @abstractmethod
    def store(self, place: Any, index: str, value: str, aligned: bool) -> None: ...

    @abstractmethod
    def move(self, place: Any, index: str, times: int) -> Any:
        """The place of entry ``index * times``."""

    def gather(self, place: Any, starts: Sequence[str]) -> Any:
        """The place of which each lane begins at an entry of its own (within `Builder.side_by_side`)."""
        return self.move(place, starts[0], 1)

    def everywhere(self, place: Any, index: str) -> str:
        """One entry in every lane (within `Builder.side_by_side`)."""
        return self.load(place, index, False)

    def in_all_lanes(self, a: str) -> str:
        """A real from outside of `Builder.side_by_side`, the same in all lanes."""
        return a

    def lane_sum(self, a: str) -> str:
        """The sum of all lanes, for use outside of `Builder.side_by_side`."""
        return a

    def lane_max(self, a: str) -> str:
        """The largest lane, for use outside of `Builder.side_by_side`; NaN counts as missing."""
        return a

    @abstractmethod
    def table_load(self, place: Any, index: str) -> str: ...

    @abstractmethod
    def table_along(self, place: Any, index: str) -> str: ...

    @abstractmethod
    def table_move(self, place: Any, index: str) -> Any: ...

    @abstractmethod
    def integer_load(self, place: Any, index: str) -> str: ...

    @abstractmethod
    def integer_store(self, place: Any, index: str, value: str) -> None: ...

    @abstractmethod
    def slot(self, kind: str) -> str:
        """A place for a variable; `kind` is "real" or "integer"."""

    @abstractmethod
    def write(self, kind: str, slot: str, value: str) -> None: ...

    @abstractmethod
    def read(self, kind: str, slot: str) -> str: ...


class Builder(Operands):
    """What programs are written with."""

    # -- arguments, by name -------------------------------------------------------------------------
    @abstractmethod
    def count(self, name: str) -> Int:
        """An integer given by the caller."""

    @abstractmethod
    def set_count(self, name: str, value: Int | int) -> None:
        """Give an integer back."""

    @abstractmethod
    def real(self, name: str) -> Real:
        """A number given by the caller, in every lane."""

    @abstractmethod
    def set_real(self, name: str, value: Real) -> None:
        """Give a number back (one lane)."""

    @abstractmethod
    def memory(self, name: str, aligned: bool = False) -> Memory:
        """Reals whose lanes lie side by side."""

    @abstractmethod
    def rows(self, name: str, starts: Sequence[Int]) -> Memory:
        """Reals of which those of each lane begin at an entry of their own."""

    def row_entries(self, source: Memory, size: int) -> list[Real]:
        """The first entries of `rows`."""
        return [source[i] for i in range(size)]

    def put_row_entries(self, target: Memory, values: Sequence[str]) -> None:
        """Set the first entries of `rows`."""
        for i, value in enumerate(values):
            target[i] = Real(self, value)

    @abstractmethod
    def unpack(self, source: Memory, target: Memory, size: int) -> None:
        """Copy so many values, at least `width`, from memory whose lanes lie side by side to `rows`."""

    @abstractmethod
    def integers_at(self, name: str) -> Integers: ...

    @abstractmethod
    def table(self, name: str) -> SharedReals: ...

    # -- values -------------------------------------------------------------------------------------
    def real_operand(self, value: Real | float) -> str:
        return value.operand if isinstance(value, Real) else self.number(float(value))

    def constant(self, value: float) -> Real:
        return Real(self, self.number(value))

    def variable(self, value: Real | float) -> RealVariable:
        return RealVariable(self, value)

    def counter(self, value: Int | int) -> IntVariable:
        return IntVariable(self, value)

    # -- control ------------------------------------------------------------------------------------
    @abstractmethod
    def loop(self, end: Int | int, start: Int | int = 0, back: bool = False, step: int = 1
             ) -> AbstractContextManager[Int]:
        """For i from `start` to before `end`, or `back` from there."""

    @abstractmethod
    def fold(self, end: Int | int, first: Carried, body: Callable[[Int, Carried], Carried], start: Int | int = 0,
             step: int = 1) -> Carried:
        """A loop that carries a value: begins with `first`, ``body(i, value)`` gives the next; returns the last."""

    @abstractmethod
    def chase(self, first: Int, body: Callable[[Int], Int]) -> None:
        """From `first`, ``body(i)`` gives the next i; until that is 0."""

    @abstractmethod
    def forever(self) -> AbstractContextManager[Callable[[Bool], None]]:
        """Repeat until the function it yields is called with a condition that holds."""

    @abstractmethod
    def when(self, condition: Bool) -> AbstractContextManager[None]: ...

    @abstractmethod
    def switch(self, value: Int, cases: Sequence[tuple[int, Callable[[], None]]]) -> None:
        """Do what belongs to the case that `value` is, if any."""

    def entries(self, end: Int | int, start: Int | int, body: Callable[[Int], None]) -> None:
        """``body(j)`` for all j from `start` to below `end`; what it reads, no other entry writes."""
        with self.loop(end, start) as j:
            body(j)

    def side_by_side(self, most: int = 0) -> AbstractContextManager[int]:
        """Inside, the lanes of reals are entries of arrays, or items, of one state: ``m[i]`` holds those from i on.
        Gives the number of lanes, no more than `most` if that is said: 1 where states fill them, or the target has no
        more. Reals pass the border only as `Real.in_all_lanes` on the way in, `Real.lane_sum` and `Real.lane_max` on
        the way out."""
        return nullcontext(1)

    def together(self) -> None:
        """All states that go on come here: a target on which they may take different ways lets them wait for each
        other, so that they go on side by side."""

    def piece(self, *known: Int | Memory | SharedReals | Integers) -> AbstractContextManager[None]:
        """Code that hands no values on and uses those that are `known` alone: a printer may make a function of it."""
        return nullcontext()

    @abstractmethod
    def rarely(self, condition: Bool, usual: Sequence[str], make: Callable[[], Sequence[str]]) -> tuple[str, ...]:
        """The operands of `usual`, or if the condition holds, which it seldom does, those that `make` returns."""

    @abstractmethod
    def call_all(self, name: str, count: Int) -> None:
        """Call every function of a list."""

    @abstractmethod
    def finish(self, result: Int | int = 0) -> None:
        """End the function."""

    def choose_rarely(self, condition: Bool, usual: Sequence[Real], make: Callable[[], Sequence[Real]]
                      ) -> tuple[Real, ...]:
        """As `rarely`, on values."""
        return reals(self, self.rarely(condition, [x.operand for x in usual], lambda: [x.operand for x in make()]))


#: a whole function: it ends with `Builder.finish`
Program = Callable[[Builder], None]
