"""Delta robot: three arms and six rods carry a platform that never turns.

Clavel's idea of 1985, the fastest way to put chocolates into boxes. Three motors swing in turn.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    arms = [f"leg{i}.arm" for i in (1, 2, 3)]
    robot = bc.compile(bc.load("delta"), actuated=arms)
    motion = {arm: lambda t, k=k: 0.35 * bc.math.sin(math.pi * t + 2.0 * math.pi * k / 3.0)
              - 0.35 * math.sin(2.0 * math.pi * k / 3.0) for k, arm in enumerate(arms)}
    times = np.linspace(0.0, duration, max(2, round(50 * duration) + 1))
    return bc.analyze.drive(robot, motion, times)


def main(out: str = "delta_robot.html") -> object:
    return run().animate(out, traces=[("platform", (0, 0, -0.6))])


if __name__ == "__main__":
    main()
