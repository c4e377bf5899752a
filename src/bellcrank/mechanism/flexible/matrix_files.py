"""Matrices that finite-element programs write: MAT files, NumPy and SciPy files, Matrix Market.

A damaged file, or one that promises more than it holds, is a `FileError` in bounded time and memory.
"""

from __future__ import annotations

import os
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, FileError, hint
from bellcrank.files.model_files import read_apart

__all__ = ["matrix_of"]


# -- matrix Market files ----------------------------------------------------------------------------
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


#: bytes that a compressed file may become, as a multiple of its own, and without asking
_GROWTH, _FREE = 100, 1 << 24
#: rows for each entry that is not zero
_ROWS_PER_ENTRY = 100


def matrix_of(what: str, given: Any) -> Any:
    """A matrix as it is, or from a file: ``"model.mat:K"`` (the name may be left out if there is one matrix only),
    ``.npy``, ``.npz`` (SciPy sparse) or ``.mtx`` (Matrix Market)."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    text = os.fsdecode(given)
    path, _, name = text.rpartition(":") if ".mat:" in text else (text, "", "")
    file = Path(path)
    try:
        if not file.is_file():
            raise FileError(f"{what}: there is no file {str(file)!r}")
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            return _checked(_read(what, file, name))
    except BellcrankError:
        raise
    except Exception as error:  # libraries fail in many ways on what is damaged
        raise FileError(f"{what}: {str(file)!r} cannot be read ({error or type(error).__name__})") from None


def _read(what: str, file: Path, name: str) -> Any:
    if file.suffix == ".npy":
        return np.array(np.load(file, mmap_mode="r"))  # mapped: a shape that the file cannot hold is an error
    if file.suffix == ".npz":
        return _sparse_npz(file)
    if file.suffix == ".mtx":
        return read_matrix_market(file)
    if file.suffix == ".mat":
        return _variable(what, file, name)
    raise FileError(f"{what}: {str(file)!r} is none of .mat, .npy, .npz, .mtx")


def _sparse_npz(file: Path) -> Any:
    from scipy import sparse

    with zipfile.ZipFile(file) as members:
        size = sum(member.file_size for member in members.infolist())
    if size > max(_FREE, _GROWTH * file.stat().st_size):
        raise ValueError(f"its {file.stat().st_size} bytes would become {size}")
    return sparse.load_npz(file)


def _variable(what: str, file: Path, name: str) -> Any:
    """A matrix of a MAT file by its name, or the only one."""
    from scipy import sparse

    arrays = read_apart("mat", file)
    names = arrays["names"].tolist()
    if name not in names and (name or len(names) != 1):
        said = f"no matrix {name!r}" if name else "several matrices: say which, as file.mat:name"
        raise FileError(f"{what}: {str(file)!r} has {said}; there are {', '.join(names) or 'none'}{hint(name, names)}")
    k = names.index(name) if name else 0
    if f"{k}.data" in arrays:
        parts = (arrays[f"{k}.{part}"] for part in ("data", "indices", "indptr"))
        return sparse.csc_matrix(tuple(parts), shape=arrays[f"{k}.shape"])
    if f"{k}" not in arrays:
        raise ValueError(f"{names[k]} is not a matrix of numbers")
    return arrays[f"{k}"]


def _checked(matrix: Any) -> Any:
    """Refuse what is not a matrix of real numbers, and sparse ones that refer to places outside of themselves."""
    from scipy import sparse

    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise ValueError(f"it holds {matrix.dtype} of shape {matrix.shape}, not a matrix of real numbers")
    if not sparse.issparse(matrix):
        return matrix
    if max(matrix.shape) > _ROWS_PER_ENTRY * (matrix.nnz + _ROWS_PER_ENTRY):
        raise ValueError(f"it promises a matrix of shape {matrix.shape} with {matrix.nnz} entries")
    if hasattr(matrix, "check_format"):
        matrix.check_format(full_check=True)
    return matrix
