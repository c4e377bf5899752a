"""Four-cylinder engine: one crankshaft, four rods, four pistons.

Crank pins at 0, 180, 180 and 0 degrees: forces of first order cancel, those of second order add up.
"""

from __future__ import annotations

import bellcrank as bc

RADIUS, ROD, PITCH = 0.045, 0.14, 0.1  # m
SIDES = (1.0, -1.0, -1.0, 1.0)


def machine() -> bc.Mechanism:
    m = bc.Mechanism("four-cylinder engine")
    m.add_body("crankshaft", bc.Inertia.cylinder(12.0, 0.06, 4 * PITCH, "x", (1.5 * PITCH, 0, 0)))
    m.add_joint("main", bc.Revolute("x"), m.ground, "crankshaft", at=(0, 0, 0))
    for k, side in enumerate(SIDES, start=1):
        x = (k - 1) * PITCH
        pin, wrist = (x, 0, side * RADIUS), (x, 0, side * RADIUS + ROD)
        m.add_body(f"rod {k}", bc.Inertia.rod(0.5, pin, wrist))
        m.add_body(f"piston {k}", bc.Inertia.cylinder(0.4, 0.04, 0.05, "z", wrist))
        m.add_shape(f"piston {k}", bc.Cylinder(0.04, 0.05), bc.Pose(wrist), color="silver")
        m.add_joint(f"pin {k}", bc.Revolute("x"), "crankshaft", f"rod {k}", at=pin)
        m.add_joint(f"wrist {k}", bc.Revolute("x"), f"rod {k}", f"piston {k}", at=wrist)
        m.add_joint(f"bore {k}", bc.Prismatic("z"), m.ground, f"piston {k}", at=wrist)
    return m


def run(duration: float = 2.0) -> bc.Result:
    """At four turns a second, slow enough to watch."""
    engine = bc.compile(machine())
    return engine.simulate(engine.assemble(q={"main": 0.1}, u={"main": 25.0}), duration, output=0.01)


def main(out: str = "engine.html") -> object:
    return run().animate(out)


if __name__ == "__main__":
    main()
