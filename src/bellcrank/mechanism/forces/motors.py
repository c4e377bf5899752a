"""Motors on joints: servos, actuators within limits, direct-current motors, and the inertia of their rotors."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from bellcrank.mechanism.forces.element import Along, Element, positive_part
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.functions import select_less
from bellcrank.scalar.graph import Number, is_zero

__all__ = ["EVERY", "Actuator", "Armature", "CurrentRate", "DcMotor", "MotorTorque", "Servo", "within"]


# -- drives that follow a target by themselves ------------------------------------------------------
_OF_TIME = ("target", "target_rate", "offset")


@dataclass(frozen=True)
class Servo(Along):
    """Force ``stiffness (target - x) + damping (target_rate - rate) + offset``, kept between `lower` and `upper`.

    Stiffness [N/m or N m/rad] and damping [N s/m or N m s/rad] are the gains of the servo, `target` [m or rad] and
    `target_rate` [m/s or rad/s] what it follows, `offset` [N or N m] a force that it adds in any case. Those three are
    numbers, parameters or functions of time. `lower` and `upper` [N or N m] are limits of the force, None for none.

    A servo is a drive: it stores no energy, though at rest it may hold like a spring. All its power counts as lost,
    with a minus where it drives the machine, so that energies balance.

    >>> servo = Servo(stiffness=100.0, damping=2.0, target=0.25, lower=-5.0, upper=15.0)
    >>> servo.force(0.125, 1.0), servo.force(0.0, 0.0), servo.force(1.0, 0.0)
    (10.5, 15.0, -5.0)
    >>> servo.energy(0.7), servo.loss(0.125, 1.0)
    (0.0, -10.5)
    """

    stiffness: Number = 0.0
    damping: Number = 0.0
    target: Number = 0.0
    target_rate: Number = 0.0
    offset: Number = 0.0
    lower: Number | None = None
    upper: Number | None = None
    energy_known = False

    @property
    def placed(self) -> bool:
        return not is_zero(self.stiffness)

    @property
    def timed(self) -> bool:
        return any(callable(getattr(self, name)) for name in _OF_TIME)

    def at(self, time: Number) -> Servo:
        if not self.timed:
            return self
        now = {name: getattr(self, name) for name in _OF_TIME}
        return replace(self, **{name: value(time) if callable(value) else value for name, value in now.items()})

    def force(self, x: Number, rate: Number) -> Number:
        wanted = self.stiffness * (self.target - x) + self.damping * (self.target_rate - rate) + self.offset
        return within(wanted, self.lower, self.upper)


def within(x: Number, lower: Number | None, upper: Number | None) -> Number:
    """x, or the limit that it is beyond.

    >>> [within(x, -1.0, 2.0) for x in (-3.0, 0.5, 3.0)], within(9.0, 0.0, None)
    ([-1.0, 0.5, 2.0], 9.0)
    """
    if lower is not None:
        x = select_less(x, lower, lower, x)
    return x if upper is None else select_less(upper, x, upper, x)


# -- drives whose force is an input, within limits --------------------------------------------------
@dataclass(frozen=True)
class Actuator(Element):
    """Passes the joint force tau on within ±`limit` [N or N m], or from `lower` (at most zero) to `limit`.

    With `no_load_speed` [m/s or rad/s] it follows the straight speed-torque line of a motor: the force in the direction
    of motion is at most ``limit (1 - |rate| / no_load_speed)``, and nothing beyond that speed; braking has the full
    limit. It stores no energy: what it does is the work of tau.

    >>> motor = Actuator(limit=10.0, no_load_speed=4.0)
    >>> motor.output(3.0, 0.0), motor.output(20.0, 1.0), motor.output(-20.0, 1.0), motor.output(5.0, 9.0)
    (3.0, 7.5, -10.0, 0.0)
    >>> Actuator(limit=10.0, lower=-2.0).output(-20.0, 0.0)
    -2.0
    """

    limit: Number
    no_load_speed: Number | None = None
    lower: Number | None = None

    def output(self, tau: Number, rate: Number) -> Number:
        """The force that acts when `tau` is asked for at the rate of the joint."""
        upper, lower = self.limit, -self.limit if self.lower is None else self.lower
        if self.no_load_speed is not None:
            part = rate / self.no_load_speed
            upper, lower = upper * _share(1.0 - part), lower * _share(1.0 + part)
        return within(tau, lower, upper)


def _share(x: Number) -> Number:
    return positive_part(select_less(x, 1.0, x, 1.0))


# -- direct-current motors behind a gear, with the current as a state -------------------------------
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


# -- rotor inertia reflected to a joint -------------------------------------------------------------
#: the coordinate of an armature that is the same in all directions of a ball joint
EVERY = -1


@dataclass(frozen=True, slots=True)
class Armature:
    """The inertia of a rotor that turns with one coordinate of a joint, as felt at the joint.

    A rotor with the inertia J behind a gear of ratio r has ``inertia = r * r * J`` [kg m^2] at a turning coordinate
    (at a sliding one [kg]). It adds 1/2 inertia rate^2 to the kinetic energy and so the inertia to the diagonal of the
    joint-space mass matrix, no more: that the rotor is also carried along and turned with its housing belongs to the
    inertia of the body it sits in, and gyroscopic effects of its spin are neglected, which is right for high ratios. At
    a ball joint it is the same for all three components of the angular velocity (`coordinate` EVERY).

    >>> Armature("rotor", "elbow", 0, inertia=100.0**2 * 3e-5).energy(2.0)
    0.6
    """

    name: str
    joint: str
    coordinate: int
    inertia: Number

    def energy(self, rate: Number) -> Number:
        """Kinetic energy [J] at the rate [rad/s or m/s] of the coordinate."""
        return self.inertia * (rate * rate) * 0.5
