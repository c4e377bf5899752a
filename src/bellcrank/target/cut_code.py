"""Large graphs as several functions: a compiler takes more than twice the time for a function of twice the size.

The operations, in the order in which they are computed, are cut into pieces of equal length. Values that a later piece
needs pass through memory, whose places are used again when nobody needs what is there any more.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bellcrank.scalar.graph import LEAF, Scalar
from bellcrank.target.operation_code import compute
from bellcrank.target.program import Builder, Memory, Real

__all__ = ["Pieces"]

#: operations of a piece
PIECE = 2000


class Pieces:
    """The operations of a graph in pieces, with the places of values between them."""

    def __init__(self, nodes: Sequence[Scalar]) -> None:
        self.leaves = [n for n in nodes if n.op is LEAF]
        work = [n for n in nodes if n.op is not LEAF]
        count = max(1, round(len(work) / PIECE))
        self.parts = [work[len(work) * k // count:len(work) * (k + 1) // count] for k in range(count)]
        number = {n: k for k, part in enumerate(self.parts) for n in part}
        last: dict[Scalar, int] = {}
        for n in work:
            for a in n.args:
                if type(a) is Scalar and (a.op is LEAF or number[a] < number[n]):
                    last[a] = number[n]
        #: places of values that pass
        self.place: dict[Scalar, int] = {leaf: i for i, leaf in enumerate(self.leaves)}
        self.size = len(self.leaves)
        free: list[int] = []
        ending: dict[int, list[int]] = {}
        for k, part in enumerate(self.parts):
            for slot in ending.pop(k - 1, ()):
                heapq.heappush(free, slot)
            for n in part:
                if n in last:
                    slot = heapq.heappop(free) if free else self.size
                    self.size = max(self.size, slot + 1)
                    self.place[n] = slot
                    ending.setdefault(last[n], []).append(slot)

    def write(self, b: Builder, leaf: Callable[[Any], Real], between: Memory, *known: Memory,
              done: Mapping[Scalar, Callable[[str], None]]) -> None:
        """All pieces; `between` is memory of `size` entries, `known` what `done` writes to."""
        for node in self.leaves:
            between[self.place[node]] = leaf(node.args[0])
        for part in self.parts:
            with b.piece(between, *known):
                value = _Loaded(lambda node: between[self.place[node]].operand)
                compute(b, part, value, lambda key: "", {n: self._noted(b, between, n, done.get(n)) for n in part
                                                         if n in self.place or n in done})

    def _noted(self, b: Builder, between: Memory, node: Scalar, done: Callable[[str], None] | None
               ) -> Callable[[str], None]:
        def note(operand: str) -> None:
            if node in self.place:
                between[self.place[node]] = Real(b, operand)
            if done is not None:
                done(operand)

        return note


class _Loaded(dict[Any, str]):
    """Operands of a piece; those of others are loaded when they are first asked for."""

    def __init__(self, load: Callable[[Scalar], str]) -> None:
        super().__init__()
        self._load = load

    def __missing__(self, node: Scalar) -> str:
        self[node] = operand = self._load(node)
        return operand
