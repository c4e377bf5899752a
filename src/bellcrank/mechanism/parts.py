"""The records of a mechanism: bodies, joints between them, frames on them."""

from __future__ import annotations

from dataclasses import dataclass

from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Joint
from bellcrank.mechanism.motion import Prescribed
from bellcrank.mechanism.pose import Pose

__all__ = ["Body", "Connection", "Frame"]


@dataclass(frozen=True, slots=True)
class Body:
    """A rigid body; `index` 0 is the ground."""

    name: str
    index: int
    inertia: Inertia


@dataclass(frozen=True, slots=True)
class Connection:
    """A joint between two bodies: T_parent_child = parent_pose J(q) child_pose^-1."""

    name: str
    joint: Joint
    parent: int
    child: int
    parent_pose: Pose
    child_pose: Pose
    prescribed: Prescribed | None = None

    @property
    def drawn_pose(self) -> Pose:
        """Where the child's side of the joint lies in the parent in the position drawn: at the parent's side, but of
        `Free` joints at their `start`."""
        if isinstance(self.joint, Free) and self.joint.start != Pose():
            return self.parent_pose @ self.joint.start
        return self.parent_pose


@dataclass(frozen=True, slots=True)
class Frame:
    """A named place on a body."""

    name: str
    body: int
    pose: Pose
