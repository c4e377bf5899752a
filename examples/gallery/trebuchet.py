"""Trebuchet: a falling weight swings the beam, the beam swings a sling, and the stone flies.

The stone hangs in its sling by two constraints that an event opens when the sling points far enough forward.
It would land 150 m away; the picture ends before.
"""

from __future__ import annotations

import bellcrank as bc
from bellcrank import math as bm

AXLE, SHORT, LONG, SLING = 3.0, 1.0, 4.0, 3.0  # height of the axle, arms of the beam, sling [m]
START = 0.55  # angle of the beam at first [rad]: its long arm points down to the back


def machine() -> bc.Mechanism:
    m = bc.Mechanism("trebuchet")
    m.add_body("beam", bc.Inertia.rod(60.0, (SHORT, 0, 0), (-LONG, 0, 0)))
    m.add_body("weight", bc.Inertia.box(900.0, (0.8, 0.8, 0.8), (0, 0, -0.7)))
    m.add_body("sling", bc.Inertia.rod(1.0, (0, 0, 0), (SLING, 0, 0)))
    m.add_body("stone", bc.Inertia.sphere(10.0, 0.1))
    m.add_joint("axle", bc.Revolute("y"), m.ground, "beam", bc.Pose((0, 0, AXLE)))
    m.add_joint("hanger", bc.Revolute("y"), "beam", "weight", bc.Pose((SHORT, 0, 0)))
    m.add_joint("loop", bc.Revolute("y"), "beam", "sling", bc.Pose((-LONG, 0, 0)))
    m.add_joint("flight", bc.Free(), m.ground, "stone")
    m.add_constraint("pouch x", bc.PointOnPlane("x"), "sling", "stone", bc.Pose((SLING, 0, 0)))
    m.add_constraint("pouch z", bc.PointOnPlane("z"), "sling", "stone", bc.Pose((SLING, 0, 0)))
    return m


def let_go(state: bc.State, system: bc.System) -> bc.Change | None:
    return bc.detach(*system.loops) if system.loops else None


def run(duration: float = 1.6) -> bc.Result:
    engine = bc.compile(machine())
    release = bc.Event(lambda t, q, u: bm.cos(q["axle"] + q["loop"]) + 0.6, "release", 1, let_go)
    start = engine.assemble(q={"axle": -START, "hanger": START, "loop": START},
                            guess={"flight": [1, 0, 0, 0, SLING - LONG, 0, 1.0]})
    return engine.simulate(start, duration, output=0.02, events=[release])


def main(out: str = "trebuchet.html") -> object:
    return run().animate(out, traces=["stone"])


if __name__ == "__main__":
    main()
