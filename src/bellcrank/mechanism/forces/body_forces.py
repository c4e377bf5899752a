"""Forces and moments on bodies: bushings, drag, and given ones."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.functions import atan2, maximum, select_less, sqrt
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.spatial import Force, Vector

__all__ = ["Bushing", "Drag", "Wrench"]


# -- A bushing: six stiffnesses and six dampings between two frames ---------------------------------
_AXES = (Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0))
_ZERO = (0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Bushing(Element):
    """Linear stiffness and damping along and about the axes of the first of two frames.

    `stiffness` [N/m] and `damping` [N s/m] act on the second frame's position in the first, `turn_stiffness`
    [N m/rad] and `turn_damping` [N m s/rad] on its rotation; three numbers each, along the first frame's axes.

    Rotations are measured by e = 2 sin(angle / 2) times the axis, twice the vector part of the quaternion: the energy
    is e . K e / 2 exactly, for any rotation, and the moment its derivative. For a turn about one axis the moment is
    ``stiffness sin(angle)``: linear for small angles (1 % less at 14 degrees), without a jump anywhere.

    With the `measure` "angle" e is the angle times the axis and the moment ``stiffness angle``. The three stiffnesses
    against rotation are the same then, and the moment jumps where the angle passes a half turn.

    >>> bushing = Bushing(stiffness=(100.0, 200.0, 300.0), turn_stiffness=(1.0, 2.0, 3.0))
    >>> axes = Vector(1.0, 0.0, 0.0), Vector(0.0, 0.8, 0.6), Vector(0.0, -0.6, 0.8)  # turned about x, sine 0.6
    >>> still = Vector.zero()
    >>> push = bushing.wrench(Vector(0.1, 0.0, 0.0), axes, still, still)
    >>> round(push.force.x, 12), round(push.moment.x, 12)
    (-10.0, -0.6)
    >>> round(bushing.energy(Vector(0.1, 0.0, 0.0), axes), 12)  # 100 * 0.1^2 / 2 + 1 - cos
    0.7
    """

    stiffness: tuple[Number, ...] = _ZERO
    turn_stiffness: tuple[Number, ...] = _ZERO
    damping: tuple[Number, ...] = _ZERO
    turn_damping: tuple[Number, ...] = _ZERO
    measure: str = "chord"

    def wrench(self, at: Vector, axes: tuple[Vector, Vector, Vector], rate: Vector, spin: Vector) -> Force:
        """Moment and force on the second frame at its own origin, in the first frame's axes.

        `at` and `axes` are the second frame's origin and axes in the first, `rate` and `spin` the velocity of that
        origin and the angular velocity, as seen from the first.
        """
        force = -(_times(self.stiffness, at) + _times(self.damping, rate))
        moment = -_times(self.turn_damping, spin)
        if self.measure == "angle":
            return Force(moment - _angle_vector(axes) * self.turn_stiffness[0], force)
        for unit, axis, weight in zip(_AXES, axes, self._weights(), strict=True):
            moment = moment + unit.cross(axis) * (weight * 0.5)
        return Force(moment, force)

    def energy(self, at: Vector, axes: tuple[Vector, Vector, Vector]) -> Number:
        """Energy stored [J]."""
        x, y, z = axes[0].x, axes[1].y, axes[2].z
        if self.measure == "angle":
            turn = _angle_vector(axes)
            return (at.dot(_times(self.stiffness, at)) + turn.dot(turn) * self.turn_stiffness[0]) * 0.5
        squares = Vector(1.0 + x - y - z, 1.0 + y - z - x, 1.0 + z - x - y)  # of e
        return (at.dot(_times(self.stiffness, at)) + Vector(*self.turn_stiffness).dot(squares)) * 0.5

    def loss(self, rate: Vector, spin: Vector) -> Number:
        """Power of the dampers [W]."""
        return rate.dot(_times(self.damping, rate)) + spin.dot(_times(self.turn_damping, spin))

    def _weights(self) -> tuple[Number, Number, Number]:
        """The energy's derivatives by the diagonal entries of the rotation matrix, times two."""
        x, y, z = self.turn_stiffness
        return x - y - z, y - z - x, z - x - y


