"""Vectors of three and of six scalars, and 3x3 matrices: general, and symmetric by its six entries."""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar.graph import Number

__all__ = ["Force", "Matrix3", "Motion", "Symmetric3", "Vector", "unit_index"]


class Vector(NamedTuple):
    """Three components in one set of axes."""

    x: Number
    y: Number
    z: Number

    @staticmethod
    def zero() -> Vector:
        return Vector(0.0, 0.0, 0.0)

    def __add__(self, o: Vector) -> Vector:  # type: ignore[override]
        return Vector(self.x + o.x, self.y + o.y, self.z + o.z)

    def __sub__(self, o: Vector) -> Vector:
        return Vector(self.x - o.x, self.y - o.y, self.z - o.z)

    def __neg__(self) -> Vector:
        return Vector(-self.x, -self.y, -self.z)

    def __mul__(self, k: Number) -> Vector:
        return Vector(self.x * k, self.y * k, self.z * k)

    def __rmul__(self, k: Number) -> Vector:
        return self.__mul__(k)

    def dot(self, o: Vector) -> Number:
        return self.x * o.x + self.y * o.y + self.z * o.z

    def cross(self, o: Vector) -> Vector:
        return Vector(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)

    def centripetal(self, arm: Vector) -> Vector:
        """omega x (omega x arm) of an angular velocity; the products are shared by all arms."""
        w, r = self, arm
        xy, xz, yz = w.x * w.y, w.x * w.z, w.y * w.z
        xx, yy, zz = w.x * w.x, w.y * w.y, w.z * w.z
        return Vector(xy * r.y + xz * r.z - (yy + zz) * r.x,
                      xy * r.x + yz * r.z - (xx + zz) * r.y,
                      xz * r.x + yz * r.y - (xx + yy) * r.z)


class Motion(NamedTuple):
    """Angular and linear part of a velocity or acceleration, or one column of a joint's subspace."""

    angular: Vector
    linear: Vector

    @staticmethod
    def zero() -> Motion:
        return Motion(Vector.zero(), Vector.zero())

    def __add__(self, o: Motion) -> Motion:  # type: ignore[override]
        return Motion(self.angular + o.angular, self.linear + o.linear)

    def __sub__(self, o: Motion) -> Motion:
        return Motion(self.angular - o.angular, self.linear - o.linear)

    def __neg__(self) -> Motion:
        return Motion(-self.angular, -self.linear)

    def __mul__(self, k: Number) -> Motion:
        return Motion(self.angular * k, self.linear * k)

    def __rmul__(self, k: Number) -> Motion:
        return self.__mul__(k)

    def cross(self, o: Motion) -> Motion:
        """The change of `o` when it is carried along with this motion."""
        return Motion(self.angular.cross(o.angular), self.angular.cross(o.linear) + self.linear.cross(o.angular))

    def cross_force(self, f: Force) -> Force:
        """The change of a force or momentum when it is carried along with this motion."""
        return Force(self.angular.cross(f.moment) + self.linear.cross(f.force), self.angular.cross(f.force))

    def dot(self, f: Force) -> Number:
        """Power of a force on this motion."""
        return self.angular.dot(f.moment) + self.linear.dot(f.force)


class Force(NamedTuple):
    """Moment about a point and force: what a motion of the same frame does work against."""

    moment: Vector
    force: Vector

    @staticmethod
    def zero() -> Force:
        return Force(Vector.zero(), Vector.zero())

    def __add__(self, o: Force) -> Force:  # type: ignore[override]
        return Force(self.moment + o.moment, self.force + o.force)

    def __sub__(self, o: Force) -> Force:
        return Force(self.moment - o.moment, self.force - o.force)

    def __neg__(self) -> Force:
        return Force(-self.moment, -self.force)

    def __mul__(self, k: Number) -> Force:
        return Force(self.moment * k, self.force * k)

    def __rmul__(self, k: Number) -> Force:
        return self.__mul__(k)

    def with_entry(self, index: int, value: Number) -> Force:
        """A copy whose entry `index` (0-2 moment, 3-5 force) is known to be `value`."""
        entries = [*self.moment, *self.force]
        entries[index] = value
        return Force(Vector(*entries[:3]), Vector(*entries[3:]))


def unit_index(column: Motion) -> int | None:
    """The index of the 1 if `column` is exactly a unit vector of constants, else None."""
    entries = [*column.angular, *column.linear]
    if not all(type(e) is float for e in entries) or sorted(entries) != [0.0] * 5 + [1.0]:
        return None
    return entries.index(1.0)


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
