"""LLVM assembly of expression graphs.

Arithmetic carries the `contract` flag alone: multiplications and additions may fuse, nothing may be
reordered, and NaN and infinity behave as they must for the checks to work.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any

from bellcrank.scalar.graph import ADD, ATAN2, COS, DIV, EXP, LEAF, LESS, LOG, MUL, NEG, SIN, SQRT, SUB, TANH, Scalar

__all__ = ["Emitter", "double"]

_BINARY = {ADD: "fadd", SUB: "fsub", MUL: "fmul", DIV: "fdiv"}
#: instructions per basic block: code generation slows down on larger ones
_BLOCK = 500
#: stores between two barriers: the scheduler compares each store with all others since the last one, in time that
#: grows with their square (a mass matrix of 38 speeds: 16 s without barriers, 1 s with them)
_STORES = 64


def double(value: float) -> str:
    """A double constant, exactly."""
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Emitter:
    """Writes the instructions of one function; `width` lanes per value."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.type = "double" if width == 1 else f"<{width} x double>"
        self.integer = "i64" if width == 1 else f"<{width} x i64>"
        self.suffix = "f64" if width == 1 else f"v{width}f64"
        self.lines: list[str] = []
        self.block = "entry"
        self.declared: set[str] = set()
        self._names = 0
        self._since = 0
        self._stored = 0

    # -- small pieces ---------------------------------------------------------------------------
    def name(self) -> str:
        self._names += 1
        return f"%v{self._names}"

    def do(self, text: str) -> str:
        """An instruction with a result."""
        result = self.name()
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

    def const(self, value: float) -> str:
        text = double(value)
        if self.width == 1:
            return text
        return "<" + ", ".join([f"double {text}"] * self.width) + ">"

    def integers(self, value: int) -> str:
        return str(value) if self.width == 1 else "<" + ", ".join([f"i64 {value}"] * self.width) + ">"

    def splat(self, scalar: str) -> str:
        """A scalar double in every lane."""
        if self.width == 1:
            return scalar
        first = self.do(f"insertelement {self.type} poison, double {scalar}, i32 0")
        return self.do(f"shufflevector {self.type} {first}, {self.type} poison, <{self.width} x i32> zeroinitializer")

    def declare(self, text: str) -> None:
        self.declared.add(text)

    def arith(self, op: str, a: str, b: str, flags: str = "contract ") -> str:
        return self.do(f"{op} {flags}{self.type} {a}, {b}")

    # -- memory ---------------------------------------------------------------------------------
    def offset(self, pointer: str, index: str | int) -> str:
        """Address of entry `index` (i64) of an array of doubles."""
        return self.do(f"getelementptr inbounds double, ptr {pointer}, i64 {index}")

    def load_integer(self, pointer: str, index: str | int) -> str:
        """Entry `index` of an array of 64-bit integers."""
        at = self.do(f"getelementptr inbounds i64, ptr {pointer}, i64 {index}")
        return self.do(f"load i64, ptr {at}, align 8")

    def packed(self, pointer: str, index: int | str) -> str:
        """Address of value `index` of an array whose values have their lanes side by side."""
        if self.width == 1:
            return self.offset(pointer, index)
        at = index * self.width if isinstance(index, int) else self.do(f"mul i64 {index}, {self.width}")
        return self.offset(pointer, at)

    def load_lanes(self, pointers: list[str], index: int | str) -> str:
        """Entry `index` behind each lane's pointer, as one value; a single pointer is to packed lanes."""
        if len(pointers) == 1:
            return self.do(f"load {self.type}, ptr {self.packed(pointers[0], index)}, align 8")
        value = "poison"
        for lane, pointer in enumerate(pointers):
            part = self.do(f"load double, ptr {self.offset(pointer, index)}, align 8")
            value = self.do(f"insertelement {self.type} {value}, double {part}, i32 {lane}")
        return value

    def store_lanes(self, pointers: list[str], index: int | str, value: str) -> None:
        if len(pointers) == 1:
            self.put(f"store {self.type} {value}, ptr {self.packed(pointers[0], index)}, align 8")
        else:
            for lane, pointer in enumerate(pointers):
                part = self.do(f"extractelement {self.type} {value}, i32 {lane}")
                self.put(f"store double {part}, ptr {self.offset(pointer, index)}, align 8")
        self._stored += len(pointers)
        if self._stored >= _STORES:
            self.put('call void asm sideeffect "", "~{memory}"()')
            self._stored = 0

    # -- graphs ---------------------------------------------------------------------------------
    def nodes(self, nodes: Iterable[Scalar], value: dict[Any, str], leaf: Callable[[Any], str]) -> None:
        """Compute `nodes` (arguments first) that are not in `value` yet; leaves come from `leaf`."""
        pairs: dict[Any, tuple[str, str]] = {}
        for node in nodes:
            if node in value:
                continue
            if node.op is LEAF:
                value[node] = leaf(node.args[0])
                continue
            value[node] = self._node(node, value, pairs)
            if self._since > _BLOCK:
                following = self.label()
                self.goto(following)
                self.start(following)

    def operand(self, argument: Any, value: dict[Any, str]) -> str:
        return value[argument] if type(argument) is Scalar else self.const(argument)

    def _node(self, node: Scalar, value: dict[Any, str], pairs: dict[Any, tuple[str, str]]) -> str:
        args = [self.operand(a, value) for a in node.args]
        if node.op in _BINARY:
            return self.arith(_BINARY[node.op], *args)
        if node.op is NEG:
            return self.do(f"fneg {self.type} {args[0]}")
        if node.op in (SIN, COS):
            from bellcrank.target.llvm.sincos import emit_sincos

            angle = node.args[0]
            if angle not in pairs:
                pairs[angle] = emit_sincos(self, args[0])
            return pairs[angle][node.op is COS]
        if node.op is SQRT:
            self.declare(f"declare {self.type} @llvm.sqrt.{self.suffix}({self.type})")
            return self.do(f"call {self.type} @llvm.sqrt.{self.suffix}({self.type} {args[0]})")
        if node.op is LESS:
            test = self.do(f"fcmp olt {self.type} {args[0]}, {args[1]}")
            condition = "i1" if self.width == 1 else f"<{self.width} x i1>"
            return self.do(f"select {condition} {test}, {self.type} {args[2]}, {self.type} {args[3]}")
        if node.op in (EXP, LOG, TANH):
            return self.by_lane(node.op, args[0])
        if node.op is ATAN2:
            return self.by_lane(node.op, *args)
        raise AssertionError(node.op)

    def by_lane(self, function: str, *operands: str) -> str:
        """A function of the C library, lane by lane."""
        self.declare(f"declare double @{function}({', '.join(['double'] * len(operands))})")
        if self.width == 1:
            return self.do(f"call double @{function}({', '.join(f'double {x}' for x in operands)})")
        result = "poison"
        for lane in range(self.width):
            parts = [self.do(f"extractelement {self.type} {x}, i32 {lane}") for x in operands]
            part = self.do(f"call double @{function}({', '.join(f'double {x}' for x in parts)})")
            result = self.do(f"insertelement {self.type} {result}, double {part}, i32 {lane}")
        return result
