"""Kernels that compute matrices column by column: one graph for what all columns share and for what each is made from,
then a loop whose body is another graph.

The first graph leaves its results in memory: what is shared, then for every matrix the inputs of its columns, row by
row. The body reads ("shared", i) and ("column", r), and its results are rows of the matrix. Columns of one state fill
lanes side by side; the last block of them overlaps the one before, so that none is narrower.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

from bellcrank.scalar.evaluation import evaluate_nodes
from bellcrank.scalar.graph import LEAF, Graph, Number, Scalar, digest, nearest_first, reachable
from bellcrank.target.calling import Body, LaneStates, finite_array, finite_sum
from bellcrank.target.cut_code import Pieces
from bellcrank.target.operation_code import compute, value_of
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["ColumnGraphs", "by_columns", "split"]


@dataclass(frozen=True)
class ColumnGraphs:
    """Entries of a result, then matrices found column by column, each row by row."""

    entries: tuple[Number, ...]
    shared: tuple[Number, ...]
    #: inputs of the columns of every matrix, row by row
    given: tuple[tuple[Number, ...], ...]
    rows: int  #: inputs of a column
    step: tuple[Number, ...]  #: leaves are ("shared", i) and ("column", r)

    @property
    def widths(self) -> list[int]:
        """Columns of the matrices."""
        return [len(g) // self.rows for g in self.given]

    @property
    def size(self) -> int:
        """Entries of the result."""
        return len(self.entries) + len(self.step) * sum(self.widths)

    @property
    def work(self) -> int:
        """Reals of memory between the graphs, and between the pieces of the first."""
        return len(self.shared) + self.rows * sum(self.widths) + self.pieces.size

    @cached_property
    def pieces(self) -> Pieces:
        """The first graph in pieces."""
        return Pieces(nearest_first(self.first))

    @property
    def first(self) -> list[Number]:
        """All results of the first graph."""
        return [*self.entries, *self.shared, *(x for g in self.given for x in g)]

    @cached_property
    def nodes(self) -> int:
        """Operations in all, with columns one by one."""
        return len(reachable(self.first)) + sum(self.widths) * len(reachable(self.step))

    @cached_property
    def key(self) -> str:
        """A short text that determines it."""
        first = digest(self.first)
        return f"columns {first} {digest(self.step)} {len(self.entries)} {self.rows} {self.widths}"


def split(entries: Sequence[Number], given: Sequence[Sequence[Number]], rows: int, step: Sequence[Number]
          ) -> ColumnGraphs:
    """From one graph in which ("column", r) are leaves: what does not depend on them is shared."""
    depends: set[Scalar] = set()
    shared: dict[Scalar, int] = {}
    nodes = reachable(step)
    for node in nodes:
        if (node.op is LEAF and node.args[0][0] == "column") or (
                node.op is not LEAF and any(type(a) is Scalar and a in depends for a in node.args)):
            depends.add(node)
    for node in [*(a for n in nodes if n in depends and n.op is not LEAF for a in n.args), *step]:
        if type(node) is Scalar and node not in depends:
            shared.setdefault(node, len(shared))
    graph = Graph()
    inner: dict[Scalar, Number] = {node: graph.leaf(("shared", i)) for node, i in shared.items()}
    evaluate_nodes((n for n in nodes if n in depends), inner, graph.leaf)
    return ColumnGraphs(tuple(entries), tuple(shared), tuple(map(tuple, given)), rows,
                        tuple(inner[x] if type(x) is Scalar else x for x in step))


def by_columns(b: Builder, graphs: ColumnGraphs, inputs: Mapping[str, int]) -> Body:
    """The body of a kernel."""
    def body(states: LaneStates) -> Real | None:
        work, target = b.memory("work", aligned=True), states.target(graphs.size)
        place = work.at(graphs.work) if states.spread else target
        loaded = {(name, i): states.inputs[name][i] for name, size in inputs.items() for i in range(size)}
        check = finite_sum(b, loaded.values(), b.constant(0.0)) if states.checked else None
        _first(b, graphs, loaded, work, place)
        source, goal = len(graphs.shared), len(graphs.entries)
        for width, count in _alike(graphs.widths):
            with b.loop(count) as k:
                _matrix(b, graphs, width, work, work.at(k, graphs.rows * width).at(source),
                        place.at(k, len(graphs.step) * width).at(goal))
            source, goal = source + count * graphs.rows * width, goal + count * len(graphs.step) * width
        if check is not None:
            check = finite_array(b, place, Int(b, str(graphs.size)), check)
        if states.spread:
            b.unpack(place, target, graphs.size)
        return check

    return body


def _alike(widths: Sequence[int]) -> list[tuple[int, int]]:
    """Matrices of equal numbers of columns that follow each other: (columns, how many)."""
    out: list[tuple[int, int]] = []
    for n in widths:
        if out and out[-1][0] == n:
            out[-1] = (n, out[-1][1] + 1)
        else:
            out.append((n, 1))
    return out


def _first(b: Builder, graphs: ColumnGraphs, loaded: Mapping[Any, Real], work: Memory, place: Memory) -> None:
    """What columns are made from, in memory."""
    between = [*graphs.shared, *(x for g in graphs.given for x in g)]
    at: dict[Any, list[tuple[Memory, int]]] = {}
    for memory, results in ((work, between), (place, graphs.entries)):
        for i, x in enumerate(results):
            if type(x) is Scalar and x.op is not LEAF:
                at.setdefault(x, []).append((memory, i))
            else:
                memory[i] = loaded[x.args[0]] if type(x) is Scalar else b.constant(float(x))

    def stored(operand: str, places: list[tuple[Memory, int]]) -> None:
        for memory, i in places:
            memory[i] = Real(b, operand)

    done = {x: partial(stored, places=places) for x, places in at.items()}
    graphs.pieces.write(b, loaded.__getitem__, work.at(graphs.work - graphs.pieces.size), work, place, done=done)


def _matrix(b: Builder, graphs: ColumnGraphs, width: int, shared: Memory, given: Memory, out: Memory) -> None:
    """All columns of a matrix."""
    def column(j: Int, spread: bool) -> None:
        value: dict[Any, str] = {}

        def leaf(key: Any) -> str:
            name, i = key
            if name == "column":
                return given.at(i * width)[j].operand
            return (shared.everywhere(i) if spread else shared[i]).operand

        compute(b, reachable(graphs.step), value, leaf)
        for k, x in enumerate(graphs.step):
            out.at(k * width)[j] = value_of(b, x, value)

    with b.side_by_side() as lanes:
        if 1 < lanes <= width:
            with b.loop(-(-width // lanes)) as block:
                column((block * lanes).min(Int(b, str(width - lanes))), True)
            return
    with b.loop(width) as j:
        column(j, False)
