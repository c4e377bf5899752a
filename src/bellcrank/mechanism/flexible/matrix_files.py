"""Matrices that finite-element programs write: MAT files, NumPy and SciPy files, Matrix Market."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import ModelError, hint

__all__ = ["matrix_of"]


def matrix_of(what: str, given: Any) -> Any:
    """A matrix as it is, or from a file: ``"model.mat:K"`` (the name may be left out if there is one matrix only),
    ``.npy``, ``.npz`` (SciPy sparse) or ``.mtx`` (Matrix Market)."""
    if not isinstance(given, (str, os.PathLike)):
        return given
    text = os.fspath(given)
    path, _, name = text.rpartition(":") if ".mat:" in text else (text, "", "")
    file = Path(path)
    if not file.is_file():
        raise ModelError(f"{what}: there is no file {str(file)!r}")
    from scipy import io, sparse

    try:
        if file.suffix == ".npy":
            return np.load(file)
        if file.suffix == ".npz":
            return sparse.load_npz(file)
        if file.suffix == ".mtx":
            return io.mmread(file)
        if file.suffix == ".mat":
            return _variable(what, file, {k: v for k, v in io.loadmat(file).items() if not k.startswith("__")}, name)
    except (ValueError, OSError, NotImplementedError) as error:
        raise ModelError(f"{what}: {str(file)!r} cannot be read ({error})") from None
    raise ModelError(f"{what}: {str(file)!r} is none of .mat, .npy, .npz, .mtx")


def _variable(what: str, file: Path, found: dict[str, Any], name: str) -> Any:
    if not name and len(found) == 1:
        return next(iter(found.values()))
    if name not in found:
        said = f"no matrix {name!r}" if name else "several matrices: say which, as file.mat:name"
        raise ModelError(f"{what}: {str(file)!r} has {said}; there are {', '.join(found) or 'none'}{hint(name, found)}")
    return found[name]
