"""Ready-made force elements of a `Mechanism`: what people expect to find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bellcrank.errors import ModelError
from bellcrank.mechanism.add_states import StatefulElements
from bellcrank.mechanism.checks import new_name, number, triple
from bellcrank.mechanism.forces import MachineForce
from bellcrank.mechanism.forces.belt import Belt
from bellcrank.mechanism.forces.bristle import Bristle, BristleForce, BristleRate
from bellcrank.mechanism.forces.bump_stop import BumpStop
from bellcrank.mechanism.forces.cylinder import CylinderForce, HydraulicCylinder, PressureRate
from bellcrank.mechanism.forces.dc_motor import CurrentRate, DcMotor, MotorTorque
from bellcrank.mechanism.forces.element import Along
from bellcrank.mechanism.forces.gas_spring import GasSpring
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.mechanism.forces.rolling_resistance import RollingResistance
from bellcrank.mechanism.forces.torsion_bar import torsion_stiffness
from bellcrank.mechanism.forces.tyre import Tyre
from bellcrank.mechanism.forces.wrench import Wrench
from bellcrank.mechanism.placed_elements import JointForce, JointSum, Spring
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Body

__all__ = ["ReadyElements"]

_ZERO = (0.0, 0.0, 0.0)


class ReadyElements(StatefulElements):
    """Gas springs, stops, bars, belts, cylinders, motors, brakes, clutches and tyres."""

    def _between(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                 second_point: Sequence[Number], along: Along) -> Spring:
        new_name(self._springs, name, "spring")
        what = f"spring {name!r}"
        ends = triple(first_point, what), triple(second_point, what)
        self._check_own(what, *ends[0], *ends[1])
        self._springs[name] = Spring(name, self.body(first).index, self.body(second).index, *ends, along)
        return self._springs[name]

    # -- along lines ----------------------------------------------------------------------------
    def add_gas_spring(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                       second_point: Sequence[Number], *, force: Number, length: Number, reach: Number,
                       exponent: float = 1.0, damping: Number = 0.0) -> Spring:
        """A gas spring between two points: `force` [N] at its full `length` [m], growing as the gas is compressed;
        `reach` [m] is the volume of gas divided by the area of the rod. See `bellcrank.mechanism.forces.gas_spring`.
        """
        what = f"gas spring {name!r}"
        spring = GasSpring(number(what, "force", force, 0.0), number(what, "length", length, 0.0, above=True),
                           number(what, "reach", reach, 0.0, above=True), _plain(what, "exponent", exponent, 1.0),
                           number(what, "damping", damping, 0.0))
        self._check_own(what, spring.push, spring.length, spring.reach, spring.damping)
        return self._between(name, first, second, first_point, second_point, spring)

    def add_bump_stop(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                      second_point: Sequence[Number], *, lower: Number | None = None, upper: Number | None = None,
                      stiffness: Number, progression: Number = 0.0, damping: Number = 0.0, onset: Number = 1e-3
                      ) -> Spring:
        """Stops between two points that push when their distance is below `lower` and pull above `upper` [m], by
        ``stiffness d + progression d^3`` at the depth d, and damping; never the other way. See `add_limit` for joints.
        """
        what = f"bump stop {name!r}"
        ends = [None if x is None else number(what, label, x, 0.0) for label, x in (("lower", lower), ("upper", upper))]
        if lower is None and upper is None:
            raise ModelError(f"{what}: give a lower or an upper end, or both")
        stop = BumpStop(ends[0], ends[1], number(what, "stiffness", stiffness, 0.0),
                        number(what, "damping", damping, 0.0), number(what, "onset", onset, 0.0, above=True),
                        number(what, "progression", progression, 0.0))
        self._check_own(what, *(x for x in (*ends, stop.stiffness, stop.damping, stop.progression) if x is not None))
        return self._between(name, first, second, first_point, second_point, stop)

    def add_hydraulic_cylinder(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                               second_point: Sequence[Number], *, head_area: float, rod_area: float, closed: float,
                               stroke: float, dead_volume: float = 1e-4, bulk_modulus: float = 1.4e9,
                               leakage: float = 0.0, friction: float = 0.0, opening: MachineLaw | None = None,
                               gain: float = 0.0, supply: float = 2e7, tank: float = 1e5,
                               initial: tuple[Number, Number] = (1e5, 1e5)) -> Spring:
        """A hydraulic cylinder between two points. The pressures of both chambers are states in MPa, called
        ``"name head"`` and ``"name rod"``; `initial` are where they begin [Pa].

        Areas [m^2]; `closed` is the distance of the points when it is pushed in [m], to `closed` + `stroke`; dead
        volume of each chamber [m^3], bulk modulus [Pa], leakage past the piston [m^3/(s Pa)], friction [N s/m]. The
        valve: `opening` is a law of the machine between -1 (feeds the rod) and 1 (feeds the head), None for shut;
        `gain` [m^3/(s sqrt(Pa))], `supply` and `tank` pressure [Pa]. Stiff: take "radau" or "radau5", or small steps.
        """
        what = f"hydraulic cylinder {name!r}"
        given = {label: _plain(what, label, value, 0.0) for label, value in (
            ("head_area", head_area), ("rod_area", rod_area), ("closed", closed), ("stroke", stroke),
            ("dead_volume", dead_volume), ("bulk_modulus", bulk_modulus), ("leakage", leakage),
            ("friction", friction), ("gain", gain), ("supply", supply), ("tank", tank))}
        for label in ("head_area", "stroke", "dead_volume", "bulk_modulus"):
            if given[label] == 0.0:
                raise ModelError(f"{what}: {label} must be positive")
        cylinder = HydraulicCylinder(name, **given, opening=opening)
        made = self._between(name, first, second, first_point, second_point,
                             MachineForce(name, CylinderForce(cylinder), -1.0))
        for label, head, start in ((cylinder.head, True, initial[0]), (cylinder.rod, False, initial[1])):
            self.add_state(label, PressureRate(cylinder, head), initial=number(what, "initial", start) * 1e-6,
                           units="MPa")
        return made

    # -- along joints ---------------------------------------------------------------------------
    def add_torsion_bar(self, name: str, joint: str | Mapping[str, float], *, length: Number, diameter: Number,
                        bore: Number = 0.0, shear_modulus: Number = 79e9, damping: Number = 0.0, rest: Number = 0.0,
                        coordinate: int | str | None = None) -> JointForce | JointSum:
        """A torsion bar, round or with a `bore`, on a joint coordinate or on the difference of two ({"left": 1,
        "right": -1}, an anti-roll bar): dimensions [m], shear modulus [Pa]."""
        what = f"torsion bar {name!r}"
        sizes = [number(what, label, x, 0.0, above=label != "bore") for label, x in (
            ("length", length), ("diameter", diameter), ("bore", bore), ("shear_modulus", shear_modulus))]
        return self.add_joint_spring(name, joint, stiffness=torsion_stiffness(*sizes), damping=damping, rest=rest,
                                     coordinate=coordinate)

    def add_belt(self, name: str, pulleys: Mapping[str, float], *, stiffness: Number, pretension: Number = 0.0,
                 damping: Number = 0.0, slack: Number = 0.0) -> JointForce | JointSum:
        """A belt or chain over two pulleys, {joint: radius [m]} with joints on one carrier: both turn the same way, or
        opposite ways where one radius is negative (a crossed belt). Each span has the `stiffness` [N/m] and only pulls;
        a chain has `slack` [m] in place of a pretension. See `bellcrank.mechanism.forces.belt`."""
        what = f"belt {name!r}"
        if len(pulleys) != 2:
            raise ModelError(f"{what}: needs two pulleys {{joint: radius}}, got {len(pulleys)}")
        belt = Belt(number(what, "stiffness", stiffness, 0.0, above=True), number(what, "pretension", pretension, 0.0),
                    number(what, "damping", damping, 0.0), number(what, "slack", slack, 0.0))
        (one, first), (two, second) = pulleys.items()
        return self._add_joint_force(name, {one: _plain(what, one, first), two: -_plain(what, two, second)}, belt, None)

    def add_dc_motor(self, name: str, joint: str, *, voltage: float | MachineLaw, resistance: float, inductance: float,
                     constant: float, gear: float = 1.0, rotor_inertia: float = 0.0, friction: float = 0.0
                     ) -> JointForce | JointSum:
        """A direct-current motor with a gear on a joint of one coordinate. Its current is a state [A], ``"name
        current"``; the rotor's inertia [kg m^2] is felt at the joint times the square of the gear's ratio.

        `voltage` [V] is a number or a law of the machine; resistance [ohm], inductance [H], `constant` [N m/A], viscous
        friction of the rotor [N m s/rad]."""
        what = f"motor {name!r}"
        if not callable(voltage):
            voltage = _plain(what, "voltage", voltage)
        motor = DcMotor(name, joint, _plain(what, "resistance", resistance, 0.0),
                        _plain(what, "inductance", inductance, 0.0), _plain(what, "constant", constant),
                        _plain(what, "gear", gear), _plain(what, "friction", friction, 0.0), voltage)
        if motor.inductance == 0.0:
            raise ModelError(f"{what}: the inductance must be positive")
        made = self.add_joint_force(name, joint, MotorTorque(motor))
        self.add_state(motor.current, CurrentRate(motor), units="A")
        if rotor_inertia:
            self.add_armature(name, joint, rotor_inertia * motor.gear**2)
        return made

    def add_brake(self, name: str, joint: str | Mapping[str, float], *, capacity: float | MachineLaw,
                  reach: float = 1e-3, damping: float = 1e-3, coordinate: int | str | None = None
                  ) -> JointForce | JointSum:
        """Dry friction that truly sticks, up to a `capacity` [N or N m], a number or a law of the machine (a pedal, a
        normal force), on a joint coordinate or a sum of several. It gives by `reach` [m or rad] before it slides, and
        damps that with a time constant `damping` [s]. How far it is bent is a state, ``"name bend"``."""
        what = f"brake {name!r}"
        if not callable(capacity):
            capacity = _plain(what, "capacity", capacity, 0.0)
        bristle = Bristle(name, capacity, _plain(what, "reach", reach, 0.0), _plain(what, "damping", damping, 0.0))
        if bristle.reach == 0.0:
            raise ModelError(f"{what}: the reach must be positive")
        made = self.add_joint_force(name, joint, BristleForce(bristle), coordinate)
        self.add_state(bristle.bend, BristleRate(bristle))
        return made

    def add_clutch(self, name: str, first: str, second: str, *, capacity: float | MachineLaw, reach: float = 1e-3,
                   damping: float = 1e-3) -> JointForce | JointSum:
        """A clutch between two shafts on one carrier, by their joints: friction that truly sticks against the
        difference of their speeds; see `add_brake`."""
        return self.add_brake(name, {first: 1.0, second: -1.0}, capacity=capacity, reach=reach, damping=damping)

    def add_rolling_resistance(self, name: str, joint: str, *, coefficient: float, radius: float,
                               load: float | MachineLaw, speed: float = 1e-2) -> JointForce | JointSum:
        """Rolling resistance of a wheel on its joint: the moment ``coefficient load radius`` [N m] against its turning;
        the load [N] is a number or a law of the machine, such as ``lambda at: at.element("tyre").vector.z``."""
        what = f"rolling resistance {name!r}"
        law = RollingResistance(joint, _plain(what, "coefficient", coefficient, 0.0),
                                load if callable(load) else _plain(what, "load", load, 0.0),
                                _plain(what, "radius", radius, 0.0), _plain(what, "speed", speed, 0.0))
        return self.add_joint_force(name, joint, law)

    # -- on wheels ------------------------------------------------------------------------------
    def add_tyre(self, name: str, wheel: str | Body, *, radius: float, stiffness: float, damping: float = 0.0,
                 mu: float = 1.0, slope: float = 20.0, model: str = "brush", c: float = 1.65, e: float = 0.0,
                 slowest: float = 0.1, height: Callable[[Number, Number], Number] | None = None) -> Wrench:
        """A tyre on a wheel that turns about its body's y axis through its origin, on the plane z = 0 or the ground
        ``height(x, y)`` [m] (a function, or a `Table` of two arguments).

        `radius` [m], `stiffness` [N/m] and `damping` [N s/m] against the ground; `mu` the grip, `slope` the force per
        load and slip where that begins; `model` "brush" or "magic" (the Magic Formula, with its shape factors `c` and
        `e`); longitudinal and lateral slip share the grip. Below the speed of rolling `slowest` [m/s] slip is
        regularised. See `bellcrank.mechanism.forces.tyre`."""
        what = f"tyre {name!r}"
        if model not in ("brush", "magic"):
            raise ModelError(f"{what}: model must be 'brush' or 'magic', got {model!r}")
        given = {label: _plain(what, label, value, 0.0) for label, value in (
            ("radius", radius), ("stiffness", stiffness), ("damping", damping), ("mu", mu), ("slope", slope),
            ("c", c), ("slowest", slowest))}
        for label in ("radius", "mu", "slope", "c", "slowest"):
            if given[label] == 0.0:
                raise ModelError(f"{what}: {label} must be positive")
        law = Tyre(self.body(wheel).name, **given, model=model, e=_plain(what, "e", e), height=height)
        return self.add_wrench(name, wheel, law=law)


def _plain(what: str, label: str, value: Any, least: float | None = None) -> float:
    """A plain number."""
    found = number(what, label, value) if least is None else number(what, label, value, least)
    if not isinstance(found, float):
        raise ModelError(f"{what}: {label} must be a number, not a parameter")
    return found
