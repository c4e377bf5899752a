"""Shortening of bent beams: the second-order displacement that makes them stiffer under tension and in rotation.

A beam that bends by u_y and u_z does not stretch: its points also move along its axis, by

    u_x(x) = -1/2 integral_0^x (u_y'^2 + u_z'^2) dx.

With deflections that are sums of modes it is a sum of products of modal coordinates. Positions are then linear in z,
the modal coordinates e and their products e_a e_b; velocities and kinetic energy are those of `shape_integrals` with
more modes, whose coordinates follow from the others: z' = L(e) e', z'' = L e'' + c. Axial forces of any origin
(centrifugal, of joints, of gravity) act on these displacements, which is what stress stiffness is; the strain energy
stays that of the modes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.modal_kinetics import ModalForm, ModalInertia
from bellcrank.mechanism.flexible.shape_integrals import ShapeIntegrals
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force, Motion, Vector

__all__ = ["StiffenedInertia", "Stiffening"]

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
