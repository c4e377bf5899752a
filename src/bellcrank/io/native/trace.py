"""Laws written in Python, traced into programs: what they do to their arguments is recorded, step by step.

Unlike the traced scalars of compiled code, nothing is simplified here: the program does what the law does, in the same
order, so that a law read back from a file gives the same numbers to the last bit.

Formulas as data: short programs of arithmetic and elementary functions, made by tracing or from text.

A `FormulaProgram` is all that a model file can say about a law or about an expression of parameters. It holds no code
of Python: running it can do arithmetic and nothing else, and takes as long as the program is.
"""

from __future__ import annotations

import hashlib
import math
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from bellcrank.errors import ModelError
from bellcrank.mechanism.motion import ParametricLaw
from bellcrank.mechanism.table import Table
from bellcrank.scalar import functions as fn
from bellcrank.scalar.graph import ADD, DIV, ENTRY, FLOOR, LEAF, LESS, LOCATE, MUL, NEG, SUB, Number, Scalar, reachable

__all__ = ["DERIVED", "FUNCTIONS", "MAX_POWER", "FormulaBuilder", "FormulaProgram", "Operand", "TooLongError",
           "from_scalar", "run", "trace", "trace_several"]


# -- formulas as data -------------------------------------------------------------------------------
#: a number, or the place of a value: first those of the inputs, then those of the steps
Operand: TypeAlias = float | int

#: functions of formulas with the number of their arguments
FUNCTIONS: dict[str, tuple[int, Callable[..., Number]]] = {
    "sqrt": (1, fn.sqrt), "sin": (1, fn.sin), "cos": (1, fn.cos), "tan": (1, fn.tan), "exp": (1, fn.exp),
    "log": (1, fn.log), "tanh": (1, fn.tanh), "atan2": (2, fn.atan2), "select_less": (4, fn.select_less)}
#: functions that are written with the others, and read as what they are written with
DERIVED: dict[str, tuple[int, Callable[..., Number]]] = {
    "abs": (1, fn.abs), "sign": (1, fn.sign), "minimum": (2, fn.minimum), "maximum": (2, fn.maximum),
    "asin": (1, fn.asin), "acos": (1, fn.acos), "atan": (1, fn.atan), "sinh": (1, fn.sinh), "cosh": (1, fn.cosh),
    "hypot": (2, fn.hypot)}
_OPERATORS: dict[str, Callable[..., Number]] = {
    ADD: operator.add, SUB: operator.sub, MUL: operator.mul, DIV: operator.truediv, NEG: operator.neg}
_RUN: dict[str, Callable[..., Number]] = {**_OPERATORS, **{name: made for name, (_, made) in FUNCTIONS.items()}}

#: whole powers are products that are multiplied out
MAX_POWER = 1024
#: more operations than any law needs
MAX_STEPS = 50_000


class TooLongError(ValueError):
    """A formula has more operations than files hold."""


class FormulaStep(NamedTuple):
    """One operation on constants and earlier values: by its name, or looking up a table."""

    op: str | Table
    args: tuple[Operand, ...]


class FormulaProgram(NamedTuple):
    """Steps in the order in which the result needs them. Equal programs compute the same, bit for bit."""

    inputs: tuple[str, ...]
    steps: tuple[FormulaStep, ...]
    result: Operand

    def uses(self, name: str) -> bool:
        """Whether the result depends on an input."""
        if name not in self.inputs:
            return False
        place = self.inputs.index(name)
        return any(type(a) is int and a == place for a in (self.result, *(a for s in self.steps for a in s.args)))


def run(program: FormulaProgram, values: Sequence[Number]) -> Number:
    """The result for values of the inputs: floats, arrays, traced scalars or jets."""
    made = list(values)
    for op, args in program.steps:
        found = [made[a] if type(a) is int else a for a in args]
        if op == "pow":
            power = found[1]
            made.append(found[0] ** (int(power) if power == int(power) else power))
        else:
            made.append(op(*found) if isinstance(op, Table) else _RUN[op](*found))
    return made[program.result] if type(program.result) is int else program.result


