"""Deformation as joints: one whose coordinates are the modal ones, and the motion of nodes that follows from them.

Body "rod" with a node "tip" becomes, in the graph of bodies and joints,

    rod --- joint "rod" (`Modal`) ---> rod.frame --- joint "rod.tip" (`NodeMotion`) ---> rod.tip

`rod.frame` has the inertia and never moves relative to `rod`: its joint has the modal coordinates, which move nothing
but nodes. A node has no coordinates of its own: its pose is a function of those of the frame it is carried by. Nodes
that no mode moves are welded to `rod` itself (`HeldNode`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side
from bellcrank.mechanism.flexible.flexible_body import FlexibleBody
from bellcrank.mechanism.flexible.modal_kinetics import ModalInertia
from bellcrank.mechanism.flexible.rotation_vector import rotation, turning, turning_drift
from bellcrank.mechanism.flexible.stiffening import StiffenedInertia
from bellcrank.mechanism.forces.spring import LinearSpring
from bellcrank.mechanism.joints.joint import Array, Joint
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Motion, Transform, Vector

__all__ = ["HeldNode", "Modal", "NodeMotion"]


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
