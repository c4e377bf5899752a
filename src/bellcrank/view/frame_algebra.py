"""Turns and points of drawings: a little algebra on arrays of quaternions (w, x, y, z)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.mechanism.joints import quaternion

__all__ = ["along", "matrices", "quaternion_of", "triple_of", "turned"]


def quaternion_of(rotation: npt.ArrayLike) -> tuple[float, float, float, float]:
    """The unit quaternion of one rotation matrix."""
    w, x, y, z = quaternion.from_matrix(np.asarray(rotation, dtype=float)).tolist()
    return w, x, y, z


def matrices(turns: npt.ArrayLike) -> Floats:
    """Rotation matrices (..., 3, 3) of unit quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(turns, dtype=float), -1, 0)
    rows = [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y),
            2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x),
            2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]
    return np.stack(rows, axis=-1).reshape(*w.shape, 3, 3)


def turned(turns: npt.ArrayLike, points: npt.ArrayLike) -> Floats:
    """Vectors (..., 3) turned by unit quaternions (..., 4)."""
    q, v = np.asarray(turns, dtype=float), np.asarray(points, dtype=float)
    twice = 2.0 * np.cross(q[..., 1:], v)
    return np.asarray(v + q[..., :1] * twice + np.cross(q[..., 1:], twice))


def along(direction: npt.ArrayLike) -> tuple[float, float, float, float]:
    """The turn that takes z into a direction."""
    d = np.asarray(direction, dtype=float)
    d = d / max(float(np.linalg.norm(d)), 1e-300)
    if d[2] < -1.0 + 1e-12:
        return (0.0, 1.0, 0.0, 0.0)
    q = np.array([1.0 + d[2], -d[1], d[0], 0.0])
    w, x, y, z = (q / np.linalg.norm(q)).tolist()
    return w, x, y, z


def triple_of(values: npt.ArrayLike) -> tuple[float, float, float]:
    """Three floats."""
    x, y, z = np.asarray(values, dtype=float).tolist()
    return x, y, z
