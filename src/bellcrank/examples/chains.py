"""Chains and robots: pendulums, a gyroscope, chains of any length, arms, legged machines, platforms on several legs."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from bellcrank.arrays import random_source
from bellcrank.errors import ModelError
from bellcrank.examples.linkages import Point, bar, cross, direction
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import AxisJoint, Cylindrical, Free, Prismatic, Revolute, Spherical, Universal
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["arm", "crane", "delta", "double_pendulum", "general_chain", "gyroscope", "linkage_quadruped", "pendulum",
           "quadruped", "random_chain", "scara", "stewart"]


# -- pendulums, a gyroscope and chains of any length ------------------------------------------------
def pendulum() -> Mechanism:
    """A point mass of 1 kg on a light rod of 1 m, swinging about x."""
    m = Mechanism("pendulum")
    bob = m.add_body("bob", Inertia.point(1.0, (0.0, 0.0, -1.0)))
    m.add_joint("hinge", Revolute("x"), m.ground, bob)
    return m


def double_pendulum() -> Mechanism:
    """Two slender rods of 1 m."""
    m = Mechanism("double pendulum")
    upper = m.add_body("upper", Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    lower = m.add_body("lower", Inertia.rod(1.0, (0, 0, 0), (0, 0, -1)))
    m.add_joint("shoulder", Revolute("x"), m.ground, upper)
    m.add_joint("elbow", Revolute("x"), upper, lower, parent_pose=Pose((0, 0, -1)))
    m.add_frame("tip", lower, Pose((0, 0, -1)))
    return m


def gyroscope() -> Mechanism:
    """A heavy top: a disc that spins on an arm with two gimbal angles."""
    m = Mechanism("gyroscope")
    arm = m.add_body("arm", Inertia.rod(0.1, (0, 0, 0), (0.2, 0, 0)))
    disc = m.add_body("disc", Inertia.cylinder(0.5, 0.06, 0.01, "x"))
    m.add_joint("gimbal", Universal("z", "y"), m.ground, arm)
    m.add_joint("spin", Revolute("x"), arm, disc, parent_pose=Pose((0.2, 0, 0)))
    return m


def random_chain(n: int = 10, seed: int = 0) -> Mechanism:
    """A serial chain of n general bodies on hinges with general axes: nothing is parallel or aligned."""
    for what, value, least in (("n", n, 1), ("seed", seed, 0)):
        if value < least:
            raise ModelError(f"chain: {what} must be at least {least}, got {value}")
    return general_chain(n, Revolute, seed)


def general_chain(n: int, joint: Callable[..., Joint], seed: int = 0) -> Mechanism:
    """A chain of n general bodies on joints of one type, with general axes where the type has one."""
    rng = random_source(seed)
    m = Mechanism(f"random chain of {n}")
    turns = rng.normal(size=(n, 4))
    turns /= np.sqrt((turns * turns).sum(-1, keepdims=True))
    spread = rng.normal(size=(n, 3, 3)) * 0.1
    second = spread @ spread.transpose(0, 2, 1) + 0.01 * np.eye(3)
    inertias = np.trace(second, axis1=1, axis2=2)[:, None, None] * np.eye(3) - second
    masses, coms = rng.uniform(0.5, 2.0, n), rng.normal(size=(n, 3)) * 0.1
    shifts, axes = rng.normal(size=(n, 3)) * 0.2, rng.normal(size=(n, 3))
    has_axis = isinstance(joint, type) and issubclass(joint, AxisJoint)
    parent = m.ground
    for i in range(n):
        body = m.add_body(f"link{i}", Inertia(float(masses[i]), coms[i].tolist(), inertias[i], checked=False))
        kind = joint(axes[i]) if has_axis else joint()
        m.add_joint(f"joint{i}", kind, parent, body, Pose(shifts[i].tolist(), turns[i]))
        parent = body
    return m


# -- robots and machines with tree structure --------------------------------------------------------
def scara() -> Mechanism:
    """A SCARA robot: two parallel hinges and a quill that turns and slides."""
    m = Mechanism("scara")
    upper = m.add_body("upper", Inertia.box(6.0, (0.4, 0.12, 0.1), (0.2, 0, 0)))
    fore = m.add_body("fore", Inertia.box(4.0, (0.3, 0.1, 0.08), (0.15, 0, 0)))
    quill = m.add_body("quill", Inertia.cylinder(0.8, 0.01, 0.3))
    m.add_joint("shoulder", Revolute("z"), m.ground, upper, parent_pose=Pose((0, 0, 0.5)))
    m.add_joint("elbow", Revolute("z"), upper, fore, parent_pose=Pose((0.4, 0, 0)))
    m.add_joint("quill", Cylindrical("z"), fore, quill, parent_pose=Pose((0.3, 0, 0)))
    m.add_frame("tool", quill, Pose((0, 0, -0.15)))
    return m


def arm() -> Mechanism:
    """A six-axis arm in the design position: all hinges and centres of mass in global coordinates."""
    m = Mechanism("arm")
    base = m.add_body("base", Inertia.cylinder(20.0, 0.15, 0.3, "z", (0, 0, 0.25)))
    upper = m.add_body("upper", Inertia.box(12.0, (0.12, 0.12, 0.6), (0, 0, 0.7)))
    fore = m.add_body("fore", Inertia.box(7.0, (0.5, 0.1, 0.1), (0.25, 0, 1.0)))
    roll = m.add_body("roll", Inertia.cylinder(3.0, 0.05, 0.2, "x", (0.55, 0, 1.0)))
    wrist = m.add_body("wrist", Inertia.sphere(1.5, 0.05, (0.7, 0, 1.0)))
    flange = m.add_body("flange", Inertia.cylinder(0.4, 0.04, 0.05, "x", (0.78, 0, 1.0)))
    m.add_joint("j1", Revolute("z"), m.ground, base, at=(0, 0, 0))
    m.add_joint("j2", Revolute("y"), base, upper, at=(0, 0, 0.4))
    m.add_joint("j3", Revolute("y"), upper, fore, at=(0, 0, 1.0))
    m.add_joint("j4", Revolute("x"), fore, roll, at=(0.5, 0, 1.0))
    m.add_joint("j5", Revolute("y"), roll, wrist, at=(0.7, 0, 1.0))
    m.add_joint("j6", Revolute("x"), wrist, flange, at=(0.75, 0, 1.0))
    m.add_frame("tool", flange, Pose((0.85, 0, 1.0)))
    return m


def quadruped() -> Mechanism:
    """A floating trunk on four legs of three hinges."""
    m = Mechanism("quadruped")
    trunk = m.add_body("trunk", Inertia.box(12.0, (0.4, 0.2, 0.12)))
    m.add_joint("floating", Free(), m.ground, trunk)
    for name, x, y in (("FL", 0.2, 0.08), ("FR", 0.2, -0.08), ("HL", -0.2, 0.08), ("HR", -0.2, -0.08)):
        side = math.copysign(0.08, y)
        hip = m.add_body(f"{name}_hip", Inertia.cylinder(0.7, 0.04, 0.06, "y", (0, side / 2, 0)))
        thigh = m.add_body(f"{name}_thigh", Inertia.rod(1.0, (0, 0, 0), (0, 0, -0.2)))
        shank = m.add_body(f"{name}_shank", Inertia.rod(0.25, (0, 0, 0), (0, 0, -0.2)))
        m.add_joint(f"{name}_abduction", Revolute("x"), trunk, hip, Pose((x, y, 0)))
        m.add_joint(f"{name}_hip", Revolute("y"), hip, thigh, Pose((0, side, 0)))
        m.add_joint(f"{name}_knee", Revolute("y"), thigh, shank, Pose((0, 0, -0.2)))
        m.add_frame(f"{name}_foot", shank, Pose((0, 0, -0.2)))
    return m


def crane() -> Mechanism:
    """A bridge crane: two slides, and a load on a ball joint."""
    m = Mechanism("crane")
    bridge = m.add_body("bridge", Inertia.box(400.0, (0.5, 10.0, 0.6)))
    trolley = m.add_body("trolley", Inertia.box(60.0, (0.6, 0.6, 0.3)))
    load = m.add_body("load", Inertia.box(200.0, (1, 1, 1), (0, 0, -4.0)))
    m.add_joint("travel", Prismatic("x"), m.ground, bridge, Pose((0, 0, 6.0)))
    m.add_joint("traverse", Prismatic("y"), bridge, trolley)
    m.add_joint("swing", Spherical(), trolley, load)
    return m


# -- walking machines whose legs contain loops ------------------------------------------------------
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


# -- parallel robots: a platform on several legs ----------------------------------------------------
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
