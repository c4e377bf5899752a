"""A Zarr store that a sweep writes chunk by chunk, and that it can go on with after being killed at any moment.

Of every chunk first the results are written, then its mark in ``chunk_done``: what has no mark is computed again. The
store appears under its name with all that identifies the study in it, or not at all. One process writes at a time.

What the Zarr store of a sweep says that it holds, read and checked before anything in it is decoded.

A store may come from a stranger. Its metadata is plain JSON, which this module reads itself: it admits the layout, the
types and the codecs that sweeps write, and nothing else. Other codecs may run code of the store's author (pickles).
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from bellcrank.errors import BellcrankError, FileError, ModelError
from bellcrank.studies.result_sinks import check_names
from bellcrank.studies.sample_table import SampleTable
from bellcrank.studies.study import ChunkResult, MisuseError, RunValues, fill_of

__all__ = ["ZarrSink", "check_out", "open_sweep"]


# -- what the Zarr store of a sweep says that it holds, read and checked before anything in it is decoded ---
#: the version of the layout, under the name by which stores of sweeps are known
MARK, VERSION = "bellcrank_sweep", 1
#: runs in one piece of the samples, which are written once
PIECE = 1 << 20
#: chunks of runs in a store
MOST_CHUNKS = 1 << 20
_TYPES = re.compile(r"bool|string|float(16|32|64)|u?int(8|16|32|64)")
#: bytes of one file of metadata, of one decoded chunk (the codecs take no more), and of a complete array that need not
#: be justified by the size of its files
_MOST_METADATA, _MOST_CHUNK, _FREE = 1 << 24, (1 << 31) - 1, 1 << 20
#: zstd makes nothing smaller than this
_RATIO = 1 << 15


@dataclass(frozen=True)
class StoredArray:
    """One array as its metadata describes it."""

    dims: tuple[str, ...]
    shape: tuple[int, ...]
    chunks: tuple[int, ...]
    dtype: np.dtype[Any]  #: texts are objects
    attrs: dict[str, Any]

    @property
    def itemsize(self) -> int:
        """Bytes of an element before compression, at least."""
        return 4 if self.dtype == object else self.dtype.itemsize


@dataclass(frozen=True)
class StoreDescription:
    """Attributes and arrays of a store, in a fixed order: samples, coordinates, results, status and reason."""

    attrs: dict[str, Any]
    arrays: dict[str, StoredArray]

    @property
    def coords(self) -> list[str]:
        """Names of the arrays that are coordinates."""
        return [name for name in self.arrays if name in self.attrs["varied"] or not self.of_runs(name)]

    def of_runs(self, name: str) -> bool:
        """Whether an array has one row for each run."""
        return self.arrays[name].dims[:1] == ("run",)


def marked_attributes(path: Path) -> dict[str, Any] | None:
    """The attributes of the store of a sweep; None if the folder is not one."""
    try:
        attributes = _metadata(path / "zarr.json", "group").get("attributes")
    except (OSError, ValueError, RecursionError):
        return None
    return attributes if isinstance(attributes, dict) and attributes.get(MARK) == VERSION else None


def describe_store(path: Path) -> StoreDescription:
    """Read the metadata of a store; `FileError` if it is not that of a sweep, or damaged."""
    attrs = marked_attributes(path)
    if attrs is None:
        raise FileError(f"{path} is no store of a sweep")
    try:
        _check_attributes(attrs)
        arrays = {name: _array(path, name) for name in _names(path, attrs)}
        _check_sizes(arrays, attrs)
        for name, array in arrays.items():
            _check_files(path, name, array, complete=name in attrs["varied"] or "run" not in array.dims)
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(f"{path}: this store of a sweep is damaged ({error}); take a copy of it, or run the sweep again"
                        ) from None
    arrays.pop("chunk_done")
    return StoreDescription(attrs, arrays)


def _metadata(file: Path, kind: str) -> dict[str, Any]:
    """The JSON of a group or an array."""
    if file.is_symlink() or not file.is_file():
        raise ValueError(f"{file.parent.name}/{file.name} is not an ordinary file")
    if file.stat().st_size > _MOST_METADATA:
        raise ValueError(f"{file.parent.name}/{file.name} has more than {_MOST_METADATA} bytes")
    found = json.loads(file.read_bytes())
    if not isinstance(found, dict) or found.get("zarr_format") != 3 or found.get("node_type") != kind:
        raise ValueError(f"{file.parent.name}/{file.name} does not describe a Zarr {kind} of format 3")
    return found


def _check_attributes(attrs: Mapping[str, Any]) -> None:
    for name, value in (("varied", attrs.get("varied")), ("layout", attrs.get("layout", []))):
        if not _texts(value):
            raise ValueError(f"the attribute {name!r} is not a list of names")
    prints, chunk = attrs.get("fingerprints"), attrs.get("chunk")
    if not isinstance(prints, dict) or not all(isinstance(x, str) for x in prints.values()):
        raise ValueError("the attribute 'fingerprints' is not a table of texts")
    if not isinstance(chunk, int) or isinstance(chunk, bool) or chunk < 1:
        raise ValueError("the attribute 'chunk' is not a number of runs")


def _names(path: Path, attrs: Mapping[str, Any]) -> list[str]:
    """Names of the arrays. Those of results count when the attribute 'layout', written after them, names them."""
    layout = attrs.get("layout", [])
    with os.scandir(path) as entries:
        there = {entry.name for entry in entries
                 if entry.is_dir(follow_symlinks=False) and (path / entry.name / "zarr.json").exists()}
    own = [*attrs["varied"], "status", "reason", "chunk_done"]
    coords = sorted(there - set(layout) - set(own)) if layout else []
    names = list(dict.fromkeys([*attrs["varied"], *coords, *layout, "status", "reason", "chunk_done"]))
    missing = [name for name in names if name not in there]
    if missing:
        raise ValueError(f"it has no array {missing[0]!r}")
    return names


def _array(path: Path, name: str) -> StoredArray:
    """The description of one array, if sweeps write such."""
    found = _metadata(path / name / "zarr.json", "array")
    grid, dims, kind, attrs = (found.get(key) for key in ("chunk_grid", "dimension_names", "data_type", "attributes"))
    shape = _whole_numbers(found.get("shape"), 0)
    chunks = _whole_numbers(_configuration(grid, "regular").get("chunk_shape"), 1)
    if shape is None or chunks is None or len(chunks) != len(shape):
        raise ValueError(f"array {name!r}: shape or chunks are not lists of whole numbers")
    if not _texts(dims) or len(dims) != len(shape) or len(set(dims)) != len(dims):
        raise ValueError(f"array {name!r}: its dimensions have no names")
    if not isinstance(kind, str) or not _TYPES.fullmatch(kind):
        raise ValueError(f"array {name!r}: values of type {str(kind)[:40]!r} are none that a sweep writes")
    codecs = found.get("codecs")
    used = [c.get("name") if isinstance(c, dict) else None for c in codecs] if isinstance(codecs, list) else [None]
    if found.get("storage_transformers") or used != ["vlen-utf8" if kind == "string" else "bytes", "zstd"]:
        raise ValueError(f"array {name!r}: codecs {str(codecs)[:60]} are none that a sweep writes: nothing is decoded")
    _configuration(found.get("chunk_key_encoding"), "default")
    if not isinstance(attrs, dict):
        raise ValueError(f"array {name!r}: its attributes are not a table")
    attrs = {key: value for key, value in attrs.items() if key != "coordinates"}
    return StoredArray(tuple(dims), shape, chunks, np.dtype(object if kind == "string" else kind), attrs)


def _configuration(found: Any, name: str) -> dict[str, Any]:
    """The settings of a named part of the metadata."""
    settings = found.get("configuration", {}) if isinstance(found, dict) and found.get("name") == name else None
    if not isinstance(settings, dict):
        raise ValueError(f"{str(found)[:60]!r} is not as a sweep writes it")
    return settings


def _texts(found: Any) -> TypeGuard[list[str]]:
    return isinstance(found, list) and all(isinstance(x, str) for x in found)


def _whole_numbers(found: Any, least: int) -> tuple[int, ...] | None:
    good = isinstance(found, list) and all(isinstance(n, int) and not isinstance(n, bool) and n >= least for n in found)
    return tuple(found) if good else None


def _check_sizes(arrays: Mapping[str, StoredArray], attrs: Mapping[str, Any]) -> None:
    """Dimensions have one length everywhere, and chunks are those that a sweep makes."""
    sizes: dict[str, int] = {}
    for name, array in arrays.items():
        for dim, n in zip(array.dims, array.shape, strict=True):
            if sizes.setdefault(dim, n) != n:
                raise ValueError(f"array {name!r} has {n} entries along {dim!r}, others have {sizes[dim]}")
    if any(arrays[name].dims != ("run",) for name in (*attrs["varied"], "status", "reason")):
        raise ValueError("samples, status or reason are not given for each run")
    runs, chunk = sizes["run"], attrs["chunk"]
    marks = -(-runs // chunk)
    if arrays["chunk_done"].dims != ("chunk",) or sizes["chunk"] != marks or marks > MOST_CHUNKS:
        raise ValueError(f"{runs} runs in chunks of {chunk} do not fit to {sizes.get('chunk')} chunks")
    for name, array in arrays.items():
        first = {"chunk_done": 1, **dict.fromkeys(attrs["varied"], min(runs, PIECE))}.get(
            name, chunk if array.dims[:1] == ("run",) else None)
        expected = array.shape if first is None else (first, *array.shape[1:])
        if array.chunks != tuple(max(1, n) for n in expected):
            raise ValueError(f"array {name!r} has chunks {array.chunks}, a sweep writes {expected}")
        if array.itemsize * math.prod(array.chunks) > _MOST_CHUNK:
            raise ValueError(f"array {name!r} has chunks of more than {_MOST_CHUNK} bytes")


def _check_files(path: Path, name: str, array: StoredArray, complete: bool) -> None:
    """Chunks are ordinary files, and complete arrays have enough of them."""
    size = sum(_file_sizes(path / name))
    needed = array.itemsize * math.prod(array.shape)
    if complete and needed > max(_FREE, _RATIO * size):
        raise ValueError(f"array {name!r} promises {needed} bytes, which {size} bytes of files cannot hold")


def check_texts(path: Path, name: str, array: StoredArray) -> None:
    """Refuse chunks of texts that promise another number of them than chunks have: the codec makes room for all, which
    may be billions, before it looks for them."""
    from numcodecs import Zstd

    for file in (path / name / "c").rglob("*"):
        if array.dtype == object and file.is_file():
            count = int.from_bytes(bytes(Zstd().decode(file.read_bytes()))[:4], "little")
            if count != math.prod(array.chunks):
                raise ValueError(f"a chunk promises {count} texts, and has {math.prod(array.chunks)}")


def _file_sizes(folder: Path) -> Iterator[int]:
    """Bytes of all files below a folder; links and pipes are refused."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield from _file_sizes(Path(entry.path))
            elif entry.is_file(follow_symlinks=False):
                yield entry.stat(follow_symlinks=False).st_size
            else:
                raise ValueError(f"{entry.name} in {folder.name} is not an ordinary file")


