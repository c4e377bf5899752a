"""The force elements of a `Mechanism` that act along joint coordinates."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import new_name, number, tried_force, tried_law, tried_potential
from bellcrank.mechanism.forces import (
    Actuator,
    Armature,
    Friction,
    LawForce,
    Limit,
    LinearSpring,
    MachineForce,
    PotentialSpring,
    Servo,
)
from bellcrank.mechanism.forces.element import Along, TableLaw, required_arguments
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.mechanism.forces.motors import EVERY
from bellcrank.mechanism.joints.quaternion_joints import Spherical
from bellcrank.mechanism.parts import JointDrive, JointForce, JointSum, Law2
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number, is_zero

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Connection

__all__ = ["JointForceElements"]


@checked_methods
class JointForceElements:
    """What acts along the joints of a `Mechanism`.

    Springs, forces, friction, stops and servos take one joint, or a sum of joint coordinates as a mapping
    {joint: factor} (``joint.coordinate`` for joints with several): they act on the sum of factor * coordinate, and
    every coordinate feels their force times its factor (one whose factor is zero has no part in it). So do cables,
    belts and differentials.
    """

    _joints: dict[str, Connection]

    def __init__(self) -> None:
        super().__init__()
        self._joint_forces: dict[str, JointForce] = {}
        self._joint_sums: dict[str, JointSum] = {}
        self._drives: dict[str, JointDrive] = {}
        self._armatures: dict[str, Armature] = {}

    @abstractmethod
    def joint(self, name: str) -> Connection:
        """The joint called `name`."""

    @abstractmethod
    def _check_own(self, what: str, *values: Number) -> None:
        """Refuse parameters of other mechanisms."""

    # -- what is there ------------------------------------------------------------------------
    @property
    def joint_forces(self) -> tuple[JointForce, ...]:
        """Springs, friction, limits, servos and laws on single joint coordinates."""
        return tuple(self._joint_forces.values())

    @property
    def joint_sums(self) -> tuple[JointSum, ...]:
        """The same on sums of joint coordinates."""
        return tuple(self._joint_sums.values())

    @property
    def drives(self) -> tuple[JointDrive, ...]:
        """Actuators with limits."""
        return tuple(self._drives.values())

    @property
    def armatures(self) -> tuple[Armature, ...]:
        """Rotor inertias reflected to joints."""
        return tuple(self._armatures.values())

    # -- adding -------------------------------------------------------------------------------
    def _spring_law(self, name: str, what: str, stiffness: Number | None, damping: Number | None, rest: Number,
                    law: Law2 | MachineLaw | Table | None, potential: Callable[[Number], Number] | None,
                    label: str) -> Along:
        """The law of a spring from the arguments it may be described with."""
        linear = LinearSpring(number(what, "stiffness", 0.0 if stiffness is None else stiffness),
                              number(what, "damping", 0.0 if damping is None else damping), number(what, label, rest))
        self._check_own(what, linear.stiffness, linear.damping, rest)
        if law is None and potential is None:
            if stiffness is None and damping is None:
                laws = ", a law or a potential" if label == "length" else " or a potential"
                raise ModelError(f"{what}: give stiffness, damping{laws}; it would do nothing")
            return linear
        if law is not None:
            if potential is not None:
                raise ModelError(f"{what}: give either a law or a potential, not both")
            if not all(is_zero(x) for x in (linear.stiffness, linear.damping, linear.rest)):
                raise ModelError(f"{what}: a law takes the place of stiffness, damping and {label}; give one or the "
                                 "other")
            return self._function_force(name, what, law, -1.0)
        if not all(is_zero(x) for x in (linear.stiffness, linear.rest)):
            raise ModelError(f"{what}: a potential takes the place of stiffness and {label}; give one or the other")
        assert potential is not None
        return PotentialSpring(tried_potential(potential, what), linear.damping)

    @staticmethod
    def _function_force(name: str, what: str, law: Any, sign: float) -> Along:
        """The force of a function: of a displacement and its rate, or of the machine."""
        if isinstance(law, Table):
            law = TableLaw(law)
        if not callable(law):
            raise ModelError(f"{what}: a law is a function or a Table, got {law!r}; for a number, write "
                             "lambda at: number")
        if required_arguments(law) == 1:
            return MachineForce(name, law, sign)
        return LawForce(tried_force(law, what), sign)

    def add_joint_spring(self, name: str, joint: str | Mapping[str, Number], *, stiffness: Number | None = None,
                         damping: Number | None = None, rest: Number = 0.0, coordinate: int | str | None = None,
                         potential: Callable[[Number], Number] | None = None) -> JointForce | JointSum:
        """A spring and damper on a joint coordinate, or on a sum of several {joint: factor}: the joint force is
        ``-stiffness (q - rest) - damping u``; with ``potential(q)`` [J] in place of stiffness and rest, minus its
        derivative, less ``damping u``.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> spring = m.add_joint_spring("spring", "hinge", stiffness=10.0, damping=2.0, rest=0.1)
        >>> float(bc.compile(m, backend="numpy").element_forces([0.3], [0.5])["spring"].force)
        -3.0
        """
        along = self._spring_law(name, f"joint spring {name!r}", stiffness, damping, rest, None, potential, "rest")
        return self._add_joint_force(name, joint, along, coordinate)

    def add_joint_force(self, name: str, joint: str | Mapping[str, Number], law: Law2 | MachineLaw | Table,
                        coordinate: int | str | None = None) -> JointForce | JointSum:
        """A force along a joint coordinate or a sum of several [N or N m], written with `bellcrank.math`:

        - ``law(q, u)`` of the coordinate and its speed, or a `Table` of the coordinate or of both (one of the speed
          alone, such as measured friction, is ``lambda q, u: -table(u)``);
        - ``law(at)`` of the whole machine: ``at.q("crank")``, ``at.u("crank")``, ``at.position(body, point)``,
          ``at.velocity(body, point)``, ``at.axes(body)``, ``at.omega(body)``, ``at.t``, ``at.parameter("k")``,
          ``at.state("pressure")``, ``at.element("strut").force`` (or length, rate, power, energy), by name; vectors
          are in world axes.

        The speeds of ball and free joints have no coordinates: laws of the machine act along them, ``coordinate="wx"``.
        Its energy is not known, and all of its power counts as not stored; see `add_joint_spring` (with a potential),
        `add_friction` and `add_limit` for laws whose energy is.

        >>> import bellcrank as bc
        >>> m = bc.load("double_pendulum")
        >>> first, second = (j.name for j in m.joints)
        >>> follow = m.add_joint_force("follow", second, lambda at: 5.0 * (at.q(first) - at.q(second)))
        >>> round(float(bc.compile(m).element_forces([0.3, 0.1], [0.0, 0.0])["follow"].force), 12)
        1.0
        """
        what = f"joint force {name!r}"
        return self._add_joint_force(name, joint, self._function_force(name, what, law, 1.0), coordinate)

    def add_friction(self, name: str, joint: str | Mapping[str, Number], *, coulomb: Number = 0.0,
                     viscous: Number = 0.0, speed: Number = 1e-3, static: Number | None = None,
                     stribeck: Number = 1e-2, coordinate: int | str | None = None) -> JointForce | JointSum:
        """Friction on a joint coordinate or a sum of several: ``-coulomb tanh(u / speed) - viscous u``, with `static`
        friction above `coulomb` near zero speed if given. `speed` says where dry friction is fully there; the smaller,
        the stiffer the equations. Units: see `bellcrank.mechanism.forces.Friction`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> friction = m.add_friction("friction", "hinge", coulomb=2.0, viscous=0.1)
        >>> float(bc.compile(m, backend="numpy").element_forces([0.0], [10.0])["friction"].force)
        -3.0
        """
        what = f"friction {name!r}"
        friction = Friction(number(what, "coulomb", coulomb, 0.0), number(what, "viscous", viscous, 0.0),
                            number(what, "speed", speed, 0.0, above=True),
                            None if static is None else number(what, "static", static, 0.0),
                            number(what, "stribeck", stribeck, 0.0, above=True))
        if isinstance(friction.static, float) and isinstance(friction.coulomb, float) \
                and friction.static < friction.coulomb:
            raise ModelError(f"{what}: static {friction.static:g} is less than coulomb {friction.coulomb:g}")
        return self._add_joint_force(name, joint, friction, coordinate)

    def add_limit(self, name: str, joint: str | Mapping[str, Number], lower: Number | None = None,
                  upper: Number | None = None, *, stiffness: Number, damping: Number = 0.0, onset: Number = 1e-3,
                  coordinate: int | str | None = None) -> JointForce | JointSum:
        """Compliant stops of a joint coordinate, or of a sum of several [m or rad]: inside them a spring and damper
        push back and never pull. See `bellcrank.mechanism.forces.Limit`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> stop = m.add_limit("stop", "hinge", upper=0.5, stiffness=1000.0)
        >>> float(bc.compile(m, backend="numpy").element_forces([0.75], [0.0])["stop"].force)
        -250.0
        """
        what = f"limit {name!r}"
        ends = [None if x is None else number(what, label, x) for label, x in (("lower", lower), ("upper", upper))]
        if lower is None and upper is None:
            raise ModelError(f"{what}: give a lower or an upper end, or both")
        if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
            raise ModelError(f"{what}: lower {ends[0]:g} is above upper {ends[1]:g}")
        limit = Limit(ends[0], ends[1], number(what, "stiffness", stiffness, 0.0, above=True),
                      number(what, "damping", damping, 0.0), number(what, "onset", onset, 0.0, above=True))
        return self._add_joint_force(name, joint, limit, coordinate)

    def add_servo(self, name: str, joint: str | Mapping[str, Number], *, target: Any = 0.0, target_rate: Any = 0.0,
                  stiffness: Number = 0.0, damping: Number = 0.0, offset: Any = 0.0,
                  limit: Number | tuple[Number, Number] | None = None, coordinate: int | str | None = None
                  ) -> JointForce | JointSum:
        """A drive that follows a target: the force on a joint coordinate, or on a sum of several, is
        ``stiffness (target - q) + damping (target_rate - u) + offset``, within ±`limit` or (lower, upper) [N or N m].

        `target` [m or rad], `target_rate` [m/s or rad/s] and `offset` [N or N m] are numbers, parameters or functions
        of time. The force adds to the input tau of the joint. Energy: see `bellcrank.mechanism.forces.Servo`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> aim = m.parameter("aim", 0.0)
        >>> servo = m.add_servo("servo", "hinge", target=aim, stiffness=200.0, damping=20.0, limit=50.0)
        >>> pendulum = bc.compile(m).with_parameters(aim=0.3)
        >>> end = pendulum.simulate(([0.0], [0.0]), duration=3.0).q[-1]
        >>> bool(abs(end - 0.3) < 0.02)  # its weight pulls it back a little
        True
        """
        what = f"servo {name!r}"
        aims = [tried_law(x, f"{what}: {label}") if callable(x) else number(what, label, x)
                for label, x in (("target", target), ("target_rate", target_rate), ("offset", offset))]
        servo = Servo(number(what, "stiffness", stiffness), number(what, "damping", damping), *aims,
                      *((None, None) if limit is None else _ends(what, limit)))
        return self._add_joint_force(name, joint, servo, coordinate)

    def add_actuator(self, name: str, joint: str, limit: Number | tuple[Number, Number], *,
                     no_load_speed: Number | None = None, coordinate: int | str | None = None) -> JointDrive:
        """Limit the joint force tau of a coordinate to ±`limit` or (lower, upper) [N or N m], or to the speed-torque
        line of a motor with the `no_load_speed` [m/s or rad/s].

        `forward_dynamics` and what follows from it see the limited force; `bellcrank.analyze.actuator_forces` returns
        it. Inverse dynamics says what is needed, without limits. The joint is not cut to close loops.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> motor = m.add_actuator("motor", "hinge", 3.0)
        >>> float(bc.compile(m, backend="numpy").element_forces([0.0], [1.0], {"hinge": 8.0})["motor"].force)
        3.0
        """
        new_name(self._drives, name, "actuator")
        what = f"actuator {name!r}"
        lower, upper = _ends(what, limit)
        if (isinstance(lower, float) and lower > 0.0) or (isinstance(upper, float) and upper < 0.0):
            raise ModelError(f"{what}: its limits {lower} and {upper} must leave the force zero")
        actuator = Actuator(upper, None if no_load_speed is None else
                            number(what, "no_load_speed", no_load_speed, 0.0, above=True),
                            lower if isinstance(limit, (tuple, list)) else None)
        self._check_own(what, lower, upper, no_load_speed)
        at = self._coordinate(joint, coordinate, speeds=True)
        for other in self._drives.values():
            if (other.joint, other.coordinate) == (joint, at):
                raise ModelError(f"{what}: joint {joint!r} has the actuator {other.name!r} already")
        self._drives[name] = JointDrive(name, joint, at, actuator)
        return self._drives[name]

    def add_armature(self, name: str, joint: str, inertia: Number, coordinate: int | str | None = None) -> Armature:
        """The inertia of a rotor as felt at a joint coordinate [kg m^2 for turns, kg for slides]: r * r * J for a rotor
        with the inertia J behind a gear of ratio r.

        It is added to the diagonal of the joint-space mass matrix; several on one coordinate add up. The joint is not
        cut to close loops. A ball joint has it in all directions alike. What it means and what it leaves out:
        `bellcrank.mechanism.forces.Armature`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> bare = bc.compile(m).mass_matrix([0.0])
        >>> rotor = m.add_armature("rotor", "hinge", inertia=0.5)
        >>> (bc.compile(m).mass_matrix([0.0]) - bare).round(12)
        array([[0.5]])
        """
        new_name(self._armatures, name, "armature")
        what = f"armature {name!r}"
        value = number(what, "inertia", inertia, 0.0, above=True)
        self._check_own(what, value)
        ball = isinstance(self.joint(joint).joint, Spherical) and coordinate is None
        self._armatures[name] = Armature(name, joint, EVERY if ball else self._coordinate(joint, coordinate), value)
        return self._armatures[name]

    def _add_joint_force(self, name: str, joint: str | Mapping[str, Number], along: Along,
                         coordinate: int | str | None) -> JointForce | JointSum:
        new_name(self._joint_forces, name, "joint force")
        new_name(self._joint_sums, name, "joint force")
        self._check_own(f"joint force {name!r}", *vars(along).values())
        if isinstance(joint, Mapping):
            if coordinate is not None:
                raise ModelError(f"joint force {name!r}: name coordinates of a sum as joint.coordinate")
            many = JointSum(name, self._sum_terms(f"joint force {name!r}", joint), along)
            self._joint_sums[name] = many
            return many
        if not isinstance(joint, str):
            raise ModelError(f"joint force {name!r}: acts on a joint, by its name, or on a sum {{joint: factor}}, got "
                             f"{joint!r}")
        force = JointForce(name, joint, self._coordinate(joint, coordinate, speeds=not along.placed), along)
        self._joint_forces[name] = force
        return force

    def _sum_terms(self, what: str, factors: Mapping[str, Number]) -> tuple[tuple[str, int, Number], ...]:
        """Joint, coordinate and factor of every part of a sum; a factor of zero has no part in it."""
        terms = []
        for key, factor in factors.items():
            if not isinstance(key, str):
                raise ModelError(f"{what}: a sum names its joints, {{joint: factor}}, got {key!r}")
            joint, dot, coordinate = key.rpartition(".")
            if key in self._joints or not dot:
                joint, dot = key, ""
            value = number(what, f"the factor of {key!r}", factor)
            self._check_own(what, value)
            terms.append((joint, self._coordinate(joint, coordinate if dot else None), value))
        if len({(joint, i) for joint, i, _ in terms}) < len(terms):
            raise ModelError(f"{what} names a coordinate twice")
        if not terms:
            raise ModelError(f"{what}: the sum names no joint")
        terms = [term for term in terms if not is_zero(term[2])]
        if not terms:
            raise ModelError(f"{what}: all factors of the sum are zero; it would do nothing")
        return tuple(terms)

    def _coordinate(self, joint: str, coordinate: int | str | None, speeds: bool = False) -> int:
        """The index of a joint's coordinate, which must be one that has a rate of its own; with `speeds`, that of a
        speed where it has none."""
        kind = self.joint(joint).joint
        simple = kind.nq == kind.nu
        if kind.nu == 0 or not (simple or speeds):
            raise ModelError(f"joint {joint!r}: a {type(kind).__name__} has no single coordinates to act on" + (
                f"; along its speeds {', '.join(kind.speed_names)} act laws of the machine, law(at), dampers, friction "
                "and actuators; between its bodies, bushings" if kind.nu else ""))
        names = kind.coordinate_names() if simple else kind.speed_names
        if coordinate is None:
            if kind.nu > 1:
                raise ModelError(f"joint {joint!r} has the {'coordinates' if simple else 'speeds'} {', '.join(names)}; "
                                 "say which one is meant")
            return 0
        if isinstance(coordinate, str) and coordinate in names:
            return names.index(coordinate)
        if not isinstance(coordinate, int) or not 0 <= coordinate < len(names):
            raise ModelError(f"joint {joint!r}: no coordinate {coordinate!r}; it has {', '.join(names)}")
        return coordinate


def _ends(what: str, limit: Number | tuple[Number, Number]) -> tuple[Number, Number]:
    """Lower and upper end of a force, from both or from its largest size."""
    if not isinstance(limit, (tuple, list)):
        size = number(what, "limit", limit, 0.0, above=True)
        return -size, size
    if len(limit) != 2:
        raise ModelError(f"{what}: limit is a number or (lower, upper), got {limit!r}")
    lower, upper = number(what, "the lower limit", limit[0]), number(what, "the upper limit", limit[1])
    if isinstance(lower, float) and isinstance(upper, float) and lower >= upper:
        raise ModelError(f"{what}: the lower limit {lower:g} is not below the upper one {upper:g}")
    return lower, upper
