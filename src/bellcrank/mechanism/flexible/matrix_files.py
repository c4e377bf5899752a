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

from bellcrank.errors import BellcrankError, FileError, hint
from bellcrank.files.separate_process import read_apart
from bellcrank.mechanism.flexible.matrix_market import read_matrix_market

__all__ = ["matrix_of"]

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
