"""Trace a function of a tree and choose its schedule: one graph, or loops over records. The one place that does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from bellcrank.errors import SingularError
from bellcrank.lowering.ahead import laned
from bellcrank.lowering.base_shapes import shapes_for
from bellcrank.lowering.function import Function, Read, direct, input_sizes, place
from bellcrank.lowering.group import direct_groups, place_groups
from bellcrank.lowering.group_kinds import roll_groups
from bellcrank.lowering.link_kinds import RolledProgram, roll, same_entry
from bellcrank.scalar.count import OperationCount, count, count_nodes
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar, reachable
from bellcrank.schedule.sweeps import Direct
from bellcrank.target.column_code import ColumnGraphs, split
from bellcrank.target.kernel_source import (
    ColumnKernel,
    EntryKernel,
    GraphKernel,
    KernelSource,
    RolledData,
    RolledKernel,
)
from bellcrank.topology.builder import collector_paused
from bellcrank.topology.tree import Tree

__all__ = ["UNROLL_LINKS", "GraphTracer", "column_source", "count_traced", "entries_of", "kernel_source", "read_inputs",
           "together", "trace"]

#: trees up to this many links are traced whole ...
UNROLL_LINKS = 48
#: ... and compiled so if their result takes at most this many operations (about a fifth of a millisecond each)
UNROLL_NODES = 10_000


def read_inputs(tree: Tree, function: Function, wrenches: bool) -> dict[str, int]:
    """The inputs of a function with their lengths: its own, then time, parameters and wrenches if used."""
    sizes = {**input_sizes(tree), **dict(function.sizes)}
    names = list(function.inputs)
    if tree.timed:
        names.append("t")
    if tree.parameters:
        names.append("parameters")
    if wrenches:
        names.append("wrench")
    return {name: sizes[name] for name in names}


def entries_of(tree: Tree, function: Function, read: Read, wrenches: bool) -> list[Number]:
    """The entries of a function's result, computed at once on whatever scalars `read` gives."""
    if function.made is not None:
        return evaluate(GraphTracer(tree, wrenches)(function), lambda key: read(*key))
    if not function.flexible:
        tree.refuse_flexible(function.name.removeprefix("constrained_"))
    tree = _swept(tree, function)
    flat = direct(tree, function.inputs, read, wrenches)
    if function.groups:
        groups = direct_groups(flat, shapes_for(function)(tree))
        entries = place_groups(function, tree, function.text(groups))
    else:
        entries = place(function, tree, flat, function.text(flat))
    return flat.with_loop_joints(function.loop_joints, entries)


def trace(tree: Tree, function: Function, wrenches: bool, schedule: str) -> list[Number] | RolledProgram:
    """The function as one graph (its result entries), or as a rolled program.

    `schedule` is "unrolled", "rolled" or "auto". Springs reach across links: with them there are no loops over records.
    """
    base = function if function.product is None else function.product.function
    if function.product is not None and rolls(tree, schedule):
        with collector_paused():
            return (roll_groups if base.groups else roll)(_swept(tree, base), function, wrenches)
    if function.made is not None:
        return GraphTracer(tree, wrenches)(function)
    whole = schedule == "unrolled" or bool(tree.pairs) or tree.sees_machine or tree.whole or function.linear or (
        bool(tree.flexible) and function.layout in ("matrix", "columns"))
    if (schedule != "rolled" and tree.n <= UNROLL_LINKS) or whole:
        graph = Graph()
        with collector_paused():
            entries = _traced(graph, tree, function, wrenches)
        needed = [x for x in entries if type(x) is Scalar]
        if whole or function.single or (function.whole and not function.groups) or \
                len(graph.nodes) <= UNROLL_NODES or len(reachable(needed)) <= UNROLL_NODES:
            return entries
    with collector_paused():
        return (roll_groups if function.groups else roll)(_swept(tree, function), function, wrenches)


def _swept(tree: Tree, function: Function) -> Tree:
    """The tree whose links a function sweeps over."""
    return tree.extended if function.every_joint else tree


def rolls(tree: Tree, schedule: str) -> bool:
    """Whether products are rolled into loops: where all functions are, whatever the length of the code otherwise."""
    if tree.pairs or tree.sees_machine or tree.whole:
        return False
    return schedule == "rolled" or (schedule == "auto" and tree.n > UNROLL_LINKS)


