"""Shapes as model files describe them, put on the bodies of a `Mechanism`."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.io.common.model_meshes import MeshFinder, NotFoundError
from bellcrank.io.common.names import control_character
from bellcrank.io.report import Material, Note, Shape
from bellcrank.mechanism.geometry.placed_shape import AnyShape, Color
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["ShapePlacer", "color_of", "heights_of_image"]


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
