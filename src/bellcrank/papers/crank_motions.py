"""The two machines of Saha & Schiehlen and the motion that their cranks follow, eqs. (35), (36), (38), (39)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.examples import load
from bellcrank.papers.reference_data import reference
from bellcrank.scalar.functions import sin

__all__ = ["DURATION", "MACHINES", "SAMPLE", "TAKEN", "PaperMachine"]

DURATION = 20.0  #: T of (36) and (39) [s]
SAMPLE = 0.02  #: their step [s]

#: the branch that the paper shows, as far as its text tells
TAKEN = {"four_bar": "open_elbow_up", "five_bar": "elbow_down"}


@dataclass(frozen=True)
class PaperMachine:
    """A machine of the paper; `driven` are the places of its cranks in q and u."""

    name: str
    cranks: tuple[str, ...]
    driven: tuple[int, ...]
    start: tuple[float, ...]  #: of the cranks [rad]
    end: tuple[float, ...]
    symbols: tuple[str, ...]  #: of the joints, as suffixes
    tip: tuple[str, float, tuple[float, ...]]  #: a point: its body, how far along it, lengths of the chain to it

    @cached_property
    def system(self) -> System:
        """With forces at the cranks."""
        return compile(load(self.name), actuated=list(self.cranks))

    @cached_property
    def minimal(self) -> System:
        """With the cranks' rates as independent speeds, in the paper's method."""
        return compile(load(self.name), "complement", actuated=list(self.cranks), independent=list(self.cranks))

    @property
    def branches(self) -> tuple[str, ...]:
        """Ways to assemble it, that of the paper first."""
        return tuple(sorted(reference(self.name), key=lambda b: b != TAKEN[self.name]))

    def reference(self, branch: str) -> Any:
        """Independent solutions on a branch."""
        return reference(self.name)[branch]

    def labels(self, symbol: str) -> list[str]:
        """Names of a quantity of all joints."""
        return [f"{symbol}{suffix}" for suffix in self.symbols]

    def laws(self) -> dict[str, Callable[[Any], Any]]:
        """The cranks' angles as functions of time, (35)."""
        return {name: _cycloid(a, b) for name, a, b in zip(self.cranks, self.start, self.end, strict=True)}

    def desired(self, t: float) -> tuple[Floats, Floats, Floats]:
        """Angles, rates and accelerations of the cranks at a time, (35) differentiated."""
        x, turn = min(t / DURATION, 1.0), 2.0 * math.pi
        start, way = np.array(self.start), np.array(self.end) - np.array(self.start)
        return (start + way * (x - math.sin(turn * x) / turn), way * (1.0 - math.cos(turn * x)) / DURATION,
                way * turn * math.sin(turn * x) / DURATION**2)


def _cycloid(start: float, end: float) -> Callable[[Any], Any]:
    def law(t: Any) -> Any:
        x = t * (1.0 / DURATION)
        return start + (end - start) * (x - sin(x * (2.0 * math.pi)) * (0.5 / math.pi))

    return law


MACHINES = {
    "four_bar": PaperMachine("four_bar", ("A",), (0,), (math.radians(30.0),), (math.radians(90.0),), ("1", "2", "3"),
                             ("coupler", 1.0, (0.3, 1.0))),
    "five_bar": PaperMachine("five_bar", ("leg1.1", "leg2.1"), (0, 2), (math.radians(30.0),) * 2,
                             (math.radians(90.0), math.radians(70.3)), ("1(1)", "2(1)", "1(2)", "2(2)"),
                             ("link1.2", 1.1, (0.6, 1.1)))}
