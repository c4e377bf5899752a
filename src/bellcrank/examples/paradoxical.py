"""Spatial loops of hinges that move although counting constraints says they should not."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bellcrank.examples.shapes import bar
from bellcrank.mechanism.joints import Revolute
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["bennett", "bricard"]


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
