"""What the items count and time: operations per body, fits, best times of calls that take turns."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple

from bellcrank.compiled.compile import compile
from bellcrank.examples.chains import general_chain
from bellcrank.mechanism.joints import (
    Cylindrical,
    Free,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    Weld,
)
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.count import OperationCount
from bellcrank.system.counts import count_operations

__all__ = ["CLOSINGS", "KINDS", "LineFit", "best_times", "closed_chain", "exponent", "fit_line",
           "multiplications_of", "per_body"]

#: joint types by name, as chains of them are made
KINDS: dict[str, Callable[..., Joint]] = {
    "revolute": Revolute, "prismatic": Prismatic, "screw": lambda: Screw("z", 0.07), "cylindrical": Cylindrical,
    "universal": Universal, "planar": Planar, "spherical": Spherical, "free": Free}

#: what closes a chain, by the number of its constraints
CLOSINGS: dict[int, Joint] = {3: Spherical(), 4: Universal(), 5: Revolute("z"), 6: Weld()}


def closed_chain(n: int, kind: str, constraints: int = 0) -> Mechanism:
    """n general bodies in series, the last of them closed to the ground by so many constraints (none: a tree)."""
    chain = general_chain(n, KINDS[kind])
    if constraints:
        chain.add_joint("end", CLOSINGS[constraints], f"link{n - 1}", chain.ground,
                        Pose((0.1, 0.2, 0.3), (0.5, 0.5, 0.5, -0.5)), Pose((0.3, 0.1, -0.2)))
    return chain


def multiplications_of(machine: Mechanism, method: str) -> int:
    """Those of one forward dynamics, counted without making the code. The papers compute no accelerations of joints at
    which loops are cut."""
    return count_operations(compile(machine, method, "numpy").plans, "forward_dynamics", loop_joints=False).muls


@cache
def per_body(kind: str, method: str, constraints: int = 0, function: str = "forward_dynamics", n: int = 6
             ) -> OperationCount:
    """Operations that one more body in the middle of a chain of general bodies costs."""
    fewer, more = (count_operations(compile(closed_chain(k, kind, constraints), method, "numpy",
                                            cut=["end"] if constraints else ()).plans, function, loop_joints=False)
                   for k in (n, n + 1))
    return more.plus(fewer, -1)


class LineFit(NamedTuple):
    """a n + b, and the smallest n from which it is exact."""

    slope: int
    offset: int
    start: int

    def __str__(self) -> str:
        return f"{self.slope}n{self.offset:+d}"


def fit_line(sizes: Sequence[int], values: Sequence[int]) -> LineFit:
    """a and b of a n + b through the last two values.

    >>> str(fit_line([3, 4, 5], [10, 13, 16]))
    '3n+1'
    """
    slope = (values[-1] - values[-2]) // (sizes[-1] - sizes[-2])
    offset = values[-1] - slope * sizes[-1]
    off = [n for n, v in zip(sizes, values, strict=True) if v != slope * n + offset]
    return LineFit(slope, offset, max(off, default=sizes[0] - 1) + 1)


def exponent(x: Sequence[float], y: Sequence[float]) -> float:
    """p of y ~ x^p between the last two points.

    >>> round(exponent([1.0, 2.0, 4.0], [1.0, 4.0, 16.0]), 9)
    2.0
    """
    return math.log(y[-1] / y[-2]) / math.log(x[-1] / x[-2])


def best_times(calls: Mapping[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Seconds of each call: the best of rounds in which all take turns, so that a busy moment favours none.

    `budget` is the time for all together; there are three rounds at least. A round repeats short calls, so that the
    clock can tell them.
    """
    taken: dict[str, float] = dict.fromkeys(calls, float("inf"))
    repeats = {name: max(1, int(2e-4 / max(_once(call), 1e-8))) for name, call in calls.items()}
    end, rounds = time.perf_counter() + budget, 0
    while rounds < 3 or time.perf_counter() < end:
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeats[name]):
                call()
            taken[name] = min(taken[name], (time.perf_counter() - start) / repeats[name])
        rounds += 1
    return taken


def _once(call: Callable[[], Any]) -> float:
    call()
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
