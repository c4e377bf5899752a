"""Stewart platform: six legs that slide give the platform all six freedoms.

Flight simulators stand on these. The legs follow given lengths; forces come out (`run().tau`).
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    legs = [f"leg{i}.slide" for i in range(1, 7)]
    platform = bc.compile(bc.load("stewart"), actuated=legs)
    motion = {leg: lambda t, k=k: 0.08 * bc.math.sin(0.5 * math.pi * t * (1 + k % 3)) for k, leg in enumerate(legs)}
    times = np.linspace(0.0, duration, max(2, round(50 * duration) + 1))
    return bc.analyze.drive(platform, motion, times)


def main(out: str = "stewart_platform.html") -> object:
    return run().animate(out, traces=[("platform", (0, 0, 0.8))])


if __name__ == "__main__":
    main()
