"""Tyres on a plane or a height field: the brush model and the Magic Formula, in steady or in transient slip.

H. B. Pacejka, "Tyre and Vehicle Dynamics", 2nd ed., 2006: section 3.2 (brush with a parabolic distribution of
pressure), (4.49)-(4.51) and section 4.3.1 (Magic Formula; combined slip by similarity, with theoretical slip), section
4.3.2 for sets of coefficients (`magic_set`), and section 7.2 for transient slip.

| paper | here |
|---|---|
| F_z, mu F_z = D | ``load``, ``mu * load`` |
| kappa / (1 + kappa), tan(alpha) / (1 + kappa) | ``sx``, ``sy`` theoretical slip, against the direction of sliding |
| theta (3.6), C_Fkappa = C_Falpha = 2 c_p a^2 | ``theta``, ``slope * load`` |
| a, t | ``half_length``, trail |
| B, C, D, E | ``slope / (c mu)``, ``c``, ``mu load``, ``e`` |
| sigma_kappa, sigma_alpha, u, v (7.7), (7.9) | ``relaxation``, the states ``"name ahead"`` and ``"name across"`` [m] |

Slip is a share of the speed at which tread passes: of rolling for the brush and the simple formula, over the ground for
sets of coefficients. In steady slip this speed is not let below `slowest` [m/s]: such a tyre creeps like a damper when
it stands. In transient slip the tread is bent by u' = - V_s - max(|V|, |V_s|) u / sigma, so that a standing tyre is a
spring which holds without creep, and slip beyond 1 counts as 1; near standstill it is damped with the time constant
`settling`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from bellcrank.mechanism.forces.element import Element, positive_part
from bellcrank.mechanism.forces.magic_set import MagicSet
from bellcrank.scalar.functions import asin, atan, maximum, minimum, sin, sqrt, tanh
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Vector

__all__ = ["Footprint", "Tyre", "TyreRate", "brush", "magic_formula", "trail"]

_NOTHING = 1e-300
#: depth over which the damping against the ground sets in, and the one whose load is no grip, as shares of the radius
_ONSET, _NO_GRIP = 1.0 / 300.0, 1e-14


def brush(slip: Number, slope: Number, grip: Number) -> Number:
    """Force [N] at a slip >= 0: slope at zero slip [N], at most `grip` [N]; Pacejka (3.8), (3.11).

    >>> round(brush(0.001, 1e5, 4000.0), 3), brush(1.0, 1e5, 4000.0)
    (99.169, 4000.0)
    """
    bent = minimum(slope * slip / (3.0 * grip), 1.0)  # theta sigma
    return grip * bent * (3.0 - bent * (3.0 - bent))


def trail(slip: Number, slope: Number, grip: Number, half_length: Number) -> Number:
    """Pneumatic trail [m] of the brush: a third of half the contact's length, and none when all of it slides; (3.13).

    >>> trail(0.0, 1e5, 4000.0, 0.06), trail(1.0, 1e5, 4000.0, 0.06)
    (0.02, 0.0)
    """
    bent = minimum(slope * slip / (3.0 * grip), 1.0)
    left = 1.0 - bent
    return half_length * (left * left * left) / (3.0 - bent * (3.0 - bent))


def magic_formula(slip: Number, slope: Number, grip: Number, c: Number, e: Number) -> Number:
    """Force [N] at a slip: D sin(C atan(B s - E (B s - atan(B s)))) with D = grip, B C D = slope; Pacejka (4.49).

    >>> round(magic_formula(0.001, 1e5, 4000.0, 1.5, 0.0), 3)
    99.98
    """
    x = slope / (c * grip) * slip
    return grip * sin(c * atan(x - e * (x - atan(x))))


class Footprint(NamedTuple):
    """Where and how a wheel touches the ground: vectors in world axes."""

    depth: Number  #: how far the tyre is pressed in [m]; negative above the ground
    load: Number  #: along `up` [N]
    ahead: Vector
    across: Vector  #: to the left
    up: Vector  #: normal of the ground
    axle: Vector
    arm: Vector  #: from the wheel's centre to the point of contact [m]
    speed: Number  #: of the centre, ahead [m/s]
    rolling: Number  #: of the tread, by the wheel's turning [m/s]
    slide_x: Number  #: of the tread over the ground, ahead [m/s]
    slide_y: Number

    @property
    def camber(self) -> Number:
        """The angle by which the wheel leans to its right [rad]."""
        return asin(self.axle.dot(self.up))


@dataclass(frozen=True)
class Tyre(Element):
    """A wheel's tyre: the wheel turns about the `axle` through its `center`, both in its body's frame.

    `radius` [m], `stiffness` [N/m] and `damping` [N s/m] against the ground; grip `mu`, slope of the force at no slip
    per load, `slope` [1/rad]; `model` "brush" or "magic" with the shape factors `c` and `e`, or "set" with
    `coefficients`; `half_length` of the contact [m], which gives the aligning moment of the first two; their rolling
    resistance as a share of the load, `rolling`; relaxation lengths [m], zero for steady slip. The ground is z = 0, or
    ``height(x, y)`` [m], a function or a `Table` of two arguments.
    """

    name: str
    body: str
    radius: Number
    stiffness: Number
    damping: Number
    mu: Number
    slope: Number
    model: str
    c: Number
    e: Number
    slowest: Number
    half_length: Number = 0.0
    rolling: Number = 0.0
    relaxation: tuple[float, float] = (0.0, 0.0)
    settling: Number = 0.05
    coefficients: MagicSet | None = None
    mirrored: bool = False
    center: tuple[float, ...] = (0.0, 0.0, 0.0)
    axle: tuple[float, ...] = (0.0, 1.0, 0.0)
    height: Callable[[Number, Number], Number] | None = None

    @property
    def bent(self) -> tuple[str, str]:
        """Names of the states: how far the tread is bent [m]."""
        return f"{self.name} ahead", f"{self.name} across"

    @property
    def transient(self) -> bool:
        """Whether slip has states."""
        return self.relaxation != (0.0, 0.0)

    def ground(self, x: Number, y: Number) -> tuple[Number, Vector]:
        """Height and upward normal of the ground."""
        if self.height is None:
            return 0.0, Vector(0.0, 0.0, 1.0)
        along_x = as_jet(self.height(Jet(x, 1.0, 0.0), Jet(y, 0.0, 0.0)))
        along_y = as_jet(self.height(Jet(x, 0.0, 0.0), Jet(y, 1.0, 0.0)))
        up = Vector(-along_x.rate, -along_y.rate, 1.0)
        return along_x.value, up * (1.0 / sqrt(up.dot(up)))

    def footprint(self, at: Any) -> Footprint:
        """How the wheel touches the ground; for outputs, too: ``lambda at: tyre.law.footprint(at).load``."""
        own: Tyre = at.bind(self)
        return own.touch(at)

    def touch(self, at: Any) -> Footprint:
        """The same of a tyre whose parameters have their values already, as in its own law."""
        centre, velocity, omega = at.position(self.body, self.center), at.velocity(self.body, self.center), at.omega(
            self.body)
        x, y, z = at.axes(self.body)
        axle = y if self.axle == (0.0, 1.0, 0.0) else x * self.axle[0] + y * self.axle[1] + z * self.axle[2]
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
        set_in = minimum(touch / (_ONSET * self.radius), 1.0)
        load = positive_part(self.stiffness * touch + self.damping * set_in * sink)
        arm = down * minimum(self.radius, above / lean)
        speed, rolling = velocity.dot(ahead), self.radius * omega.dot(axle)
        return Footprint(depth, load, ahead, across, up, axle, arm, speed, rolling, speed - rolling,
                         velocity.dot(across))

    def passing(self, foot: Footprint) -> Number:
        """The speed that slip is a share of [m/s]."""
        return abs(foot.speed if self.coefficients is not None else foot.rolling)

    def slip(self, at: Any, foot: Footprint) -> tuple[Number, Number]:
        """Slip ahead and to the left, each positive where its force is."""
        speed = self.passing(foot)
        if not self.transient:
            speed = maximum(speed, self.slowest)
            return -foot.slide_x / speed, -foot.slide_y / speed
        damped = self.settling / (1.0 + speed * speed * (1.0 / (self.slowest * self.slowest)))  # (7.26)
        x, y = ((at.state(name) - damped * slide) * (1.0 / length) for name, slide, length in zip(
            self.bent, (foot.slide_x, foot.slide_y), self.relaxation, strict=True))
        return x, y

    def __call__(self, at: Any) -> tuple[Vector, Vector]:
        """Force and moment on the wheel at its centre, in world axes."""
        foot = self.touch(at)
        sx, sy = self.slip(at, foot)
        sense = tanh(foot.rolling * (1.0 / self.slowest))
        if self.coefficients is not None:
            side = -1.0 if self.mirrored else 1.0
            fx, fy, mx, my, mz = self.coefficients.loads(foot.load, sx, -(side * atan(sy)), side * foot.camber,
                                                         self.radius, foot.speed, sense,
                                                         tanh(foot.speed * (1.0 / self.slowest)))
            fy, mx, mz = side * fy, side * mx, side * mz
        else:
            fx, fy, mx, my, mz = self._similar(foot.load, sx, sy, sense)
        force = foot.ahead * fx + foot.across * fy + foot.up * foot.load
        return force, foot.arm.cross(force) + foot.ahead * mx + foot.axle * my + foot.up * mz

    def _similar(self, load: Number, sx: Number, sy: Number, sense: Number) -> tuple[Number, ...]:
        """Both forces share one curve of the size of slip."""
        slip = sqrt(maximum(sx * sx + sy * sy, 1e-24))
        grip = maximum(self.mu * load, _NO_GRIP * self.radius * self.stiffness + _NOTHING)
        slope = self.slope * load
        size = brush(slip, slope, grip) if self.model == "brush" else magic_formula(slip, slope, grip, self.c, self.e)
        fx, fy = size * sx / slip, size * sy / slip
        mz = -(trail(slip, slope, grip, self.half_length) * fy * sense) if not is_zero(self.half_length) else 0.0
        my = -(self.rolling * self.radius * load * sense) if not is_zero(self.rolling) else 0.0
        return fx, fy, 0.0, my, mz

    def ground_point(self, at: Any) -> Vector:
        """Where it acts on the ground [m], world axes: below the wheel, where it does not touch."""
        where: Vector = at.position(self.body, self.center) + self.touch(at).arm
        return where

    def energy(self, at: Any) -> Number:
        """What it stores between rim and ground [J]."""
        touch = positive_part(self.touch(at).depth)
        return 0.5 * self.stiffness * (touch * touch)


@dataclass(frozen=True)
class TyreRate(Element):
    """u' = - V_s - max(|V|, |V_s|) u / sigma."""

    tyre: Tyre
    which: int  #: 0 ahead, 1 across

    def __call__(self, at: Any) -> Number:
        tyre, foot = self.tyre, self.tyre.touch(at)
        sliding = sqrt(foot.slide_x * foot.slide_x + foot.slide_y * foot.slide_y + 1e-40)
        passing = maximum(tyre.passing(foot), sliding)
        slide = (foot.slide_x, foot.slide_y)[self.which]
        return -slide - passing * at.state(tyre.bent[self.which]) * (1.0 / tyre.relaxation[self.which])
