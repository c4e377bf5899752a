"""Drives: servos, actuators within limits, direct-current motors with their rotors, and hydraulic cylinders."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bellcrank.mechanism.forces.element import Along, Element, positive_part
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.scalar.functions import maximum, select_less, sqrt
from bellcrank.scalar.graph import Number, is_zero

__all__ = ["EVERY", "Actuator", "Armature", "CurrentRate", "CylinderForce", "DcMotor", "HydraulicCylinder",
           "MotorTorque", "PressureRate", "Servo", "flow_through", "within"]


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


# -- hydraulic cylinders with the pressures of both chambers as states, and the valve that feeds them ---
#: pressures are states in MPa: numbers of the size of other speeds
MEGA = 1e6
#: pressure difference below which flow through an edge is laminar, as a share of the bulk modulus: 0.1 bar for oil
_LAMINAR = 1e4 / 1.4e9
#: volumes are not let below this [m^3]: a chamber without oil has no finite pressure
_NO_OIL = 1e-300


def flow_through(gain: Number, drop: Number, laminar: Number) -> Number:
    """Flow [m^3/s] of a turbulent edge at a pressure drop [Pa]: gain sqrt(drop) with its sign, smooth where the drop is
    no larger than `laminar` [Pa].

    >>> round(flow_through(1e-7, 4e6, 1e4), 9), round(flow_through(1e-7, -4e6, 1e4), 9)
    (0.0002, -0.0002)
    """
    return gain * drop / sqrt(sqrt(drop * drop + laminar * laminar))


@dataclass(frozen=True)
class HydraulicCylinder(Element):
    """A differential cylinder between two points: areas [m^2], the distance of its ends when pushed in and its stroke
    [m], dead volume of each chamber [m^3], bulk modulus of the oil [Pa], leakage past the piston [m^3/(s Pa)], viscous
    friction [N s/m]; a valve with its gain [m^3/(s sqrt(Pa))], supply and tank pressure [Pa]."""

    name: str
    head_area: Number
    rod_area: Number
    closed: Number
    stroke: Number
    dead_volume: Number
    bulk_modulus: Number
    leakage: Number
    friction: Number
    gain: Number
    supply: Number
    tank: Number
    opening: Number | MachineLaw | None  #: of the valve: 1 feeds the head, -1 the rod

    @property
    def head(self) -> str:
        """The name of the state that is the pressure in the head chamber [MPa]."""
        return f"{self.name} head"

    @property
    def rod(self) -> str:
        """The name of the state that is the pressure in the rod chamber [MPa]."""
        return f"{self.name} rod"

    def volumes(self, length: Number) -> tuple[Number, Number]:
        """Of the head chamber and of the rod chamber [m^3]."""
        return (self.dead_volume + self.head_area * (length - self.closed),
                self.dead_volume + self.rod_area * (self.closed + self.stroke - length))

    def flow(self, at: Any, pressure: Number, side: float) -> Number:
        """What the valve lets into a chamber [m^3/s]; side: 1 for the head, -1 for the rod."""
        if self.opening is None:
            return 0.0
        opening = (self.opening(at) if callable(self.opening) else self.opening) * side
        laminar = self.bulk_modulus * _LAMINAR
        filling = flow_through(self.gain * opening, self.supply - pressure, laminar)
        emptying = flow_through(self.gain * opening, pressure - self.tank, laminar)
        return select_less(opening, 0.0, emptying, filling)


@dataclass(frozen=True)
class CylinderForce(Element):
    """Its tension [N]: less what the pressures push apart."""

    cylinder: HydraulicCylinder

    def __call__(self, at: Any) -> Number:
        c = self.cylinder
        push = (at.state(c.head) * c.head_area - at.state(c.rod) * c.rod_area) * MEGA
        return c.friction * at.element(c.name).rate - push

    def undefined(self, x: Number) -> str:
        """Why there is no pressure at one of the lengths x, numbers or arrays."""
        c = self.cylinder
        for chamber, volume in zip(("head", "rod"), c.volumes(np.asarray(x, dtype=float)), strict=True):
            empty = np.flatnonzero(np.asarray(volume) <= 0.0)
            if len(empty):
                length = float(np.asarray(x, dtype=float).flat[empty[0]])
                return (f"at a length of {length:.6g} m no volume is left to the oil on its {chamber} side (closed "
                        f"{float(np.max(c.closed)):g} m, stroke {float(np.max(c.stroke)):g} m); give it a stop at its "
                        "ends (add_bump_stop), or more dead_volume")
        return ""

    def energy(self, at: Any) -> Number:
        """In the compressed oil of both chambers [J]: p^2 V / (2 E)."""
        c = self.cylinder
        head, rod = at.state(c.head) * MEGA, at.state(c.rod) * MEGA
        large, small = c.volumes(at.element(c.name).length)
        return (head * head * large + rod * rod * small) * (0.5 / c.bulk_modulus)


@dataclass(frozen=True)
class PressureRate(Element):
    """The rate of a chamber's pressure [MPa/s]: bulk modulus over volume, times what flows in less what the piston
    displaces."""

    cylinder: HydraulicCylinder
    head: bool

    def __call__(self, at: Any) -> Number:
        c, length, rate = self.cylinder, at.element(self.cylinder.name).length, at.element(self.cylinder.name).rate
        drop = (at.state(c.head) - at.state(c.rod)) * MEGA
        volume = maximum(c.volumes(length)[0 if self.head else 1], _NO_OIL)
        if self.head:
            grows = c.head_area * rate
            fed = c.flow(at, at.state(c.head) * MEGA, 1.0) - c.leakage * drop
        else:
            grows = -(c.rod_area * rate)
            fed = c.flow(at, at.state(c.rod) * MEGA, -1.0) + c.leakage * drop
        return c.bulk_modulus / volume * (fed - grows) * (1.0 / MEGA)
