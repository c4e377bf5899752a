"""The instructions of LLVM assembly: arithmetic, bits, memory; the lanes of a real are a SIMD vector.

Arithmetic carries the `contract` flag alone: multiplications and additions may fuse, nothing may be
reordered, and NaN and infinity behave as they must for the checks to work.
"""

from __future__ import annotations

import hashlib
import struct
from abc import abstractmethod
from collections.abc import Callable, Sequence

from bellcrank.target.program import Builder, Real
from bellcrank.target.sincos import sincos

__all__ = ["Instructions", "double"]

_INTEGER = {"+": "add", "-": "sub", "*": "mul", "%": "srem", "|": "or"}
_INTEGER_TEST = {"==": "eq", "!=": "ne", "<": "slt", "<=": "sle", ">": "sgt", ">=": "sge"}
_REAL_TEST = {"==": "oeq", "<": "olt", "<=": "ole", ">": "ogt", ">=": "oge"}
_BITS = {"+": "add", "<<": "shl", "&": "and", "^": "xor"}
#: stores between two barriers: the scheduler compares each store with all others since the last one, in time that
#: grows with their square (a mass matrix of 38 speeds: 16 s without barriers, 1 s with them)
_STORES = 64
_UNLIKELY = '!0 = !{!"branch_weights", i32 1, i32 100000}'

#: how many of n rising numbers are not above x: bit by bit from the largest power of two that is not above n
_LOCATE = """\
define internal double @locate(double %x, ptr %knots, i64 %n, i64 %most) nounwind readonly {
entry:
  br label %head
head:
  %step = phi i64 [ %most, %entry ], [ %half, %on ]
  %found = phi i64 [ 0, %entry ], [ %next, %on ]
  %more = icmp sgt i64 %step, 0
  br i1 %more, label %body, label %done
body:
  %wanted = add i64 %found, %step
  %inside = icmp sle i64 %wanted, %n
  %last = sub i64 %wanted, 1
  %safe = select i1 %inside, i64 %last, i64 0
  %at = getelementptr inbounds double, ptr %knots, i64 %safe
  %knot = load double, ptr %at, align 8
  %below = fcmp ole double %knot, %x
  %take = and i1 %inside, %below
  br label %on
on:
  %next = select i1 %take, i64 %wanted, i64 %found
  %half = ashr i64 %step, 1
  br label %head
done:
  %result = sitofp i64 %found to double
  ret double %result
}
"""


