"""Walking machines whose legs contain loops."""

from __future__ import annotations

import math

from bellcrank.examples.shapes import bar
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Revolute
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["linkage_quadruped"]


def linkage_quadruped() -> Mechanism:
    """A floating trunk on four legs whose knees are moved through a four-bar: a crank at the top of the thigh, a
    push rod, and a lever of the shank behind the knee. In the design position, with the trunk's centre at the
    origin. 18 degrees of freedom, 6 of the trunk and 3 per leg: drive "FL_abduction", "FL_hip", "FL_crank" and
    likewise those of FR, HL, HR. Each four-bar has three redundant constraints.
    """
    m = Mechanism("linkage quadruped")
    trunk = m.add_body("trunk", Inertia.box(12.0, (0.4, 0.2, 0.12)))
    m.add_joint("floating", Free(), m.ground, trunk, at=(0, 0, 0))
    roll, pitch = Revolute("x"), Revolute("y")
    for name, x, inner in (("FL", 0.2, 0.08), ("FR", 0.2, -0.08), ("HL", -0.2, 0.08), ("HR", -0.2, -0.08)):
        y = inner + math.copysign(0.08, inner)
        top, knee, foot = (x, y, 0.0), (x - 0.1, y, -0.18), (x, y, -0.36)
        # the four-bar: thigh from `motor` to `knee`, crank, rod and the shank's lever
        motor, crank_pin, lever = (x - 0.01, y, -0.02), (x - 0.045, y, 0.0), (x - 0.145, y, -0.145)
        hip = m.add_body(f"{name}_hip", Inertia.cylinder(0.7, 0.04, 0.06, "y", (x, (inner + y) / 2, 0.0)))
        thigh = m.add_body(f"{name}_thigh", bar(0.9, top, knee, 0.02))
        shank = m.add_body(f"{name}_shank", bar(0.25, knee, foot, 0.012).combined(bar(0.06, knee, lever, 0.012)))
        crank = m.add_body(f"{name}_crank", bar(0.08, motor, crank_pin, 0.01))
        rod = m.add_body(f"{name}_rod", bar(0.1, crank_pin, lever, 0.006))
        m.add_joint(f"{name}_abduction", roll, trunk, hip, at=(x, inner, 0.0))
        m.add_joint(f"{name}_hip", pitch, hip, thigh, at=top)
        m.add_joint(f"{name}_knee", pitch, thigh, shank, at=knee)
        m.add_joint(f"{name}_crank", pitch, thigh, crank, at=motor)
        m.add_joint(f"{name}_pin", pitch, crank, rod, at=crank_pin)
        m.add_joint(f"{name}_lever", pitch, rod, shank, at=lever)
        m.add_frame(f"{name}_foot", shank, Pose(foot))
    return m
