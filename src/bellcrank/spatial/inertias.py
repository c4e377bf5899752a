"""Inertia of a rigid body (10 numbers) and of an articulated one (21 numbers), about a frame's origin.

Momentum-like relation: [moment; force] = [[A, B], [B^T, C]] [angular; linear] acceleration.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar.graph import Number
from bellcrank.spatial.vector import Force, Matrix3, Motion, Symmetric3, Vector, unit_index

__all__ = ["ArticulatedInertia", "RigidInertia"]


class RigidInertia(NamedTuple):
    """Mass, first moment m c and second moment (rotational inertia) about the frame's origin."""

    mass: Number
    first: Vector
    second: Symmetric3

    @staticmethod
    def zero() -> RigidInertia:
        return RigidInertia(0.0, Vector.zero(), Symmetric3.zero())

    @staticmethod
    def from_centre(mass: Number, com: Vector, inertia: Symmetric3) -> RigidInertia:
        """From the rotational inertia about the centre of mass."""
        at_centre = RigidInertia(mass, Vector.zero(), inertia)
        return at_centre.shifted(com)

    def __add__(self, o: RigidInertia) -> RigidInertia:  # type: ignore[override]
        return RigidInertia(self.mass + o.mass, self.first + o.first, self.second + o.second)

    def __matmul__(self, a: Motion) -> Force:
        return Force(self.second @ a.angular + self.first.cross(a.linear),
                     a.linear * self.mass - self.first.cross(a.angular))

    def shifted(self, r: Vector) -> RigidInertia:
        """The same body about a point from which the old origin lies at `r`."""
        m, h, s = self.mass, self.first, self.second
        k = r * m  # m r
        g = h + h + k  # (2 h + m r): the second moment gains -(g~ r~) made symmetric
        first = h + k
        return RigidInertia(m, first, Symmetric3(
            s.xx + g.y * r.y + g.z * r.z, s.xy - (h.x * r.y + first.y * r.x), s.xz - (h.x * r.z + first.z * r.x),
            s.yy + g.x * r.x + g.z * r.z, s.yz - (h.y * r.z + first.z * r.y), s.zz + g.x * r.x + g.y * r.y))

    def gyroscopic(self, w: Vector) -> Force:
        """[omega x J omega; omega x (omega x m c)]: the force needed without any acceleration."""
        return Force(w.cross(self.second @ w), w.centripetal(self.first))

    def articulated(self) -> ArticulatedInertia:
        return ArticulatedInertia(self.second, Matrix3.cross(self.first), Symmetric3.diagonal(self.mass))


class ArticulatedInertia(NamedTuple):
    """What a force on one body of a linkage feels: A (angular), B (coupling), C (linear)."""

    angular: Symmetric3
    coupling: Matrix3
    linear: Symmetric3

    @staticmethod
    def zero() -> ArticulatedInertia:
        return ArticulatedInertia(Symmetric3.zero(), Matrix3.zero(), Symmetric3.zero())

    def __add__(self, o: ArticulatedInertia) -> ArticulatedInertia:  # type: ignore[override]
        return ArticulatedInertia(self.angular + o.angular, self.coupling + o.coupling, self.linear + o.linear)

    def __matmul__(self, a: Motion) -> Force:
        return Force(self.angular @ a.angular + self.coupling @ a.linear,
                     self.coupling.transposed_times(a.angular) + self.linear @ a.linear)

    def minus(self, u: Force, g: Force) -> ArticulatedInertia:
        """This inertia less u g^T, where u and g are parallel."""
        return ArticulatedInertia(self.angular.minus_outer(u.moment, g.moment),
                                  self.coupling.minus_outer(u.moment, g.force),
                                  self.linear.minus_outer(u.force, g.force))

    def eliminated(self, column: Motion, u: Force, g: Force) -> ArticulatedInertia:
        """This inertia less u g^T, where u is its product with `column` and g = u / (column . u).

        The result does not resist motion along `column`; for a unit column that row is exactly zero.
        """
        return self.minus(u, g).unresisting(column)

    def unresisting(self, column: Motion) -> ArticulatedInertia:
        """This inertia, known not to resist motion along `column`: for a unit column that row is exactly zero."""
        a, b, c = self
        k = unit_index(column)
        if k is None:
            return self
        if k < 3:
            return ArticulatedInertia(a.without(k), b.without_row(k), c)
        return ArticulatedInertia(a, b.without_column(k - 3), c.without(k - 3))

    def shifted(self, r: Vector) -> ArticulatedInertia:
        """The same inertia about a point from which the old origin lies at `r`:
        B' = B + r~ C, A' = A - B r~ + r~ B'^T."""
        a, b, c = self.angular, self.coupling, self.linear
        n = b + Matrix3(Vector(r.y * c.xz - r.z * c.xy, r.y * c.yz - r.z * c.yy, r.y * c.zz - r.z * c.yz),
                        Vector(r.z * c.xx - r.x * c.xz, r.z * c.xy - r.x * c.yz, r.z * c.xz - r.x * c.zz),
                        Vector(r.x * c.xy - r.y * c.xx, r.x * c.yy - r.y * c.xy, r.x * c.yz - r.y * c.xz))
        second = Symmetric3(
            a.xx + r.y * (n.x.z + b.x.z) - r.z * (n.x.y + b.x.y),
            a.xy + r.y * n.y.z - r.x * b.x.z + r.z * (b.x.x - n.y.y),
            a.xz + r.y * (n.z.z - b.x.x) - r.z * n.z.y + r.x * b.x.y,
            a.yy + r.z * (n.y.x + b.y.x) - r.x * (n.y.z + b.y.z),
            a.yz + r.z * n.z.x - r.y * b.y.x + r.x * (b.y.y - n.z.z),
            a.zz + r.x * (n.z.y + b.z.y) - r.y * (n.z.x + b.z.x))
        return ArticulatedInertia(second, n, c)
