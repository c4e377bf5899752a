"""Positions, velocities, accelerations and their sums: what every formulation shares."""

from __future__ import annotations

from typing import Any

from bellcrank.lowering.flexible_link import ModalLink, by_role
from bellcrank.lowering.link import Link, known_motion
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Matrix3, Motion, RigidInertia, Transform, Vector

__all__ = ["driven_speeds", "drives", "given_accelerations", "given_speeds", "inward_composites", "joint_laws",
           "known_motion",
           "outward_axes", "poses", "prescribed", "screws", "totals", "velocities",
           "world_columns"]


def ground_axes(tree: Any) -> General:
    """The ground link's axes in the world."""
    rotation = tree.world.ground.rotation
    return rotation if isinstance(rotation, General) else General(
        Matrix3(Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)))


def outward_axes(tree: Sweeps) -> Field:
    """Every link's axes in the world where external wrenches need them, else None."""
    if not tree.world.external:
        return tree.constant(None)
    return tree.outward(turn_axes, root=ground_axes(tree))


def turn_axes(link: Link, axes: General) -> tuple[General, General]:
    for t in link.transforms:
        axes = t.turned(axes)
    return axes, axes


def given_speeds(tree: Sweeps) -> Field:
    """Joint speeds u as they are given, or as laws say."""
    return tree.outward(lambda link, nothing: ((), tuple(link.u)), root=())


def given_accelerations(tree: Sweeps) -> Field:
    """Joint accelerations udot as they are given, or as laws say."""
    return tree.outward(lambda link, nothing: ((), tuple(link.udot)), root=())


def poses(tree: Sweeps) -> Field:
    """Axes (rows of the rotation matrix) and origin of every link in the world: 12 numbers."""
    return tree.outward(_pose, root=(ground_axes(tree), tree.world.ground.translation))


def _pose(link: Link, parent: tuple[General, Vector]) -> tuple[tuple[General, Vector], tuple[General, Vector]]:
    axes, origin = parent
    for t in link.transforms:
        origin = origin + axes.apply(t.translation)
        axes = t.turned(axes)
    return (axes, origin), (axes, origin)


def velocities(tree: Sweeps) -> Field:
    """Angular velocity and velocity of the origin of every link, in world axes: 6 numbers."""
    axes = tree.outward(turn_axes, root=ground_axes(tree))
    return tree.outward(_velocity, axes, root=Motion.zero())


def _velocity(link: Link, parent: Motion, axes: General) -> tuple[Motion, Motion]:
    own = link_velocity(link, parent)
    return own, Motion(axes.apply(own.angular), axes.apply(own.linear))


def link_velocity(link: Link, parent: Motion) -> Motion:
    """Velocity of a link in its own axes."""
    for t in link.transforms:
        parent = t.velocity(parent)
    return parent + link.rate


def screws(tree: Sweeps) -> Field:
    """Every joint's columns and their rates in world axes, at the link's origin: 12 numbers a speed."""
    axes = tree.outward(turn_axes, root=ground_axes(tree))
    return tree.outward(_screw, axes, root=Vector.zero())


def _screw(link: Link, omega: Vector, axes: General) -> tuple[Vector, tuple[tuple[Motion, Motion], ...]]:
    for t in link.transforms:
        omega = t.rotation.inverse(omega)
    omega = omega + link.rate.angular
    out = []
    for column, own in zip(link.moving_columns, link.moving_rates(link.u), strict=True):
        # a vector given in link axes changes by its components and by the link's turning
        rate = Motion(omega.cross(column.angular) + own.angular, omega.cross(column.linear) + own.linear)
        out.append((Motion(axes.apply(column.angular), axes.apply(column.linear)),
                    Motion(axes.apply(rate.angular), axes.apply(rate.linear))))
    return omega, tuple(out)


def world_columns(tree: Sweeps) -> Field:
    """Every joint's columns in world axes, at the link's origin: 6 numbers a speed."""
    return tree.outward(_world_column, root=ground_axes(tree))


def _world_column(link: Link, axes: General) -> tuple[General, tuple[Motion, ...]]:
    axes, _ = turn_axes(link, axes)
    return axes, tuple(Motion(axes.apply(column.angular), axes.apply(column.linear)) for column in link.columns)


def totals(tree: Sweeps) -> tuple[Number, ...]:
    """Mass; first moment, linear and angular momentum (about the world's origin) in world axes;
    kinetic and potential energy: 12 numbers. Rotors (armatures) count in the kinetic energy only."""
    pose = poses(tree)
    motion = tree.outward(_own_velocity, root=Motion.zero())
    zero = (0.0, Vector.zero(), Force.zero(), 0.0)
    step = by_role(_sum, _sum_with_modes, _sum) if tree.world.flexible else _sum
    _, (mass, first, momentum, twice) = tree.inward(step, pose, motion, zero=zero)
    ground = ground_axes(tree)
    gravity = ground.apply(tree.world.gravity)
    return (mass, *first, *momentum.force, *momentum.moment, 0.5 * twice, -gravity.dot(first))


def _own_velocity(link: Link, parent: Motion) -> tuple[Motion, Motion]:
    own = link_velocity(link, parent)
    return own, own


def _sum(link: Link, upper: tuple[Number, Vector, Force, Number], pose: tuple[General, Vector], motion: Motion
         ) -> tuple[tuple[Number, Vector, Force, Number], tuple[()]]:
    body = link.inertia
    momentum = body @ motion
    here = Transform(*pose)
    mass, first, total, twice = upper
    for a, u in zip(link.armature, link.u, strict=True) if link.joint.counts_energy else ():
        twice = twice + a * (u * u)
    return (mass + body.mass, first + here.rotation.apply(body.first) + here.translation * body.mass,
            total + here.force(momentum), twice + motion.dot(momentum)), ()


def _sum_with_modes(link: ModalLink, upper: tuple[Number, Vector, Force, Number], pose: tuple[General, Vector],
                    motion: Motion) -> tuple[tuple[Number, Vector, Force, Number], tuple[()]]:
    inertia, columns, matrix = link.resistance
    modal = Force.zero()
    mass, first, total, twice = upper
    for column, row, u in zip(columns, matrix, link.u, strict=True):
        modal = modal + column * u
        for entry, other in zip(row, link.u, strict=True):
            twice = twice + entry * (u * other)
    momentum = inertia @ motion
    twice = twice + motion.dot(momentum + modal + modal)
    here, own = Transform(*pose), link.deformation.inertia.mass
    return (mass + own, first + here.rotation.apply(link.moment) + here.translation * own,
            total + here.force(momentum + modal), twice), ()


def inward_composites(link: Link, upper: RigidInertia) -> tuple[RigidInertia, RigidInertia]:
    """Inertia of a link and everything outboard of it, as one rigid body."""
    own = upper + link.inertia
    lower = own
    for t in reversed(link.transforms):
        lower = t.rigid(lower)
    return lower, own


def prescribed(tree: Sweeps) -> Field:
    """Accelerations of prescribed speeds, zero for free ones."""
    return tree.outward(_given, root=())


def _given(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.udot)


def driven_speeds(tree: Sweeps) -> Field:
    """All speeds, prescribed ones as their laws say."""
    return tree.outward(_speeds, root=())


def _speeds(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.u)


def joint_laws(tree: Sweeps) -> Field:
    """Forces of springs, dampers and other laws on joint coordinates."""
    return tree.outward(_laws, root=())


def _laws(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.law_forces)


def drives(tree: Sweeps) -> Field:
    """The joint forces given, within the limits of actuators."""
    return tree.outward(_drives, root=())


def _drives(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.drives_at(link.u))
