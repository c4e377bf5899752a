"""Spring leg: a leg like that of a running bird, with a sprung knee and a push rod to the heel; it lands and bounces.

The rod has no mass (a distance). The foot closes with the floor where it touches, and lets go when that would pull.
"""

from __future__ import annotations

import bellcrank as bc
from bellcrank import math as bm

HIP, KNEE, HEEL, TOE = (0, 0, 0), (0.18, 0, -0.35), (-0.05, 0, -0.7), (0.12, 0, -0.95)
ROD, SPUR = (0.02, 0, -0.06), (-0.12, 0, -0.6)  # of the push rod: on the thigh, and behind the heel


def machine() -> bc.Mechanism:
    m = bc.Mechanism("spring leg")
    m.add_body("trunk", bc.Inertia.box(8.0, (0.3, 0.2, 0.2)))
    m.add_body("thigh", bc.Inertia.rod(1.5, HIP, KNEE))
    m.add_body("shin", bc.Inertia.rod(0.8, KNEE, HEEL))
    m.add_body("tarsus", bc.Inertia.rod(0.4, HEEL, TOE).combined(bc.Inertia.rod(0.1, HEEL, SPUR)))
    m.add_joint("guide", bc.Prismatic("z"), m.ground, "trunk", at=HIP)
    for name, upper, lower, point in (("hip", "trunk", "thigh", HIP), ("knee", "thigh", "shin", KNEE),
                                      ("heel", "shin", "tarsus", HEEL)):
        m.add_joint(name, bc.Revolute("y"), upper, lower, at=point)
    length = sum((a - b) ** 2 for a, b in zip(ROD, SPUR, strict=True)) ** 0.5
    m.add_constraint("rod", bc.Distance(length), "thigh", "tarsus", bc.Pose(ROD), bc.Pose(SPUR))
    m.add_joint_spring("knee spring", "knee", stiffness=250.0, damping=1.0)
    m.add_joint_spring("hip servo", "hip", stiffness=400.0, damping=8.0)
    m.add_joint("foot", bc.Spherical(), m.ground, "tarsus", "at closing", bc.Pose(TOE), closed=False)
    return m


def height(t: float, q: bc.State, u: bc.State) -> float:
    """Of the toe above the floor: the three bones, each turned by the angles above it."""
    z, angle = q["guide"] - TOE[2], 0.0
    for joint, start, end in (("hip", HIP, KNEE), ("knee", KNEE, HEEL), ("heel", HEEL, TOE)):
        angle = angle + q[joint]
        z = z + (end[2] - start[2]) * bm.cos(angle) - (end[0] - start[0]) * bm.sin(angle)
    return z


def run(duration: float = 2.0) -> bc.Result:
    leg = bc.compile(machine())
    events = [bc.Event(height, "touch-down", -1, bc.attach("foot")), bc.lift_off("foot")]
    return leg.simulate(leg.assemble(q={"guide": 0.3}), duration, step=2e-3, output=0.02, events=events)


def main(out: str = "spring_leg.html") -> object:
    return run().animate(out, traces=[("tarsus", TOE)])


if __name__ == "__main__":
    main()
