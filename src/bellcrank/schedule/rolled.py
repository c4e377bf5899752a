"""The rolled schedule: every step is traced once per *kind* of item, and items loop over records.

Compile time depends on the number of kinds, not of items; memory is linear in the items. All sweeps of a
kind share one graph, so a value that several sweeps need is one node: what must cross from one sweep to the
next (and so be stored in the item's record) is found by looking, not by declaration.

Leaves of a kind's graph:
  ("const", i)       number i of the item (evaluated expressions of these are hoisted out of the kernel)
  ("in", name, j)    entry j of the item's own part of input `name`
  ("global", name, j) entry j of a shared input
  ("parent", k, i)   entry i of what sweep k brought from the parent
  ("sum", k, i)      entry i of what the children sent in sweep k
  ("carry", k, i)    entry i of what travels along a path in sweep k
  ("out", name, j, k) entry j of the item's own part of the result, complete from sweep k on
  ("root", k, i)     entry i of the sum that reached the root (in the epilogue, and in sweeps after k)

What travels along edges lives only until the receiver has taken it: it goes through a few buffers that all
items share (they stay in the fastest cache), not through the records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number
from bellcrank.schedule.sweeps import Field, Step, flatten, rebuild

__all__ = ["Kind", "Rolled", "SweepTrace"]

OUTWARD, INWARD, PATHS = "outward", "inward", "paths"


@dataclass
class Kind:
    """Items that follow the same code."""

    index: int
    graph: Graph
    view: Any
    is_base: bool  #: its parent is the root
    is_tip: bool  #: it has no children
    is_first: bool  #: of its siblings it is the first to send inwards
    #: for every entry of its result the column of the table and the offset where it goes; None: all in a row
    places: list[tuple[str, int]] | None = None


@dataclass
class SweepTrace:
    """One sweep, as it was traced."""

    direction: str
    width: int  #: scalars that travel along an edge
    sent: list[list[Number]] = field(default_factory=list)  #: per kind
    starts: list[list[list[Number]]] = field(default_factory=list)  #: paths: per kind and column
    to_root: bool = False  #: inward: whether anybody looks at the root's sum


class RolledField(list[Any]):
    """Kept values per kind, and the sweep that made them."""

    def __init__(self, values: Iterable[Any], sweep: int) -> None:
        super().__init__(values)
        self.sweep = sweep


class Rolled:
    """Sweeps that record one trace per kind."""

    def __init__(self, kinds: Sequence[Kind], world: Any, root_graph: Graph) -> None:
        self.kinds, self.world, self.root_graph = kinds, world, root_graph
        self.sweeps: list[SweepTrace] = []
        self.phases: list[int] = []  #: sweeps that look at what all before them have added to the result
        #: sweeps that each item does at once with the one before, which goes the same way: neither waits for the other
        self.joined: list[int] = []

    def constant(self, value: Any) -> Field:
        return RolledField([value] * len(self.kinds), 0)

    def _transplant(self, kind: Kind, value: Any) -> Any:
        """A value of the root's graph in a kind's graph."""
        leaves = evaluate(list(flatten(value)), kind.graph.leaf)
        return rebuild(value, iter(leaves))

    def outward(self, step: Step, *fields: Field, root: Any) -> Field:
        k, width = len(self.sweeps), len(list(flatten(root)))
        sweep = SweepTrace(OUTWARD, width)
        self.sweeps.append(sweep)
        kept = []
        for kind in self.kinds:
            carried = (self._transplant(kind, root) if kind.is_base else
                       rebuild(root, (kind.graph.leaf(("parent", k, i)) for i in range(width))))
            sent, keep = step(kind.view, carried, *(f[kind.index] for f in fields))
            sweep.sent.append(list(flatten(sent)))
            kept.append(keep)
        return RolledField(kept, k)

    def inward(self, step: Step, *fields: Field, zero: Any) -> tuple[Field, Any]:
        k, width = len(self.sweeps), len(list(flatten(zero)))
        sweep = SweepTrace(INWARD, width)
        self.sweeps.append(sweep)
        kept = []
        for kind in self.kinds:
            total = zero if kind.is_tip else rebuild(zero, (kind.graph.leaf(("sum", k, i)) for i in range(width)))
            sent, keep = step(kind.view, total, *(f[kind.index] for f in fields))
            sweep.sent.append(list(flatten(sent)))
            kept.append(keep)
        root = rebuild(zero, (self.root_graph.leaf(("root", k, i)) for i in range(width)))
        return RolledField(kept, k), root

    def paths(self, start: Callable[..., Sequence[Any]], step: Step, *fields: Field) -> Field:
        k = len(self.sweeps)
        sweep = SweepTrace(PATHS, 0)
        self.sweeps.append(sweep)
        kept = []
        for kind in self.kinds:
            own = [f[kind.index] for f in fields]
            begun = start(kind.view, *own)
            sweep.starts.append([list(flatten(value)) for value in begun])
            if begun:
                shape, sweep.width = begun[0], len(sweep.starts[-1][0])
        for kind in self.kinds:
            own = [f[kind.index] for f in fields]
            carried = rebuild(shape, (kind.graph.leaf(("carry", k, i)) for i in range(sweep.width)))
            sent, keep = step(kind.view, carried, *own)
            sweep.sent.append(list(flatten(sent)))
            kept.append(keep)
        return RolledField(kept, k)

    def joint_vector(self, field: Field) -> list[Number]:
        raise NotImplementedError("a rolled schedule has no whole vectors")

    def joint_field(self, vector: Sequence[Number]) -> Field:
        raise NotImplementedError("a rolled schedule has no whole vectors")

    def joint_matrix(self, paths: Field, mirrored: bool = True) -> list[list[Number]]:
        raise NotImplementedError("a rolled schedule has no whole matrices")
