"""Force elements: frozen dataclasses, each with its law and its energy."""

from bellcrank.mechanism.forces.body_forces import Bushing, Drag, Wrench
from bellcrank.mechanism.forces.coordinate_forces import Friction, Limit, LinearSpring, PotentialSpring
from bellcrank.mechanism.forces.element import LawForce
from bellcrank.mechanism.forces.machine_force import MachineForce
from bellcrank.mechanism.forces.motors import Actuator, Armature, Servo

__all__ = ["Actuator", "Armature", "Bushing", "Drag", "Friction", "LawForce", "Limit", "LinearSpring",
           "MachineForce", "PotentialSpring", "Servo", "Wrench"]
