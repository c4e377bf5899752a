"""Weld: no relative motion. Welded bodies are merged when a mechanism is compiled."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.engine.scalar import Number
from bellcrank.mechanism.joints.base import Joint
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
