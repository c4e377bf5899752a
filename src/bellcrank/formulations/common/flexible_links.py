"""Flexible bodies in recursions over links: modes are eliminated at the frame that carries them, before its joint.

G. Rodriguez, A. Jain and K. Kreutz-Delgado, "Spatial Operator Algebra for Multibody System Dynamics", section 4, has
the idea: deformation coordinates join those of the hinge, and the mass matrix of a link relates both. Here recursions
go on unchanged over rigid links; two more steps are named beside each of theirs (`by_role`):

- a *node* receives what its outboard links send, as a rigid link does, and sends it to the frame with its columns of
  modal speeds (`ModalLoad`);
- the *frame* adds the inertia of the body itself (`ModalForm`) and eliminates the modes one after another, as columns
  of one joint are (see `pivot`); what is left is a rigid message to its parent.

With a the frame's acceleration and e the modal coordinates, the frame's rows are

    wrench = mass a + sum_j columns_j e''_j + force,    tau_j = columns_j . a + sum_l matrix_jl e''_l + right_j.

Cost: O(k^2) a body beside the k^3/6 of the factorisation of the modes, O(n) in bodies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bellcrank.formulations.common.link_kinematics import link_velocity, outward_axes
from bellcrank.formulations.common.points import POINTS, LinkAtPoint, Velocity, outward_material
from bellcrank.lowering.flexible_link import ModalLink, NodeLink, by_role
from bellcrank.lowering.link import Link
from bellcrank.mechanism.flexible.modal_kinetics import ModalForm
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["EliminatedMode", "ModalLoad", "ModalVelocity", "accelerations_with_modes", "eliminate_modes",
           "forces_with_modes", "inward_node_load", "modal_sweeps", "momenta_with_modes", "with_body"]

Rows = tuple[tuple[Number, ...], ...]


class ModalLoad(NamedTuple):
    """What nodes send to their frame: an inertia and a force, and their part of the modal rows."""

    mass: ArticulatedInertia
    force: Force
    columns: tuple[Force, ...]
    matrix: Rows  #: lower triangle
    right: tuple[Number, ...]

    @staticmethod
    def rigid(mass: ArticulatedInertia, force: Force, k: int) -> ModalLoad:
        """Without modal rows: what travels between links must be alike for all of them."""
        return ModalLoad(mass, force, (Force.zero(),) * k, tuple((0.0,) * (i + 1) for i in range(k)), (0.0,) * k)

    def padded(self, k: int) -> ModalLoad:
        """With as many modal rows as any body has."""
        extra = range(len(self.columns), k)
        return ModalLoad(self.mass, self.force, (*self.columns, *(Force.zero() for _ in extra)),
                         (*self.matrix, *((0.0,) * (i + 1) for i in extra)), (*self.right, *(0.0 for _ in extra)))


class EliminatedMode(NamedTuple):
    """e''_j = free - gain . a - sum of factors * e''_l over the modes l that follow."""

    gain: Force
    free: Number
    factors: tuple[Number, ...]
    inverse: Number  #: of the pivot

    def with_free(self, free: Number) -> EliminatedMode:
        return EliminatedMode(self.gain, free, self.factors, self.inverse)


class ModalVelocity(NamedTuple):
    """What the velocity sweep leaves at a frame."""

    bias: Motion
    form: ModalForm


# -- forward dynamics ------------------------------------------------------------------------------------------------
def accelerations_with_modes(tree: Sweeps, inward: Callable[..., Any], outward: Callable[..., Any]) -> Field:
    """Accelerations for given forces; `inward` and `outward` are the steps of rigid links in body axes."""
    axes, k = outward_axes(tree), tree.world.modes
    place, velocity, out = modal_sweeps(tree, outward)

    def rigid_inward(link: Link, upper: ModalLoad, *own: Any) -> tuple[ModalLoad, Any]:
        (mass, force), kept = inward(link, (upper.mass, upper.force), *own)
        return ModalLoad.rigid(mass, force, k), kept

    kept, _ = tree.inward(by_role(rigid_inward, inward_modes, inward_node), place, velocity, axes,
                          zero=ModalLoad.rigid(ArticulatedInertia.zero(), Force.zero(), k))
    return out(kept)


def modal_sweeps(tree: Sweeps, outward: Callable[..., Any]) -> tuple[Field, Field, Callable[[Field], Field]]:
    """What comes before the inward sweep, places and velocities, and the one that follows it, which takes what that
    leaves."""
    place, k = POINTS["body"].places(tree), tree.world.modes
    velocity = tree.outward(by_role(outward_rigid, outward_form, outward_rigid), place,
                            root=(Vector.zero(), Motion.zero()))

    def rigid_outward(link: Link, carried: tuple[Motion, tuple[Number, ...]], *own: Any) -> tuple[Any, Any]:
        acceleration, kept = outward(link, carried[0], *own)
        return (acceleration, (0.0,) * k), kept

    def accelerations(kept: Field) -> Field:
        return tree.outward(by_role(rigid_outward, outward_modes, outward_node), place, velocity, kept,
                            root=(Motion(Vector.zero(), -tree.world.gravity), (0.0,) * k))

    return place, velocity, accelerations


def outward_rigid(link: Link, parent: tuple[Vector, Motion], place: LinkAtPoint
                  ) -> tuple[tuple[Vector, Motion], Velocity]:
    omega, velocity = outward_material(link, parent[0], place)
    return (omega, link_velocity(link, parent[1])), velocity


def outward_form(link: ModalLink, parent: tuple[Vector, Motion], place: LinkAtPoint
                 ) -> tuple[tuple[Vector, Motion], ModalVelocity]:
    (omega, motion), velocity = outward_rigid(link, parent, place)
    return (omega, motion), ModalVelocity(velocity.bias, link.form(motion))


def inward_node(link: NodeLink, upper: ModalLoad, place: LinkAtPoint, velocity: Velocity, axes: General | None
                ) -> tuple[ModalLoad, tuple[()]]:
    mass, force = upper.mass + place.inertia.articulated(), upper.force + velocity.force
    if axes is not None:
        force = force - link.external(axes)
    return inward_node_load(link, mass, force + mass @ velocity.bias).padded(link.world.modes), ()


def inward_node_load(link: NodeLink, mass: ArticulatedInertia, force: Force) -> ModalLoad:
    """An inertia and a force at a node, as the frame and its modes feel them."""
    moved = link.moving_columns
    columns = [mass @ column for column in moved]
    matrix = tuple(tuple(moved[i].dot(columns[j]) for j in range(i + 1)) for i in range(len(moved)))
    right = tuple(column.dot(force) for column in moved)
    for t in reversed(link.transforms):
        mass, force, columns = t.articulated(mass), t.force(force), [t.force(column) for column in columns]
    return ModalLoad(mass, force, tuple(columns), matrix, right)


def with_body(form: ModalForm, upper: ModalLoad) -> ModalLoad:
    """The body's own rows and those of its nodes."""
    return ModalLoad(
        form.mass + upper.mass, form.force + upper.force,
        tuple(a + b for a, b in zip(form.columns, upper.columns, strict=False)),
        tuple(tuple(a + b for a, b in zip(own, row, strict=False))
              for own, row in zip(form.matrix, upper.matrix, strict=False)),
        tuple(a + b for a, b in zip(form.right, upper.right, strict=False)))


