"""Peaucellier's cell: seven bars and not one slide, and yet a point goes straight.

Two long bars from the pivot O to a rhombus; the rhombus's near corner goes round a circle through O, and its far corner
runs along an exact line, because the cell inverts circles (1864).
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc

LONG, SHORT, ARM = 0.5, 0.25, 0.15  # m
NEAR = (2 * ARM, 0.0, 0.0)  # the corner on the circle, at its middle
HALF = (LONG**2 - SHORT**2 + NEAR[0] ** 2) / (2 * NEAR[0])  # where the other two corners are, along x
SIDE = math.sqrt(LONG**2 - HALF**2)
UP, DOWN, FAR = (HALF, SIDE, 0.0), (HALF, -SIDE, 0.0), (2 * HALF - NEAR[0], 0.0, 0.0)


def machine() -> bc.Mechanism:
    m = bc.Mechanism("peaucellier", gravity=(0, 0, 0))
    bars = {"arm": ((ARM, 0, 0), NEAR), "long up": ((0, 0, 0), UP), "long down": ((0, 0, 0), DOWN),
            "near up": (NEAR, UP), "near down": (NEAR, DOWN), "far up": (FAR, UP), "far down": (FAR, DOWN)}
    for name, (start, end) in bars.items():
        m.add_body(name, bc.Inertia.rod(1.0, start, end))
    pins = (("arm pivot", m.ground, "arm", (ARM, 0, 0)), ("O up", m.ground, "long up", (0, 0, 0)),
            ("O down", m.ground, "long down", (0, 0, 0)), ("near 1", "arm", "near up", NEAR),
            ("near 2", "arm", "near down", NEAR), ("up 1", "long up", "near up", UP), ("up 2", "long up", "far up", UP),
            ("down 1", "long down", "near down", DOWN), ("down 2", "long down", "far down", DOWN),
            ("far", "far up", "far down", FAR))
    for name, parent, child, point in pins:
        m.add_joint(name, bc.Revolute("z"), parent, child, at=point)
    return m


def run(duration: float = 4.0) -> bc.Result:
    cell = bc.compile(machine(), actuated=["arm pivot"])
    times = np.linspace(0.0, duration, max(2, round(50 * duration) + 1))
    return bc.analyze.drive(cell, {"arm pivot": lambda t: 0.6 * bc.math.sin(0.5 * math.pi * t)}, times)


def main(out: str = "peaucellier.html") -> object:
    return run().animate(out, traces=[("far up", FAR)])


if __name__ == "__main__":
    main()
