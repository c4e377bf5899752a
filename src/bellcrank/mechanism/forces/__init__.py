"""Force elements, one small file each: a frozen dataclass with its law and its energy."""

from bellcrank.mechanism.forces.actuator import Actuator
from bellcrank.mechanism.forces.armature import Armature
from bellcrank.mechanism.forces.bushing import Bushing
from bellcrank.mechanism.forces.drag import Drag
from bellcrank.mechanism.forces.friction import Friction
from bellcrank.mechanism.forces.law import LawForce
from bellcrank.mechanism.forces.limit import Limit
from bellcrank.mechanism.forces.machine_force import MachineForce
from bellcrank.mechanism.forces.servo import Servo
from bellcrank.mechanism.forces.spring import LinearSpring, PotentialSpring
from bellcrank.mechanism.forces.wrench import Wrench

__all__ = ["Actuator", "Armature", "Bushing", "Drag", "Friction", "LawForce", "Limit", "LinearSpring",
           "MachineForce", "PotentialSpring", "Servo", "Wrench"]
