"""Rolling disk: a coin rolls on a table without slip, leans, and runs in circles.

Rolling binds speeds and not positions (it is nonholonomic): three speeds, but every place on the table can be reached.
"""

from __future__ import annotations

import math

import bellcrank as bc

RADIUS, LEAN = 0.1, 0.35  # m, rad


def machine() -> bc.Mechanism:
    m = bc.Mechanism("rolling disk")
    m.add_body("disk", bc.Inertia.cylinder(0.5, RADIUS, 0.004, "y"))
    m.add_joint("free", bc.Free(), m.ground, "disk")
    m.add_constraint("table", bc.RollingDisk(RADIUS, axis="y"), m.ground, "disk")
    return m


def run(duration: float = 4.0) -> bc.Result:
    coin = bc.compile(machine())
    leaning = [math.cos(LEAN / 2), math.sin(LEAN / 2), 0, 0, 0, 0, RADIUS * math.cos(LEAN)]
    start = coin.assemble(guess=leaning, u=[0.0, 14.0, 1.0, 0, 0, 0])
    return coin.simulate(start, duration, stepper="rk8", step=2e-3, output=0.02)


def main(out: str = "rolling_disk.html") -> object:
    return run().animate(out, traces=[("disk", (0.1, 0, 0))])


if __name__ == "__main__":
    main()
