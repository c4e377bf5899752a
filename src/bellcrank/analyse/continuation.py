"""Following a closed machine along one parameter, on one branch.

From a closed position the driven coordinates are put where the parameter wants them, and Newton's method closes the
loops. Its first step is the tangent; a step is accepted only if the second is much smaller (contraction below 1/4), so
that neighbouring branches are not mistaken for each other; otherwise the way is halved. Positions are good to about
1e-8 on the way; `Closer.close` polishes the whole afterwards, in one batch. Where no way is short enough
the machine is at a dead point.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bellcrank.analyse.closing import Closer
from bellcrank.system.arrays import Floats

__all__ = ["DeadPointError", "Follower"]

_CONTRACTION = 0.25
_LONGEST = 0.5  # radians and metres: what the dependent joints may move in one step


class DeadPointError(Exception):
    """The machine cannot go on: the parameter reached, the position there, and the joint that moves most."""

    def __init__(self, reached: float, q: Floats, joint: str) -> None:
        super().__init__(f"dead point at {reached}")
        self.reached, self.q, self.joint = float(reached), q, joint


class Follower:
    """Follows positions; `put` sets the driven coordinates of q for a parameter, `clock` gives the time."""

    def __init__(self, closer: Closer, put: Callable[[Floats, float], Floats], clock: Callable[[float], float], *,
                 resolution: float) -> None:
        self.closer, self.put, self.clock, self.resolution = closer, put, clock, resolution
        self._stride = np.inf

    def to(self, q: Floats, start: float, end: float) -> Floats:
        """The position at parameter `end`, from q at `start`. Raises `DeadPointError`."""
        here, way = start, abs(end - start)
        while here != end:
            stride = min(self._stride, abs(end - here))
            there = end if stride >= abs(end - here) else here + np.copysign(stride, end - here)
            found = self._step(q, there)
            if found is None:
                self._stride = 0.5 * stride
                if self._stride < self.resolution * max(way, abs(here), 1.0):
                    raise DeadPointError(here, q, self._loosest(q, self.clock(here)))
                continue
            q, here = found, there
            if stride >= self._stride:
                self._stride *= 1.5
        return q

    def _step(self, q: Floats, there: float) -> Floats | None:
        """Close at a new parameter; None if the way was too long."""
        closer, t = self.closer, self.clock(there)
        system = closer.system
        q = self.put(q, there)
        if not closer.looped:
            return q
        before = np.inf
        for iteration in range(12):
            size, step = closer.newton(q, t)
            length = float(np.abs(step).max(initial=0.0))
            if not np.isfinite(length) or (iteration == 0 and length > _LONGEST):
                return None
            if np.isfinite(before) and before > 1e-7 and length > _CONTRACTION * before:
                return None
            left = length * min(1.0, length / before) if np.isfinite(before) else length  # what the next would be
            if size < 1e-3 and left < 1e-8:
                return system.normalise(system.integrate(q, step))
            q, before = system.normalise(system.integrate(q, step)), length
        return None

    def _loosest(self, q: Floats, t: float) -> str:
        """The joint that moves most along the direction the drives lose."""
        if not self.closer.looped:
            return "none"
        motion = np.abs(self.closer.factors(q, t)[2][-1])
        name = self.closer.system.speed_names[int(self.closer.solved[int(np.argmax(motion))])]
        return name.rpartition(".")[0]
