"""States in the coordinates of other libraries, MuJoCo and Pinocchio, which read the same file; neither is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.errors import ModelError, StateError
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Free, Planar, Prismatic, Revolute, Spherical, quaternion
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.mechanism.mechanism import Connection, Mechanism
from bellcrank.mechanism.pose import Pose
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["PeerStates", "mujoco_joint", "pinocchio_joint", "pinocchio_order", "tree_and_closing"]

Pair = tuple[Floats, Floats]


class PeerJoint(Protocol):
    """A joint as another library has it: numbers of its coordinates and speeds there, and both conversions."""

    nq: int
    nv: int

    def to_peer(self, q: Floats, u: Floats) -> Pair: ...

    def from_peer(self, q: Floats, v: Floats) -> Pair: ...


@dataclass(frozen=True)
class _Along:
    """One angle or displacement, which is `zero` where ours is zero."""

    zero: float = 0.0
    nq = nv = 1

    def to_peer(self, q: Floats, u: Floats) -> Pair:
        return q + self.zero, u

    def from_peer(self, q: Floats, v: Floats) -> Pair:
        return q - self.zero, v


@dataclass(frozen=True)
class _Unbounded:
    """An angle as its cosine and sine."""

    nq, nv = 2, 1

    def to_peer(self, q: Floats, u: Floats) -> Pair:
        return np.concatenate([np.cos(q), np.sin(q)], axis=-1), u

    def from_peer(self, q: Floats, v: Floats) -> Pair:
        return np.arctan2(q[..., 1:], q[..., :1]), v


@dataclass(frozen=True)
class _Ball:
    """A quaternion, scalar first or last; angular velocities are in axes of the child everywhere."""

    scalar_first: bool
    nq, nv = 4, 3

    def to_peer(self, q: Floats, u: Floats) -> Pair:
        turn = quaternion.normalize(q)
        return turn if self.scalar_first else np.roll(turn, -1, axis=-1), u

    def from_peer(self, q: Floats, v: Floats) -> Pair:
        turn = q if self.scalar_first else np.roll(q, 1, axis=-1)
        none = np.array([1.0, 0.0, 0.0, 0.0])  # what MuJoCo takes a quaternion of zeros for
        return quaternion.normalize(np.where(turn.any(axis=-1, keepdims=True), turn, none)), v


@dataclass(frozen=True)
class _Floating:
    """A position, then a quaternion, measured from a frame that lies at `origin` in ours; the linear speed comes first,
    in axes of that frame (MuJoCo, where it is the world) or of the child."""

    ball: _Ball
    origin: Pose = field(default_factory=Pose)
    nq, nv = 7, 6

    def to_peer(self, q: Floats, u: Floats) -> Pair:
        back = self.origin.rotation.T
        turn = quaternion.product(quaternion.from_matrix(back), q[..., :4])
        shift = (q[..., 4:] - np.array(self.origin.position)) @ back.T
        speed = quaternion.turn(quaternion.normalize(turn), u[..., 3:]) if self.ball.scalar_first else u[..., 3:]
        return np.concatenate([shift, self.ball.to_peer(turn, u)[0]], -1), np.concatenate([speed, u[..., :3]], -1)

    def from_peer(self, q: Floats, v: Floats) -> Pair:
        out = self.origin.rotation
        turn = self.ball.from_peer(q[..., 3:], v)[0]
        speed = quaternion.turn(quaternion.conjugate(turn), v[..., :3]) if self.ball.scalar_first else v[..., :3]
        whole = quaternion.product(quaternion.from_matrix(out), turn)
        shift = q[..., :3] @ out.T + np.array(self.origin.position)
        return np.concatenate([whole, shift], -1), np.concatenate([v[..., 3:], speed], -1)


@dataclass(frozen=True)
class _Slides:
    """Two slides and a hinge along the normal, as MuJoCo makes of a planar joint of a URDF file: `axes` (2, 2) has the
    directions of our x and y along its slides."""

    axes: tuple[tuple[float, ...], ...]
    nq = nv = 3

    def to_peer(self, q: Floats, u: Floats) -> Pair:
        return self._turned(q, np.array(self.axes)), self._turned(u, np.array(self.axes))

    def from_peer(self, q: Floats, v: Floats) -> Pair:
        return self._turned(q, np.array(self.axes).T), self._turned(v, np.array(self.axes).T)

    @staticmethod
    def _turned(x: Floats, axes: Floats) -> Floats:
        return np.concatenate([x[..., :2] @ axes.T, x[..., 2:]], axis=-1)


@dataclass(frozen=True)
class _InPlane:
    """x, y, cosine and sine, with the velocity in axes of the child: Pinocchio's planar joint."""

    nq, nv = 4, 3

    def to_peer(self, q: Floats, u: Floats) -> Pair:
        c, s = np.cos(q[..., 2]), np.sin(q[..., 2])
        x, y = u[..., 0], u[..., 1]
        return (np.stack([q[..., 0], q[..., 1], c, s], axis=-1),
                np.stack([c * x + s * y, c * y - s * x, u[..., 2]], axis=-1))

    def from_peer(self, q: Floats, v: Floats) -> Pair:
        angle = np.arctan2(q[..., 3], q[..., 2])
        c, s = np.cos(angle), np.sin(angle)
        x, y = v[..., 0], v[..., 1]
        return (np.stack([q[..., 0], q[..., 1], angle], axis=-1),
                np.stack([c * x - s * y, s * x + c * y, v[..., 2]], axis=-1))


