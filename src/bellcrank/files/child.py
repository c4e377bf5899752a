"""The program of a process that reads one file with a library that may crash on it, or never come back.

Run as ``python child.py KIND FILE OUT``: nothing but that library is loaded. Arrays go to the file OUT (.npz); the
last line printed says what is wrong.
"""

from __future__ import annotations

import os
import sys
from typing import Any

__all__ = ["KINDS"]

#: bytes of memory that the process may take
_MEMORY = 8 << 30
#: no compression makes values smaller than this
_SMALLEST = 1.0 / 1100.0


def _netcdf(name: str) -> dict[str, Any]:
    """Read what `open_result` will read of an HDF5 file, and the ends of all else; no arrays."""
    import netCDF4

    with netCDF4.Dataset(name) as file:
        total = 0
        for variable in file.variables.values():
            for attribute in variable.ncattrs():
                variable.getncattr(attribute)
            size = getattr(variable.dtype, "itemsize", 1)
            for n in variable.shape:
                size *= n
            total += size
        for attribute in file.ncattrs():
            file.getncattr(attribute)
        if total * _SMALLEST > os.path.getsize(name) + (1 << 20):
            raise ValueError(f"it promises {total} bytes of values, which {os.path.getsize(name)} bytes cannot hold")
        for variable in file.variables.values():
            if variable.size:
                variable[tuple(slice(n - 1, n) for n in variable.shape)]
    return {}


def _mat(name: str) -> dict[str, Any]:
    """Names of the variables of a MAT file, and the values of those that are matrices of numbers, by their places:
    ``0`` or ``0.data``, ``0.indices``, ``0.indptr`` and ``0.shape``."""
    import numpy as np
    from scipy import io, sparse

    found = {key: value for key, value in io.loadmat(name).items() if not key.startswith("__")}
    arrays: dict[str, Any] = {"names": np.array(list(found), dtype=str)}
    for k, value in enumerate(found.values()):
        if sparse.issparse(value):
            columns = value.tocsc()
            parts = {"data": columns.data, "indices": columns.indices, "indptr": columns.indptr, "shape": value.shape}
            arrays |= {f"{k}.{part}": values for part, values in parts.items()}
        elif isinstance(value, np.ndarray) and value.dtype.kind in "fiubc":
            arrays[f"{k}"] = value
    return arrays


def _mesh(name: str) -> dict[str, Any]:
    """``points``, and the cells of each kind under its name after ``cells.``."""
    import meshio

    mesh = meshio.read(name)
    return {"points": mesh.points, **{f"cells.{kind}": cells for kind, cells in mesh.cells_dict.items()}}


#: what can be read: the arrays that are handed over
KINDS = {"netcdf": _netcdf, "mat": _mat, "mesh": _mesh}


def _main(kind: str, name: str, out: str) -> int:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, ValueError, OSError):
        pass
    try:
        arrays = KINDS[kind](name)
        if arrays:
            import numpy as np

            np.savez(out, **arrays)
    except SystemExit:  # meshio's way to say so
        print("the library refuses it")
        return 1
    except BaseException as error:
        print(str(error).partition("\n")[0] or type(error).__name__)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
