"""What all spellings of loops in URDF files share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.errors import FileError
from bellcrank.io.common.xml import XmlElement, blame, clipped
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["across", "add_closing", "unknown"]

_KINDS = "revolute, continuous, prismatic, spherical, ball, fixed, universal, cylindrical, planar, screw"


def add_closing(reader: RobotReader, machine: Mechanism, element: XmlElement, joint: Joint, ends: tuple[str, str],
                poses: tuple[Pose, Pose], prefix: str = "loop") -> str:
    """Add a joint between two bodies that are connected already; returns its name."""
    name = element.attribute("name") if "name" in element.attributes else reader.names.fresh(prefix)
    reader.names.add(name)
    with blame(element):
        machine.add_joint(name, joint, *ends, *poses)
    return name


def unknown(element: XmlElement, kind: str) -> FileError:
    """The exception for a joint type that is not known."""
    return element.error(f"the joint type {clipped(kind)!r} closes no loop; known are {_KINDS}")


def across(axis: Sequence[float]) -> tuple[float, ...]:
    """A unit vector across `axis`: y for x."""
    a = np.asarray(axis, dtype=float)
    found = np.cross(np.roll(np.eye(3)[int(np.argmax(np.abs(a)))], -1), a)
    return tuple((found / np.sqrt(found @ found)).tolist())
