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
| Phi_t, Phi_tt | ``Row.partial``; part of ``Row.gamma`` |

Numbers of a constraint (a length, an offset, the cosine of an angle) may be `Timed`: laws of time with their rates.
Then dPhi/dt = first . V_i + second . V_j + partial, and gamma holds -Phi_tt. Without laws both are the literal 0.0.

Rows that bind speeds alone (rolling, knife edges) come last among those of a closure, with the value 0.0; how many
there are is the ``nonholonomic`` of its kind.

Deviations: the spherical constraint is resolved in the axes of body i, so that a constraint that is redundant in one
position is redundant in all; the distance constraint is divided by twice the length, so that it is a length itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.scalar.functions import atan2, cos, select_less, sin
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Force, Motion, Vector

__all__ = ["Row", "Side", "Timed", "advance", "at_time", "coincident", "distance", "parallel_axes", "perpendicular",
           "slipless", "stabilized", "timed", "turn_about_z", "turned_by", "within"]


class Timed(NamedTuple):
    """A number of a constraint that follows a law of time, and its rates."""

    value: Number
    rate: Number
    acceleration: Number


def timed(number: Number) -> Timed:
    """A number with its rates, which are the literal 0.0 if it follows no law."""
    return number if isinstance(number, Timed) else Timed(number, 0.0, 0.0)


def at_time(constants: Sequence[Number], t: Number) -> tuple[Number, ...]:
    """A constraint's numbers at a time: functions of time become `Timed`, with exact rates; others stay.

    >>> at_time((0.5, lambda t: 2.0 * t * t), 3.0)
    (0.5, Timed(value=18.0, rate=12.0, acceleration=4.0))
    """
    return tuple(Timed(*as_jet(x(Jet(t, 1.0, 0.0)))) if callable(x) else x for x in constants)


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
    """One scalar constraint: its value, its rows on the two bodies' motions, its right hand side, and the part of its
    rate that no motion causes but a law of time."""

    value: Number
    first: Force
    second: Force
    gamma: Number
    partial: Number = 0.0

    def exchanged(self) -> Row:
        """The same constraint with its bodies in the other order."""
        return Row(self.value, self.second, self.first, self.gamma, self.partial)

    def of(self, first: Motion, second: Motion, known: Number = 0.0) -> Number:
        """What the row makes of motions of the two bodies (velocities, accelerations), besides what is known."""
        return known + first.dot(self.first) + second.dot(self.second)

    def rate(self, first: Motion, second: Motion) -> Number:
        """The constraint's rate at velocities of the two bodies."""
        return self.of(first, second, self.partial)

    def right_side(self, first: Motion, second: Motion, alpha: float, beta: float) -> Number:
        """gamma, stabilised if alpha or beta is not zero, at velocities of the two bodies."""
        return stabilized(self.gamma, self.value, self.rate(first, second) if alpha else 0.0, alpha, beta)


def stabilized(gamma: Number, value: Number, rate: Number, alpha: float, beta: float) -> Number:
    """Baumgarte's right hand side: gamma - 2 alpha d(value)/dt - beta^2 value."""
    if alpha:
        gamma = gamma - rate * (2.0 * alpha)
    return gamma - value * (beta * beta) if beta else gamma


def perpendicular(i: Side, j: Side, a: Vector, b: Vector, cosine: Number = 0.0) -> Row:
    """Dot-1: an axis `a` of body i and an axis `b` of body j have an angle with this cosine."""
    turn = a.cross(b)
    aa, bb = i.omega.cross(a), j.omega.cross(b)
    gamma = -(i.omega.cross(aa).dot(b) + aa.dot(bb) * 2.0 + a.dot(j.omega.cross(bb)))
    law = timed(cosine)
    return Row(a.dot(b) - law.value, Force(turn, Vector.zero()), Force(-turn, Vector.zero()), gamma + law.acceleration,
               0.0 - law.rate)


def within(i: Side, j: Side, a: Vector, offset: Number = 0.0) -> Row:
    """Dot-2: the point of body j lies at a distance `offset` along the axis `a` of body i."""
    d = j.point - i.point
    turn = i.omega.cross(a)
    gamma = -(d.dot(i.omega.cross(turn)) + turn.dot(j.rate - i.rate) * 2.0
              + a.dot(j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm)))
    law = timed(offset)
    return Row(a.dot(d) - law.value, Force(a.cross(d) - i.arm.cross(a), -a), Force(j.arm.cross(a), a),
               gamma + law.acceleration, 0.0 - law.rate)


def coincident(i: Side, j: Side) -> tuple[Row, Row, Row]:
    """Spherical: the two points coincide; resolved along the axes of side i."""
    d = j.point - i.point
    swing = j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm)

    def row(a: Vector) -> Row:
        return Row(a.dot(d), Force(-i.arm.cross(a), -a), Force(j.arm.cross(a), a), -a.dot(swing))

    return row(i.x), row(i.y), row(i.z)


def distance(i: Side, j: Side, length: Number) -> Row:
    """Spherical-spherical: the two points have this distance."""
    law = timed(length)
    scale = 1.0 / law.value
    d = j.point - i.point
    along = d * scale
    rate = j.rate - i.rate
    swing = j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm)
    row = Row((d.dot(d) * scale - law.value) * 0.5, Force(-i.arm.cross(along), -along),
              Force(j.arm.cross(along), along), -(along.dot(swing) + rate.dot(rate) * scale))
    return row if is_zero(law.rate) and is_zero(law.acceleration) else _longer(row, law, along, rate)


def _longer(row: Row, law: Timed, along: Vector, rate: Vector) -> Row:
    """The distance constraint s / 2L - L / 2, s = d . d, for a length that changes: Phi_t, and gamma less Phi_tt."""
    share, scale = along.dot(along), law.rate / law.value
    half = (share + 1.0) * 0.5
    more = along.dot(rate) * scale * 2.0 - share * scale * law.rate + half * law.acceleration
    return Row(row.value, row.first, row.second, row.gamma + more, -(half * law.rate))


def slipless(i: Side, j: Side, a: Vector, a_rate: Vector, contact: Vector, contact_rate: Vector) -> Row:
    """No velocity along `a` where the bodies touch, at `contact` from the point of body j, as seen from body i.

    The direction and the place of contact may turn with either body; their rates in space are `a_rate` and
    `contact_rate`. It is a constraint on speeds, d/dt of which is the row of accelerations.
    """
    d = j.point - i.point
    rate = j.rate - i.rate
    turn = j.omega - i.omega
    slip = rate - i.omega.cross(d) + turn.cross(contact)
    swing = j.omega.centripetal(j.arm) - i.omega.centripetal(i.arm) - i.omega.cross(rate) + turn.cross(contact_rate)
    return Row(0.0, Force(-(i.arm + d + contact).cross(a), -a), Force((j.arm + contact).cross(a), a),
               -(a_rate.dot(slip) + a.dot(swing)))


def turn_about_z(i: Side, j: Side) -> Number:
    """The angle from the x axis of side i to that of side j about the common z axis."""
    return atan2(i.y.dot(j.x), i.x.dot(j.x))


def turned_by(i: Side, j: Side, angle: Number) -> Row:
    """The turn of side j about the common z axis is this angle, or half a turn off: dot products cannot tell."""
    return perpendicular(i, j, i.x * cos(angle) + i.y * sin(angle), j.y)


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
