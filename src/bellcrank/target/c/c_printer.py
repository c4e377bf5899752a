"""Prints programs as C99, for one state; every intermediate value is a constant of its own."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence

from bellcrank.target.c.c_text import Arguments, CText, Pointer, known, literal
from bellcrank.target.program import Bool, Builder, Carried, Int, Integers, Memory, Real, SharedReals
from bellcrank.target.values import int_operand

__all__ = ["CPrinter"]


class CPrinter(CText, Builder):
    """The statements of one function; `real` is "double" or "float", `prefix` that of helper functions."""

    width = 1

    def __init__(self, arguments: Arguments, real: str = "double", prefix: str = "") -> None:
        super().__init__(real)
        self.arguments, self.prefix = arguments, prefix
        self.needs: set[str] = set()  #: helper functions that are called
        self._f = "f" if real == "float" else ""

    # -- integers and truth values: those that are known are computed here ----------------------------
    def int_op(self, op: str, a: str, b: str) -> str:
        if known(a) and known(b):
            x, y = int(a), int(b)
            return str({"+": x + y, "-": x - y, "*": x * y, "|": x | y}.get(op, x % y if y else 0))
        if (op in "+-|" and b == "0") or (op == "*" and b == "1"):
            return a
        if (op in "+|" and a == "0") or (op == "*" and a == "1"):
            return b
        return self.do("int32_t", f"{a} {op} {b}")

    def int_compare(self, op: str, a: str, b: str) -> str:
        if known(a) and known(b):
            x, y = int(a), int(b)
            return str(int({"==": x == y, "!=": x != y, "<": x < y, "<=": x <= y, ">": x > y, ">=": x >= y}[op]))
        return self.do("int", f"{a} {op} {b}")

    def int_least(self, a: str, b: str) -> str:
        return self.do("int32_t", f"{a} < {b} ? {a} : {b}")

    def int_real(self, a: str) -> str:
        return self.number(float(a)) if known(a) else self.real_do(f"({self.real_type}){a}")

    def bool_op(self, op: str, a: str, b: str) -> str:
        for x, y in ((a, b), (b, a)):
            if x == "0":
                return y if op == "|" else "0"
            if x == "1":
                return "1" if op == "|" else y
        return self.do("int", f"{a} {op}{op} {b}")

    def bool_not(self, a: str) -> str:
        return str(1 - int(a)) if known(a) else self.do("int", f"!{a}")

    def bool_int(self, a: str) -> str:
        return a if known(a) else self.do("int32_t", a)

    def mask_any(self, a: str) -> str:
        return a

    def mask_all(self, a: str) -> str:
        return a

    # -- reals --------------------------------------------------------------------------------------
    def number(self, value: float) -> str:
        text = literal(value, self.real_type)
        return f"({text})" if text[0] == "-" else text

    def add(self, a: str, b: str, fuse: bool = True) -> str:
        return self.real_do(f"{a} + {b}")

    def sub(self, a: str, b: str, fuse: bool = True) -> str:
        return self.real_do(f"{a} - {b}")

    def mul(self, a: str, b: str, fuse: bool = True) -> str:
        return self.real_do(f"{a} * {b}")

    def div(self, a: str, b: str) -> str:
        return self.real_do(f"{a} / {b}")

    def neg(self, a: str) -> str:
        return self.real_do(f"-{a}")

    def absolute(self, a: str) -> str:
        return self.library("fabs", a)

    def sqrt(self, a: str) -> str:
        return self.library("sqrt", a)

    def floor(self, a: str) -> str:
        return self.library("floor", a)

    def locate(self, a: str, knots: Sequence[float]) -> str:
        array, found, step = self.array(knots), self.name("n"), self.name("i")
        most = 1 << max(len(knots).bit_length() - 1, 0)
        self.put(f"int32_t {found} = 0;")
        self.open_block(f"for (int32_t {step} = {most}; {step} > 0; {step} /= 2)")
        self.put(f"if ({found} + {step} <= {len(knots)} && {array}[{found} + {step} - 1] <= {a}) {found} += {step};")
        self.close_block()
        return self.real_do(f"({self.real_type}){found}")

    def entry(self, index: str, values: Sequence[float]) -> str:
        return self.real_do(f"{self.array(values)}[(int32_t){index}]")

    def largest(self, a: str, b: str) -> str:
        return self.library("fmax", a, b)

    def least(self, a: str, b: str) -> str:
        return self.library("fmin", a, b)

    def library(self, function: str, *operands: str) -> str:
        return self.real_do(f"{function}{self._f}({', '.join(operands)})")

    def sincos(self, a: str) -> tuple[str, str]:
        if self._f:
            return self.library("sin", a), self.library("cos", a)
        self.needs.add("sincos")
        s, c = self.name("s"), self.name("c")
        self.put(f"double {s}, {c};")
        self.put(f"{self.prefix}sincos({a}, &{s}, &{c});")
        return s, c

    def real_compare(self, op: str, a: str, b: str) -> str:
        return self.do("int", f"{a} {op} {b}")

    def is_nan(self, a: str) -> str:
        return self.do("int", f"{a} != {a}")

    def select(self, mask: str, yes: str, no: str) -> str:
        return self.real_do(f"{mask} ? {yes} : {no}")

    # -- bits ---------------------------------------------------------------------------------------
    def bits(self, a: str) -> str:
        self.needs.add("bits")
        return self.do("uint64_t", f"{self.prefix}bits({a})")

    def from_bits(self, a: str) -> str:
        self.needs.add("from_bits")
        return self.do("double", f"{self.prefix}from_bits({a})")

    def bits_number(self, value: int) -> str:
        return f"UINT64_C({value % 2**64})"

    def bits_op(self, op: str, a: str, b: str) -> str:
        return self.do("uint64_t", f"{a} {op} {b}")

    def bits_odd(self, a: str) -> str:
        return self.do("int", f"({a} & 1u) != 0u")

    # -- memory -------------------------------------------------------------------------------------
    def load(self, place: Pointer, index: str, aligned: bool) -> str:
        return self.real_do(f"{place.text}[{index}]")

    def store(self, place: Pointer, index: str, value: str, aligned: bool) -> None:
        assert not place.const, place
        self.put(f"{place.text}[{index}] = {value};")

    def move(self, place: Pointer, index: str, times: int) -> Pointer:
        offset = self.int_op("*", index, str(times))
        if offset == "0":
            return place
        name, const = self.name("p"), "const " if place.const else ""
        self.define(name, f"{const}{self.real_type} *const {name} = {place.text} + {offset};")
        return Pointer(name, place.const)

    def table_load(self, place: Pointer, index: str) -> str:
        return self.load(place, index, False)

    def table_along(self, place: Pointer, index: str) -> str:
        return self.table_load(place, index)

    def table_move(self, place: Pointer, index: str) -> Pointer:
        return self.move(place, index, 1)

    def integer_load(self, place: Pointer, index: str) -> str:
        given = self.arguments.integers.get(f"{place.text}[{index}]")
        return str(given) if given is not None else self.do("int32_t", f"{place.text}[{index}]")

    def integer_store(self, place: Pointer, index: str, value: str) -> None:
        self.put(f"{place.text}[{index}] = {value};")

    def slot(self, kind: str) -> str:
        name = self.name("x")
        self.put(f"{self._kind(kind)} {name};")
        return name

    def _kind(self, kind: str) -> str:
        return self.real_type if kind == "real" else "int32_t"

    def write(self, kind: str, slot: str, value: str) -> None:
        self.put(f"{slot} = {value};")

    def read(self, kind: str, slot: str) -> str:
        return self.do(self._kind(kind), slot)

    # -- arguments ----------------------------------------------------------------------------------
    def count(self, name: str) -> Int:
        return Int(self, str(self.arguments.integers[name]))

    def set_count(self, name: str, value: Int | int) -> None:
        raise NotImplementedError("C functions give no integers back")

    def real(self, name: str) -> Real:
        return Real(self, self.arguments.reals[name])

    def set_real(self, name: str, value: Real) -> None:
        raise NotImplementedError("C functions give no numbers back")

    def memory(self, name: str, aligned: bool = False) -> Memory:
        return Memory(self, self.arguments.pointers[name])

    def rows(self, name: str, starts: Sequence[Int]) -> Memory:
        return self.memory(name).at(starts[0])

    def unpack(self, source: Memory, target: Memory, size: int) -> None:
        with self.loop(size) as i:
            target[i] = source[i]

    def integers_at(self, name: str) -> Integers:
        return Integers(self, self.arguments.pointers[name])

    def table(self, name: str) -> SharedReals:
        return SharedReals(self, self.arguments.pointers[name])

    # -- control ------------------------------------------------------------------------------------
    def before_loop(self, first: str, last: str) -> None:
        """What stands in front of a loop between these bounds."""

    @contextlib.contextmanager
    def loop(self, end: Int | int, start: Int | int = 0, back: bool = False, step: int = 1) -> Iterator[Int]:
        i, first, last = self.name("i"), int_operand(start), int_operand(end)
        place = self.mark()
        self.before_loop(first, last)
        if back:
            self.open_block(f"for (int32_t {i} = {self.int_op('-', last, '1')}; {i} >= {first}; {_change(i, -step)})")
        else:
            self.open_block(f"for (int32_t {i} = {first}; {i} < {last}; {_change(i, step)})")
        yield Int(self, i)
        self.close_block()
        if known(first) and known(last) and int(first) >= int(last):
            self.forget(place)

    def fold(self, end: Int | int, first: Carried, body: Callable[[Int, Carried], Carried], start: Int | int = 0,
             step: int = 1) -> Carried:
        carried, i = self.name("x"), self.name("i")
        self.put(f"{self._kind('real' if isinstance(first, Real) else 'integer')} {carried} = {first.operand};")
        self.before_loop(int_operand(start), int_operand(end))
        self.open_block(f"for (int32_t {i} = {int_operand(start)}; {i} < {int_operand(end)}; {i} += {step})")
        self.put(f"{carried} = {body(Int(self, i), type(first)(self, carried)).operand};")
        self.close_block()
        return type(first)(self, carried)

    def chase(self, first: Int, body: Callable[[Int], Int]) -> None:
        i = self.name("i")
        self.open_block(f"for (int32_t {i} = {first.operand}; {i} != 0;)")
        self.put(f"{i} = {body(Int(self, i)).operand};")
        self.close_block()

    @contextlib.contextmanager
    def forever(self) -> Iterator[Callable[[Bool], None]]:
        self.open_block("for (;;)")
        depth = self.depth

        def leave(condition: Bool) -> None:
            assert self.depth == depth, "only the innermost loop can be left"
            self.put(f"if ({condition.operand}) break;")

        yield leave
        self.close_block()

    @contextlib.contextmanager
    def when(self, condition: Bool) -> Iterator[None]:
        place = self.mark()
        if not known(condition.operand):
            self.open_block(f"if ({condition.operand})")
        else:
            self.open_block("")
        yield
        self.close_block()
        if condition.operand == "0":
            self.forget(place)
        elif condition.operand == "1":
            self.reword(place, "{")

    def switch(self, value: Int, cases: Sequence[tuple[int, Callable[[], None]]]) -> None:
        self.open_block(f"switch ({value.operand})")
        for number, emit in cases:
            self.open_block(f"case {number}:")
            emit()
            self.put("break;")
            self.close_block()
        self.put("default: break;")
        self.close_block()

    def rarely(self, condition: Bool, usual: Sequence[str], make: Callable[[], Sequence[str]]) -> tuple[str, ...]:
        names = [self.name("x") for _ in usual]
        for name, operand in zip(names, usual, strict=True):
            self.put(f"{self.real_type} {name} = {operand};")
        self.open_block(f"if ({condition.operand})")
        for name, operand in zip(names, make(), strict=True):
            self.put(f"{name} = {operand};")
        self.close_block()
        return tuple(names)

    def call_all(self, name: str, count: Int) -> None:
        for call in self.arguments.calls.get(name, ()):
            self.put(call)

    def finish(self, result: Int | int = 0) -> None:
        self.result = int_operand(result)


def _change(name: str, step: int) -> str:
    """How a counter goes on."""
    sign = "+" if step > 0 else "-"
    return f"{sign}{sign}{name}" if abs(step) == 1 else f"{name} {sign}= {abs(step)}"