def inward_modes(link: ModalLink, upper: ModalLoad, place: LinkAtPoint, velocity: ModalVelocity, axes: General | None
                 ) -> tuple[ModalLoad, tuple[EliminatedMode, ...]]:
    mass, force, columns, matrix, right = with_body(link.with_prescribed(velocity.form), upper)
    if axes is not None:
        force = force - link.external(axes)
    mass, force, rows = eliminate_modes(mass, force, columns, matrix, right, link)
    force = force + mass @ velocity.bias
    for t in reversed(place.transforms):
        mass, force = t.articulated(mass), t.force(force)
    return ModalLoad.rigid(mass, force, link.world.modes), rows


def eliminate_modes(mass: ArticulatedInertia, force: Force, columns: Sequence[Force], matrix: Rows,
                    right: Sequence[Number], link: ModalLink
                    ) -> tuple[ArticulatedInertia, Force, tuple[EliminatedMode, ...]]:
    """Solve the rows of free modes one after another."""
    left, rest = list(columns), [tau - x for tau, x in zip(link.tau, right, strict=True)]
    table = {(i, j): x for i, row in enumerate(matrix) for j, x in enumerate(row)}

    def at(i: int, j: int) -> Number:
        return table[max(i, j), min(i, j)]

    free = [j for j, driven in enumerate(link.mask) if not driven]
    rows = []
    for place, j in enumerate(free):
        later = free[place + 1:]
        inverse = 1.0 / at(j, j)
        gain = left[j] * inverse
        factors = [at(i, j) * inverse for i in later]
        mass, force = mass.minus(left[j], gain), force + gain * rest[j]
        for i, factor in zip(later, factors, strict=True):
            left[i] = left[i] - left[j] * factor
            rest[i] = rest[i] - rest[j] * factor
            for m in later:
                if m <= i:
                    table[i, m] = table[i, m] - at(j, m) * factor
        rows.append(EliminatedMode(gain, rest[j] * inverse, tuple(factors), inverse))
    return mass, force, tuple(rows)


