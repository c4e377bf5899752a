"""Terrain given as an image: how bright a pixel is says how high the ground is."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.mechanism.geometry.solids import HeightField

__all__ = ["IMAGES", "heights_of_image"]

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
