"""What the Zarr store of a sweep says that it holds, read and checked before anything in it is decoded.

A store may come from a stranger. Its metadata is plain JSON, which this module reads itself: it admits the layout, the
types and the codecs that sweeps write, and nothing else. Other codecs may run code of the store's author (pickles).
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from bellcrank.errors import FileError

__all__ = ["MARK", "MOST_CHUNKS", "PIECE", "VERSION", "StoreDescription", "StoredArray", "check_texts",
           "describe_store", "marked_attributes"]

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
