"""Elements between two frames, each on a link of its own."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.graph import Number

__all__ = ["FramePair"]


@dataclass(frozen=True)
class FramePair(Element):
    """Which links, and where the frames lie in those: three axes, and the origin [m]."""

    name: str
    first: int
    second: int
    first_axes: tuple[tuple[Number, ...], ...]
    first_shift: tuple[Number, ...]
    second_axes: tuple[tuple[Number, ...], ...]
    second_shift: tuple[Number, ...]
    timed = False
