"""Matrix Market files (.mtx) of real matrices: a banner, comments, sizes, and a number or a triple in each line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.arrays import Floats

__all__ = ["read_matrix_market"]

_LAYOUTS, _FIELDS = ("coordinate", "array"), ("real", "double", "integer")
_SYMMETRIES = {"general": 0.0, "symmetric": 1.0, "skew-symmetric": -1.0}


def read_matrix_market(path: Path) -> Any:
    """The matrix of a file, sparse if it lists places; `ValueError` if the text is not such a file. Memory: a small
    multiple of the file's, whatever sizes it promises."""
    from scipy import sparse

    with path.open(encoding="ascii") as file:
        layout, symmetry = _banner(file.readline())
        line = next((text for text in file if text.strip() and not text.startswith("%")), "")
        sizes = [int(word) for word in line.split()]
        if len(sizes) != (3 if layout == "coordinate" else 2) or min(sizes, default=0) < 1 or max(sizes) > 1 << 53:
            raise ValueError(f"the line {line.strip()[:60]!r} does not give the sizes of a {layout} matrix")
        rows, columns = sizes[:2]
        if symmetry and rows != columns:
            raise ValueError(f"a matrix of {rows} x {columns} is not symmetric")
        numbers = np.loadtxt(file, comments="%", ndmin=2)
    if layout == "array":
        return _dense(numbers, rows, columns, symmetry)
    if numbers.shape != (sizes[2], 3):
        raise ValueError(f"{sizes[2]} lines of row, column and value are promised, there are {numbers.shape[0]} of "
                         f"{numbers.shape[1]} numbers")
    places, values = numbers[:, :2] - 1.0, numbers[:, 2]
    if not ((places >= 0.0) & (places < (rows, columns)) & (places == np.floor(places))).all():
        raise ValueError(f"a place lies outside of the {rows} x {columns} matrix")
    i, j = places.astype(np.int64).T
    if symmetry:
        off = i != j
        i, j, values = (np.concatenate(pair) for pair in ((i, j[off]), (j, i[off]), (values, symmetry * values[off])))
    return sparse.coo_matrix((values, (i, j)), shape=(rows, columns))


def _banner(line: str) -> tuple[str, float]:
    """Layout and symmetry (0 if there is none)."""
    words = line.lower().split()
    if words[:2] != ["%%matrixmarket", "matrix"] or len(words) != 5:
        raise ValueError(f"its first line is {line.strip()[:60]!r}, not '%%MatrixMarket matrix ...'")
    layout, field, symmetry = words[2:]
    if layout not in _LAYOUTS or field not in _FIELDS or symmetry not in _SYMMETRIES:
        raise ValueError(f"a {layout} {field} {symmetry} matrix is not read; write it as coordinate real general")
    return layout, _SYMMETRIES[symmetry]


def _dense(numbers: Floats, rows: int, columns: int, symmetry: float) -> Floats:
    """A matrix given column by column; of symmetric ones the lower half is."""
    half = -(symmetry < 0.0)  # skew-symmetric ones leave out their diagonal
    count = rows * columns if not symmetry else rows * (rows + 1 + 2 * half) // 2
    if numbers.shape[1] != 1 or len(numbers) != count:
        raise ValueError(f"{count} lines of one number are promised, there are {len(numbers)} of {numbers.shape[1]}")
    if not symmetry:
        return numbers.reshape(columns, rows).T.copy()
    matrix = np.zeros((rows, rows))
    j, i = np.triu_indices(rows, -half)
    matrix[i, j] = numbers[:, 0]
    matrix[j, i] = np.where(i == j, 1.0, symmetry) * numbers[:, 0]
    return matrix
