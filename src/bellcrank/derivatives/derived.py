"""Functions of a machine differentiated: `Function`s whose entries are a value and its derivatives.

Matrices are found by elimination of vertices of the graph, those of forward dynamics through the equations that
determine it (`through_inverse`, `through_constraints`); products with a vector by one pass through the graph, forward
or backward, without a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.derivatives.directions import MOTION, Seeds, Solved, Variable, chart, directions, width
from bellcrank.lowering.function import Columns, Function, Tracer
from bellcrank.scalar.derivative import adjoints, combined, jacobian, tangents
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.topology.tree import Tree

__all__ = ["Quantity", "Space", "derivative", "directions_of_plan", "directions_twice", "product_backward",
           "product_forward", "product_twice"]

#: entries, and for each of them {direction: derivative}
Slopes = tuple[list[Number], list[dict[Any, Number]]]


@dataclass(frozen=True)
class Quantity:
    """What is differentiated."""

    inputs: tuple[str, ...]
    size: int  #: number of entries
    entries: Callable[[Tracer], list[Number]]
    #: its own way to values and derivatives, if it has one
    special: Callable[[Tracer, Seeds], Slopes] | None = None
    #: the same for one direction after the other
    solved: Callable[[Tracer, Seeds], Solved] | None = None
    #: whether speeds do not matter though they are inputs
    still: bool = False

    @property
    def motion(self) -> tuple[str, ...]:
        """What it knows of motion: positions always, and speeds and accelerations if they matter."""
        return tuple(x for x in MOTION if x == "q" or (x in self.inputs and not self.still))

    def slopes(self, tracer: Tracer, seeds: Seeds) -> Slopes:
        """The entries, and for each of them the derivatives along directions."""
        if self.special is not None:
            return self.special(tracer, seeds)
        values = self.entries(tracer)
        return values, jacobian(values, seeds)


@dataclass(frozen=True)
class Space:
    """The variables, in which space they move, and the functions that say how."""

    by: tuple[Variable, ...]
    closed: bool
    functions: Mapping[str, Function]

    def seeds(self, tracer: Tracer, what: Quantity, rates: Mapping[str, Sequence[Number]] | None = None) -> Seeds:
        return directions(tracer, self.by, self.functions, self.closed, what.motion, rates)

    def widths(self, tree: Tree) -> list[int]:
        return [width(tree, x, self.closed) for x in self.by]


def derivative(name: str, what: Quantity, space: Space, tree: Tree) -> Function:
    """The entries of `what`, then its derivatives by each variable: matrices, row by row."""
    widths = space.widths(tree)

    def made(tracer: Tracer) -> list[Number]:
        values, rows = what.slopes(tracer, space.seeds(tracer, what))
        return _numbers([*values, *_matrices(rows, space.by, widths)])

    def columns(tracer: Tracer) -> Columns:
        assert what.solved is not None
        values, rows, solve = what.solved(tracer, space.seeds(tracer, what))
        given = [[row.get((x.label, j), 0.0) for row in rows for j in range(n)]
                 for x, n in zip(space.by, widths, strict=True)]
        return Columns(_numbers(values), [_numbers(g) for g in given], len(rows),
                       _numbers(solve([tracer.graph.leaf(("column", r)) for r in range(len(rows))])))

    return Function(name, _no_text, what.inputs, "totals", what.size * (1 + sum(widths)), made=made,
                    columns=columns if what.solved is not None else None)


def directions_of_plan(name: str, what: Quantity, space: Space, tree: Tree) -> Function:
    """How a closed machine moves along the directions of its plan, see `directions.chart`: matrices, row by row."""
    widths, levels = space.widths(tree), what.motion

    def made(tracer: Tracer) -> list[Number]:
        return _numbers(_matrices(chart(tracer, space.by, space.functions, levels), space.by, widths))

    return Function(name, _no_text, what.inputs, "totals", len(levels) * tree.nu * sum(widths), made=made)


def directions_twice(name: str, what: Quantity, space: Space, rows: Sequence[int], tree: Tree) -> Function:
    """Some rows of these matrices along one direction, the inputs "along0" and so on, added up with weights, the input
    "weights"; differentiated by each variable."""
    widths, levels = space.widths(tree), what.motion
    sizes = (*((f"along{i}", n) for i, n in enumerate(widths)), ("weights", len(rows)))

    def made(tracer: Tracer) -> list[Number]:
        table, leaf = chart(tracer, space.by, space.functions, levels), tracer.graph.leaf
        given = {(x.label, j): leaf((f"along{i}", j)) for i, x in enumerate(space.by) for j in range(widths[i])}
        rates = [sum((x * given[d] for d, x in table[r].items()), 0.0) for r in rows]
        seeds = space.seeds(tracer, what)
        total = combined(adjoints(rates, [leaf(("weights", i)) for i in range(len(rows))], seeds), seeds)
        return _numbers(_matrices([total], space.by, widths))

    return Function(name, _no_text, (*what.inputs, *(x for x, _ in sizes)), "totals", sum(widths), made=made,
                    sizes=sizes)


def product_forward(name: str, what: Quantity, space: Space, tree: Tree) -> Function:
    """The entries of `what`, then their rates along one direction, given as inputs "along0" and so on, one for every
    variable."""
    sizes = tuple((f"along{i}", n) for i, n in enumerate(space.widths(tree)))

    def made(tracer: Tracer) -> list[Number]:
        return _numbers([*what.entries(tracer), *_rates(tracer, what, space, sizes)])

    return Function(name, _no_text, (*what.inputs, *(x for x, _ in sizes)), "totals", 2 * what.size, made=made,
                    sizes=sizes)


def product_twice(name: str, what: Quantity, space: Space, tree: Tree) -> Function:
    """The same, then the derivatives by each variable of the sum of these rates with weights, the input "weights": one
    pass forward and one back, for what second derivatives make of a direction and weights."""
    widths = space.widths(tree)
    sizes = (*((f"along{i}", n) for i, n in enumerate(widths)), ("weights", what.size))

    def made(tracer: Tracer) -> list[Number]:
        rates, seeds = _rates(tracer, what, space, sizes[:-1]), space.seeds(tracer, what)
        weights = [tracer.graph.leaf(("weights", i)) for i in range(what.size)]
        total = combined(adjoints(rates, weights, seeds), seeds)
        return _numbers([*what.entries(tracer), *rates, *_matrices([total], space.by, widths)])

    return Function(name, _no_text, (*what.inputs, *(x for x, _ in sizes)), "totals", 2 * what.size + sum(widths),
                    made=made, sizes=sizes)


def _rates(tracer: Tracer, what: Quantity, space: Space, sizes: Sequence[tuple[str, int]]) -> list[Number]:
    """How the entries change along the direction that inputs give."""
    given = {x.label: [tracer.graph.leaf((name, j)) for j in range(n)]
             for x, (name, n) in zip(space.by, sizes, strict=True)}
    return [row.get((), 0.0) for row in tangents(what.entries(tracer), space.seeds(tracer, what, given))]


def product_backward(name: str, what: Quantity, space: Space, tree: Tree) -> Function:
    """The entries of `what`, then the derivatives by each variable of their sum with weights, the input "weights"."""
    widths = space.widths(tree)

    def made(tracer: Tracer) -> list[Number]:
        values, seeds = what.entries(tracer), space.seeds(tracer, what)
        weights = [tracer.graph.leaf(("weights", i)) for i in range(what.size)]
        total = combined(adjoints(values, weights, seeds), seeds)
        return _numbers([*values, *_matrices([total], space.by, widths)])

    return Function(name, _no_text, (*what.inputs, "weights"), "totals", what.size + sum(widths), made=made,
                    sizes=(("weights", what.size),))


def _matrices(rows: Sequence[Mapping[Any, Number]], by: Sequence[Variable], widths: Sequence[int]) -> list[Number]:
    return [row.get((x.label, j), 0.0) for x, n in zip(by, widths, strict=True) for row in rows for j in range(n)]


def _numbers(entries: Sequence[Number]) -> list[Number]:
    return [x if type(x) is Scalar else float(x) for x in entries]


def _no_text(sweeps: Any) -> Any:
    raise AssertionError("made of other functions")
