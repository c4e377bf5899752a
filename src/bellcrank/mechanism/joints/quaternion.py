"""Quaternions, scalar first: configuration maps over NumPy arrays, last axis (w, x, y, z)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

__all__ = ["conjugate", "cross", "exponential", "from_matrix", "left_jacobian", "left_jacobian_inverse", "logarithm",
           "normalize", "product", "turn"]

Array = npt.NDArray[np.float64]


def product(a: Array, b: Array) -> Array:
    """The quaternion product a b."""
    a, b = np.broadcast_arrays(a, b)
    w, v = a[..., :1], a[..., 1:]
    s, r = b[..., :1], b[..., 1:]
    return np.concatenate([w * s - (v * r).sum(-1, keepdims=True), w * r + s * v + cross(v, r)], axis=-1)


def cross(a: Array, b: Array) -> Array:
    """The vector product; without the general axes of `numpy.cross`, which cost four times as much."""
    x, y, z = a[..., 0], a[..., 1], a[..., 2]
    u, v, w = b[..., 0], b[..., 1], b[..., 2]
    return np.stack([y * w - z * v, z * u - x * w, x * v - y * u], axis=-1)


def conjugate(a: Array) -> Array:
    return np.asarray(a * np.array([1.0, -1.0, -1.0, -1.0]))


def normalize(a: Array) -> Array:
    return np.asarray(a / np.sqrt((a * a).sum(-1, keepdims=True)))


def turn(a: Array, v: Array) -> Array:
    """R(a) v for a unit quaternion."""
    w, r = a[..., :1], a[..., 1:]
    t = 2.0 * cross(r, v)
    return np.asarray(v + w * t + cross(r, t))


def _sinc(x: Array) -> Array:
    return np.sinc(x / np.pi)


def exponential(phi: Array) -> Array:
    """The unit quaternion of a rotation vector."""
    half = 0.5 * np.sqrt((phi * phi).sum(-1, keepdims=True))
    return np.concatenate([np.cos(half), 0.5 * _sinc(half) * phi], axis=-1)


def logarithm(a: Array) -> Array:
    """The shortest rotation vector of a quaternion."""
    a = np.where(a[..., :1] < 0.0, -a, a)
    v = a[..., 1:]
    length = np.sqrt((v * v).sum(-1, keepdims=True))
    angle = 2.0 * np.arctan2(length, a[..., :1])
    safe = np.where(length > 0.0, length, 1.0)
    return np.asarray(v * np.where(length > 1e-150, angle / safe, 2.0 / np.where(a[..., :1] > 0, a[..., :1], 1.0)))


def left_jacobian(phi: Array, v: Array) -> Array:
    """Displacement by a velocity v that turns with the body while it turns by phi."""
    x = np.sqrt((phi * phi).sum(-1, keepdims=True))
    b = 0.5 * _sinc(0.5 * x) ** 2  # (1 - cos x) / x^2
    c = np.where(x > 1e-2, (1.0 - _sinc(x)) / np.where(x > 0, x * x, 1.0), 1 / 6 - x**2 / 120 + x**4 / 5040)
    turned = cross(phi, v)
    return np.asarray(v + b * turned + c * cross(phi, turned))


def left_jacobian_inverse(phi: Array, d: Array) -> Array:
    """The velocity whose `left_jacobian` is d."""
    x = np.sqrt((phi * phi).sum(-1, keepdims=True))
    half = 0.5 * x
    c = np.where(x > 1e-2, (1.0 - half * np.cos(half) / np.where(x > 0, np.sin(half), 1.0))
                 / np.where(x > 0, x * x, 1.0), 1 / 12 + x**2 / 720 + x**4 / 30240)
    turned = cross(phi, d)
    return np.asarray(d - 0.5 * turned + c * cross(phi, turned))


def from_matrix(turn: Array) -> Array:
    """Unit quaternions of rotation matrices, shape (..., 3, 3), with w >= 0; from the largest component."""
    m = np.asarray(turn, dtype=float)
    xx, yy, zz = m[..., 0, 0], m[..., 1, 1], m[..., 2, 2]
    squares = np.stack([1 + xx + yy + zz, 1 + xx - yy - zz, 1 - xx + yy - zz, 1 - xx - yy + zz], axis=-1)
    wx, wy, wz = m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]
    xy, xz, yz = m[..., 0, 1] + m[..., 1, 0], m[..., 0, 2] + m[..., 2, 0], m[..., 1, 2] + m[..., 2, 1]
    rows = np.stack([np.stack([squares[..., 0], wx, wy, wz], -1), np.stack([wx, squares[..., 1], xy, xz], -1),
                     np.stack([wy, xy, squares[..., 2], yz], -1), np.stack([wz, xz, yz, squares[..., 3]], -1)], -2)
    best = np.argmax(squares, axis=-1)
    q = normalize(np.take_along_axis(rows, best[..., None, None], axis=-2)[..., 0, :])
    return np.where(q[..., :1] < 0.0, -q, q)
