"""Prints programs as LLVM assembly: control flow over the instructions, and the three kinds of compiled functions by
their arguments: kernels of batches, blocks, and drivers."""

from __future__ import annotations

import contextlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence

from bellcrank.target.llvm.instructions import Instructions
from bellcrank.target.llvm.jit import vector_width
from bellcrank.target.program import Bool, Carried, DriverLayout, Int, Integers, Memory, Program, Real, SharedReals
from bellcrank.target.values import int_operand

__all__ = ["FRAME_TAIL", "BatchPrinter", "BlockPrinter", "DriverPrinter", "LlvmPrinter", "print_program"]

#: what follows the inputs in the frame of a block
FRAME_TAIL = ("out", "strides", "work", "numbers", "table", "runs", "n_runs")


class LlvmPrinter(Instructions):
    """Writes the instructions of one function; subclasses know its arguments."""

    cuts = True  # LLVM takes four times as long for a function of twice the length

    # -- arguments ----------------------------------------------------------------------------------
    @abstractmethod
    def pointer(self, name: str) -> str:
        """The address of an array, by name."""

    def memory(self, name: str, aligned: bool = False) -> Memory:
        return Memory(self, [self.pointer(name)], aligned)

    def rows(self, name: str, starts: Sequence[Int]) -> Memory:
        base = self.pointer(name)
        return Memory(self, [self.offset(base, start.operand) for start in starts])

    def integers_at(self, name: str) -> Integers:
        return Integers(self, self.pointer(name))

    def table(self, name: str) -> SharedReals:
        return SharedReals(self, self.pointer(name))

    def unpack(self, source: Memory, target: Memory, size: int) -> None:
        """By squares of as many values as there are lanes, the last one overlapping the one before it."""
        with self._counting("0", self.width, "slt", str(size)) as step:
            first = self.int_least(step, str(size - self.width))
            self._put_square(target, first, [source[Int(self, first) + k].operand for k in range(self.width)])

    def row_entries(self, source: Memory, size: int) -> list[Real]:
        """By squares, as `unpack`."""
        if not self._in_squares(source, size):
            return super().row_entries(source, size)
        values: list[Real] = []
        for start in range(0, size, self.width):
            first = min(start, size - self.width)
            rows = [self.do(f"load {self.type}, ptr {self.offset(pointer, str(first))}, align 8")
                    for pointer in source.place]
            values += [Real(self, x) for x in self._turned(rows)[start - first:]]
        return values

    def put_row_entries(self, target: Memory, values: Sequence[str]) -> None:
        """By squares, as `unpack`."""
        if not self._in_squares(target, len(values)):
            super().put_row_entries(target, values)
            return
        for start in range(0, len(values), self.width):
            first = min(start, len(values) - self.width)
            self._put_square(target, str(first), list(values[first:first + self.width]))

    def _in_squares(self, rows: Memory, size: int) -> bool:
        return len(rows.place) == self.width > 1 and size >= self.width

    def _put_square(self, target: Memory, first: str, values: list[str]) -> None:
        for pointer, row in zip(target.place, self._turned(values), strict=True):
            self.put(f"store {self.type} {row}, ptr {self.offset(pointer, first)}, align 8")

    def _turned(self, rows: list[str]) -> list[str]:
        """The transpose of a square: blocks off the diagonal change places, of half the size, a quarter, and so on."""
        width, half = self.width, self.width // 2
        while half:
            low = ", ".join(f"i32 {j if not j & half else j - half + width}" for j in range(width))
            high = ", ".join(f"i32 {j + half if not j & half else j + width}" for j in range(width))
            for i in (i for i in range(width) if not i & half):
                a, b = rows[i], rows[i + half]
                rows[i], rows[i + half] = (
                    self.do(f"shufflevector {self.type} {a}, {self.type} {b}, <{width} x i32> <{mask}>")
                    for mask in (low, high))
            half //= 2
        return rows

    # -- control ------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def loop(self, end: Int | int, start: Int | int = 0, back: bool = False, step: int = 1) -> Iterator[Int]:
        first, test, bound = int_operand(start), "slt", int_operand(end)
        if back:
            first, step, test, bound = self.do(f"sub i64 {bound}, 1"), -step, "sge", first
        with self._counting(first, step, test, bound) as counter:
            yield Int(self, counter)

    @contextlib.contextmanager
    def _counting(self, first: str, step: int, test: str, bound: str) -> Iterator[str]:
        counter, following = self.name(), self.name()
        head, body, after = self.label(), self.label(), self.label()
        entry = f"[ {first}, %{self.block} ]"
        self.goto(head)
        self.start(head)
        place = len(self.lines)
        self.lines.append("")  # the phi, known when the loop ends
        go = self.do(f"icmp {test} i64 {counter}, {bound}")
        self.put(f"br i1 {go}, label %{body}, label %{after}")
        self.start(body)
        yield counter
        self.put(f"{following} = add i64 {counter}, {step}")
        self.lines[place] = f"  {counter} = phi i64 {entry}, [ {following}, %{self.block} ]"
        self.goto(head)
        self.start(after)

    def fold(self, end: Int | int, first: Carried, body: Callable[[Int, Carried], Carried], start: Int | int = 0,
             step: int = 1) -> Carried:
        kind, carried = self.type if isinstance(first, Real) else "i64", self.name()
        before = self.block
        with self._counting(int_operand(start), step, "slt", int_operand(end)) as counter:
            place = len(self.lines) - 4  # beside the phi of the counter
            new = body(Int(self, counter), type(first)(self, carried))
            last = self.block
        self.lines[place] = (f"  {carried} = phi {kind} [ {first.operand}, %{before} ], [ {new.operand}, %{last} ]\n"
                             + self.lines[place])
        return type(first)(self, carried)

    def chase(self, first: Int, body: Callable[[Int], Int]) -> None:
        before, head, inside, done = self.block, self.label(), self.label(), self.label()
        here = self.name()
        self.goto(head)
        self.start(head)
        place = len(self.lines)
        self.lines.append("")
        go = self.do(f"icmp ne i64 {here}, 0")
        self.put(f"br i1 {go}, label %{inside}, label %{done}")
        self.start(inside)
        following = body(Int(self, here))
        self.lines[place] = f"  {here} = phi i64 [ {first.operand}, %{before} ], [ {following.operand}, %{self.block} ]"
        self.goto(head)
        self.start(done)

    @contextlib.contextmanager
    def forever(self) -> Iterator[Callable[[Bool], None]]:
        head, after = self.label(), self.label()
        self.goto(head)
        self.start(head)

        def leave(condition: Bool) -> None:
            on = self.label()
            self.put(f"br i1 {condition.operand}, label %{after}, label %{on}")
            self.start(on)

        yield leave
        self.goto(head)
        self.start(after)

    @contextlib.contextmanager
    def when(self, condition: Bool) -> Iterator[None]:
        yes, after = self.label(), self.label()
        self.put(f"br i1 {condition.operand}, label %{yes}, label %{after}")
        self.start(yes)
        yield
        self.goto(after)
        self.start(after)

    def switch(self, value: Int, cases: Sequence[tuple[int, Callable[[], None]]]) -> None:
        done, labels = self.label(), [self.label() for _ in cases]
        places = " ".join(f"i64 {i}, label %{label}" for (i, _), label in zip(cases, labels, strict=True))
        self.put(f"switch i64 {value.operand}, label %{done} [ {places} ]")
        for (_, emit), label in zip(cases, labels, strict=True):
            self.start(label)
            emit()
            self.goto(done)
        self.start(done)

    @contextlib.contextmanager
    def side_by_side(self, most: int = 0) -> Iterator[int]:
        lanes = min(vector_width(), most or vector_width()) if self.width == 1 else 1
        if lanes > 1:
            self._set_width(lanes)
        yield lanes
        if lanes > 1:
            self._set_width(1)

    @contextlib.contextmanager
    def piece(self, *known: Int | Memory | SharedReals | Integers) -> Iterator[None]:
        """A function whose arguments have the names of what is known."""
        names: dict[str, str] = {}
        for value in known:
            if isinstance(value, Int):
                names |= {} if value.operand.lstrip("-").isdigit() else {value.operand: "i64"}
            else:
                names |= dict.fromkeys(value.place if isinstance(value, Memory) else [value.place], "ptr")
        arguments = ", ".join(f"{kind} {name}" for name, kind in names.items())
        outside = self.lines, self._slots, self.block
        self.lines, self._slots, self.block = [], [], "entry"
        yield
        head = f"@piece{len(self._pieces)}({arguments})"
        self._pieces.append(self._function(f"internal void {head} noinline", "void"))
        self.lines, self._slots, self.block = outside
        self.put(f"call void {head}")

    def rarely(self, condition: Bool, usual: Sequence[str], make: Callable[[], Sequence[str]]) -> tuple[str, ...]:
        here, rare, done = self.label(), self.label(), self.label()
        self.goto(here)
        self.start(here)
        self.put(f"br i1 {condition.operand}, label %{rare}, label %{done}, !prof !0")
        self.start(rare)
        made = make()
        self.goto(done)
        last = self.block
        self.start(done)
        return tuple(self.do(f"phi {self.type} [ {f}, %{here} ], [ {g}, %{last} ]")
                     for f, g in zip(usual, made, strict=True))

    def call_all(self, name: str, count: Int) -> None:
        """The list holds pairs (address, frame)."""
        calls = self.pointer(name)
        with self.loop(count) as i:
            at = self.do(f"getelementptr inbounds ptr, ptr {calls}, i64 {(i * 2).operand}")
            function = self.do(f"load ptr, ptr {at}, align 8")
            beside = self.do(f"getelementptr inbounds ptr, ptr {at}, i64 1")
            frame = self.do(f"load ptr, ptr {beside}, align 8")
            self.do(f"call i32 {function}(ptr {frame})")

    # -- what a signature lacks -----------------------------------------------------------------------
    def count(self, name: str) -> Int:
        raise KeyError(name)

    def set_count(self, name: str, value: Int | int) -> None:
        raise KeyError(name)

    def real(self, name: str) -> Real:
        raise KeyError(name)

    def set_real(self, name: str, value: Real) -> None:
        raise KeyError(name)


