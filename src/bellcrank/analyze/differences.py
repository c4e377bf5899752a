"""Derivatives by differences that choose their own step.

Central differences at steps h, h/2, h/4, ... are extrapolated (Richardson; the table is Romberg's), and the entry of
the table is taken whose neighbours agree best. Smooth functions come out with about 12 digits, relative to the largest
entry of a column; the disagreement with the neighbours, which is returned, is a cautious estimate of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import StateError

__all__ = ["derivative"]

#: extrapolations beyond this order gain nothing in double precision
_ORDER = 5


def derivative(function: Callable[[Floats], Floats], first: Floats, groups: Sequence[slice], *, levels: int = 12,
               names: Sequence[str] = ()) -> tuple[Floats, Floats]:
    """d function / d x at x = 0, shape (outputs, n), and the estimated error of every group of outputs, (groups, n).

    `function` takes a batch of x (b, n) and returns (b, outputs); NaN where it cannot be evaluated. `first` (n,) are
    the largest steps. The choice of step is made for each group of outputs together, so that lucky entries do not
    decide. Cost: 2 n levels evaluations in one batch.
    """
    n = len(first)
    if not n:
        return np.zeros((function(np.zeros((1, 0))).shape[1], 0)), np.zeros((len(groups), 0))
    steps = first * 0.5 ** np.arange(levels)[:, None]  # (levels, n)
    batch = np.zeros((levels, 2, n, n))
    batch[:, 0, np.arange(n), np.arange(n)] = steps
    batch[:, 1, np.arange(n), np.arange(n)] = -steps
    values = function(batch.reshape(-1, n)).reshape(levels, 2, n, -1)
    plain = (values[:, 0] - values[:, 1]) / (2.0 * steps[:, :, None])  # (levels, n, outputs)
    out, error = np.zeros((values.shape[-1], n)), np.zeros((len(groups), n))
    for g, some in enumerate(groups):
        for j in range(n):
            out[some, j], error[g, j] = _romberg(plain[:, j, some])
            if not np.isfinite(error[g, j]):
                label = names[j] if j < len(names) else str(j)
                raise StateError(f"no derivative with respect to {label}: the machine cannot move there, however "
                                 "little; is the state at a dead point?")
    return out, error


def _romberg(column: Floats) -> tuple[Floats, float]:
    """The best extrapolation of differences (levels, outputs) at halved steps, and its disagreement."""
    best, error = np.full(column.shape[1], np.nan), float("inf")
    if not column.shape[1]:
        return best, 0.0
    previous = column
    for order in range(1, _ORDER + 1):
        fine, coarse = previous[1:], previous[:-1]
        better = fine + (fine - coarse) / (4.0**order - 1.0)
        apart = np.maximum(np.abs(better - fine).max(axis=1), np.abs(better - coarse).max(axis=1))
        apart = np.where(np.isfinite(apart), apart, np.inf)
        i = int(np.argmin(apart))
        if apart[i] < error:
            best, error = better[i], float(apart[i])
        previous = better
        if len(previous) < 2:
            break
    return best, error
