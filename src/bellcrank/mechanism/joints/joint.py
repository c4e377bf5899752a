"""What every joint type offers. A joint type is one small file next to this one.

The kinematic methods work on any scalar and in *canonical axes*: a joint type tells by `alignment`
how its own axes lie in the joint frame the user gave, and the library turns the frames once, when a
mechanism is compiled. Canonical axes make most entries of transforms and subspaces exact zeros and ones.

The configuration maps work on NumPy arrays whose last axis is the joint's own q or u.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked
from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.turns import has_parameter, unit
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import AboutX, AboutZ, Force, General, Identity, Matrix3, Motion, Rotation, Transform, Vector

__all__ = ["AXES", "AlongChild", "Array", "AxisJoint", "Joint", "OtherJoint", "Reversed", "unit_vector"]

Array = npt.NDArray[np.float64]
#: squares of vectors divided by their length are this close to 1
_ROUNDING = 2e-15
AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0),
        "-x": (-1.0, 0.0, 0.0), "-y": (0.0, -1.0, 0.0), "-z": (0.0, 0.0, -1.0)}


class Joint(ABC):
    """A joint type with its axes: what `Mechanism.add_joint` takes."""

    #: numbers of coordinates and of speeds
    nq: int
    nu: int
    #: names of the speeds, for coordinate names such as ``hip.angle``
    speed_names: tuple[str, ...] = ()
    #: what each of its constraints forbids where it closes a loop: "along x", "about z" (in canonical axes; users are
    #: told the axes of the joint's frame) or a text that names no axis
    condition_names: tuple[str, ...] = ()
    #: whether turning and sliding the body frame along the joint's z axis only shifts its coordinates
    has_free_frame = False
    #: whether a rotor on it counts in the energy of motion
    counts_energy = True
    #: whether `measure` finds angles with their whole turns, not within one turn
    counts_turns = False
    #: attributes that are axes: in the frames on both bodies, or on the parent and on the child
    directions: tuple[str, ...] = ()

    # -- kinematics, any scalar, canonical axes --------------------------------------------------
    def alignment(self) -> Array:
        """Rotation matrix of the canonical axes in the joint frame, shape (3, 3)."""
        return np.eye(3)

    def constants(self) -> tuple[Number, ...]:
        """The joint's own numbers, handed back to the methods below as `k`."""
        return ()

    @abstractmethod
    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        """Pose of the child side in the parent side, as a product of simple factors."""

    @abstractmethod
    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        """The columns of the relative velocity per unit speed, in child axes at the child's origin."""

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        """Relative acceleration at constant speeds u, as seen from the parent side, in child axes."""
        return Motion.zero()

    def rates(self, q: Sequence[Number], u: Sequence[Number]) -> list[Number]:
        """Rates of the coordinates for speeds u."""
        return list(u)

    def normalized(self, q: Sequence[Number]) -> list[Number]:
        """The nearest valid coordinates, over any scalar."""
        return list(q)

    @abstractmethod
    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        """The 6 - nu constraints it imposes where it closes a loop, between its parent and its child side."""

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        """Where it closes a loop: the wrench at the child's point that a unit force along each coordinate is."""
        raise ModelError(f"a {type(self).__name__} that closes a loop has no single coordinates to act on")

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        """Its coordinates where it closes a loop, on any scalar."""
        raise ModelError(f"a {type(self).__name__} that closes a loop has no single coordinates to act on")

    def holding_row(self, first: Side, second: Side, k: Sequence[Number], coordinate: int, value: Number) -> Row:
        """Where it closes a loop: the constraint that holds one of its coordinates, by its number, at a value."""
        raise ModelError(f"a {type(self).__name__} that closes a loop cannot hold single coordinates: its type has no "
                         "holding_row")

    # -- configuration space, NumPy -------------------------------------------------------------
    @abstractmethod
    def measure(self, turn: Array, shift: Array) -> Array:
        """The coordinates of a pose of the child side in the parent side, (..., 3, 3) and (..., 3), that the joint
        allows; of another pose, those of one nearby."""

    def neutral(self) -> Array:
        """The configuration in which a mechanism is drawn: both sides coincide (those of `Free` joints at `start`)."""
        return np.zeros(self.nq)

    def coordinate_names(self) -> tuple[str, ...]:
        """Names of the coordinates."""
        return self.speed_names

    def within_a_turn(self, coordinate: int) -> bool:
        """Whether a coordinate, by its number, is an angle that `measure` finds up to whole turns."""
        return self.coordinate_names()[coordinate].startswith("angle") and not self.counts_turns

    def qdot(self, q: Array, u: Array) -> Array:
        """Rates of the coordinates."""
        if self.nq == self.nu:
            return np.asarray(u, dtype=float)
        rates = self.rates([q[..., i] for i in range(self.nq)], [u[..., i] for i in range(self.nu)])
        return np.stack(np.broadcast_arrays(*rates), axis=-1)

    def integrate(self, q: Array, du: Array) -> Array:
        """The configuration reached from q by the constant speeds `du` in unit time."""
        return np.asarray(q + du, dtype=float)

    def difference(self, q0: Array, q1: Array) -> Array:
        """The constant speeds that lead from q0 to q1 in unit time."""
        return np.asarray(q1 - q0, dtype=float)

    def normalize(self, q: Array) -> Array:
        """The nearest valid configuration."""
        return np.asarray(q, dtype=float)

    @property
    def adds_up(self) -> bool:
        """Whether coordinates are moved by adding speeds, each to its own: `integrate` and `difference` as above."""
        own = type(self)
        return self.nq == self.nu and own.integrate is Joint.integrate and own.difference is Joint.difference

    def reversed(self) -> Joint:
        """The same joint seen from its child: same q and u, inverse motion."""
        return Reversed(self)

    def along_child(self) -> Joint:
        """The same joint with its `closure_rows` along the axes of its child, where it has such a form."""
        return self

    def kind(self) -> tuple[object, ...]:
        """What makes two joints of this library follow the same code."""
        return (type(self).__name__,)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class AxisJoint(Joint):
    """A joint that moves about or along one axis, which is the canonical z axis.

    Constants: the turn and the slide between the two sides at q = 0.
    """

    has_free_frame = True
    directions = ("axis",)

    @checked
    def __init__(self, axis: str | Sequence[Number] = "z") -> None:
        self.axis = unit_vector(axis, f"{type(self).__name__} axis")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.axis))

    def constants(self) -> tuple[Number, ...]:
        return (0.0, 0.0)

    def reversed(self) -> Joint:
        return type(self)(tuple(-a for a in self.axis))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.axis})"


