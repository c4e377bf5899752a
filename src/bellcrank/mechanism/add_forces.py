"""The force elements of a `Mechanism`: adding them, and what is there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from bellcrank.engine.scalar import Number
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import new_name, number, triple, try_force, try_potential
from bellcrank.mechanism.elements import BodyDrag, Drive, FrameBushing, JointForce, Law2, Spring
from bellcrank.mechanism.forces import (
    Actuator,
    Armature,
    Bushing,
    Drag,
    Friction,
    LawForce,
    Limit,
    LinearSpring,
    PotentialSpring,
    Wrench,
)
from bellcrank.mechanism.forces.armature import EVERY
from bellcrank.mechanism.forces.base import Along
from bellcrank.mechanism.joints.spherical import Spherical
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Body, Connection

__all__ = ["ForceElements"]

_HERE = Pose()
_ZERO = (0.0, 0.0, 0.0)


class ForceElements:
    """What acts on the bodies and joints of a `Mechanism`."""

    name: str

    def __init__(self) -> None:
        self._wrenches: dict[str, Wrench] = {}
        self._springs: dict[str, Spring] = {}
        self._bushings: dict[str, FrameBushing] = {}
        self._drags: dict[str, BodyDrag] = {}
        self._joint_forces: dict[str, JointForce] = {}
        self._drives: dict[str, Drive] = {}
        self._armatures: dict[str, Armature] = {}

    @abstractmethod
    def body(self, name: str | Body) -> Body:
        """The body called `name`."""

    @abstractmethod
    def joint(self, name: str) -> Connection:
        """The joint called `name`."""

    @abstractmethod
    def _check_own(self, what: str, *values: Number) -> None:
        """Refuse parameters of other mechanisms."""

    # -- what is there ------------------------------------------------------------------------
    @property
    def wrenches(self) -> tuple[Wrench, ...]:
        return tuple(self._wrenches.values())

    @property
    def springs(self) -> tuple[Spring, ...]:
        """Springs between points, linear or not."""
        return tuple(self._springs.values())

    @property
    def bushings(self) -> tuple[FrameBushing, ...]:
        return tuple(self._bushings.values())

    @property
    def drags(self) -> tuple[BodyDrag, ...]:
        return tuple(self._drags.values())

    @property
    def joint_forces(self) -> tuple[JointForce, ...]:
        """Springs, friction, limits and laws on joint coordinates."""
        return tuple(self._joint_forces.values())

    @property
    def drives(self) -> tuple[Drive, ...]:
        """Actuators with limits."""
        return tuple(self._drives.values())

    @property
    def armatures(self) -> tuple[Armature, ...]:
        """Rotor inertias reflected to joints."""
        return tuple(self._armatures.values())

    # -- on bodies ----------------------------------------------------------------------------
    def add_wrench(self, name: str, body: str | Body, *, force: Sequence[Number] = _ZERO,
                   moment: Sequence[Number] = _ZERO, at: Sequence[Number] = _ZERO, axes: str = "world") -> Wrench:
        """A force [N] and moment [N m] on a body at the point `at` (body coordinates).

        Entries are numbers, parameters or functions of time; `axes` is "world" or "body".
        """
        new_name(self._wrenches, name, "wrench")
        what = f"wrench {name!r}"
        if axes not in ("world", "body"):
            raise ModelError(f"{what}: axes must be 'world' or 'body', got {axes!r}")
        wrench = Wrench(name, self._moving_body(what, body), triple(moment, f"{what}: moment", functions=True),
                        triple(force, f"{what}: force", functions=True), triple(at, f"{what}: at"), axes)
        self._check_own(what, *wrench.moment, *wrench.force, *wrench.at)
        self._wrenches[name] = wrench
        return wrench

    def add_drag(self, name: str, body: str | Body, *, coefficient: Number = 0.0, area: Number = 1.0,
                 density: Number = 1.2, at: Sequence[Number] = _ZERO, turn_linear: Number = 0.0,
                 turn_quadratic: Number = 0.0, wind: Sequence[Number] = _ZERO) -> BodyDrag:
        """Drag of a body: the force ``-density coefficient area / 2 |v| v`` at the point `at` (body coordinates), v its
        velocity through the air, and the moment ``-(turn_linear + turn_quadratic |omega|) omega``.

        `wind` is the velocity of the air [m/s] in world axes; its entries are numbers, parameters or functions of time.
        Units: see `bellcrank.mechanism.forces.Drag`.
        """
        new_name(self._drags, name, "drag")
        what = f"drag {name!r}"
        numbers = {label: number(what, label, value, 0.0) for label, value in (
            ("coefficient", coefficient), ("area", area), ("density", density), ("turn_linear", turn_linear),
            ("turn_quadratic", turn_quadratic))}
        drag = Drag(**numbers, wind=triple(wind, f"{what}: wind", functions=True))
        made = BodyDrag(name, self._moving_body(what, body), triple(at, f"{what}: at"), drag)
        self._check_own(what, *made.at, *numbers.values(), *drag.wind)
        self._drags[name] = made
        return made

    def _moving_body(self, what: str, body: str | Body) -> int:
        target = self.body(body)
        if target.index == 0:
            raise ModelError(f"{what}: the ground does not move; apply the force to a body")
        return target.index

    # -- between bodies -----------------------------------------------------------------------
    def add_spring(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                   second_point: Sequence[Number], *, stiffness: Number = 0.0, damping: Number = 0.0,
                   length: Number = 0.0, law: Law2 | None = None,
                   potential: Callable[[Number], Number] | None = None) -> Spring:
        """A spring and damper between two points, each in its own body's frame.

        The tension is ``stiffness * (distance - length) + damping * rate`` [N]; or, nonlinear, the derivative of
        ``potential(distance)`` [J] plus ``damping * rate``; or ``law(distance, rate)`` [N], whose energy is unknown and
        not counted. Functions are written with `bellcrank.math`.

        >>> import bellcrank as bc
        >>> m = bc.load("four_bar")
        >>> cord = m.add_spring("cord", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), potential=lambda x: 4.0 * x**3)
        >>> cord.law(0.5, 0.0)
        3.0
        """
        new_name(self._springs, name, "spring")
        what = f"spring {name!r}"
        along = self._spring_law(what, stiffness, damping, length, law, potential, "length")
        ends = triple(first_point, what), triple(second_point, what)
        self._check_own(what, *ends[0], *ends[1])
        spring = Spring(name, self.body(first).index, self.body(second).index, *ends, along)
        self._springs[name] = spring
        return spring

    def _spring_law(self, what: str, stiffness: Number, damping: Number, rest: Number, law: Law2 | None,
                    potential: Callable[[Number], Number] | None, label: str) -> Along:
        """The law of a spring from the arguments it may be described with."""
        linear = LinearSpring(number(what, "stiffness", stiffness), number(what, "damping", damping),
                              number(what, label, rest))
        self._check_own(what, stiffness, damping, rest)
        if law is None and potential is None:
            return linear
        if law is not None:
            if potential is not None:
                raise ModelError(f"{what}: give either a law or a potential, not both")
            if any(type(x) is not float or x != 0.0 for x in (linear.stiffness, linear.damping, linear.rest)):
                raise ModelError(f"{what}: a law takes the place of stiffness, damping and {label}; give one or the "
                                 "other")
            try_force(law, what)
            return LawForce(law, -1.0)
        if any(type(x) is not float or x != 0.0 for x in (linear.stiffness, linear.rest)):
            raise ModelError(f"{what}: a potential takes the place of stiffness and {label}; give one or the other")
        assert potential is not None
        try_potential(potential, what)
        return PotentialSpring(potential, linear.damping)

    def add_bushing(self, name: str, first: str | Body, second: str | Body, first_pose: Pose = _HERE,
                    second_pose: Pose = _HERE, *, stiffness: Sequence[Number] = _ZERO,
                    turn_stiffness: Sequence[Number] = _ZERO, damping: Sequence[Number] = _ZERO,
                    turn_damping: Sequence[Number] = _ZERO) -> FrameBushing:
        """A bushing between a frame on each of two bodies, at rest where the frames coincide.

        Three numbers each, along the axes of the first frame: `stiffness` [N/m] and `damping` [N s/m] against
        displacement, `turn_stiffness` [N m/rad] and `turn_damping` [N m s/rad] against rotation. How large rotations
        are measured: see `bellcrank.mechanism.forces.Bushing`.
        """
        new_name(self._bushings, name, "bushing")
        what = f"bushing {name!r}"
        for pose in (first_pose, second_pose):
            if not isinstance(pose, Pose):
                raise ModelError(f"{what}: poses must be bellcrank.Pose, got {type(pose).__name__}")
        parts = []
        for label, values in (("stiffness", stiffness), ("turn_stiffness", turn_stiffness), ("damping", damping),
                              ("turn_damping", turn_damping)):
            entries = triple(values, f"{what}: {label}")
            parts.append(tuple(number(what, label, x, 0.0) for x in entries))
        one, other = self.body(first), self.body(second)
        if one is other:
            raise ModelError(f"{what} connects body {one.name!r} with itself")
        self._check_own(what, *(x for part in parts for x in part), *first_pose.position, *second_pose.position)
        made = FrameBushing(name, one.index, other.index, first_pose, second_pose, Bushing(*parts))
        self._bushings[name] = made
        return made

    # -- on joints ----------------------------------------------------------------------------
    def add_joint_spring(self, name: str, joint: str, *, stiffness: Number = 0.0, damping: Number = 0.0,
                         rest: Number = 0.0, coordinate: int | str | None = None,
                         potential: Callable[[Number], Number] | None = None) -> JointForce:
        """A spring and damper on a joint coordinate: the joint force is ``-stiffness (q - rest) - damping u``; with
        ``potential(q)`` [J] in place of stiffness and rest, minus its derivative, less ``damping u``."""
        along = self._spring_law(f"joint spring {name!r}", stiffness, damping, rest, None, potential, "rest")
        return self._add_joint_force(name, joint, along, coordinate)

    def add_joint_force(self, name: str, joint: str, law: Law2, coordinate: int | str | None = None) -> JointForce:
        """A force along a joint coordinate, ``law(q, u)``, written with `bellcrank.math`. Its energy is not known; see
        `add_joint_spring` (with a potential), `add_friction` and `add_limit` for laws whose energy is."""
        try_force(law, f"joint force {name!r}")
        return self._add_joint_force(name, joint, LawForce(law), coordinate)

    def add_friction(self, name: str, joint: str, *, coulomb: Number = 0.0, viscous: Number = 0.0,
                     speed: Number = 1e-3, static: Number | None = None, stribeck: Number = 1e-2,
                     coordinate: int | str | None = None) -> JointForce:
        """Friction on a joint coordinate: ``-coulomb tanh(u / speed) - viscous u``, with `static` friction above
        `coulomb` near zero speed if given. `speed` says where dry friction is fully there; the smaller, the stiffer
        the equations. Units: see `bellcrank.mechanism.forces.Friction`."""
        what = f"friction {name!r}"
        friction = Friction(number(what, "coulomb", coulomb, 0.0), number(what, "viscous", viscous, 0.0),
                            number(what, "speed", speed, 0.0, above=True),
                            None if static is None else number(what, "static", static, 0.0),
                            number(what, "stribeck", stribeck, 0.0, above=True))
        if isinstance(friction.static, float) and isinstance(friction.coulomb, float) \
                and friction.static < friction.coulomb:
            raise ModelError(f"{what}: static {friction.static:g} is less than coulomb {friction.coulomb:g}")
        return self._add_joint_force(name, joint, friction, coordinate)

    def add_limit(self, name: str, joint: str, lower: Number | None = None, upper: Number | None = None, *,
                  stiffness: Number, damping: Number = 0.0, onset: Number = 1e-3,
                  coordinate: int | str | None = None) -> JointForce:
        """Compliant stops of a joint coordinate [m or rad]: inside them a spring and damper push back and never pull.
        See `bellcrank.mechanism.forces.Limit`."""
        what = f"limit {name!r}"
        ends = [None if x is None else number(what, label, x) for label, x in (("lower", lower), ("upper", upper))]
        if lower is None and upper is None:
            raise ModelError(f"{what}: give a lower or an upper end, or both")
        if isinstance(ends[0], float) and isinstance(ends[1], float) and ends[0] > ends[1]:
            raise ModelError(f"{what}: lower {ends[0]:g} is above upper {ends[1]:g}")
        limit = Limit(ends[0], ends[1], number(what, "stiffness", stiffness, 0.0, above=True),
                      number(what, "damping", damping, 0.0), number(what, "onset", onset, 0.0, above=True))
        return self._add_joint_force(name, joint, limit, coordinate)

    def add_actuator(self, name: str, joint: str, limit: Number, *, no_load_speed: Number | None = None,
                     coordinate: int | str | None = None) -> Drive:
        """Limit the joint force tau of a coordinate to ±`limit` [N or N m], or to the speed-torque line of a motor
        with the `no_load_speed` [m/s or rad/s].

        `forward_dynamics` and what follows from it see the limited force; `System.actuator_forces` returns it. Inverse
        dynamics says what is needed, without limits. The joint is not cut to close loops.
        """
        new_name(self._drives, name, "actuator")
        what = f"actuator {name!r}"
        actuator = Actuator(number(what, "limit", limit, 0.0, above=True), None if no_load_speed is None else
                            number(what, "no_load_speed", no_load_speed, 0.0, above=True))
        self._check_own(what, limit, no_load_speed)
        at = self._coordinate(joint, coordinate)
        for other in self._drives.values():
            if (other.joint, other.coordinate) == (joint, at):
                raise ModelError(f"{what}: joint {joint!r} has the actuator {other.name!r} already")
        self._drives[name] = Drive(name, joint, at, actuator)
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

    def _add_joint_force(self, name: str, joint: str, along: Along, coordinate: int | str | None) -> JointForce:
        new_name(self._joint_forces, name, "joint force")
        self._check_own(f"joint force {name!r}", *vars(along).values())
        force = JointForce(name, joint, self._coordinate(joint, coordinate), along)
        self._joint_forces[name] = force
        return force

    def _coordinate(self, joint: str, coordinate: int | str | None) -> int:
        """The index of a joint's coordinate, which must be one that has a rate of its own."""
        kind = self.joint(joint).joint
        names = kind.coordinate_names()
        if kind.nq != kind.nu or kind.nu == 0:
            raise ModelError(f"joint {joint!r}: a {type(kind).__name__} has no single coordinates to act on")
        if coordinate is None:
            if kind.nq > 1:
                raise ModelError(f"joint {joint!r} has the coordinates {', '.join(names)}; say which one is meant")
            return 0
        if isinstance(coordinate, str) and coordinate in names:
            return names.index(coordinate)
        if not isinstance(coordinate, int) or not 0 <= coordinate < len(names):
            raise ModelError(f"joint {joint!r}: no coordinate {coordinate!r}; it has {', '.join(names)}")
        return coordinate
