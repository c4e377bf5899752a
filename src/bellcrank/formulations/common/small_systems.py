"""Small symmetric systems over any scalar, and pivots that are watched: shared by all methods."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number, is_zero

__all__ = ["guarded_inverse", "solve_general", "solve_multipliers", "solve_positive", "solve_positive_columns"]

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
    return solve_positive_columns(matrix, [right], invert)[0]


def solve_positive_columns(matrix: Sequence[Sequence[Number]], rights: Sequence[Sequence[Number]],
                           invert: Callable[[Number, Number], Number]) -> list[list[Number]]:
    """The same for several right hand sides."""
    n = len(matrix)
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
    return [_substituted(lower, inverse, right) for right in rights]


def _substituted(lower: Sequence[Sequence[Number]], inverse: Sequence[Number], right: Sequence[Number]
                 ) -> list[Number]:
    n, x = len(right), list(right)
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


def solve_general(matrix: Sequence[Sequence[Number]], right: Sequence[Sequence[Number]]) -> list[list[Number]]:
    """Solve A X = B by Gaussian elimination, over any scalar; in every column the row with the largest entry is
    exchanged to the top (by selections, where entries are not known yet)."""
    n = len(matrix)
    rows = [[*a, *b] for a, b in zip(matrix, right, strict=True)]
    for k in range(n):
        for i in range(k + 1, n):
            if not is_zero(rows[i][k]):
                rows[k], rows[i] = _larger_first(rows[k], rows[i], k)
        inverse = 1.0 / rows[k][k]
        rows[k] = [*rows[k][:k + 1], *(x * inverse for x in rows[k][k + 1:])]
        for i in range(k + 1, n):
            rows[i] = _less(rows[i], rows[k], rows[i][k], k + 1)
    for k in reversed(range(n)):
        for i in range(k):
            rows[i] = _less(rows[i], rows[k], rows[i][k], n)
    return [row[n:] for row in rows]


def _larger_first(a: list[Number], b: list[Number], k: int) -> tuple[list[Number], list[Number]]:
    x, y = a[k] * a[k], b[k] * b[k]
    pairs = [(p, q) if p is q or (is_zero(p) and is_zero(q)) else
             (select_less(x, y, q, p), select_less(x, y, p, q)) for p, q in zip(a, b, strict=True)]
    return [p for p, _ in pairs], [q for _, q in pairs]


def _less(row: list[Number], other: list[Number], factor: Number, start: int) -> list[Number]:
    """A row less `factor` times another, from an entry on."""
    if is_zero(factor):
        return row
    return [*row[:start], *(x if is_zero(y) else x - factor * y
                            for x, y in zip(row[start:], other[start:], strict=True))]
