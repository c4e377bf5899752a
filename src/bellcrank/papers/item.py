"""What an item of a paper is: a name, where it stands, and a function that computes it anew.

The result holds a table with units, the description of a plot, and a comparison line by line with what the paper prints
or what an independent solution says, with the reason wherever the two differ.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError

__all__ = [
    "Agreement",
    "Cell",
    "Column",
    "ItemResult",
    "Paper",
    "PaperItem",
    "PaperPlot",
    "PaperTable",
    "PlotLine",
    "table_of",
]

#: an entry of a table
Cell = float | int | str


@dataclass(frozen=True)
class Paper:
    """A paper."""

    key: str  #: begins the names of its items
    authors: str
    title: str
    published: str
    method: str  #: the formulation whose source it is, as `bellcrank.cite` knows it
    about: str  #: a few sentences for its page


@dataclass(frozen=True)
class Column:
    """A column of a table."""

    name: str
    unit: str = ""

    @property
    def label(self) -> str:
        """Name and unit."""
        return f"{self.name} [{self.unit}]" if self.unit else self.name


@dataclass(frozen=True)
class PaperTable:
    """Rows of numbers and words under columns with units."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def __post_init__(self) -> None:
        try:
            wrong = next((row for row in self.rows if len(row) != len(self.columns)), None)
        except TypeError as error:
            raise ModelError(f"PaperTable: columns and rows must be lists ({error})") from None
        if wrong is not None:
            raise ModelError(f"PaperTable: a row of {len(wrong)} entries under {len(self.columns)} columns: {wrong}")

    def column(self, name: str) -> list[Any]:
        """All entries of a column."""
        at = [c.name for c in self.columns].index(name)
        return [row[at] for row in self.rows]

    def thinned(self, most: int) -> PaperTable:
        """At most so many rows, evenly chosen, the first and the last among them."""
        if len(self.rows) <= most:
            return self
        kept = np.unique(np.linspace(0, len(self.rows) - 1, most).round().astype(int))
        return PaperTable(self.columns, tuple(self.rows[i] for i in kept))


def table_of(names: Sequence[str], *values: Iterable[Any]) -> PaperTable:
    """A table from columns of values; a name may end in a unit: ``"time [s]"``.

    >>> table_of(["time [s]", "angle [rad]"], [0.0, 1.0], [0.5, 0.25]).rows[1]
    (1.0, 0.25)
    """
    columns = []
    for name in names:
        head, _, unit = name.partition(" [")
        columns.append(Column(head, unit.rstrip("]")))
    return PaperTable(tuple(columns), tuple(zip(*([_plain(x) for x in v] for v in values), strict=True)))


def _plain(value: Any) -> Cell:
    found = value.item() if isinstance(value, np.generic) else value
    return found if isinstance(found, (str, int)) else float(found)


@dataclass(frozen=True)
class PlotLine:
    """A line of a plot."""

    label: str
    x: Floats
    y: Floats
    style: str = "-"  #: as matplotlib writes it: "-" computed, "o" printed or reference values, ":" other


@dataclass(frozen=True)
class PaperPlot:
    """What a picture of the item shows; `drawing` draws it."""

    x: str  #: label of the axis, with unit
    y: str
    lines: tuple[PlotLine, ...]
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True)
class Agreement:
    """One value found here beside the one expected.

    `origin` says where that comes from: "printed" in the paper, an independent "reference", a "formula" of the paper,
    or "ours" (what this library promises: a guard, no confirmation). `allowed` is the largest difference that counts
    as agreement; infinity only shows the two, and then `reason` says why they differ.
    """

    what: str
    found: float
    expected: float
    origin: str
    allowed: float = 0.0
    reason: str = ""

    @property
    def difference(self) -> float:
        """By how much the two differ."""
        return abs(self.found - self.expected)

    @property
    def holds(self) -> bool:
        """Whether they agree as they should; a number that is none agrees with nothing."""
        return bool(self.difference <= self.allowed) and math.isfinite(self.found)

    @property
    def judged(self) -> bool:
        """Whether the two are meant to agree at all."""
        return math.isfinite(self.allowed)


@dataclass(frozen=True)
class ItemResult:
    """A figure or table, computed."""

    table: PaperTable
    plot: PaperPlot
    agreements: tuple[Agreement, ...]
    notes: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether everything agrees that is meant to."""
        return all(a.holds for a in self.agreements)


@dataclass(frozen=True)
class PaperItem:
    """A figure or table of a paper, by name.

    `compute(short)` does it; the short form takes about a second, covers less time or smaller machines and makes the
    same comparisons as far as it reaches.
    """

    name: str
    where: str  #: in the paper: "Fig 5", "Table 1"
    title: str
    function: Callable[[bool], ItemResult]

    def compute(self, short: bool = False) -> ItemResult:
        """The item, anew."""
        return self.function(short)
