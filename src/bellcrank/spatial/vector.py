"""Vectors of three and of six scalars."""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar.graph import Number

__all__ = ["Force", "Motion", "Vector", "unit_index"]


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
