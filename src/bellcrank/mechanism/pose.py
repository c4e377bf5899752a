"""Where one frame lies in another."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import no_parameters, number
from bellcrank.mechanism.turns import (
    about,
    apply,
    from_quaternion,
    has_parameter,
    product,
    roll_pitch_yaw,
    transposed,
)
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["IDENTITY_ROWS", "Pose"]

IDENTITY_ROWS = (1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0)


@checked_methods
class Pose:
    """Position [m] and orientation of a frame in another: x_outer = R x_inner + position.

    `rotation` is a unit quaternion (w, x, y, z), a 3x3 rotation matrix, or nothing. Entries of both may depend on
    parameters. What `System.pose` returns is one too, with arrays that may have batch axes; that of
    one state can be given to a description as it is.

    >>> Pose((0.3, 0, 0), (0, 0, 0, 1)).rotation
    array([[-1.,  0.,  0.],
           [ 0., -1.,  0.],
           [ 0.,  0.,  1.]])
    """

    __slots__ = ("position", "rows")

    def __init__(self, position: Sequence[Number] = (0.0, 0.0, 0.0),
                 rotation: Sequence[Number] | npt.ArrayLike | None = None) -> None:
        #: three numbers or parameters; computed ones are an array (..., 3)
        self.position: Any = _position(position)
        #: the rotation matrix by rows, nine numbers or parameters; computed ones are matrices (..., 3, 3)
        self.rows: Any = IDENTITY_ROWS if rotation is None else _rows(rotation)

    @classmethod
    def of_arrays(cls, position: Floats, rotation: Floats) -> Pose:
        """Computed poses: positions (..., 3) and rotation matrices (..., 3, 3), which are not checked."""
        made = object.__new__(cls)
        made.position, made.rows = position, rotation
        return made

    def fixed(self, what: str, *, turns: bool = False) -> Pose:
        """One pose as a description keeps it; `turns`: its rotation may depend on parameters."""
        if isinstance(self.rows, tuple):
            if self.rows is not IDENTITY_ROWS and not turns:
                no_parameters(what, self.rows)
            return self
        if np.ndim(self.position) != 1 or np.ndim(self.rows) != 2:
            raise ModelError(f"{what}: needs one pose, got those of {np.shape(self.position)[:-1]} states")
        return Pose(self.position, self.rows)

    @staticmethod
    def rpy(position: Sequence[Number], roll: Number, pitch: Number, yaw: Number) -> Pose:
        """Fixed-axis angles [rad] about x, then y, then z, as in URDF."""
        angles = _angles(roll, pitch, yaw)
        if has_parameter(angles):
            return Pose(position, np.reshape(roll_pitch_yaw(*angles), (3, 3)))
        (cr, cp, cy), (sr, sp, sy) = np.cos(angles), np.sin(angles)
        return Pose(position, [[cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                               [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                               [-sp, cp * sr, cp * cr]])

    @staticmethod
    def about(axis: str | Sequence[Number], angle: Number, position: Sequence[Number] = (0.0, 0.0, 0.0)) -> Pose:
        """A turn by `angle` [rad] about an axis."""
        from bellcrank.mechanism.joints.joint import unit_vector

        angle, = _angles(angle)
        direction = unit_vector(axis, "Pose axis")
        if has_parameter((angle, *direction)):
            return Pose(position, np.reshape(about(direction, angle), (3, 3)))
        a = np.array(direction)
        cross = np.array([[0, -a[2], a[1]], [a[2], 0, -a[0]], [-a[1], a[0], 0]])
        return Pose(position, np.eye(3) + np.sin(angle) * cross + (1.0 - np.cos(angle)) * cross @ cross)

    @property
    def parametric(self) -> bool:
        """Whether its rotation depends on parameters."""
        return isinstance(self.rows, tuple) and self.rows is not IDENTITY_ROWS and has_parameter(self.rows)

    @property
    def rotation(self) -> Floats:
        """The rotation matrix, shape (3, 3), or (..., 3, 3) of computed poses."""
        return np.array(self.rows).reshape(3, 3) if isinstance(self.rows, tuple) else self.rows

    def __matmul__(self, inner: Pose) -> Pose:
        """The pose of a frame that lies at `inner` in this one."""
        r = self.rotation
        if self.parametric or inner.parametric:
            return Pose([a + b for a, b in zip(self.position, apply(self.rows, inner.position), strict=True)],
                        np.reshape(product(self.rows, inner.rows), (3, 3)))
        if not (isinstance(self.rows, tuple) and isinstance(inner.rows, tuple)):
            arm = np.asarray(inner.position, dtype=float)[..., None]
            return Pose.of_arrays(np.asarray(self.position, dtype=float) + (r @ arm)[..., 0], r @ inner.rotation)
        at = [sum((float(r[i, j]) * inner.position[j] for j in range(3)), self.position[i]) for i in range(3)]
        return Pose(at, r @ inner.rotation)

    def inverse(self) -> Pose:
        """The pose of the outer frame in the inner one."""
        if self.parametric:
            back = transposed(self.rows)
            return Pose([-x for x in apply(back, self.position)], np.reshape(back, (3, 3)))
        r = np.swapaxes(self.rotation, -1, -2)
        if not isinstance(self.rows, tuple):
            return Pose.of_arrays(-(r @ self.position[..., None])[..., 0], r)
        return Pose([-sum(float(r[i, j]) * self.position[j] for j in range(3)) for i in range(3)], r)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pose):
            return False
        if isinstance(self.rows, tuple) and isinstance(other.rows, tuple):
            return bool(self.position == other.position and self.rows == other.rows)
        return np.array_equal(self.position, other.position) and np.array_equal(self.rotation, other.rotation)

    def __hash__(self) -> int:
        if isinstance(self.rows, tuple):
            return hash((self.position, self.rows))
        return hash((tuple(self.position.ravel().tolist()), tuple(self.rows.ravel().tolist())))

    def __repr__(self) -> str:
        turn = "" if isinstance(self.rows, tuple) and self.rows == IDENTITY_ROWS else f", {self.rotation.tolist()}"
        return f"Pose({self.position if isinstance(self.rows, tuple) else self.position.tolist()}{turn})"


def _angles(*angles: Number) -> list[Number]:
    return [number("Pose", "angle", a) for a in angles]


def _position(value: Sequence[Number]) -> tuple[Number, Number, Number]:
    try:
        entries = [v if isinstance(v, Scalar) else float(v) for v in value]
    except (TypeError, ValueError):
        raise ModelError(f"Pose position: {value!r} is not three numbers") from None
    if len(entries) != 3:
        raise ModelError(f"Pose position: needs three numbers, got {len(entries)}")
    for v in entries:
        if isinstance(v, float) and not abs(v) < float("inf"):
            raise ModelError(f"Pose position: {tuple(entries)} is not finite")
    return entries[0], entries[1], entries[2]


def _rows(value: Sequence[Number] | npt.ArrayLike) -> tuple[Number, ...]:
    try:
        given = np.asarray(value)
        if given.dtype == object and given.shape in ((4,), (3, 3)) and has_parameter(given.ravel().tolist()):
            entries = [v if isinstance(v, Scalar) else float(v) for v in given.ravel().tolist()]
            return from_quaternion(entries) if len(entries) == 4 else tuple(entries)
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"Pose rotation: {value!r} is neither a quaternion nor a 3x3 matrix") from None
    if not np.isfinite(array).all():
        raise ModelError(f"Pose rotation: {array.tolist()} is not finite")
    if array.shape == (4,):
        length = float(np.sqrt(array @ array))
        if abs(length - 1.0) > 1e-6:
            raise ModelError(f"Pose rotation: the quaternion {array.tolist()} has length {length:.6g}, not 1; "
                             "divide it by its length")
        w, x, y, z = array / length
        array = np.array([[1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
                          [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
                          [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)]])
    elif array.shape != (3, 3):
        raise ModelError(f"Pose rotation: needs a quaternion (4 numbers) or a 3x3 matrix, got shape {array.shape}")
    elif np.abs(array @ array.T - np.eye(3)).max() > 1e-6 or np.linalg.det(array) < 0.0:
        raise ModelError(f"Pose rotation: {array.tolist()} is not a rotation matrix (orthogonal, determinant +1)")
    return tuple((array.ravel() + 0.0).tolist())
