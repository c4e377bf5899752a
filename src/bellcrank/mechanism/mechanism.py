"""The editable description of a machine: a graph of bodies and joints.

Axes of joints and constraints that depend on parameters: as turns of the frames that they are given in.

Compiled machines know axes that are numbers. One that depends on parameters is that of their default values, in frames
that are turned from there to where it points.
"""

from __future__ import annotations

import inspect
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from typing import Any

import numpy as np

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError, NotYetError
from bellcrank.lazy_names import from_above
from bellcrank.mechanism.add_elements import ReadyElements
from bellcrank.mechanism.add_forces import point_needed
from bellcrank.mechanism.carried_joints import Carrier, check_poses, open_poses
from bellcrank.mechanism.checks import bounded, coupled_part, look, new_name, number, tried_motion, triple
from bellcrank.mechanism.contact.add_contacts import TouchingBodies
from bellcrank.mechanism.flexible.deformation import add_deformation, order_modes
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.forces.body_forces import Wrench
from bellcrank.mechanism.forces.element import Element
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Planar, Universal, Weld
from bellcrank.mechanism.joints.joint import Joint, unit_vector
from bellcrank.mechanism.motion import Entry, Fixed, Law, Law1, ParametricLaw, Prescribed
from bellcrank.mechanism.parts import Body, Connection, Constraint, Coupler, Frame
from bellcrank.mechanism.pickling import check_picklable
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.mechanism.turns import Rows, has_parameter, way_between
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Number, Scalar

__all__ = ["HERE", "Body", "Connection", "Frame", "Mechanism", "Wrench"]


# -- what `Mechanism.prescribe` makes of a law that is given for a joint, checked -------------------
def prescribed_by(record: Connection, law: Any, coordinate: int | str | None) -> Prescribed:
    """The joint's prescribed motion, with what was prescribed of other coordinates before."""
    where, kind = f"joint {record.name!r}", record.joint
    if not callable(law):
        law = _constant(record, law, coordinate)
    elif not _takes_an_argument(law):
        raise ModelError(f"{where}: a motion law takes the time as its argument")
    if kind.nu == 0:
        raise ModelError(f"{where}: a {type(kind).__name__} has no coordinate to prescribe")
    if kind.nq != kind.nu:
        if coordinate is not None:
            raise ModelError(f"{where}: quaternion joints are prescribed whole, by a law that returns all {kind.nq} "
                             "coordinates")
        return Prescribed((), tried_motion(f"{where}: the motion law", law, kind.nq))
    law = tried_motion(f"{where}: the motion law", law, kind.nq if coordinate is None else 1)
    return Prescribed(_laws(record, law, coordinate))


def _takes_an_argument(law: Any) -> bool:
    try:
        return len(inspect.signature(law).parameters) > 0
    except (TypeError, ValueError):  # it does not say
        return True


def _constant(record: Connection, given: Any, coordinate: int | str | None) -> Fixed:
    """A number that holds a coordinate still."""
    where, kind = f"joint {record.name!r}", record.joint
    try:
        value = given if isinstance(given, Scalar) else float(given)
    except (TypeError, ValueError):
        raise ModelError(f"{where}: a motion law is a number, a parameter or a function of time, got "
                         f"{type(given).__name__}") from None
    if kind.nq > 1 and coordinate is None:
        raise ModelError(f"{where} has the coordinates {', '.join(kind.coordinate_names())}; say which one the number "
                         "is for, or give a law that returns them all")
    if isinstance(value, float) and not abs(value) < float("inf"):
        raise ModelError(f"{where}: the prescribed value {value} is not finite")
    bounded(f"{where}: the prescribed value", value)
    return Fixed(value)


def _laws(record: Connection, law: Any, coordinate: int | str | None) -> tuple[Law | None, ...]:
    """The laws of all coordinates, one of them or all anew."""
    names = record.joint.coordinate_names()
    laws: list[Law | None] = list(record.prescribed.laws) if record.prescribed else [None] * len(names)
    if coordinate is None:
        if len(names) == 1:
            return (law,)
        return tuple(law.entry(i) if isinstance(law, ParametricLaw) else Entry(law, i) for i in range(len(names)))
    if isinstance(coordinate, str):
        if coordinate not in names:
            raise ModelError(f"joint {record.name!r}: no coordinate {coordinate!r}; it has {', '.join(names)}")
        coordinate = names.index(coordinate)
    if not isinstance(coordinate, int) or not 0 <= coordinate < len(names):
        raise ModelError(f"joint {record.name!r}: coordinate {coordinate} is not in 0..{len(names) - 1}")
    laws[coordinate] = law
    return tuple(laws)


