"""Constraints between two bodies: the library from which every loop closure is built.

S.-G. Kang and Y.-S. Yoon, "On the Improvement of a Fully Recursive Formulation for the Dynamic Analysis of Multibody
Systems", KSME International Journal 17(3), 2003, tables 1-4 (with the corrected signs of gamma^s). Everything is
resolved in one common set of axes; the Jacobian's rows act on [angular; linear] motions of the bodies' origins, the
paper's on [linear; angular].

| paper | here |
|---|---|
| a_i, a_j | axes of the two sides |
| p_i, s_i, p_ij | ``point``, ``arm`` (from the body's origin to the point), their difference |
| Phi_Z_i, Phi_Z_j | ``Row.first``, ``Row.second`` |
| gamma | ``Row.gamma``: first . A_i + second . A_j = gamma for accelerations A |

Deviations: the spherical constraint is resolved in the axes of body i, so that a constraint that is redundant in one
position is redundant in all; the distance constraint is divided by twice the length, so that it is a length itself.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar.functions import atan2, cos, select_less, sin
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force, Vector

__all__ = ["Row", "Side", "advance", "coincident", "distance", "parallel_axes", "perpendicular", "stabilized",
           "turn_about_z", "within"]


class Side(NamedTuple):
    """One side of a closure: the joint's frame on a body, and how the body moves."""

    point: Vector
    arm: Vector  #: from the body's origin to the point
    x: Vector
    y: Vector
    z: Vector
    omega: Vector
    rate: Vector  #: velocity of the point


class Row(NamedTuple):
    """One scalar constraint: its value, its rows on the two bodies' motions, its right hand side."""

    value: Number
    first: Force
    second: Force
    gamma: Number


def stabilized(gamma: Number, value: Number, rate: Number, alpha: float, beta: float) -> Number:
    """Baumgarte's right hand side: gamma - 2 alpha d(value)/dt - beta^2 value."""
    if alpha:
        gamma = gamma - rate * (2.0 * alpha)
    return gamma - value * (beta * beta) if beta else gamma


def perpendicular(i: Side, j: Side, a: Vector, b: Vector, cosine: Number = 0.0) -> Row:
    """Dot-1: an axis `a` of body i and an axis `b` of body j keep their angle."""
    turn = a.cross(b)
    aa, bb = i.omega.cross(a), j.omega.cross(b)
    gamma = -(i.omega.cross(aa).dot(b) + aa.dot(bb) * 2.0 + a.dot(j.omega.cross(bb)))
    return Row(a.dot(b) - cosine, Force(turn, Vector.zero()), Force(-turn, Vector.zero()), gamma)


def within(i: Side, j: Side, a: Vector, offset: Number = 0.0) -> Row:
    """Dot-2: the point of body j keeps its distance along the axis `a` of body i."""
    d = j.point - i.point
    turn = i.omega.cross(a)
    gamma = -(d.dot(i.omega.cross(turn)) + turn.dot(j.rate - i.rate) * 2.0
              + a.dot(j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm)))
    return Row(a.dot(d) - offset, Force(a.cross(d) - i.arm.cross(a), -a), Force(j.arm.cross(a), a), gamma)


def coincident(i: Side, j: Side) -> tuple[Row, Row, Row]:
    """Spherical: the two points coincide; resolved along the axes of side i."""
    d = j.point - i.point
    swing = j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm)

    def row(a: Vector) -> Row:
        return Row(a.dot(d), Force(-i.arm.cross(a), -a), Force(j.arm.cross(a), a), -a.dot(swing))

    return row(i.x), row(i.y), row(i.z)


def distance(i: Side, j: Side, length: Number) -> Row:
    """Spherical-spherical: the two points keep their distance."""
    scale = 1.0 / length
    d = j.point - i.point
    along = d * scale
    rate = j.rate - i.rate
    swing = j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm)
    return Row((d.dot(d) * scale - length) * 0.5, Force(-i.arm.cross(along), -along), Force(j.arm.cross(along), along),
               -(along.dot(swing) + rate.dot(rate) * scale))


def turn_about_z(i: Side, j: Side) -> Number:
    """The angle from the x axis of side i to that of side j about the common z axis."""
    return atan2(i.y.dot(j.x), i.x.dot(j.x))


def parallel_axes(i: Side, j: Side) -> tuple[Row, Row]:
    """The two z axes stay parallel: two dot-1 constraints."""
    return perpendicular(i, j, i.x, j.z), perpendicular(i, j, i.y, j.z)


def advance(i: Side, j: Side, pitch: Number) -> Row:
    """A screw: the point advances along z by `pitch` times the turn about z, on parallel axes.

    Poses know the turn up to whole turns: the value is the distance [m] to the nearest thread, and goes on smoothly
    from turn to turn. It jumps half a lead away from the threads, where two are equally near.
    """
    z = i.z
    relative = j.omega - i.omega
    slide = within(i, j, z)
    turn = z * pitch
    # d/dt of z . (omega_j - omega_i): z turns with body i
    rate = i.omega.cross(z).dot(relative)
    return Row(_off_thread(i, j, slide.value, pitch), slide.first + Force(turn, Vector.zero()),
               slide.second - Force(turn, Vector.zero()), slide.gamma + pitch * rate)


def _off_thread(i: Side, j: Side, slide: Number, pitch: Number) -> Number:
    """How far the point lies from the nearest thread: slide less pitch times the turn about z, whole turns left out."""
    if type(pitch) is not float:  # one for each of several screws, some of them perhaps without a pitch
        none = abs(pitch) * 1e300
        return select_less(none, 1.0, slide, _off_turn(i, j, slide, select_less(none, 1.0, 1.0, pitch)))
    return _off_turn(i, j, slide, pitch) if pitch else slide


def _off_turn(i: Side, j: Side, slide: Number, pitch: Number) -> Number:
    c, s = cos(slide / pitch), sin(slide / pitch)
    x, y = i.x.dot(j.x), i.y.dot(j.x)
    return atan2(s * x - c * y, c * x + s * y) * pitch
