"""What a kernel is made of before any target: a graph, or a plan of loops over records with its data."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.scalar.graph import Number, Scalar, digest
from bellcrank.schedule.rolled_plan import Plan
from bellcrank.target.calling import Body
from bellcrank.target.column_code import ColumnGraphs, by_columns
from bellcrank.target.cut_code import Pieces
from bellcrank.target.graph_code import entry_by_entry, many_at_once, order_of, scratch, unrolled
from bellcrank.target.program import Builder
from bellcrank.target.rolled_code import rolled

__all__ = ["ColumnKernel", "EntryKernel", "GraphKernel", "Halves", "KernelSource", "ManyKernel", "RolledData",
           "RolledKernel"]

#: operations from which on a graph is cut into pieces
LONG = 6_000
#: operations from which on one graph of batches is too large to be quick, and loops over columns are quicker
LARGE = 60_000

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class RolledData:
    """What a rolled kernel loops over."""

    numbers: Floats
    table: Ints
    runs: Ints
    work_size: int  #: reals of workspace per lane


class KernelSource(Protocol):
    """A function of arrays of reals."""

    @property
    def inputs(self) -> Mapping[str, int]:
        """Names and lengths of the arrays it reads, in order."""

    @property
    def size(self) -> int:
        """Entries of the result."""

    @property
    def data(self) -> RolledData | None:
        """What it loops over, if it does."""

    @property
    def side(self) -> int:
        """The side of the result if a rolled kernel makes a matrix."""

    @property
    def key(self) -> str | None:
        """A short text that determines the code, if there is one."""

    @property
    def lanes(self) -> int:
        """Parts of the machine side by side."""

    def side_by_side(self, lanes: int) -> KernelSource:
        """What computes the same for one state with parts of the machine in lanes, where it can."""

    def scratch(self, width: int) -> int:
        """Reals of scratch memory per lane that a kernel of batches needs, besides that of loops over records."""

    def body(self, b: Builder) -> Body:
        """The program (see `target.calling`)."""


class Halves(NamedTuple):
    """The same function of a machine of two halves that are alike, for targets that compute them side by side: a graph
    in which what differs between them are leaves, too."""

    outputs: Sequence[Number]
    swapped: Mapping[tuple[str, int], tuple[str, int]]  #: leaves of the first half: which correspond in the second
    numbers: Mapping[tuple[str, int], float]  #: leaves that are numbers


@dataclass(frozen=True)
class GraphKernel:
    """One expression graph; leaves are (input, index)."""

    outputs: Sequence[Number]
    inputs: Mapping[str, int]
    data: None = None
    side: int = 0
    lanes: int = 1
    #: the machine as two halves, if it has such; made when it is asked for
    halves: Callable[[], Halves | None] = field(default=lambda: None, compare=False)

    @property
    def size(self) -> int:
        return len(self.outputs)

    @cached_property
    def key(self) -> str:
        return f"{digest(self.outputs)} {dict(self.inputs)}"

    @cached_property
    def pieces(self) -> Pieces | None:
        """What it is cut into, if it is long."""
        if all(len(x.graph.nodes) <= LONG for x in self.outputs if type(x) is Scalar):
            return None
        nodes = order_of(self.outputs)
        return Pieces(nodes) if len(nodes) > LONG else None

    def side_by_side(self, lanes: int) -> GraphKernel:
        return self

    def scratch(self, width: int) -> int:
        return scratch(self.size, width) + (0 if self.pieces is None else self.pieces.size)

    def body(self, b: Builder) -> Body:
        return unrolled(b, self.outputs, self.inputs, self.pieces)


@dataclass(frozen=True)
class ColumnKernel:
    """Matrices found column by column: of one state, columns side by side; of batches as one graph, if that is small
    enough, which knows what is zero in every column."""

    columns: Callable[[], ColumnGraphs]
    flat: Callable[[], GraphKernel]
    inputs: Mapping[str, int]
    size: int
    data: None = None
    side: int = 0
    lanes: int = 1

    @cached_property
    def graphs(self) -> ColumnGraphs:
        """The graphs, made when they are asked for."""
        return self.columns()

    @property
    def key(self) -> str:
        return f"{self.graphs.key} {dict(self.inputs)}"

    def side_by_side(self, lanes: int) -> KernelSource:
        fits = max(self.graphs.widths) >= lanes if lanes > 1 else self.graphs.nodes > LARGE
        return self if fits else self.flat()

    def scratch(self, width: int) -> int:
        return self.graphs.work + (self.size if width > 1 else 0)

    def body(self, b: Builder) -> Body:
        return by_columns(b, self.graphs, self.inputs)


@dataclass(frozen=True)
class EntryKernel:
    """One expression for every entry of the result, of the same entries of the inputs; leaves are (input,)."""

    entry: Number
    inputs: Mapping[str, int]
    size: int
    data: None = None
    side: int = 0
    lanes: int = 1

    @cached_property
    def key(self) -> str:
        return f"entries {digest([self.entry])} {dict(self.inputs)}"

    def side_by_side(self, lanes: int) -> EntryKernel:
        return self

    def scratch(self, width: int) -> int:
        return 0

    def body(self, b: Builder) -> Body:
        return entry_by_entry(b, self.entry, self.inputs, self.size)


@dataclass(frozen=True)
class ManyKernel:
    """One expression graph for several values of some of its inputs at once, which lie side by side, as the results
    do: of one state, in the lanes that are free."""

    outputs: Sequence[Number]
    inputs: Mapping[str, int]
    many: tuple[str, ...]  #: these inputs
    lanes: int  #: no more than there are
    data: None = None
    side: int = 0

    @property
    def size(self) -> int:
        return len(self.outputs)

    @cached_property
    def key(self) -> str:
        return f"many {digest(self.outputs)} {dict(self.inputs)} {self.many} {self.lanes}"

    def side_by_side(self, lanes: int) -> ManyKernel:
        assert lanes >= self.lanes
        return self

    def scratch(self, width: int) -> int:
        return 0

    def body(self, b: Builder) -> Body:
        return many_at_once(b, self.outputs, self.many, self.lanes)


@dataclass(frozen=True)
class RolledKernel:
    """Loops over the items of a tree; the code is the same for any number of them."""

    plan: Plan
    inputs: Mapping[str, int]
    local: list[str]  #: inputs of which every item has its own part
    size: int
    data: RolledData
    side: int
    mirrored: bool = True  #: whether a matrix is symmetric
    key: None = field(default=None)
    #: the same with items side by side
    beside: Callable[[int], RolledKernel | None] = lambda lanes: None

    @property
    def lanes(self) -> int:
        return self.plan.lanes

    def side_by_side(self, lanes: int) -> RolledKernel:
        return (self.beside(lanes) if lanes > 1 else None) or self

    def scratch(self, width: int) -> int:
        return 0

    def body(self, b: Builder) -> Body:
        return rolled(b, self.plan, list(self.inputs), self.local, self.mirrored)
