"""A small language for compiled loops: integers, lanes of doubles, memory and control flow, written as Python text.

A driver (see `drivers`) is a Python function that receives a `Flow`, uses its values with ordinary operators, and
opens loops with ``with``. What it emits is one LLVM function ``i64 kernel(integers, reals, pointers)`` whose arguments
are arrays; the names of their entries are declared once and used on both sides (see `Layout`).
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from bellcrank.target.llvm.emit import Emitter

__all__ = ["Flow", "Int", "Integers", "Layout", "Mask", "Memory", "Real", "Table"]


class Layout(NamedTuple):
    """Names of the entries of a driver's three arguments."""

    integers: tuple[str, ...]
    reals: tuple[str, ...]
    pointers: tuple[str, ...]


class Int:
    """A 64-bit integer."""

    def __init__(self, flow: Flow, name: str) -> None:
        self.flow, self.name = flow, name

    def _with(self, op: str, other: Int | int) -> Int:
        return Int(self.flow, self.flow.do(f"{op} i64 {self.name}, {_name(other)}"))

    def __add__(self, other: Int | int) -> Int:
        return self._with("add", other)

    def __sub__(self, other: Int | int) -> Int:
        return self._with("sub", other)

    def __mul__(self, other: Int | int) -> Int:
        return self._with("mul", other)

    def __mod__(self, other: Int | int) -> Int:
        return self._with("srem", other)

    def compare(self, how: str, other: Int | int) -> str:
        """An i1: `how` is eq, ne, slt, sle, sgt or sge."""
        return self.flow.do(f"icmp {how} i64 {self.name}, {_name(other)}")

    def real(self) -> Real:
        """The same number as a double in every lane."""
        return Real(self.flow, self.flow.splat(self.flow.do(f"sitofp i64 {self.name} to double")))


class Mask:
    """A truth value in every lane."""

    def __init__(self, flow: Flow, name: str) -> None:
        self.flow, self.name = flow, name

    def any(self) -> str:
        """An i1: whether it holds in some lane."""
        if self.flow.width == 1:
            return self.name
        bits = self.flow.do(f"bitcast <{self.flow.width} x i1> {self.name} to i{self.flow.width}")
        return self.flow.do(f"icmp ne i{self.flow.width} {bits}, 0")

    def all(self) -> str:
        """An i1: whether it holds in every lane."""
        if self.flow.width == 1:
            return self.name
        bits = self.flow.do(f"bitcast <{self.flow.width} x i1> {self.name} to i{self.flow.width}")
        return self.flow.do(f"icmp eq i{self.flow.width} {bits}, -1")

    def pick(self, yes: Real | float, no: Real | float) -> Real:
        """`yes` where it holds, else `no`."""
        flow = self.flow
        kind = "i1" if flow.width == 1 else f"<{flow.width} x i1>"
        a, b = flow.lanes(yes), flow.lanes(no)
        return Real(flow, flow.do(f"select {kind} {self.name}, {flow.type} {a}, {flow.type} {b}"))


class Real:
    """A double in every lane."""

    def __init__(self, flow: Flow, name: str) -> None:
        self.flow, self.name = flow, name

    def _with(self, op: str, other: Real | float, swapped: bool = False) -> Real:
        a, b = self.name, self.flow.lanes(other)
        return Real(self.flow, self.flow.arith(op, *((b, a) if swapped else (a, b))))

    def __add__(self, other: Real | float) -> Real:
        return self._with("fadd", other)

    def __sub__(self, other: Real | float) -> Real:
        return self._with("fsub", other)

    def __mul__(self, other: Real | float) -> Real:
        return self._with("fmul", other)

    def __truediv__(self, other: Real | float) -> Real:
        return self._with("fdiv", other)

    def __rtruediv__(self, other: float) -> Real:
        return self._with("fdiv", other, swapped=True)

    def __neg__(self) -> Real:
        return Real(self.flow, self.flow.do(f"fneg {self.flow.type} {self.name}"))

    def compare(self, how: str, other: Real | float) -> Mask:
        """Lane by lane; `how` is olt, ogt, oeq, uno ... (ordered comparisons are false for NaN)."""
        return Mask(self.flow, self.flow.do(f"fcmp {how} {self.flow.type} {self.name}, {self.flow.lanes(other)}"))

    def _intrinsic(self, name: str, *others: Real) -> Real:
        flow = self.flow
        kinds = ", ".join([flow.type] * (1 + len(others)))
        flow.declare(f"declare {flow.type} @llvm.{name}.{flow.suffix}({kinds})")
        values = ", ".join(f"{flow.type} {v.name}" for v in (self, *others))
        return Real(flow, flow.do(f"call {flow.type} @llvm.{name}.{flow.suffix}({values})"))

    def abs(self) -> Real:
        return self._intrinsic("fabs")

    def sqrt(self) -> Real:
        return self._intrinsic("sqrt")

    def max(self, other: Real) -> Real:
        """The larger one; NaN counts as missing."""
        return self._intrinsic("maxnum", other)

    def min(self, other: Real) -> Real:
        """The smaller one; NaN counts as missing."""
        return self._intrinsic("minnum", other)

    def power(self, exponent: Real) -> Real:
        """self ** exponent by the C library."""
        return Real(self.flow, self.flow.by_lane("pow", self.name, exponent.name))


