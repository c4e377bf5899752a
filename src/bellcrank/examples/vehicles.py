"""Wheel suspensions with the chassis as ground: x forward, y outward, z up; and a bicycle on its road."""

from __future__ import annotations

import math

from bellcrank.examples.linkages import bar, cross, direction, slender, vee
from bellcrank.mechanism.constraints import RollingDisk
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Planar, Prismatic, Revolute, Spherical, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number

__all__ = ["double_wishbone", "quarter_car", "whipple_bicycle"]

BALL = Spherical()


def quarter_car(parameters: bool = False) -> Mechanism:
    """A five-link suspension with the counts of Kang & Yoon: a lower arm, the knuckle with the wheel on a ball
    joint, two upper links and a tie rod, one spring with damper. In the design position. One degree of
    freedom: drive "arm". There is no tyre: the wheel hangs on the spring. With `parameters`, the spring's "stiffness"
    [N/m], "damping" [N s/m] and "length" [m] at rest stay inputs."""
    m = Mechanism("quarter car")
    spring: dict[str, Number] = {"stiffness": 25000.0, "damping": 1000.0, "length": 0.41}
    if parameters:
        spring = {name: m.parameter(name, float(value)) for name, value in spring.items()}
    a1, a2, b = (0.15, 0.35, 0.2), (-0.2, 0.36, 0.21), (0.01, 0.7, 0.18)
    c1, d1 = (0.1, 0.42, 0.5), (0.02, 0.66, 0.52)
    c2, d2 = (-0.14, 0.43, 0.49), (-0.04, 0.66, 0.51)
    e, f = (-0.14, 0.38, 0.25), (-0.13, 0.69, 0.245)
    arm = m.add_body("lower_arm", Inertia(4.0, (-0.02, 0.52, 0.195), [[0.045, 0.002, 0.0], [0.002, 0.04, 0.001],
                                                                      [0.0, 0.001, 0.075]]))
    knuckle = m.add_body("knuckle_wheel", Inertia(35.0, (0.0, 0.74, 0.31), [[0.9, 0.01, 0.005], [0.01, 1.6, -0.02],
                                                                            [0.005, -0.02, 0.92]]))
    m.add_joint("arm", Revolute(direction(a1, a2)), m.ground, arm, at=a1)
    m.add_joint("knuckle", BALL, arm, knuckle, at=b)
    links = (("upper_link_front", 0.8, c1, d1), ("upper_link_rear", 0.8, c2, d2), ("tie_rod", 0.6, e, f))
    for name, mass, inner, outer in links:
        body = m.add_body(name, slender(mass, inner, outer, along=2.5e-4 * mass))
        m.add_joint(name, Universal("x", cross((1, 0, 0), direction(inner, outer))), m.ground, body, at=inner)
    for name, _, _, outer in links:
        m.add_joint(f"{name}_ball", BALL, name, knuckle, at=outer)
    m.add_spring("spring", m.ground, arm, (-0.02, 0.45, 0.62), (-0.01, 0.56, 0.2), **spring)
    return m


