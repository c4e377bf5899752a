"""Formulas as data: short programs of arithmetic and elementary functions, made by tracing or from text.

A `FormulaProgram` is all that a model file can say about a law or about an expression of parameters. It holds no code
of Python: running it can do arithmetic and nothing else, and takes as long as the program is.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

from bellcrank.mechanism.table import Table
from bellcrank.scalar import functions as fn
from bellcrank.scalar.graph import ADD, DIV, LEAF, LESS, MUL, NEG, SUB, Number, Scalar, reachable

__all__ = [
    "DERIVED",
    "FUNCTIONS",
    "MAX_POWER",
    "MAX_STEPS",
    "FormulaBuilder",
    "FormulaProgram",
    "FormulaStep",
    "Operand",
    "TooLongError",
    "from_scalar",
    "run",
]

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
