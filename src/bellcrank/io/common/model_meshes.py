"""Shapes and meshes of models: as files describe them, where mesh files lie that a file names, and those beside a
file that is written.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from bellcrank.errors import FileError, ModelError
from bellcrank.files.model_files import write_bytes
from bellcrank.io.common.xml import clipped, control_character, unused
from bellcrank.io.report import Material, Note, Shape
from bellcrank.mechanism.geometry.placed_shape import AnyShape, Color
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import FORMATS, Mesh
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["Folders", "MeshFinder", "MeshStore", "Meshes", "NotFoundError", "ShapePlacer", "heights_of_image"]


# -- mesh files of models: where those lie that a file names, and those beside a file that is written ---
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


# -- shapes as model files describe them, put on the bodies of a `Mechanism` ------------------------
# -- terrain given as an image: how bright a pixel is says how high the ground is -------------------
#: endings of images that are read
IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
#: more pixels along an edge are thinned out, and more in all are refused
_MOST, _MOST_PIXELS = 257, 20_000_000


def heights_of_image(path: str, size: Sequence[float]) -> HeightField:
    """The ground of an image, whose top lies at the largest y: white is as high as the last of the three sizes [m]."""
    image = _pixels(path)
    tall, wide = image.shape[:2]
    if min(tall, wide) < 2:
        raise ModelError("the image has fewer than two pixels along an edge")
    brightest = float(image.max())
    rows, columns = (np.unique(np.linspace(0, n - 1, min(n, _MOST)).round().astype(int)) for n in (tall, wide))
    kept = image[::-1][np.ix_(rows, columns)].astype(float)
    gray = kept if kept.ndim == 2 else kept[..., :3].mean(axis=-1)
    if brightest > 1.0:  # whole numbers
        gray = gray / (255.0 if brightest <= 255.0 else 65535.0)
    x, y = ((np.array(index) / (n - 1) - 0.5) * length for index, n, length in (
        (columns, wide, float(size[0])), (rows, tall, float(size[1]))))
    heights = gray.T * float(size[2])
    return HeightField(x, y, heights, kind="monotone" if min(heights.shape) > 2 else "linear")


def _pixels(path: str) -> npt.NDArray[Any]:
    """The pixels of an image, whose size is looked at first: a small file may hold a gigantic picture."""
    try:
        from matplotlib.image import imread
        from PIL import Image

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sizes, which are refused below
            with Image.open(path) as header:
                wide, tall = header.size
        if wide * tall <= _MOST_PIXELS:
            return np.asarray(imread(path))
    except ImportError:
        raise ModelError("images of terrain are read with matplotlib, which is not installed") from None
    except Exception as error:
        raise ModelError(f"the image cannot be read ({error})") from None
    raise ModelError(f"the image has {wide} x {tall} pixels, more than {_MOST_PIXELS / 1e6:g} million; make it "
                     f"smaller: {_MOST} pixels along an edge are used")


@dataclass
class ShapePlacer:
    """Puts shapes on bodies; one that cannot be shown is a note, and no error: it does not move the machine."""

    finder: MeshFinder
    notes: list[Note] = field(default_factory=list)
    materials: Mapping[str, Material] = field(default_factory=dict)

    def place(self, machine: Mechanism, shape: Shape, source: str, name: str = "",
              made: Mesh | HeightField | None = None) -> str | None:
        """Add one shape that the file `source` describes, under its name there if that is free; its form may be `made`
        already. Returns what the shape is called."""
        try:
            form = made or self._made(shape, source)
        except NotFoundError as error:
            self.notes.append(Note("missing", shape.kind, shape.body, shape.line, str(error)))
            return None
        except ModelError as error:
            self.notes.append(Note("ignored", shape.kind, shape.body, shape.line, f"cannot be shown: {error}"))
            return None
        taken = not name or control_character(name) is not None or any(s.name == name for s in machine.shapes)
        collides = shape.role == "collision"
        return machine.add_shape(shape.body, form, shape.pose, color=color_of(shape.material, self.materials),
                                 name=None if taken else name, role=shape.role,
                                 friction=shape.friction if collides else None,
                                 groups=shape.groups if collides else (1, 1)).name

    def _made(self, shape: Shape, source: str) -> AnyShape:
        size = shape.size
        match shape.kind:
            case "mesh":
                return Mesh.read(self.finder.find(shape.filename or "", source), size)
            case "heightmap":
                return heights_of_image(self.finder.find(shape.filename or "", source, IMAGES), size)
            case "box":
                return Box(size)
            case "sphere":
                return Sphere(*size)
            case "ellipsoid":
                return Ellipsoid(size)
            case "plane":
                return Plane(size or None)
            case "cylinder":
                return Cylinder(*size)
            case "capsule":
                return Capsule(*size)
        return Cone(*size)


def color_of(material: Material | None, others: Mapping[str, Material]) -> Color | None:
    """The color of a material, or of the one that it names."""
    if material is None:
        return None
    rgba = material.rgba or getattr(others.get(material.name), "rgba", None)
    if rgba is None or len(rgba) != 4:
        return None
    r, g, b, a = (min(max(float(x), 0.0), 1.0) for x in rgba)
    return r, g, b, a
