"""Sweeps over a tree: the only traversals a formulation uses, and their direct execution.

A formulation is a handful of calls ``tree.outward(step, ...)`` and ``tree.inward(step, ...)``. How the
steps are executed is a *schedule*: directly, item after item, on numbers or traced scalars (`Direct`,
here), or traced once per kind of item and looped over in compiled code (`rolled`).

A step receives an item's view, what came along the edge, and the item's own results of earlier sweeps
(fields); it returns what goes on along the edge, and what the item keeps. Values are nested tuples of
scalars.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

from bellcrank.scalar.graph import Number

__all__ = ["Direct", "Field", "Step", "Sweeps", "add", "flatten", "rebuild"]

#: step(item, carried, *own) -> (carry on, keep)
Step = Callable[..., tuple[Any, Any]]
#: one kept value per item; opaque to formulations
Field = Any


class Sweeps(Protocol):
    """What a formulation may do with a tree."""

    #: values the whole tree shares (time, gravity, ...)
    world: Any

    def constant(self, value: Any) -> Field:
        """The same value kept by every item."""

    def outward(self, step: Step, *fields: Field, root: Any) -> Field:
        """From the root to the tips; `root` is what its children receive."""

    def inward(self, step: Step, *fields: Field, zero: Any) -> tuple[Field, Any]:
        """From the tips to the root; what children send is added up, starting from `zero`.
        Returns the field and the sum that reached the root."""

    def paths(self, start: Callable[..., Sequence[Any]], step: Step, *fields: Field) -> Field:
        """From every item to the root, once for each value that ``start(item, *own)`` returns;
        ``step(item, carried, *own)`` keeps a row of numbers at every item passed, itself included."""

    def joint_vector(self, field: Field) -> list[Number]:
        """All entries that items keep, as one list (direct schedule only)."""

    def joint_field(self, vector: Sequence[Number]) -> Field:
        """The inverse of `joint_vector` (direct schedule only)."""

    def joint_matrix(self, paths: Field, mirrored: bool = True) -> list[list[Number]]:
        """The (symmetric) matrix kept along `paths` (direct schedule only)."""


class Direct:
    """Execute steps one item after another, on whatever scalars the views hold."""

    def __init__(self, parent: Sequence[int], view: Callable[[int], Any], world: Any,
                 slots: Sequence[int], widths: Sequence[int], size: int | None = None) -> None:
        self.parent = list(parent)
        self.slots, self.widths = list(slots), list(widths)
        self.size = sum(self.widths) if size is None else size
        self.views = [None] + [view(i) for i in range(1, len(self.parent))]
        self.world = world

    def constant(self, value: Any) -> Field:
        return [value] * len(self.parent)

    def joint_vector(self, field: Field) -> list[Number]:
        """All entries that items keep, at the places `slots` gives them."""
        out: list[Number] = [0.0] * self.size
        for i in range(1, len(self.parent)):
            for j, value in enumerate(field[i]):
                out[self.slots[i] + j] = value
        return out

    def joint_field(self, vector: Sequence[Number]) -> Field:
        """The inverse of `joint_vector`."""
        return [None] + [tuple(vector[self.slots[i]:self.slots[i] + self.widths[i]])
                         for i in range(1, len(self.parent))]

    def joint_matrix(self, paths: Field, mirrored: bool = True) -> list[list[Number]]:
        """The matrix whose columns were kept along `paths`; `mirrored`: the other half is their mirror image."""
        out: list[list[Number]] = [[0.0] * self.size for _ in range(self.size)]
        for i, columns in enumerate(paths):
            for c, column in enumerate(columns):
                for at, row in column:
                    for r, value in enumerate(row):
                        a, b = self.slots[at] + r, self.slots[i] + c
                        out[a][b] = value
                        if mirrored:
                            out[b][a] = value
        return out

    def outward(self, step: Step, *fields: Field, root: Any) -> Field:
        n = len(self.parent)
        carried: list[Any] = [root] + [None] * (n - 1)
        kept: list[Any] = [None] * n
        for i in range(1, n):
            carried[i], kept[i] = step(self.views[i], carried[self.parent[i]], *(f[i] for f in fields))
        return kept

    def inward(self, step: Step, *fields: Field, zero: Any) -> tuple[Field, Any]:
        n = len(self.parent)
        total: list[Any] = [None] * n
        kept: list[Any] = [None] * n
        for i in range(n - 1, 0, -1):
            sent, kept[i] = step(self.views[i], zero if total[i] is None else total[i], *(f[i] for f in fields))
            p = self.parent[i]
            total[p] = sent if total[p] is None else add(total[p], sent)
        return kept, zero if total[0] is None else total[0]

    def paths(self, start: Callable[..., Sequence[Any]], step: Step, *fields: Field) -> Field:
        kept: list[list[list[tuple[int, Any]]]] = [[]]
        for i in range(1, len(self.parent)):
            columns = []
            for carried in start(self.views[i], *(f[i] for f in fields)):
                column = []
                at = i
                while at:
                    carried, row = step(self.views[at], carried, *(f[at] for f in fields))
                    column.append((at, row))
                    at = self.parent[at]
                columns.append(column)
            kept.append(columns)
        return kept


def flatten(value: Any, atom: type = float) -> Iterator[Number]:
    """The scalars of a nested tuple, left to right; tuples of the type `atom` count as scalars."""
    out: list[Number] = []
    _gather(value, atom, out)
    return iter(out)


def _gather(value: Any, atom: type, out: list[Number]) -> None:
    if isinstance(value, (tuple, list)) and not isinstance(value, atom):
        for part in value:
            _gather(part, atom, out)
    else:
        out.append(value)


def rebuild(like: Any, leaves: Iterator[Number], atom: type = float) -> Any:
    """A value of the same shape as `like` with other scalars."""
    if isinstance(like, atom):
        return next(leaves)
    if isinstance(like, tuple) and hasattr(like, "_fields"):
        return type(like)(*(rebuild(part, leaves, atom) for part in like))
    if isinstance(like, (tuple, list)):
        return type(like)(rebuild(part, leaves, atom) for part in like)
    return next(leaves)


def add(a: Any, b: Any) -> Any:
    """The sum of two values of the same shape, scalar by scalar."""
    second = flatten(b)
    return rebuild(a, (x + next(second) for x in flatten(a)))
