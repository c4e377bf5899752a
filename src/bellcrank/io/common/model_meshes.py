"""Mesh files of models: where those lie that a file names, and those beside a file that is written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from bellcrank.errors import FileError, ModelError
from bellcrank.files.model_files import write_bytes
from bellcrank.io.common.names import unused
from bellcrank.io.common.xml import clipped
from bellcrank.mechanism.geometry.triangle_mesh import FORMATS, Mesh

__all__ = ["Folders", "MeshFinder", "MeshStore", "Meshes", "NotFoundError"]


# -- where the mesh files lie that a model file names -----------------------------------------------
#: folders in which meshes may lie, besides that of the model file
Folders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]] | None

#: files that mark the topmost folder of a package
_MARKS = ("package.xml", "model.config")
#: folders above a model file that are looked at for such a mark
_ABOVE = 3


class NotFoundError(Exception):
    """Says why a mesh is left out."""


class MeshFinder:
    """Finds mesh files, and looks at nothing else.

    Plain names and ``file://`` are relative to the folder of the model file; the mesh must lie in that folder, or in
    that of the package around it, which holds a ``package.xml`` or ``model.config``. ``package://NAME/...`` and
    ``model://NAME/...`` are looked for in a folder NAME beside the model file or above it. `packages` are further
    folders: meshes may lie in them, and packages.
    """

    def __init__(self, packages: Folders = None) -> None:
        listed = [] if packages is None else [packages] if isinstance(packages, (str, os.PathLike)) else list(packages)
        self.told = [os.path.realpath(os.fsdecode(p)) for p in listed]
        self._found: dict[tuple[str, str], str] = {}

    def find(self, name: str, source: str, formats: Sequence[str] = FORMATS) -> str:
        """The path of the mesh (or of a file of other formats) that the file `source` calls `name`; `NotFoundError`
        says why there is none."""
        name = name.strip()
        key = name, os.path.dirname(source)
        if key not in self._found:
            self._found[key] = self._search(name, os.path.dirname(os.path.realpath(source)), formats)
        return self._found[key]

    def _search(self, name: str, here: str, formats: Sequence[str]) -> str:
        scheme, colon, rest = name.partition("://")
        if not colon:
            scheme, rest = "file", name
        if "\0" in name or not rest.strip("/"):
            raise NotFoundError(f"the mesh {clipped(name)!r} is no name of a file")
        if scheme not in ("file", "package", "model"):
            raise NotFoundError(f"the mesh {clipped(name)!r} is not read: nothing is taken from the network")
        if os.path.splitext(rest)[1].lower() not in formats:
            raise NotFoundError(f"the mesh {clipped(name)!r} is of a kind that is not read; {', '.join(formats)} are")
        places = self._beside(rest, here) if scheme == "file" else self._packages(rest.lstrip("/"), here)
        outside = False
        for path, root in places:
            path = os.path.normpath(path)
            if not _inside(path, root):
                outside = True
            elif os.path.isfile(path):
                path = os.path.realpath(path)  # where links lead
                if _inside(path, root):
                    return path
                outside = True
        if outside:
            raise NotFoundError(f"the mesh {clipped(name)!r} lies outside the folder of the model; say packages=FOLDER "
                                "to open another one")
        raise NotFoundError(f"the mesh {clipped(name)!r} was not found; say packages=FOLDER if it lies elsewhere")

    def _beside(self, rest: str, here: str) -> Iterator[tuple[str, str]]:
        """Where a relative or absolute path may lead, and the folder that it must not leave."""
        roots = [_home(here), *self.told]
        for root in roots:
            yield os.path.join(here, rest), root
        for root in self.told:
            yield os.path.join(root, rest), root

    def _packages(self, rest: str, here: str) -> Iterator[tuple[str, str]]:
        """Where a package may lie, and its folder."""
        name, _, inner = rest.partition("/")
        if name in ("", ".", "..") or not inner:
            return
        yield os.path.join(here, rest), here
        above = here
        while True:
            if os.path.basename(above) == name:
                yield os.path.join(above, inner), above
            upper = os.path.dirname(above)
            if upper == above:
                break
            above = upper
        for root in self.told:
            yield os.path.join(root, rest), root
            if os.path.basename(root) == name:
                yield os.path.join(root, inner), root


def _home(here: str) -> str:
    """The folder of the package that a folder is part of, or the folder itself."""
    above = here
    for _ in range(_ABOVE + 1):
        if any(os.path.isfile(os.path.join(above, mark)) for mark in _MARKS):
            return above
        above = os.path.dirname(above)
    return here


def _inside(path: str, root: str) -> bool:
    try:
        return os.path.commonpath([path, root]) == root
    except ValueError:  # on another drive
        return False


# -- mesh files beside a model file that is written -------------------------------------------------
#: what happens to mesh files that do not lie beside the model file: copied to a folder there, or only named
Meshes = Literal["copy", "refer"]


@dataclass
class MeshStore:
    """What the meshes of one model file are called in it."""

    target: str
    meshes: Meshes = "copy"
    files: dict[str, Mesh] = field(default_factory=dict)  #: to be written, by name relative to the model file

    def __post_init__(self) -> None:
        if self.meshes not in ("copy", "refer"):
            raise ModelError(f"meshes must be 'copy' or 'refer', got {self.meshes!r}")
        self.home = os.path.dirname(os.path.realpath(self.target))
        self.folder = f"{Path(self.target).stem}_meshes"

    def name(self, mesh: Mesh, wish: str) -> str:
        """What a mesh is called in the file, with slashes; `wish` is the name of a file for one that has none."""
        if mesh.path is not None:
            real = os.path.realpath(mesh.path)
            relative = os.path.relpath(real, self.home) if _same_drive(real, self.home) else real
            if self.meshes == "refer" or (not relative.startswith("..") and not os.path.isabs(relative)):
                return relative.replace(os.sep, "/")
        known = next((name for name, other in self.files.items() if _same_file(other, mesh)), None)
        if known is not None:
            return known
        file = os.path.basename(mesh.path) if mesh.path is not None else f"{_plain(wish)}.obj"
        stem, ending = os.path.splitext(file)
        taken = {os.path.splitext(name)[0].lower(): name for name in self.files}
        name = unused(f"{self.folder}/{stem}".lower(), taken)[len(self.folder) + 1 + len(stem):]
        made = f"{self.folder}/{stem}{name}{ending}"
        self.files[made] = mesh
        return made

    def write(self) -> None:
        """Write the files; each whole or not at all."""
        if self.files:
            try:
                os.makedirs(os.path.join(self.home, self.folder), exist_ok=True)
            except OSError as error:
                raise FileError(f"{self.folder}: cannot be made: {error.strerror or error}") from None
        for name, mesh in self.files.items():
            write_bytes(os.path.join(self.home, name), _contents(mesh))


def _contents(mesh: Mesh) -> bytes:
    if mesh.path is None:
        return obj_text(mesh).encode()
    try:
        return Path(mesh.path).read_bytes()
    except OSError as error:
        raise FileError(f"mesh {mesh.path!r} cannot be copied: {error.strerror or error}") from None


def obj_text(mesh: Mesh) -> str:
    """The mesh as an OBJ file, every number to the last bit; colors of faces are left out."""
    points = (f"v {x!r} {y!r} {z!r}" for x, y, z in mesh.vertices.tolist())
    corners = (f"f {a} {b} {c}" for a, b, c in (mesh.faces + 1).tolist())
    return "\n".join([*points, *corners, ""])


def _same_file(one: Mesh, other: Mesh) -> bool:
    """Whether two meshes can share a file: their scales may differ."""
    if one.path is None or other.path is None:
        return one.path is other.path is None and one.faces.shape == other.faces.shape and bool(
            np.array_equal(one.vertices, other.vertices) and np.array_equal(one.faces, other.faces))
    return one.path == other.path


def _same_drive(one: str, other: str) -> bool:
    return os.path.splitdrive(one)[0].lower() == os.path.splitdrive(other)[0].lower()


def _plain(text: str) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in text)
    return kept[:60] or "mesh"