def _angle_vector(axes: tuple[Vector, Vector, Vector]) -> Vector:
    """The angle of a rotation times its axis; the angle is at most a half turn."""
    twice = Vector.zero()
    for unit, axis in zip(_AXES, axes, strict=True):
        twice = twice + unit.cross(axis)
    sine2 = twice.dot(twice) * 0.25
    small = 1e-12
    sine = sqrt(select_less(sine2, small, small, sine2))
    cosine = (axes[0].x + axes[1].y + axes[2].z - 1.0) * 0.5
    series = 1.0 + sine2 * (1.0 / 6.0)  # what is left out is below rounding
    factor = select_less(0.0, cosine, select_less(sine2, small, series, atan2(sine, cosine) / sine),
                         atan2(sine, cosine) / sine)
    out: Vector = twice * (factor * 0.5)
    return out


def _times(diagonal: tuple[Number, ...], v: Vector) -> Vector:
    return Vector(*(k * x for k, x in zip(diagonal, v, strict=True)))


# -- drag of a body in air or water -----------------------------------------------------------------
#: the square of a speed at which nothing moves
_NOTHING = 1e-300


@dataclass(frozen=True)
class Drag(Element):
    """Force ``-density coefficient area / 2 |v| v`` at the speed v through the air, and a moment
    ``-(turn_linear + turn_quadratic |omega|) omega``.

    Density [kg/m^3], area [m^2], `turn_linear` [N m s/rad], `turn_quadratic` [N m s^2/rad^2]; the coefficient has no
    unit and does not depend on the attitude. `wind` is the velocity of the air [m/s] in world axes: numbers,
    parameters or functions of time. It stores no energy.

    >>> drag = Drag(coefficient=0.5, area=2.0, density=1.2)
    >>> tuple(round(x, 12) for x in drag.force(Vector(3.0, 0.0, 4.0)))
    (-9.0, -0.0, -12.0)
    """

    coefficient: Number = 0.0
    area: Number = 1.0
    density: Number = 1.2
    turn_linear: Number = 0.0
    turn_quadratic: Number = 0.0
    wind: tuple[Number, ...] = (0.0, 0.0, 0.0)

    @property
    def timed(self) -> bool:
        """Whether the wind changes in time."""
        return any(callable(x) for x in self.wind)

    def wind_at(self, time: Number) -> Vector:
        """The wind at a time, world axes."""
        return Vector(*(x(time) if callable(x) else x for x in self.wind))

    def force(self, velocity: Vector) -> Vector:
        """The force at a velocity through the air, in the same axes."""
        factor = self.density * self.coefficient * self.area * 0.5
        if is_zero(factor):
            return Vector.zero()
        k = factor * _length(velocity)
        return Vector(*(-(k * v) for v in velocity))

    def moment(self, omega: Vector) -> Vector:
        """The moment at an angular velocity, in the same axes."""
        k = self.turn_linear
        if not is_zero(self.turn_quadratic):
            k = k + self.turn_quadratic * _length(omega)
        return Vector(*(-(k * w) for w in omega))


def _length(v: Vector) -> Number:
    """The length of a vector, at least a number that is nothing: so it has a derivative at rest."""
    return sqrt(maximum(v.dot(v), _NOTHING))


# -- A force and moment on a body, constant or varying in time --------------------------------------
@dataclass(frozen=True, slots=True)
class Wrench:
    """A force [N] and moment [N m] that always act on a body, at a point fixed in it.

    The six entries are numbers, parameters, or functions of time; in world or in body axes. It stores no energy: what
    it does is work from outside.
    """

    name: str
    body: int
    moment: tuple[Number, ...]
    force: tuple[Number, ...]
    at: tuple[Number, ...]
    axes: str
    #: a function of the machine that gives force, or force and moment, in place of the entries
    law: MachineLaw | None = None
