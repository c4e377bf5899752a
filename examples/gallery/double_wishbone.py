"""Double wishbone: a steered front wheel goes over bumps, turns and rolls at once.

The wheel's travel, the steering rack and the wheel's own spin are given; camber and toe follow.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    drives = ["lower_arm", "rack", "wheel"]
    m = bc.load("double_wishbone")
    m.add_shape("wheel", bc.Cylinder(0.3, 0.2), bc.Pose((0, 0.76, 0.32), (0.5**0.5, 0.5**0.5, 0, 0)), color="#44444488")
    front = bc.compile(m, actuated=drives)
    motion = {"lower_arm": lambda t: 0.2 * bc.math.sin(math.pi * t), "wheel": lambda t: 6.0 * t,
              "rack": lambda t: 0.04 * bc.math.sin(0.5 * math.pi * t)}
    times = np.linspace(0.0, duration, max(2, round(50 * duration) + 1))
    return bc.analyze.drive(front, motion, times)


def main(out: str = "double_wishbone.html") -> object:
    return run().animate(out, traces=[("wheel", (0.0, 0.76, 0.32))])


if __name__ == "__main__":
    main()
