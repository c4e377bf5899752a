"""Deformation as joints: one whose coordinates are the modal ones, and the motion of nodes that follows from them.

Body "rod" with a node "tip" becomes, in the graph of bodies and joints,

    rod --- joint "rod" (`Modal`) ---> rod.frame --- joint "rod.tip" (`NodeMotion`) ---> rod.tip

`rod.frame` has the inertia and never moves relative to `rod`: its joint has the modal coordinates, which move nothing
but nodes. A node has no coordinates of its own: its pose is a function of those of the frame it is carried by. Nodes
that no mode moves are welded to `rod` itself (`HeldNode`).

Rotations by small vectors, over any scalar: smooth at zero, where sines divided by angles are not.

A rotation vector theta, s = theta . theta, turns by R = 1 + A theta~ + B theta~^2; its rate gives the angular velocity
w = theta' + B theta x theta' + C theta x (theta x theta') in the axes before the turn, and with -B in those after it.
A, B and C are sin(x)/x, (1 - cos x)/x^2 and (x - sin x)/x^3 of x = sqrt(s): power series of s that are exact to
rounding up to half a turn, far beyond what linear elasticity can describe.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.flexible.modal_kinetics import ModalInertia, StiffenedInertia
from bellcrank.mechanism.forces.coordinate_forces import LinearSpring
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints.joint import Array, Joint
from bellcrank.mechanism.parts import Body, Connection
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.functions import cos, sin
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.spatial import AboutX, AboutZ, General, Identity, Matrix3, Motion, Rotation, Transform, Vector

__all__ = ["HeldNode", "Modal", "NodeMotion", "add_deformation", "order_modes"]


# -- rotations by small vectors, over any scalar ----------------------------------------------------
_TERMS = 14


def _series(first: int) -> tuple[float, ...]:
    """Coefficients (-1)^n / (2 n + first)!."""
    return tuple((-1.0) ** n / math.factorial(2 * n + first) for n in range(_TERMS))


_A, _B, _C = _series(1), _series(2), _series(3)


def _slope(series: Sequence[float]) -> tuple[float, ...]:
    return tuple(n * c for n, c in enumerate(series))[1:]


def _sum(series: Sequence[float], s: Number) -> Number:
    total: Number = series[-1]
    for c in reversed(series[:-1]):
        total = total * s + c
    return total


def rotation(theta: Vector) -> Rotation:
    """The rotation by a vector; about one axis it is that of an angle."""
    still = [is_zero(x) for x in theta]
    if all(still):
        return Identity()
    if still[1] and still[2]:
        return AboutX(cos(theta.x), sin(theta.x))
    if still[0] and still[1]:
        return AboutZ(cos(theta.z), sin(theta.z))
    s = theta.dot(theta)
    a, b = _sum(_A, s), _sum(_B, s)
    x, y, z = theta
    xy, xz, yz = b * x * y, b * x * z, b * y * z
    return General(Matrix3(Vector(1.0 - b * (y * y + z * z), xy - a * z, xz + a * y),
                           Vector(xy + a * z, 1.0 - b * (x * x + z * z), yz - a * x),
                           Vector(xz - a * y, yz + a * x, 1.0 - b * (x * x + y * y))))


def turning(theta: Vector, rate: Vector) -> Vector:
    """The angular velocity of a rotation vector's rate, in the axes after the turn."""
    s = theta.dot(theta)
    across = theta.cross(rate)
    found: Vector = rate - across * _sum(_B, s) + theta.cross(across) * _sum(_C, s)
    return found


def turning_drift(theta: Vector, rate: Vector) -> Vector:
    """The angular acceleration at a constant rate of the vector, as seen from before the turn, in the axes after it."""
    s, half = theta.dot(theta), theta.dot(rate)
    change = half + half  # ds/dt
    across = theta.cross(rate)
    twice = theta.cross(across)
    before = across * (_sum(_slope(_B), s) * change) + twice * (_sum(_slope(_C), s) * change) \
        + rate.cross(across) * _sum(_C, s)
    after: Vector = rotation(theta).inverse(before)
    return after


# -- deformation as joints --------------------------------------------------------------------------
class _Deformation(Joint):
    """What both have in common: they close no loops and have no other side."""

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        raise ModelError("the deformation of a flexible body closes no loop")

    def reversed(self) -> Joint:
        raise ModelError("a flexible body is carried by its frame, not by a node")