def together(traces: Sequence[Sequence[Number]]) -> list[Number]:
    """Several traced functions in one graph, so that they share what is common; their results follow each other."""
    graph = Graph()
    return [x for entries in traces for x in evaluate(entries, graph.leaf)]


class GraphTracer:
    """Traces functions of a tree, those made of others included, into one graph."""

    def __init__(self, tree: Tree, wrenches: bool, graph: Graph | None = None) -> None:
        self.tree, self.wrenches, self.graph = tree, wrenches, Graph() if graph is None else graph

    def __call__(self, function: Function) -> list[Number]:
        """The entries of a function."""
        if function.made is not None:
            return function.made(self)
        return _traced(self.graph, self.tree, function, self.wrenches)

    def machine(self, inputs: tuple[str, ...]) -> Direct:
        """The machine as its texts see it, with these inputs traced."""
        return direct(self.tree, inputs, lambda name, i: self.graph.leaf((name, i)), self.wrenches)

    def planned(self, plan: Any) -> GraphTracer:
        """Traces the same tree by another plan of its loops, into the same graph."""
        return self if plan is self.tree.plan else GraphTracer(replace(self.tree, plan=plan), self.wrenches, self.graph)


def _traced(graph: Graph, tree: Tree, function: Function, wrenches: bool) -> list[Number]:
    try:
        entries = entries_of(tree, function, lambda name, i: graph.leaf((name, i)), wrenches)
    except ZeroDivisionError:
        raise SingularError(f"{function.name} of {tree.name!r} divides by zero in every state: a joint has no inertia "
                            "to move") from None
    return [x if type(x) is Scalar else float(x) for x in entries]


def kernel_source(tree: Tree, function: Function, inputs: Mapping[str, int], traced: list[Number] | RolledProgram
                  ) -> KernelSource:
    """What a backend compiles."""
    if isinstance(traced, list):
        return GraphKernel(traced, inputs)
    entry = None if function.groups or function.product is not None else same_entry(traced, function.size(tree))
    if entry is not None:
        return EntryKernel(entry, inputs, function.size(tree))

    def kernel(program: RolledProgram) -> RolledKernel:
        data = RolledData(program.numbers, program.table, program.runs, program.work)
        return RolledKernel(program.plan, inputs, program.local, function.size(tree), data, tree.nu,
                            function.layout == "matrix")

    def beside(lanes: int) -> RolledKernel | None:
        ahead = traced.ahead()
        return None if ahead is None else kernel(laned(ahead, lanes))

    return replace(kernel(traced), beside=beside)


def column_source(tree: Tree, function: Function, inputs: Mapping[str, int], wrenches: bool,
                  flat: Callable[[], list[Number]]) -> ColumnKernel:
    """What a backend compiles of a function that has columns; `flat` traces it as one graph."""
    make = function.columns
    assert make is not None

    def columns() -> ColumnGraphs:
        with collector_paused():
            return split(*make(GraphTracer(tree, wrenches)))

    return ColumnKernel(columns, lambda: GraphKernel(flat(), inputs), inputs, function.size(tree))


def count_traced(tree: Tree, traced: list[Number] | RolledProgram) -> OperationCount:
    """The operations of one evaluation."""
    if isinstance(traced, list):
        return count(traced)
    total = OperationCount()
    walked = any(code.walks for code in traced.plan.codes)
    passing = _passing(tree, traced) if walked else [0] * len(traced.plan.codes)
    for index, (code, times) in enumerate(zip(traced.plan.codes, traced.counts, strict=True)):
        for walk in code.walks.values():
            total = total.plus(count_nodes(set(walk.body) - set(code.statics)), passing[index])
        for sweep in code.sweeps:
            total = total.plus(count_nodes(set(sweep.body) - set(code.statics)), times)
            # what children send is added up, by all but the first of them
            if sweep.adds_to_parent:
                total = total.plus(OperationCount(adds=len(sweep.sent)), times)
    return total


def _passing(tree: Tree, program: RolledProgram) -> list[int]:
    """How often paths to the root pass links of each kind, one path for every speed."""
    outboard = [0 if j is None else j.nu for j in tree.joints]
    for link in range(tree.n, 0, -1):
        outboard[tree.parent[link]] += outboard[link]
    passing = [0] * len(program.plan.codes)
    for link in range(1, tree.n + 1):
        passing[program.table[link, 1]] += outboard[link]
    return passing