def mujoco_joint(joint: Joint, zero: float = 0.0) -> PeerJoint | None:
    """A joint of a file as MuJoCo has it, whose coordinate is `zero` where ours is zero; None if it has no such."""
    match joint:
        case Revolute() | Prismatic():
            return _Along(zero)
        case Spherical():
            return _Ball(True)
        case Free():
            return _Floating(_Ball(True))
        case Planar():
            normal = np.array(joint.normal, dtype=float)
            across = np.cross([0.0, 0.0, 1.0], normal)  # the shortest turn of z into the normal; half a turn about x
            length = float(np.linalg.norm(across))
            turn = Pose.about(across.tolist() if length > 1e-10 else "x", np.arctan2(length, normal[2])).rotation
            return _Slides(tuple(map(tuple, (turn.T @ joint.alignment())[:2, :2].tolist())))
    return None


def pinocchio_joint(joint: Joint, unbounded: bool = False) -> PeerJoint | None:
    """A joint of a URDF file as Pinocchio has it; `unbounded`: it is of the type continuous."""
    match joint:
        case Revolute() if unbounded:
            return _Unbounded()
        case Revolute() | Prismatic():
            return _Along()
        case Free():
            return _Floating(_Ball(False), joint.start)
        case Planar() if joint.normal == (0.0, 0.0, 1.0):  # Pinocchio takes this normal, whatever the file says
            return _InPlane()
    return None


def pinocchio_order(below: Mapping[str, Iterable[tuple[str, str]]], root: str) -> list[str]:
    """Joints in Pinocchio's order: depth first, those of one link by name. `below` has joints and links by link."""
    order: list[str] = []
    stack = [("", root)]
    while stack:
        joint, link = stack.pop()
        order += [joint] if joint else []
        stack.extend(sorted(below.get(link, ()), reverse=True))
    return order


