"""Geneva wheel: a pin enters a slot, turns the wheel by a quarter, and leaves; a disk holds the wheel in between.

The machine changes while it runs: events close and open the slots, and lock the axle. No energy is lost.
"""

from __future__ import annotations

import math

import bellcrank as bc

CRANK = 0.05  # radius of the pin [m]
CENTERS = CRANK * math.sqrt(2.0)  # the pin enters along the slot


def machine() -> bc.Mechanism:
    m = bc.Mechanism("geneva wheel", gravity=(0, 0, 0))
    m.add_body("crank", bc.Inertia.cylinder(0.8, 0.06, 0.01, "z"))
    m.add_body("wheel", bc.Inertia.cylinder(0.3, 0.05, 0.01, "z"))
    m.add_joint("motor", bc.Revolute("z"), m.ground, "crank")
    m.add_joint("axle", bc.Revolute("z"), m.ground, "wheel", bc.Pose((CENTERS, 0, 0)))
    for k in range(4):
        slot, pin = bc.Pose.about("z", 1.25 * math.pi + 0.5 * math.pi * k), bc.Pose((CRANK, 0, 0))
        m.add_constraint(f"slot {k}", bc.PointOnPlane("y"), "wheel", "crank", slot, pin, closed=False)
    return m


def inside(t: float, q: bc.State, u: bc.State) -> float:
    return bc.math.cos(q["motor"]) - math.cos(0.25 * math.pi)


def enters(state: bc.State, system: bc.System) -> bc.Change:
    return bc.attach(f"slot {round(-state.q[1] / (0.5 * math.pi)) % 4}") + bc.unlock("axle")


def leaves(state: bc.State, system: bc.System) -> bc.Change:
    return bc.detach(*system.loops) + bc.lock("axle")


def run(duration: float = 4.0) -> bc.Result:
    wheel = bc.compile(machine(), lock=["axle"])
    start = wheel.assemble(q={"motor": -math.pi}, u={"motor": 6.0})
    events = [bc.Event(inside, "pin enters", 1, enters), bc.Event(inside, "pin leaves", -1, leaves)]
    return wheel.simulate(start, duration, step=1e-3, stepper="gauss", output=0.01, events=events)


def main(out: str = "geneva_wheel.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
