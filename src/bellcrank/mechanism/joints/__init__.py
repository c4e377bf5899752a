"""Joint types."""

from bellcrank.mechanism.joints.axis_joints import Cylindrical, Planar, Prismatic, Revolute, Screw, Universal, Weld
from bellcrank.mechanism.joints.joint import AxisJoint, Joint
from bellcrank.mechanism.joints.quaternion_joints import Free, Spherical

__all__ = ["AxisJoint", "Cylindrical", "Free", "Joint", "Planar", "Prismatic", "Revolute", "Screw", "Spherical",
           "Universal", "Weld"]
