"""The place of a result on disk: whether it can hold one, and the file that grows beside it and then takes it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bellcrank.errors import FileError
from bellcrank.simulate.fields import Layout
from bellcrank.simulate.netcdf import GrowingFile

__all__ = ["check_target", "growing_file", "partial_path", "put_in_place"]


def partial_path(file: str | os.PathLike[str]) -> Path:
    """Where samples for `file` are kept while the run goes on.

    >>> partial_path("run.nc").name
    'run.partial.nc'
    """
    path = Path(file)
    return path.with_name(f"{path.stem}.partial.nc")


def check_target(file: str | os.PathLike[str] | None, batch: tuple[int, ...]) -> None:
    """Refuse a place that cannot hold a result, before anything is computed."""
    if file is None:
        return
    file = Path(file)
    if "\0" in str(file):
        raise FileError(f"{str(file)!r}: the name of a file cannot hold the character NUL")
    if file.is_dir():
        raise FileError(f"{file}: this is a folder; give the name of a file for the result")
    if file.exists() and not file.is_file():
        raise FileError(f"{file}: this is no ordinary file and cannot be replaced by a result")
    if not file.parent.is_dir():
        raise FileError(f"{file}: the folder {str(file.parent)!r} does not exist; make it first")
    if 0 in batch:
        raise FileError(f"{file}: a batch without samples ({batch}) cannot be streamed to a file")


def growing_file(file: Path, layout: Layout, attrs: Mapping[str, Any]) -> GrowingFile:
    """The file that takes samples, beside the place of the result."""
    check_target(file, layout.batch)
    return GrowingFile(partial_path(file), layout, attrs)


def put_in_place(partial: Path, target: Path) -> None:
    """Rename, and make the new name durable where the system can."""
    try:
        os.replace(partial, target)
    except OSError as error:
        raise FileError(f"{target}: cannot be replaced ({error}); the result is in {partial}") from error
    if os.name == "posix":
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
