"""What a step sees of flexible bodies: the link that has the modal coordinates, and nodes, which move by them.

Kinematics need no more: a node is a link whose columns belong to speeds of its carrier. Steps that put forces or
inertias together differ, and a formulation names all three by `by_role`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from bellcrank.lowering.link import Link, ModalRow
from bellcrank.mechanism.flexible.deformation import Modal, NodeMotion
from bellcrank.mechanism.flexible.modal_kinetics import ModalForm
from bellcrank.mechanism.forces.element import Moving
from bellcrank.mechanism.joints import Joint
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.schedule.sweeps import Step, flatten, rebuild
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Transform, Vector

__all__ = ["ModalLink", "NodeLink", "by_role", "link_class"]


class ModalLink(Link):
    """The frame of a flexible body, with its modal coordinates."""

    moving: Callable[[], Moving]  #: axes, origin and velocity, in the axes of the ground link

    @property
    def deformation(self) -> Modal:
        """What the joint is."""
        assert isinstance(self.joint, Modal)
        return self.joint

    @property
    def moving_columns(self) -> tuple[Motion, ...]:
        """Modes do not move the frame."""
        return ()

    def moving_rates(self, u: Sequence[Number]) -> tuple[Motion, ...]:
        return ()

    @property
    def resistance(self) -> tuple[ArticulatedInertia, tuple[Force, ...], tuple[tuple[Number, ...], ...]]:
        """The inertia of frame and modes: see `ModalForm`."""
        return self.deformation.inertia.resistance(self.q)

    @cached_property
    def _forms(self) -> list[tuple[Vector, ModalForm]]:
        return []

    def form_at(self, omega: Vector) -> ModalForm:
        """The form, with what prescribed modes need, at an angular velocity; `moving` knows that of the origin."""
        for known, form in self._forms:
            if known is omega:
                return form
        velocity = Vector.zero()
        if not self.deformation.inertia.material:
            here = self.moving()
            velocity = here.axes.inverse(here.velocity)
        form = self.with_prescribed(self.form(Motion(omega, velocity)))
        self._forms.append((omega, form))
        return form

    def with_prescribed(self, form: ModalForm) -> ModalForm:
        """The form with what prescribed accelerations of modes need; at nodes they are part of the drift."""
        force, right = form.force, list(form.right)
        for j, (driven, value) in enumerate(zip(self.mask, self.prescribed_udot, strict=True)):
            if driven:
                force = force + form.columns[j] * value
                right = [x + row[j] * value for x, row in zip(right, form.matrix, strict=True)]
        return ModalForm(form.mass, form.columns, form.matrix, force, tuple(right))

    def kinetics(self, omega: Vector) -> tuple[ArticulatedInertia, Force]:
        form = self.form_at(omega)
        return form.mass, form.force

    def modal_rows(self, omega: Vector) -> tuple[ModalRow, ...]:
        form = self.form_at(omega)
        return tuple(ModalRow(column, row[:i + 1], right) for i, (column, row, right) in
                     enumerate(zip(form.columns, form.matrix, form.right, strict=True)))

    def form(self, motion: Motion) -> ModalForm:
        """The inertia, and the forces that velocities need; `motion` is the frame's velocity in its own axes."""
        return self.deformation.inertia.form(self.q, self.u, motion)

    @property
    def moment(self) -> Vector:
        """The first moment of the deformed body."""
        return self.deformation.inertia.moment(self.q)

    def _laws_at(self, u: Sequence[Number]) -> list[Number]:
        """Also what modes exert on each other; the elasticity of each is among the laws."""
        return [force + self.deformation.coupling(self.q, u, i) for i, force in enumerate(super()._laws_at(u))]

    def external(self, axes: General) -> Force:
        """Also what gravity exerts on finite-element masses beyond an acceleration of the frame."""
        total = super().external(axes)
        if self.deformation.inertia.material:
            return total
        gravity = axes.inverse(self.world.gravity_in_world)
        coupling = self.resistance[0].coupling
        return total + Force(self.moment.cross(gravity) - coupling @ gravity, Vector.zero())


class NodeLink(Link):
    """A node of a flexible body. It has no speeds and no columns of its own: those of its carrier move it."""

    carrier: ModalLink  #: the link that it is carried by

    @property
    def node(self) -> NodeMotion:
        """What the joint is."""
        assert isinstance(self.joint, NodeMotion)
        return self.joint

    @cached_property
    def transforms(self) -> tuple[Transform, ...]:
        return (self.numbers.placement, self.node.place(self.carrier.q))

    @cached_property
    def moving_columns(self) -> tuple[Motion, ...]:
        """What unit speeds of the carrier's modes do to the node relative to its frame, in the node's axes."""
        return self.node.columns(self.carrier.q)

    def moving_rates(self, u: Sequence[Number]) -> tuple[Motion, ...]:
        jets = [Jet(value, rate, 0.0) for value, rate in zip(self.carrier.q, self.carrier.u, strict=True)]
        columns = self.node.columns(jets)
        return tuple(rebuild(c, (as_jet(x).rate for x in flatten(c, Jet)), Jet) for c in columns)

    @property
    def moving_speeds(self) -> Sequence[Number]:
        return self.carrier.u

    def with_speeds(self, u: Sequence[Number]) -> NodeLink:
        """The same node where the modes of its carrier have these speeds."""
        other = super().with_speeds(())
        assert isinstance(other, NodeLink)
        carrier = self.carrier.with_speeds(u)
        assert isinstance(carrier, ModalLink)
        other.carrier = carrier
        return other

    @cached_property
    def rate(self) -> Motion:
        return _sum(Motion.zero(), self.moving_columns, self.carrier.u)

    @cached_property
    def drift(self) -> Motion:
        return _sum(self.node.accelerating(self.carrier.q, self.carrier.u), self.moving_columns,
                    self.carrier.prescribed_udot)

    @property
    def given_drift(self) -> Motion:
        return _sum(self.node.accelerating(self.carrier.q, self.carrier.u), self.moving_columns, self.carrier.udot)


def _sum(motion: Motion, columns: Sequence[Motion], values: Sequence[Number]) -> Motion:
    for column, x in zip(columns, values, strict=True):
        motion = motion + column * x
    return motion


def link_class(joint: Joint) -> type[Link]:
    """The view that a joint's link needs."""
    return ModalLink if isinstance(joint, Modal) else NodeLink if isinstance(joint, NodeMotion) else Link


def by_role(rigid: Callable[..., Any], modal: Callable[..., Any], node: Callable[..., Any]) -> Step:
    """A step of a sweep over links of rigid bodies, of frames that carry modes, and of nodes."""
    steps: dict[type[Link], Callable[..., Any]] = {Link: rigid, ModalLink: modal, NodeLink: node}

    def step(link: Link, *rest: Any) -> Any:
        return steps[type(link)](link, *rest)

    return step