class BatchPrinter(LlvmPrinter):
    """``i32 kernel(inputs..., out, strides, begin, end, work, numbers, table, runs, n_runs)``."""

    def __init__(self, width: int, inputs: Sequence[str]) -> None:
        super().__init__(width)
        self.inputs = list(inputs)

    def pointer(self, name: str) -> str:
        return f"%{name}"

    def count(self, name: str) -> Int:
        return Int(self, f"%{name}")

    def finish(self, result: Int | int = 0) -> None:
        self._result = self.do(f"trunc i64 {int_operand(result)} to i32")

    @property
    def text(self) -> str:
        arguments = ", ".join([f"ptr noalias readonly %{n}" for n in self.inputs] + [
            "ptr noalias %out", "ptr readonly %strides", "i64 %begin", "i64 %end", "ptr %work",
            "ptr noalias readonly %numbers", "ptr noalias readonly %table", "ptr noalias readonly %runs",
            "i64 %n_runs"])
        return self.module(f"i32 @kernel({arguments})", f"i32 {self._result}")


class BlockPrinter(LlvmPrinter):
    """``i32 kernel(frame)``: one register's width of states whose lanes lie side by side, for calls from other
    compiled code. `frame` holds the addresses of the inputs, then `FRAME_TAIL`. Nothing is checked."""

    def __init__(self, width: int, inputs: Sequence[str]) -> None:
        super().__init__(width)
        self._entries = [*inputs, *FRAME_TAIL]

    def _entry(self, name: str, kind: str) -> str:
        at = self.do(f"getelementptr inbounds ptr, ptr %frame, i64 {self._entries.index(name)}")
        return self.do(f"load {kind}, ptr {at}, align 8")

    def pointer(self, name: str) -> str:
        return self._entry(name, "ptr")

    def count(self, name: str) -> Int:
        return Int(self, self._entry(name, "i64"))

    def finish(self, result: Int | int = 0) -> None:
        """Blocks answer nothing."""

    @property
    def text(self) -> str:
        return self.module("i32 @kernel(ptr %frame)", "i32 0")


