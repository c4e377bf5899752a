"""Terrain of MJCF that lies in other files, looked at before MuJoCo reads it: images (PNG), and MuJoCo's own format of
whole numbers of rows and columns (int32 each) and heights (float32), row by row."""

from __future__ import annotations

import os
import struct
from typing import Any

import numpy as np

from bellcrank.errors import FileError
from bellcrank.files.contents import regular_bytes
from bellcrank.io.common.xml import clipped
from bellcrank.io.mjcf.gate import Gated, mesh_path

__all__ = ["MAX_HEIGHTS", "terrain_files"]

#: heights of one terrain
MAX_HEIGHTS = 1 << 20
_BYTES = 8 + 4 * MAX_HEIGHTS
_PNG = b"\x89PNG\r\n\x1a\n"


def terrain_files(spec: Any, gate: Gated, path: str | os.PathLike[str], folder: str | os.PathLike[str] | None
                  ) -> dict[str, bytes]:
    """The contents of files of terrain, by token; terrain whose file cannot be read is taken out and noted."""
    assets = {}
    for field in list(spec.hfields):
        file = gate.meshes.get(field.file)
        if file is None:  # its heights are in the model itself
            continue
        try:
            assets[file.token] = _contents(mesh_path(file, path, folder))
        except (FileError, OSError, ValueError) as error:
            why = error.strerror or error if isinstance(error, OSError) else error
            gate.note("ignored", file.element, f"terrain whose file {clipped(file.path, 200)!r} cannot be used: {why}")
            spec.delete(field)
    return assets


def _contents(place: str) -> bytes:
    data = regular_bytes(place, _BYTES)
    if data is None or len(data) > _BYTES:
        raise ValueError(f"it is no regular file of at most {_BYTES} bytes")
    if os.path.splitext(place)[1].lower() == ".png":
        if data[:8] != _PNG or data[12:16] != b"IHDR" or len(data) < 33:
            raise ValueError("it is no PNG image")
        _check_size(*struct.unpack(">II", data[16:24]))
        return data
    if len(data) < 8:
        raise ValueError("it is too short for the numbers of rows and columns")
    rows, columns = struct.unpack("<ii", data[:8])
    _check_size(rows, columns)
    size = 8 + 4 * rows * columns
    if len(data) != size:
        raise ValueError(f"{rows} rows of {columns} heights take {size} bytes, but it has {len(data)}")
    if not np.isfinite(np.frombuffer(data, dtype="<f4", offset=8)).all():
        raise ValueError("a height is not finite")
    return data


def _check_size(rows: int, columns: int) -> None:
    if min(rows, columns) < 2 or rows * columns > MAX_HEIGHTS:
        raise ValueError(f"{rows} rows of {columns} heights; there must be 2 of each at least, and at most "
                         f"{MAX_HEIGHTS} heights")