# -- A Zarr store that a sweep writes chunk by chunk, and that it can go on with after being killed at any moment ---
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


# -- reading the Zarr store of a sweep: arrays that are read when they are used, as a Dataset -------
class _StoredValues(BackendArray):
    """The values of one array; what is damaged is a `FileError`, whenever it is read."""

    def __init__(self, path: Path, name: str, described: StoredArray) -> None:
        self._path, self._name, self._described = path, name, described
        self.shape, self.dtype = described.shape, described.dtype

    @cached_property
    def _array(self) -> Any:
        import zarr

        check_texts(self._path, self._name, self._described)
        return zarr.open_array(str(self._path / self._name), mode="r", zarr_format=3)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        try:
            return np.asarray(self._array.oindex[key]).astype(self.dtype)
        except Exception as error:  # libraries fail in many ways on what is damaged
            raise FileError(f"{self._path}: the array {self._name!r} cannot be read; it is damaged ({error})") from None


class _SweepStores(BackendEntrypoint):
    """Stores of sweeps for xarray."""

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: Any = None) -> xarray.Dataset:
        path = Path(filename_or_obj)
        store = describe_store(path)
        arrays = {name: _variable(path, name, store) for name in store.arrays}
        coords = store.coords
        return xarray.Dataset({name: v for name, v in arrays.items() if name not in coords},
                              coords={name: arrays[name] for name in coords}, attrs=store.attrs)


def _variable(path: Path, name: str, store: StoreDescription) -> xarray.Variable:
    array = store.arrays[name]
    values = _StoredValues(path, name, array)
    if not store.of_runs(name):  # coordinates of results, which are small
        read = np.asarray(values[indexing.BasicIndexer((slice(None),) * len(array.shape))])
        return xarray.Variable(array.dims, read.astype(str) if read.dtype == object else read, array.attrs)
    chunks = dict(zip(array.dims, array.chunks, strict=True))
    return xarray.Variable(array.dims, indexing.LazilyIndexedArray(values), array.attrs, {"preferred_chunks": chunks})


def read_store(path: str | os.PathLike[str]) -> xarray.Dataset:
    """The Dataset of a store, through Dask where that is installed."""
    try:
        import dask.array  # noqa: F401

        chunks: Any = {}
    except ImportError:
        chunks = None
    return xarray.open_dataset(os.fspath(path), engine=_SweepStores, chunks=chunks)