class AlongChild(Joint):
    """A joint, named as a second base, that closes loops along the axes of its child rather than of its parent."""

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return tuple(row.exchanged() for row in super().closure_rows(second, first, k))  # type: ignore[safe-super]


class OtherJoint(Joint):
    """A joint with the coordinates and speeds of another one, `joint`."""

    def __init__(self, joint: Joint) -> None:
        self.joint = joint
        self.nq, self.nu = joint.nq, joint.nu
        self.speed_names = joint.speed_names
        self.counts_turns = joint.counts_turns

    def neutral(self) -> Array:
        return self.joint.neutral()

    def coordinate_names(self) -> tuple[str, ...]:
        return self.joint.coordinate_names()

    def rates(self, q: Sequence[Number], u: Sequence[Number]) -> list[Number]:
        return self.joint.rates(q, u)

    def normalized(self, q: Sequence[Number]) -> list[Number]:
        return self.joint.normalized(q)

    def integrate(self, q: Array, du: Array) -> Array:
        return self.joint.integrate(q, du)

    def difference(self, q0: Array, q1: Array) -> Array:
        return self.joint.difference(q0, q1)

    @property
    def adds_up(self) -> bool:
        return self.joint.adds_up

    def normalize(self, q: Array) -> Array:
        return self.joint.normalize(q)

    def kind(self) -> tuple[object, ...]:
        return (type(self).__name__, *self.joint.kind())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.joint!r})"


