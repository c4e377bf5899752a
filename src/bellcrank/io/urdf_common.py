"""What the parts of the URDF reader share: names of elements, vectors, and telling errors with their place."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from bellcrank.errors import ModelError
from bellcrank.io.xml import Element
from bellcrank.mechanism.joints import Joint

if TYPE_CHECKING:
    from bellcrank.io.urdf_reader import Reader
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["ASIDE", "KNOWN", "MOMENTS", "ONE_AXIS", "REPEATABLE", "ZERO", "Sidecar", "blame", "unit"]

ZERO = (0.0, 0.0, 0.0)
MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")
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

    def joint_types(self, reader: Reader) -> Mapping[str, Joint]:
        """Joints of the tree that have another type than the URDF file says."""

    def close(self, reader: Reader, machine: Mechanism) -> None:
        """Add the joints that close loops."""


def unit(vector: Sequence[float]) -> tuple[float, ...]:
    """The vector at length 1; huge and tiny entries are scaled first, so that squares stay finite."""
    largest = max(map(abs, vector))
    scaled = [v / largest for v in vector]
    length = math.hypot(*scaled)
    return tuple(v / length for v in scaled)


@contextmanager
def blame(element: Element) -> Iterator[None]:
    """Complaints of the model, told with the place in the file."""
    try:
        yield
    except ModelError as error:
        raise element.error(str(error)) from None
