"""Spatial loops: ladders of any number of cells, and loops of hinges that move although
counting says they should not.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.examples.linkages import bar, truss
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Revolute, Spherical, Universal
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

__all__ = ["bennett", "bricard", "four_bar_chain", "ladder", "n_four_bars", "rope_ladder"]


# -- loops beside loops: machines of any number of cells, built cell by cell ------------------------
def _check(name: str, what: str, count: int, least: int) -> None:
    if count < least:
        raise ModelError(f"{name}: {what} must be at least {least}, got {count}")


def ladder(cells: int = 4) -> Mechanism:
    """Pendulums on Hooke joints in a row, neighbouring tips joined by pinned couplers (Anderson & Critchley,
    section 4.3). Two degrees of freedom for any number of cells: drive both angles of "arm0".

    All arms hang along -z at q = 0, where the loops are closed; they are closed whenever all "arm" angles are
    the same (q1, q2), "inner" = -q2 and "outer" = q2. Each loop has two redundant constraints. The masses are
    such that the motion is the same for any number of cells.
    """
    _check("ladder", "cells", cells, 0)
    m = Mechanism(f"ladder of {cells}")
    pitch = 0.5
    arm = Inertia(1.2, (0.0, 0.0, -0.4), (0.11, 0.10, 0.02))
    coupler = Inertia(0.8, (pitch / 2, 0.0, 0.0), (0.03, 0.05, 0.06))
    hooke, pin = Universal("x", "y"), Revolute("y")
    tip, end, here = Pose((0.0, 0.0, -1.0)), Pose((pitch, 0.0, 0.0)), Pose()
    last = m.add_body("arm0", Inertia(2.0, (0.0, 0.0, -0.64), (0.3128, 0.2728, 0.05)))
    m.add_joint("arm0", hooke, m.ground, last)
    for i in range(1, cells + 1):
        rung, following = m.add_body(f"coupler{i}", coupler), m.add_body(f"arm{i}", arm)
        m.add_joint(f"inner{i}", pin, last, rung, tip, here)
        m.add_joint(f"arm{i}", hooke, m.ground, following, Pose((i * pitch, 0.0, 0.0)), here)
        m.add_joint(f"outer{i}", pin, rung, following, end, tip)
        last = following
    return m


def rope_ladder(rungs: int = 4) -> Mechanism:
    """Two chains that hang side by side, a rung between each pair of their links; closed at q = 0.

    Links hang on universal joints, so that they do not spin; a rung has a ball joint at its left end and a
    universal joint at its right one. Each rung adds 3 bodies and the freedoms 2 + 2 + 3 + 2 of four joints,
    less the 6 constraints of a loop: 3 degrees of freedom per rung, no constraint redundant. Neighbouring
    loops share a rung and two links; only the first touches the ground. Drive "left1" and one angle of
    "right1", if at all: it is meant to swing.
    """
    _check("rope_ladder", "rungs", rungs, 1)
    m = Mechanism(f"rope ladder of {rungs}")
    width, pitch = 0.4, 0.3
    link = Inertia.cylinder(0.15, 0.01, pitch, "z", (0.0, 0.0, -pitch / 2))
    rung = Inertia.cylinder(0.5, 0.015, width, "x", (width / 2, 0.0, 0.0))
    hooke, ball, fork = Universal("x", "y"), Spherical(), Universal("z", "y")
    here, low, end = Pose(), Pose((0.0, 0.0, -pitch)), Pose((width, 0.0, 0.0))
    left, right, left_at, right_at = m.ground, m.ground, here, end
    for i in range(1, rungs + 1):
        below, step, beside = (m.add_body(f"left{i}", link), m.add_body(f"rung{i}", rung),
                               m.add_body(f"right{i}", link))
        m.add_joint(f"left{i}", hooke, left, below, left_at, here)
        m.add_joint(f"right{i}", hooke, right, beside, right_at, here)
        m.add_joint(f"ball{i}", ball, below, step, low, here)
        m.add_joint(f"fork{i}", fork, step, beside, end, low)
        left, right, left_at, right_at = below, beside, low, low
    return m


def four_bar_chain(cells: int = 4) -> Mechanism:
    """A tower of planar four-bars: each stands on the coupler of the one below; closed at q = 0. It lies in the
    x-y plane with gravity along -y. As many degrees of freedom as cells: drive "crank1", "crank2", ...

    Each loop is planar, so three of its constraints are redundant.
    """
    _check("four_bar_chain", "cells", cells, 1)
    m = Mechanism(f"chain of {cells} four-bars", gravity=(0.0, -9.81, 0.0))
    base, crank_tip, rocker_tip = (0.4, 0.0, 0.0), (0.05, 0.3, 0.0), (-0.1, 0.25, 0.0)
    # the coupler: lower pins at its origin and at `across`, upper ones that carry the next cell
    across = (base[0] + rocker_tip[0] - crank_tip[0], rocker_tip[1] - crank_tip[1], 0.0)
    left, right = (-0.05, 0.1, 0.0), (0.35, 0.1, 0.0)
    crank, rocker = bar(0.6, (0, 0, 0), crank_tip, 0.015), bar(0.5, (0, 0, 0), rocker_tip, 0.015)
    coupler = truss(0.8, ((0.0, 0.0, 0.0), across, right, left), 0.012)
    pin, here = Revolute("z"), Pose()
    crank_end, rocker_end, coupler_end = Pose(crank_tip), Pose(rocker_tip), Pose(across)
    below, feet, shoulders = m.ground, (here, Pose(base)), (Pose(left), Pose(right))
    for i in range(1, cells + 1):
        first, plate, second = (m.add_body(f"crank{i}", crank), m.add_body(f"coupler{i}", coupler),
                                m.add_body(f"rocker{i}", rocker))
        m.add_joint(f"crank{i}", pin, below, first, feet[0], here)
        m.add_joint(f"rocker{i}", pin, below, second, feet[1], here)
        m.add_joint(f"front{i}", pin, first, plate, crank_end, here)
        m.add_joint(f"rear{i}", pin, second, plate, rocker_end, coupler_end)
        below, feet = plate, shoulders
    return m


def n_four_bars(cells: int = 2) -> Mechanism:
    """Four-bars side by side, neighbours share an arm: problem A02 of the IFToMM library of multibody benchmarks. One
    degree of freedom for any number of cells: drive "arm0".

    All rods are 1 m long and have 1 kg; at q = 0 the arms stand upright along y and the loops are closed, gravity acts
    along -y. The problem starts there with the tip of the first arm at 1 m/s along x: arm0 at -1 rad/s. When the arms
    lie flat each loop may move in one way more, and the motion goes through that position twice in a turn.
    """
    _check("n_four_bars", "cells", cells, 1)
    m = Mechanism(f"{cells} four-bars", gravity=(0.0, -9.81, 0.0))
    arm, coupler = Inertia.rod(1.0, (0, 0, 0), (0, 1, 0)), Inertia.rod(1.0, (0, 0, 0), (1, 0, 0))
    pin, here, tip, end = Revolute("z"), Pose(), Pose((0.0, 1.0, 0.0)), Pose((1.0, 0.0, 0.0))
    last = m.add_body("arm0", arm)
    m.add_joint("arm0", pin, m.ground, last)
    for i in range(1, cells + 1):
        beam, following = m.add_body(f"coupler{i}", coupler), m.add_body(f"arm{i}", arm)
        m.add_joint(f"front{i}", pin, last, beam, tip, here)
        m.add_joint(f"arm{i}", pin, m.ground, following, Pose((float(i), 0.0, 0.0)), here)
        m.add_joint(f"rear{i}", pin, beam, following, end, tip)
        last = following
    return m


# -- spatial loops of hinges that move although counting constraints says they should not -----------
def bennett() -> Mechanism:
    """Bennett's linkage: four hinges, opposite links of equal length a, b and twist alpha, beta between their
    axes, with a / sin(alpha) = b / sin(beta). One degree of freedom (counting says -2): drive "hinge1".

    In the design position the angles theta of Denavit and Hartenberg satisfy theta1 + theta3 = theta2 +
    theta4 = 2 pi and tan(theta1/2) tan(theta2/2) = sin((beta + alpha)/2) / sin((beta - alpha)/2).
    """
    alpha, beta, a, theta1 = math.radians(40.0), math.radians(75.0), 0.3, 1.2
    b = a * math.sin(beta) / math.sin(alpha)
    theta2 = 2.0 * math.atan(math.sin((beta + alpha) / 2) / math.sin((beta - alpha) / 2) / math.tan(theta1 / 2))
    return _ring("bennett", [theta1, theta2, -theta1, -theta2], [a, b, a, b], [alpha, beta, alpha, beta])


def bricard() -> Mechanism:
    """The threefold symmetric orthogonal loop of Bricard: six hinges, equal links, neighbouring axes at right
    angles with alternating sense. One degree of freedom (counting says 0): drive "hinge1".

    In the design position the angles are theta and phi in turn, with cos theta + cos phi + cos theta cos phi = 0.
    """
    theta = 1.1
    phi = math.acos(-math.cos(theta) / (1.0 + math.cos(theta)))
    twist = math.pi / 2
    return _ring("bricard", [theta, phi] * 3, [0.3] * 6, [twist, -twist] * 3)


def _ring(name: str, angles: Sequence[float], lengths: Sequence[float], twists: Sequence[float]) -> Mechanism:
    """A loop of hinges in the design position, from the parameters of Denavit and Hartenberg: turn by the angle
    about the axis, go the length along the common normal, twist about that. The last link is the ground."""
    points, axes = [], []
    turn, at = np.eye(3), np.zeros(3)
    for angle, length, twist in zip(angles, lengths, twists, strict=True):
        points.append(at.tolist())
        axes.append(turn[:, 2].tolist())
        turn = turn @ _about(2, angle)
        at = at + length * turn[:, 0]
        turn = turn @ _about(0, twist)
    m = Mechanism(name)
    bodies = [m.ground]
    for k in range(1, len(points)):
        bodies.append(m.add_body(f"link{k}", bar(2.0 * lengths[k - 1], points[k - 1], points[k], 0.015)))
        m.add_joint(f"hinge{k}", Revolute(axes[k - 1]), bodies[k - 1], bodies[k], at=points[k - 1])
    m.add_joint(f"hinge{len(points)}", Revolute(axes[-1]), bodies[-1], m.ground, at=points[-1])
    return m


def _about(axis: int, angle: float) -> npt.NDArray[np.float64]:
    c, s = math.cos(angle), math.sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    turn = np.eye(3)
    turn[i, i] = turn[j, j] = c
    turn[i, j], turn[j, i] = -s, s
    return turn
