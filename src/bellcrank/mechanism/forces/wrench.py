"""A force and moment on a body, constant or varying in time."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.graph import Number

__all__ = ["Wrench"]


@dataclass(frozen=True, slots=True)
class Wrench:
    """A force [N] and moment [N m] that always act on a body, at a point fixed in it.

    The six entries are numbers, parameters, or functions of time; in world or in body axes. It stores no energy: what
    it does is work from outside.
    """

    name: str
    body: int
    moment: tuple[Number, ...]
    force: tuple[Number, ...]
    at: tuple[Number, ...]
    axes: str
    #: a function of the machine that gives force, or force and moment, in place of the entries
    law: MachineLaw | None = None
