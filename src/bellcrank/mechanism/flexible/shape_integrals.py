"""The kinetic energy of a body that deforms, as a polynomial of its modal coordinates.

With w the angular velocity and v the velocity of the body frame's origin, in body axes, and e the modal coordinates,

    2 T = m v.v + 2 v.S(e) w + w.J(e) w + 2 v.(P edot) + 2 w.(H(e) edot) + edot.G edot,
    S(e) = S0 + sum_a S_a e_a,   J(e) = J0 + sum_a J_a e_a + sum_ab J_ab e_a e_b,   H(e) = H0 + sum_a H_a e_a.

It is exact: positions X_j + u_j are linear in e, and velocities v + w x (X_j + u_j) + du_j/dt with them. The
coefficients are what the literature calls inertia shape integrals. All masses come in through one symmetric matrix W of
velocities at points: a diagonal one of lumped masses, a finite-element mass matrix, or the masses at the points of a
numerical integral over the continuum.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats

__all__ = ["ShapeIntegrals", "crossing"]

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
