"""Triangles from files: STL and OBJ by ourselves, others through trimesh."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import FileError

__all__ = ["FORMATS", "Triangles", "read_triangles"]

#: endings of files that are read
FORMATS = (".stl", ".obj", ".dae", ".ply", ".glb", ".off")

_TRIANGLE = np.dtype([("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("more", "<u2")])
_HEAD = 84
#: larger files are refused
_MOST_BYTES = 500_000_000


class Triangles(NamedTuple):
    """Vertices (n, 3), faces (m, 3), and colors of the faces (m, 4) if there are any."""

    vertices: Floats
    faces: npt.NDArray[np.int32]
    colors: Floats | None = None


def read_triangles(path: Path) -> Triangles:
    """The triangles of a file, as it has them. Cost: O(size of the file)."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise FileError(f"mesh {str(path)!r}: the file is larger than {_MOST_BYTES // 1_000_000} MB")
        ending = path.suffix.lower()
        if ending == ".stl":
            found = _stl(path.read_bytes())
        elif ending == ".obj":
            found = _obj(path.read_text(encoding="utf-8", errors="replace"))
        else:
            found = _through_trimesh(path)
    except OSError as error:
        raise FileError(f"mesh {str(path)!r} cannot be read: {error.strerror or error}") from None
    except (ValueError, IndexError, OverflowError) as error:
        if isinstance(error, FileError):
            raise
        raise FileError(f"mesh {str(path)!r} is damaged: {error}") from None
    if not len(found.faces):
        raise FileError(f"mesh {str(path)!r} has no triangles")
    return found


def _stl(data: bytes) -> Triangles:
    """Binary or ASCII; corners that coincide become one vertex."""
    count = int.from_bytes(data[80:_HEAD], "little")
    if len(data) >= _HEAD and len(data) == _HEAD + count * _TRIANGLE.itemsize:
        corners = np.frombuffer(data, _TRIANGLE, count, _HEAD)["corners"].reshape(-1, 3)
    elif data.lstrip().startswith(b"solid"):
        lines = (line.split() for line in data.splitlines())
        corners = np.array([w[1:4] for w in lines if w and w[0].lower() == b"vertex"], dtype=float).reshape(-1, 3)
        if len(corners) % 3:
            raise ValueError("a triangle without three corners")
    else:
        raise ValueError(f"it says {count} triangles, and has {len(data)} bytes")
    vertices, numbers = np.unique(np.asarray(corners, dtype=float), axis=0, return_inverse=True)
    return Triangles(vertices, numbers.reshape(-1, 3).astype(np.int32))


def _obj(text: str) -> Triangles:
    """Vertices and faces; polygons become fans of triangles."""
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for line in text.splitlines():
        words = line.split()
        if not words:
            continue
        if words[0] == "v":
            vertices.append([float(w) for w in words[1:4]])
        elif words[0] == "f":
            ends = [int(w.partition("/")[0]) for w in words[1:]]
            numbers = [i - 1 if i > 0 else len(vertices) + i for i in ends]
            faces += [(numbers[0], numbers[k], numbers[k + 1]) for k in range(1, len(numbers) - 1)]
    return Triangles(np.array(vertices, dtype=float).reshape(-1, 3), np.array(faces, dtype=np.int32).reshape(-1, 3))


def _through_trimesh(path: Path) -> Triangles:
    try:
        import trimesh
    except ImportError:
        raise FileError(f"mesh {str(path)!r}: reading {path.suffix} needs trimesh: pip install bellcrank[view]"
                        ) from None
    data = path.read_bytes()
    if path.suffix.lower() == ".dae" and b"<!" in data.replace(b"<!--", b"").replace(b"<![CDATA[", b""):
        raise FileError(f"mesh {str(path)!r} declares XML entities or a document type, which no mesh needs")
    try:  # from memory: a file that names others (pictures) opens none of them
        scene = trimesh.load_scene(io.BytesIO(data), file_type=path.suffix[1:].lower(), resolver=None)
        parts = [p for p in scene.dump() if isinstance(p, trimesh.Trimesh)]
    except OSError:
        raise
    except Exception as error:  # whatever its many readers fail of
        raise FileError(f"mesh {str(path)!r} cannot be read: {error}") from None
    if not parts:
        raise FileError(f"mesh {str(path)!r} has no triangles")
    first = np.cumsum([0, *(len(p.vertices) for p in parts)])[:-1]
    faces = np.concatenate([np.asarray(p.faces) + n for p, n in zip(parts, first, strict=True)])
    colors = None
    if any(p.visual.defined for p in parts):
        colors = np.concatenate([_face_colors(p) for p in parts])
    vertices = np.concatenate([np.asarray(p.vertices, dtype=float) for p in parts])
    return Triangles(vertices, faces.astype(np.int32), colors)


def _face_colors(part: Any) -> npt.NDArray[np.float64]:
    """Colors of faces (m, 4) in 0..1, whether a file gives them to faces, to vertices or to a material."""
    if hasattr(part.visual, "face_colors"):
        return np.asarray(part.visual.face_colors, dtype=float) / 255.0
    corners = np.asarray(part.visual.to_color().vertex_colors, dtype=float)  # of the picture of a material
    if corners.shape == (len(part.vertices), 4):
        return np.asarray(corners[np.asarray(part.faces)].mean(axis=1) / 255.0)
    return np.tile(np.asarray(part.visual.material.main_color, dtype=float) / 255.0, (len(part.faces), 1))
