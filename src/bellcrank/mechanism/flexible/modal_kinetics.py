"""What a body that deforms resists and needs, over any scalar: the equations of motion of its kinetic energy.

Symbols are those of `ShapeIntegrals`. With momenta p = dT/dv, h = dT/dw and pi = dT/dedot, Lagrange's equations in the
axes of the moving body frame are

    force    = dp/dt + w x p,                                                                        (1)
    moment   = dh/dt + w x h + v x p   about the origin of the frame,                                (2)
    modal_j  = d(pi_j)/dt - dT/de_j.                                                                 (3)

They are linear in the accelerations dw/dt, a = dv/dt + w x v (of the frame's origin) and d2e/dt2: a matrix of the form
`ModalForm.mass`, `columns`, `matrix`, and what is left without them, `force` and `right`.

The kinetic energy of a body that deforms, as a polynomial of its modal coordinates.

With w the angular velocity and v the velocity of the body frame's origin, in body axes, and e the modal coordinates,

    2 T = m v.v + 2 v.S(e) w + w.J(e) w + 2 v.(P edot) + 2 w.(H(e) edot) + edot.G edot,
    S(e) = S0 + sum_a S_a e_a,   J(e) = J0 + sum_a J_a e_a + sum_ab J_ab e_a e_b,   H(e) = H0 + sum_a H_a e_a.

It is exact: positions X_j + u_j are linear in e, and velocities v + w x (X_j + u_j) + du_j/dt with them. The
coefficients are what the literature calls inertia shape integrals. All masses come in through one symmetric matrix W of
velocities at points: a diagonal one of lumped masses, a finite-element mass matrix, or the masses at the points of a
numerical integral over the continuum.

Shortening of bent beams: the second-order displacement that makes them stiffer under tension and in rotation.

A beam that bends by u_y and u_z does not stretch: its points also move along its axis, by

    u_x(x) = -1/2 integral_0^x (u_y'^2 + u_z'^2) dx.

With deflections that are sums of modes it is a sum of products of modal coordinates. Positions are then linear in z,
the modal coordinates e and their products e_a e_b; velocities and kinetic energy are those of `ShapeIntegrals` with
more modes, whose coordinates follow from the others: z' = L(e) e', z'' = L e'' + c. Axial forces of any origin
(centrifugal, of joints, of gravity) act on these displacements, which is what stress stiffness is; the strain energy
stays that of the modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Vector

__all__ = ["ModalForm", "ModalInertia", "ShapeIntegrals", "StiffenedInertia", "Stiffening", "crossing"]


# -- the kinetic energy of a body that deforms, as a polynomial of its modal coordinates ------------
#: coefficients smaller than this part of the largest of their kind are rounding errors of zero
_ROUNDING = 4e-16


@dataclass(frozen=True, eq=False)
class ShapeIntegrals:
    """The coefficients of twice the kinetic energy; k modes."""

    mass: float  #: m [kg]
    first: Floats  #: S0, (3, 3): for bodies made of points the matrix of -(m c) x [kg m]
    first_rates: Floats  #: S_a, (k, 3, 3)
    second: Floats  #: J0, (3, 3) [kg m^2]
    second_rates: Floats  #: J_a, (k, 3, 3)
    second_curves: Floats  #: J_ab, (k, k, 3, 3), symmetric in a and b
    linear: Floats  #: P, (3, k)
    angular: Floats  #: H0, (3, k)
    angular_rates: Floats  #: H_a, (k, 3, k)
    modal: Floats  #: G, (k, k)
    moment: Floats  #: (3,), first moment of the undeformed body as gravity sees it; with P e of the deformed one [kg m]

    @property
    def size(self) -> int:
        """Number of modes."""
        return len(self.modal)

    @property
    def material(self) -> bool:
        """Whether the energy is that of points: then accelerations of the frame, and no velocity of its origin, enter
        the forces."""
        skew = np.abs(self.first + self.first.T).max()
        rates = np.stack([crossing(column) for column in self.linear.T]) if self.size else np.zeros((0, 3, 3))
        off = max(float(skew), float(np.abs(self.first_rates + rates).max(initial=0.0)))
        return off <= 1e-13 * max(float(np.abs(self.first).max()), float(np.abs(self.linear).max(initial=0.0)), 1e-300)

    def mass_matrix(self, e: npt.ArrayLike) -> Floats:
        """The matrix of (v, w, edot) at modal coordinates e, shape (6 + k, 6 + k).

        >>> import numpy as np
        >>> one = ShapeIntegrals.from_points(np.zeros((1, 3)), np.ones((1, 6, 1)), np.diag([2.0, 2, 2, 0, 0, 0]))
        >>> one.mass_matrix([0.0])[0].tolist()
        [2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0]
        """
        at = np.asarray(e, dtype=float)
        first = self.first + np.einsum("a,aij->ij", at, self.first_rates)
        second = self.second + np.einsum("a,aij->ij", at, self.second_rates) + np.einsum(
            "a,b,abij->ij", at, at, self.second_curves)
        angular = self.angular + np.einsum("a,aij->ij", at, self.angular_rates)
        return np.block([[self.mass * np.eye(3), first, self.linear], [first.T, second, angular],
                         [self.linear.T, angular.T, self.modal]])

    @staticmethod
    def from_points(points: Floats, modes: Floats, weight: Any) -> ShapeIntegrals:
        """Of velocities at n points, weighted by the symmetric matrix `weight`, dense or sparse.

        `points`: (n, 3) in the body frame; `modes`: (n, d, k), displacements there and, if d is 6, small rotations;
        `weight`: (d n, d n), point by point. A rotating point is [v + w x (X + u) + du/dt; w + dtheta/dt].

        Cost: k + 1 products with `weight`.
        """
        n, d, k = modes.shape
        rigid = np.zeros((n, d, 6))
        rigid[:, :3, :3] = np.eye(3)
        rigid[:, :3, 3:] = -crossing(points)
        if d == 6:
            rigid[:, 3:, 3:] = np.eye(3)
        still = np.concatenate([rigid, modes], axis=-1).reshape(n * d, 6 + k)
        turned = np.zeros((n, d, k, 3))  # what w does to points displaced by unit modes
        turned[:, :3] = np.moveaxis(-crossing(np.moveaxis(modes[:, :3], 1, -1)), 1, 2)
        change = turned.reshape(n * d, 3 * k)
        constant = still.T @ (weight @ still)
        linear = (still.T @ (weight @ change)).reshape(6 + k, k, 3)  # still parts against turned displacements
        curved = (change.T @ (weight @ change)).reshape(k, 3, k, 3)
        ww = np.moveaxis(linear[3:6], 1, 0)
        both = np.einsum("aibj->abij", curved)
        found = ShapeIntegrals(
            float(np.trace(constant[:3, :3])) / 3.0, constant[:3, 3:6], np.moveaxis(linear[:3], 1, 0),
            constant[3:6, 3:6], ww + np.swapaxes(ww, -1, -2), 0.5 * (both + np.swapaxes(both, 0, 1)),
            constant[:3, 6:], constant[3:6, 6:], np.einsum("bai->aib", linear[6:]), constant[6:, 6:],
            _placed(points, d) @ (weight @ still[:, :3]))
        return found.cleaned()

    def cleaned(self) -> ShapeIntegrals:
        """Without rounding errors of zero, which would cost operations; read-only."""
        def clean(values: Floats) -> Floats:
            size = float(np.abs(values).max(initial=0.0))
            out = np.where(np.abs(values) <= _ROUNDING * size, 0.0, values) + 0.0
            out.setflags(write=False)
            return out

        return ShapeIntegrals(self.mass, *(clean(x) for x in (
            self.first, self.first_rates, 0.5 * (self.second + self.second.T), self.second_rates, self.second_curves,
            self.linear, self.angular, self.angular_rates, 0.5 * (self.modal + self.modal.T), self.moment)))


def _placed(points: Floats, d: int) -> Floats:
    """Positions as displacements without rotation, d numbers a point."""
    out = np.zeros((len(points), d))
    out[:, :3] = points
    return out.ravel()


def crossing(v: Floats) -> Floats:
    """The matrices of v x, shape (..., 3) -> (..., 3, 3)."""
    zero = np.zeros(v.shape[:-1])
    x, y, z = v[..., 0], v[..., 1], v[..., 2]
    return np.stack([np.stack([zero, -z, y], -1), np.stack([z, zero, -x], -1), np.stack([-y, x, zero], -1)], -2)


# -- what a body that deforms resists and needs, over any scalar ------------------------------------
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


# -- shortening of bent beams -----------------------------------------------------------------------
Combined = TypeVar("Combined", Vector, Force)


@dataclass(frozen=True, eq=False)
class Stiffening:
    """The shapes of products of modal coordinates."""

    products: tuple[tuple[int, int], ...]  #: which coordinates, the first not greater than the second
    shapes: Floats  #: (n, 3, products): displacements of the nodes
    integrals: ShapeIntegrals  #: of modes and products

    def coordinates(self, e: Sequence[Number]) -> list[Number]:
        """The products."""
        return [e[a] * e[b] for a, b in self.products]

    def slopes(self, e: Sequence[Number], m: int) -> dict[int, Number]:
        """Derivatives of a product by modal coordinates."""
        a, b = self.products[m]
        return {a: 2.0 * e[a]} if a == b else {a: e[b], b: e[a]}

    def curvatures(self, rate: Sequence[Number]) -> list[Number]:
        """c: second rates of the products at constant modal speeds."""
        return [2.0 * (rate[a] * rate[b]) for a, b in self.products]


class StiffenedInertia:
    """What `ModalInertia` is for modes alone."""

    def __init__(self, stiffening: Stiffening) -> None:
        self.stiffening, self.whole = stiffening, ModalInertia(stiffening.integrals)
        self.material, self.mass = self.whole.material, self.whole.mass

    def moment(self, e: Sequence[Number]) -> Vector:
        """The first moment of the masses about the frame's origin, on which gravity acts."""
        return self.whole.moment([*e, *self.stiffening.coordinates(e)])

    def resistance(self, e: Sequence[Number]) -> tuple[ArticulatedInertia, tuple[Force, ...], tuple[tuple[Number, ...],
                                                                                                  ...]]:
        """Mass, columns and matrix of the form."""
        mass, columns, matrix = self.whole.resistance([*e, *self.stiffening.coordinates(e)])
        return mass, tuple(self._combined(e, columns)), self._matrix(e, matrix)

    def form(self, e: Sequence[Number], rate: Sequence[Number], motion: Motion) -> ModalForm:
        """All of it."""
        extra = [sum((slope * rate[a] for a, slope in self.stiffening.slopes(e, m).items()), 0.0)
                 for m in range(len(self.stiffening.products))]
        form = self.whole.form([*e, *self.stiffening.coordinates(e)], [*rate, *extra], motion)
        k = len(e)
        force, right = form.force, list(form.right)
        for m, c in enumerate(self.stiffening.curvatures(rate)):
            force = force + form.columns[k + m] * c
            right = [x + row[k + m] * c for x, row in zip(right, form.matrix, strict=True)]
        return ModalForm(form.mass, tuple(self._combined(e, form.columns)), self._matrix(e, form.matrix), force,
                         tuple(self._reduced(e, right)))

    def _combined(self, e: Sequence[Number], columns: Sequence[Combined]) -> list[Combined]:
        """L^T of columns."""
        k = len(e)
        out = list(columns[:k])
        for m in range(len(self.stiffening.products)):
            for a, slope in self.stiffening.slopes(e, m).items():
                out[a] = out[a] + columns[k + m] * slope
        return out

    def _reduced(self, e: Sequence[Number], values: Sequence[Number]) -> list[Number]:
        """L^T of numbers."""
        k = len(e)
        out = list(values[:k])
        for m in range(len(self.stiffening.products)):
            for a, slope in self.stiffening.slopes(e, m).items():
                out[a] = out[a] + values[k + m] * slope
        return out

    def _matrix(self, e: Sequence[Number], matrix: Sequence[Sequence[Number]]) -> tuple[tuple[Number, ...], ...]:
        """L^T G L."""
        half = [self._reduced(e, row) for row in matrix]  # G L, row by row
        columns = [self._reduced(e, [row[j] for row in half]) for j in range(len(e))]
        return tuple(tuple(columns[j][i] for j in range(len(e))) for i in range(len(e)))
