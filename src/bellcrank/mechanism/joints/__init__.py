"""Joint types."""

from bellcrank.mechanism.joints.axis_joints import Cylindrical, Prismatic, Revolute, Screw
from bellcrank.mechanism.joints.joint import AxisJoint, Joint
from bellcrank.mechanism.joints.planar import Planar
from bellcrank.mechanism.joints.quaternion_joints import Free, Spherical
from bellcrank.mechanism.joints.universal import Universal
from bellcrank.mechanism.joints.weld import Weld

__all__ = ["AxisJoint", "Cylindrical", "Free", "Joint", "Planar", "Prismatic", "Revolute", "Screw", "Spherical",
           "Universal", "Weld"]
