"""States in the coordinates of other libraries, MuJoCo and Pinocchio, which read the same file; neither is imported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

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

__all__ = ["PeerStates", "mujoco_joint", "pinocchio_joint", "pinocchio_order"]

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

    def to_peer(self, state: State) -> Pair:
        """Coordinates and speeds of the other library."""
        self._check()
        if not isinstance(state, State):
            raise StateError(f"{self.source}: needs a State, got {type(state).__name__}; system.state(q, u) makes one")
        lead = state.shape
        parts = [(np.zeros((*lead, 0)), np.zeros((*lead, 0)))]
        for name, joint in self.joints.items():
            own = [np.asarray(x, dtype=float) for x in (state[name], state.speed(name))]
            q, u = (x[..., None] if joint.nv == 1 else x for x in own)
            pair = joint.to_peer(q, u)
            parts.append(tuple(np.broadcast_to(x, (*lead, x.shape[-1])) for x in pair))  # type: ignore[arg-type]
        return np.concatenate([q for q, _ in parts], axis=-1), np.concatenate([v for _, v in parts], axis=-1)

    def by_joint(self, q: npt.ArrayLike, v: npt.ArrayLike | None) -> dict[str, Pair]:
        """Our coordinates and speeds by joint; at rest without v."""
        self._check()
        nq, nv = (sum(getattr(j, n) for j in self.joints.values()) for n in ("nq", "nv"))
        q = flat(f"{self.library}'s coordinates", q, nq, f"those of the joints of {self.source}")
        v = np.zeros(nv) if v is None else flat(f"{self.library}'s speeds", v, nv, f"those of {self.source}")
        lead = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        q, v = np.broadcast_to(q, (*lead, nq)), np.broadcast_to(v, (*lead, nv))
        made, i, j = {}, 0, 0
        for name, joint in self.joints.items():
            made[name] = joint.from_peer(q[..., i:i + joint.nq], v[..., j:j + joint.nv])
            i, j = i + joint.nq, j + joint.nv
        return made

    def from_peer(self, system: System, q: npt.ArrayLike, v: npt.ArrayLike | None, t: npt.ArrayLike) -> State:
        """The state of a system; coordinates of joints that close loops follow from those of the bodies."""
        check_time(t)
        values = self.by_joint(q, v)
        configuration = system.model.configuration
        lost = [name for name in values if name not in configuration.starts]
        if lost:
            raise StateError(f"{system.model.name}: has no joint {lost[0]!r} of {self.source}; give the system of the "
                             "machine that was read from this file")
        start = system.state(t=t)
        lead = next((x.shape[:-1] for x, _ in values.values()), ())
        place, speed = (np.array(np.broadcast_to(x, (*lead, x.shape[-1]))) for x in (start.q, start.u))
        for name, pair in values.items():
            i, j = configuration.starts[name]
            place[..., i:i + pair[0].shape[-1]], speed[..., j:j + pair[1].shape[-1]] = pair
        _measure_loops(system, set(values), place, speed)
        return configuration.state(place, speed, t)


def _measure_loops(system: System, known: set[str], q: Floats, u: Floats) -> None:
    """Put in the coordinates and speeds of joints between bodies that the others place already."""
    mechanism = system.model.described
    tree, closing = _split(mechanism)
    left = [r for r in tree if r.joint.nq and r.name not in known and r.name not in {s.name for s in mechanism.states}]
    if left:
        raise StateError(f"{system.model.name}: the joint {left[0].name!r} is not in the file that the state is of; "
                         "convert for the machine as it was read, and set the joint with State.replace")
    measured = [r for r in closing if r.joint.nq]
    if not measured:
        return
    bare = system.kernels.kept("joints alone", lambda: _joints_alone(mechanism, tree, closing))
    starts, own = system.model.configuration.starts, bare.model.configuration.starts
    places = [(starts[name], own[name], r.joint) for r in (*tree, *closing) for name in (r.name,) if r.joint.nq and
              name in own]
    q2, u2 = np.zeros((*q.shape[:-1], bare.nq)), np.zeros((*u.shape[:-1], bare.nu))
    for (i, j), (i2, j2), joint in places:
        q2[..., i2:i2 + joint.nq], u2[..., j2:j2 + joint.nu] = q[..., i:i + joint.nq], u[..., j:j + joint.nu]
    q2 = bare.plans.drawn.measured(q2, 0.0)
    u2 = bare.kernels.run("joint_speeds", {"q": q2, "u": u2}, None, 0.0)
    for r in measured:
        (i, j), (i2, j2), joint = starts[r.name], own[r.name], r.joint
        q[..., i:i + joint.nq], u[..., j:j + joint.nu] = q2[..., i2:i2 + joint.nq], u2[..., j2:j2 + joint.nu]


def _split(mechanism: Mechanism) -> tuple[list[Connection], list[Connection]]:
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

    states = {s.name for s in mechanism.states}
    bare = Mechanism(mechanism.name)
    names = ["ground"]
    for body in mechanism.bodies:
        names.append(body.name)
        if body.name not in states:
            bare.add_body(body.name, Inertia.sphere(1.0, 1.0))
    for r in (*tree, *closing):
        if r.name not in states:
            bare.add_joint(r.name, r.joint, names[r.parent], names[r.child], r.parent_pose, r.child_pose)
    try:
        return compile(bare, "dense", "numpy", cut=[r.name for r in closing])
    except ModelError as error:
        raise StateError(f"{mechanism.name}: the coordinates of joints that close loops cannot be found: {error}"
                         ) from None
