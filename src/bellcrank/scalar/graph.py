"""Traced scalars: numbers that record what is done to them.

A `Graph` holds every distinct operation once (hash-consing): equal subexpressions meet, constants
fold, zeros and ones vanish while the expression is being built. Plain floats stay plain floats, so
an algorithm run on numbers never touches a graph.

Subtraction and negation are kept in a normal form (signs move outwards through products), so that
``a * -b`` and ``-(a * b)`` are one node.
"""

from __future__ import annotations

import hashlib
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeAlias

__all__ = ["ADD", "ATAN2", "COS", "DIV", "ENTRY", "EXP", "FLOOR", "LEAF", "LESS", "LOCATE", "LOG", "MUL", "NEG", "SIN",
           "SQRT", "SUB", "TANH", "Graph", "Number", "Scalar", "digest", "is_constant", "is_zero", "nearest_first",
           "reachable"]

LEAF, ADD, SUB, MUL, DIV, NEG = "leaf", "add", "sub", "mul", "div", "neg"
SQRT, SIN, COS, EXP, LOG, TANH, LESS, ATAN2 = "sqrt", "sin", "cos", "exp", "log", "tanh", "less", "atan2"
#: operations whose results jump; `scalar.lookup` has those with constants
FLOOR, LOCATE, ENTRY = "floor", "locate", "entry"

#: the one object of each name
_OPERATIONS = {op: op for op in (LEAF, ADD, SUB, MUL, DIV, NEG, SQRT, SIN, COS, EXP, LOG, TANH, LESS, ATAN2,
                               FLOOR, LOCATE, ENTRY)}

#: A float, a traced scalar, or anything that behaves like one (a NumPy array, a `Jet`).
Number: TypeAlias = Any


def is_zero(x: Number) -> bool:
    """Whether a number is zero in every state: the plain float 0.0.

    Arrays and traced scalars are never that, whatever their values: those belong to one state. An algorithm that leaves
    out terms which vanish asks this, so that it does the same on floats, arrays and traced scalars.

    >>> is_zero(0.0), is_zero(-0.0), is_zero(1.0), is_zero(Graph().leaf("q"))
    (True, True, False, False)
    """
    return type(x) is float and x == 0.0


def is_constant(x: Number) -> bool:
    """Whether a number is the same in every state: a plain float or int, no value of one state.

    >>> import numpy as np
    >>> is_constant(2.0), is_constant(np.float64(2.0)), is_constant(Graph().leaf("q"))
    (True, False, False)
    """
    return type(x) is float or type(x) is int