class Modal(_Deformation):
    """The deformation of a body: q = modal coordinates, u = their rates. It moves nodes and not the frame."""

    def __init__(self, body: FlexibleBody) -> None:
        self.body = body
        self.nq = self.nu = body.size
        self.speed_names = body.mode_names

    @cached_property
    def inertia(self) -> ModalInertia | StiffenedInertia:
        """The kinetic energy."""
        more = self.body.stiffening
        return ModalInertia(self.body.integrals) if more is None else StiffenedInertia(more)

    @cached_property
    def stiffness(self) -> list[list[float]]:
        return _cleaned(self.body.stiffness)

    @cached_property
    def damping(self) -> list[list[float]]:
        return _cleaned(self.body.damping)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return ()

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return (Motion.zero(),) * self.nu

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.zeros((*turn.shape[:-2], self.nq))

    def springs(self) -> tuple[LinearSpring, ...]:
        """The elasticity and damping of every mode alone."""
        return tuple(LinearSpring(self.stiffness[i][i], self.damping[i][i]) for i in range(self.nu))

    def coupling(self, e: Sequence[Number], rate: Sequence[Number], i: int) -> Number:
        """The elastic and damping force along one mode that others cause; none where the matrices are diagonal."""
        total: Number = 0.0
        for j, (stiff, damp) in enumerate(zip(self.stiffness[i], self.damping[i], strict=True)):
            if j != i:
                total = total - (e[j] * stiff + rate[j] * damp)
        return total

    def coupling_energy(self, e: Sequence[Number]) -> Number:
        """The strain energy that modes have together, beyond that of each."""
        total: Number = 0.0
        for i, x in enumerate(e):
            for y, stiff in zip(e[:i], self.stiffness[i], strict=False):
                total = total + x * y * stiff
        return total

    def coupling_loss(self, rate: Sequence[Number]) -> Number:
        """The power that damping takes from modes together, beyond that of each."""
        total: Number = 0.0
        for i, x in enumerate(rate):
            for y, damp in zip(rate[:i], self.damping[i], strict=False):
                total = total + 2.0 * x * y * damp
        return total

    def kind(self) -> tuple[object, ...]:
        return ("Modal", self.body)

    def __repr__(self) -> str:
        return f"Modal({self.nu} modes)"


class NodeMotion(_Deformation):
    """A node relative to its body's frame. As a joint it holds the node where it is undeformed, without coordinates of
    its own; the methods that take modal ones say how the node moves."""

    nq = nu = 0

    def __init__(self, body: FlexibleBody, node: int) -> None:
        self.body, self.node = body, node

    @cached_property
    def _shapes(self) -> tuple[Vector, list[Vector], list[Vector]]:
        modes = self.body.modes[self.node]
        modes = np.where(np.abs(modes) < 1e-15 * max(float(np.abs(self.body.modes).max(initial=0.0)), 1e-300), 0.0,
                         modes) + 0.0
        at = Vector(*self.body.nodes[self.node].tolist())
        return at, [Vector(*x) for x in modes[:3].T.tolist()], [Vector(*x) for x in modes[3:].T.tolist()]

    @cached_property
    def _second(self) -> list[Vector]:
        """What products of modal coordinates do to it."""
        if self.body.stiffening is None:
            return []
        return [Vector(*x) for x in self.body.stiffening.shapes[self.node].T.tolist()]

    def _turn(self, values: Sequence[Number]) -> Vector:
        total = Vector.zero()
        for shape, x in zip(self._shapes[2], values, strict=True):
            total = total + shape * x
        return total

    def place(self, e: Sequence[Number]) -> Transform:
        """The node's pose in the body frame at modal coordinates e."""
        at, shapes, _ = self._shapes
        for shape, x in zip(shapes, e, strict=True):
            at = at + shape * x
        if self.body.stiffening is not None:
            for shape, x in zip(self._second, self.body.stiffening.coordinates(e), strict=True):
                at = at + shape * x
        return Transform(rotation(self._turn(e)), at)

    def columns(self, e: Sequence[Number]) -> tuple[Motion, ...]:
        """What unit speeds of the modes do to the node, in its own axes."""
        theta = self._turn(e)
        turn = rotation(theta)
        _, shapes, turns = self._shapes
        shapes = list(shapes)
        for m, shape in enumerate(self._second):
            assert self.body.stiffening is not None
            for a, slope in self.body.stiffening.slopes(e, m).items():
                shapes[a] = shapes[a] + shape * slope
        return tuple(Motion(turning(theta, r), turn.inverse(u)) for u, r in zip(shapes, turns, strict=True))

    def accelerating(self, e: Sequence[Number], rate: Sequence[Number]) -> Motion:
        """The acceleration at constant modal speeds, as seen from the body frame, in the node's axes."""
        bent = Vector.zero()
        if self.body.stiffening is not None:
            for shape, c in zip(self._second, self.body.stiffening.curvatures(rate), strict=True):
                bent = bent + shape * c
            bent = rotation(self._turn(e)).inverse(bent)
        return Motion(turning_drift(self._turn(e), self._turn(rate)), bent)

    def transforms(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Transform, ...]:
        return (self.place([0.0] * self.body.size),)

    def subspace(self, q: Sequence[Number], k: Sequence[Number]) -> tuple[Motion, ...]:
        return ()

    def measure(self, turn: Array, shift: Array) -> Array:
        return np.zeros((*turn.shape[:-2], 0))

    def kind(self) -> tuple[object, ...]:
        return ("NodeMotion", self.body, self.node)

    def __repr__(self) -> str:
        return f"NodeMotion({self.node})"


