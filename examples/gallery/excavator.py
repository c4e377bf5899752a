"""Excavator: three cylinders and a bell crank move boom, stick and bucket while the house slews.

Four loops, four degrees of freedom. The tutorial on it asks for reach and cylinder forces.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc

A, KNEE, B, C = (0.3, 0, 1.4), (2.6, 0, 3.5), (4.8, 0, 3.2), (6.6, 0, 1.0)
ROCKER, CRANK, LEVER = (6.1, 0, 1.62), (6.49, 0, 1.94), (6.97, 0, 1.18)


def cylinder(m: bc.Mechanism, name: str, low: str, high: str, foot: tuple, head: tuple) -> None:
    start, end = np.array(foot), np.array(head)
    middle, axis = 0.5 * (start + end), (end - start) / np.linalg.norm(end - start)
    m.add_body(f"{name} barrel", bc.Inertia.rod(60.0, start, middle))
    m.add_body(f"{name} piston", bc.Inertia.rod(40.0, middle, end))
    m.add_joint(f"{name} foot", bc.Revolute("y"), low, f"{name} barrel", at=start)
    m.add_joint(name, bc.Prismatic(axis), f"{name} barrel", f"{name} piston", at=middle)
    m.add_joint(f"{name} head", bc.Revolute("y"), f"{name} piston", high, at=end)


def machine() -> bc.Mechanism:
    m = bc.Mechanism("excavator")
    m.add_body("house", bc.Inertia.box(9000.0, (2.5, 2.2, 1.6), (-1.0, 0, 1.4)))
    m.add_body("boom", bc.Inertia.rod(700.0, A, KNEE).combined(bc.Inertia.rod(500.0, KNEE, B)))
    m.add_body("stick", bc.Inertia.rod(600.0, B, C))
    m.add_body("bucket", bc.Inertia.box(450.0, (0.8, 1.0, 0.9), (6.7, 0, 0.4)))
    m.add_body("bell crank", bc.Inertia.rod(40.0, ROCKER, CRANK))
    m.add_body("link", bc.Inertia.rod(50.0, CRANK, LEVER))
    m.add_joint("slew", bc.Revolute("z"), m.ground, "house", at=(0, 0, 0))
    for low, high, point in (("house", "boom", A), ("boom", "stick", B), ("stick", "bucket", C),
                             ("link", "bucket", LEVER), ("stick", "bell crank", ROCKER), ("bell crank", "link", CRANK)):
        m.add_joint(f"{low} {high}", bc.Revolute("y"), low, high, at=point)
    cylinder(m, "lift", "house", "boom", (0.9, 0, 1.0), KNEE)
    cylinder(m, "crowd", "boom", "stick", (2.9, 0, 3.9), (4.55, 0, 3.85))
    cylinder(m, "curl", "stick", "bell crank", (5.3, 0, 3.3), CRANK)
    return m


def run(duration: float = 6.0) -> bc.Result:
    digger = bc.compile(machine(), actuated=["slew", "lift", "crowd", "curl"])
    way = {"slew": (0.0, 1.2), "lift": (-0.35, 0.45), "crowd": (0.3, 0.0), "curl": (0.1, 0.3)}
    motion = {name: lambda t, a=a, b=b: a + (b - a) * (0.5 - 0.5 * bc.math.cos(math.pi * t / 3.0))
              for name, (a, b) in way.items()}
    return bc.analyze.drive(digger, motion, np.linspace(0.0, duration, max(2, round(40 * duration) + 1)))


def main(out: str = "excavator.html") -> object:
    return run().animate(out, traces=[("bucket", (6.3, 0, -0.3))])


if __name__ == "__main__":
    main()