class Scalar:
    """One node of a `Graph`. Supports arithmetic with floats and with scalars of the same graph."""

    __slots__ = ("args", "graph", "index", "op")
    __array_ufunc__ = None  # let np.float64 * Scalar reach __rmul__

    def __init__(self, graph: Graph, op: str, args: tuple[Any, ...], index: int) -> None:
        self.graph = graph
        self.op = op
        self.args = args
        self.index = index

    def __add__(self, other: Number) -> Number:
        if type(other) is not Scalar:
            other = _as_float(other)
            if other is NotImplemented:
                return NotImplemented
            return self if other == 0.0 else self.graph.pair(ADD, self, other)
        if other.op is NEG:
            return self - other.args[0]
        if self.op is NEG:
            return other - self.args[0]
        if self.index > other.index:
            self, other = other, self
        return self.graph.pair(ADD, self, other)

    __radd__ = __add__

    def __sub__(self, other: Number) -> Number:
        if type(other) is not Scalar:
            other = _as_float(other)
            return NotImplemented if other is NotImplemented else self + (-other)
        if other is self:
            return 0.0
        if other.op is NEG:
            return self + other.args[0]
        if self.op is NEG:
            return -(self.args[0] + other)
        return self.graph.pair(SUB, self, other)

    def __rsub__(self, other: Number) -> Number:
        other = _as_float(other)
        if other is NotImplemented:
            return NotImplemented
        if other == 0.0:
            return -self
        if self.op is NEG:
            return self.args[0] + other
        return self.graph.pair(SUB, other, self)

    def __neg__(self) -> Scalar:
        op = self.op
        if op is NEG:
            return self.args[0]  # type: ignore[no-any-return]
        if op is SUB:
            first, second = self.args
            if type(first) is float:  # a number is always added, so that equal expressions are equal graphs
                return self.graph.pair(ADD, second, -first)
            return self.graph.pair(SUB, second, first)
        if op is MUL and type(self.args[0]) is float:
            return self.graph.pair(MUL, -self.args[0], self.args[1])
        return self.graph.node(NEG, self)

    def __abs__(self) -> Scalar:
        return self.graph.node(LESS, self, 0.0, -self, self)

    def __mul__(self, other: Number) -> Number:
        if type(other) is not Scalar:
            other = _as_float(other)
            if other is NotImplemented:
                return NotImplemented
            return self._scaled(other)
        if other.op is NEG:
            return -(self * other.args[0])
        if self.op is NEG:
            return -(self.args[0] * other)
        if self.index > other.index:
            self, other = other, self
        return self.graph.pair(MUL, self, other)

    __rmul__ = __mul__

    def _scaled(self, factor: float) -> Number:
        if factor == 0.0:
            return 0.0
        if factor == 1.0:
            return self
        if factor == -1.0:
            return -self
        if self.op is NEG:
            return self.args[0]._scaled(-factor)
        if self.op is MUL and type(self.args[0]) is float and 1e-150 < abs(factor * self.args[0]) < 1e150:
            return self.args[1]._scaled(factor * self.args[0])
        return self.graph.pair(MUL, factor, self)

    def __truediv__(self, other: Number) -> Number:
        if type(other) is not Scalar:
            other = _as_float(other)
            if other is NotImplemented:
                return NotImplemented
            if 0.0 < abs(other) < 1e-150:  # its inverse may overflow
                return self.graph.pair(DIV, self, other)
            return self._scaled(1.0 / other)
        if other is self:
            return 1.0
        if other.op is NEG:
            return -(self / other.args[0])
        if self.op is NEG:
            return -(self.args[0] / other)
        return self.graph.pair(DIV, self, other)

    def __rtruediv__(self, other: Number) -> Number:
        other = _as_float(other)
        if other is NotImplemented:
            return NotImplemented
        if other == 0.0:
            return 0.0
        if self.op is NEG:
            return -(other / self.args[0])
        return self.graph.pair(DIV, other, self)

    def __pow__(self, power: object) -> Number:
        if power == 0.5:
            return self.graph.node(SQRT, self)
        if not isinstance(power, int):
            raise TypeError("a traced scalar can be raised to whole powers and to 0.5 only; "
                            "write exp(p * log(x)) for other powers")
        if power < 0:
            return 1.0 / self**-power
        if power == 0:
            return 1.0
        half = self ** (power // 2) if power > 1 else 1.0
        return half * half * self if power % 2 else half * half

    def __bool__(self) -> bool:
        raise TypeError("a traced scalar has no truth value: use bellcrank.math.select_less(a, b, x, y), not `if`")

    def __float__(self) -> float:
        raise TypeError("a traced scalar has no value while it is being traced; use the functions "
                        "of bellcrank.math instead of the standard library's")

    def __reduce__(self) -> tuple[Any, ...]:
        return _node_of, (self.graph, self.index)

    def __repr__(self) -> str:
        return f"<{self.op} {self.args[0]!r}>" if self.op is LEAF else f"<{self.op} #{self.index}>"


def _as_float(value: Any) -> Any:
    if type(value) is float:
        return value
    if isinstance(value, (int, float)) or getattr(value, "shape", None) == ():
        return float(value)
    return NotImplemented


class Graph:
    """A table of distinct operations in the order of their first use (a topological order)."""

    def __init__(self) -> None:
        self.nodes: list[Scalar] = []
        self._table: dict[tuple[Any, ...], Scalar] = {}

    def leaf(self, key: Hashable) -> Scalar:
        """The input called `key`; the same object every time."""
        return self.node(LEAF, key)

    def node(self, op: str, *args: Any) -> Scalar:
        key = (op, *args)
        found = self._table.get(key)
        if found is None:
            found = Scalar(self, op, args, len(self.nodes))
            self._table[key] = found
            self.nodes.append(found)
        return found

    def pair(self, op: str, a: Any, b: Any) -> Scalar:
        """`node` of two arguments, as most are."""
        key = (op, a, b)
        found = self._table.get(key)
        if found is None:
            found = Scalar(self, op, (a, b), len(self.nodes))
            self._table[key] = found
            self.nodes.append(found)
        return found

    def forget(self, size: int) -> None:
        """Take away all operations but the first ones, which nothing may use any more."""
        for node in self.nodes[size:]:
            del self._table[(node.op, *node.args)]
        del self.nodes[size:]

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled and copied as a table: operations are told apart by identity, and a chain of them may be long."""
        rows = tuple((n.op, n.args if n.op is LEAF else tuple(a.index if type(a) is Scalar else a for a in n.args))
                     if self._owns(n) else (LEAF, (("of another graph", n.index),)) for n in self.nodes)
        return _graph_of, (rows,)

    def _owns(self, node: Scalar) -> bool:
        """Whether an operation is one on scalars of this graph: a function that failed may have left others."""
        return all(type(a) is not Scalar or a.graph is self for a in node.args)


def _graph_of(rows: Sequence[tuple[str, tuple[Any, ...]]]) -> Graph:
    """The graph with these nodes; arguments are floats, and places of earlier nodes."""
    graph = Graph()
    for op, args in rows:
        known = _OPERATIONS[op]
        graph.node(known, *(args if known is LEAF else (graph.nodes[a] if type(a) is int else a for a in args)))
    return graph


def _node_of(graph: Graph, index: int) -> Scalar:
    return graph.nodes[index]


#: from so many roots on, most of a graph is reached: all of it is looked at, which takes a third of the time
_MANY = 8


def reachable(roots: Iterable[Any]) -> list[Scalar]:
    """The scalars that `roots` depend on (themselves included), arguments before users."""
    scalars = [r for r in roots if type(r) is Scalar]
    if len(scalars) >= _MANY and all(r.graph is scalars[0].graph for r in scalars):
        return _reached_from_many(scalars)
    seen: set[Scalar] = set()
    stack = scalars
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.op is not LEAF:
            stack.extend(a for a in node.args if type(a) is Scalar and a not in seen)
    return sorted(seen, key=lambda n: n.index)


def _reached_from_many(roots: Sequence[Scalar]) -> list[Scalar]:
    """`reachable`, backwards through the nodes of the graph, which come after their arguments."""
    nodes = roots[0].graph.nodes
    needed = bytearray(max(r.index for r in roots) + 1)
    for root in roots:
        needed[root.index] = 1
    found = []
    for i in range(len(needed) - 1, -1, -1):
        if needed[i]:
            node = nodes[i]
            found.append(node)
            if node.op is not LEAF:
                for a in node.args:
                    if type(a) is Scalar:
                        needed[a.index] = 1
    found.reverse()
    return found


def nearest_first(roots: Iterable[Any]) -> list[Scalar]:
    """The same, root by root: what one needs is computed right before it, so that fewer values are kept meanwhile."""
    seen: set[Scalar] = set()
    out: list[Scalar] = []
    for root in roots:
        stack = [root] if type(root) is Scalar else []
        while stack:
            node = stack[-1]
            waiting = [] if node.op is LEAF or node in seen else [
                a for a in node.args if type(a) is Scalar and a not in seen]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if node not in seen:
                seen.add(node)
                out.append(node)
    return out


def digest(roots: Sequence[Any]) -> str:
    """A fingerprint of the computation behind `roots`: equal for graphs traced in the same way."""
    nodes = reachable(roots)
    place = {node: str(i) for i, node in enumerate(nodes)}
    lines: list[str] = []
    for node in nodes:
        op, args = node.op, node.args
        if op is LEAF:
            lines.append(f"{args[0]!r}")
        elif len(args) == 2:  # as most have
            a, b = args
            lines.append(f"{op} {place[a] if type(a) is Scalar else a.hex()} "
                         f"{place[b] if type(b) is Scalar else b.hex()}")
        else:
            lines.append(" ".join([op, *(place[a] if type(a) is Scalar else a.hex() for a in args)]))
    ends = [place[r] if type(r) is Scalar else float(r).hex() for r in roots]
    return hashlib.sha256("\n".join([*lines, "", *ends]).encode()).hexdigest()
