"""Rotations by structure, poses of one frame in another, and what these do to motions, forces and inertias.

A rotation is none, about x, about z, or general; each knows its cheapest products.
R takes components in the child's axes to components in the parent's. Turning a symmetric or general
matrix about one coordinate axis uses w = s (a - d) + c f with f the sum of the off-diagonal entries:
half the multiplications of R M R^T (the skew part of the turned block does not change).
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from bellcrank.scalar.graph import Number
from bellcrank.spatial.inertias import ArticulatedInertia, RigidInertia
from bellcrank.spatial.vector import Force, Matrix3, Motion, Symmetric3, Vector

__all__ = ["AboutX", "AboutZ", "General", "Identity", "Rotation", "Transform", "from_quaternion"]


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


class Transform(NamedTuple):
    """Pose of a child frame in its parent: x_parent = rotation x_child + translation."""

    rotation: Rotation
    translation: Vector

    @staticmethod
    def identity() -> Transform:
        return Transform(Identity(), Vector.zero())

    def point(self, x: Vector) -> Vector:
        """A point of the child, in the parent's coordinates."""
        return self.rotation.apply(x) + self.translation

    def velocity(self, v: Motion) -> Motion:
        """The parent's velocity as the child's frame sees it, were the joint locked."""
        return Motion(self.rotation.inverse(v.angular),
                      self.rotation.inverse(v.linear + v.angular.cross(self.translation)))

    def acceleration(self, a: Motion) -> Motion:
        """An acceleration obeys the same rule once its centripetal part is set apart."""
        return self.velocity(a)

    def column_to_parent(self, s: Motion) -> Motion:
        """A velocity seen in the child's frame, in the parent's (the inverse of `velocity`)."""
        angular = self.rotation.apply(s.angular)
        return Motion(angular, self.rotation.apply(s.linear) + self.translation.cross(angular))

    def force(self, f: Force) -> Force:
        """A force on the child, as the parent feels it."""
        force = self.rotation.apply(f.force)
        return Force(self.rotation.apply(f.moment) + self.translation.cross(force), force)

    def articulated(self, m: ArticulatedInertia) -> ArticulatedInertia:
        """An articulated inertia of the child, as the parent feels it."""
        return ArticulatedInertia(self.rotation.symmetric(m.angular), self.rotation.matrix(m.coupling),
                                  self.rotation.symmetric(m.linear)).shifted(self.translation)

    def rigid(self, m: RigidInertia) -> RigidInertia:
        """A rigid inertia of the child, as the parent feels it."""
        return RigidInertia(m.mass, self.rotation.apply(m.first), self.rotation.symmetric(m.second)
                            ).shifted(self.translation)

    def turned(self, r: General) -> General:
        """The child's axes in the world if the parent's are `r`: r R, row by row."""
        return General(type(r.rows)(*(self.rotation.inverse(row) for row in r.rows)))
