"""The force elements of a `Mechanism`: adding them, and what is there."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.add_joint_forces import JointForceElements
from bellcrank.mechanism.checks import new_name, number, triple
from bellcrank.mechanism.forces import Bushing, Drag, Wrench
from bellcrank.mechanism.forces.element import required_arguments
from bellcrank.mechanism.forces.machine_force import MachineLaw
from bellcrank.mechanism.parts import BodyDrag, FrameBushing, Law2, Spring
from bellcrank.mechanism.pose import Pose
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Number, is_zero

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Body

__all__ = ["ForceElements", "point_needed"]

_HERE = Pose()
_ZERO = (0.0, 0.0, 0.0)


def point_needed(what: str, body: Body) -> ModelError:
    """What to say of a force without a point, on a body whose frame is the world's."""
    return ModelError(f"{what} must be given: body {body.name!r} is in design position (its joints are given `at` "
                      "global points), and the origin of its frame is the world's. Give the point in world coordinates "
                      f"of the design position; the centre of mass is {body.inertia.com}")


@checked_methods
class ForceElements(JointForceElements):
    """What acts on the bodies and joints of a `Mechanism`."""

    name: str

    def __init__(self) -> None:
        super().__init__()
        self._wrenches: dict[str, Wrench] = {}
        self._springs: dict[str, Spring] = {}
        self._bushings: dict[str, FrameBushing] = {}
        self._drags: dict[str, BodyDrag] = {}
        #: forces at the origin of their body's frame, because no point was given: by the body's index
        self._at_origin: dict[int, str] = {}

    @abstractmethod
    def body(self, name: str | Body) -> Body:
        """The body called `name`."""

    @property
    @abstractmethod
    def bodies(self) -> tuple[Body, ...]:
        """All bodies but the ground."""

    @abstractmethod
    def _check_pose(self, what: str, pose: Pose) -> None:
        """Refuse parameters of other mechanisms, and what is no rotation."""

    @abstractmethod
    def in_design_position(self, body: int) -> bool:
        """Whether the frame of a body, by its index, is the world's."""

    # -- what is there ------------------------------------------------------------------------
    @property
    def wrenches(self) -> tuple[Wrench, ...]:
        """All forces and moments on bodies, tyres included."""
        return tuple(self._wrenches.values())

    @property
    def springs(self) -> tuple[Spring, ...]:
        """Springs between points, linear or not."""
        return tuple(self._springs.values())

    @property
    def bushings(self) -> tuple[FrameBushing, ...]:
        """All bushings between frames."""
        return tuple(self._bushings.values())

    @property
    def drags(self) -> tuple[BodyDrag, ...]:
        """Drag of bodies."""
        return tuple(self._drags.values())

    @property
    def force_elements(self) -> tuple[Any, ...]:
        """All force elements that have a name: those on joints, between bodies, on bodies, and actuators."""
        return (*self.joint_forces, *self.joint_sums, *self.springs, *self.bushings, *self.drags, *self.wrenches,
                *self.drives)

    # -- on bodies ----------------------------------------------------------------------------
    def add_wrench(self, name: str, body: str | Body, *, force: Sequence[Number] = _ZERO,
                   moment: Sequence[Number] = _ZERO, at: Sequence[Number] | None = None, axes: str = "world",
                   law: MachineLaw | None = None) -> Wrench:
        """A force [N] and moment [N m] on a body at the point `at` (body coordinates).

        Without `at`, the force acts at the origin of the body's frame. The frame of a body in design position (its
        joints are given `at` global points) is the world's: there `at` must be given, unless there is only a moment.

        Entries are numbers, parameters or functions of time; `axes` is "world" or "body". In their place, `law` is a
        function of the machine (see `add_joint_force`) that returns three numbers, the force, or a pair of three, force
        and moment.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> bob = m.bodies[0].name
        >>> def wind(at):
        ...     v = at.velocity(bob)
        ...     return 0.1 * (2.0 - v.x), -0.1 * v.y, -0.1 * v.z
        >>> m.add_wrench("wind", bob, law=wind).name
        'wind'
        """
        new_name(self._wrenches, name, "wrench")
        what = f"wrench {name!r}"
        if axes not in ("world", "body"):
            raise ModelError(f"{what}: axes must be 'world' or 'body', got {axes!r}")
        if law is not None and (tuple(force) != _ZERO or tuple(moment) != _ZERO):
            raise ModelError(f"{what}: a law takes the place of force and moment; give one or the other")
        if law is not None and (not callable(law) or required_arguments(law) != 1):
            raise ModelError(f"{what}: a law is a function of one argument, which shows the machine")
        target = self._moving_body(what, body)
        moments = triple(moment, f"{what}: moment", functions=True)
        forces = triple(force, f"{what}: force", functions=True)
        if at is None and law is None and forces == _ZERO:
            at = _ZERO
        wrench = Wrench(name, target, moments, forces, self._point(what, "at", target, at), axes, law)
        self._check_own(what, *wrench.moment, *wrench.force, *wrench.at)
        self._wrenches[name] = wrench
        return wrench

    def add_drag(self, name: str, body: str | Body, *, coefficient: Number = 0.0, area: Number = 1.0,
                 density: Number = 1.2, at: Sequence[Number] | None = None, turn_linear: Number = 0.0,
                 turn_quadratic: Number = 0.0, wind: Sequence[Number] = _ZERO) -> BodyDrag:
        """Drag of a body: the force ``-density coefficient area / 2 |v| v`` at the point `at` (body coordinates), v its
        velocity through the air, and the moment ``-(turn_linear + turn_quadratic |omega|) omega``. Without `at`, as in
        `add_wrench`.

        `wind` is the velocity of the air [m/s] in world axes; its entries are numbers, parameters or functions of time.
        Units: see `bellcrank.mechanism.forces.Drag`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> air = m.add_drag("air", "bob", coefficient=0.5, area=0.1, at=(0, 0, -1))
        >>> bc.compile(m, backend="numpy").element_forces([0.0], [10.0])["air"].vector.round(9) + 0.0
        array([ 0., -3.,  0.])
        """
        new_name(self._drags, name, "drag")
        what = f"drag {name!r}"
        numbers = {label: number(what, label, value, 0.0) for label, value in (
            ("coefficient", coefficient), ("area", area), ("density", density), ("turn_linear", turn_linear),
            ("turn_quadratic", turn_quadratic))}
        drag = Drag(**numbers, wind=triple(wind, f"{what}: wind", functions=True))
        target = self._moving_body(what, body)
        if at is None and is_zero(numbers["coefficient"]):
            at = _ZERO
        made = BodyDrag(name, target, self._point(what, "at", target, at), drag)
        self._check_own(what, *made.at, *numbers.values(), *drag.wind)
        self._drags[name] = made
        return made

    def _moving_body(self, what: str, body: str | Body) -> int:
        target = self.body(body)
        if target.index == 0:
            raise ModelError(f"{what}: the ground does not move; apply the force to a body")
        return target.index

    def _point(self, what: str, label: str, body: int, at: Sequence[Number] | None) -> tuple[Number, ...]:
        """The point of a body where a force acts; without one, the origin of the frame, if that is the body's own."""
        if at is not None:
            return triple(at, f"{what}: {label}")
        if self.in_design_position(body):
            raise point_needed(f"{what}: {label}", self.bodies[body - 1])
        self._at_origin.setdefault(body, f"{what}: {label}")
        return _ZERO

    # -- between bodies -----------------------------------------------------------------------
    def add_spring(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                   second_point: Sequence[Number], *, stiffness: Number | None = None,
                   damping: Number | None = None, length: Number = 0.0,
                   law: Law2 | MachineLaw | Table | None = None,
                   potential: Callable[[Number], Number] | None = None) -> Spring:
        """A spring and damper between two points, each in its own body's frame.

        The tension is ``stiffness * (distance - length) + damping * rate`` [N]; or, nonlinear, the derivative of
        ``potential(distance)`` [J] plus ``damping * rate``; or ``law(distance, rate)`` [N], whose energy is unknown and
        not counted. Functions are written with `bellcrank.math`.

        Where the two ends meet, a spring has no direction: one that does not pull there (no `length`) exerts no force,
        its damper acts against the motion; one that does makes the state singular, and the error names it.

        >>> import bellcrank as bc
        >>> m = bc.load("four_bar")
        >>> cord = m.add_spring("cord", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), potential=lambda x: 4.0 * x**3)
        >>> cord.law(0.5, 0.0)
        3.0
        """
        new_name(self._springs, name, "spring")
        what = f"spring {name!r}"
        along = self._spring_law(name, what, stiffness, damping, length, law, potential, "length")
        ends = triple(first_point, what), triple(second_point, what)
        self._check_own(what, *ends[0], *ends[1], *vars(along).values())
        spring = Spring(name, self.body(first).index, self.body(second).index, *ends, along)
        self._springs[name] = spring
        return spring

    def add_force_between(self, name: str, first: str | Body, second: str | Body, first_point: Sequence[Number],
                          second_point: Sequence[Number], law: Law2 | MachineLaw | Table) -> Spring:
        """A force along the line between two points, each in its own body's frame: the tension [N] (positive pulls them
        together) by a law, ``law(distance, rate)``, a `Table` of the distance or of both, or ``law(at)`` of the whole
        machine: see `add_joint_force`. A measured damper is ``lambda d, rate: table(rate)``, with tension in rebound.
        What elements report as ``force`` is positive where it pushes: minus the tension.
        Its own distance is ``at.element(name).length``, its rate ``at.element(name).rate``.

        >>> import bellcrank as bc
        >>> m = bc.load("four_bar")
        >>> def pull(at):
        ...     return 40.0 * at.element("rope").length + 3.0 * at.u("A")
        >>> m.add_force_between("rope", m.ground, "rocker", (0.3, 0.9, 0), (0.2, 0, 0), pull).name
        'rope'
        """
        return self.add_spring(name, first, second, first_point, second_point, law=law)

    def add_bushing(self, name: str, first: str | Body, second: str | Body, first_pose: Pose = _HERE,
                    second_pose: Pose = _HERE, *, stiffness: Sequence[Number] = _ZERO,
                    turn_stiffness: Sequence[Number] = _ZERO, damping: Sequence[Number] = _ZERO,
                    turn_damping: Sequence[Number] = _ZERO, measure: str = "chord") -> FrameBushing:
        """A bushing between a frame on each of two bodies, at rest where the frames coincide.

        Three numbers each, along the axes of the first frame: `stiffness` [N/m] and `damping` [N s/m] against
        displacement, `turn_stiffness` [N m/rad] and `turn_damping` [N m s/rad] against rotation. How large rotations
        are measured, by "chord" or by "angle": see `bellcrank.mechanism.forces.Bushing`.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> rubber = m.add_bushing("rubber", m.ground, "bob", turn_stiffness=(20.0, 0, 0), measure="chord")
        >>> bc.compile(m, backend="numpy").element_forces([0.01], [0.0])["rubber"].torque.round(3) + 0.0
        array([-0.2,  0. ,  0. ])
        """
        new_name(self._bushings, name, "bushing")
        what = f"bushing {name!r}"
        for pose in (first_pose, second_pose):
            if not isinstance(pose, Pose):
                raise ModelError(f"{what}: poses must be bellcrank.Pose, got {type(pose).__name__}")
        first_pose, second_pose = (pose.fixed(what, turns=True) for pose in (first_pose, second_pose))
        parts = []
        for label, values in (("stiffness", stiffness), ("turn_stiffness", turn_stiffness), ("damping", damping),
                              ("turn_damping", turn_damping)):
            entries = triple(values, f"{what}: {label}")
            parts.append(tuple(number(what, label, x, 0.0) for x in entries))
        if measure not in ("chord", "angle"):
            raise ModelError(f"{what}: measure must be 'chord' or 'angle', got {measure!r}")
        if measure == "angle" and any(x is not parts[1][0] and x != parts[1][0] for x in parts[1]):
            raise ModelError(f"{what}: with the measure 'angle' the three numbers of turn_stiffness must be the same")
        one, other = self.body(first), self.body(second)
        if one is other:
            raise ModelError(f"{what} connects body {one.name!r} with itself")
        self._check_own(what, *(x for part in parts for x in part))
        for pose in (first_pose, second_pose):
            self._check_pose(what, pose)
        made = FrameBushing(name, one.index, other.index, first_pose, second_pose,
                            Bushing(parts[0], parts[1], parts[2], parts[3], measure))
        self._bushings[name] = made
        return made
