"""Ready-made force elements of a `Mechanism`: what people expect to find."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism import ready_made
from bellcrank.mechanism.add_forces import ForceElements
from bellcrank.mechanism.checks import new_name, number, triple
from bellcrank.mechanism.forces import MachineForce
from bellcrank.mechanism.forces.body_forces import Wrench
from bellcrank.mechanism.forces.coordinate_forces import Belt, BumpStop, GasSpring, TorsionBar
from bellcrank.mechanism.forces.element import Along, required_arguments
from bellcrank.mechanism.forces.machine_force import BristleForce, BristleRate, MachineLaw, RollingResistance
from bellcrank.mechanism.forces.motors import CurrentRate, CylinderForce, MotorTorque, PressureRate
from bellcrank.mechanism.forces.tyre import TyreRate
from bellcrank.mechanism.parts import AddedOutput, AddedState, FirstOrder, Frame, JointForce, JointSum, Spring
from bellcrank.mechanism.ready_made import number_or_law, plain
from bellcrank.scalar.graph import Number, is_zero

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Body, Connection

__all__ = ["ReadyElements"]


# -- states of elements of a `Mechanism` ------------------------------------------------------------
@checked_methods
class StatefulElements(ForceElements):
    """Forces, and states of their own that these may have."""

    _bodies: dict[str, Body]
    _frames: dict[str, Frame]

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[str, AddedState] = {}
        self._outputs: dict[str, AddedOutput] = {}

    @abstractmethod
    def add_body(self, name: str) -> Body:
        """Add a body."""

    @abstractmethod
    def add_joint(self, name: str, joint: Any, parent: Any, child: Any) -> Connection:
        """Connect two bodies."""

    @property
    def states(self) -> tuple[AddedState, ...]:
        """States of elements."""
        return tuple(self._states.values())

    @property
    def outputs(self) -> tuple[AddedOutput, ...]:
        """What results hold besides states and energies."""
        return tuple(self._outputs.values())

    def add_output(self, name: str, law: Callable[[Any], Number], *, units: str = "1") -> AddedOutput:
        """A number that results hold for every sample, under its name: ``law(at)`` of the machine (see
        `add_joint_force`).

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> _ = m.add_output("height", lambda at: at.position(m.bodies[0].name).z, units="m")
        >>> "height" in bc.compile(m).simulate(([0.5], [0.0]), duration=0.01)
        True
        """
        new_name(self._outputs, name, "output")
        if not callable(law) or required_arguments(law) != 1:
            raise ModelError(f"output {name!r}: a law is a function of one argument, which shows the machine")
        self._outputs[name] = AddedOutput(name, law, _units(f"output {name!r}", units))
        return self._outputs[name]

    def add_state(self, name: str, rate: Callable[[Any], Number], *, initial: Number = 0.0, units: str = "1"
                  ) -> AddedState:
        """A state with first-order dynamics, such as a pressure, a current, the integral of a controller or an
        activation: its rate is ``rate(at)``, a law of the machine (see `add_joint_force`), in which ``at.state(name)``
        is the state itself. Laws read it by ``at.state(name)``.

        It is integrated with the machine by every stepper: as the speed ``name.value`` among those of the machine, with
        its integral over time, ``name.integral``, among the coordinates. `initial` (a number or a parameter) is where
        `assemble` lets it begin unless ``u={name: value}`` says otherwise. A force `tau` on it adds to its rate.
        Numbers of the size of other speeds do best: give a pressure in bar or MPa rather than in Pa.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> lag = m.add_state("lag", lambda at: (at.q("hinge") - at.state("lag")) / 0.1, initial=0.2)
        >>> system = bc.compile(m)
        >>> state = system.assemble(q={"hinge": 0.5})
        >>> system.speed_names, system.forward_dynamics(state).round(12)[1]
        (('hinge.angle', 'lag.value'), np.float64(3.0))
        """
        new_name(self._states, name, "state")
        what = f"state {name!r}"
        if not callable(rate) or required_arguments(rate) != 1:
            raise ModelError(f"{what}: its rate is a function of one argument, which shows the machine")
        value, label = number(what, "initial", initial), _units(what, units)
        self._check_own(what, value)
        known = self._joints.get(name)
        if known is not None and not isinstance(known.joint, FirstOrder):
            raise ModelError(f"{what}: a joint is called so already, and states have joints of their names; give it "
                             "another")
        if known is None:  # files put them in their places beforehand
            self.add_joint(name, FirstOrder(label), "ground", self.add_body(name))
        self._states[name] = AddedState(name, rate, value, label)
        return self._states[name]


    def _free(self, what: str, *states: str) -> None:
        """Names of states of an element, before anything is added: each has a joint and a body of its name."""
        for name in states:
            known = self._joints.get(name)
            if known is not None and isinstance(known.joint, FirstOrder) and name not in self._states:
                continue  # files put them in their places beforehand
            for kind, table in (("joint", self._joints), ("body", self._bodies), ("frame", self._frames)):
                if name in table:
                    raise ModelError(f"{what}: its state would be called {name!r}, as a {kind} is already; give the "
                                     "element another name")


def _units(what: str, units: Any) -> str:
    if not isinstance(units, str):
        raise ModelError(f"{what}: units are a text, such as 'bar', got {units!r}")
    return units


@checked_methods
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
        `reach` [m] is the volume of gas divided by the area of the rod. See
        `bellcrank.mechanism.forces.coordinate_forces`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> ends = (m.ground, "bob", (0.6, 0, 0), (0, 0, 0))
        >>> strut = m.add_gas_spring("strut", *ends, force=300.0, length=0.8, reach=0.9)
        >>> round(float(bc.compile(m, backend="numpy").element_forces([0.3], [0.0])["strut"].force), 3)
        385.714
        """
        what = f"gas spring {name!r}"
        spring = GasSpring(number(what, "force", force, 0.0), number(what, "length", length, 0.0, above=True),
                           number(what, "reach", reach, 0.0, above=True), plain(what, "exponent", exponent, 1.0),
                           number(what, "damping", damping, 0.0))
        self._check_own(what, spring.push, spring.length, spring.reach, spring.damping)
        return self._between(name, first, second, first_point, second_point, spring)

    def add_bump_stop(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                      second_point: Sequence[Number], *, lower: Number | None = None, upper: Number | None = None,
                      stiffness: Number, progression: Number = 0.0, damping: Number = 0.0, onset: Number = 1e-3
                      ) -> Spring:
        """Stops between two points that push when their distance is below `lower` and pull above `upper` [m], by
        ``stiffness d + progression d^3`` at the depth d, and damping; never the other way. See `add_limit` for joints.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> ends = (m.ground, "bob", (0.6, 0, 0), (0, 0, 0))
        >>> stop = m.add_bump_stop("stop", *ends, lower=0.7, stiffness=1e4, progression=1e6)
        >>> round(float(bc.compile(m, backend="numpy").element_forces([0.3], [0.0])["stop"].force), 6)
        2000.0
        """
        what = f"bump stop {name!r}"
        ends = [None if x is None else number(what, label, x, 0.0) for label, x in (("lower", lower), ("upper", upper))]
        if lower is None and upper is None:
            raise ModelError(f"{what}: give a lower or an upper end, or both")
        if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
            raise ModelError(f"{what}: lower {ends[0]:g} is above upper {ends[1]:g}")
        stop = BumpStop(ends[0], ends[1], number(what, "stiffness", stiffness, 0.0),
                        number(what, "damping", damping, 0.0), number(what, "onset", onset, 0.0, above=True),
                        number(what, "progression", progression, 0.0))
        self._check_own(what, *(x for x in vars(stop).values() if x is not None))
        return self._between(name, first, second, first_point, second_point, stop)

    def add_hydraulic_cylinder(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                               second_point: Sequence[Number], *, head_area: Number, rod_area: Number, closed: Number,
                               stroke: Number, dead_volume: Number = 1e-4, bulk_modulus: Number = 1.4e9,
                               leakage: Number = 0.0, friction: Number = 0.0,
                               opening: Number | MachineLaw | None = None, gain: Number = 0.0, supply: Number = 2e7,
                               tank: Number = 1e5,
                               initial: tuple[Number, Number] = (1e5, 1e5)) -> Spring:
        """A hydraulic cylinder between two points. The pressures of both chambers are states in MPa, called
        ``"name head"`` and ``"name rod"``; `initial` are where they begin [Pa].

        Areas [m^2]; `closed` is the distance of the points when it is pushed in [m], to `closed` + `stroke`; dead
        volume of each chamber [m^3], bulk modulus [Pa], leakage past the piston [m^3/(s Pa)], friction [N s/m]. The
        valve: `opening` is a number or a law of the machine between -1 (feeds the rod) and 1 (feeds the head), None for
        shut;
        `gain` [m^3/(s sqrt(Pa))], `supply` and `tank` pressure [Pa]. Stiff: take "radau" or "radau5", or small steps.
        Oil does not cavitate here: where a load pulls at a chamber that is shut, its pressure falls below zero. Let
        `initial`, or ``assemble(u={"lift head": 9.0, ...})`` [MPa], carry the load from the start.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> lift = m.add_hydraulic_cylinder("lift", m.ground, "bob", (0.6, 0, 0), (0, 0, 0), head_area=2e-4,
        ...                                 rod_area=1e-4, closed=0.4, stroke=0.6, initial=(2e5, 1e5))
        >>> system = bc.compile(m, backend="numpy")
        >>> state = system.assemble(q={"hinge": 0.3})
        >>> system.speed_names[1:], round(float(system.element_forces(state)["lift"].force), 9)
        (('lift head.value', 'lift rod.value'), 30.0)
        """
        what = f"hydraulic cylinder {name!r}"
        if not isinstance(initial, (tuple, list)) or len(initial) != 2:
            raise ModelError(f"{what}: initial must be two pressures [Pa], of the head and of the rod, got {initial!r}")
        starts = [number(what, "initial", x) * 1e-6 for x in initial]
        cylinder = ready_made.cylinder(name, opening, head_area=head_area, rod_area=rod_area, closed=closed,
                                       stroke=stroke, dead_volume=dead_volume, bulk_modulus=bulk_modulus,
                                       leakage=leakage, friction=friction, gain=gain, supply=supply, tank=tank)
        self._check_own(what, *vars(cylinder).values())
        self._free(what, cylinder.head, cylinder.rod)
        made = self._between(name, first, second, first_point, second_point,
                             MachineForce(name, CylinderForce(cylinder), -1.0))
        for label, head, start in zip((cylinder.head, cylinder.rod), (True, False), starts, strict=True):
            self.add_state(label, PressureRate(cylinder, head), units="MPa", initial=start)
        return made

    # -- along joints ---------------------------------------------------------------------------
    def add_torsion_bar(self, name: str, joint: str | Mapping[str, float], *, length: Number, diameter: Number,
                        bore: Number = 0.0, shear_modulus: Number = 79e9, damping: Number = 0.0, rest: Number = 0.0,
                        coordinate: int | str | None = None) -> JointForce | JointSum:
        """A torsion bar, round or with a `bore`, on a joint coordinate or on the difference of two ({"left": 1,
        "right": -1}, an anti-roll bar): dimensions [m], shear modulus [Pa].

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> bar = m.add_torsion_bar("bar", "hinge", length=0.5, diameter=0.01)
        >>> round(float(bc.compile(m, backend="numpy").element_forces([0.1], [0.0])["bar"].force), 3)
        -15.512
        """
        what = f"torsion bar {name!r}"
        long, wide, hole, modulus = (number(what, label, x, 0.0, above=label != "bore") for label, x in (
            ("length", length), ("diameter", diameter), ("bore", bore), ("shear_modulus", shear_modulus)))
        if isinstance(wide, float) and isinstance(hole, float) and hole >= wide:
            raise ModelError(f"{what}: the bore {hole:g} leaves nothing of the diameter {wide:g}")
        bar = TorsionBar.of(long, wide, hole, modulus, number(what, "damping", damping, 0.0),
                            number(what, "rest", rest))
        return self._add_joint_force(name, joint, bar, coordinate)

    def add_belt(self, name: str, pulleys: Mapping[str, Number], *, stiffness: Number, pretension: Number = 0.0,
                 damping: Number = 0.0, slack: Number = 0.0) -> JointForce | JointSum:
        """A belt or chain over two pulleys, {joint: radius [m]} with joints on one carrier: both turn the same way, or
        opposite ways where one radius is negative (a crossed belt). Each span has the `stiffness` [N/m] and only pulls;
        a chain has `slack` [m] in place of a pretension. See `bellcrank.mechanism.forces.coordinate_forces`.

        >>> import bellcrank as bc
        >>> m = bc.Mechanism("shafts")
        >>> for name in ("motor", "drum"):
        ...     shaft = m.add_joint(name, bc.Revolute("z"), m.ground, m.add_body(name, bc.Inertia.sphere(1.0, 0.1)))
        >>> belt = m.add_belt("belt", {"motor": 0.1, "drum": 0.2}, stiffness=1e4, pretension=50.0)
        >>> float(bc.compile(m, backend="numpy").element_forces([0.02, 0.0], [0.0, 0.0])["belt"].force)
        -40.0
        """
        what = f"belt {name!r}"
        if not isinstance(pulleys, Mapping) or len(pulleys) != 2:
            raise ModelError(f"{what}: needs two pulleys {{joint: radius}}, got {pulleys!r}")
        belt = Belt(number(what, "stiffness", stiffness, 0.0, above=True), number(what, "pretension", pretension, 0.0),
                    number(what, "damping", damping, 0.0), number(what, "slack", slack, 0.0))
        (one, first), (two, second) = ((joint, number(what, joint, r)) for joint, r in pulleys.items())
        for joint, radius in ((one, first), (two, second)):
            if is_zero(radius):
                raise ModelError(f"{what}: the pulley of {joint!r} has no radius")
        return self._add_joint_force(name, {one: first, two: -second}, belt, None)

    def add_dc_motor(self, name: str, joint: str, *, voltage: Number | MachineLaw, resistance: Number,
                     inductance: Number, constant: Number, gear: Number = 1.0, rotor_inertia: Number = 0.0,
                     friction: Number = 0.0) -> JointForce | JointSum:
        """A direct-current motor with a gear on a joint of one coordinate. Its current is a state [A], ``"name
        current"``; the rotor's inertia [kg m^2] is felt at the joint times the square of the gear's ratio.

        `voltage` [V] is a number or a law of the machine; resistance [ohm], inductance [H], `constant` [N m/A], viscous
        friction of the rotor [N m s/rad].

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> motor = m.add_dc_motor("motor", "hinge", voltage=12.0, resistance=2.0, inductance=1e-3, constant=0.05,
        ...                        gear=20.0)
        >>> system = bc.compile(m, backend="numpy")
        >>> round(float(system.element_forces(system.assemble(u={"motor current": 3.0}))["motor"].force), 9)
        3.0
        """
        motor = ready_made.dc_motor(name, joint, voltage=voltage, resistance=resistance, inductance=inductance,
                                    constant=constant, gear=gear, friction=friction)
        what = f"motor {name!r}"
        rotor = number(what, "rotor_inertia", rotor_inertia, 0.0)
        self._check_own(what, rotor, *vars(motor).values())
        self._free(what, motor.current)
        if not is_zero(rotor):
            new_name(self._armatures, name, "armature")
        made = self.add_joint_force(name, joint, MotorTorque(motor))
        self.add_state(motor.current, CurrentRate(motor), units="A")
        if not is_zero(rotor):
            self.add_armature(name, joint, rotor * (motor.gear * motor.gear))
        return made

    def add_brake(self, name: str, joint: str | Mapping[str, float], *, capacity: Number | MachineLaw,
                  reach: Number = 1e-3, damping: Number = 1e-3, coordinate: int | str | None = None
                  ) -> JointForce | JointSum:
        """Dry friction that truly sticks, up to a `capacity` [N or N m], a number or a law of the machine (a pedal, a
        normal force), on a joint coordinate or a sum of several. It gives by `reach` [m or rad] before it slides, and
        damps that with a time constant `damping` [s]. How far it is bent is a state, ``"name bend"``, 1 where it
        slides. Loads that come and go within four fifths of the capacity do not make it creep.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> brake = m.add_brake("brake", "hinge", capacity=4.0)
        >>> system = bc.compile(m, backend="numpy")
        >>> float(system.element_forces(system.assemble(u={"brake bend": 0.5}))["brake"].force)
        -2.0
        """
        bristle = ready_made.bristle(name, capacity=capacity, reach=reach, damping=damping)
        self._check_own(f"brake {name!r}", *vars(bristle).values())
        self._free(f"brake {name!r}", bristle.bend)
        made = self.add_joint_force(name, joint, BristleForce(bristle), coordinate)
        self.add_state(bristle.bend, BristleRate(bristle))
        return made

    def add_clutch(self, name: str, first: str, second: str, *, capacity: Number | MachineLaw, reach: Number = 1e-3,
                   damping: Number = 1e-3) -> JointForce | JointSum:
        """A clutch between two shafts on one carrier, by their joints: friction that truly sticks against the
        difference of their speeds; see `add_brake`.

        >>> import bellcrank as bc
        >>> m = bc.Mechanism("shafts")
        >>> for name in ("motor", "drum"):
        ...     shaft = m.add_joint(name, bc.Revolute("z"), m.ground, m.add_body(name, bc.Inertia.sphere(1.0, 0.1)))
        >>> clutch = m.add_clutch("clutch", "motor", "drum", capacity=5.0)
        >>> system = bc.compile(m, backend="numpy")
        >>> float(system.element_forces(system.assemble(u={"clutch bend": 1.0}))["clutch"].force)
        -5.0
        """
        for joint in (first, second):
            if not isinstance(joint, str):
                raise ModelError(f"clutch {name!r}: joints go by their names, got {joint!r}")
        if first == second:
            raise ModelError(f"clutch {name!r}: needs two joints, got {first!r} twice; add_brake holds one")
        return self.add_brake(name, {first: 1.0, second: -1.0}, capacity=capacity, reach=reach, damping=damping)

    def add_rolling_resistance(self, name: str, joint: str, *, coefficient: Number, radius: Number,
                               load: Number | MachineLaw, speed: Number = 1e-2) -> JointForce | JointSum:
        """Rolling resistance of a wheel on its joint: the moment ``coefficient load radius`` [N m] against its turning;
        the load [N] is a number or a law of the machine, such as ``lambda at: at.element("tyre").vector.z``.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> rolling = m.add_rolling_resistance("rolling", "hinge", coefficient=0.01, radius=0.3, load=3000.0)
        >>> float(bc.compile(m, backend="numpy").element_forces([0.0], [5.0])["rolling"].force)
        -9.0
        """
        what = f"rolling resistance {name!r}"
        law = RollingResistance(joint, number(what, "coefficient", coefficient, 0.0),
                                number_or_law(what, "load", load, 0.0), number(what, "radius", radius, 0.0),
                                number(what, "speed", speed, 0.0, above=True))
        self._check_own(what, *vars(law).values())
        return self.add_joint_force(name, joint, law)

    # -- on wheels ------------------------------------------------------------------------------
    def add_tyre(self, name: str, wheel: str | Body, *, radius: Number, stiffness: Number, damping: Number = 0.0,
                 mu: Number = 1.0, slope: Number = 20.0, model: str = "brush", c: Number = 1.65, e: Number = 0.0,
                 slowest: Number = 0.1, half_length: Number = 0.0, rolling: Number = 0.0,
                 relaxation: float | tuple[float, float] = 0.0, settling: Number = 0.05,
                 coefficients: Mapping[str, float] | str | Path | None = None, mirrored: bool = False,
                 center: Sequence[float] | None = None, axle: str | Sequence[float] = "y", height: Any = None
                 ) -> Wrench:
        """A tyre on a wheel that turns about the `axle` through its `center` (in its body's frame; the axle points to
        the left where the wheel rolls ahead), on the plane z = 0 or the ground ``height(x, y)`` [m]: a function, a
        `Table` of two arguments, or a height field in the axes of the world.

        `radius` [m], `stiffness` [N/m] and `damping` [N s/m] against the ground. `model` is

        - "brush": `mu` the grip, `slope` the force per load and slip where that begins;
        - "magic": the Magic Formula with these and its shape factors `c` and `e`;
        - "set": the Magic Formula with `coefficients` by the names of tyre property files, such as ``{"FNOMIN":
          4000.0, "PDY1": -1.0, ...}``, or the path of such a file: combined slip, camber, overturning, rolling
          resistance and aligning moment; `mirrored` for a tyre that was measured on the other side of a car.

        The first two share their grip between directions; `half_length` of the contact [m] gives them an aligning
        moment, and `rolling`, a share of the load, rolling resistance. With a `relaxation` length [m], or one ahead and
        one across, slip is transient: how far the tread is bent are the states ``"name ahead"`` and ``"name across"``
        [m], and a standing wheel holds without creep. Without, slip is regularised below the speed `slowest` [m/s].
        See `bellcrank.mechanism.forces.tyre`; ``tyre.law.footprint(at)`` has load, camber and sliding for outputs.

        >>> import bellcrank as bc
        >>> m = bc.Mechanism("wheel")
        >>> wheel = m.add_body("wheel", bc.Inertia.cylinder(15.0, 0.3, 0.2, "y"))
        >>> free = m.add_joint("free", bc.Free(), m.ground, wheel)
        >>> tyre = m.add_tyre("tyre", "wheel", radius=0.3, stiffness=2e5)
        >>> rolls, slides = 10.0 / 0.3, -0.1
        >>> found = bc.compile(m, backend="numpy").element_forces(
        ...     [1, 0, 0, 0, 0, 0, 0.285], [0, rolls, 0, 10.0, slides, 0])["tyre"]
        >>> found.vector.round(1) + 0.0
        array([   0. ,  560.9, 3000. ])
        """
        body = self.body(wheel)
        center = self._point(f"tyre {name!r}", "center", body.index, center)
        law = ready_made.tyre(name, body.name, radius=radius, stiffness=stiffness, damping=damping, mu=mu,
                              slope=slope, model=model, c=c, e=e, slowest=slowest, half_length=half_length,
                              rolling=rolling, relaxation=relaxation, settling=settling, coefficients=coefficients,
                              mirrored=mirrored, center=center, axle=axle, height=height)
        self._check_own(f"tyre {name!r}", *vars(law).values())
        self._free(f"tyre {name!r}", *(law.bent if law.transient else ()))
        made = self.add_wrench(name, wheel, at=law.center, law=law)
        if law.transient:
            for k, label in enumerate(law.bent):
                self.add_state(label, TyreRate(law, k), units="m")
        return made
