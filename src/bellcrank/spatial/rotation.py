"""Rotations by structure: none, about x, about z, general. Each knows its cheapest products.

R takes components in the child's axes to components in the parent's. Turning a symmetric or general
matrix about one coordinate axis uses w = s (a - d) + c f with f the sum of the off-diagonal entries:
half the multiplications of R M R^T (the skew part of the turned block does not change).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from bellcrank.scalar.graph import Number
from bellcrank.spatial.matrix import Matrix3, Symmetric3
from bellcrank.spatial.vector import Vector

__all__ = ["AboutX", "AboutZ", "General", "Identity", "Rotation", "from_quaternion"]


class Identity(NamedTuple):
    """Axes that coincide."""

    def apply(self, v: Vector) -> Vector:
        return v

    def inverse(self, v: Vector) -> Vector:
        return v

    def symmetric(self, m: Symmetric3) -> Symmetric3:
        return m

    def matrix(self, m: Matrix3) -> Matrix3:
        return m


def _turn(c: Number, s: Number, a: Number, b: Number) -> tuple[Number, Number]:
    return c * a - s * b, s * a + c * b


def _turn_block(c: Number, s: Number, a: Number, b: Number, e: Number, d: Number
                ) -> tuple[Number, Number, Number, Number]:
    """[[a, b], [e, d]] turned by the angle of (c, s)."""
    w = s * (a - d) + c * (b + e)
    sw, cw = s * w, c * w
    return a - sw, cw - e, cw - b, d + sw


class AboutZ(NamedTuple):
    """A turn about the common z axis by an angle of cosine c and sine s."""

    c: Number
    s: Number

    def apply(self, v: Vector) -> Vector:
        return Vector(*_turn(self.c, self.s, v.x, v.y), v.z)

    def inverse(self, v: Vector) -> Vector:
        return Vector(*_turn(self.c, -self.s, v.x, v.y), v.z)

    def symmetric(self, m: Symmetric3) -> Symmetric3:
        xx, xy, _, yy = _turn_block(self.c, self.s, m.xx, m.xy, m.xy, m.yy)
        xz, yz = _turn(self.c, self.s, m.xz, m.yz)
        return Symmetric3(xx, xy, xz, yy, yz, m.zz)

    def matrix(self, m: Matrix3) -> Matrix3:
        xx, xy, yx, yy = _turn_block(self.c, self.s, m.x.x, m.x.y, m.y.x, m.y.y)
        xz, yz = _turn(self.c, self.s, m.x.z, m.y.z)
        zx, zy = _turn(self.c, self.s, m.z.x, m.z.y)
        return Matrix3(Vector(xx, xy, xz), Vector(yx, yy, yz), Vector(zx, zy, m.z.z))


class AboutX(NamedTuple):
    """A turn about the common x axis by an angle of cosine c and sine s."""

    c: Number
    s: Number

    def apply(self, v: Vector) -> Vector:
        return Vector(v.x, *_turn(self.c, self.s, v.y, v.z))

    def inverse(self, v: Vector) -> Vector:
        return Vector(v.x, *_turn(self.c, -self.s, v.y, v.z))

    def symmetric(self, m: Symmetric3) -> Symmetric3:
        yy, yz, _, zz = _turn_block(self.c, self.s, m.yy, m.yz, m.yz, m.zz)
        xy, xz = _turn(self.c, self.s, m.xy, m.xz)
        return Symmetric3(m.xx, xy, xz, yy, yz, zz)

    def matrix(self, m: Matrix3) -> Matrix3:
        yy, yz, zy, zz = _turn_block(self.c, self.s, m.y.y, m.y.z, m.z.y, m.z.z)
        xy, xz = _turn(self.c, self.s, m.x.y, m.x.z)
        yx, zx = _turn(self.c, self.s, m.y.x, m.z.x)
        return Matrix3(Vector(m.x.x, xy, xz), Vector(yx, yy, yz), Vector(zx, zy, zz))


class General(NamedTuple):
    """Any rotation, by its matrix."""

    rows: Matrix3

    def apply(self, v: Vector) -> Vector:
        return self.rows @ v

    def inverse(self, v: Vector) -> Vector:
        return self.rows.transposed_times(v)

    def symmetric(self, m: Symmetric3) -> Symmetric3:
        r = self.rows
        x, y, z = m @ r.x, m @ r.y, m @ r.z  # M R^T, column by column
        return Symmetric3(r.x.dot(x), r.x.dot(y), r.x.dot(z), r.y.dot(y), r.y.dot(z), r.z.dot(z))

    def matrix(self, m: Matrix3) -> Matrix3:
        r = self.rows
        x, y, z = m @ r.x, m @ r.y, m @ r.z
        return Matrix3(*(Vector(row.dot(x), row.dot(y), row.dot(z)) for row in r))


Rotation: TypeAlias = Identity | AboutX | AboutZ | General


def from_quaternion(w: Number, x: Number, y: Number, z: Number) -> General:
    """The rotation of a quaternion (scalar first) of any non-zero length."""
    k = 2.0 / (w * w + x * x + y * y + z * z)
    kx, ky, kz = k * x, k * y, k * z
    wx, wy, wz, xx, xy, xz = w * kx, w * ky, w * kz, x * kx, x * ky, x * kz
    yy, yz, zz = y * ky, y * kz, z * kz
    return General(Matrix3(Vector(1.0 - (yy + zz), xy - wz, xz + wy),
                           Vector(xy + wz, 1.0 - (xx + zz), yz - wx),
                           Vector(xz - wy, yz + wx, 1.0 - (xx + yy))))
