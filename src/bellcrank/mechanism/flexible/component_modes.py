"""From the matrices of a finite-element model to few shapes: normal modes, interface modes, rigid faces.

R. R. Craig and M. C. C. Bampton, "Coupling of Substructures for Dynamic Analyses", AIAA Journal 6(7), 1968: constraint
modes (static shapes of unit displacements at the interfaces) and normal modes with the interfaces fixed. Without normal
modes it is R. J. Guyan's reduction (AIAA Journal 3(2), 1965).

Matrices are dense or SciPy sparse; what comes out is dense, one column a shape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.scalar.graph import Scalar

__all__ = ["check_symmetric", "craig_bampton", "normal_modes", "refuse_parameter", "rigid_motions", "tie_faces"]


# -- flexible bodies are made of plain numbers: their modes are computed once, when they are made ---
def refuse_parameter(what: str, *values: object) -> None:
    """Say what to do in place of a parameter of the mechanism."""
    if any(isinstance(value, Scalar) for value in values):
        raise ModelError(f"{what} is a parameter of a mechanism, but modes are computed once, when a flexible body is "
                         "made: give a number, and make the body anew for another one")


Ints = npt.NDArray[np.int64]
#: up to so many degrees of freedom all eigenvalues are computed at once
_DENSE = 300
_LOOSE = "with the interfaces held something still moves without stiffness: are there nodes that nothing connects?"


def check_symmetric(what: str, matrix: Any, size: int | None = None) -> Any:
    """A square matrix of finite numbers that is symmetric up to rounding; sparse ones in rows."""
    from scipy import sparse

    if sparse.issparse(matrix):
        found: Any = matrix.tocsr().astype(float)
        entries = found.data
    else:
        try:
            found = entries = np.asarray(matrix, dtype=float)
        except (TypeError, ValueError):
            refuse_parameter(f"an entry of {what}", *np.ravel(np.asarray(matrix, dtype=object)))
            raise ModelError(f"{what} is not a matrix of numbers") from None
    shape = found.shape
    if len(shape) != 2 or shape[0] != shape[1] or (size is not None and shape[0] != size):
        raise ModelError(f"{what} must be square{'' if size is None else f' with {size} rows'}, got shape {shape}")
    if not np.isfinite(entries).all():
        raise ModelError(f"{what} holds entries that are not finite")
    off = abs(found - found.T).max() if shape[0] else 0.0
    largest = abs(entries).max() if entries.size else 0.0
    if off > 1e-8 * largest:
        raise ModelError(f"{what} is not symmetric: entries differ from their mirror image by up to {off:.3g}, the "
                         f"largest is {largest:.3g}")
    return 0.5 * (found + found.T)


def normal_modes(mass: Any, stiffness: Any, count: int, *, cutoff: float | None = None) -> tuple[Floats, Floats]:
    """The lowest vibrations: squares of angular frequencies, ascending, and shapes of unit modal mass by columns.

    `count`: how many; with a `cutoff` [rad/s], those below it, at most `count`.
    """
    from scipy import linalg, sparse
    from scipy.sparse.linalg import eigsh

    n = mass.shape[0]
    count = min(count, n)
    if count <= 0:
        return np.zeros(0), np.zeros((n, 0))
    if n <= _DENSE or count > n // 4:
        dense = [x.toarray() if sparse.issparse(x) else x for x in (stiffness, mass)]
        try:
            values, shapes = linalg.eigh(*dense, subset_by_index=(0, count - 1))
        except linalg.LinAlgError:
            raise ModelError("the mass matrix is not positive definite: some motion of the nodes has no mass") from None
    else:
        scale = float(stiffness.diagonal().max() / mass.diagonal().max())
        start = np.random.default_rng(1).normal(size=n)  # the same shapes in every process
        try:
            values, shapes = eigsh(sparse.csc_matrix(stiffness), count, sparse.csc_matrix(mass), sigma=-1e-9 * scale,
                                   v0=start)
        except (RuntimeError, ValueError) as error:  # ARPACK's own are RuntimeErrors
            raise ModelError(f"vibrations cannot be computed ({error}): are nodes without mass, or not connected?"
                             ) from None
        order = np.argsort(values)
        values, shapes = values[order], shapes[:, order]
    keep = np.full(len(values), True) if cutoff is None else values <= cutoff * cutoff
    return np.asarray(values[keep]), np.asarray(shapes[:, keep])


def craig_bampton(mass: Any, stiffness: Any, boundary: Sequence[int], count: int, *, cutoff: float | None = None
                  ) -> Floats:
    """Shapes of all degrees of freedom: one for each of the `boundary`, then fixed-interface modes, each with its
    largest entry positive.

    >>> import numpy as np
    >>> K = np.array([[1.0, -1, 0], [-1, 2, -1], [0, -1, 1]])
    >>> craig_bampton(np.eye(3), K, [0, 2], 1).round(3).tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 1.0], [0.0, 1.0, 0.0]]
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    n = mass.shape[0]
    outer: Ints = np.asarray(boundary, dtype=np.int64)
    inner = np.setdiff1d(np.arange(n), outer)
    k_ii, k_ib = stiffness[inner][:, inner], stiffness[inner][:, outer]
    if sparse.issparse(stiffness):
        try:
            static = splu(sparse.csc_matrix(k_ii)).solve(-k_ib.toarray())
        except RuntimeError:
            raise ModelError(_LOOSE) from None
    else:
        try:
            static = np.linalg.solve(k_ii, -k_ib) if len(inner) else np.zeros((0, len(outer)))
        except np.linalg.LinAlgError:
            raise ModelError(_LOOSE) from None
    _, shapes = normal_modes(mass[inner][:, inner], k_ii, count, cutoff=cutoff)
    out = np.zeros((n, len(outer) + shapes.shape[1]))
    out[outer, np.arange(len(outer))] = 1.0
    out[inner, :len(outer)] = static
    out[inner, len(outer):] = largest_positive(shapes)
    return out


