"""Prints programs as LLVM assembly; the lanes of a real are a SIMD vector.

Arithmetic carries the `contract` flag alone: multiplications and additions may fuse, nothing may be
reordered, and NaN and infinity behave as they must for the checks to work.
"""

from __future__ import annotations

import contextlib
import struct
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence

from bellcrank.target.program import Bool, Builder, Carried, Int, Integers, Memory, Real, Table
from bellcrank.target.sincos import sincos
from bellcrank.target.values import int_operand

__all__ = ["LlvmPrinter", "double"]

_INTEGER = {"+": "add", "-": "sub", "*": "mul", "%": "srem", "|": "or"}
_INTEGER_TEST = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_REAL_TEST = {"==": "oeq", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_BITS = {"+": "add", "<<": "shl", "&": "and", "^": "xor"}
#: instructions per basic block: code generation slows down on larger ones
_BLOCK = 500
#: stores between two barriers: the scheduler compares each store with all others since the last one, in time that
#: grows with their square (a mass matrix of 38 speeds: 16 s without barriers, 1 s with them)
_STORES = 64
_UNLIKELY = '!0 = !{!"branch_weights", i32 1, i32 100000}'


def double(value: float) -> str:
    """A double constant, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class LlvmPrinter(Builder):
    """Writes the instructions of one function; subclasses know its arguments (`target.llvm.signatures`)."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.integer = "i64" if width == 1 else f"<{width} x i64>"
        self.condition = "i1" if width == 1 else f"<{width} x i1>"
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.lines: list[str] = []
        self.block = "entry"
        self.declared: set[str] = set()
        self._arithmetic = {fuse: {op: f" = {op} {'contract ' if fuse else ''}{self.type} " for op in (
            "fadd", "fsub", "fmul")} for fuse in (True, False)}
        self._divide = f" = fdiv contract {self.type} "
        self._constants: dict[float, str] = {}
        self._slots: list[str] = []
        self._pieces: list[str] = []
        self._names = 0
        self._since = 0
        self._stored = 0

    # -- text ---------------------------------------------------------------------------------------
    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def do(self, text: str) -> str:
        """An instruction with a result."""
        self._names += 1
        result = f"%v{self._names}"
        self.lines.append(f"  {result} = {text}")
        self._since += 1
        return result

    def put(self, text: str) -> None:
        """An instruction without a result."""
        self.lines.append("  " + text)

    def label(self) -> str:
        self._names += 1
        return f"b{self._names}"

    def start(self, label: str) -> None:
        """Begin a basic block."""
        self.lines.append(f"{label}:")
        self.block = label
        self._since = 0

    def goto(self, label: str) -> None:
        self.put(f"br label %{label}")

    def declare(self, text: str) -> None:
        self.declared.add(text)

    def pause(self) -> None:
        if self._since > _BLOCK:
            following = self.label()
            self.goto(following)
            self.start(following)

    def module(self, head: str, result: str) -> str:
        """The text of a module with this function."""
        return "\n".join([self._function(head, result), *self._pieces, *sorted(self.declared), _UNLIKELY, ""])

    def _function(self, head: str, result: str) -> str:
        lines = [*self._slots, *self.lines, f"  ret {result}"]
        return "\n".join([f"define {head} nounwind {{", "entry:", *lines, "}", ""])

    @property
    @abstractmethod
    def text(self) -> str:
        """The module, when the program has finished."""

    # -- integers and truth values ------------------------------------------------------------------
    def int_op(self, op: str, a: str, b: str) -> str:
        return self.do(f"{_INTEGER[op]} i64 {a}, {b}")

    def int_compare(self, op: str, a: str, b: str) -> str:
        return self.do(f"icmp {_INTEGER_TEST[op]} i64 {a}, {b}")

    def int_least(self, a: str, b: str) -> str:
        self.declare("declare i64 @llvm.smin.i64(i64, i64)")
        return self.do(f"call i64 @llvm.smin.i64(i64 {a}, i64 {b})")

    def int_real(self, a: str) -> str:
        return self._splat(self.do(f"sitofp i64 {a} to double"))

    def bool_op(self, op: str, a: str, b: str) -> str:
        return self.do(f"{'and' if op == '&' else 'or'} i1 {a}, {b}")

    def bool_not(self, a: str) -> str:
        return self.do(f"xor i1 {a}, true")

    def bool_int(self, a: str) -> str:
        return self.do(f"zext i1 {a} to i64")

    def mask_any(self, a: str) -> str:
        if self.width == 1:
            return a
        return self.do(f"icmp ne i{self.width} {self._mask_bits(a)}, 0")

    def mask_all(self, a: str) -> str:
        if self.width == 1:
            return a
        return self.do(f"icmp eq i{self.width} {self._mask_bits(a)}, -1")

    def _mask_bits(self, a: str) -> str:
        return self.do(f"bitcast {self.condition} {a} to i{self.width}")

    # -- reals --------------------------------------------------------------------------------------
    def number(self, value: float) -> str:
        if value == 0.0 or value != value:  # zeros of either sign are one key
            return self._lanes_of("double", double(value))
        if value not in self._constants:
            self._constants[value] = self._lanes_of("double", double(value))
        return self._constants[value]

    def _lanes_of(self, kind: str, text: str) -> str:
        return text if self.width == 1 else "<" + ", ".join([f"{kind} {text}"] * self.width) + ">"

    def _splat(self, scalar: str) -> str:
        """A scalar double in every lane."""
        if self.width == 1:
            return scalar
        first = self.do(f"insertelement {self.type} poison, double {scalar}, i32 0")
        return self.do(f"shufflevector {self.type} {first}, {self.type} poison, <{self.width} x i32> zeroinitializer")

    def _arith(self, text: str, a: str, b: str) -> str:
        self._names += 1
        self._since += 1
        result = f"%v{self._names}"
        self.lines.append(f"  {result}{text}{a}, {b}")
        return result

    def add(self, a: str, b: str, fuse: bool = True) -> str:
        return self._arith(self._arithmetic[fuse]["fadd"], a, b)

    def sub(self, a: str, b: str, fuse: bool = True) -> str:
        return self._arith(self._arithmetic[fuse]["fsub"], a, b)

    def mul(self, a: str, b: str, fuse: bool = True) -> str:
        return self._arith(self._arithmetic[fuse]["fmul"], a, b)

    def div(self, a: str, b: str) -> str:
        return self._arith(self._divide, a, b)

    def neg(self, a: str) -> str:
        return self.do(f"fneg {self.type} {a}")

    def _intrinsic(self, name: str, *operands: str) -> str:
        self.declare(f"declare {self.type} @llvm.{name}.{self.suffix}({', '.join([self.type] * len(operands))})")
        values = ", ".join(f"{self.type} {v}" for v in operands)
        return self.do(f"call {self.type} @llvm.{name}.{self.suffix}({values})")

    def absolute(self, a: str) -> str:
        return self._intrinsic("fabs", a)

    def sqrt(self, a: str) -> str:
        return self._intrinsic("sqrt", a)

    def largest(self, a: str, b: str) -> str:
        return self._intrinsic("maxnum", a, b)

    def least(self, a: str, b: str) -> str:
        return self._intrinsic("minnum", a, b)

    def library(self, function: str, *operands: str) -> str:
        """Lane by lane."""
        self.declare(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        if self.width == 1:
            return self.do(f"call double @{function}({', '.join(f'double {x}' for x in operands)})")
        result = "poison"
        for lane in range(self.width):
            parts = [self.do(f"extractelement {self.type} {x}, i32 {lane}") for x in operands]
            part = self.do(f"call double @{function}({', '.join(f'double {x}' for x in parts)})")
            result = self.do(f"insertelement {self.type} {result}, double {part}, i32 {lane}")
        return result

    def sincos(self, a: str) -> tuple[str, str]:
        s, c = sincos(self, Real(self, a))
        return s.operand, c.operand

    def real_compare(self, op: str, a: str, b: str) -> str:
        return self.do(f"fcmp {_REAL_TEST[op]} {self.type} {a}, {b}")

    def is_nan(self, a: str) -> str:
        return self.do(f"fcmp uno {self.type} {a}, {a}")

    def select(self, mask: str, yes: str, no: str) -> str:
        return self.do(f"select {self.condition} {mask}, {self.type} {yes}, {self.type} {no}")

    # -- bits ---------------------------------------------------------------------------------------
    def bits(self, a: str) -> str:
        return self.do(f"bitcast {self.type} {a} to {self.integer}")

    def from_bits(self, a: str) -> str:
        return self.do(f"bitcast {self.integer} {a} to {self.type}")

    def bits_number(self, value: int) -> str:
        return self._lanes_of("i64", str(value))

    def bits_op(self, op: str, a: str, b: str) -> str:
        return self.do(f"{_BITS[op]} {self.integer} {a}, {b}")

    def bits_odd(self, a: str) -> str:
        return self.do(f"trunc {self.integer} {a} to {self.condition}")

    # -- memory: a place is one pointer to lanes side by side, or a pointer for every lane --------------
    def offset(self, pointer: str, index: str) -> str:
        """Address of entry `index` (i64) of an array of doubles."""
        return self.do(f"getelementptr inbounds double, ptr {pointer}, i64 {index}")

    def _packed(self, pointer: str, index: str, times: int = 1) -> str:
        """Address of value ``index * times`` of an array whose values have their lanes side by side."""
        times *= self.width
        if times != 1:
            index = str(int(index) * times) if index.isdigit() else self.do(f"mul i64 {index}, {times}")
        return self.offset(pointer, index)

    def load(self, place: list[str], index: str, aligned: bool) -> str:
        if len(place) == 1:
            align = 8 * self.width if aligned else 8
            return self.do(f"load {self.type}, ptr {self._packed(place[0], index)}, align {align}")
        value = "poison"
        for lane, pointer in enumerate(place):
            part = self.do(f"load double, ptr {self.offset(pointer, index)}, align 8")
            value = self.do(f"insertelement {self.type} {value}, double {part}, i32 {lane}")
        return value

    def store(self, place: list[str], index: str, value: str, aligned: bool) -> None:
        if len(place) == 1:
            align = 8 * self.width if aligned else 8
            self.put(f"store {self.type} {value}, ptr {self._packed(place[0], index)}, align {align}")
        else:
            for lane, pointer in enumerate(place):
                part = self.do(f"extractelement {self.type} {value}, i32 {lane}")
                self.put(f"store double {part}, ptr {self.offset(pointer, index)}, align 8")
        self._stored += len(place)
        if self._stored >= _STORES:
            self.put('call void asm sideeffect "", "~{memory}"()')
            self._stored = 0

    def unpack(self, source: Memory, target: Memory, size: int) -> None:
        """By squares of as many values as there are lanes, the last one overlapping the one before it."""
        with self._counting("0", self.width, "slt", str(size)) as step:
            first = self.int_least(step, str(size - self.width))
            rows = [source[Int(self, first) + k].operand for k in range(self.width)]
            for pointer, row in zip(target.place, self._turned(rows), strict=True):
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

    def move(self, place: list[str], index: str, times: int) -> list[str]:
        assert len(place) == 1
        return [self._packed(place[0], index, times)]

    def table_load(self, place: str, index: str) -> str:
        return self._splat(self.do(f"load double, ptr {self.offset(place, index)}, align 8"))

    def table_move(self, place: str, index: str) -> str:
        return self.offset(place, index)

    def integer_load(self, place: str, index: str) -> str:
        return self.do(f"load i64, ptr {self._integer_at(place, index)}, align 8")

    def integer_store(self, place: str, index: str, value: str) -> None:
        self.put(f"store i64 {value}, ptr {self._integer_at(place, index)}, align 8")

    def _integer_at(self, place: str, index: str) -> str:
        return self.do(f"getelementptr inbounds i64, ptr {place}, i64 {index}")

    def slot(self, kind: str) -> str:
        name = self.name()
        self._slots.append(f"  {name} = alloca {self._kind(kind)}, align 8")
        return name

    def _kind(self, kind: str) -> str:
        return self.type if kind == "real" else "i64"

    def write(self, kind: str, slot: str, value: str) -> None:
        self.put(f"store {self._kind(kind)} {value}, ptr {slot}, align 8")

    def read(self, kind: str, slot: str) -> str:
        return self.do(f"load {self._kind(kind)}, ptr {slot}, align 8")

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

    def table(self, name: str) -> Table:
        return Table(self, self.pointer(name))

    # -- control ------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def loop(self, end: Int | int, start: Int | int = 0, back: bool = False) -> Iterator[Int]:
        first, step, test, bound = int_operand(start), 1, "slt", int_operand(end)
        if back:
            first, step, test, bound = self.do(f"sub i64 {bound}, 1"), -1, "sge", first
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
    def piece(self, *known: Int | Memory | Table | Integers) -> Iterator[None]:
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
