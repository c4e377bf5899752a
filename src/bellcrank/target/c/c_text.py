"""The text of a function in C: statements in blocks, constants with names, and what a program's names are there."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

__all__ = ["Arguments", "CText", "Pointer", "known", "literal"]

_LARGEST_FLOAT = 3.4028234663852886e38
_WORD = re.compile(r"[A-Za-z_]\w*")


class Pointer(NamedTuple):
    """An array in C; `step` is the distance between entries of one state, where a printer knows of others."""

    text: str
    const: bool = True
    step: str = "1"


class Arguments(NamedTuple):
    """What the names of a program stand for in C."""

    pointers: Mapping[str, Pointer] = {}
    integers: Mapping[str, int | str] = {}  #: numbers, or names
    reals: Mapping[str, str] = {}
    calls: Mapping[str, Sequence[str]] = {}  #: statements


def literal(value: float, real: str) -> str:
    """A constant of type `real`, exactly (doubles) or rounded once (floats)."""
    if value != value:
        return f"({real})NAN"
    if math.isinf(value):
        return f"{'-' if value < 0 else ''}({real})INFINITY"
    if real == "double":
        return repr(value)
    if abs(value) > _LARGEST_FLOAT:
        return f"{'-' if value < 0 else ''}FLT_MAX"
    if 0.0 < abs(value) < 1e-45:
        return "0.0f"
    return f"{value!r}f"


def known(operand: str) -> bool:
    """Whether an operand is a number."""
    return operand.lstrip("-").isdigit()


class CText:
    """The statements of one function, whose reals are "double" or "float"; constants that nobody uses are left out."""

    def __init__(self, real: str) -> None:
        self.real_type = real
        self.result = "0"
        self.depth = 1  #: of the block at hand
        self._lines: list[tuple[int, str | None, str]] = []  # depth, the constant it defines, text
        self._names = 0
        self._arrays: dict[tuple[float, ...], str] = {}  # constants that are looked up, by name

    def put(self, text: str) -> None:
        """A statement."""
        self._lines.append((self.depth, None, text))

    def do(self, kind: str, text: str) -> str:
        """A constant."""
        name = self.name()
        self.define(name, f"const {kind} {name} = {text};")
        return name

    def define(self, name: str, text: str) -> None:
        """A statement that defines a constant, if it is used."""
        self._lines.append((self.depth, name, text))

    def alias(self, name: str, text: str) -> None:
        """A pointer with a name, if it is used."""
        self.define(name, f"{self.real_type} *const {name} = {text};")

    def real_do(self, text: str) -> str:
        """A constant real."""
        return self.do(self.real_type, text)

    def name(self, letter: str = "v") -> str:
        """A new name."""
        self._names += 1
        return f"{letter}{self._names}"

    def open_block(self, text: str) -> None:
        """Statements from now on stand in a block, behind this text."""
        self.put(text + " {")
        self.depth += 1

    def close_block(self) -> None:
        self.depth -= 1
        self.put("}")

    def mark(self) -> int:
        """The place of the next statement, for `forget`."""
        return len(self._lines)

    def forget(self, mark: int) -> None:
        """Take back all statements since a mark."""
        del self._lines[mark:]

    def reword(self, mark: int, text: str) -> None:
        """Another text for the statement at a mark."""
        self._lines[mark] = (self._lines[mark][0], None, text)

    @property
    def lines(self) -> list[str]:
        """The statements, without constants that nobody uses."""
        used, kept = set(_WORD.findall(self.result)), []
        for depth, name, text in reversed(self._lines):
            if name is None or name in used:
                used.update(_WORD.findall(text))
                kept.append("    " * depth + text)
        return [*self._array_lines(used), *kept[::-1]]

    def array(self, values: Sequence[float]) -> str:
        """The name of an array of constants."""
        return self._arrays.setdefault(tuple(values), f"constants_{len(self._arrays)}")

    def _array_lines(self, used: set[str]) -> list[str]:
        return [f"    static const {self.real_type} {name}[{len(values)}] = "
                f"{{{', '.join(literal(x, self.real_type) for x in values)}}};"
                for values, name in self._arrays.items() if name in used]

    def used(self) -> set[str]:
        """Names that occur."""
        return set(_WORD.findall("\n".join([*self.lines, self.result])))
