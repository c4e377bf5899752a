"""Small symmetric systems over any scalar, and pivots that are watched: shared by all methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number

__all__ = ["guarded_inverse", "solve_multipliers", "solve_positive"]

#: a pivot this much smaller than its diagonal means that the constraints depend on each other here
_DEPENDENT = 1e-10
_NOT_A_NUMBER = float("nan")


def guarded_inverse(pivot: Number, size: Number) -> Number:
    """1 / pivot, or not a number if |pivot| < size: the library then chooses other pivots (see `System`)."""
    return select_less(size * size, pivot * pivot, 1.0 / pivot, _NOT_A_NUMBER)


def solve_positive(matrix: Sequence[Sequence[Number]], right: Sequence[Number],
                   invert: Callable[[Number, Number], Number] = lambda pivot, diagonal: 1.0 / pivot) -> list[Number]:
    """Solve M x = b for a symmetric positive definite M by L D L^T, over any scalar; `invert` gets every pivot and
    the diagonal entry it was before."""
    n = len(right)
    lower: list[list[Number]] = [[0.0] * n for _ in range(n)]
    inverse: list[Number] = [0.0] * n
    for i in range(n):
        scaled: list[Number] = []  # row i of L D
        for j in range(i):
            value = matrix[i][j]
            for k in range(j):
                value = value - scaled[k] * lower[j][k]
            scaled.append(value)
            lower[i][j] = value * inverse[j]
        pivot = matrix[i][i]
        for k in range(i):
            pivot = pivot - scaled[k] * lower[i][k]
        inverse[i] = invert(pivot, matrix[i][i])
    x = list(right)
    for i in range(n):
        for k in range(i):
            x[i] = x[i] - lower[i][k] * x[k]
    x = [v * d for v, d in zip(x, inverse, strict=True)]
    for i in reversed(range(n)):
        for k in range(i + 1, n):
            x[i] = x[i] - lower[k][i] * x[k]
    return x


def solve_multipliers(matrix: Sequence[Sequence[Number]], right: Sequence[Number], floors: Sequence[float]
                     ) -> list[Number]:
    """Solve the symmetric positive definite system for the constraint loads by L D L^T, watching its pivots.

    The result is not a number where a constraint depends on those before it, or vanishes: its diagonal falls below its
    entry of `floors` (see `LoopPlan`).
    """
    floor = iter(floors)
    return solve_positive(matrix, right, lambda pivot, diagonal: guarded_inverse(
        pivot, diagonal * _DEPENDENT + next(floor)))
