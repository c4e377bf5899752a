"""Robots and machines with tree structure."""

from __future__ import annotations

import math

from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Cylindrical, Free, Prismatic, Revolute, Spherical
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["arm", "crane", "quadruped", "scara"]


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
