"""A first look at an HDF5 file, by another process; once for each file."""

from __future__ import annotations

from pathlib import Path

from bellcrank.files.model_files import read_apart

__all__ = ["check_hdf5", "trust", "trusted"]

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
    read_apart("netcdf", path)