# -- where the joints of a `Mechanism` are meant to stay, as files and drawings say it: known, not acting ---
@checked_methods
class JointRanges:
    """Ranges of joints with one coordinate."""

    def __init__(self) -> None:
        super().__init__()
        self._ranges: dict[str, tuple[float, float]] = {}

    @abstractmethod
    def joint(self, name: str) -> Connection:
        """The joint called `name`."""

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Lower and upper end [rad or m] of joints whose range is known, by name; an end that is not is infinite."""
        return dict(self._ranges)

    def set_range(self, joint: str, lower: float = -math.inf, upper: float = math.inf) -> None:
        """Say where a joint is meant to stay, from `lower` to `upper` [rad or m]. Nothing acts there: sliders of the
        viewer end there, and files keep it; `add_limit` and `joint_limit` make stops. URDF, SDF and MJCF files bring
        the ranges of their joints.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> m.set_range("hinge", -1.0, 2.0)
        >>> m.ranges
        {'hinge': (-1.0, 2.0)}
        """
        kind = self.joint(joint).joint
        if kind.nq != 1:
            raise ModelError(f"range of {joint!r}: only joints with one coordinate have one; a {type(kind).__name__} "
                             f"has {kind.nq}")
        low, high = (_end(f"range of {joint!r}", name, x) for name, x in (("lower", lower), ("upper", upper)))
        if not low <= high:
            raise ModelError(f"range of {joint!r}: the lower end {low:g} is above the upper one {high:g}")
        self._ranges[joint] = low, high


def _end(what: str, label: str, value: float) -> float:
    """A number that may be infinite."""
    if isinstance(value, Scalar):
        raise ModelError(f"{what}: {label} takes a number, not a parameter")
    return value if isinstance(value, float) and math.isinf(value) else float(number(what, label, value))


# -- axes of joints and constraints that depend on parameters ---------------------------------------
def settled(what: str, kind: Any, default: Callable[[Number], float]) -> tuple[Any, Rows, Rows]:
    """A joint or constraint with axes that are numbers, and the turns of its frames on parent and child that make up
    for it. `default` gives the number that an expression of parameters stands for."""
    def numbers(axis: Sequence[Number]) -> tuple[float, float, float]:
        try:
            return unit_vector([default(x) for x in axis], what)
        except ArithmeticError:
            raise ModelError(f"{what}: an axis has no direction at the default values of its parameters") from None

    if isinstance(kind, (Planar, Universal)) and has_parameter(kind.axes):
        made, turn = kind.settled(numbers)
        return made, turn, turn
    names = [name for name in getattr(kind, "directions", ()) if has_parameter(getattr(kind, name))]
    if not names:
        return kind, IDENTITY_ROWS, IDENTITY_ROWS
    other = copy(kind)
    for name in names:
        setattr(other, name, numbers(getattr(kind, name)))
    turns = [way_between(getattr(other, name), getattr(kind, name)) if name in names else IDENTITY_ROWS
             for name in kind.directions]
    return other, turns[0], turns[-1]


# -- the editable description of a machine: a graph of bodies and joints ----------------------------
#: the default pose of joints and frames
HERE = Pose()


@checked_methods
class Mechanism(ReadyElements, TouchingBodies, JointRanges):
    """Bodies, joints, frames and forces, added one by one and checked as they come.

    Units are SI, angles radians, quaternions scalar first. `gravity` is the acceleration of free fall
    in world axes [m/s^2].

    >>> m = Mechanism("pendulum")
    >>> bob = m.add_body("bob", Inertia.point(1.0, (0, 0, -1)))
    >>> from bellcrank.mechanism.joints import Revolute
    >>> m.add_joint("hinge", Revolute("x"), m.ground, bob).name
    'hinge'
    """

    def __init__(self, name: str = "mechanism", gravity: Sequence[Number] = (0.0, 0.0, -9.81)) -> None:
        super().__init__()
        self.name = str(name)
        self._graph = Graph()
        self.gravity = gravity
        self.parameters: dict[str, float] = {}
        ground = Body("ground", 0, Inertia.zero())
        self._bodies: dict[str, Body] = {"ground": ground}
        self._by_index: list[Body] = [ground]
        self._joints: dict[str, Connection] = {}
        self._frames: dict[str, Frame] = {}
        self._couplers: dict[str, Coupler] = {}
        self._constraints: dict[str, Constraint] = {}
        self._open: dict[str, str] = {}
        self._absent: list[str] = []
        self._design: dict[int, bool] = {}
        #: bodies beside which loops are cut; a description that is being made has none
        self.carriers: tuple[Carrier, ...] = ()

    @property
    def gravity(self) -> tuple[Number, ...]:
        """Acceleration of free fall in world axes [m/s^2]."""
        return self._gravity

    @gravity.setter
    def gravity(self, value: Sequence[Number]) -> None:
        gravity = triple(value, f"mechanism {self.name!r}: gravity")
        self._check_own(f"mechanism {self.name!r}: gravity", *gravity)
        self._gravity = gravity

    def copy(self) -> Mechanism:
        """An independent description with the same parts; parameters are shared."""
        other = object.__new__(Mechanism)
        other.__dict__.update({name: value.copy() if isinstance(value, (dict, list)) else value
                               for name, value in self.__dict__.items()})
        return other

    __copy__ = copy

    def replace_parts(self, bodies: Sequence[Body], joints: Sequence[Connection], carriers: tuple[Carrier, ...]
                      ) -> None:
        """Take other bodies and joints in the place of all there are, unchecked: for what works on copies."""
        self._by_index = [self.ground, *bodies]
        self._bodies = {b.name: b for b in self._by_index}
        self._joints = {r.name: r for r in joints}
        self.carriers = carriers

    def __deepcopy__(self, memo: dict[int, Any]) -> Mechanism:
        """An independent description with parameters of its own; laws are shared."""
        other = object.__new__(type(self))
        memo[id(self)] = other
        other.__dict__.update({name: deepcopy(value, memo) for name, value in self.__dict__.items()})
        return other

    def __getstate__(self) -> dict[str, Any]:
        """What is pickled: all of it. Laws must be functions that can be imported, or formulas."""
        check_picklable(self.name, self.__dict__)
        return self.__dict__

    # -- what is there ------------------------------------------------------------------------
    @property
    def ground(self) -> Body:
        """The world: a body that does not move."""
        return self._by_index[0]

    @property
    def bodies(self) -> tuple[Body, ...]:
        """All bodies but the ground, in the order they were added."""
        return tuple(self._by_index[1:])

    @property
    def joints(self) -> tuple[Connection, ...]:
        """All joints in the order they were added."""
        return tuple(self._joints.values())

    @property
    def frames(self) -> tuple[Frame, ...]:
        """All frames in the order they were added."""
        return tuple(self._frames.values())

    @property
    def couplers(self) -> tuple[Coupler, ...]:
        """All couplers in the order they were added."""
        return tuple(self._couplers.values())

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """All constraints that are not joints, in the order they were added."""
        return tuple(self._constraints.values())

    @property
    def force_elements(self) -> tuple[Any, ...]:
        """All force elements that have a name: those on joints, between bodies, on bodies, actuators, and contacts that
        give way."""
        return (*super().force_elements, *(c for c in self.contacts if not c.rigid))

    @property
    def open_at_start(self) -> dict[str, str]:
        """Joints and constraints that are open when a run begins; and which of their two frames is defined when they
        close, "parent" or "child", if one is."""
        return dict(self._open)

    @property
    def absent_at_start(self) -> tuple[str, ...]:
        """Bodies that enter a run later."""
        return tuple(self._absent)

    def body(self, name: str | Body) -> Body:
        """The body called `name`."""
        if isinstance(name, Body):
            if name.index >= len(self._by_index) or self._by_index[name.index] is not name:
                raise ModelError(f"body {name.name!r} belongs to another mechanism, not to {self.name!r}")
            return name
        return look(self._bodies, name, "body", self.name)

    def joint(self, name: str) -> Connection:
        """The joint called `name`."""
        return look(self._joints, name, "joint", self.name)

    # -- adding -------------------------------------------------------------------------------
    def parameter(self, name: str, value: float) -> Number:
        """A number that stays a run-time input of the compiled system, with its default value.

        Use it like a float for masses, inertias, positions, axes, orientations, lengths, pitches, gravity, wrenches,
        couplers, force elements and stops; in functions of time, of a coordinate, of a displacement and its rate, of
        events and of traced controllers. Laws of the whole machine, ``law(at)``, have ``at.parameter(name)``.
        Hardpoints made of parameters move joints and turn their axes:

        >>> import numpy as np
        >>> import bellcrank as bc
        >>> m = bc.Mechanism("arm")
        >>> front, rear = (np.array([m.parameter(f"{name}.{c}", x) for c, x in zip("xyz", p)])
        ...                for name, p in (("front", (0.1, 0.3, 0)), ("rear", (-0.1, 0.35, 0))))
        >>> arm = m.add_body("arm", bc.Inertia(2.0, (0, 0.5, 0), (0.1, 0.1, 0.1)))
        >>> pivot = m.add_joint("pivot", bc.Revolute(rear - front), m.ground, arm, at=front)
        >>> d = bc.compile(m).derivatives("pose", [0.2], by="rear.z", body="arm")  # of the rotation and the position
        >>> d["rear.z"].shape
        (12,)
        """
        try:
            value = float(value)
        except (TypeError, ValueError):
            raise ModelError(f"parameter {name!r}: the default {value!r} is not a number") from None
        if name in self.parameters:
            raise ModelError(f"parameter {name!r} exists already; use the object the first call returned")
        new_name({}, name, "parameter")
        if not abs(value) < float("inf"):
            raise ModelError(f"parameter {name!r}: the default {value} is not finite")
        bounded(f"parameter {name!r}", value)
        self.parameters[name] = value
        return self._graph.leaf(("parameter", name))

    def owns(self, value: Any) -> bool:
        """Whether parameters in `value`, a number or a law, were declared here."""
        if isinstance(value, Element):
            return self.owns(tuple(vars(value).values()))
        if isinstance(value, tuple):
            return all(map(self.owns, value))
        return not isinstance(value, Scalar) or value.graph is self._graph

    def in_design_position(self, body: int) -> bool:
        """Whether the joints of a body, by its index, were placed where the assembled machine has them (`at`)."""
        return self._design.get(body, False)

    def default(self, value: Number) -> float:
        """The number that `value` (a float or an expression of parameters) stands for by default."""
        if not isinstance(value, Scalar):
            return float(value)
        if not self.owns(value):
            raise ModelError(f"mechanism {self.name!r} uses a parameter of another mechanism")
        return float(evaluate([value], lambda key: self.parameters[key[1]])[0])

    def _check_own(self, what: str, *values: Number) -> None:
        """Numbers that can be computed with, and parameters that are declared here."""
        bounded(what, *values)
        for value in values:
            if not self.owns(value):
                raise ModelError(f"{what} uses a parameter of another mechanism; declare it with "
                                 f"parameter() of {self.name!r}")

    def add_body(self, name: str, inertia: Inertia | FlexibleBody | None = None, *, present: bool = True) -> Body:
        """Add a body. Its frame is where you want it: inertia and joints are given in it.

        A body that deforms is given a `FlexibleBody` in place of its inertia. Its named nodes are bodies, too, called
        ``"rod.tip"``: joints, forces and constraints attach there. Its modal coordinates are those of a joint with the
        body's name, ``rod.mode1``; they come after those of the first joint that it is attached by.

        One that is not `present` stands still, with all that it carries, until an event lets it `enter` the run. It
        hangs on the ground itself, usually by a `Free` joint."""
        new_name(self._bodies, name, "body")
        if name in self._frames:
            raise ModelError(f"body {name!r}: a frame has that name already")
        if isinstance(inertia, FlexibleBody):
            if not present:
                raise NotYetError(f"body {name!r} deforms and cannot enter a run later")
            body = self.add_body(name)
            add_deformation(self, name, inertia)
            return body
        if inertia is None:
            inertia = Inertia.zero()
        elif not isinstance(inertia, Inertia):
            raise ModelError(f"body {name!r}: inertia must be a bellcrank.Inertia or bellcrank.FlexibleBody, got "
                             f"{type(inertia).__name__}")
        self._check_own(f"body {name!r}", inertia.mass, *inertia.com, *inertia.inertia)
        body = Body(name, len(self._by_index), inertia)
        self._bodies[name] = body
        self._by_index.append(body)
        if not present:
            self._absent.append(name)
        return body

    def add_joint(self, name: str, joint: Joint, parent: str | Body, child: str | Body,
                  parent_pose: Pose | str = HERE, child_pose: Pose | str = HERE, *,
                  at: Sequence[Number] | None = None, closed: bool = True) -> Connection:
        """Connect two bodies. The joint frame lies at `parent_pose` in the parent and at `child_pose` in
        the child; at q = 0 the two coincide. Coordinates measure the child relative to the parent.

        With `at`, the hardpoint of the joint in **global coordinates of the assembled machine**, both
        bodies are described in the design position: their frames, centres of mass and inertias, and the
        joint's axes, are all in world coordinates there, and q = 0 is the design position.

        A joint that is not `closed` is open when a run begins and carries no body: events close it (`attach`). One of
        its poses may be ``"at closing"``: that frame lies where the other one is at the moment it closes, as those of
        a gripper, a latch or a foot on the floor do.
        """
        new_name(self._joints, name, "joint")
        if name in self._constraints:
            raise ModelError(f"joint {name!r}: a constraint has that name already")
        if not isinstance(joint, Joint):
            raise ModelError(f"joint {name!r}: needs a joint type such as bellcrank.Revolute('z'), "
                             f"got {type(joint).__name__}")
        first, second = self._end(name, parent), self._end(name, child)
        if first is second:
            raise ModelError(f"joint {name!r} connects body {first.name!r} with itself")
        if at is not None:
            if parent_pose is not HERE or child_pose is not HERE:
                raise ModelError(f"joint {name!r}: give either `at` or parent_pose and child_pose, not both")
            parent_pose = child_pose = Pose(at)
        poses, free = check_poses(f"joint {name!r}", parent_pose, child_pose, closed)
        for body in () if free else (first, second):  # what closes where it happens to be lies in no design position
            if body.index and self._design.setdefault(body.index, at is not None) != (at is not None):
                raise ModelError(f"joint {name!r}: body {body.name!r} mixes joints given `at` global points with "
                                 "joints given by poses; use one style for a body")
            if at is not None and body.index in self._at_origin:
                raise point_needed(self._at_origin[body.index], body)
        joint, poses = self._settled(f"joint {name!r}", joint, poses)
        poses = open_poses(self._open, self.parameter, name, poses, free, closed, isinstance(joint, Weld))
        record = Connection(name, joint, first.index, second.index, *poses)
        self._joints[name] = record
        order_modes(self._joints, record, first, second)
        return record

    def _settled(self, what: str, kind: Any, poses: tuple[Pose, Pose]) -> tuple[Any, tuple[Pose, Pose]]:
        """A joint or constraint and its poses; axes that depend on parameters are turns of the poses then."""
        kind, *turns = settled(what, kind, self.default)
        one, other = (pose if rows is IDENTITY_ROWS else pose @ Pose((0.0, 0.0, 0.0), np.reshape(rows, (3, 3)))
                      for pose, rows in zip(poses, turns, strict=True))
        poses = one, other
        for pose in poses:
            self._check_pose(what, pose)
        self._check_own(what, *getattr(kind, "constants", tuple)())
        return kind, poses

    def _check_pose(self, what: str, pose: Pose) -> None:
        """Parameters that are declared here, and a rotation at their default values."""
        self._check_own(what, *pose.position, *pose.rows)
        if pose.parametric:
            Pose((0.0, 0.0, 0.0), np.reshape([self.default(x) for x in pose.rows], (3, 3)))

    def _end(self, joint: str, body: str | Body) -> Body:
        try:
            return self.body(body)
        except ModelError as error:
            raise ModelError(f"joint {joint!r}: {error}") from None

    def prescribe(self, joint: str, law: Law | Number | Callable[[Number], Sequence[Number]],
                  coordinate: int | str | None = None) -> None:
        """Let a joint coordinate follow a law of time, q(t).

        `law` takes the time and returns the coordinate, written with `bellcrank.math` functions, and
        may use parameters; a number or a parameter holds the coordinate still. Joints with several
        coordinates need `coordinate` (name or index), or a law that returns them all; quaternion joints
        always the latter. Rates and accelerations are derived exactly. What q, u and tau say about a
        prescribed coordinate is ignored; the force that enforces it is in `System.drive_forces`.
        """
        record = self.joint(joint)
        if joint in self._open:
            raise ModelError(f"joint {joint!r} is open at the start (closed=False) and cannot follow a motion law")
        prescribed = prescribed_by(record, law, coordinate)
        self._check_own(f"joint {joint!r}: the motion law", prescribed)
        self._joints[joint] = replace(record, prescribed=prescribed)

    def add_frame(self, name: str, body: str | Body, pose: Pose = HERE) -> Frame:
        """Name a place on a body; `System.pose`, `.velocity` and `.jacobian` take it like a body."""
        new_name(self._frames, name, "frame")
        if name in self._bodies:
            raise ModelError(f"frame {name!r}: a body has that name already")
        if not isinstance(pose, Pose):
            raise ModelError(f"frame {name!r}: the pose must be a bellcrank.Pose, got {type(pose).__name__}")
        pose = pose.fixed(f"frame {name!r}", turns=True)
        self._check_pose(f"frame {name!r}", pose)
        frame = Frame(name, self.body(body).index, pose)
        self._frames[name] = frame
        return frame

    def add_coupler(self, name: str, factors: Mapping[str, Number | Law1], offset: Number | Law = 0.0) -> Coupler:
        """Couple joint coordinates, as gears, belts and cams do: the sum of factor * coordinate equals `offset`, a
        number or a function of time (a differential whose third shaft is driven). All of them may use parameters.

        Keys are joints, or ``joint.coordinate`` for joints with several. Two external gears of ratio 3 on parallel axes
        turn in opposite directions: ``{"pinion": 1.0, "wheel": 3.0}``; an internal gear and a belt keep the direction:
        ``{"pinion": 1.0, "wheel": -3.0}``. In place of a factor stands a function of the coordinate, written with
        `bellcrank.math`, where the ratio changes: a follower that a cam lifts by 10 mm is
        ``{"follower": 1.0, "cam": lambda a: 0.005 * (bc.math.cos(a) - 1.0)}``.
        """
        new_name(self._couplers, name, "coupler")
        terms = []
        for key, factor in factors.items():
            joint, dot, coordinate = key.rpartition(".") if key not in self._joints else (key, "", "")
            part = coupled_part(f"coupler {name!r}", key, factor)
            terms.append((joint, self._coordinate(joint, coordinate if dot else None), part))
        if len({(joint, i) for joint, i, _ in terms}) < len(terms):
            raise ModelError(f"coupler {name!r} names a coordinate twice")
        if len(terms) < 2:
            raise ModelError(f"coupler {name!r} needs at least two joint coordinates")
        offset = tried_motion(f"coupler {name!r}: the offset as a function of time", offset) if callable(offset) \
            else number(f"coupler {name!r}", "offset", offset)
        self._check_own(f"coupler {name!r}", *(part for *_, part in terms), offset)
        coupler = Coupler(name, tuple(terms), offset)
        self._couplers[name] = coupler
        return coupler

    def add_constraint(self, name: str, kind: object, parent: str | Body, child: str | Body,
                       parent_pose: Pose | str = HERE, child_pose: Pose | str = HERE, *, closed: bool = True
                       ) -> Constraint:
        """A constraint between two bodies that is no joint, such as ``Distance(0.5)`` between the poses' origins, or
        ``PointOnLine("x")``, by which the child's origin stays on an axis of the parent's pose. `closed`, and poses
        ``"at closing"``, as in `add_joint`.

        A number of it may be a function of time, ``Distance(lambda t: 0.5 + 0.1 * t)``, which then drives the machine.
        """
        new_name(self._constraints, name, "constraint")
        if name in self._joints:
            raise ModelError(f"constraint {name!r}: a joint has that name already")
        if not hasattr(kind, "closure_rows") or isinstance(kind, Joint):
            raise ModelError(f"constraint {name!r}: needs a constraint such as bellcrank.Distance(0.5), got {kind!r}; "
                             "joints are added by add_joint")
        poses, free = check_poses(f"constraint {name!r}", parent_pose, child_pose, closed)
        kind, poses = self._settled(f"constraint {name!r}", kind, poses)
        first, second = self._end(name, parent), self._end(name, child)
        if first is second:
            raise ModelError(f"constraint {name!r} connects body {first.name!r} with itself")
        poses = open_poses(self._open, self.parameter, name, poses, free, closed, False)
        self._constraints[name] = Constraint(name, kind, first.index, second.index, *poses)
        return self._constraints[name]

    def _repr_html_(self) -> str:
        """A still and a table, for notebooks."""
        made: str = from_above("view.notebook", "html_of")(self)
        return made

    def __repr__(self) -> str:
        return f"<Mechanism {self.name!r}: {len(self._by_index) - 1} bodies, {len(self._joints)} joints>"
