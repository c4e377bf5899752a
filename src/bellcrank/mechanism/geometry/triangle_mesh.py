"""Shapes made of triangles, given as arrays or as a file that is read when its triangles are asked for."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import FileError, ModelError

__all__ = ["FORMATS", "Mesh"]


# -- triangles from files: STL and OBJ by ourselves, others through trimesh -------------------------
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


@checked_methods
class Mesh:
    """Triangles: `vertices` (n, 3) [m], and `faces` (m, 3), three numbers of vertices each, counterclockwise seen from
    outside. `colors` (m, 4), if given, are those of the faces: red, green, blue, opacity in 0..1.

    `Mesh.read` takes them from a file.

    >>> Mesh([(0, 0, 0), (1, 0, 0), (0, 2, 0)], [(0, 1, 2)]).bounds()[1]
    array([1., 2., 0.])
    """

    def __init__(self, vertices: npt.ArrayLike, faces: npt.ArrayLike, *, colors: npt.ArrayLike | None = None) -> None:
        self._path: str | None = None
        self._scale = (1.0, 1.0, 1.0)
        self._given: Triangles | None = _checked("Mesh", vertices, faces, colors)

    @classmethod
    def read(cls, path: str | Path, scale: float | Sequence[float] = 1.0) -> Mesh:
        """The mesh of a file: STL, OBJ, and what trimesh reads (DAE, PLY, GLB; ``pip install bellcrank[view]``).

        Coordinates of the file are multiplied by `scale`, one number or one for each axis (millimeters: 0.001). The
        file must exist now; it is read when its triangles are asked for the first time.
        """
        place = Path(path)
        if place.suffix.lower() not in FORMATS:
            raise FileError(f"mesh {str(path)!r}: files of the kind {place.suffix or '(no ending)'!r} are not read; "
                            f"use one of {', '.join(FORMATS)}")
        if not place.is_file():
            raise FileError(f"mesh {str(path)!r}: there is no such file")
        made = object.__new__(cls)
        made.__dict__.update(_path=str(place), _scale=_factors(str(path), scale), _given=None)
        return made

    @property
    def path(self) -> str | None:
        """The file, if it is read from one."""
        return self._path

    @property
    def scale(self) -> tuple[float, float, float]:
        """What the coordinates of the file are multiplied by, along its axes."""
        return self._scale

    @property
    def vertices(self) -> Floats:
        """Corners of triangles (n, 3) [m]; not to be written to."""
        return self._triangles.vertices

    @property
    def faces(self) -> npt.NDArray[np.int32]:
        """Numbers of the three corners of each triangle (m, 3); not to be written to."""
        return self._triangles.faces

    @property
    def colors(self) -> Floats | None:
        """Red, green, blue and opacity of each triangle (m, 4) in 0..1, if the mesh has colors of its own."""
        return self._triangles.colors

    @cached_property
    def _triangles(self) -> Triangles:
        if self._given is not None:
            return self._given
        assert self._path is not None
        found = read_triangles(Path(self._path))
        scale = np.array(self._scale)
        faces = found.faces if scale.prod() > 0.0 else found.faces[:, ::-1]  # mirrored: outside stays outside
        return _checked(f"mesh {self._path!r}", found.vertices * scale, faces, found.colors)

    def bounds(self) -> tuple[Floats, Floats]:
        """The lowest and the highest corner, (3,) each [m]. Reads the file, if there is one."""
        return self.vertices.min(axis=0), self.vertices.max(axis=0)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        if self._path is not None or other.path is not None:
            return (self._path, self._scale) == (other.path, other.scale)
        colors = (self.colors is None) == (other.colors is None) and (
            self.colors is None or np.array_equal(self.colors, other.colors))  # type: ignore[arg-type]
        return colors and np.array_equal(self.vertices, other.vertices) and np.array_equal(self.faces, other.faces)

    def __hash__(self) -> int:
        return hash((self._path, self._scale, None if self._given is None else self._given.vertices.tobytes()))

    def __getstate__(self) -> dict[str, Any]:
        """Copies and pickles of a mesh from a file hold where it is, not what is in it."""
        return {name: getattr(self, name) for name in ("_path", "_scale", "_given")}

    def __deepcopy__(self, memo: dict[int, Any]) -> Mesh:
        return self  # nothing of it can be changed

    def __repr__(self) -> str:
        if self._path is None:
            return f"<Mesh of {len(self.vertices)} vertices, {len(self.faces)} faces>"
        return f"Mesh.read({self._path!r}{'' if self._scale == (1.0, 1.0, 1.0) else f', {self._scale}'})"


def _factors(path: str, scale: float | Sequence[float]) -> tuple[float, float, float]:
    try:
        numbers = np.broadcast_to(np.asarray(scale, dtype=float), 3)
    except (TypeError, ValueError):
        raise ModelError(f"mesh {path!r}: scale is one number or three, got {scale!r}") from None
    if not np.isfinite(numbers).all() or (numbers == 0.0).any():
        raise ModelError(f"mesh {path!r}: scale must be finite and not zero, got {scale!r}")
    x, y, z = numbers.tolist()
    return x, y, z


def _checked(what: str, vertices: npt.ArrayLike, faces: npt.ArrayLike, colors: npt.ArrayLike | None) -> Triangles:
    """Arrays of our own that nobody writes to."""
    try:
        points, corners = np.array(vertices, dtype=float), np.array(faces)
        shades = None if colors is None else np.array(colors, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: vertices, faces and colors are arrays of numbers") from None
    if points.ndim != 2 or points.shape[1:] != (3,) or len(points) < 3:
        raise ModelError(f"{what}: vertices have shape (n, 3) with n >= 3, got {points.shape}")
    if not np.isfinite(points).all():
        raise ModelError(f"{what}: vertices must be finite")
    if corners.ndim != 2 or corners.shape[1:] != (3,) or not len(corners) or corners.dtype.kind not in "iu":
        raise ModelError(f"{what}: faces are whole numbers of shape (m, 3) with m >= 1, got {corners.dtype} of shape "
                         f"{corners.shape}")
    if corners.min() < 0 or corners.max() >= len(points):
        raise ModelError(f"{what}: faces name vertices outside 0..{len(points) - 1}")
    if shades is not None and (shades.shape != (len(corners), 4) or not ((shades >= 0.0) & (shades <= 1.0)).all()):
        raise ModelError(f"{what}: colors are numbers in 0..1 of shape ({len(corners)}, 4), got shape {shades.shape}")
    made = Triangles(points, corners.astype(np.int32), shades)
    for array in made:
        if array is not None:
            array.setflags(write=False)
    return made
