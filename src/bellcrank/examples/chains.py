"""Pendulums, a gyroscope and chains of any length."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from bellcrank.arrays import random_source
from bellcrank.errors import ModelError
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import AxisJoint, Joint, Revolute, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["double_pendulum", "general_chain", "gyroscope", "pendulum", "random_chain"]


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
