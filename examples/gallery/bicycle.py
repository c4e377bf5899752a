"""Bicycle: a riderless bicycle is pushed at 4.6 m/s, weaves, and rights itself.

Whipple's model with the numbers of the published benchmark: between 4.3 and 6.0 m/s it balances by itself. Both wheels
roll without slip: seven coordinates can be chosen, three speeds are independent.
"""

from __future__ import annotations

import math

import numpy as np

import bellcrank as bc

SPEED, PUSH = 4.6, 0.5  # m/s, rad/s
AXLE, CRANK, SEAT, HEAD, GRIP = (0.0, 0, 0.3), (0.4, 0, 0.3), (0.35, 0, 0.85), (0.86, 0, 0.75), (0.8, 0, 0.95)
TUBES = {"frame": [(AXLE, SEAT), (SEAT, HEAD), (CRANK, HEAD), (AXLE, CRANK), (CRANK, SEAT)],
         "fork": [((1.02, 0, 0.35), HEAD), (HEAD, GRIP), ((0.8, -0.3, 0.95), (0.8, 0.3, 0.95))]}


def tube(start: tuple[float, ...], end: tuple[float, ...]) -> tuple[bc.Capsule, bc.Pose]:
    way = np.subtract(end, start)
    length = float(np.linalg.norm(way))
    axis, angle = np.cross((0, 0, 1), way / length), math.acos(way[2] / length)
    return bc.Capsule(0.02, length), bc.Pose.about(axis / np.linalg.norm(axis), angle, np.add(start, end) / 2)


def machine() -> bc.Mechanism:
    m = bc.load("whipple_bicycle")
    for body, parts in TUBES.items():
        for ends in parts:
            m.add_shape(body, *tube(*ends), color="#aa3333" if body == "frame" else "#3366aa")
    for body, x, r in (("rear_wheel", 0.0, 0.3), ("front_wheel", 1.02, 0.35)):
        m.add_shape(body, bc.Cylinder(r, 0.03), bc.Pose.about("x", math.pi / 2, (x, 0, r)), color="#333333")
        m.add_shape(body, bc.Box((0.03, 0.04, 1.8 * r)), bc.Pose((x, 0, r)), color="#dddddd")
    return m


def run(duration: float = 4.0) -> bc.Result:
    bicycle = bc.compile(machine())
    start = bicycle.assemble(u={"lean": PUSH, "steer": 0.0, "rear": SPEED / 0.3})
    return bicycle.simulate(start, duration, step=2e-3, output=0.02)


def main(out: str = "bicycle.html") -> object:
    return run().animate(out, traces=[("frame", (0, 0, 0)), ("fork", (1.02, 0, 0))])


if __name__ == "__main__":
    main()