class FormulaBuilder:
    """Collects steps, each distinct one once."""

    def __init__(self, inputs: Sequence[str]) -> None:
        self.inputs = tuple(inputs)
        self._steps: list[FormulaStep] = []
        self._places: dict[tuple[Any, ...], int] = {}

    def step(self, op: str | Table, *args: Operand) -> int:
        """The place of an operation's value."""
        key = (op, *(a if type(a) is int else float(a).hex() for a in args))
        place = self._places.get(key)
        if place is None:
            if len(self._steps) >= MAX_STEPS:
                raise TooLongError(f"more than {MAX_STEPS} operations")
            place = len(self.inputs) + len(self._steps)
            self._places[key] = place
            self._steps.append(FormulaStep(op, tuple(a if type(a) is int else float(a) for a in args)))
        return place

    def finish(self, result: Operand) -> FormulaProgram:
        """The program of what the result needs, numbered in the order of need."""
        first = len(self.inputs)
        if type(result) is not int or result < first:
            return FormulaProgram(self.inputs, (), result)
        new: dict[int, int] = {i: i for i in range(first)}
        steps: list[FormulaStep] = []
        stack = [result]
        while stack:
            place = stack[-1]
            if place in new:
                stack.pop()
                continue
            op, args = self._steps[place - first]
            waiting = [a for a in args if type(a) is int and a not in new]
            if waiting:
                stack.extend(reversed(waiting))
                continue
            new[place] = first + len(steps)
            steps.append(FormulaStep(op, tuple(new[a] if type(a) is int else a for a in args)))
            stack.pop()
        return FormulaProgram(self.inputs, tuple(steps), new[result])


def from_scalar(value: Scalar, inputs: Sequence[str]) -> FormulaProgram:
    """The program of an expression of parameters.

    Sums and products of two terms are put in an order that depends on the terms only, not on when they were made.
    """
    builder = FormulaBuilder(inputs)
    place: dict[Scalar, Operand] = {}
    keys: dict[Scalar, str] = {}
    known: Mapping[str, int] = {name: i for i, name in enumerate(builder.inputs)}
    for node in reachable([value]):
        if node.op is LEAF:
            name = node.args[0][1]
            place[node], keys[node] = known[name], f"{name!r}"
            continue
        args = list(node.args)
        if node.op in (ADD, MUL) and all(type(a) is Scalar for a in args):
            args.sort(key=keys.__getitem__)
        text = f"{node.op}({','.join(keys[a] if type(a) is Scalar else float(a).hex() for a in args)})"
        keys[node] = text if len(text) < 200 else node.op + hashlib.sha256(text.encode()).hexdigest()
        op = "select_less" if node.op is LESS else node.op
        place[node] = builder.step(op, *(place[a] if type(a) is Scalar else float(a) for a in args))
    return builder.finish(place[value])


# -- laws written in Python, traced into programs ---------------------------------------------------
#: where a law and its trace are compared: nothing special happens there
_SAMPLES = ((0.7391, -0.4127), (-1.3172, 2.1339), (0.0313, 0.0171))


def trace(law: Callable[..., Any], names: Sequence[str], what: str) -> FormulaProgram:
    """The program of a law of `names`; `what` says in errors whose law it is."""
    return trace_several(law, names, what, None)[0]


def trace_several(law: Callable[..., Any], names: Sequence[str], what: str, count: int | None
                  ) -> tuple[FormulaProgram, ...]:
    """The programs of a law that returns `count` values, or one that is not in a sequence (None). Parameters that it
    uses are inputs after its arguments."""
    if isinstance(law, ParametricLaw):
        expressions, n = law.expressions, len(names)
        if any(node.op in (FLOOR, LOCATE, ENTRY) for node in reachable(expressions.results)):
            raise ModelError(f"{what}: a law that uses a table and parameters cannot be written as a formula; give a "
                             "law of the machine, law(at), with at.parameter('name')")
        return trace_several(lambda *x: expressions(x[:n], x[n:]), (*names, *expressions.names), what, count)
    builder = FormulaBuilder(names)
    try:
        found = law(*(TracedFormula(builder, i) for i in range(len(names))))
        values = [found] if count is None else list(found)
        if count is not None and len(values) != count:
            raise ValueError(f"it returns {len(values)} values, not {count}")
        programs = tuple(builder.finish(_result(value)) for value in values)
    except TooLongError as error:
        raise ModelError(f"{what}: the law cannot be written as a formula: it takes {error}, and a file holds no "
                         "more; write a shorter law, or keep the machine in Python") from None
    except Exception as error:
        raise ModelError(f"{what}: the law cannot be written as a formula ({error}); write it with the functions of "
                         "bellcrank.math, without `if`") from None
    for sample in _SAMPLES:
        _compare(law, programs, (sample * len(names))[:len(names)], what, count is None)
    return programs


