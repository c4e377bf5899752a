"""Jansen's leg: eleven bars that turn a crank into a step.

Theo Jansen's beach animals walk on these. The crank turns evenly; all positions are closed to rounding.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc

TOE = (-0.1815, -0.9157, 0.0)  # m, where the machine is drawn


def run(duration: float = 4.0) -> bc.Result:
    m = bc.load("jansen")
    m.add_shape("foot", bc.Sphere(0.03), bc.Pose(TOE), color="tomato")
    leg = bc.compile(m, actuated=["crank"])
    times = np.linspace(0.0, duration, max(2, round(50 * duration) + 1))
    return bc.analyze.drive(leg, {"crank": lambda t: -0.5 * math.pi * t}, times)


def main(out: str = "jansen_leg.html") -> object:
    return run().animate(out, traces=[("foot", TOE)])


if __name__ == "__main__":
    main()
