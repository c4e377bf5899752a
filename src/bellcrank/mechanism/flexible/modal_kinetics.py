"""What a body that deforms resists and needs, over any scalar: the equations of motion of its kinetic energy.

Symbols are those of `shape_integrals`. With momenta p = dT/dv, h = dT/dw and pi = dT/dedot, Lagrange's equations in the
axes of the moving body frame are

    force    = dp/dt + w x p,                                                                        (1)
    moment   = dh/dt + w x h + v x p   about the origin of the frame,                                (2)
    modal_j  = d(pi_j)/dt - dT/de_j.                                                                 (3)

They are linear in the accelerations dw/dt, a = dv/dt + w x v (of the frame's origin) and d2e/dt2: a matrix of the form
`ModalForm.mass`, `columns`, `matrix`, and what is left without them, `force` and `right`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.shape_integrals import ShapeIntegrals
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Vector

__all__ = ["ModalForm", "ModalInertia"]


class ModalForm(NamedTuple):
    """[moment; force] = mass a + sum of columns_j d2e_j + force; modal_j = columns_j . a + matrix_j d2e + right_j."""

    mass: ArticulatedInertia
    columns: tuple[Force, ...]
    matrix: tuple[tuple[Number, ...], ...]
    force: Force
    right: tuple[Number, ...]


class ModalInertia:
    """The kinetic energy of one body, its coefficients as spatial objects."""

    def __init__(self, integrals: ShapeIntegrals) -> None:
        self.integrals, k = integrals, integrals.size
        self.material = integrals.material
        self.mass = integrals.mass
        self._first = [_matrix(x) for x in (integrals.first, *integrals.first_rates)]
        self._second = [_symmetric(x) for x in (integrals.second, *integrals.second_rates)]
        self._curves = [[_symmetric(x) for x in row] for row in integrals.second_curves]
        self._linear = [Vector(*x) for x in integrals.linear.T.tolist()]
        self._angular = [Vector(*x) for x in integrals.angular.T.tolist()]
        #: dH_j/de_a
        self._rates = [[Vector(*integrals.angular_rates[a, :, j].tolist()) for a in range(k)] for j in range(k)]
        self._modal = integrals.modal.tolist()
        self._moment = Vector(*integrals.moment.tolist())

    def moment(self, e: Sequence[Number]) -> Vector:
        """The first moment of the masses about the frame's origin, on which gravity acts."""
        return _sum(self._moment, self._linear, e)

    def resistance(self, e: Sequence[Number]) -> tuple[ArticulatedInertia, tuple[Force, ...], tuple[tuple[Number, ...],
                                                                                                  ...]]:
        """Mass, columns and matrix of the form."""
        second = self._second[0]
        for a, x in enumerate(e):
            second = second + _times(self._second[a + 1] + self._second_slope(a, e), 0.5 * x)
        coupling = _transposed(self._first_at(e))
        columns = tuple(Force(angular, linear) for angular, linear in zip(self._angular_at(e), self._linear,
                                                                         strict=True))
        return (ArticulatedInertia(second, coupling, Symmetric3.diagonal(self.mass)), columns,
                tuple(map(tuple, self._modal)))

    def form(self, e: Sequence[Number], rate: Sequence[Number], motion: Motion) -> ModalForm:
        """All of it at modal coordinates e, their rates, and the frame's velocity in its own axes; bodies of material
        points do not ask for the linear one."""
        mass, columns, matrix = self.resistance(e)
        w = motion.angular
        v = Vector.zero() if self.material else motion.linear
        momentum = [column * speed for column, speed in zip(columns, rate, strict=True)]
        inner = sum(momentum, Force.zero())  # H edot, P edot
        first_rate = self._first_rate(rate)
        first = mass.coupling.transposed_times(w)  # S w
        turn = w.cross(v)
        force = first_rate @ w + w.cross(first + inner.force)  # (1), less m a
        spin = mass.coupling @ v + mass.angular @ w + inner.moment
        moment = (self._second_rate(e, rate) @ w + self._angular_change(rate) + w.cross(spin)
                  + first_rate.transposed_times(v) + v.cross(first + inner.force) - mass.coupling @ turn)  # (2)
        return ModalForm(mass, columns, matrix, Force(moment, force), self._modal_forces(e, rate, w, v, turn))

    def _modal_forces(self, e: Sequence[Number], rate: Sequence[Number], w: Vector, v: Vector, turn: Vector
                      ) -> tuple[Number, ...]:
        """(3) without accelerations."""
        k, out = self.integrals.size, []
        for j in range(k):
            change = Vector.zero()  # dH_j/dt less what dT/de_j has of the same kind
            for a in range(k):
                change = change + (self._rates[j][a] - self._rates[a][j]) * rate[a]
            slope = self._second_slope(j, e)
            out.append(w.dot(change) - 0.5 * _squared(slope, w) - v.dot(self._first[j + 1] @ w)
                       - self._linear[j].dot(turn))
        return tuple(out)

    def _first_at(self, e: Sequence[Number]) -> Matrix3:
        total = self._first[0]
        for a, x in enumerate(e):
            total = total + _scaled(self._first[a + 1], x)
        return total

    def _first_rate(self, rate: Sequence[Number]) -> Matrix3:
        total = Matrix3.zero()
        for a, x in enumerate(rate):
            total = total + _scaled(self._first[a + 1], x)
        return total

    def _second_rate(self, e: Sequence[Number], rate: Sequence[Number]) -> Symmetric3:
        total = Symmetric3.zero()
        for a, x in enumerate(rate):
            total = total + _times(self._second_slope(a, e), x)
        return total

    def _second_slope(self, a: int, e: Sequence[Number]) -> Symmetric3:
        """dJ/de_a."""
        slope = self._second[a + 1]
        for curve, y in zip(self._curves[a], e, strict=True):
            slope = slope + _times(curve, 2.0 * y)
        return slope

    def _angular_at(self, e: Sequence[Number]) -> list[Vector]:
        return [_sum(own, rates, e) for own, rates in zip(self._angular, self._rates, strict=True)]

    def _angular_change(self, rate: Sequence[Number]) -> Vector:
        """dH/dt edot; of points, whose u x du/dt is turned by no acceleration, none."""
        total = Vector.zero()
        if self.material:
            return total
        for rates, x in zip(self._rates, rate, strict=True):
            total = total + _sum(Vector.zero(), rates, rate) * x
        return total


def _sum(constant: Vector, factors: Sequence[Vector], values: Sequence[Number]) -> Vector:
    for factor, x in zip(factors, values, strict=True):
        constant = constant + factor * x
    return constant


def _matrix(x: Floats) -> Matrix3:
    return Matrix3(*(Vector(*row) for row in x.tolist()))


def _symmetric(x: Floats) -> Symmetric3:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = x.tolist()
    return Symmetric3(xx, xy, xz, yy, yz, zz)


def _times(s: Symmetric3, k: Number) -> Symmetric3:
    return Symmetric3(*(x * k for x in s))


def _scaled(m: Matrix3, k: Number) -> Matrix3:
    return Matrix3(m.x * k, m.y * k, m.z * k)


def _transposed(m: Matrix3) -> Matrix3:
    return Matrix3(*(Vector(*column) for column in zip(*m, strict=True)))


def _squared(s: Symmetric3, w: Vector) -> Number:
    """w . s w; the products of w are shared."""
    off = s.xy * (w.x * w.y) + s.xz * (w.x * w.z) + s.yz * (w.y * w.z)
    return s.xx * (w.x * w.x) + s.yy * (w.y * w.y) + s.zz * (w.z * w.z) + (off + off)
