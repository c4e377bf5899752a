"""Rotation matrices by rows, nine numbers, any of which may depend on parameters."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.scalar.functions import cos, sin, sqrt
from bellcrank.scalar.graph import Number, Scalar

__all__ = ["Rows", "about", "apply", "by_columns", "from_quaternion", "has_parameter", "product", "roll_pitch_yaw",
           "transposed", "unit", "way_between"]

Rows = tuple[Number, ...]


def has_parameter(values: Sequence[Number]) -> bool:
    """Whether one of some numbers depends on a parameter."""
    return any(type(v) is Scalar for v in values)


def unit(v: Sequence[Number]) -> tuple[Number, ...]:
    """A vector divided by its length."""
    length = sqrt(sum((x * x for x in v[1:]), v[0] * v[0]))
    return tuple(x / length for x in v)


def transposed(rows: Sequence[Number]) -> Rows:
    """The inverse rotation."""
    return tuple(rows[3 * j + i] for i in range(3) for j in range(3))


def by_columns(x: Sequence[Number], y: Sequence[Number], z: Sequence[Number]) -> Rows:
    """The matrix with these columns."""
    return tuple(column[i] for i in range(3) for column in (x, y, z))


def apply(rows: Sequence[Number], v: Sequence[Number]) -> Rows:
    """R v."""
    return tuple(rows[3 * i] * v[0] + rows[3 * i + 1] * v[1] + rows[3 * i + 2] * v[2] for i in range(3))


def product(first: Sequence[Number], second: Sequence[Number]) -> Rows:
    """The rotation `second`, then `first`."""
    columns = [apply(first, second[j::3]) for j in range(3)]
    return tuple(columns[j][i] for i in range(3) for j in range(3))


def about(axis: Sequence[Number], angle: Number) -> Rows:
    """A turn by an angle about a unit vector (Rodrigues)."""
    (x, y, z), c, s = axis, cos(angle), sin(angle)
    v = 1.0 - c
    return (c + v * (x * x), v * (x * y) - s * z, v * (x * z) + s * y,
            v * (x * y) + s * z, c + v * (y * y), v * (y * z) - s * x,
            v * (x * z) - s * y, v * (y * z) + s * x, c + v * (z * z))


def roll_pitch_yaw(roll: Number, pitch: Number, yaw: Number) -> Rows:
    """Turns about the fixed axes x, then y, then z."""
    turns = [about(axis, angle) for axis, angle in (((1.0, 0.0, 0.0), roll), ((0.0, 1.0, 0.0), pitch),
                                                    ((0.0, 0.0, 1.0), yaw))]
    return product(turns[2], product(turns[1], turns[0]))


def from_quaternion(quaternion: Sequence[Number]) -> Rows:
    """The turn of a quaternion (w, x, y, z), which is divided by its length."""
    w, x, y, z = unit(quaternion)
    return (1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y - w * z), 2.0 * (x * z + w * y),
            2.0 * (x * y + w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z - w * x),
            2.0 * (x * z - w * y), 2.0 * (y * z + w * x), 1.0 - 2.0 * (x * x + y * y))


def way_between(start: Sequence[Number], end: Sequence[Number]) -> Rows:
    """The shortest turn that leads from one unit vector to another; there is none to the opposite one."""
    (a, b, c), (d, e, f) = start, end
    x, y, z = b * f - c * e, c * d - a * f, a * e - b * d  # the axis times the sine
    cosine = a * d + b * e + c * f
    k = 1.0 / (1.0 + cosine)
    return (cosine + k * (x * x), k * (x * y) - z, k * (x * z) + y,
            k * (x * y) + z, cosine + k * (y * y), k * (y * z) - x,
            k * (x * z) - y, k * (y * z) + x, cosine + k * (z * z))
