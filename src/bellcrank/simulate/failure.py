"""What became of a state that cannot go on."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Failure"]


class Failure(NamedTuple):
    """A state that cannot go on."""

    state: int
    time: float
    reason: str
    diverged: bool = False  #: its numbers have grown beyond all bounds
