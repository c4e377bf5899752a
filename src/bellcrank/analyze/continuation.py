"""Following a closed machine along functions of a parameter: `loops.walking` with `GivenSpeeds`.

Positions are good to about 1e-8 on the way; `GivenSpeeds.close` polishes the whole afterwards, in one batch.
"""

from __future__ import annotations

from collections.abc import Callable

from bellcrank.analyze.minimal import GivenSpeeds
from bellcrank.arrays import Floats
from bellcrank.loops.walking import DeadPointError, Walker, small_moves

__all__ = ["DeadPointError", "Follower"]


class Follower(Walker):
    """Follows positions; `put` sets the driven coordinates of q for a parameter, `clock` gives the time; q is
    where the way begins."""

    def __init__(self, closer: GivenSpeeds, put: Callable[[Floats, float], Floats], clock: Callable[[float], float],
                 q: Floats, *, resolution: float) -> None:
        system = closer.system
        lengths = small_moves(system.speed_names, system.plans.loops.poses(q, 0.0)[1])
        super().__init__(system.integrate, system.normalize, system.difference, resolution=resolution, lengths=lengths)
        self.closer, self._put, self.clock = closer, put, clock

    def put(self, q: Floats, at: float) -> Floats:
        """q with the driven coordinates as the parameter wants them."""
        return self._put(q, at)

    def newton(self, q: Floats, at: float) -> tuple[float, Floats]:
        """What is left open, and the plain Newton step of all speeds that would close it."""
        return self.closer.newton(q, self.clock(at))

    def loosest(self, q: Floats, at: float) -> str:
        """The joint that moves most along the direction the drives lose."""
        speed = self.closer.loosest(q, self.clock(at))
        return "none" if speed is None else self.closer.system.speed_names[speed].rpartition(".")[0]
