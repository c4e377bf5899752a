"""Orientations of results as quaternions that do not jump."""

from __future__ import annotations

import numpy as np

from bellcrank.arrays import Floats

__all__ = ["continuous_turns", "unit_quaternions"]


def unit_quaternions(rotation: Floats) -> Floats:
    """Unit quaternions of rotation matrices, (..., 3, 3) -> (..., 4)."""
    from bellcrank.mechanism.joints import quaternion

    return quaternion.from_matrix(rotation)


def continuous_turns(turn: Floats, lead: tuple[str, ...]) -> Floats:
    """Of q and -q, which are the same orientation, the one nearer to the sample before."""
    if "time" not in lead or not turn.size:
        return turn
    first = np.moveaxis(turn, lead.index("time"), 0).copy()
    flips = np.where((first[1:] * first[:-1]).sum(axis=-1, keepdims=True) < 0.0, -1.0, 1.0)
    first[1:] *= np.cumprod(flips, axis=0)
    return np.moveaxis(first, 0, lead.index("time"))