Carried = tuple[Motion, tuple[Number, ...]]


def outward_modes(link: ModalLink, carried: Carried, place: LinkAtPoint, velocity: ModalVelocity,
                  rows: tuple[EliminatedMode, ...]) -> tuple[Carried, tuple[Number, ...]]:
    acceleration = carried[0]
    for t in place.transforms:
        acceleration = t.acceleration(acceleration)
    acceleration = acceleration + velocity.bias
    udot = link.prescribed_udot
    free = [j for j, driven in enumerate(link.mask) if not driven]
    for k in reversed(range(len(free))):
        value = rows[k].free - acceleration.dot(rows[k].gain)
        for factor, later in zip(rows[k].factors, free[k + 1:], strict=True):
            value = value - factor * udot[later]
        udot[free[k]] = value
    return (acceleration, (*udot, *(0.0,) * (link.world.modes - len(udot)))), tuple(udot)


def outward_node(link: NodeLink, carried: Carried, place: LinkAtPoint, velocity: Velocity, nothing: tuple[()]
                 ) -> tuple[Carried, tuple[()]]:
    acceleration, udot = carried
    for t in place.transforms:
        acceleration = t.acceleration(acceleration)
    acceleration = acceleration + velocity.bias  # with what prescribed modes do
    for column, value, driven in zip(link.moving_columns, udot, link.carrier.mask, strict=False):
        if not driven:
            acceleration = acceleration + column * value
    return (acceleration, (0.0,) * len(udot)), ()


# -- inverse dynamics ------------------------------------------------------------------------------------------------
class ModalMotion(NamedTuple):
    """A frame's acceleration, and its form."""

    acceleration: Motion
    form: ModalForm


class NodeWrench(NamedTuple):
    """What nodes send to their frame: the wrench that they need, and what of it the modes supply."""

    wrench: Force
    modal: tuple[Number, ...]