def _compare(law: Callable[..., Any], programs: Sequence[FormulaProgram], sample: Sequence[float], what: str,
             single: bool) -> None:
    """A law that depends on anything but its arguments is none that can be written down."""
    try:
        found = law(*sample)
        wanted = [float(x) for x in ([found] if single else found)]
    except Exception:
        return  # outside the law's range
    try:
        got = [float(run(program, sample)) for program in programs]
    except ArithmeticError:
        return
    if any(a != b and not (math.isnan(a) and math.isnan(b)) for a, b in zip(wanted, got, strict=True)):
        raise ModelError(f"{what}: the law cannot be written as a formula: it gives {wanted} at {tuple(sample)}, but "
                         f"its trace {got}; does it depend on anything but its arguments?")


class TracedFormula:
    """A value that records what is done to it."""

    __slots__ = ("builder", "place")
    __array_ufunc__ = None  # let np.float64 * TracedFormula reach __rmul__

    def __init__(self, builder: FormulaBuilder, place: int) -> None:
        self.builder = builder
        self.place = place

    def _do(self, op: str | Table, *args: Any) -> Any:
        operands = [_operand(a, self.builder) for a in args]
        if any(a is None for a in operands):
            return NotImplemented
        return TracedFormula(self.builder, self.builder.step(op, *(a for a in operands if a is not None)))

    def _call(self, op: str | Table, *args: Any) -> TracedFormula:
        made = self._do(op, *args)
        if made is NotImplemented:
            raise TypeError(f"{op} of something that is no number")
        return made  # type: ignore[no-any-return]

    def __add__(self, other: Any) -> Any:
        return self._do(ADD, self, other)

    def __radd__(self, other: Any) -> Any:
        return self._do(ADD, other, self)

    def __sub__(self, other: Any) -> Any:
        return self._do(SUB, self, other)

    def __rsub__(self, other: Any) -> Any:
        return self._do(SUB, other, self)

    def __mul__(self, other: Any) -> Any:
        return self._do(MUL, self, other)

    def __rmul__(self, other: Any) -> Any:
        return self._do(MUL, other, self)

    def __truediv__(self, other: Any) -> Any:
        return self._do(DIV, self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return self._do(DIV, other, self)

    def __neg__(self) -> Any:
        return self._do(NEG, self)

    def __abs__(self) -> Any:
        return self._call("select_less", self, 0.0, -self, self)

    def __pow__(self, power: object) -> Any:
        if power != 0.5 and not (isinstance(power, int) and abs(power) <= MAX_POWER):
            raise TypeError(f"powers are whole numbers up to {MAX_POWER} or 0.5; write exp(p * log(x)) for others")
        return self._do("pow", self, power)

    def __eq__(self, other: object) -> bool:
        raise TypeError("its argument has no value that could be compared: use bellcrank.math.select_less(a, b, x, y)")

    __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise TypeError("its argument has no truth value: use bellcrank.math.select_less(a, b, x, y), not `if`")

    def __float__(self) -> float:
        raise TypeError("its argument has no value; use the functions of bellcrank.math instead of the standard "
                        "library's")

    def look_up(self, table: Table, *args: Any) -> TracedFormula:
        """Called by tables."""
        return self._call(table, *args)

    # -- called by bellcrank.math -----------------------------------------------------------------
    def sin(self) -> TracedFormula:
        return self._call("sin", self)

    def cos(self) -> TracedFormula:
        return self._call("cos", self)

    def exp(self) -> TracedFormula:
        return self._call("exp", self)

    def log(self) -> TracedFormula:
        return self._call("log", self)

    def sqrt(self) -> TracedFormula:
        return self._call("sqrt", self)

    def tanh(self) -> TracedFormula:
        return self._call("tanh", self)

    def atan2(self, *args: Any) -> TracedFormula:
        return self._call("atan2", *args)

    def select_less(self, *args: Any) -> TracedFormula:
        return self._call("select_less", *args)


def _operand(value: Any, builder: FormulaBuilder) -> Operand | None:
    if isinstance(value, TracedFormula):
        return value.place if value.builder is builder else None
    if isinstance(value, (int, float)) or getattr(value, "shape", None) == ():
        found = float(value)
        if not math.isfinite(found):
            raise ValueError(f"it uses the number {found}")
        return found
    return None


def _result(value: Any) -> Operand:
    if isinstance(value, TracedFormula):
        return value.place
    found = float(value)
    if not math.isfinite(found):
        raise ValueError(f"it returns {found}")
    return found
