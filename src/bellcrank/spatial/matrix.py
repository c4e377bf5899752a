"""3x3 matrices: general, and symmetric by its six entries."""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar.graph import Number
from bellcrank.spatial.vector import Vector

__all__ = ["Matrix3", "Symmetric3"]


class Symmetric3(NamedTuple):
    """A symmetric matrix."""

    xx: Number
    xy: Number
    xz: Number
    yy: Number
    yz: Number
    zz: Number

    @staticmethod
    def zero() -> Symmetric3:
        return Symmetric3(*(0.0,) * 6)

    @staticmethod
    def diagonal(k: Number) -> Symmetric3:
        return Symmetric3(k, 0.0, 0.0, k, 0.0, k)

    def __add__(self, o: Symmetric3) -> Symmetric3:  # type: ignore[override]
        return Symmetric3(*(a + b for a, b in zip(self, o, strict=True)))

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(self.xx * v.x + self.xy * v.y + self.xz * v.z,
                      self.xy * v.x + self.yy * v.y + self.yz * v.z,
                      self.xz * v.x + self.yz * v.y + self.zz * v.z)

    def minus_outer(self, a: Vector, b: Vector) -> Symmetric3:
        """This matrix less a b^T, where a and b are parallel."""
        return Symmetric3(self.xx - a.x * b.x, self.xy - a.x * b.y, self.xz - a.x * b.z,
                          self.yy - a.y * b.y, self.yz - a.y * b.z, self.zz - a.z * b.z)

    def without(self, i: int) -> Symmetric3:
        """A copy whose row and column `i` are known to be zero."""
        return Symmetric3(*(0.0 if i in at else e for at, e in zip(_SYMMETRIC, self, strict=True)))


_SYMMETRIC = ((0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2))


class Matrix3(NamedTuple):
    """A general matrix by its rows."""

    x: Vector
    y: Vector
    z: Vector

    @staticmethod
    def zero() -> Matrix3:
        return Matrix3(Vector.zero(), Vector.zero(), Vector.zero())

    @staticmethod
    def cross(v: Vector) -> Matrix3:
        """The matrix of v x."""
        return Matrix3(Vector(0.0, -v.z, v.y), Vector(v.z, 0.0, -v.x), Vector(-v.y, v.x, 0.0))

    def __add__(self, o: Matrix3) -> Matrix3:  # type: ignore[override]
        return Matrix3(self.x + o.x, self.y + o.y, self.z + o.z)

    def __matmul__(self, v: Vector) -> Vector:
        return Vector(self.x.dot(v), self.y.dot(v), self.z.dot(v))

    def transposed_times(self, v: Vector) -> Vector:
        """M^T v."""
        r = self
        return Vector(r.x.x * v.x + r.y.x * v.y + r.z.x * v.z,
                      r.x.y * v.x + r.y.y * v.y + r.z.y * v.z,
                      r.x.z * v.x + r.y.z * v.y + r.z.z * v.z)

    def minus_outer(self, a: Vector, b: Vector) -> Matrix3:
        """This matrix less a b^T."""
        return Matrix3(self.x - b * a.x, self.y - b * a.y, self.z - b * a.z)

    def without_row(self, i: int) -> Matrix3:
        """A copy whose row `i` is known to be zero."""
        return Matrix3(*(Vector.zero() if k == i else row for k, row in enumerate(self)))

    def without_column(self, i: int) -> Matrix3:
        """A copy whose column `i` is known to be zero."""
        return Matrix3(*(Vector(*(0.0 if k == i else e for k, e in enumerate(row))) for row in self))
