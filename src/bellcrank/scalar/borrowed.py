"""Functions of users traced in a graph, with scalars that they close over: parameters, which live in another graph."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from bellcrank.errors import ModelError
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar, nearest_first

__all__ = ["traced_with_borrowed"]

#: functions that use parameters are traced in the graph of these, which others may have
_ONE_AT_A_TIME = threading.RLock()


def traced_with_borrowed(trace: Callable[[Graph], list[Number]], graph: Graph, leaf: Callable[[Any], Number], what: str
                         ) -> tuple[list[Number], Graph | None]:
    """The answer of `trace`, which makes its leaves in the graph that it is given, as scalars of `graph`; and the graph
    of the scalars that it closes over, if it does: all leaves stand for ``leaf(key)`` then.

    >>> own, graph = Graph(), Graph()
    >>> gain = own.leaf(("parameter", "gain"))
    >>> (found,), other = traced_with_borrowed(lambda g: [gain * g.leaf("x")], graph, graph.leaf, "the law")
    >>> found.graph is graph, other is own, len(own.nodes)
    (True, True, 1)
    """
    with _ONE_AT_A_TIME:
        entries = trace(graph)
        others = {n.graph for n in nearest_first(entries)} - {graph}
        if not others:
            return entries, None
        for other in others:  # operations on scalars of two graphs belong to neither
            mixed = [n.index for n in other.nodes if any(type(a) is Scalar and a.graph is not other for a in n.args)]
            other.forget(min(mixed, default=len(other.nodes)))
        if len(others) > 1:
            raise ModelError(f"{what} uses parameters of several mechanisms")
        (own,) = others  # that of the parameters: everything is traced in it, and taken out again
        size = len(own.nodes)
        try:
            return evaluate(trace(own), leaf), own
        finally:
            own.forget(size)
