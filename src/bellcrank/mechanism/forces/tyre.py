"""Tyres on a plane or a height field: the brush model and the Magic Formula, in steady or in transient slip.

H. B. Pacejka, "Tyre and Vehicle Dynamics", 2nd ed., 2006: section 3.2 (brush with a parabolic distribution of
pressure), (4.49)-(4.51) and section 4.3.1 (Magic Formula; combined slip by similarity, with theoretical slip), section
4.3.2 for sets of coefficients (`MagicSet`), and section 7.2 for transient slip.

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

The Magic Formula with a set of coefficients as tyre property files have it: forces and moments at combined slip.

H. B. Pacejka, "Tyre and Vehicle Dynamics", 2002, section 4.3.2, equations (4.E1)-(4.E78), without turn slip: pure slip
(F_x0, F_y0, trail t, residual moment M_zr), weighting functions G for combined slip, overturning moment M_x, rolling
resistance M_y and aligning moment M_z. Coefficients have the names of property files (PCX1, PDX1, ...), and what is not
given is zero. Axes and signs are those of such files (ISO): x ahead, y to the left, z up; a positive slip angle slides
to the left and makes a negative F_y; a positive camber leans to the right.

| paper | here |
|---|---|
| F_z, F_z0, df_z, R_0, V_0 | ``load``, ``FNOMIN``, ``df``, ``radius``, ``LONGVL`` |
| kappa, alpha, gamma | ``kappa``, ``alpha``, ``camber`` |
| p, q, r, s with indices | ``self["PCX1"]``, ``self["QBZ1"]``, ``self["RBX1"]``, ``self["SSZ1"]`` |
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from bellcrank.errors import FileError, ModelError, hint
from bellcrank.files.model_files import contents
from bellcrank.mechanism.forces.element import Element, positive_part
from bellcrank.scalar.functions import asin, atan, cos, exp, maximum, minimum, sign, sin, sqrt, tan, tanh
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Vector

__all__ = ["COEFFICIENTS", "Footprint", "MagicSet", "Tyre", "TyreRate", "brush", "magic_formula", "trail"]


# -- the Magic Formula with a set of coefficients as tyre property files have it --------------------
#: what a set may hold, by groups: a name and how many of it there are
_GROUPS = {"PCX": 1, "PDX": 3, "PEX": 4, "PKX": 3, "PHX": 2, "PVX": 2, "RBX": 2, "RCX": 1, "REX": 2, "RHX": 1,
           "PCY": 1, "PDY": 3, "PEY": 4, "PKY": 3, "PHY": 3, "PVY": 4, "RBY": 3, "RCY": 1, "REY": 2, "RHY": 2,
           "RVY": 6, "QBZ": 10, "QCZ": 1, "QDZ": 9, "QEZ": 5, "QHZ": 4, "SSZ": 4, "QSX": 3, "QSY": 4}
#: numbers that are not zero unless given: shape factors, scale factors of grip, the speed of measurement [m/s]
_USUAL = {"PCX1": 1.65, "PCY1": 1.3, "PKY2": 1.5, "RCX1": 1.0, "RCY1": 1.0, "QCZ1": 1.0, "LMUX": 1.0, "LMUY": 1.0,
          "LONGVL": 16.7}
#: numbers that no equation has
_GAPS = ("QBZ6", "QBZ7", "QBZ8", "QDZ5")
#: all names
COEFFICIENTS = ("FNOMIN", "LONGVL", "LMUX", "LMUY", *(
    name for k, n in _GROUPS.items() for name in (f"{k}{i + 1}" for i in range(n)) if name not in _GAPS))
#: groups of property files that are about other things: relaxation lengths, the belt as a gyroscope
_OTHER = ("PTX", "PTY", "QTZ")
_ENTRY = re.compile(r"\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*([-+]?[0-9.]+(?:[eEdD][-+]?[0-9]+)?)\s*(?:[$!{].*)?$")
#: larger files are refused
_MOST_BYTES = 10_000_000
_NEEDED = ("FNOMIN", "PDX1", "PKX1", "PDY1", "PKY1")


class TyreLoads(NamedTuple):
    """Forces [N] and moments [N m] on the wheel at the point of contact, ISO axes."""

    fx: Number
    fy: Number
    mx: Number
    my: Number
    mz: Number


class Sideways(NamedTuple):
    """The lateral force at pure slip and what the moments need of it."""

    force: Number
    mu: Number
    stiffness: Number  #: K_y
    b_c: Number  #: B_y C_y
    shift_x: Number
    shift_y: Number


@dataclass(frozen=True)
class MagicSet:
    """Coefficients by name, (name, number) pairs.

    >>> tyre = MagicSet.of({"FNOMIN": 4000.0, "PDX1": 1.2, "PKX1": 20.0, "PDY1": -1.0, "PKY1": -15.0, "PKY2": 2.0})
    >>> found = tyre.loads(4000.0, 0.001, 0.0, 0.0, 0.3, 10.0, 1.0)
    >>> round(found.fx), round(found.fy) + 0
    (80, 0)
    """

    values: tuple[tuple[str, float], ...]

    @classmethod
    def of(cls, given: Mapping[str, float], what: str = "tyre") -> MagicSet:
        """Checked: names that exist, and those that are needed."""
        if not isinstance(given, Mapping):
            raise ModelError(f"{what}: coefficients are a mapping {{name: number}}, or the path of a tyre property "
                             f"file, got {given!r}")
        for name in given:
            if name not in COEFFICIENTS:
                raise ModelError(f"{what}: the Magic Formula has no coefficient {name!r}{hint(name, COEFFICIENTS)}")
        for name in _NEEDED:
            if not given.get(name):
                raise ModelError(f"{what}: the Magic Formula needs {name}, other than zero")
        try:
            found = {name: float(value) for name, value in given.items()}
        except (TypeError, ValueError, OverflowError) as error:
            raise ModelError(f"{what}: coefficients of the Magic Formula must be numbers ({error})") from None
        if not all(math.isfinite(value) for value in found.values()):
            raise ModelError(f"{what}: coefficients of the Magic Formula must be finite")
        if min(found.get("LMUX", 1.0), found.get("LMUY", 1.0)) <= 0.0:
            raise ModelError(f"{what}: LMUX and LMUY, which scale the grip, must be positive")
        if found["FNOMIN"] < 0.0 or found["PDX1"] * found["PKX1"] < 0.0 or found["PDY1"] * found["PKY1"] < 0.0:
            raise ModelError(f"{what}: FNOMIN must be positive, PDX1 and PKX1 of one sign, PDY1 and PKY1 as well")
        return cls(tuple(sorted(found.items())))

    @classmethod
    def from_file(cls, path: str | Path, what: str = "tyre") -> MagicSet:
        """From a tyre property file (.tir, of the versions up to 5.2 and 2002): lines ``NAME = number $ comment`` below
        headings ``[SECTION]``. Scale factors but those of grip must be 1, and what its equations have beyond these, 0.
        """
        section, given = "", {}
        try:
            text = contents(os.fsdecode(path), _MOST_BYTES).decode("utf-8", "replace")
        except FileError as error:
            raise FileError(f"{what}: {error}") from None
        for number, line in enumerate(text.splitlines(), 1):
            if line.lstrip().startswith("["):
                section = line.strip().strip("[]").upper()
            found = _ENTRY.match(line)
            if found is None:
                continue
            name = found[1].upper()
            try:
                value = float(found[2].upper().replace("D", "E"))
            except ValueError:
                raise FileError(f"{what}: {path}:{number}: {name} = {found[2]} is not a number") from None
            if name in COEFFICIENTS:
                given[name] = value
            elif "SCALING" in section and value != 1.0:
                raise ModelError(f"{what}: {path}: the scale factor {name} is {value:g}; multiply the coefficients "
                                 "themselves, and write 1")
            elif section.endswith("COEFFICIENTS") and value and name[:3] not in _OTHER and name[-1:].isdigit():
                raise ModelError(f"{what}: {path}: {name} = {value:g} is no coefficient of the Magic Formula of 2002; "
                                 "is it a file of a later version?")
        return cls.of(given, f"{what}: {path}")

    @cached_property
    def _table(self) -> dict[str, float]:
        return {**dict.fromkeys(COEFFICIENTS, 0.0), **_USUAL, **dict(self.values)}

    def __getitem__(self, name: str) -> float:
        return self._table[name]

    def _several(self, group: str, first: int, last: int) -> tuple[float, ...]:
        return tuple(self[f"{group}{i}"] for i in range(first, last + 1))

    def loads(self, load: Number, kappa: Number, alpha: Number, camber: Number, radius: Number, speed: Number,
              rolling: Number, ahead: Number = 1.0) -> TyreLoads:
        """Forces and moments at a load [N], longitudinal slip, slip angle and camber [rad]; the wheel's radius [m], its
        speed over the ground [m/s], the sense in which it rolls and that in which it moves, sgn V_cx, -1 to 1."""
        nominal = self["FNOMIN"]
        pressed = maximum(load, 1e-6 * nominal)
        df = (pressed - nominal) * (1.0 / nominal)  # (4.E2)
        fx0, stiffness_x = self._ahead(pressed, df, kappa, camber)
        side = self._sideways(pressed, df, alpha, camber)
        fx = fx0 * self._less_of_slip_angle(df, kappa, alpha)  # (4.E50)
        turned, added = self._less_of_slip(pressed, df, kappa, alpha, camber, side.mu)
        fy_pure = side.force * turned
        fy = fy_pure + added  # (4.E58)
        ratio = stiffness_x / side.stiffness
        mz = self._aligning(pressed, df, kappa, alpha, camber, radius, side, ratio, (fx, fy, fy_pure), ahead)
        there = load / pressed
        x1, x2, x3 = self._several("QSX", 1, 3)
        y1, y2, y3, y4 = self._several("QSY", 1, 4)
        mx = radius * pressed * (x1 - x2 * camber + x3 * (fy * (1.0 / nominal)))  # (4.E69)
        v = abs(speed) * (1.0 / self["LONGVL"])
        my = -(radius * pressed * (y1 + y2 * (fx * (1.0 / nominal)) + y3 * v + y4 * (v * v * (v * v))) * rolling)
        return TyreLoads(fx * there, fy * there, mx * there, my * there, mz * there)

    def _ahead(self, load: Number, df: Number, kappa: Number, camber: Number) -> tuple[Number, Number]:
        """F_x0 and K_x, (4.E9)-(4.E18)."""
        d1, d2, d3 = self._several("PDX", 1, 3)
        e1, e2, e3, e4 = self._several("PEX", 1, 4)
        k1, k2, k3 = self._several("PKX", 1, 3)
        x = kappa + self["PHX1"] + self["PHX2"] * df  # (4.E10), (4.E17)
        grip = load * self["LMUX"] * (d1 + d2 * df) * (1.0 - d3 * (camber * camber))  # (4.E12), (4.E13)
        e = minimum((e1 + e2 * df + e3 * (df * df)) * (1.0 - e4 * sign(x)), 1.0)  # (4.E14)
        stiffness = load * (k1 + k2 * df) * exp(k3 * df)  # (4.E15)
        force = _sine(stiffness / (self["PCX1"] * grip) * x, self["PCX1"], e) * grip  # (4.E9), (4.E16)
        return force + load * self["LMUX"] * (self["PVX1"] + self["PVX2"] * df), stiffness  # (4.E18)

    def _sideways(self, load: Number, df: Number, alpha: Number, camber: Number) -> Sideways:
        """F_y0 and K_y, (4.E19)-(4.E30)."""
        d1, d2, d3 = self._several("PDY", 1, 3)
        e1, e2, e3, e4 = self._several("PEY", 1, 4)
        k1, k2, k3 = self._several("PKY", 1, 3)
        v1, v2, v3, v4 = self._several("PVY", 1, 4)
        nominal, c = self["FNOMIN"], self["PCY1"]
        shift = self["PHY1"] + self["PHY2"] * df + self["PHY3"] * camber  # (4.E27)
        up = load * self["LMUY"] * (v1 + v2 * df + (v3 + v4 * df) * camber)  # (4.E28)
        x = alpha + shift  # (4.E20)
        mu = self["LMUY"] * (d1 + d2 * df) * (1.0 - d3 * (camber * camber))  # (4.E23)
        e = minimum((e1 + e2 * df) * (1.0 - (e3 + e4 * camber) * sign(x)), 1.0)  # (4.E24)
        most = k1 * nominal * (1.0 - k3 * abs(camber))
        stiffness = most * sin(2.0 * atan(load * (1.0 / (k2 * nominal))))  # (4.E25)
        b = stiffness / (c * mu * load)  # (4.E26)
        return Sideways(_sine(b * x, c, e) * (mu * load) + up, mu, stiffness, b * c, shift, up)

    def _less_of_slip_angle(self, df: Number, kappa: Number, alpha: Number) -> Number:
        """G_xalpha, (4.E51)-(4.E57)."""
        b = self["RBX1"] * cos(atan(self["RBX2"] * kappa))
        e = minimum(self["REX1"] + self["REX2"] * df, 1.0)
        shift, c = self["RHX1"], self["RCX1"]
        return _cosine(b * (alpha + shift), c, e) / _cosine(b * shift, c, e)

    def _less_of_slip(self, load: Number, df: Number, kappa: Number, alpha: Number, camber: Number, mu: Number
                      ) -> tuple[Number, Number]:
        """G_ykappa and S_Vykappa, (4.E59)-(4.E67)."""
        v1, v2, v3, v4, v5, v6 = self._several("RVY", 1, 6)
        b = self["RBY1"] * cos(atan(self["RBY2"] * (alpha - self["RBY3"])))
        e = minimum(self["REY1"] + self["REY2"] * df, 1.0)
        shift, c = self["RHY1"] + self["RHY2"] * df, self["RCY1"]
        less = _cosine(b * (kappa + shift), c, e) / _cosine(b * shift, c, e)
        size = mu * load * (v1 + v2 * df + v3 * camber) * cos(atan(v4 * alpha))
        return less, size * sin(v5 * atan(v6 * kappa))

    def _aligning(self, load: Number, df: Number, kappa: Number, alpha: Number, camber: Number, radius: Number,
                  side: Sideways, ratio: Number, forces: tuple[Number, Number, Number], ahead: Number) -> Number:
        """M_z, (4.E31)-(4.E49) with the equivalent slip angles (4.E71)-(4.E78)."""
        fx, fy, fy_pure = forces
        h1, h2, h3, h4 = self._several("QHZ", 1, 4)
        d6, d7, d8, d9 = self._several("QDZ", 6, 9)
        s1, s2, s3, s4 = self._several("SSZ", 1, 4)

        def equivalent(angle: Number) -> Number:  # (4.E77), (4.E78)
            more, slope = ratio * kappa, tan(angle)
            return atan(sqrt(slope * slope + more * more + 1e-24)) * sign(angle)

        trailing = alpha + h1 + h2 * df + (h3 + h4 * df) * camber  # (4.E35)
        residual = equivalent(alpha + side.shift_x + side.shift_y / side.stiffness)  # (4.E38)
        trail = self._trail(load, df, trailing, equivalent(trailing), camber, radius) * cos(alpha)  # (4.E33)
        b = self["QBZ9"] / self["LMUY"] + self["QBZ10"] * side.b_c  # (4.E45)
        most = load * radius * self["LMUY"] * (d6 + d7 * df + (d8 + d9 * df) * camber)  # (4.E47)
        moment = most * cos(atan(b * residual)) * cos(alpha)  # (4.E36)
        arm = radius * (s1 + s2 * (fy * (1.0 / self["FNOMIN"])) + (s3 + s4 * df) * camber)  # (4.E76)
        return (moment - trail * fy_pure) * ahead + arm * fx  # (4.E71); sgn V_cx of (4.E42), (4.E47)

    def _trail(self, load: Number, df: Number, slip: Number, equivalent: Number, camber: Number, radius: Number
               ) -> Number:
        """Pneumatic trail [m], (4.E33), (4.E40)-(4.E44)."""
        b1, b2, b3, b4, b5 = self._several("QBZ", 1, 5)
        d1, d2, d3, d4 = self._several("QDZ", 1, 4)
        e1, e2, e3, e4, e5 = self._several("QEZ", 1, 5)
        b = (b1 + b2 * df + b3 * (df * df)) * (1.0 + b4 * camber + b5 * abs(camber)) * (1.0 / self["LMUY"])
        c = self["QCZ1"]
        d = load * (d1 + d2 * df) * (1.0 + d3 * camber + d4 * (camber * camber)) * (radius / self["FNOMIN"])
        rise = 1.0 + (e4 + e5 * camber) * (2.0 / math.pi) * atan(b * c * slip)
        e = minimum((e1 + e2 * df + e3 * (df * df)) * rise, 1.0)
        return _cosine(b * equivalent, c, e) * d


def _sine(x: Number, c: Number, e: Number) -> Number:
    return sin(c * atan(x - e * (x - atan(x))))


def _cosine(x: Number, c: Number, e: Number) -> Number:
    return cos(c * atan(x - e * (x - atan(x))))


# -- tyres on a plane or a height field -------------------------------------------------------------
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
