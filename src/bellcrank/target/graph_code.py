"""Expression graphs as code: one operation of the builder for every node, and kernels that are straight lines of these:
the whole computation, or that of each entry, is one graph, and constants are literals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

from bellcrank.scalar.graph import (
    ADD,
    ATAN2,
    COS,
    DIV,
    EXP,
    LEAF,
    LESS,
    LOG,
    MUL,
    NEG,
    SIN,
    SQRT,
    SUB,
    TANH,
    Scalar,
    nearest_first,
    reachable,
)
from bellcrank.target.array_loops import each
from bellcrank.target.calling import Body, LaneStates, finite_array, finite_sum
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["compute", "entry_by_entry", "scratch", "unrolled", "value_of"]

#: results from which on they pass through scratch memory
_MANY = 64

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
        ADD: b.add, SUB: b.sub, MUL: b.mul, DIV: b.div, NEG: b.neg, SQRT: b.sqrt,
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
        else:
            value[node] = make[op](*[value[a] if type(a) is Scalar else number(a) for a in args])
        if node in done:
            done[node](value[node])


def _library(b: Builder, name: str) -> Callable[..., str]:
    return lambda *operands: b.library(name, *operands)


def value_of(b: Builder, entry: Any, value: dict[Any, str]) -> Real:
    """An entry of a result: a node's value, or a number."""
    return Real(b, value[entry] if type(entry) is Scalar else b.number(float(entry)))


def scratch(outputs: int, width: int) -> int:
    """Reals per lane that a kernel of batches needs to work in: results that are many are left with their lanes side by
    side first, because storing them lane by lane takes as many instructions as there are lanes."""
    return outputs if width > 1 and outputs >= _MANY else 0


def stores(b: Builder, outputs: Sequence[Any], place: Memory) -> dict[Any, Callable[[str], None]]:
    """What puts results of operations where they belong as soon as they are known: they need not be kept then."""
    at: dict[Any, list[int]] = {}
    for i, out in enumerate(outputs):
        if type(out) is Scalar and out.op is not LEAF:
            at.setdefault(out, []).append(i)

    def store(places: list[int], operand: str) -> None:
        for i in places:
            place[i] = Real(b, operand)

    return {out: partial(store, places) for out, places in at.items()}


def unrolled(b: Builder, outputs: Sequence[Any], inputs: Mapping[str, int]) -> Body:
    """The body of a kernel (see `target.calling`); leaves of the graph are keys (name, index) of the inputs."""

    def body(states: LaneStates) -> Real | None:
        value: dict[Any, str] = {}
        many = len(outputs) >= _MANY
        nodes = (nearest_first if many else reachable)(outputs)
        pairs = [(name, i) for name, size in inputs.items() for i in range(size)]
        if not states.checked:
            used = {node.args[0] for node in nodes if node.op is LEAF}
            pairs = [pair for pair in pairs if pair in used]
        loaded = {(name, i): states.inputs[name][i] for name, i in pairs}
        check = finite_sum(b, loaded.values(), b.constant(0.0)) if states.checked else None
        target = states.target(len(outputs))
        through = states.spread and scratch(len(outputs), b.width)
        place = b.memory("work") if through else target
        done = stores(b, outputs, place) if many else NOTHING
        compute(b, nodes, value, lambda key: loaded[key].operand, done)
        results = [value_of(b, out, value) for out in outputs]
        for i, (out, result) in enumerate(zip(outputs, results, strict=True)):
            if out not in done:
                place[i] = result
        if through:
            b.unpack(place, target, len(outputs))
        return None if check is None else finite_sum(b, results, check)

    return body


def entry_by_entry(b: Builder, entry: Any, inputs: Mapping[str, int], size: int) -> Body:
    """The body of a kernel whose entries are all the same expression of the inputs' entries, keys (name,)."""

    def body(states: LaneStates) -> Real | None:
        target, count = states.target(size), Int(b, str(size))

        def one(j: Int) -> None:
            value: dict[Any, str] = {}
            compute(b, reachable([entry]), value, lambda key: states.inputs[key[0]][j].operand)
            target[j] = value_of(b, entry, value)

        each(b, count, one)
        if not states.checked:
            return None
        check = finite_array(b, target, count, b.constant(0.0))
        for name, length in inputs.items():
            check = finite_array(b, states.inputs[name], Int(b, str(length)), check)
        return check

    return body