def double_wishbone() -> Mechanism:
    """A steered front suspension: two wishbones, the knuckle between their ball joints, a tie rod from the
    steering rack, the wheel on its bearing, a spring with damper. In the design position. Three degrees of
    freedom: drive "lower_arm" (bump), "rack" (steer) and "wheel" (roll)."""
    m = Mechanism("double wishbone")
    lower_front, lower_rear, lower_ball = (0.2, 0.35, 0.2), (-0.16, 0.36, 0.21), (0.01, 0.72, 0.19)
    upper_front, upper_rear, upper_ball = (0.12, 0.42, 0.48), (-0.14, 0.44, 0.47), (-0.015, 0.66, 0.5)
    inner, outer, centre = (-0.14, 0.33, 0.26), (-0.13, 0.68, 0.27), (0.0, 0.76, 0.32)
    lower = m.add_body("lower_arm", vee(4.2, lower_front, lower_rear, lower_ball, 0.018))
    upper = m.add_body("upper_arm", vee(2.1, upper_front, upper_rear, upper_ball, 0.014))
    upright = bar(5.0, lower_ball, upper_ball, 0.03)
    knuckle = m.add_body("knuckle", upright.combined(bar(1.2, (-0.005, 0.69, 0.28), outer, 0.015),
                                                     Inertia.cylinder(3.0, 0.04, 0.1, "y", (0.0, 0.71, 0.32))))
    rack = m.add_body("rack", Inertia.cylinder(2.5, 0.015, 0.6, "y", (-0.14, 0.03, 0.26)))
    tie_rod = m.add_body("tie_rod", bar(0.7, inner, outer, 0.009))
    wheel = m.add_body("wheel", Inertia.cylinder(21.0, 0.3, 0.2, "y", centre))
    m.add_joint("lower_arm", Revolute(direction(lower_rear, lower_front)), m.ground, lower, at=lower_front)
    m.add_joint("knuckle", BALL, lower, knuckle, at=lower_ball)
    m.add_joint("wheel", Revolute("y"), knuckle, wheel, at=centre)
    m.add_joint("upper_arm", Revolute(direction(upper_rear, upper_front)), m.ground, upper, at=upper_front)
    m.add_joint("rack", Prismatic("y"), m.ground, rack, at=inner)
    m.add_joint("tie_rod", Universal("x", cross((1, 0, 0), direction(inner, outer))), rack, tie_rod, at=inner)
    m.add_joint("upper_ball", BALL, upper, knuckle, at=upper_ball)
    m.add_joint("tie_rod_ball", BALL, tie_rod, knuckle, at=outer)
    m.add_spring("spring", m.ground, lower, (0.0, 0.46, 0.62), (0.0, 0.58, 0.2), stiffness=32000.0, damping=1800.0,
                 length=0.445)
    return m


def whipple_bicycle(free: bool = False) -> Mechanism:
    """Whipple's bicycle with the numbers of Meijaard, Papadopoulos, Ruina and Schwab (2007, Proc. R. Soc. A 463): a
    rigid rider on the frame, two thin wheels that roll without slip. x ahead, y left, z up (theirs: y right, z down);
    origin under the rear wheel of the upright bicycle. Seven coordinates can be chosen, three speeds are independent,
    such as "lean", "steer" and "rear". The frame stands as yaw ("place", with x and y), height, lean and pitch, or with
    `free` in one joint "free"."""
    m = Mechanism("Whipple bicycle", gravity=(0.0, 0.0, -9.81))
    rear, front, tilt = (0.0, 0.0, 0.3), (1.02, 0.0, 0.35), math.pi / 10.0
    frame = m.add_body("frame", Inertia(85.0, (0.3, 0.0, 0.9), [[9.2, 0, -2.4], [0, 11.0, 0], [-2.4, 0, 2.8]]))
    fork = m.add_body("fork", Inertia(4.0, (0.9, 0.0, 0.7), [[0.05892, 0, 0.00756], [0, 0.06, 0],
                                                             [0.00756, 0, 0.00708]]))
    m.add_body("rear_wheel", Inertia(2.0, rear, (0.0603, 0.12, 0.0603)))
    m.add_body("front_wheel", Inertia(3.0, front, (0.1405, 0.28, 0.1405)))
    if free:
        m.add_joint("free", Free(), m.ground, frame, at=(0, 0, 0))
    else:
        for name in ("track", "riser", "hull"):
            m.add_body(name, Inertia())
        m.add_joint("place", Planar("z"), m.ground, "track", at=(0, 0, 0))
        m.add_joint("height", Prismatic("z"), "track", "riser", at=(0, 0, 0))
        m.add_joint("lean", Revolute("x"), "riser", "hull", at=(0, 0, 0))
        m.add_joint("pitch", Revolute("y"), "hull", frame, at=(0, 0, 0))
    m.add_joint("steer", Revolute((-math.sin(tilt), 0.0, math.cos(tilt))), frame, fork, at=(1.1, 0, 0))
    for end, body, centre in (("rear", frame, rear), ("front", fork, front)):
        m.add_joint(end, Revolute("y"), body, f"{end}_wheel", at=centre)
        m.add_constraint(f"{end}_road", RollingDisk(centre[2]), m.ground, f"{end}_wheel", child_pose=Pose(centre))
    return m
