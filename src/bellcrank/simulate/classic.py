"""The header of a classic NetCDF file, read before the NetCDF library sees it.

The library believes headers: one that names more than the file holds is read as zeros, or for a long time. The format
is that of the "NetCDF Classic Format Specification" (CDF-1, CDF-2 and CDF-5).
"""

from __future__ import annotations

import io
import math
import mmap
import struct
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

__all__ = ["append_records", "check_classic", "is_classic"]

_DIMENSION, _VARIABLE, _ATTRIBUTE = 10, 11, 12
_CHAR = 2
#: bytes per value of the types
_SIZES = {1: 1, 2: 1, 3: 2, 4: 4, 5: 4, 6: 8, 7: 1, 8: 2, 9: 4, 10: 8, 11: 8}
#: more dimensions, variables or attributes than any result has
_MANY = 100_000


class _Part(NamedTuple):
    """Where values lie: the first byte, and how many there are (of one record, if it has records)."""

    name: str
    begin: int
    size: int
    records: bool


def is_classic(path: Path) -> bool:
    """Whether a file begins as a classic NetCDF file does."""
    with open(path, "rb") as file:
        head = file.read(4)
    return head[:3] == b"CDF" and head[3:] in (b"\x01", b"\x02", b"\x05")


def check_classic(path: Path) -> None:
    """Raise `ValueError` if the header makes no sense, or promises more than the file holds. Cost: O(header)."""
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        header = _Header(data)
        parts, records = header.read()
        _check_places(parts, records, header.at, len(data))


def append_records(path: Path, file: io.FileIO, at: int, values: Mapping[str, npt.NDArray[np.float64]]) -> int:
    """Write as many records of doubles as fit on the disk, from record `at` on, and return their number.

    `values` are {variable: (records, ...)}, all variables that have records; `file` is open without a buffer.
    """
    with open(path, "rb") as head, mmap.mmap(head.fileno(), 0, access=mmap.ACCESS_READ) as data:
        parts, _ = _Header(data).read()
    growing = sorted((p for p in parts if p.records), key=lambda p: p.begin)
    rows = [values[p.name].reshape(len(values["time"]), -1) for p in growing]
    rest = memoryview(np.concatenate(rows, axis=1).astype(">f8").tobytes())
    each, written = sum(p.size for p in growing), 0
    file.seek(growing[0].begin + at * each)
    with suppress(OSError):
        while written < len(rest):
            written += file.write(rest[written:])
    return written // each


class _Header:
    def __init__(self, data: mmap.mmap) -> None:
        self.data, self.at, self.version = data, 4, data[3]

    def _take(self, n: int) -> bytes:
        if n > len(self.data) - self.at:
            raise ValueError("its header is cut off")
        self.at += n
        return self.data[self.at - n:self.at]

    def _int(self) -> int:
        """A number that tells how many."""
        wide = self.version == 5
        (found,) = struct.unpack(">q" if wide else ">i", self._take(8 if wide else 4))
        if found < 0:
            raise ValueError("its header holds a negative number of things")
        return int(found)

    def _tag(self) -> int:
        return int(struct.unpack(">i", self._take(4))[0])

    def _list(self, tag: int) -> range:
        """The places of a list; the list itself follows."""
        found, n = self._tag(), self._int()
        if found != tag and (found or n):
            raise ValueError(f"its header has the mark {found} in the place of {tag}")
        if n > _MANY:
            raise ValueError(f"its header promises {n} dimensions, variables or attributes")
        return range(n)

    def _padded(self, n: int) -> bytes:
        return self._take(-(-n // 4) * 4)[:n]

    def _name(self) -> str:
        return self._padded(self._int()).decode()

    def _attributes(self) -> None:
        for _ in self._list(_ATTRIBUTE):
            name = self._name()
            kind, n = self._type(), self._int()
            values = self._padded(n * _SIZES[kind])
            if kind == _CHAR:
                try:
                    values.decode()
                except UnicodeDecodeError:
                    raise ValueError(f"the attribute {name!r} is no text") from None

    def _type(self) -> int:
        kind = self._tag()
        if kind not in _SIZES:
            raise ValueError(f"its header names a type {kind}, which there is not")
        return kind

    def read(self) -> tuple[list[_Part], int]:
        """Where the variables lie, and the number of records."""
        records = self._int()
        dimensions: list[tuple[str, int]] = []
        for _ in self._list(_DIMENSION):
            dimensions.append((self._name(), self._int()))
        if [size for _, size in dimensions].count(0) > 1:
            raise ValueError("its header names two dimensions that can grow")
        self._attributes()
        parts = [self._variable(dimensions) for _ in self._list(_VARIABLE)]
        if not parts:
            raise ValueError("it holds no variables")
        return parts, records

    def _variable(self, dimensions: list[tuple[str, int]]) -> _Part:
        name = self._name()
        places = [self._int() for _ in range(min(self._int(), 1025))]
        if not all(place < len(dimensions) for place in places):
            raise ValueError(f"variable {name!r} has a dimension that there is not")
        self._attributes()
        kind = self._type()
        self._int() if self.version == 5 else self._take(4)  # a size that follows from the others
        (begin,) = struct.unpack(">i" if self.version == 1 else ">q", self._take(4 if self.version == 1 else 8))
        sizes = [dimensions[place][1] for place in places]
        if 0 in sizes[1:]:
            raise ValueError(f"variable {name!r} grows in a dimension that is not its first")
        grows = sizes[:1] == [0]
        return _Part(name, int(begin), math.prod(sizes[1:] if grows else sizes) * _SIZES[kind], grows)


def _check_places(parts: list[_Part], records: int, header: int, length: int) -> None:
    """Whether all values lie behind the header, in the file, and not on top of one another."""
    fixed = sorted((p for p in parts if not p.records), key=lambda p: p.begin)
    growing = sorted((p for p in parts if p.records), key=lambda p: p.begin)
    at = header
    for part in (*fixed, *growing):
        if part.begin < at:
            raise ValueError(f"variable {part.name!r} lies where something else does")
        at = part.begin + part.size
    if fixed and fixed[-1].begin + fixed[-1].size > length:
        raise ValueError(f"it is cut off: {length} bytes are not all of variable {fixed[-1].name!r}")
    if not growing or not records:
        return
    padded = [-(-p.size // 4) * 4 for p in growing]
    each = growing[0].size if len(growing) == 1 else sum(padded)  # one alone is not padded
    if growing[-1].begin + growing[-1].size - growing[0].begin > each:
        raise ValueError("the variables of a record lie apart")
    if growing[-1].begin + growing[-1].size + (records - 1) * each > length:
        raise ValueError(f"it is cut off, or its header is damaged: {length} bytes do not hold {records} samples")
