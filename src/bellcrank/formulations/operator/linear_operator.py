"""Linear maps between stacked vectors, known by what they and their adjoints do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError

__all__ = ["Apply", "BlockDiagonal", "Operator", "Space"]

Apply = Callable[[Floats], Floats]
#: a space of stacked vectors: its name and shape
Space = tuple[str, tuple[int, ...]]


class Operator:
    """A linear map between stacked vectors, known by what it and its adjoint do. Application costs O(n)."""

    def __init__(self, name: str, domain: Space, codomain: Space, apply: Apply, adjoint: Apply) -> None:
        self.name, self.domain, self.codomain = name, domain, codomain
        self._apply, self._adjoint = apply, adjoint

    @property
    def T(self) -> Operator:
        """The adjoint."""
        return Operator(f"{self.name}*", self.codomain, self.domain, self._adjoint, self._apply)

    def __matmul__(self, other: Any) -> Any:
        if isinstance(other, Operator):
            if other.codomain != self.domain:
                raise ModelError(f"operators {self.name} and {other.name} do not fit: the first takes "
                                 f"{self.domain[0]}, the second gives {other.codomain[0]}")
            return Operator(f"{self.name} {other.name}", other.domain, self.codomain,
                            lambda x: self._apply(other._apply(x)), lambda y: other._adjoint(self._adjoint(y)))
        x = np.asarray(other, dtype=float)
        if x.shape != self.domain[1]:
            raise ModelError(f"operator {self.name} takes {self.domain[0]} of shape {self.domain[1]}, got {x.shape}")
        return self._apply(x)

    def __add__(self, other: Operator) -> Operator:
        if (self.domain, self.codomain) != (other.domain, other.codomain):
            raise ModelError(f"operators {self.name} and {other.name} act between different spaces")
        return Operator(f"({self.name} + {other.name})", self.domain, self.codomain,
                        lambda x: self._apply(x) + other._apply(x), lambda y: self._adjoint(y) + other._adjoint(y))

    def __neg__(self) -> Operator:
        return Operator(f"-{self.name}", self.domain, self.codomain, lambda x: -self._apply(x),
                        lambda y: -self._adjoint(y))

    def __sub__(self, other: Operator) -> Operator:
        return self + (-other)

    def matrix(self) -> Floats:
        """The dense matrix, column by column: for looking at, not for computing. Cost: O(n^2)."""
        size = int(np.prod(self.domain[1]))
        return np.stack([self._apply(e.reshape(self.domain[1])).ravel() for e in np.eye(size)], axis=-1)

    def __repr__(self) -> str:
        return f"<Operator {self.name}: {self.domain[0]} -> {self.codomain[0]}>"


class BlockDiagonal(Operator):
    """A symmetric operator made of one block per joint, which can be inverted."""

    def __init__(self, name: str, space: Space, blocks: Sequence[tuple[list[int], Floats]]) -> None:
        def apply(x: Floats) -> Floats:
            out = np.zeros_like(x)
            for rows, block in blocks:
                out[rows] = block @ x[rows]
            return out

        super().__init__(name, space, space, apply, apply)
        self.blocks = tuple(blocks)

    @cached_property
    def inverse(self) -> BlockDiagonal:
        """The inverse, block by block."""
        return BlockDiagonal(f"{self.name}^-1", self.domain, [
            (rows, np.asarray(np.linalg.inv(block), dtype=np.float64)) for rows, block in self.blocks])
