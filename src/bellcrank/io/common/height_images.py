"""Terrain given as an image: how bright a pixel is says how high the ground is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.geometry.height_field import HeightField

__all__ = ["IMAGES", "heights_of_image"]

#: endings of images that are read
IMAGES = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
#: more pixels along an edge are thinned out
_MOST = 257


def heights_of_image(path: str, size: Sequence[float]) -> HeightField:
    """The ground of an image, whose top lies at the largest y: white is as high as the last of the three sizes [m]."""
    try:
        from matplotlib.image import imread

        image = np.asarray(imread(path), dtype=float)
    except ImportError:
        raise ModelError("images of terrain are read with matplotlib, which is not installed") from None
    except Exception as error:
        raise ModelError(f"the image cannot be read ({error})") from None
    gray = image if image.ndim == 2 else image[..., :3].mean(axis=-1)
    if min(gray.shape) < 2:
        raise ModelError("the image has fewer than two pixels along an edge")
    if gray.max(initial=0.0) > 1.0:  # whole numbers
        gray = gray / (255.0 if gray.max() <= 255.0 else 65535.0)
    rows, columns = (np.unique(np.linspace(0, n - 1, min(n, _MOST)).round().astype(int)) for n in gray.shape)
    x, y = ((np.array(index) / (n - 1) - 0.5) * length for index, n, length in (
        (columns, gray.shape[1], float(size[0])), (rows, gray.shape[0], float(size[1]))))
    heights = gray[::-1][np.ix_(rows, columns)].T * float(size[2])
    return HeightField(x, y, heights, kind="monotone" if min(heights.shape) > 2 else "linear")