class Memory:
    """Doubles with their lanes side by side: ``m[i]`` is a `Real`."""

    def __init__(self, flow: Flow, pointer: str) -> None:
        self.flow, self.pointer = flow, pointer

    def __getitem__(self, index: Int | int) -> Real:
        return Real(self.flow, self.flow.load_lanes([self.pointer], _index(index)))

    def __setitem__(self, index: Int | int, value: Real | float) -> None:
        self.flow.store_lanes([self.pointer], _index(index), self.flow.lanes(value))

    def at(self, start: Int | int) -> Memory:
        """The memory that begins at entry `start`."""
        return Memory(self.flow, self.flow.packed(self.pointer, _index(start)))


class Table:
    """Doubles that are the same in every lane: ``table[i]`` is a `Real`."""

    def __init__(self, flow: Flow, pointer: str) -> None:
        self.flow, self.pointer = flow, pointer

    def __getitem__(self, index: Int | int) -> Real:
        flow = self.flow
        return Real(flow, flow.splat(flow.do(f"load double, ptr {flow.offset(self.pointer, _index(index))}, align 8")))


class Integers:
    """64-bit integers in memory: ``m[i]`` is an `Int`."""

    def __init__(self, flow: Flow, pointer: str) -> None:
        self.flow, self.pointer = flow, pointer

    def __getitem__(self, index: Int | int) -> Int:
        return Int(self.flow, self.flow.load_integer(self.pointer, _index(index)))

    def __setitem__(self, index: Int | int, value: Int | int) -> None:
        at = self.flow.do(f"getelementptr inbounds i64, ptr {self.pointer}, i64 {_index(index)}")
        self.flow.put(f"store i64 {_name(value)}, ptr {at}, align 8")


class RealVariable:
    """A `Real` that changes."""

    def __init__(self, flow: Flow, value: Real | float) -> None:
        self.flow, self.pointer = flow, flow.slot(flow.type)
        self.set(value)

    def set(self, value: Real | float) -> None:
        self.flow.put(f"store {self.flow.type} {self.flow.lanes(value)}, ptr {self.pointer}, align 8")

    @property
    def value(self) -> Real:
        return Real(self.flow, self.flow.do(f"load {self.flow.type}, ptr {self.pointer}, align 8"))


class IntVariable:
    """An `Int` that changes."""

    def __init__(self, flow: Flow, value: Int | int) -> None:
        self.flow, self.pointer = flow, flow.slot("i64")
        self.set(value)

    def set(self, value: Int | int) -> None:
        self.flow.put(f"store i64 {_name(value)}, ptr {self.pointer}, align 8")

    @property
    def value(self) -> Int:
        return Int(self.flow, self.flow.do(f"load i64, ptr {self.pointer}, align 8"))


