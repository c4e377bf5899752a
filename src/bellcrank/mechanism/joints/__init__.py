"""Joint types, one file each."""

from bellcrank.mechanism.joints.cylindrical import Cylindrical
from bellcrank.mechanism.joints.free import Free
from bellcrank.mechanism.joints.joint import AxisJoint, Joint
from bellcrank.mechanism.joints.planar import Planar
from bellcrank.mechanism.joints.prismatic import Prismatic
from bellcrank.mechanism.joints.revolute import Revolute
from bellcrank.mechanism.joints.screw import Screw
from bellcrank.mechanism.joints.spherical import Spherical
from bellcrank.mechanism.joints.universal import Universal
from bellcrank.mechanism.joints.weld import Weld

__all__ = ["AxisJoint", "Cylindrical", "Free", "Joint", "Planar", "Prismatic", "Revolute", "Screw", "Spherical",
           "Universal", "Weld"]
