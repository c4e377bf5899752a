"""Targets of `System.inverse_kinematics`: what a position is asked to do, as errors and their rates of change.

A target says how far a position is from what it asks for, an error e (states, rows) that is zero there, and the matrix
J (states, rows, speeds) of de/dt = J u, for the speeds of all joints as if they were free. Lengths are in lengths of
the machine, angles in rad, other numbers in ordinary changes of theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.arrays import Floats
from bellcrank.errors import StateError
from bellcrank.mechanism.flexible.modal_kinetics import crossing
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.inverse_kinematics.places import Places
    from bellcrank.system.configuration import Configuration

__all__ = [
    "BodyDirection",
    "BodyOrientation",
    "BodyPose",
    "BodyPosition",
    "CenterOfMass",
    "Gaze",
    "JointValue",
    "KinematicTarget",
    "OutputValue",
    "PointDistance",
    "targets_of",
    "turn_between",
]

Rows = tuple[Floats, Floats]
ORIGIN = (0.0, 0.0, 0.0)
_AXES = {"x": 0, "y": 1, "z": 2}


def turn_between(rotation: Floats, goal: Floats) -> Floats:
    """The rotation vector (..., 3) in world axes by which an orientation (..., 3, 3) is beyond another."""
    turn = rotation @ np.swapaxes(goal, -1, -2)
    return quaternion.logarithm(quaternion.from_matrix(turn))


def _numbers(what: str, value: npt.ArrayLike, shape: tuple[int, ...]) -> Floats:
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise StateError(f"{what}: {value!r} cannot be read as numbers") from None
    if array.shape[array.ndim - len(shape):] != shape or array.ndim < len(shape):
        raise StateError(f"{what} needs the shape (..., {', '.join(map(str, shape))}), got {array.shape}"
                         if shape else f"{what} needs numbers, got shape {array.shape}")
    if not np.isfinite(array).all():
        raise StateError(f"{what} is not finite")
    return array


def _unit(what: str, value: npt.ArrayLike) -> Floats:
    array = _numbers(what, value, (3,))
    size = np.linalg.norm(array, axis=-1, keepdims=True)
    if (size < 1e-12).any():
        raise StateError(f"{what} has no length")
    return np.asarray(array / size)


@dataclass(frozen=True, eq=False)
class KinematicTarget(ABC):
    """What all targets have: a `weight` among those of the same priority, and a `priority`. Targets of priority 0 come
    first; those of a higher number have only what these leave free."""

    _: KW_ONLY
    weight: float = 1.0
    priority: int = 0

    def __post_init__(self) -> None:
        if not (isinstance(self.weight, (int, float)) and 0.0 < self.weight < np.inf):
            raise StateError(f"{self.label}: weight must be a positive number, got {self.weight!r}")
        if not isinstance(self.priority, (int, np.integer)) or self.priority < 0:
            raise StateError(f"{self.label}: priority is 0, 1, 2, ..., got {self.priority!r}")
        self.check()

    @abstractmethod
    def check(self) -> None:
        """Refuse numbers of the wrong shape."""

    @property
    @abstractmethod
    def label(self) -> str:
        """What it is called in results and errors."""

    @property
    def bodies(self) -> tuple[str, ...]:
        """Bodies and frames that it is about."""
        names = (getattr(self, name, None) for name in ("body", "relative_to", "first", "second"))
        return tuple(name for name in names if name is not None)

    @abstractmethod
    def lead(self, space: Configuration) -> tuple[int, ...]:
        """Its leading (batch) axes."""

    @abstractmethod
    def rows(self, at: Places) -> Rows:
        """Error and rates at positions; what is asked for has a row for each, see `Places.given`."""


def _chosen(axes: str, error: Floats, rates: Floats) -> Rows:
    some = [_AXES[a] for a in axes]
    return error[..., some], rates[..., some, :]


def _check_axes(label: str, axes: str) -> None:
    if not axes or set(axes) - set(_AXES) or len(set(axes)) != len(axes):
        raise StateError(f"{label}: axes are some of 'xyz', got {axes!r}")


@checked_methods
@dataclass(frozen=True, eq=False)
class BodyPosition(KinematicTarget):
    """A point of a body or frame is at `position` [m], in world axes, or as seen from the body `relative_to`. `axes`
    names the components that count."""

    body: str
    position: npt.ArrayLike
    _: KW_ONLY
    point: npt.ArrayLike = ORIGIN
    relative_to: str | None = None
    axes: str = "xyz"

    def check(self) -> None:
        _numbers(f"{self.label}: position", self.position, (3,))
        _numbers(f"{self.label}: point", self.point, (3,))
        _check_axes(self.label, self.axes)

    @property
    def label(self) -> str:
        return f"position of {self.body!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        return np.shape(self.position)[:-1]

    def rows(self, at: Places) -> Rows:
        point = np.asarray(self.point, dtype=float)
        here, rates = at.point(self.body, point), at.jacobian(self.body, point)[..., 3:, :]
        if self.relative_to is not None:
            here, rates = at.seen_from(self.relative_to, here, rates)
        return _chosen(self.axes, (here - at.given(self.position)) / at.length, rates / at.length)


@checked_methods
@dataclass(frozen=True, eq=False)
class BodyOrientation(KinematicTarget):
    """A body or frame has this orientation: a rotation matrix (..., 3, 3) or unit quaternion (..., 4), in the world or
    as seen from the body `relative_to`."""

    body: str
    rotation: npt.ArrayLike
    _: KW_ONLY
    relative_to: str | None = None

    def check(self) -> None:
        self.matrix()

    def matrix(self) -> Floats:
        """The rotation matrices."""
        what = f"{self.label}: rotation"
        if np.shape(self.rotation)[-1:] == (4,):
            q = _numbers(what, self.rotation, (4,))
            size = np.linalg.norm(q, axis=-1, keepdims=True)
            if (np.abs(size - 1.0) > 1e-6).any():
                raise StateError(f"{what} is not a unit quaternion (its length is {float(size.ravel()[0]):.6g})")
            return np.stack([quaternion.turn(q / size, axis) for axis in np.eye(3)], axis=-1)
        found = _numbers(what, self.rotation, (3, 3))
        if np.abs(found @ np.swapaxes(found, -1, -2) - np.eye(3)).max(initial=0.0) > 1e-6 or \
                (np.linalg.det(found) < 0.0).any():
            raise StateError(f"{what} is not a rotation matrix")
        return found

    @property
    def label(self) -> str:
        return f"orientation of {self.body!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        shape = np.shape(self.rotation)
        return shape[:-1] if shape[-1:] == (4,) else shape[:-2]

    def rows(self, at: Places) -> Rows:
        here, rates = at.pose(self.body)[1], at.jacobian(self.body)[..., :3, :]
        goal = at.given(self.matrix(), 2)
        if self.relative_to is not None:
            goal = at.pose(self.relative_to)[1] @ goal
            rates = rates - here @ np.swapaxes(goal, -1, -2) @ at.jacobian(self.relative_to)[..., :3, :]
        error = turn_between(here, goal)
        turned = quaternion.left_jacobian_inverse(error[..., None, :], np.swapaxes(rates, -1, -2))
        return error, np.swapaxes(turned, -1, -2)


@checked_methods
@dataclass(frozen=True, eq=False)
class BodyPose(KinematicTarget):
    """A body or frame is at a `bc.Pose`, in the world or as seen from the body `relative_to`; its position counts
    `position_weight` times as much as lengths of the machine and rad do."""

    body: str
    pose: Pose
    _: KW_ONLY
    relative_to: str | None = None
    position_weight: float = 1.0

    def check(self) -> None:
        self.parts()

    def parts(self) -> tuple[BodyPosition, BodyOrientation]:
        """The two targets that it is made of."""
        position = np.asarray(self.pose.position, dtype=float)
        rotation = np.asarray(self.pose.rotation, dtype=float)
        return (BodyPosition(self.body, position, relative_to=self.relative_to),
                BodyOrientation(self.body, rotation, relative_to=self.relative_to))

    @property
    def label(self) -> str:
        return f"pose of {self.body!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        position, orientation = self.parts()
        return np.broadcast_shapes(position.lead(space), orientation.lead(space))

    def rows(self, at: Places) -> Rows:
        (e, a), (f, b) = (part.rows(at) for part in self.parts())
        w = self.position_weight
        return np.concatenate([w * e, f], axis=-1), np.concatenate([w * a, b], axis=-2)


@checked_methods
@dataclass(frozen=True, eq=False)
class BodyDirection(KinematicTarget):
    """An `axis` of a body (in its coordinates) points along a direction `along` of the world, or of the body
    `relative_to`."""

    body: str
    axis: npt.ArrayLike
    along: npt.ArrayLike
    _: KW_ONLY
    relative_to: str | None = None

    def check(self) -> None:
        _unit(f"{self.label}: axis", self.axis)
        _unit(f"{self.label}: along", self.along)

    @property
    def label(self) -> str:
        return f"direction of {self.body!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        return np.shape(self.along)[:-1]

    def rows(self, at: Places) -> Rows:
        here = (at.pose(self.body)[1] @ _unit("axis", self.axis)[:, None])[..., 0]
        goal, rates = at.given(_unit("along", self.along)), -crossing(here) @ at.jacobian(self.body)[..., :3, :]
        if self.relative_to is not None:
            goal = (at.pose(self.relative_to)[1] @ goal[..., None])[..., 0]
            rates = rates + crossing(goal) @ at.jacobian(self.relative_to)[..., :3, :]
        return here - goal, rates


@checked_methods
@dataclass(frozen=True, eq=False)
class Gaze(KinematicTarget):
    """The line through a `point` of a body along its `axis` meets the place `at` [m] in the world, ahead of the point:
    what a camera looks at."""

    body: str
    axis: npt.ArrayLike
    at: npt.ArrayLike
    _: KW_ONLY
    point: npt.ArrayLike = ORIGIN

    def check(self) -> None:
        _unit(f"{self.label}: axis", self.axis)
        _numbers(f"{self.label}: at", self.at, (3,))
        _numbers(f"{self.label}: point", self.point, (3,))

    @property
    def label(self) -> str:
        return f"gaze of {self.body!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        return np.shape(self.at)[:-1]

    def rows(self, at: Places) -> Rows:
        point = np.asarray(self.point, dtype=float)
        here = (at.pose(self.body)[1] @ _unit("axis", self.axis)[:, None])[..., 0]
        jacobian, way = at.jacobian(self.body, point), at.given(self.at) - at.point(self.body, point)
        far = np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-12 * at.length)
        goal = way / far
        across = (np.eye(3) - goal[..., :, None] * goal[..., None, :]) / far[..., None]
        return here - goal, -crossing(here) @ jacobian[..., :3, :] + across @ jacobian[..., 3:, :]


@checked_methods
@dataclass(frozen=True, eq=False)
class PointDistance(KinematicTarget):
    """Points of two bodies are a `distance` [m] apart."""

    first: str
    second: str
    distance: npt.ArrayLike
    _: KW_ONLY
    first_point: npt.ArrayLike = ORIGIN
    second_point: npt.ArrayLike = ORIGIN

    def check(self) -> None:
        if (_numbers(f"{self.label}: distance", self.distance, ()) <= 0.0).any():
            raise StateError(f"{self.label}: distance must be positive; for zero give a BodyPosition with relative_to=")
        for point in (self.first_point, self.second_point):
            _numbers(f"{self.label}: point", point, (3,))

    @property
    def label(self) -> str:
        return f"distance of {self.first!r} and {self.second!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        return np.shape(self.distance)

    def rows(self, at: Places) -> Rows:
        ends = [(body, np.asarray(point, dtype=float)) for body, point in (
            (self.first, self.first_point), (self.second, self.second_point))]
        (a, ja), (b, jb) = ((at.point(*end), at.jacobian(*end)[..., 3:, :]) for end in ends)
        way = b - a
        far = np.linalg.norm(way, axis=-1, keepdims=True)
        unit = way / np.maximum(far, 1e-12 * at.length)
        rates = (unit[..., None, :] @ (jb - ja)) / at.length
        return (far - at.given(self.distance, 0)[..., None]) / at.length, rates


@checked_methods
@dataclass(frozen=True, eq=False)
class CenterOfMass(KinematicTarget):
    """The centre of mass of the machine is at `position` [m]; `axes` names the components that count."""

    position: npt.ArrayLike
    _: KW_ONLY
    axes: str = "xyz"

    def check(self) -> None:
        _numbers(f"{self.label}: position", self.position, (3,))
        _check_axes(self.label, self.axes)

    @property
    def label(self) -> str:
        return "centre of mass"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        return np.shape(self.position)[:-1]

    def rows(self, at: Places) -> Rows:
        here, rates = at.center_of_mass()
        return _chosen(self.axes, (here - at.given(self.position)) / at.length, rates / at.length)


@checked_methods
@dataclass(frozen=True, eq=False)
class JointValue(KinematicTarget):
    """A joint, or a coordinate of it (``joint.coordinate``), has a `value` [rad or m]; a joint with a quaternion is
    given as a whole, (..., nq)."""

    name: str
    value: npt.ArrayLike

    def check(self) -> None:
        if not np.isfinite(np.asarray(self.value, dtype=float)).all():
            raise StateError(f"{self.label}: value is not finite")

    @property
    def label(self) -> str:
        return f"joint {self.name!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        entries = space.coordinate_entries(self.name)
        shape = np.shape(self.value)
        if len(entries) == 1:
            return shape[:-1] if shape[-1:] == (1,) else shape
        if shape[-1:] != (len(entries),):
            raise StateError(f"{self.label} has {len(entries)} coordinates, got values of shape {shape}")
        return shape[:-1]

    def rows(self, at: Places) -> Rows:
        return at.joint(self.name, self.value)


@checked_methods
@dataclass(frozen=True, eq=False)
class OutputValue(KinematicTarget):
    """An output of `Mechanism.add_output` has a `value`; `size` is an ordinary change of it."""

    name: str
    value: npt.ArrayLike
    _: KW_ONLY
    size: float = 1.0

    def check(self) -> None:
        _numbers(f"{self.label}: value", self.value, ())
        if not self.size > 0.0:
            raise StateError(f"{self.label}: size must be positive, got {self.size!r}")

    @property
    def label(self) -> str:
        return f"output {self.name!r}"

    def lead(self, space: Configuration) -> tuple[int, ...]:
        return np.shape(self.value)

    def rows(self, at: Places) -> Rows:
        here, rates = at.output(self.name)
        return (here - at.given(self.value, 0))[..., None] / self.size, rates[..., None, :] / self.size


def targets_of(given: Any) -> tuple[KinematicTarget, ...]:
    """Targets from one or several."""
    several = (given,) if isinstance(given, KinematicTarget) else tuple(given)
    for target in several:
        if not isinstance(target, KinematicTarget):
            raise StateError(f"inverse_kinematics: {target!r} is not a target; bc.targets has BodyPosition, "
                             "BodyOrientation, BodyPose, BodyDirection, Gaze, PointDistance, CenterOfMass, JointValue "
                             "and OutputValue")
    if not several:
        raise StateError("inverse_kinematics: give at least one target")
    return several
