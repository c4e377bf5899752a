"""Four-bar linkage: a crank turns, a rocker swings, and a point of the coupler draws a curve.

The simplest closed loop. It starts with a push and turns on by itself; nothing is lost.
"""

from __future__ import annotations

import bellcrank as bc

A, B, C, D = (0, 0, 0), (0, 0.3, 0), (0.9, 0.6, 0), (1.0, 0, 0)


def machine() -> bc.Mechanism:
    m = bc.Mechanism("four-bar", gravity=(0, -9.81, 0))
    m.add_body("crank", bc.Inertia.rod(1.5, A, B))
    m.add_body("coupler", bc.Inertia.rod(5.0, B, C))
    m.add_body("rocker", bc.Inertia.rod(3.0, D, C))
    m.add_joint("A", bc.Revolute("z"), m.ground, "crank", at=A)
    m.add_joint("B", bc.Revolute("z"), "crank", "coupler", at=B)
    m.add_joint("C", bc.Revolute("z"), "coupler", "rocker", at=C)
    m.add_joint("D", bc.Revolute("z"), m.ground, "rocker", at=D)
    return m


def run(duration: float = 4.0) -> bc.Result:
    linkage = bc.compile(machine())
    return linkage.simulate(linkage.assemble(u={"A": 9.0}), duration, output=0.02)


def main(out: str = "four_bar.html") -> object:
    return run().animate(out, traces=[("coupler", (0.45, 0.7, 0))])


if __name__ == "__main__":
    main()
