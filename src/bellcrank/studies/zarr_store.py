"""A Zarr store that a sweep writes chunk by chunk, and that it can go on with after being killed at any moment.

Of every chunk first the results are written, then its mark in ``chunk_done``: what has no mark is computed again. The
store appears under its name with all that identifies the study in it, or not at all. One process writes at a time.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.errors import BellcrankError, FileError, ModelError
from bellcrank.studies.kept_values import ChunkResult, MisuseError, RunValues, fill_of
from bellcrank.studies.result_sinks import check_names
from bellcrank.studies.sample_table import SampleTable
from bellcrank.studies.store_description import (
    MARK,
    MOST_CHUNKS,
    PIECE,
    VERSION,
    check_texts,
    describe_store,
    marked_attributes,
)

if TYPE_CHECKING:
    import xarray

__all__ = ["ZarrSink", "check_out", "open_sweep"]

#: what differs, in words
_WORDS = {"machine": "the machine", "samples": "the samples", "run": "run", "reduce": "reduce",
          "version": "the version of bellcrank"}


def _zarr() -> Any:
    try:
        import zarr
    except ImportError:
        raise ModelError("sweep: out=... needs the package zarr: pip install 'bellcrank[sweep]'") from None
    return zarr


def check_out(out: str | os.PathLike[str], resume: bool) -> Path:
    """Refuse a place that cannot become, or is not, the store of a sweep, before anything is computed."""
    _zarr()
    path = Path(out)
    with _store_errors(path):
        if not path.parent.is_dir():
            raise FileError(f"sweep: out: {path}: the folder {str(path.parent)!r} does not exist; make it first")
        if path.exists() and marked_attributes(path) is None:
            raise FileError(f"sweep: out: {path} exists and is no store of a sweep; give another name")
        if path.exists() and not resume:
            raise FileError(f"sweep: out: {path} holds a sweep already; resume=True goes on with it, or give another "
                            "name")
    return path


class ZarrSink:
    """The store of one sweep, open for writing."""

    def __init__(self, path: Path, table: SampleTable, attrs: Mapping[str, Any], fingerprints: Mapping[str, str],
                 chunk: int) -> None:
        self._path, self._table = path, table
        self._lock = contextlib.ExitStack()
        self._lock.enter_context(_alone(path))
        try:
            with _store_errors(path):
                if not path.exists():
                    self._create(attrs, fingerprints, chunk)
                store = describe_store(path)
                known = store.attrs
                _check_same(path, known["fingerprints"], fingerprints)
                for name, array in store.arrays.items():
                    check_texts(path, name, array)
                self._group = _zarr().open_group(str(path), mode="r+", zarr_format=3, use_consolidated=False)
                self.chunk = int(known["chunk"])
                self._done = self._group["chunk_done"]
                self._names: dict[str, Any] = dict.fromkeys(known.get("layout", ()))
        except BaseException:
            self._lock.close()
            raise

    def _create(self, attrs: Mapping[str, Any], fingerprints: Mapping[str, str], chunk: int) -> None:
        """Make the store beside its place, and put it there when it is complete."""
        table = self._table
        if table.runs > MOST_CHUNKS * chunk:
            raise ModelError(f"sweep: chunk={chunk} makes more than {MOST_CHUNKS:,} chunks of {table.runs:,} runs; "
                             "give larger chunks")
        beside = Path(tempfile.mkdtemp(prefix=f".{self._path.name[:40]}.", suffix=".new", dir=self._path.parent))
        try:
            self._write_samples(beside / "store", attrs, fingerprints, chunk)
            os.rename(beside / "store", self._path)
        finally:
            shutil.rmtree(beside, ignore_errors=True)

    def _write_samples(self, new: Path, attrs: Mapping[str, Any], fingerprints: Mapping[str, str], chunk: int) -> None:
        table = self._table
        group = _zarr().open_group(str(new), mode="a", zarr_format=3)
        rows = table.runs
        for k, name in enumerate(table.names):
            array = self._array(group, name, ("run",), np.dtype(float), (rows,), (min(rows, PIECE),), {})
            for first in range(0, rows, PIECE):
                last = min(first + PIECE, rows)
                array[first:last] = table.rows(first, last)[:, k]
        for name, fill in (("status", "pending"), ("reason", "")):
            self._array(group, name, ("run",), np.dtype(str), (rows,), (chunk,), {"coordinates": " ".join(table.names)},
                        fill)
        self._array(group, "chunk_done", ("chunk",), np.dtype(np.uint8), (-(-rows // chunk),), (1,), {}, 0)
        group.attrs.update({MARK: VERSION, **attrs, "chunk": chunk, "fingerprints": dict(fingerprints)})

    def _array(self, group: Any, name: str, dims: tuple[str, ...], dtype: np.dtype[Any], shape: tuple[int, ...],
               chunks: tuple[int, ...], attrs: Mapping[str, Any], fill: Any = None) -> Any:
        return group.create_array(name, shape=shape, chunks=tuple(max(1, n) for n in chunks), overwrite=True,
                                  dtype="str" if dtype.kind in "UO" else dtype, dimension_names=dims,
                                  compressors=_zarr().codecs.ZstdCodec(),
                                  fill_value=fill_of(dtype) if fill is None else fill, attributes=dict(attrs))

    def missing(self) -> list[int]:
        with _store_errors(self._path):
            return np.flatnonzero(self._done[:] == 0).tolist()

    def put(self, number: int, part: ChunkResult) -> None:
        with _store_errors(self._path):
            self._put(number, part)

    def _put(self, number: int, part: ChunkResult) -> None:
        rows = slice(number * self.chunk, number * self.chunk + len(part.status))
        if part.variables and not self._names:
            self._lay_out(part)
        check_names(self._names, part)
        for name, v in part.variables.items():
            array = self._group[name]
            if array.shape[1:] != v.values.shape[1:]:
                raise MisuseError(f"sweep: {name!r} has the shape {v.values.shape[1:]} in some runs and "
                                  f"{array.shape[1:]} in others; all runs must keep as much")
            array[rows] = v.values.astype(object) if v.values.dtype.kind == "U" else v.values
        self._group["status"][rows] = np.array(part.status, dtype=object)
        self._group["reason"][rows] = np.array(part.reason, dtype=object)
        self._done[number] = 1  # last: what is marked is complete

    def _lay_out(self, part: ChunkResult) -> None:
        """Make the arrays for results, as the first ones say."""
        runs = self._table.runs
        for name, v in part.coords.items():
            array = self._array(self._group, name, v.dims, v.values.dtype, v.values.shape, v.values.shape,
                                _plain(v.attrs))
            array[...] = v.values.astype(object) if v.values.dtype.kind in "UO" else v.values
        for name, v in part.variables.items():
            shape = (runs, *v.values.shape[1:])
            self._array(self._group, name, v.dims, v.values.dtype, shape, (self.chunk, *shape[1:]),
                        {**_plain(v.attrs), "coordinates": " ".join([*self._table.names, *_auxiliary(part.coords, v)])})
        self._group.attrs["layout"] = list(part.variables)  # last: without it they are made again
        self._names = dict.fromkeys(part.variables)

    def dataset(self) -> xarray.Dataset:
        return open_sweep(self._path)

    def close(self) -> None:
        self._lock.close()


def _plain(attrs: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attrs.items() if isinstance(value, (str, int, float))}


def _auxiliary(coords: Mapping[str, RunValues], v: RunValues) -> list[str]:
    """Coordinates of a variable that are not named like a dimension."""
    return [name for name, c in coords.items() if c.dims != (name,) and set(c.dims) <= set(v.dims)]


def _check_same(path: Path, there: Mapping[str, str], here: Mapping[str, str]) -> None:
    differs = [_WORDS.get(name, name) for name in here if there.get(name) != here[name]]
    if differs:
        raise ModelError(f"sweep: out: {path} holds another study, in which other than here are: {', '.join(differs)}. "
                         "Give the same as when it was begun, or another out")


def open_sweep(path: str | os.PathLike[str]) -> xarray.Dataset:
    """The results of a sweep that was written to a Zarr store, whether or not it is complete: ``status`` is "pending"
    of runs that have not been computed yet. Results are read when they are used.

    A store may come from a stranger: its description is checked first, codecs other than those that sweeps write are
    refused, and damaged stores are a `FileError`, on opening or when the damaged values are read.

    >>> open_sweep("nothing.zarr")
    Traceback (most recent call last):
    bellcrank.errors.FileError: nothing.zarr is no store of a sweep
    """
    _zarr()
    from bellcrank.studies.store_reading import read_store

    return read_store(path)


@contextlib.contextmanager
def _store_errors(path: Path) -> Iterator[None]:
    """Failures of the disk or of the Zarr library name the store."""
    try:
        yield
    except BellcrankError:
        raise
    except Exception as error:
        raise FileError(f"sweep: out: {path} cannot be written or read ({error}); complete chunks are kept, and "
                        "resume=True goes on with them when the cause is gone") from error


@contextlib.contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other processes from writing to the same store; a process that dies lets go."""
    try:
        import fcntl
    except ImportError:  # not POSIX
        yield
        return
    lock = path.with_name(f".{path.name}.lock")
    try:
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except (OSError, ValueError) as error:  # a zero byte in the name
        raise FileError(f"sweep: out: {lock} cannot be used to lock {path} ({error})") from None
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if status.st_size or not stat.S_ISREG(status.st_mode):
            raise FileError(f"sweep: out: {lock}, which sweeps lock, is something else; rename it, or give another out")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(f"sweep: out: another process is writing to {path}") from None
        if not lock.exists() or os.fstat(file.fileno()).st_ino != lock.stat().st_ino:  # gone with who held it
            raise FileError(f"sweep: out: another process was writing to {path} just now; try again")
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)
