"""Derivatives of traced expressions, as expressions of the same graph.

Three ways through the same local derivatives (A. Griewank and A. Walther, "Evaluating Derivatives", SIAM 2008):

- `tangents`: forward, along the order of the graph; one pass for a direction, or for many that touch little;
- `adjoints`: backward; one pass for a weighted sum of the results, whatever the number of variables;
- `jacobian`: all entries, by eliminating vertices of the graph in an order that keeps the work small
  (their chapter 10: of all vertices left, the one with the fewest products of incoming and outgoing edges).

What jumps has the derivative of the side it is on: `select_less` passes on the derivative of the branch taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from bellcrank.scalar import functions as fn
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
    is_zero,
    reachable,
)

__all__ = ["adjoints", "combined", "jacobian", "tangents"]


def local(node: Scalar) -> list[tuple[Scalar, Number]]:
    """The arguments of an operation that are no constants, each with the operation's derivative by it."""
    op, args = node.op, node.args
    slopes: Sequence[Number]
    if op is MUL:
        slopes = args[1], args[0]
    elif op is ADD:
        slopes = 1.0, 1.0
    elif op is SUB:
        slopes = 1.0, -1.0
    elif op is NEG:
        slopes = (-1.0,)
    elif op is DIV:
        inverse = 1.0 / args[1]
        slopes = inverse, -(node * inverse)
    else:
        slopes = _SLOPES[op](node, *args)
    return [(a, s) for a, s in zip(args, slopes, strict=True) if type(a) is Scalar and not is_zero(s)]


def _of_atan2(node: Scalar, y: Number, x: Number) -> tuple[Number, Number]:
    r = 1.0 / (x * x + y * y)
    return x * r, -(y * r)


_SLOPES: Mapping[str, Any] = {
    SQRT: lambda node, x: (0.5 / node,),
    SIN: lambda node, x: (fn.cos(x),),
    COS: lambda node, x: (-fn.sin(x),),
    EXP: lambda node, x: (node,),
    LOG: lambda node, x: (1.0 / x,),
    TANH: lambda node, x: (1.0 - node * node,),
    ATAN2: _of_atan2,
    FLOOR: lambda node, x: (0.0,),
    LOCATE: lambda node, x, knots: (0.0, 0.0),
    ENTRY: lambda node, index, values: (0.0, 0.0),
    LESS: lambda node, a, b, x, y: (0.0, 0.0, fn.select_less(a, b, 1.0, 0.0), fn.select_less(a, b, 0.0, 1.0)),
}


def tangents(roots: Sequence[Number], seeds: Mapping[Scalar, Mapping[Any, Number]]) -> list[dict[Any, Number]]:
    """The derivatives of `roots` along directions: for each root, {direction: derivative} where it is not zero.

    `seeds` says how fast each variable changes along each direction. Cost: a few operations for every operation and
    every direction that reaches it.
    """
    found: dict[Scalar, dict[Any, Number]] = {s: dict(rates) for s, rates in seeds.items()}
    for node in reachable(roots):
        if node in seeds or node.op is LEAF:
            continue
        edges: dict[Scalar, Number] = {}
        for argument, slope in local(node):
            if argument in found:
                edges[argument] = edges[argument] + slope if argument in edges else slope
        if edges and (rates := combined(edges, found)):
            found[node] = rates
    return [dict(found.get(r, {})) if type(r) is Scalar else {} for r in roots]


def adjoints(roots: Sequence[Number], weights: Sequence[Number], variables: Iterable[Scalar]) -> dict[Scalar, Number]:
    """The derivatives of the sum of weights times roots by variables, where they are not zero. Cost: a few times that
    of the roots, whatever the number of variables."""
    wanted = set(variables)
    active = _active(roots, wanted)
    total: dict[Scalar, Number] = {}
    for root, weight in zip(roots, weights, strict=True):
        if type(root) is Scalar and root in active:
            total[root] = total[root] + weight if root in total else weight
    for node in reversed(reachable(roots)):
        if node.op is LEAF or node in wanted or node not in total:
            continue
        weight = total.pop(node)
        for argument, slope in local(node):
            if argument in active:
                part = slope * weight
                total[argument] = total[argument] + part if argument in total else part
    return {v: x for v, x in total.items() if not is_zero(x)}


def _active(roots: Iterable[Number], variables: Iterable[Scalar]) -> set[Scalar]:
    """The nodes behind `roots` that depend on the variables, themselves included."""
    active = set(variables)
    for node in reachable(roots):
        if node.op is not LEAF and any(type(a) is Scalar and a in active for a in node.args):
            active.add(node)
    return active


def jacobian(roots: Sequence[Number], seeds: Mapping[Scalar, Mapping[Any, Number]]) -> list[dict[Any, Number]]:
    """The same as `tangents`, by elimination of vertices: less work where results and directions are many.

    First by the variables themselves, which keeps what is sparse sparse, then along the directions.
    """
    into: dict[Any, dict[Any, Number]] = {}  # edges by their end: {start: derivative}
    out: dict[Any, dict[Any, None]] = {}  # ends by starts: sets, in an order that is the same every time
    active, inner = _active(roots, seeds), []

    def join(end: Any, edges: dict[Any, Number]) -> None:
        into[end] = edges
        out.setdefault(end, {})
        for start in edges:
            out.setdefault(start, {})[end] = None

    for node in reachable(roots):
        if node in active and node not in seeds:
            inner.append(node)
            edges: dict[Any, Number] = {}
            for argument, slope in local(node):
                if argument in active:
                    edges[argument] = edges[argument] + slope if argument in edges else slope
            join(node, edges)
    for i, root in enumerate(roots):
        if type(root) is Scalar and root in active:
            join(i, {root: 1.0})
    _eliminate(into, out, inner)
    return [combined(into.get(i, {}), seeds) for i in range(len(roots))]


def combined(row: Mapping[Any, Number], seeds: Mapping[Any, Mapping[Any, Number]]) -> dict[Any, Number]:
    """A row of derivatives times how the variables change: {direction: derivative} where it is not zero."""
    total: dict[Any, Number] = {}
    for variable, slope in row.items():
        for direction, rate in seeds.get(variable, {}).items():
            part = slope * rate
            total[direction] = total[direction] + part if direction in total else part
    return {d: x for d, x in total.items() if not is_zero(x)}


def _eliminate(into: dict[Any, dict[Any, Number]], out: dict[Any, dict[Any, None]], inner: list[Scalar]) -> None:
    """Remove the inner vertices, each time one of least work; of several, the one nearest to the results."""
    def entry(v: Scalar) -> tuple[int, int, Scalar]:
        return len(into[v]) * len(out[v]), -v.index, v

    heap = [entry(v) for v in inner]
    heapq.heapify(heap)
    left = set(inner)
    while heap:
        work, _, v = heapq.heappop(heap)
        if v not in left or work != len(into[v]) * len(out[v]):
            continue  # gone, or in the heap with its present work
        left.discard(v)
        before, after = into.pop(v), out.pop(v)
        for w in after:
            edges = into[w]
            slope = edges.pop(v)
            for p, rate in before.items():
                part = slope * rate
                edges[p] = edges[p] + part if p in edges else part
                out[p][w] = None
        for p in before:
            del out[p][v]
        for x in (*before, *after):
            if x in left:
                heapq.heappush(heap, entry(x))
