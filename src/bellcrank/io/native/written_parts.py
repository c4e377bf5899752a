"""Names, tables and defaults as model files hold them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.io.common.names import control_character
from bellcrank.io.native.formula import table_word
from bellcrank.mechanism.table import Table

__all__ = ["by_name", "dump_table", "is_default", "writable"]


def dump_table(table: Table) -> dict[str, Any]:
    """A table, one list of values for each point of the first of two arguments."""
    points = [list(axis) for axis in table.points]
    values: list[Any] = list(table.values)
    if len(points) == 2:
        width = len(points[1])
        values = [values[i:i + width] for i in range(0, len(values), width)]
    return {"points": points if len(points) == 2 else points[0], "values": values, "kind": table.kind,
            "extrapolate": table.extrapolate, **({"name": table.name} if table.name != table_word(table) else {})}


def is_default(value: Any, default: float | None) -> bool:
    """Whether a number is the default, sign of zero included."""
    return (isinstance(value, float) and default is not None and value == default
            and math.copysign(1.0, value) == math.copysign(1.0, default))


def writable(name: Any, what: str, *, empty: bool = False) -> str:
    """A name that a file in UTF-8 can hold."""
    try:
        if not isinstance(name, str) or not (name or empty):
            raise ModelError(f"{what} names are texts, got {name!r}")
        name.encode()
    except UnicodeEncodeError:
        raise ModelError(f"{what} {name!r}: the name holds half of a character and cannot be written") from None
    found = control_character(name)
    if found is not None:
        raise ModelError(f"{what} {name!r}: the name holds the control character {found} and cannot be written")
    return name


def by_name(parts: Iterable[Any], what: str, made: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
    """Parts by their names."""
    return {writable(part.name, what): made(part) for part in parts}