class HeldNode(NodeMotion):
    """A node that no mode moves, such as the one that the frame is clamped at: the body carries it rigidly."""

    @staticmethod
    def holds(body: FlexibleBody, node: int) -> bool:
        """Whether a node is one."""
        largest = float(np.abs(body.modes).max(initial=0.0))
        second = 0.0 if body.stiffening is None else float(np.abs(body.stiffening.shapes[node]).max(initial=0.0))
        return float(np.abs(body.modes[node]).max(initial=0.0)) <= 1e-12 * largest and second == 0.0

    def kind(self) -> tuple[object, ...]:
        return ("HeldNode",)


def _cleaned(matrix: Array) -> list[list[float]]:
    """Without rounding errors of zero."""
    size = np.sqrt(np.abs(np.outer(np.diag(matrix), np.diag(matrix))))
    found: list[list[float]] = (np.where(np.abs(matrix) < 1e-14 * size, 0.0, matrix) + 0.0).tolist()
    return found


# -- A flexible body in the graph of bodies and joints: see `deformation` ---------------------------
#: the body that has a flexible body's inertia: its name, after that of the body and a dot
FRAME = "frame"


class PartList(Protocol):
    """What parts are added to."""

    def add_body(self, name: str, inertia: Inertia | FlexibleBody | None = None, *, present: bool = True) -> Any:
        """Add a body."""

    def add_joint(self, name: str, joint: Any, parent: Any, child: Any, parent_pose: Any = ...) -> Any:
        """Connect two bodies."""


def undeformed(flexible: FlexibleBody) -> Inertia:
    """The inertia of the body as it was made."""
    found = flexible.integrals
    com = found.moment / found.mass
    about = found.second - found.mass * (float(com @ com) * np.eye(3) - np.outer(com, com))
    return Inertia(found.mass, com.tolist(), about, checked=False)


def add_deformation(graph: PartList, name: str, flexible: FlexibleBody) -> None:
    """Add what deforms to a body that is there: its frame with the modal coordinates, and its nodes."""
    for node in flexible.names:
        if node == FRAME or re.fullmatch(r"mode\d+", node):
            raise ModelError(f"body {name!r}: a node cannot be called {node!r}; the library uses that name")
    frame = f"{name}.{FRAME}"
    graph.add_body(frame, undeformed(flexible))
    graph.add_joint(name, Modal(flexible), name, frame)
    for node, index in flexible.names.items():
        graph.add_body(f"{name}.{node}")
        if HeldNode.holds(flexible, index):
            graph.add_joint(f"{name}.{node}", HeldNode(flexible, index), name, f"{name}.{node}",
                            Pose(flexible.nodes[index].tolist()))
        else:
            graph.add_joint(f"{name}.{node}", NodeMotion(flexible, index), frame, f"{name}.{node}")


def order_modes(joints: dict[str, Connection], record: Connection, first: Body, second: Body) -> None:
    """Modal coordinates come after those of the first joint that their body is attached by, which is `record`. A joint
    at a part that is the library's own is taken out again."""
    if isinstance(record.joint, (Modal, NodeMotion)):
        return
    for end in (first, second):
        inboard = [r for r in joints.values() if r.child == end.index] if "." in end.name else []
        if inboard and isinstance(inboard[0].joint, Modal):
            del joints[record.name]
            raise ModelError(f"joint {record.name!r}: {end.name!r} is part of the flexible body {inboard[0].name!r}; "
                             "attach to that, or to one of its nodes")
    for end in (first, second):
        modal = joints.get(end.name)
        if modal is not None and isinstance(modal.joint, Modal) and modal.parent == end.index and not any(
                end.index in (r.parent, r.child) for r in joints.values()
                if r not in (record, modal) and not isinstance(r.joint, NodeMotion)):
            for r in [r for r in joints.values() if r is modal or (
                    isinstance(r.joint, NodeMotion) and r.parent in (end.index, modal.child))]:
                joints[r.name] = joints.pop(r.name)