def largest_positive(shapes: Floats) -> Floats:
    """Every column with the sign that makes its largest entry positive."""
    if not shapes.size:
        return shapes
    size = np.abs(shapes)
    at = (size >= (1.0 - 1e-6) * size.max(axis=0)).argmax(axis=0)  # the first of those that symmetry makes equal
    signs = np.sign(shapes[at, np.arange(shapes.shape[1])])
    return np.asarray(shapes * np.where(signs == 0.0, 1.0, signs))


def rigid_motions(nodes: Floats, d: int) -> Floats:
    """Displacements of all nodes in unit rigid motions (three shifts, three turns about the origin): (d n, 6)."""
    from bellcrank.mechanism.flexible.modal_kinetics import crossing

    out = np.zeros((len(nodes), d, 6))
    out[:, :3, :3] = np.eye(3)
    out[:, :3, 3:] = -crossing(nodes)
    if d == 6:
        out[:, 3:, 3:] = np.eye(3)
    return out.reshape(len(nodes) * d, 6)


def tie_faces(nodes: Floats, d: int, faces: Sequence[tuple[Sequence[int], Floats]]) -> Any:
    """Tie the nodes of each face rigidly to a reference point: the sparse matrix that gives all degrees of freedom from
    those of the free nodes, followed by six (three shifts, three turns) for every face."""
    from scipy import sparse

    n = len(nodes)
    tied = np.zeros(n, dtype=bool)
    for face, _ in faces:
        tied[list(face)] = True
    free = np.flatnonzero(~np.repeat(tied, d))
    columns = [sparse.csr_matrix((np.ones(len(free)), (free, np.arange(len(free)))), shape=(n * d, len(free)))]
    for face, at in faces:
        chosen = list(face)
        rows = (np.asarray(chosen)[:, None] * d + np.arange(d)).ravel()
        block = sparse.lil_matrix((n * d, 6))
        block[rows] = rigid_motions(nodes[chosen] - at, d)
        columns.append(block.tocsr())
    return sparse.hstack(columns).tocsr()