@dataclass(frozen=True)
class PeerStates:
    """Joints of a mechanism in the order of another library, with the conversion of each.

    Where the library does not have the machine, `missing` says why.
    """

    source: str  #: the file
    library: str
    joints: Mapping[str, PeerJoint] = field(default_factory=dict)
    missing: str = ""

    @classmethod
    def of(cls, source: str, library: str, joints: Mapping[str, PeerJoint | None]) -> PeerStates:
        """With the reason in place of joints if one has no conversion."""
        lost = [name for name, joint in joints.items() if joint is None]
        known = {name: joint for name, joint in joints.items() if joint is not None}
        return cls(source, library, {} if lost else known,
                   f"{library} has no joint like {lost[0]!r} of this file" if lost else "")

    def _check(self) -> None:
        if self.missing:
            raise StateError(f"{self.source}: states cannot be converted: {self.missing}")

    @cached_property
    def _places(self) -> dict[str, tuple[PeerJoint, slice, slice]]:
        """Joints with their places in the coordinates and speeds of the library."""
        made, i, j = {}, 0, 0
        for name, joint in self.joints.items():
            made[name] = joint, slice(i, i + joint.nq), slice(j, j + joint.nv)
            i, j = i + joint.nq, j + joint.nv
        return made

    @cached_property
    def _plain(self) -> tuple[list[str], list[int], list[int], Floats]:
        """Joints of one coordinate that is ours plus a constant: names, places there, constants."""
        found = [(name, q.start, v.start, joint.zero) for name, (joint, q, v) in self._places.items()
                 if isinstance(joint, _Along)]
        return [f[0] for f in found], [f[1] for f in found], [f[2] for f in found], np.array([f[3] for f in found])

    @cached_property
    def _others(self) -> list[tuple[str, PeerJoint, slice, slice]]:
        return [(name, *place) for name, place in self._places.items() if not isinstance(place[0], _Along)]

    @property
    def _sizes(self) -> tuple[int, int]:
        return sum(joint.nq for joint in self.joints.values()), sum(joint.nv for joint in self.joints.values())

    def to_peer(self, state: State) -> Pair:
        """Coordinates and speeds of the other library."""
        self._check()
        if not isinstance(state, State):
            raise StateError(f"{self.source}: needs a State, got {type(state).__name__}; system.state(q, u) makes one")
        for name in self.joints:
            if state.names is None or name not in state.names.coordinate_places:
                state[name]  # says what is wrong
        assert state.names is not None
        at_q, at_u = state.names.coordinate_places, state.names.speed_places
        names, in_q, in_v, zeros = self._plain
        q, v = (np.empty((*state.shape, size)) for size in self._sizes)
        own_q, own_u = (np.array([at[name] for name in names], dtype=np.int64) for at in (at_q, at_u))
        q[..., in_q], v[..., in_v] = state.q[..., own_q] + zeros, state.u[..., own_u]
        for name, joint, places, speeds in self._others:
            own = state.q[..., at_q[name]], state.u[..., at_u[name]]
            q[..., places], v[..., speeds] = joint.to_peer(*(x[..., None] for x in own) if joint.nv == 1 else own)
        return q, v

    def _arrays(self, q: npt.ArrayLike, v: npt.ArrayLike | None) -> Pair:
        """What is given, as arrays with the same leading axes; at rest without v."""
        self._check()
        nq, nv = self._sizes
        q = flat(f"{self.library}'s coordinates", q, nq, f"those of the joints of {self.source}")
        v = np.zeros(nv) if v is None else flat(f"{self.library}'s speeds", v, nv, f"those of {self.source}")
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        return np.broadcast_to(q, (*lead, nq)), np.broadcast_to(v, (*lead, nv))

    def by_joint(self, q: npt.ArrayLike, v: npt.ArrayLike | None) -> dict[str, Pair]:
        """Our coordinates and speeds by joint."""
        a, b = self._arrays(q, v)
        return {name: joint.from_peer(a[..., i], b[..., j]) for name, (joint, i, j) in self._places.items()}

    def from_peer(self, system: System, q: npt.ArrayLike, v: npt.ArrayLike | None, t: npt.ArrayLike) -> State:
        """The state of a system; coordinates of joints that close loops follow from those of the bodies."""
        check_time(t)
        a, b = self._arrays(q, v)
        configuration = system.model.configuration
        starts, (names, in_q, in_v, zeros) = configuration.starts, self._plain
        lost = [name for name in self.joints if name not in starts]
        if lost:
            raise StateError(f"{system.model.name}: has no joint {lost[0]!r} of {self.source}; give the system of the "
                             "machine that was read from this file")
        place = np.array(np.broadcast_to(configuration.neutral(), (*a.shape[:-1], system.nq)))
        speed = np.zeros((*a.shape[:-1], system.nu))
        place[..., [starts[name][0] for name in names]] = a[..., in_q] - zeros
        speed[..., [starts[name][1] for name in names]] = b[..., in_v]
        for name, joint, places, speeds in self._others:
            (i, j), pair = starts[name], joint.from_peer(a[..., places], b[..., speeds])
            place[..., i:i + pair[0].shape[-1]], speed[..., j:j + pair[1].shape[-1]] = pair
        _measure_loops(system, self.joints, place, speed)
        return configuration.state(place, speed, t)


