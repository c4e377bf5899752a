"""Weld: no relative motion. Welded bodies are merged when a mechanism is compiled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.mechanism.constraint_rows import Row, Side, coincident, perpendicular
from bellcrank.mechanism.joints.joint import Array, Joint
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Motion, Transform

__all__ = ["Weld"]


class Weld(Joint):
    """Two bodies held rigidly together."""

    nq = nu = 0

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return ()

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return ()

    def reversed(self) -> Weld:
        return self

    condition_names = ("along x", "along y", "along z", "about z", "about x", "about y")

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (*coincident(first, second), perpendicular(first, second, first.x, second.y),
                perpendicular(first, second, first.y, second.z), perpendicular(first, second, first.z, second.x))

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.zeros((*turn.shape[:-2], 0))
