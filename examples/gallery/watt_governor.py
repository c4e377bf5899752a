"""Watt's governor: two balls fly out as the shaft speeds up, and lift a sleeve that would close the valve.

Two loops over one sleeve. A motor brings the shaft to speed; the sleeve finds its height.
"""

from __future__ import annotations

import bellcrank as bc

TOP, BALL, LOW = 0.4, 0.2, 0.0  # heights of hinge, ball and sleeve [m]


def machine() -> bc.Mechanism:
    m = bc.Mechanism("watt governor")
    m.add_body("shaft", bc.Inertia.cylinder(4.0, 0.05, 0.6, "z", (0, 0, 0.2)))
    m.add_body("sleeve", bc.Inertia.cylinder(1.0, 0.04, 0.06, "z", (0, 0, LOW)))
    m.add_joint("shaft", bc.Revolute("z"), m.ground, "shaft", at=(0, 0, 0))
    m.add_joint("lift", bc.Prismatic("z"), "shaft", "sleeve", at=(0, 0, LOW))
    for name, side in (("left", -1.0), ("right", 1.0)):
        hinge, ball, foot = (0.03 * side, 0, TOP), (0.15 * side, 0, BALL), (0.04 * side, 0, LOW)
        arm = bc.Inertia.rod(0.2, hinge, ball).combined(bc.Inertia.sphere(1.0, 0.04, ball))
        m.add_body(f"{name} arm", arm)
        m.add_shape(f"{name} arm", bc.Sphere(0.05), bc.Pose(ball), color="gold")
        m.add_body(f"{name} link", bc.Inertia.rod(0.1, ball, foot))
        m.add_joint(f"{name} hinge", bc.Revolute("y"), "shaft", f"{name} arm", at=hinge)
        m.add_joint(f"{name} pin", bc.Revolute("y"), f"{name} arm", f"{name} link", at=ball)
        m.add_joint(f"{name} foot", bc.Revolute("y"), f"{name} link", "sleeve", at=foot)
    m.add_friction("dashpot", "lift", viscous=25.0)
    m.add_spring("return", "shaft", "sleeve", (0, 0, TOP), (0, 0, LOW), stiffness=0.0, damping=5.0, length=0.4)
    return m


def run(duration: float = 4.0) -> bc.Result:
    governor = bc.compile(machine())
    motor = bc.Traced(lambda t, q, u: {"shaft": 0.6 * (14.0 - u["shaft"])})
    return governor.simulate(governor.assemble(u={"shaft": 6.0}), duration, output=0.02, control=motor)


def main(out: str = "watt_governor.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