class _LoopJoints(NamedTuple):
    """What coordinates of joints that close loops follow from."""

    carrying: tuple[str, ...]  #: joints with coordinates that carry a body
    alone: System | None  #: bodies and joints, cut at all others; None without such
    places: list[int]  #: its coordinates among those of the machine
    speeds: list[int]


def _measure_loops(system: System, known: Mapping[str, object], q: Floats, u: Floats) -> None:
    """Put in the coordinates and speeds of joints between bodies that the others place already."""
    model = system.model
    loops = system.kernels.kept("joints alone", lambda: _loop_joints(model.described, model.configuration.starts))
    left = [name for name in loops.carrying if name not in known]
    if left:
        raise StateError(f"{model.name}: the joint {left[0]!r} is not in the file that the state is of; convert for "
                         "the machine as it was read, and set the joint with State.replace")
    if loops.alone is not None:
        place = loops.alone.plans.drawn.measured(q[..., loops.places], 0.0)
        speed = loops.alone.kernels.run("joint_speeds", {"q": place, "u": u[..., loops.speeds]}, None, 0.0)
        q[..., loops.places], u[..., loops.speeds] = place, speed


def _loop_joints(mechanism: Mechanism, starts: Mapping[str, tuple[int, int]]) -> _LoopJoints:
    states = {s.name for s in mechanism.states}
    tree, closing = ([r for r in some if r.name not in states] for some in tree_and_closing(mechanism))
    carrying = tuple(r.name for r in tree if r.joint.nq)
    if not any(r.joint.nq for r in closing):
        return _LoopJoints(carrying, None, [], [])
    records = [*tree, *closing]
    return _LoopJoints(carrying, _joints_alone(mechanism, tree, closing),
                       [starts[r.name][0] + i for r in records for i in range(r.joint.nq)],
                       [starts[r.name][1] + i for r in records for i in range(r.joint.nu)])


def tree_and_closing(mechanism: Mechanism) -> tuple[list[Connection], list[Connection]]:
    """Joints that carry a body, and those between bodies that earlier joints connect."""
    group = list(range(len(mechanism.bodies) + 1))

    def root(body: int) -> int:
        while group[body] != body:
            group[body] = group[group[body]]
            body = group[body]
        return body

    tree: list[Connection] = []
    closing: list[Connection] = []
    for record in mechanism.joints:
        a, b = root(record.parent), root(record.child)
        (closing if a == b else tree).append(record)
        group[b] = a
    return tree, closing


def _joints_alone(mechanism: Mechanism, tree: list[Connection], closing: list[Connection]) -> System:
    """The bodies and joints of a mechanism, with loops cut at the joints named: for kinematics."""
    from bellcrank.compiled.compile import compile

    bare = Mechanism(mechanism.name)
    names = ["ground", *(body.name for body in mechanism.bodies)]
    for i in sorted({i for r in tree for i in (r.parent, r.child)} - {0}):
        bare.add_body(names[i], Inertia.sphere(1.0, 1.0))
    for r in (*tree, *closing):
        bare.add_joint(r.name, r.joint, names[r.parent], names[r.child], r.parent_pose, r.child_pose)
    try:
        return compile(bare, "dense", "numpy", cut=[r.name for r in closing])
    except ModelError as error:
        raise StateError(f"{mechanism.name}: the coordinates of joints that close loops cannot be found: {error}"
                         ) from None
