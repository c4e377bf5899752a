"""Values of traced expressions: the graph run on numbers, or on scalars of another graph."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bellcrank.scalar import functions as fn
from bellcrank.scalar import lookup
from bellcrank.scalar.graph import (
    ADD,
    ATAN2,
    COS,
    DIV,
    ENTRY,
    EXP,
    FLOOR,
    LEAF,
    LESS,
    LOCATE,
    LOG,
    MUL,
    NEG,
    SIN,
    SQRT,
    SUB,
    TANH,
    Number,
    Scalar,
    reachable,
)

__all__ = ["evaluate", "evaluate_nodes"]

_FUNCTIONS: Mapping[str, Callable[..., Number]] = {
    SQRT: fn.sqrt, SIN: fn.sin, COS: fn.cos, EXP: fn.exp, LOG: fn.log, TANH: fn.tanh, LESS: fn.select_less,
    ATAN2: fn.atan2, FLOOR: lookup.floor, LOCATE: lookup.locate, ENTRY: lookup.entry}


def evaluate(roots: Sequence[Any], leaf: Callable[[Any], Number] | Mapping[Any, Number],
             functions: Mapping[str, Callable[..., Number]] | None = None,
             constant: Callable[[float], Number] | None = None) -> list[Number]:
    """The values of `roots` when every leaf `key` stands for ``leaf(key)``, and constants for ``constant(value)``.

    The values may be floats, arrays or scalars of another graph; floats among the roots pass through.
    """
    value: dict[Scalar, Number] = {}
    evaluate_nodes(reachable(roots), value, leaf, functions, constant)
    return [value[r] if type(r) is Scalar else r for r in roots]


def evaluate_nodes(nodes: Iterable[Scalar], value: dict[Scalar, Number],
                   leaf: Callable[[Any], Number] | Mapping[Any, Number],
                   functions: Mapping[str, Callable[..., Number]] | None = None,
                   constant: Callable[[float], Number] | None = None) -> None:
    """Add the values of `nodes`, arguments first, to those that are known."""
    table = functions or _FUNCTIONS
    look = leaf.__getitem__ if isinstance(leaf, Mapping) else leaf
    for node in nodes:
        if node.op is LEAF:
            value[node] = look(node.args[0])
            continue
        args = [value[a] if type(a) is Scalar else a for a in node.args]
        if constant is not None:
            args = [constant(a) if type(a) is float else a for a in args]
        if node.op is ADD:
            value[node] = args[0] + args[1]
        elif node.op is MUL:
            value[node] = args[0] * args[1]
        elif node.op is SUB:
            value[node] = args[0] - args[1]
        elif node.op is NEG:
            value[node] = -args[0]
        elif node.op is DIV:
            value[node] = args[0] / args[1]
        else:
            value[node] = table[node.op](*args)
