"""Direct-current motors behind a gear, with the current as a state."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.graph import Number

__all__ = ["CurrentRate", "DcMotor", "MotorTorque"]


@dataclass(frozen=True)
class DcMotor(Element):
    """Resistance [ohm], inductance [H], the constant of torque and of back voltage [N m/A = V s/rad], the gear's ratio,
    viscous friction of the rotor [N m s/rad]; the voltage [V] is a number or a law of the machine."""

    name: str
    joint: str
    resistance: Number
    inductance: Number
    constant: Number
    gear: Number
    friction: Number
    voltage: Number | MachineLaw

    @property
    def current(self) -> str:
        """The name of the state that is its current [A]."""
        return f"{self.name} current"


@dataclass(frozen=True)
class CurrentRate(Element):
    """L di/dt = V - R i - k r u."""

    motor: DcMotor

    def __call__(self, at: Any) -> Number:
        m = self.motor
        voltage = m.voltage(at) if callable(m.voltage) else m.voltage
        back = m.constant * m.gear * at.u(m.joint)
        return (voltage - m.resistance * at.state(m.current) - back) * (1.0 / m.inductance)


@dataclass(frozen=True)
class MotorTorque(Element):
    """r (k i - b r u) on the joint."""

    motor: DcMotor

    def __call__(self, at: Any) -> Number:
        m = self.motor
        return m.gear * (m.constant * at.state(m.current) - m.friction * m.gear * at.u(m.joint))

    def energy(self, at: Any) -> Number:
        """In the coil [J]: L i^2 / 2; that of the rotor counts as kinetic."""
        current = at.state(self.motor.current)
        return 0.5 * self.motor.inductance * (current * current)
