"""Mesh files beside a model file that is written: copies of those that lie elsewhere, and meshes that have none."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from bellcrank.errors import FileError, ModelError
from bellcrank.files.atomic import write_bytes
from bellcrank.io.common.names import unused
from bellcrank.mechanism.geometry.triangle_mesh import Mesh

__all__ = ["MeshStore", "Meshes"]

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
