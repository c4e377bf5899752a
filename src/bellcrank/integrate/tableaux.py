"""Coefficients of Runge-Kutta methods.

Sources of the figures: Kutta 1901 (rk4); Dormand & Prince 1980 (5(4) pair with Shampine's interpolant, 1986); Hairer,
Norsett & Wanner, Solving Ordinary Differential Equations I, 1993 (8(5,3) after Dormand & Prince, order 7 interpolant).
Gauss and Radau IIA methods are collocation at the zeros of Legendre and Radau polynomials: computed here.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from bellcrank.arrays import Floats

__all__ = ["Collocation", "Explicit", "StiffRadau", "dop853", "dopri5", "gauss", "radau", "rk4", "rk8", "stiff_radau"]


@dataclass(frozen=True)
class Explicit:
    """An explicit method: slopes k_i at y + h sum_j a_ij k_j, time t + c_i h; result y + h sum_i b_i k_i.

    Adaptive ones have error weights `e` (and `e3`, see `adaptive`) over the slopes and the one at the result, and an
    interpolant y + h sum_i k_i sum_p dense[i, p] x^(p+1), whose further slopes are made by `more` (rows over all slopes
    before) at times `more_c`.
    """

    order: int
    a: Floats
    b: Floats
    c: Floats
    e: Floats | None = None
    e3: Floats | None = None
    dense: Floats | None = None
    more: Floats | None = None
    more_c: Floats | None = None

    @property
    def stages(self) -> int:
        return len(self.b)

    @property
    def chained(self) -> bool:
        """Whether each stage needs the slope before it alone."""
        return not np.any(self.a - np.diag(np.diag(self.a, -1), -1))


@dataclass(frozen=True)
class Collocation:
    """An implicit method: z_i = h sum_j a_ij f(y + z_j); result y + sum_i d_i z_i.

    `ahead` extrapolates the z of one step to the next as a first guess.
    """

    order: int
    a: Floats
    c: Floats
    d: Floats
    ahead: Floats

    @property
    def stages(self) -> int:
        return len(self.c)


@dataclass(frozen=True)
class StiffRadau:
    """Radau IIA for stiff problems: `matrix` and `inverse` are T and T⁻¹, `real` and `complex` the eigenvalues of A⁻¹,
    `e` the weights of z / h in the error estimate, `dense` those of x, x^2, x^3 for each z in the interpolant."""

    c: Floats
    real: float
    complex: complex
    matrix: Floats
    inverse: Floats
    e: Floats
    dense: Floats
    order: int = 5
    stages: int = 3


def _lower(rows: list[list[float]]) -> Floats:
    out = np.zeros((len(rows) + 1, len(rows) + 1))
    for i, row in enumerate(rows):
        out[i + 1, :len(row)] = row
    return out


@cache
def rk4() -> Explicit:
    """The classical method of order 4."""
    return Explicit(4, _lower([[1 / 2], [0, 1 / 2], [0, 0, 1]]), np.array([1, 2, 2, 1]) / 6, np.array([0, 0.5, 0.5, 1]))


@cache
def dopri5() -> Explicit:
    """Dormand and Prince's pair of orders 5 and 4."""
    a = _lower([[1 / 5], [3 / 40, 9 / 40], [44 / 45, -56 / 15, 32 / 9],
                [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
                [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656]])
    b = np.array([35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84])
    e = np.array([-71 / 57600, 0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40])
    dense = np.array([
        [1, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432], [0, 0, 0, 0],
        [0, 131558114200 / 32700410799, -68118460800 / 10900136933, 87487479700 / 32700410799],
        [0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
        [0, 127303824393 / 49829197408, -318862633887 / 49829197408, 701980252875 / 199316789632],
        [0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
        [0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423]])
    return Explicit(5, a, b, np.array([0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1]), e, None, dense)


def _collocation(order: int, c: Floats) -> Collocation:
    s = len(c)
    powers = np.vander(c, s, increasing=True)
    q = np.arange(1, s + 1)
    a = (c[:, None] ** q / q) @ np.linalg.inv(powers)
    b = (1.0 / q) @ np.linalg.inv(powers)
    nodes = np.concatenate([[0.0], c])

    def through(x: Floats) -> Floats:
        """Weights of z (zero at 0) for the polynomial through them at x."""
        out = np.ones((len(x), s))
        for j in range(s):
            for m in range(s + 1):
                if m != j + 1:
                    out[:, j] *= (x - nodes[m]) / (nodes[j + 1] - nodes[m])
        return out

    d = b @ np.linalg.inv(a)
    return Collocation(order, a, c, np.where(np.abs(d) < 1e-14, 0.0, d), through(1.0 + c) - through(np.ones(1)))


@cache
def gauss(stages: int = 3) -> Collocation:
    """Gauss's methods: order 2 * stages, symmetric and symplectic."""
    x, _ = np.polynomial.legendre.leggauss(stages)
    return _collocation(2 * stages, (x + 1.0) / 2.0)


@cache
def radau() -> Collocation:
    """Radau IIA with three stages: order 5, stiffly accurate."""
    root = np.sqrt(6.0)
    return _collocation(5, np.array([(4.0 - root) / 10.0, (4.0 + root) / 10.0, 1.0]))


@cache
def stiff_radau() -> StiffRadau:
    """Radau IIA with three stages in the form of Hairer and Wanner, section IV.8: transformed so that its Newton
    iteration falls into one real and one complex system."""
    plain = radau()
    inverse = np.linalg.inv(plain.a)
    values, left = np.linalg.eig(inverse.T)  # rows of T⁻¹ are left eigenvectors
    real, pair = int(np.argmin(np.abs(values.imag))), int(np.argmax(values.imag))
    first, second = left[:, real].real, left[:, pair]
    transform = np.stack([first / first[-1], (second / second[-1]).real, (second / second[-1]).imag])
    nodes = np.concatenate([[0.0], plain.c])
    powers = np.linalg.inv(np.vander(nodes, increasing=True))[1:, 1:].T  # of the polynomials that are 1 at one node
    root = np.sqrt(6.0)
    error = np.array([-13.0 - 7.0 * root, -13.0 + 7.0 * root, -1.0]) / 3.0
    return StiffRadau(plain.c, float(values[real].real), complex(values[pair]), np.linalg.inv(transform), transform,
                      error, powers)


def _matrix(entries: tuple[tuple[int, int, float], ...], rows: int, columns: int) -> Floats:
    out = np.zeros((rows, columns))
    for i, j, value in entries:
        out[i, j] = value
    return out


@cache
def dop853() -> Explicit:
    """The method of order 8 with error estimates of orders 5 and 3 and an interpolant of order 7."""
    from bellcrank.integrate import dop853 as figures

    a = _matrix(figures.STAGES, 16, 16)
    c = np.array(figures.NODES)
    b = a[12, :12]
    e5, e3 = (_matrix(e, 1, 13)[0] for e in (figures.ERROR_5, figures.ERROR_3))
    return Explicit(8, a[:12, :12], b, c[:12], e5, e3, _interpolant(b), a[13:, :], c[13:])


@cache
def rk8() -> Explicit:
    """The method of order 8 alone, for fixed steps."""
    full = dop853()
    return Explicit(8, full.a, full.b, full.c)


def _interpolant(b: Floats) -> Floats:
    """Weights of all 16 slopes for the powers x ... x^7, from the nested form of the source."""
    from bellcrank.integrate import dop853 as figures

    first, last = np.eye(16)[0], np.eye(16)[12]
    change = np.concatenate([b, np.zeros(4)])
    terms = [change, first - change, 2.0 * change - last - first, *_matrix(figures.DENSE, 4, 16)]
    out = np.zeros((16, 8))  # polynomials in x, from the innermost term outwards
    for i, term in enumerate(reversed(terms)):
        out[:, 0] += term
        shifted = np.zeros_like(out)
        shifted[:, 1:] = out[:, :-1]
        out = shifted if i % 2 == 0 else out - shifted
    return out[:, 1:]