def forces_with_modes(tree: Sweeps, motions: Field, axes: Field, wrenches: Callable[..., Any],
                      forces: Callable[..., Any] | None) -> Field:
    """Forces along all speeds for given accelerations, or without `forces` the wrench through every link's joint.

    `motions` are angular velocities and accelerations of all links; `wrenches` and `forces` the steps of rigid links.
    """
    velocity = tree.outward(_outward_velocity, root=Motion.zero())
    motions = tree.outward(by_role(_rigid_motion, _modal_motion, _rigid_motion), motions, velocity, root=())
    k = tree.world.modes

    def rigid(link: Link, upper: NodeWrench, motion: Any, axes: General | None) -> tuple[NodeWrench, Any]:
        lower, kept = (forces or wrenches)(link, upper.wrench, motion, axes)
        return NodeWrench(lower, (0.0,) * k), kept

    def node(link: NodeLink, upper: NodeWrench, motion: Any, axes: General | None) -> tuple[NodeWrench, Any]:
        lower, total = wrenches(link, upper.wrench, motion, axes)
        shares = [column.dot(total) for column in link.moving_columns]
        return NodeWrench(lower, (*shares, *(0.0,) * (k - len(shares)))), () if forces else total

    def frame(link: ModalLink, upper: NodeWrench, motion: ModalMotion, axes: General | None
              ) -> tuple[NodeWrench, Any]:
        total, modal = inward_modal_forces(link, upper, motion, axes)
        return NodeWrench(_lowered(link, total), (0.0,) * k), modal if forces else total

    return tree.inward(by_role(rigid, frame, node), motions, axes, zero=NodeWrench(Force.zero(), (0.0,) * k))[0]


def _outward_velocity(link: Link, parent: Motion) -> tuple[Motion, Motion]:
    own = link_velocity(link, parent)
    return own, own


def _rigid_motion(link: Link, nothing: tuple[()], motion: Any, velocity: Motion) -> tuple[tuple[()], Any]:
    return (), motion


def _modal_motion(link: ModalLink, nothing: tuple[()], motion: tuple[Vector, Motion], velocity: Motion
                  ) -> tuple[tuple[()], ModalMotion]:
    return (), ModalMotion(motion[1], link.form(velocity))


def inward_modal_forces(link: ModalLink, upper: NodeWrench, motion: ModalMotion, axes: General | None
                        ) -> tuple[Force, tuple[Number, ...]]:
    """The frame's rows at given accelerations."""
    a, (mass, columns, matrix, total, right) = motion
    total = total + mass @ a
    modal = [x + a.dot(column) for x, column in zip(right, columns, strict=True)]
    for j, (column, value) in enumerate(zip(columns, link.udot, strict=True)):
        total = total + column * value
        modal = [x + matrix[i][j] * value for i, x in enumerate(modal)]
    total = total + upper.wrench
    modal = [x + share for x, share in zip(modal, upper.modal, strict=False)]
    if axes is not None:
        total = total - link.external(axes)
    return total, tuple(modal)


# -- momenta -----------------------------------------------------------------------------------------------------------
def momenta_with_modes(tree: Sweeps, inward: Callable[..., Any]) -> Field:
    """M u, speed by speed; `inward` is the step of rigid links."""
    velocity, k = tree.outward(_outward_velocity, root=Motion.zero()), tree.world.modes

    def rigid(link: Link, upper: NodeWrench, motion: Motion) -> tuple[NodeWrench, Any]:
        lower, kept = inward(link, upper.wrench, motion)
        return NodeWrench(lower, (0.0,) * k), kept

    def node(link: NodeLink, upper: NodeWrench, motion: Motion) -> tuple[NodeWrench, tuple[()]]:
        total = upper.wrench + link.inertia @ motion
        shares = [column.dot(total) for column in link.moving_columns]
        return NodeWrench(_lowered(link, total), (*shares, *(0.0,) * (k - len(shares)))), ()

    def frame(link: ModalLink, upper: NodeWrench, motion: Motion) -> tuple[NodeWrench, tuple[Number, ...]]:
        mass, columns, matrix = link.resistance
        total = upper.wrench + mass @ motion
        modal = [share + motion.dot(column) for share, column in zip(upper.modal, columns, strict=False)]
        for j, (column, u) in enumerate(zip(columns, link.u, strict=True)):
            total = total + column * u
            modal = [x + matrix[i][j] * u for i, x in enumerate(modal)]
        return NodeWrench(_lowered(link, total), (0.0,) * k), tuple(modal)

    return tree.inward(by_role(rigid, frame, node), velocity, zero=NodeWrench(Force.zero(), (0.0,) * k))[0]


def _lowered(link: Link, force: Force) -> Force:
    for t in reversed(link.transforms):
        force = t.force(force)
    return force
