"""Scissor lift: pairs of crossed bars lift a table with one slide at the ground.

One degree of freedom, and a loop in every stage; most constraints of the planar loops are redundant.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc


def run(duration: float = 4.0) -> bc.Result:
    lift = bc.compile(bc.load("scissor_lift", stages=3), actuated=["slide"])
    times = np.linspace(0.0, duration, max(2, round(50 * duration) + 1))
    return bc.analyze.drive(lift, {"slide": lambda t: -0.12 * (1.0 - bc.math.cos(0.5 * math.pi * t))}, times)


def main(out: str = "scissor_lift.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