class Flow(Emitter):
    """Emits one driver."""

    def __init__(self, width: int, layout: Layout, known: Mapping[str, int] | None = None) -> None:
        """`known`: integers of the caller that are constants here, so that loops over them unroll."""
        super().__init__(width)
        self.layout, self.known = layout, dict(known or {})
        self._slots: list[str] = []

    # -- arguments ------------------------------------------------------------------------------
    def count(self, name: str) -> Int:
        if name in self.known:
            return Int(self, str(self.known[name]))
        return Int(self, self.load_integer("%integers", self.layout.integers.index(name)))

    def set_count(self, name: str, value: Int | int) -> None:
        at = self.do(f"getelementptr inbounds i64, ptr %integers, i64 {self.layout.integers.index(name)}")
        self.put(f"store i64 {_name(value)}, ptr {at}, align 8")

    def real(self, name: str) -> Real:
        """A number given by the caller, in every lane."""
        return Table(self, "%reals")[self.layout.reals.index(name)]

    def set_real(self, name: str, value: Real) -> None:
        """Give a number back (width 1)."""
        at = self.offset("%reals", self.layout.reals.index(name))
        self.put(f"store double {value.name}, ptr {at}, align 8")

    def _pointer(self, name: str) -> str:
        at = self.do(f"getelementptr inbounds ptr, ptr %pointers, i64 {self.layout.pointers.index(name)}")
        return self.do(f"load ptr, ptr {at}, align 8")

    def memory(self, name: str) -> Memory:
        return Memory(self, self._pointer(name))

    def integers_at(self, name: str) -> Integers:
        return Integers(self, self._pointer(name))

    def table(self, name: str) -> Table:
        return Table(self, self._pointer(name))

    # -- values ---------------------------------------------------------------------------------
    def lanes(self, value: Real | float) -> str:
        return value.name if isinstance(value, Real) else self.const(float(value))

    def slot(self, kind: str) -> str:
        """Stack memory for a variable."""
        name = self.name()
        self._slots.append(f"  {name} = alloca {kind}, align 8")
        return name

    def variable(self, value: Real | float) -> RealVariable:
        return RealVariable(self, value)

    def counter(self, value: Int | int) -> IntVariable:
        return IntVariable(self, value)

    def both(self, a: str, b: str) -> str:
        return self.do(f"and i1 {a}, {b}")

    def either(self, a: str, b: str) -> str:
        return self.do(f"or i1 {a}, {b}")

    def no(self, a: str) -> str:
        return self.do(f"xor i1 {a}, true")

    # -- control --------------------------------------------------------------------------------
    @contextlib.contextmanager
    def loop(self, end: Int | int, start: Int | int = 0) -> Iterator[Int]:
        """For i from `start` to before `end`."""
        counter, following = self.name(), self.name()
        head, body, after = self.label(), self.label(), self.label()
        entry = f"[ {_name(start)}, %{self.block} ]"
        self.goto(head)
        self.start(head)
        place = len(self.lines)
        self.lines.append("")  # the phi, known when the loop ends
        go = self.do(f"icmp slt i64 {counter}, {_name(end)}")
        self.put(f"br i1 {go}, label %{body}, label %{after}")
        self.start(body)
        yield Int(self, counter)
        self.put(f"{following} = add i64 {counter}, 1")
        self.lines[place] = f"  {counter} = phi i64 {entry}, [ {following}, %{self.block} ]"
        self.goto(head)
        self.start(after)

    @contextlib.contextmanager
    def forever(self) -> Iterator[Callable[[str], None]]:
        """Repeat until the function it yields is called with a condition that holds."""
        head, after = self.label(), self.label()
        self.goto(head)
        self.start(head)

        def leave(condition: str) -> None:
            on = self.label()
            self.put(f"br i1 {condition}, label %{after}, label %{on}")
            self.start(on)

        yield leave
        self.goto(head)
        self.start(after)

    @contextlib.contextmanager
    def when(self, condition: str) -> Iterator[None]:
        yes, after = self.label(), self.label()
        self.put(f"br i1 {condition}, label %{yes}, label %{after}")
        self.start(yes)
        yield
        self.goto(after)
        self.start(after)

    def call_all(self, name: str, count: Int) -> None:
        """Call every function of a list of (address, frame)."""
        calls = self._pointer(name)
        with self.loop(count) as i:
            at = self.do(f"getelementptr inbounds ptr, ptr {calls}, i64 {(i * 2).name}")
            function = self.do(f"load ptr, ptr {at}, align 8")
            beside = self.do(f"getelementptr inbounds ptr, ptr {at}, i64 1")
            frame = self.do(f"load ptr, ptr {beside}, align 8")
            self.do(f"call i32 {function}(ptr {frame})")

    def finish(self, result: Int | int = 0) -> str:
        """End the function; returns the module."""
        self.put(f"ret i64 {_name(result)}")
        return "\n".join(["define i64 @kernel(ptr %integers, ptr %reals, ptr %pointers) nounwind {", "entry:",
                          *self._slots, *self.lines, "}", "", *sorted(self.declared), ""])


def _name(value: Int | int) -> str:
    return value.name if isinstance(value, Int) else str(value)


def _index(value: Int | int) -> str | int:
    return value.name if isinstance(value, Int) else value


