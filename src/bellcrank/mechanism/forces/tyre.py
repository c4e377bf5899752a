"""Tyres on a plane or a height field: the brush model and the Magic Formula.

H. B. Pacejka, "Tyre and Vehicle Dynamics", 2nd ed., 2006: section 3.2 (brush with a parabolic distribution of
pressure), (4.49)-(4.51) and section 4.3.1 (Magic Formula; combined slip by similarity, with theoretical slip).

| paper | here |
|---|---|
| F_z, mu F_z = D | ``load``, ``mu * load`` |
| kappa / (1 + kappa), tan(alpha) / (1 + kappa) | ``sx``, ``sy`` theoretical slip, against the direction of sliding |
| theta (3.6), C_Falpha | ``theta``, ``slope`` |
| B, C, D, E | ``slope / (c mu load)``, ``c``, ``mu load``, ``e`` |

Slip is that of the speed of rolling, which is not let below `slowest` [m/s]: a tyre at rest creeps like a damper.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces.element import positive_part
from bellcrank.scalar.functions import atan, maximum, minimum, sin, sqrt
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Vector

__all__ = ["Tyre", "brush", "magic_formula"]

_NOTHING = 1e-300
#: depth over which the damping against the ground sets in [m]
_ONSET = 1e-3


def brush(slip: Number, slope: Number, grip: Number) -> Number:
    """Force [N] at a slip >= 0: slope at zero slip [N], at most `grip` [N]; Pacejka (3.8), (3.11).

    >>> round(brush(0.001, 1e5, 4000.0), 3), brush(1.0, 1e5, 4000.0)
    (99.169, 4000.0)
    """
    bent = minimum(slope * slip / (3.0 * grip), 1.0)  # theta sigma
    return grip * bent * (3.0 - bent * (3.0 - bent))


def magic_formula(slip: Number, slope: Number, grip: Number, c: Number, e: Number) -> Number:
    """Force [N] at a slip: D sin(C atan(B s - E (B s - atan(B s)))) with D = grip, B C D = slope; Pacejka (4.49).

    >>> round(magic_formula(0.001, 1e5, 4000.0, 1.5, 0.0), 3)
    99.98
    """
    x = slope / (c * grip) * slip
    return grip * sin(c * atan(x - e * (x - atan(x))))


@dataclass(frozen=True)
class Tyre:
    """A wheel's tyre: the wheel turns about its body's y axis, through its origin.

    `radius` [m], `stiffness` [N/m] and `damping` [N s/m] against the ground; grip `mu`, slope of the force at no slip
    per load, `slope` [1/rad]; `model` "brush" or "magic" with the shape factors `c` and `e`. The ground is z = 0, or
    ``height(x, y)`` [m], a function or a `Table` of two arguments.
    """

    body: str
    radius: float
    stiffness: float
    damping: float
    mu: float
    slope: float
    model: str
    c: float
    e: float
    slowest: float
    height: Callable[[Number, Number], Number] | None = None

    def ground(self, x: Number, y: Number) -> tuple[Number, Vector]:
        """Height and upward normal of the ground."""
        if self.height is None:
            return 0.0, Vector(0.0, 0.0, 1.0)
        along_x = as_jet(self.height(Jet(x, 1.0, 0.0), Jet(y, 0.0, 0.0)))
        along_y = as_jet(self.height(Jet(x, 0.0, 0.0), Jet(y, 1.0, 0.0)))
        up = Vector(-along_x.rate, -along_y.rate, 1.0)
        return along_x.value, up * (1.0 / sqrt(up.dot(up)))

    def __call__(self, at: Any) -> tuple[Vector, Vector]:
        """Force and moment on the wheel at its centre, in world axes."""
        centre, velocity, omega, axle = (at.position(self.body), at.velocity(self.body), at.omega(self.body),
                                         at.axes(self.body)[1])
        height, up = self.ground(centre.x, centre.y)
        ahead = axle.cross(up)
        ahead = ahead * (1.0 / sqrt(maximum(ahead.dot(ahead), _NOTHING)))
        across = up.cross(ahead)
        # the ground as a plane under the centre; the lowest point of the wheel lies in the wheel's plane
        above = (centre.z - height) * up.z
        down = axle.cross(ahead)  # towards the ground, if ahead is right-handed with axle and up
        lean = maximum(-(down.dot(up)), 0.1)
        depth = self.radius - above / lean
        sink = -(velocity.dot(up)) / lean
        touch = positive_part(depth)
        load = positive_part(self.stiffness * touch + self.damping * minimum(touch * (1.0 / _ONSET), 1.0) * sink)
        arm = down * minimum(self.radius, above / lean)
        return self._forces(load, velocity, omega, axle, ahead, across, up, arm)

    def _forces(self, load: Number, velocity: Vector, omega: Vector, axle: Vector, ahead: Vector, across: Vector,
                up: Vector, arm: Vector) -> tuple[Vector, Vector]:
        rolling = self.radius * omega.dot(axle)
        sliding_x = velocity.dot(ahead) - rolling
        sliding_y = velocity.dot(across)
        # theoretical slip: sliding over the speed at which the tread passes
        speed = maximum(abs(rolling), self.slowest)
        sx, sy = -sliding_x / speed, -sliding_y / speed
        slip = sqrt(maximum(sx * sx + sy * sy, 1e-24))
        grip, slope = maximum(self.mu * load, 1e-9), self.slope * load
        size = brush(slip, slope, grip) if self.model == "brush" else magic_formula(slip, slope, grip, self.c, self.e)
        force = ahead * (size * sx / slip) + across * (size * sy / slip) + up * load
        return force, arm.cross(force)
