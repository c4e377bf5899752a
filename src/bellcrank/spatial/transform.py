"""Poses of one frame in another, and what they do to motions, forces and inertias."""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.spatial.inertias import ArticulatedInertia, RigidInertia
from bellcrank.spatial.rotation import General, Identity, Rotation
from bellcrank.spatial.vector import Force, Motion, Vector

__all__ = ["Transform"]


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
