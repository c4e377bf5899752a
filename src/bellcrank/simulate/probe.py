"""A first look at an HDF5 file by a process of its own: the library may crash on a damaged one, or never come back.

Run as a program with the file's name, so that nothing but the NetCDF library is loaded; what is wrong is printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["LIMIT", "check_hdf5", "trust", "trusted"]

#: how long a look may take [s]
LIMIT = 20.0
#: no compression makes values smaller than this
_SMALLEST = 1.0 / 1100.0
_MEMORY = 8 << 30
#: HDF5 files that this process has written or looked at, as they were then
_sound: set[tuple[int, ...]] = set()


def trust(place: Path) -> None:
    """Note that the HDF5 file is sound as it is now."""
    _sound.add(_stamp(place))


def trusted(place: Path) -> bool:
    """Whether the file was found or made sound, and is what it was then."""
    return _stamp(place) in _sound


def _stamp(place: Path) -> tuple[int, ...]:
    status = place.stat()
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def check_hdf5(path: Path) -> None:
    """Raise `ValueError` if a file cannot be opened as HDF5, or not in a bounded time. Cost: about 0.3 s."""
    if not sys.executable:  # an interpreter inside another program
        return
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    try:
        done = subprocess.run([sys.executable, "-P", __file__, str(path.absolute())], capture_output=True, text=True,
                              timeout=LIMIT, env=environment, stdin=subprocess.DEVNULL, errors="replace", check=False)
    except subprocess.TimeoutExpired:
        raise ValueError(f"the HDF5 library did not come back in {LIMIT:g} s: the file is damaged") from None
    except OSError:  # no further process: the library has to be trusted
        return
    if done.returncode:
        lines = done.stdout.strip().splitlines() or [f"the HDF5 library fails on it ({done.returncode})"]
        raise ValueError(lines[-1])


def _look(name: str) -> None:
    """Open a file and read what `open_result` will read, and the ends of all else."""
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


def _main() -> int:
    try:
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    except (ImportError, ValueError, OSError):
        pass
    try:
        _look(sys.argv[1])
    except Exception as error:
        print(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(_main())
