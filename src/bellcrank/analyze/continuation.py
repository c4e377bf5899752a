"""Following a closed machine along functions of a parameter: `loops.walking` with `GivenSpeeds`.

Positions are good to about 1e-8 on the way; `GivenSpeeds.close` polishes the whole afterwards, in one batch.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import GivenSpeeds
from bellcrank.arrays import Floats
from bellcrank.loops.tolerances import CONTRACTION, WALKED
from bellcrank.loops.walking import DeadPointError, Walker

__all__ = ["DeadPointError", "Follower"]

Mask = npt.NDArray[np.bool_]
#: Newton steps of positions between two of a walk
_NEWTON = 8


class Follower(Walker):
    """Follows positions; `put` sets the driven coordinates of q for a parameter, of which `unit` is an ordinary change;
    `clock` gives the time."""

    def __init__(self, closer: GivenSpeeds, put: Callable[[Floats, float], Floats], clock: Callable[[float], float],
                 *, resolution: float, unit: float = 1.0) -> None:
        system = closer.system
        super().__init__(system.integrate, system.normalize, system.difference, resolution=resolution,
                         lengths=system.model.tree.speed_sizes, unit=unit)
        self.closer, self._put, self.clock = closer, put, clock

    def put(self, q: Floats, at: float) -> Floats:
        """q with the driven coordinates as the parameter wants them."""
        return self._put(q, at)

    def newton(self, q: Floats, at: float) -> tuple[float, Floats]:
        """What is left open, and the plain Newton step of all speeds that would close it."""
        return self.closer.newton(q, self.clock(at))

    def closed_together(self, q: Floats, t: Floats, way: Floats) -> tuple[Floats, Mask]:
        """Positions (n, nq) between two of a walk, which are `way` apart, closed by Newton's method, and which of them
        are so beyond doubt: its steps shrink at once (as in a walk), and are short beside the way."""
        found, good = q.copy(), np.ones(len(q), dtype=bool)
        if not self.closer.looped:
            return found, good
        plans, target, going = self.closer.system.plans, self.closer.target, np.arange(len(q))
        before, total = np.full(len(q), np.inf), np.zeros(len(q))
        for _ in range(_NEWTON):
            if not len(going):
                break
            near, at = plans.closer.near, found[going]
            step = plans.closer.newton(at, t[going], target)[1] if near is None else \
                near.newton(at, target.held, target.weights, t[going])[1]
            length = np.abs(step / self.lengths).max(axis=-1, initial=0.0)
            total[going] += length
            fair = np.isfinite(length) & (total[going] <= np.maximum(0.25 * way[going], WALKED)) & (
                (length <= CONTRACTION * before[going]) | (length <= WALKED))
            good[going] &= fair
            found[going[fair]] = self.normalize(self.integrate(at[fair], step[fair]))
            before[going] = length
            going = going[fair & (length > WALKED)]
        good[going] = False
        return found, good

    def loosest(self, q: Floats, at: float) -> str:
        """The joint that moves most along the direction the drives lose."""
        speed = self.closer.loosest(q, self.clock(at))
        return "none" if speed is None else self.closer.system.speed_names[speed].rpartition(".")[0]
