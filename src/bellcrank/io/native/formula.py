"""The small language of formulas in model files: text to programs and back.

    2.0 * mass + 0.1
    s1 = sin(1.7 * t); 0.3 * s1 * s1

Numbers, names, ``+ - * / **`` with whole powers (or 0.5), brackets, the functions of `bellcrank.math`, ``pi``, and
definitions separated by semicolons. Names of parameters that are no plain words stand in backquotes. The text is
parsed here, by hand: nothing of it is ever handed to Python.

Laws of the machine in files: formulas of numbers that are read from it, and what these are.

    law: {formulas: ["-2.0 * r1 + r2"], reads: [[q, crank], [velocity, coupler, x, 0.5, 0.0, 0.0]]}

Reads are ``[t]``, ``[q | u, joint]``, ``[state | parameter, name]``, ``[position | velocity, body, axis, point...]``,
``[omega, body, axis]``, ``[axes, body, which, axis]`` and ``[element, name, what(, axis)]``; r1 is the first.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from bellcrank.errors import ModelError
from bellcrank.io.native.trace import (
    DERIVED,
    FUNCTIONS,
    MAX_POWER,
    FormulaBuilder,
    FormulaProgram,
    Operand,
    TracedFormula,
    run,
    trace_several,
)
from bellcrank.mechanism.forces.element import bound
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import ADD, DIV, MUL, NEG, SUB, Graph, Number
from bellcrank.spatial import Vector
from bellcrank.topology.pairs import force_and_moment

__all__ = ["MAX_DEPTH", "MAX_LENGTH", "NO_UNITS", "RESERVED", "Formula", "WrittenLaw", "parse", "table_word",
           "traced_law", "written"]

MAX_LENGTH = 1_000_000
MAX_DEPTH = 64
#: brackets that are written inside each other before a definition is made
_WRITTEN_DEPTH = 24
#: text that occurs more than once and is longer becomes a definition
_WRITTEN_TWICE = 12
#: names that are no parameters, unless they stand in backquotes
RESERVED = frozenset({"t", "x", "rate", "pi", *FUNCTIONS})

_TOKEN = re.compile(r"\s*(?:(?P<number>(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)(?![A-Za-z0-9_.])"
                    r"|(?P<name>[A-Za-z_][A-Za-z0-9_]*)|`(?P<quoted>(?:[^`]|``)+)`|(?P<sign>\*\*|[-+*/(),;=])"
                    r"|(?P<end>$))")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_WITH_UNIT = re.compile(r"(?!0x)[0-9.]+(?:[eE][+-]?[0-9]+)?[A-Za-z\u00b0\u00b5][A-Za-z/]*(?![A-Za-z0-9_.])")
#: what people learn who write ``4.5 kg``
NO_UNITS = "numbers carry no units: they are SI, angles radians"


def table_word(table: Table) -> str:
    """What a table is called in formulas: its name where that is a word, or one made of what it holds."""
    if _WORD.fullmatch(table.name) and table.name not in RESERVED and table.name not in DERIVED:
        return table.name
    held = repr((table.points, table.values, table.kind, table.extrapolate, table.name))
    return f"table_{hashlib.sha256(held.encode()).hexdigest()[:8]}"


# -- reading ------------------------------------------------------------------------------------
class _Token(NamedTuple):
    kind: str
    text: str
    place: int


class _Tokens:
    """The tokens of a text, made when they are asked for: a formula with too many operations ends before its text."""

    def __init__(self, text: str) -> None:
        self._made: list[_Token] = []
        self._rest = _tokens(text)

    def __getitem__(self, place: int) -> _Token:
        while len(self._made) <= place:
            self._made.append(next(self._rest))
        return self._made[place]


def _tokens(text: str) -> Iterator[_Token]:
    if len(text) > MAX_LENGTH:
        raise ModelError(f"the formula {_short(text)!r} is longer than {MAX_LENGTH} characters")
    place = 0
    while True:
        match = _TOKEN.match(text, place)
        if match is None:
            rest = text[place:].lstrip()
            what = f"is no number; {NO_UNITS}" if _WITH_UNIT.match(rest) else "is neither a number, a name nor a sign"
            raise ModelError(f"formula {_short(text)!r}: {_short(rest, 12)!r} {what}")
        kind = match.lastgroup or "end"
        yield _Token(kind, match.group(kind), match.start(kind))
        if kind == "end":
            return
        place = match.end()


def parse(text: str, inputs: Sequence[str], arguments: Sequence[str] = (), tables: Sequence[Table] = ()
          ) -> FormulaProgram:
    """The program of a formula of `arguments` (such as t, as they are) and `inputs` (parameters, any names)."""
    return _Parser(text, inputs, arguments, tables).program()


class _Parser:
    def __init__(self, text: str, inputs: Sequence[str], arguments: Sequence[str], tables: Sequence[Table]) -> None:
        self.text = text
        self.tables = {table_word(table): table for table in tables}
        self.tokens = _Tokens(text)
        self.at = 0
        self.depth = 0
        names = (*arguments, *inputs)
        self.builder = FormulaBuilder(names)
        self.quoted: Mapping[str, int] = {name: len(arguments) + i for i, name in enumerate(inputs)}
        self.plain: dict[str, Operand] = {name: i for name, i in self.quoted.items() if name not in RESERVED}
        self.plain |= {"pi": math.pi, **{name: i for i, name in enumerate(arguments)}}
        self.names = (*arguments, *inputs, "pi")

    def error(self, message: str) -> ModelError:
        return ModelError(f"formula {_short(self.text)!r}: {message}")

    def program(self) -> FormulaProgram:
        try:
            while self.tokens[self.at].kind == "name" and self.tokens[self.at + 1].text == "=":
                name = self.next().text
                if name in self.plain or name in RESERVED:
                    raise self.error(f"{name!r} has a meaning already; choose another name")
                self.next()
                self.plain[name] = self.sum()
                self.expect(";")
            result = self.sum()
            if self.peek().kind != "end":
                unit = self.peek().kind == "name" and self.tokens[self.at - 1].kind == "number"
                raise self.error(f"{_short(self.peek().text, 12)!r} is not expected there"
                                 f"{f'; {NO_UNITS}' if unit else ''}")
            return self.builder.finish(result)
        except ModelError:
            raise
        except ValueError as error:
            raise self.error(str(error)) from None

    def peek(self) -> _Token:
        return self.tokens[self.at]

    def next(self) -> _Token:
        self.at += 1
        return self.tokens[self.at - 1]

    def expect(self, sign: str) -> None:
        if self.peek().kind != "sign" or self.peek().text != sign:
            found = self.peek().text
            raise self.error(f"needs {sign!r} before {_short(found, 12)!r}" if found else
                             f"ends where {sign!r} is needed")
        self.next()

    def sum(self) -> Operand:
        left = self.product()
        while self.peek().kind == "sign" and self.peek().text in "+-":
            op = ADD if self.next().text == "+" else SUB
            left = self.builder.step(op, left, self.product())
        return left

    def product(self) -> Operand:
        left = self.factor()
        while self.peek().kind == "sign" and self.peek().text in ("*", "/"):
            op = MUL if self.next().text == "*" else DIV
            left = self.builder.step(op, left, self.factor())
        return left

    def factor(self) -> Operand:
        sign = 1
        while self.peek().kind == "sign" and self.peek().text in "+-":
            sign = -sign if self.next().text == "-" else sign
        value = self.power()
        if sign > 0:
            return value
        return -value if type(value) is float else self.builder.step(NEG, value)

    def power(self) -> Operand:
        base = self.atom()
        if self.peek().text != "**" or self.peek().kind != "sign":
            return base
        self.next()
        sign = 1.0
        while self.peek().kind == "sign" and self.peek().text in "+-":
            sign = -sign if self.next().text == "-" else sign
        token = self.next()
        power = sign * float(token.text) if token.kind == "number" else math.nan
        if power != 0.5 and not (abs(power) <= MAX_POWER and power == int(power)):
            raise self.error(f"powers are whole numbers up to {MAX_POWER} or 0.5; write exp(p * log(x)) for others")
        return self.builder.step("pow", base, power)

    def atom(self) -> Operand:
        token = self.next()
        if token.kind == "number":
            value = float(token.text)
            if len(token.text) > 1 and token.text[0] == "0" and token.text[1].isdigit():
                raise self.error(f"the number {_short(token.text, 12)} begins with 0; write it without")
            if not math.isfinite(value):
                raise self.error(f"the number {_short(token.text, 12)} is too large")
            return value
        if token.kind == "quoted":
            name = token.text.replace("``", "`")
            if name not in self.quoted:
                raise self.error(f"there is no parameter {_short(name)!r}{_near(name, self.quoted)}")
            return self.quoted[name]
        if token.kind == "name":
            if token.text in self.tables and self.peek().text == "(":
                return self.looked_up(self.tables[token.text])
            called = token.text in FUNCTIONS or (token.text in DERIVED and self.peek().text == "(")
            return self.call(token.text) if called else self.name(token.text)
        if token.text == "(" and token.kind == "sign":
            self.deeper()
            value = self.sum()
            self.expect(")")
            self.depth -= 1
            return value
        raise self.error(f"{token.text!r} stands where a number or a name is needed" if token.text else
                         "ends where a number or a name is needed")

    def name(self, name: str) -> Operand:
        found = self.plain.get(name)
        if found is None:
            raise self.error(f"{_short(name)!r} is not known here; it may use {', '.join(self.names[:12])} and "
                             f"functions{_near(name, [*self.plain, *FUNCTIONS, *DERIVED])}")
        return found

    def looked_up(self, table: Table) -> Operand:
        args = self.arguments_of_call()
        if len(args) != table.arguments:
            raise self.error(f"the table {table_word(table)} takes {table.arguments} arguments, got {len(args)}")
        return self.builder.step(table, *args)

    def arguments_of_call(self) -> list[Operand]:
        self.deeper()
        self.expect("(")
        args = [self.sum()]
        while self.peek().kind == "sign" and self.peek().text == ",":
            self.next()
            args.append(self.sum())
        self.expect(")")
        self.depth -= 1
        return args

    def call(self, name: str) -> Operand:
        count, function = (FUNCTIONS if name in FUNCTIONS else DERIVED)[name]
        args = self.arguments_of_call()
        if len(args) != count:
            raise self.error(f"{name} takes {count} argument{'s' * (count > 1)}, got {len(args)}")
        if name in DERIVED or name == "tan":  # as bellcrank.math does it
            made = function(*(TracedFormula(self.builder, a) if type(a) is int else a for a in args))
            return made.place if isinstance(made, TracedFormula) else float(made)
        return self.builder.step(name, *args)

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.error(f"brackets are nested more than {MAX_DEPTH} deep; name parts of it: 's = ...; s * s'")


def _near(name: str, known: Any) -> str:
    import difflib

    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def _short(text: str, length: int = 60) -> str:
    return text if len(text) <= length else text[:length] + "..."


@dataclass(frozen=True)
class Formula:
    """A law from a file: a function of `arguments`, for floats, arrays, traced scalars and jets.

    >>> Formula("s = sin(t); 2 * s * s", ("t",))(0.5) == 2 * math.sin(0.5) * math.sin(0.5)
    True
    """

    text: str
    arguments: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    names: tuple[str, ...] = ()  #: of parameters that it may use
    values: tuple[Number, ...] = ()

    @cached_property
    def program(self) -> FormulaProgram:
        """What it does."""
        return parse(self.text, self.names, self.arguments, self.tables)

    @property
    def parametric(self) -> bool:
        """Whether it uses parameters."""
        first, last = len(self.arguments), len(self.program.inputs)
        used = (self.program.result, *(a for step in self.program.steps for a in step.args))
        return any(type(a) is int and first <= a < last for a in used)

    def __call__(self, *values: Number) -> Number:
        if len(values) != len(self.arguments):
            raise TypeError(f"a law of {', '.join(self.arguments)} takes {len(self.arguments)} arguments")
        return run(self.program, (*values, *self.values))


# -- writing ------------------------------------------------------------------------------------
#: how tightly the last operation of a text binds
_SUM, _PRODUCT, _SIGN, _POWER, _ATOM = range(5)
_SIGNS = {ADD: ("+", _SUM), SUB: ("-", _SUM), MUL: ("*", _PRODUCT), DIV: ("/", _PRODUCT)}


class _Piece(NamedTuple):
    text: str
    binds: int
    depth: int


def written(program: FormulaProgram, arguments: Sequence[str] = ()) -> str:
    """The text of a program, whose first inputs are the arguments; `parse` gives the same program back."""
    return _FormulaWriter(program, arguments).text()


class _FormulaWriter:
    def __init__(self, program: FormulaProgram, arguments: Sequence[str]) -> None:
        self.program = program
        self.arguments = tuple(arguments)
        self.uses = [0] * (len(program.inputs) + len(program.steps))
        for step in program.steps:
            for place in step.args:
                if type(place) is int:
                    self.uses[place] += 1
        self.definitions: list[str] = []
        self.count = 0
        self.pieces: list[_Piece] = [_Piece(self.input(place, name), _ATOM, 0)
                                     for place, name in enumerate(program.inputs)]

    def input(self, place: int, name: str) -> str:
        if place < len(self.arguments) or (name not in (*RESERVED, *self.arguments) and _WORD.fullmatch(name)):
            return name
        return "`" + name.replace("`", "``") + "`"

    def text(self) -> str:
        for place, (op, args) in enumerate(self.program.steps, len(self.program.inputs)):
            piece = self.piece(op, args)
            last = place == len(self.uses) - 1  # the result is what was needed last
            repeated = self.uses[place] > 1 and len(piece.text) > _WRITTEN_TWICE
            if (repeated or piece.depth >= _WRITTEN_DEPTH) and not last:
                name = self.new_name()
                self.definitions.append(f"{name} = {piece.text}; ")
                piece = _Piece(name, _ATOM, 0)
            self.pieces.append(piece)
            for a in args:  # long texts are not needed twice
                if type(a) is int and self.uses[a] == 1 and a >= len(self.program.inputs):
                    self.pieces[a] = _Piece("", _ATOM, 0)
        return "".join(self.definitions) + self.operand(self.program.result).text

    def new_name(self) -> str:
        while True:
            self.count += 1
            if f"s{self.count}" not in self.program.inputs:
                return f"s{self.count}"

    def operand(self, value: Operand) -> _Piece:
        if type(value) is int:
            return self.pieces[value]
        return _Piece(repr(float(value)), _SIGN if math.copysign(1.0, value) < 0.0 else _ATOM, 0)

    def within(self, value: Operand, least: int) -> tuple[str, int]:
        """The text of an operand, in brackets where it binds less than it must."""
        text, binds, depth = self.operand(value)
        return (text, depth) if binds >= least else (f"({text})", depth + 1)

    def piece(self, op: str | Table, args: Sequence[Operand]) -> _Piece:
        if isinstance(op, str) and op in _SIGNS:
            sign, binds = _SIGNS[op]
            (left, one), (right, two) = self.within(args[0], binds), self.within(args[1], binds + 1)
            return _Piece(f"{left} {sign} {right}", binds, max(one, two))
        if op == NEG:
            inner, depth = self.within(args[0], _POWER)
            return _Piece(f"-{inner}", _SIGN, depth)
        if op == "pow":
            base, depth = self.within(args[0], _ATOM)
            power = float(args[1])
            return _Piece(f"{base}**{int(power) if power == int(power) else power}", _POWER, depth)
        parts = [self.operand(a) for a in args]
        word = table_word(op) if isinstance(op, Table) else op
        return _Piece(f"{word}({', '.join(p.text for p in parts)})", _ATOM, 1 + max(p.depth for p in parts))


# -- laws of the machine in files -------------------------------------------------------------------
_AXES = "xyz"
Key = tuple[Any, ...]


class _Read:
    """A stand-in for the machine: everything that is read from it goes through `value`."""

    def __init__(self, value: Callable[[Key], Any]) -> None:
        self._value = value

    @property
    def t(self) -> Any:
        return self._value(("t",))

    def q(self, joint: str) -> Any:
        return self._value(("q", joint))

    def u(self, joint: str) -> Any:
        return self._value(("u", joint))

    def state(self, name: str) -> Any:
        return self._value(("state", name))

    def parameter(self, name: str) -> Any:
        return self._value(("parameter", name))

    def bind(self, value: Any) -> Any:
        """A ready-made element with its parameters as they are read."""
        return bound(value, self.parameter)

    def _vector(self, *key: Any, rest: Sequence[float] = ()) -> Vector:
        return Vector(*(self._value((*key, axis, *rest)) for axis in _AXES))

    def position(self, body: Any, point: Sequence[Any] = (0.0, 0.0, 0.0)) -> Vector:
        fixed = _plain(point)
        if fixed is None:  # a point that the law computes: by the axes of its body
            return self.position(body) + self._arm(body, point)
        return self._vector("position", getattr(body, "name", body), rest=fixed)

    def velocity(self, body: Any, point: Sequence[Any] = (0.0, 0.0, 0.0)) -> Vector:
        fixed = _plain(point)
        if fixed is None:
            return self.velocity(body) + self.omega(body).cross(self._arm(body, point))
        return self._vector("velocity", getattr(body, "name", body), rest=fixed)

    def _arm(self, body: Any, point: Sequence[Any]) -> Vector:
        x, y, z = self.axes(body)
        arm: Vector = x * point[0] + y * point[1] + z * point[2]
        return arm

    def omega(self, body: Any) -> Vector:
        return self._vector("omega", getattr(body, "name", body))

    def axes(self, body: Any) -> tuple[Vector, ...]:
        return tuple(self._vector("axes", getattr(body, "name", body), which) for which in _AXES)

    def element(self, name: str) -> Any:
        return _ReadElement(self, name)

    def of_element(self, name: str, what: str) -> Any:
        """A number, or a vector, of an element."""
        if what in ("vector", "torque", "first_point", "second_point"):
            return self._vector("element", name, what)
        return self._value(("element", name, what))


class _ReadElement:
    def __init__(self, machine: _Read, name: str) -> None:
        self._machine, self._name = machine, name

    def __getattr__(self, what: str) -> Any:
        return self._machine.of_element(self._name, what)


def _plain(point: Sequence[Any]) -> list[float] | None:
    """A point that is given by numbers, if it is."""
    try:
        return [float(x) for x in point]
    except TypeError:
        return None


def traced_law(law: Callable[[Any], Any], what: str, several: bool
               ) -> tuple[tuple[FormulaProgram, ...], tuple[Key, ...]]:
    """The programs of a law of the machine, one or six, and what they read."""
    keys: dict[Key, int] = {}
    graph = Graph()

    def note(key: Key) -> Number:
        return graph.leaf(keys.setdefault(key, len(keys)))

    law(_Read(note))

    def flat(*values: Any) -> Any:
        found = law(_Read(lambda key: values[keys[key]]))
        return [x for part in force_and_moment(found) for x in part] if several else [found]

    names = [f"r{i + 1}" for i in range(len(keys))]
    return trace_several(flat, names, what, 6 if several else 1), tuple(keys)


@dataclass(frozen=True)
class WrittenLaw:
    """A law of the machine from a file."""

    formulas: tuple[Formula, ...]
    reads: tuple[Key, ...]

    @classmethod
    def of(cls, formulas: Sequence[str], reads: Sequence[Sequence[Any]], tables: Sequence[Table]) -> WrittenLaw:
        """Checked as far as a file alone can be."""
        keys = tuple(_checked(tuple(key)) for key in reads)
        names = tuple(f"r{i + 1}" for i in range(len(keys)))
        made = tuple(Formula(text, names, tuple(tables)) for text in formulas)
        for formula in made:
            assert formula.program is not None  # parsed now, so that mistakes show now
        return cls(made, keys)

    def __call__(self, at: Any) -> Any:
        values = [_value(at, key) for key in self.reads]
        found = [formula(*values) for formula in self.formulas]
        return found[0] if len(found) == 1 else (tuple(found[:3]), tuple(found[3:]))


_LENGTHS = {"t": (1,), "q": (2,), "u": (2,), "state": (2,), "parameter": (2,), "position": (3, 6), "velocity": (3, 6),
            "omega": (3,), "axes": (4,), "element": (3, 4)}

#: where these have axes
_AXES_AT = {"position": (2,), "velocity": (2,), "omega": (2,), "axes": (2, 3), "element": (3,)}


def _checked(key: Key) -> Key:
    if not key or key[0] not in _LENGTHS or len(key) not in _LENGTHS[key[0]]:
        raise ModelError(f"reads: {list(key)} is none of {', '.join(_LENGTHS)} with what it needs")
    for place in _AXES_AT.get(key[0], ()):
        if place < len(key) and key[place] not in tuple(_AXES):
            raise ModelError(f"reads: {list(key)}: {key[place]!r} is none of the axes x, y, z")
    if any(not isinstance(x, (int, float)) for x in (key[3:] if key[0] in ("position", "velocity") else ())):
        raise ModelError(f"reads: {list(key)}: a point is three numbers")
    return key


def _value(at: Any, key: Key) -> Any:
    kind, *rest = key
    if kind == "t":
        return at.t
    if kind in ("q", "u", "state", "parameter"):
        return getattr(at, kind)(rest[0])
    if kind in ("position", "velocity"):
        found = getattr(at, kind)(rest[0], tuple(rest[2:]) or (0.0, 0.0, 0.0))
        return found[_AXES.index(rest[1])]
    if kind == "omega":
        return at.omega(rest[0])[_AXES.index(rest[1])]
    if kind == "axes":
        return at.axes(rest[0])[_AXES.index(rest[1])][_AXES.index(rest[2])]
    found = getattr(at.element(rest[0]), rest[1])
    return found if len(rest) == 2 else found[_AXES.index(rest[2])]
