"""What the parts of the URDF reader share: names of elements, and what a side file can do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Protocol

from bellcrank.io.common.masses import MOMENTS
from bellcrank.mechanism.joints import Joint

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["ASIDE", "KNOWN", "ONE_AXIS", "REPEATABLE", "ZERO", "Sidecar"]

ZERO = (0.0, 0.0, 0.0)
ONE_AXIS = ("revolute", "continuous", "prismatic", "screw")

_JOINT = (("name", "type"), ("origin", "parent", "child", "axis", "calibration", "dynamics", "limit", "mimic",
                             "safety_controller", "drake:mimic", "drake:screw_thread_pitch"))
#: what URDF defines: attributes and children of each element that matters to the motion
KNOWN: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "link": (("name",), ("inertial", "visual", "collision")),
    "inertial": ((), ("origin", "mass", "inertia")),
    "joint": _JOINT,
    "drake:joint": _JOINT,
    "origin": (("xyz", "rpy", "quat_xyzw"), ()),
    "mass": (("value",), ()),
    "inertia": (MOMENTS, ()),
    "parent": (("link",), ()),
    "child": (("link",), ()),
    "axis": (("xyz",), ()),
    "dynamics": (("damping", "friction"), ()),
    "limit": (("lower", "upper", "effort", "velocity"), ()),
    "mimic": (("joint", "multiplier", "offset"), ()),
}
REPEATABLE = ("visual", "collision")
ASIDE = {"gazebo": "settings of a simulator", "transmission": "wiring of actuators",
         "ros2_control": "wiring of actuators", "sensor": "a sensor", "calibration": "reference positions of sensors",
         "safety_controller": "settings of a controller"}


class Sidecar(Protocol):
    """A file beside the URDF file that says what URDF cannot."""

    def joint_types(self, reader: RobotReader) -> Mapping[str, Joint]:
        """Joints of the tree that have another type than the URDF file says."""

    def close(self, reader: RobotReader, machine: Mechanism) -> None:
        """Add the joints that close loops."""