def double(value: float) -> str:
    """A double constant, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Instructions(Builder):
    """Writes the instructions of one function."""

    def __init__(self, width: int) -> None:
        self._set_width(width)
        self._states = width  # states whose numbers lie side by side in memory
        self.lines: list[str] = []
        self.block = "entry"
        self.declared: set[str] = set()
        self._slots: list[str] = []
        self._pieces: list[str] = []
        self._names = 0
        self._stored = 0

    def _set_width(self, width: int) -> None:
        """The number of lanes that reals have from here on."""
        self.width = width
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.integer = "i64" if width == 1 else f"<{width} x i64>"
        self.condition = "i1" if width == 1 else f"<{width} x i1>"
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self._arithmetic = {fuse: {op: f" = {op} {'contract ' if fuse else ''}{self.type} " for op in (
            "fadd", "fsub", "fmul")} for fuse in (True, False)}
        self._divide = f" = fdiv contract {self.type} "
        self._constants: dict[float, str] = {}

    # -- text ---------------------------------------------------------------------------------------
    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def do(self, text: str) -> str:
        """An instruction with a result."""
        self._names += 1
        result = f"%v{self._names}"
        self.lines.append(f"  {result} = {text}")
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

    def goto(self, label: str) -> None:
        self.put(f"br label %{label}")

    def declare(self, text: str) -> None:
        self.declared.add(text)

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

    def floor(self, a: str) -> str:
        return self._intrinsic("floor", a)

    def _array(self, values: Sequence[float]) -> str:
        """The name of an array of constants."""
        text = f"[{len(values)} x double] [{', '.join(f'double {double(x)}' for x in values)}]"
        name = f"@constants_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
        self.declare(f"{name} = private unnamed_addr constant {text}")
        return name

    def locate(self, a: str, knots: Sequence[float]) -> str:
        """Lane by lane, by a function of the module."""
        array = self._array(knots)
        self.declare(_LOCATE)

        def one(x: str) -> str:
            return self.do(f"call double @locate(double {x}, ptr {array}, i64 {len(knots)}, "
                           f"i64 {1 << max(len(knots).bit_length() - 1, 0)})")

        if self.width == 1:
            return one(a)
        result = "poison"
        for lane in range(self.width):
            part = one(self.do(f"extractelement {self.type} {a}, i32 {lane}"))
            result = self.do(f"insertelement {self.type} {result}, double {part}, i32 {lane}")
        return result

    def entry(self, index: str, values: Sequence[float]) -> str:
        array, whole = self._array(values), self.do(f"fptosi {self.type} {index} to {self.integer}")
        if self.width == 1:
            return self.do(f"load double, ptr {self.offset(array, whole)}, align 8")
        result = "poison"
        for lane in range(self.width):
            at = self.offset(array, self.do(f"extractelement {self.integer} {whole}, i32 {lane}"))
            part = self.do(f"load double, ptr {at}, align 8")
            result = self.do(f"insertelement {self.type} {result}, double {part}, i32 {lane}")
        return result

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
        times *= self._states
        if times != 1:
            index = str(int(index) * times) if index.isdigit() else self.do(f"mul i64 {index}, {times}")
        return self.offset(pointer, index)

    def load(self, place: list[str], index: str, aligned: bool) -> str:
        if len(place) == 1:
            align = 8 * self._states if aligned else 8
            return self.do(f"load {self.type}, ptr {self._packed(place[0], index)}, align {align}")
        value = "poison"
        for lane, pointer in enumerate(place):
            part = self.do(f"load double, ptr {self.offset(pointer, index)}, align 8")
            value = self.do(f"insertelement {self.type} {value}, double {part}, i32 {lane}")
        return value

    def store(self, place: list[str], index: str, value: str, aligned: bool) -> None:
        if len(place) == 1:
            align = 8 * self._states if aligned else 8
            self.put(f"store {self.type} {value}, ptr {self._packed(place[0], index)}, align {align}")
        else:
            for lane, pointer in enumerate(place):
                part = self.do(f"extractelement {self.type} {value}, i32 {lane}")
                self.put(f"store double {part}, ptr {self.offset(pointer, index)}, align 8")
        self._stored += len(place)
        if self._stored >= _STORES:
            self.put('call void asm sideeffect "", "~{memory}"()')
            self._stored = 0

    def move(self, place: list[str], index: str, times: int) -> list[str]:
        assert len(place) == 1
        return [self._packed(place[0], index, times)]

    def gather(self, place: list[str], starts: Sequence[str]) -> list[str]:
        return [self._packed(place[0], start) for start in starts]

    def everywhere(self, place: list[str], index: str) -> str:
        return self.load(place, index, False) if self._states > 1 else self.table_load(place[0], index)

    def in_all_lanes(self, a: str) -> str:
        return self._splat(a)

    def lane_sum(self, a: str) -> str:
        return self._by_halves(a, lambda kind, suffix, x, y: f"fadd {kind} {x}, {y}")

    def lane_max(self, a: str) -> str:
        def larger(kind: str, suffix: str, x: str, y: str) -> str:
            self.declare(f"declare {kind} @llvm.maxnum.{suffix}({kind}, {kind})")
            return f"call {kind} @llvm.maxnum.{suffix}({kind} {x}, {kind} {y})"

        return self._by_halves(a, larger)

    def _by_halves(self, a: str, join: Callable[[str, str, str, str], str]) -> str:
        """All lanes joined to one: the upper half of them with the lower one, and so on."""
        width = self.width
        while width > 2:
            half = width // 2
            low, high = (self.do(f"shufflevector <{width} x double> {a}, <{width} x double> poison, <{half} x i32> <"
                                 + ", ".join(f"i32 {first + i}" for i in range(half)) + ">") for first in (0, half))
            a, width = self.do(join(f"<{half} x double>", f"v{half}f64", low, high)), half
        if width == 1:
            return a
        low, high = (self.do(f"extractelement <2 x double> {a}, i32 {i}") for i in range(2))
        return self.do(join("double", "f64", low, high))

    def table_load(self, place: str, index: str) -> str:
        return self._splat(self.do(f"load double, ptr {self.offset(place, index)}, align 8"))

    def table_along(self, place: str, index: str) -> str:
        return self.load([place], index, False) if self._states == 1 else self.table_load(place, index)

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
