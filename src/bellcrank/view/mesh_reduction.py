"""Meshes with fewer triangles: corners that lie in one cell of a grid become one.

J. Rossignac and P. Borrel, "Multi-resolution 3D approximations for rendering complex scenes", 1993: vertex clustering.
Quick, and good enough for parts that are seen whole.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.view.scene import Ints

__all__ = ["FewerFaces", "reduced"]

#: cells along the longest edge: the finest grid that is tried
_FINEST = 2048


class FewerFaces(NamedTuple):
    """Corners, triangles, and the colors of these if they have some."""

    vertices: Floats
    faces: Ints
    shades: Floats | None


def reduced(vertices: Floats, faces: Ints, shades: Floats | None, most: int) -> FewerFaces:
    """At most about `most` triangles; what has no more is left as it is. Cost: some sorts of all corners.

    >>> x, y = (a.ravel() for a in np.meshgrid(np.linspace(0, 1, 50), np.linspace(0, 1, 50)))
    >>> k = np.arange(50 * 49)[np.arange(50 * 49) % 50 != 49]
    >>> flat = np.stack([x, y, 0 * x], axis=1), np.stack([k, k + 1, k + 50], axis=1)
    >>> 100 < len(reduced(*flat, None, 400).faces) <= 400
    True
    """
    if len(faces) <= most:
        return FewerFaces(vertices, faces, shades)
    coarse, fine = 2.0, float(_FINEST)
    best = _clustered(vertices, faces, shades, coarse)
    for _ in range(9):
        middle = float(np.sqrt(coarse * fine))
        found = _clustered(vertices, faces, shades, middle)
        if len(found.faces) <= most:
            coarse, best = middle, found
        else:
            fine = middle
        if len(best.faces) > 0.85 * most:
            break
    return best


def _clustered(vertices: Floats, faces: Ints, shades: Floats | None, cells: float) -> FewerFaces:
    low = vertices.min(axis=0)
    size = max(float(np.ptp(vertices, axis=0).max()), 1e-300) / cells
    place = np.floor((vertices - low) / size).astype(np.int64)
    key = (place[:, 0] * (_FINEST + 2) + place[:, 1]) * (_FINEST + 2) + place[:, 2]
    _, where = np.unique(key, return_inverse=True)
    where = where.ravel()
    count = np.bincount(where)
    middle = np.stack([np.bincount(where, weights=vertices[:, i]) / count for i in range(3)], axis=1)
    corners = where[faces]
    real = (corners[:, 0] != corners[:, 1]) & (corners[:, 1] != corners[:, 2]) & (corners[:, 2] != corners[:, 0])
    kept = np.flatnonzero(real)
    corners = corners[kept]
    _, once = np.unique(np.sort(corners, axis=1), axis=0, return_index=True)
    once.sort()
    return FewerFaces(middle, corners[once].astype(np.int32), None if shades is None else shades[kept[once]])