class DriverPrinter(LlvmPrinter):
    """``i64 kernel(integers, reals, pointers)``, whose arguments are arrays (see `DriverLayout`)."""

    def __init__(self, width: int, layout: DriverLayout, known: Mapping[str, int] | None = None) -> None:
        """`known`: integers of the caller that are constants here, so that loops over them unroll."""
        super().__init__(width)
        self.layout, self.known = layout, dict(known or {})

    def count(self, name: str) -> Int:
        if name in self.known:
            return Int(self, str(self.known[name]))
        return Int(self, self.integer_load("%integers", str(self.layout.integers.index(name))))

    def set_count(self, name: str, value: Int | int) -> None:
        self.integer_store("%integers", str(self.layout.integers.index(name)), int_operand(value))

    def real(self, name: str) -> Real:
        return SharedReals(self, "%reals")[self.layout.reals.index(name)]

    def set_real(self, name: str, value: Real) -> None:
        at = self.offset("%reals", str(self.layout.reals.index(name)))
        self.put(f"store double {value.operand}, ptr {at}, align 8")

    def pointer(self, name: str) -> str:
        at = self.do(f"getelementptr inbounds ptr, ptr %pointers, i64 {self.layout.pointers.index(name)}")
        return self.do(f"load ptr, ptr {at}, align 8")

    def finish(self, result: Int | int = 0) -> None:
        self._result = int_operand(result)

    @property
    def text(self) -> str:
        return self.module("i64 @kernel(ptr %integers, ptr %reals, ptr %pointers)", f"i64 {self._result}")


def print_program(printer: LlvmPrinter, program: Program) -> str:
    """The module of a program."""
    program(printer)
    return printer.text