class Reversed(OtherJoint):
    """A joint seen from its child, for tree joints that point towards the ground: the inverse motion of another joint,
    with that joint's own coordinates and speeds."""

    def __init__(self, joint: Joint) -> None:
        super().__init__(joint)
        self.condition_names = joint.condition_names

    def alignment(self) -> Array:
        return self.joint.alignment()

    def constants(self) -> tuple[Number, ...]:
        return self.joint.constants()

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return tuple(_inverse(t) for t in reversed(self.joint.transforms(q, k)))

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return tuple(-self._outward(q, k, column) for column in self.joint.subspace(q, k))

    def drift(self, q: Sequence[Number], u: Sequence[Number], k: Sequence[Number]) -> Motion:
        # acceleration of the old parent in the turning axes of the old child:
        # -(a - 2 w x v + w x (w x p) - alpha x p), all parts in the old parent's axes
        forward = self.joint.drift(q, u, k)
        rate = Motion.zero()
        for column, speed in zip(self.joint.subspace(q, k), u, strict=True):
            rate = rate + column * speed
        turns = self.joint.transforms(q, k)
        alpha, a, w, v = (_rotated(turns, x) for x in (forward.angular, forward.linear, rate.angular, rate.linear))
        p = Vector.zero()
        for t in reversed(turns):
            p = t.point(p)
        return Motion(-alpha, -(a - w.cross(v) * 2.0 + w.centripetal(p) - alpha.cross(p)))

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return tuple(row.exchanged() for row in self.joint.closure_rows(second, first, k))

    def loop_columns(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Force, ...]:
        arm = first.point - second.point  # what acts on the old child there acts back on the new one
        return tuple(Force(-(column.moment + arm.cross(column.force)), -column.force)
                     for column in self.joint.loop_columns(second, first, k))

    def loop_coordinates(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Number, ...]:
        return self.joint.loop_coordinates(second, first, k)

    def measure(self, turn: Array, shift: Array) -> Array:
        back = np.swapaxes(turn, -1, -2)
        return self.joint.measure(back, -(back @ shift[..., None])[..., 0])

    def _outward(self, q: Sequence[Number], k: Sequence[Number], column: Motion) -> Motion:
        for t in reversed(self.joint.transforms(q, k)):
            column = t.column_to_parent(column)
        return column

    def reversed(self) -> Joint:
        return self.joint


def _rotated(turns: Sequence[Transform], v: Vector) -> Vector:
    for t in reversed(turns):
        v = t.rotation.apply(v)
    return v


def _inverse(t: Transform) -> Transform:
    return Transform(_transposed(t.rotation), -t.rotation.inverse(t.translation))


def _transposed(r: Rotation) -> Rotation:
    match r:
        case AboutX(c, s):
            return AboutX(c, -s)
        case AboutZ(c, s):
            return AboutZ(c, -s)
        case General(rows):
            return General(Matrix3(*(Vector(*column) for column in zip(*rows, strict=True))))
        case _:
            return Identity()


def unit_vector(value: str | Sequence[Number], what: str) -> tuple[Number, Number, Number]:
    """`value` (a name such as "z" or three numbers) as a unit vector of floats, or of expressions of parameters."""
    if isinstance(value, str):
        if value not in AXES:
            raise ModelError(f"{what}: {value!r} is not an axis name; use one of {', '.join(AXES)} or three numbers")
        return AXES[value]
    try:
        if has_parameter(value):
            x, y, z = unit(tuple(v if isinstance(v, Scalar) else float(v) for v in value))
            return x, y, z
        vector = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {value!r} is not three numbers") from None
    if vector.shape != (3,):
        raise ModelError(f"{what}: needs three numbers, got shape {vector.shape}")
    if not np.isfinite(vector).all():
        raise ModelError(f"{what}: {tuple(vector.tolist())} is not finite")
    largest = float(np.abs(vector).max())
    if 0.5 < largest < 2.0 and abs(float(vector @ vector) - 1.0) <= _ROUNDING:
        x, y, z = (float(v) + 0.0 for v in vector)  # as it is, so that axes from files are those that were written
        return x, y, z
    vector = vector / (largest or 1.0)  # squares must not overflow
    length = float(np.sqrt(vector @ vector))
    if largest < 1e-9:
        raise ModelError(f"{what}: {tuple(vector.tolist())} has no direction; give a vector of non-zero length")
    vector = vector / length
    x, y, z = (float(v) + 0.0 for v in vector)
    return x, y, z


def beside(z: Array) -> Array:
    """The x axis, or y where that is nearly parallel to a unit vector `z`, shape (..., 3)."""
    return np.where(np.abs(z[..., 0:1]) > 0.9, np.array([0.0, 1.0, 0.0]), np.array([1.0, 0.0, 0.0]))


def frame_with_z(z: Array) -> Array:
    """Rotation matrices whose third column is `z`, shape (..., 3) -> (..., 3, 3); identity for z itself."""
    z = np.asarray(z, dtype=float)
    helper = beside(z)
    x = helper - z * (helper * z).sum(-1, keepdims=True)
    x = x / np.sqrt((x * x).sum(-1, keepdims=True))
    return np.stack([x, np.cross(z, x), z], axis=-1)


Z_TURN = Motion(Vector(0.0, 0.0, 1.0), Vector.zero())
Z_SLIDE = Motion(Vector.zero(), Vector(0.0, 0.0, 1.0))
