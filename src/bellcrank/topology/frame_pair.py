"""Elements between two frames, each on a link of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.graph import Number

__all__ = ["FramePair"]


@dataclass(frozen=True)
class FramePair(Element):
    """Which links, and where the frames lie in those: columns of `turn` are the axes, `shift` is the origin [m]."""

    name: str
    first: int
    second: int
    first_turn: npt.NDArray[np.float64]
    first_shift: tuple[Number, ...]
    second_turn: npt.NDArray[np.float64]
    second_shift: tuple[Number, ...]
    timed = False
