"""Expression graphs as code: one operation of the builder for every node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

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
    Scalar,
)
from bellcrank.target.program import Builder, Real

__all__ = ["NOTHING", "compute", "value_of"]

NOTHING: Mapping[Any, Callable[[str], None]] = MappingProxyType({})


def compute(b: Builder, nodes: Iterable[Scalar], value: dict[Any, str], leaf: Callable[[Any], str],
            done: Mapping[Any, Callable[[str], None]] = NOTHING) -> None:
    """Operands of `nodes` (arguments first) that are not in `value` yet; those of leaves come from `leaf`. What is in
    `done` hears of its node's operand at once.

    Graphs have up to a hundred thousand nodes: operands instead of values, and as little as possible for each.
    """
    pairs: dict[Any, tuple[str, str]] = {}

    def pair(angle: Any) -> tuple[str, str]:
        if angle not in pairs:
            pairs[angle] = b.sincos(value[angle])
        return pairs[angle]

    make: dict[str, Callable[..., str]] = {
        ADD: b.add, SUB: b.sub, MUL: b.mul, DIV: b.div, NEG: b.neg, SQRT: b.sqrt, FLOOR: b.floor,
        LESS: lambda x, y, yes, no: b.select(b.real_compare("<", x, y), yes, no),
        **{name: _library(b, name) for name in (EXP, LOG, TANH, ATAN2)}}
    number = b.number
    for node in nodes:
        if node in value:
            continue
        op, args = node.op, node.args
        if op is LEAF:
            value[node] = leaf(args[0])
            continue
        if op is SIN:
            value[node] = pair(args[0])[0]
        elif op is COS:
            value[node] = pair(args[0])[1]
        elif op is LOCATE or op is ENTRY:
            value[node] = (b.locate if op is LOCATE else b.entry)(value[args[0]], args[1].values)
        else:
            value[node] = make[op](*[value[a] if type(a) is Scalar else number(a) for a in args])
        if node in done:
            done[node](value[node])


def _library(b: Builder, name: str) -> Callable[..., str]:
    return lambda *operands: b.library(name, *operands)


def value_of(b: Builder, entry: Any, value: dict[Any, str]) -> Real:
    """An entry of a result: a node's value, or a number."""
    return Real(b, value[entry] if type(entry) is Scalar else b.number(float(entry)))
