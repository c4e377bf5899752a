"""Parallel robots: a platform on several legs."""

from __future__ import annotations

import math

from bellcrank.examples.shapes import Point, bar, cross, direction
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Prismatic, Revolute, Spherical, Universal
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["delta", "stewart"]


def _around(radius: float, angle: float, z: float) -> Point:
    return radius * math.cos(angle), radius * math.sin(angle), z


def _along(start: Point, end: Point, part: float) -> Point:
    x, y, z = (a + part * (b - a) for a, b in zip(start, end, strict=True))
    return x, y, z


def stewart() -> Mechanism:
    """A Gough-Stewart platform: six legs, each a cylinder on a universal joint, a piston that slides in it, and
    a ball joint under the platform; in the design position. Six degrees of freedom: drive "leg1.slide" to
    "leg6.slide". Each leg leaves the platform all its freedom and none of its own."""
    m = Mechanism("stewart")
    height = 0.8
    platform = m.add_body("platform", Inertia.cylinder(40.0, 0.35, 0.04, "z", (0.0, 0.0, height)))
    for leg in range(1, 7):
        pair, side = (leg - 1) // 2 * 2.0 * math.pi / 3.0, 1.0 if leg % 2 else -1.0
        foot = _around(0.6, pair + side * math.radians(12.0), 0.0)
        head = _around(0.35, pair + side * math.radians(48.0), height)
        axis = direction(foot, head)
        first = cross((0.0, 0.0, 1.0), axis)
        cylinder = m.add_body(f"leg{leg}.cylinder", bar(5.0, foot, _along(foot, head, 0.55), 0.03))
        piston = m.add_body(f"leg{leg}.piston", bar(2.0, _along(foot, head, 0.4), head, 0.015))
        m.add_joint(f"leg{leg}.foot", Universal(first, cross(axis, first)), m.ground, cylinder, at=foot)
        m.add_joint(f"leg{leg}.slide", Prismatic(axis), cylinder, piston, at=foot)
        m.add_joint(f"leg{leg}.ball", Spherical(), piston, platform, at=head)
    return m


def delta() -> Mechanism:
    """Clavel's delta robot, hanging: three arms on hinges, each with a parallelogram of two rods to the platform,
    which does not turn; in the design position. Three degrees of freedom: drive "leg1.arm" to "leg3.arm".

    With ball joints at both ends each rod could spin about itself: here they have a universal joint at the
    elbow. Then 10 bodies, 3 hinges, 6 universal and 6 ball joints leave 60 - 15 - 24 - 18 = 3 freedoms, none idle
    and no constraint redundant.
    """
    m = Mechanism("delta")
    height = -0.6
    platform = m.add_body("platform", Inertia.cylinder(0.6, 0.06, 0.02, "z", (0.0, 0.0, height)))
    for leg in range(1, 4):
        turn = (leg - 1) * 2.0 * math.pi / 3.0
        across = (-math.sin(turn), math.cos(turn), 0.0)
        hip, elbow, wrist = _around(0.2, turn, 0.0), _around(0.4, turn, -0.12), _around(0.06, turn, height)
        arm = m.add_body(f"leg{leg}.arm", bar(0.8, hip, elbow, 0.02))
        m.add_joint(f"leg{leg}.arm", Revolute(across), m.ground, arm, at=hip)
        for name, side in (("left", 0.05), ("right", -0.05)):
            top, bottom = ((p[0] + side * across[0], p[1] + side * across[1], p[2]) for p in (elbow, wrist))
            rod = m.add_body(f"leg{leg}.{name}", bar(0.12, top, bottom, 0.006))
            m.add_joint(f"leg{leg}.{name}.elbow", Universal(across, cross(direction(top, bottom), across)), arm, rod,
                        at=top)
            m.add_joint(f"leg{leg}.{name}.wrist", Spherical(), rod, platform, at=bottom)
    return m
