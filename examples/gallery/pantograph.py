"""Pantograph: a parallelogram that copies a drawing at twice the size.

The pen follows the tracer: pivot, tracer and pen lie on one line, always. The tracer is moved along a figure eight.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc

PIVOT, LEFT, TOP, RIGHT = (0, 0, 0), (0.1, 0.2, 0), (0.2, 0.4, 0), (0.3, 0.2, 0)
TRACER, PEN = (0.2, 0.0, 0), (0.4, 0.0, 0)  # on one line with the pivot


def machine() -> bc.Mechanism:
    m = bc.Mechanism("pantograph", gravity=(0, 0, 0))
    for name, start, end in (("long left", PIVOT, TOP), ("long right", TOP, PEN), ("short left", LEFT, TRACER),
                             ("short right", TRACER, RIGHT)):
        m.add_body(name, bc.Inertia.rod(0.2, start, end))
    m.add_body("slide", bc.Inertia.sphere(0.02, 0.01, TRACER))
    m.add_body("hand", bc.Inertia.sphere(0.02, 0.01, TRACER))
    m.add_joint("x", bc.Prismatic("x"), m.ground, "slide", at=TRACER)
    m.add_joint("y", bc.Prismatic("y"), "slide", "hand", at=TRACER)
    m.add_joint("grip", bc.Revolute("z"), "hand", "short left", at=TRACER)
    pins = (("pivot", m.ground, "long left", PIVOT), ("top", "long left", "long right", TOP),
            ("left", "long left", "short left", LEFT), ("right", "long right", "short right", RIGHT),
            ("tracer", "short left", "short right", TRACER))
    for name, parent, child, point in pins:
        m.add_joint(name, bc.Revolute("z"), parent, child, at=point)
    return m


def run(duration: float = 4.0) -> bc.Result:
    copier = bc.compile(machine(), actuated=["x", "y"])
    motion = {"x": lambda t: 0.05 * bc.math.sin(0.5 * math.pi * t), "y": lambda t: 0.03 * bc.math.sin(math.pi * t)}
    return bc.analyze.drive(copier, motion, np.linspace(0.0, duration, max(2, round(50 * duration) + 1)))


def main(out: str = "pantograph.html") -> object:
    return run().animate(out, traces=[("short left", TRACER), ("long right", PEN)])


if __name__ == "__main__":
    main()
