"""Operation counts: a walk over the graph."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any, NamedTuple

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
    Scalar,
    reachable,
)

__all__ = ["OperationCount", "count", "count_nodes"]

_KIND = {ADD: "adds", SUB: "adds", MUL: "muls", DIV: "divs", SQRT: "roots", SIN: "trigs", COS: "trigs",
         EXP: "others", TANH: "others", LOG: "others", LESS: "others", ATAN2: "others", FLOOR: "others",
         LOCATE: "others", ENTRY: "others", NEG: "negations"}


class OperationCount(NamedTuple):
    """Exact numbers of scalar operations of one evaluation. Sign changes are listed, not summed."""

    adds: int = 0
    muls: int = 0
    divs: int = 0
    roots: int = 0
    trigs: int = 0
    others: int = 0
    negations: int = 0

    @property
    def total(self) -> int:
        """Additions, multiplications, divisions and roots, as the literature counts."""
        return self.adds + self.muls + self.divs + self.roots

    def plus(self, other: OperationCount, times: int = 1) -> OperationCount:
        """This count and `times` the other one."""
        return OperationCount(*(a + times * b for a, b in zip(self, other, strict=True)))

    def __str__(self) -> str:
        return (f"{self.adds} adds, {self.muls} muls, {self.divs} divs, {self.roots} roots, "
                f"{self.trigs} sines and cosines")


def count_nodes(nodes: Iterable[Scalar]) -> OperationCount:
    """Count these operations."""
    return OperationCount(**Counter(_KIND[node.op] for node in nodes if node.op is not LEAF))


def count(roots: Iterable[Any]) -> OperationCount:
    """Count the distinct operations behind `roots`."""
    return count_nodes(reachable(roots))
