"""The full equations of a machine with loops, solved with any rank: the oracle of the loop methods."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.tolerances import RANK

__all__ = ["null_space", "solve_kkt"]


NullSpace = tuple[Floats, Floats, npt.NDArray[np.bool_]]


def null_space(jacobian: Floats, rows: Floats, columns: Floats) -> NullSpace:
    """The pseudo-inverse of J, a basis of its null space padded with zeros, and the mask of the padding.

    Constraints are measured by `rows`, speeds by `columns` (see `loops.constraint_sizes`): in these units the basis is
    orthogonal and the solution by the inverse the smallest.
    """
    *lead, m, n = jacobian.shape
    if not m:  # joints that allow everything close loops without conditions
        return (np.zeros((*lead, n, 0)), np.broadcast_to(np.diag(columns), (*lead, n, n)),
                np.zeros((*lead, n), dtype=bool))
    finite = np.asarray(np.isfinite(jacobian).all(axis=(-2, -1)))[..., None]  # of others no number is known
    u, s, vt = np.linalg.svd(np.where(finite[..., None], jacobian, 0.0) * columns / rows[:, None], full_matrices=True)
    padded = np.zeros((*s.shape[:-1], n))
    padded[..., :s.shape[-1]] = np.where(finite, s, np.nan)
    kept = ~(padded <= RANK * padded.max(axis=-1, keepdims=True, initial=0.0)) | ~finite
    inverse = np.where(kept, 1.0 / np.where(kept, padded, 1.0), 0.0)
    k = s.shape[-1]
    v = np.swapaxes(vt, -1, -2)
    pseudo = (v[..., :, :k] * inverse[..., None, :k]) @ np.swapaxes(u[..., :, :k], -1, -2)
    return pseudo * columns[:, None] / rows, v * ~kept[..., None, :] * columns[:, None], kept


def solve_kkt(matrix: Floats, jacobian: Floats, gamma: Floats, force: Floats, driven: Floats, free: Sequence[int],
              space: NullSpace) -> tuple[Floats, Floats]:
    """udot and lambda of M udot = force + J^T lambda, J udot = gamma; lambda is the smallest of all possible.

    `force` lacks what prescribed accelerations need (it is in the bias); `driven` holds those accelerations. `space` is
    the `null_space` of the free columns of J.
    """
    lead = np.broadcast_shapes(matrix.shape[:-2], jacobian.shape[:-2], gamma.shape[:-1], force.shape[:-1])
    some = np.array(free, dtype=np.int64)
    m = np.broadcast_to(matrix, (*lead, *matrix.shape[-2:]))[..., some[:, None], some[None, :]]
    f = np.broadcast_to(force, (*lead, force.shape[-1]))[..., some, None]
    g = np.broadcast_to(gamma, (*lead, gamma.shape[-1]))[..., None]
    pseudo, basis, kept = space
    particular = pseudo @ g
    back = np.swapaxes(basis, -1, -2)
    reduced = back @ m @ basis + kept[..., None] * np.eye(len(some))  # ones where the basis is padded
    udot = particular + basis @ np.linalg.solve(reduced, back @ (f - m @ particular))
    multipliers = np.swapaxes(pseudo, -1, -2) @ (m @ udot - f)
    out = np.broadcast_to(driven, (*lead, driven.shape[-1])).copy()
    out[..., some] = udot[..., 0]
    return out, multipliers[..., 0]
