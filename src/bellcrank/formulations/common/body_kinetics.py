"""Questions about one body, and about all bodies together, as functions of their own: each becomes a kernel that
computes no more than it is asked for.

A body is given by its link and its pose there; what asks for one runs on the direct schedule alone, because loops over
kinds of links know no single one. The results are lists of numbers. `system.body_kinematics` asks about bodies of other
machines with the same formulas (`velocity_at` and those that follow it), on arrays of what is known of their links.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from bellcrank.formulations.common.link_accelerations import accelerations
from bellcrank.formulations.common.link_kinematics import ground_axes, poses, screws, totals, velocities
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Sweeps
from bellcrank.spatial import General, Motion, Vector

__all__ = ["AT_BODY", "BodyPlace", "acceleration_at", "all_poses", "center_of_mass", "jacobian_column",
           "jacobian_rate_column", "kinetic_energy", "momentum", "motion_and_gravity", "potential_energy",
           "velocity_at"]


class BodyPlace(NamedTuple):
    """Where a body's frame lies: its link, and its pose in the link's frame."""

    link: int
    turn: tuple[tuple[Number, ...], ...]  #: rows of the rotation matrix: numbers, or expressions of parameters
    shift: tuple[Number, ...]  #: numbers, or expressions of parameters

    def local(self, point: Vector) -> Vector:
        """A point of the body in the link's frame."""
        return Vector(*self.shift) + Vector(*(Vector(*row).dot(point) for row in self.turn))


def velocity_at(link: Motion, arm: Vector) -> Motion:
    """Of a point of a link: omega and v + omega x arm."""
    return Motion(link.angular, link.linear + link.angular.cross(arm))


def acceleration_at(link: Motion, omega: Vector, arm: Vector) -> Motion:
    """Of a point of a link: alpha and a + alpha x arm + omega x (omega x arm)."""
    return Motion(link.angular, link.linear + link.angular.cross(arm) + omega.centripetal(arm))


def jacobian_column(screw: Motion, reach: Vector) -> Motion:
    """What a unit speed does to a point: the joint's screw, moved by `reach` from the origin of the joint's link."""
    return velocity_at(screw, reach)


def jacobian_rate_column(screw: Motion, rate: Motion, reach: Vector, change: Vector) -> Motion:
    """d/dt of that, where the screw changes at `rate` and the reach at `change`."""
    return Motion(rate.angular, rate.linear + rate.angular.cross(reach) + screw.angular.cross(change))


def _arm(tree: Direct, at: BodyPlace, axes: General) -> Vector:
    """From the link's origin to the point that is asked about, in world axes."""
    return axes.apply(at.local(tree.world.point))


def body_pose(tree: Direct, at: BodyPlace) -> list[Number]:
    """Rows of the rotation matrix, and the origin: 12 numbers."""
    axes, origin = poses(tree)[at.link]
    return _pose_of(axes, origin, at)


def _pose_of(axes: General, origin: Vector, at: BodyPlace) -> list[Number]:
    columns = [axes.apply(Vector(*column)) for column in zip(*at.turn, strict=True)]
    return [*(column[i] for i in range(3) for column in columns), *(origin + axes.apply(Vector(*at.shift)))]


def all_poses(tree: Direct, bodies: Sequence[BodyPlace]) -> list[Number]:
    """The poses of many bodies, also such that belong to the ground: 12 numbers each."""
    at: list[tuple[General, Vector]] = [(ground_axes(tree), tree.world.ground.translation), *poses(tree)[1:]]
    return [x for body in bodies for x in _pose_of(*at[body.link], body)]


def body_velocity(tree: Direct, at: BodyPlace) -> list[Number]:
    """Angular velocity, and velocity of the point."""
    axes, _ = poses(tree)[at.link]
    omega, v = velocity_at(velocities(tree)[at.link], _arm(tree, at, axes))
    return [*omega, *v]


def body_acceleration(tree: Direct, at: BodyPlace) -> list[Number]:
    """Angular acceleration, and acceleration of the point."""
    axes, _ = poses(tree)[at.link]
    alpha, a = acceleration_at(accelerations(tree)[at.link], velocities(tree)[at.link].angular, _arm(tree, at, axes))
    return [*alpha, *a]


def body_jacobian(tree: Direct, at: BodyPlace) -> list[Number]:
    """J with velocity = J u, row by row: the screws of the joints between the ground and the body, at the point."""
    place, axes_of = poses(tree), screws(tree)
    axes, origin = place[at.link]
    tip = origin + _arm(tree, at, axes)
    columns: dict[int, Motion] = {}
    for link in _path(tree, at.link):
        for j, (screw, _) in enumerate(axes_of[link]):
            columns[tree.slots[link] + j] = jacobian_column(screw, tip - place[link][1])
    return _rows(tree, columns)


def body_jacobian_rate(tree: Direct, at: BodyPlace) -> list[Number]:
    """dJ/dt, row by row."""
    place, axes_of, speed = poses(tree), screws(tree), velocities(tree)
    axes, origin = place[at.link]
    arm = _arm(tree, at, axes)
    tip, moving = origin + arm, velocity_at(speed[at.link], arm).linear
    columns: dict[int, Motion] = {}
    for link in _path(tree, at.link):
        for j, (screw, rate) in enumerate(axes_of[link]):
            columns[tree.slots[link] + j] = jacobian_rate_column(screw, rate, tip - place[link][1],
                                                                 moving - speed[link].linear)
    return _rows(tree, columns)


def _path(tree: Direct, link: int) -> list[int]:
    """The links from one to the ground."""
    found = []
    while link:
        found.append(link)
        link = tree.parent[link]
    return found


def _rows(tree: Direct, columns: dict[int, Motion]) -> list[Number]:
    """A matrix of six rows by its columns, zero where there is none."""
    entries = {i: (*column.angular, *column.linear) for i, column in columns.items()}
    return [entries[i][row] if i in entries else 0.0 for row in range(6) for i in range(tree.size)]


def center_of_mass(tree: Sweeps) -> list[Number]:
    """In the world: 3 numbers."""
    mass, *first = totals(tree)[:4]
    return [x / mass for x in first]


def momentum(tree: Sweeps) -> list[Number]:
    """Angular momentum about the world's origin, linear momentum, in world axes: 6 numbers."""
    found = totals(tree)
    return [*found[7:10], *found[4:7]]


def kinetic_energy(tree: Sweeps) -> list[Number]:
    """One number."""
    return [totals(tree)[10]]


def potential_energy(tree: Sweeps) -> list[Number]:
    """That of gravity: one number."""
    return [totals(tree)[11]]


def motion_and_gravity(tree: Sweeps) -> list[Number]:
    """Kinetic energy and the potential energy of gravity, together: one number."""
    *_, kinetic, potential = totals(tree)
    return [kinetic + potential]


#: functions of one body: text, inputs, numbers (times the speeds, if negative)
AT_BODY: dict[str, tuple[Callable[[Direct, BodyPlace], list[Number]], tuple[str, ...], int]] = {
    "pose": (body_pose, ("q",), 12), "velocity": (body_velocity, ("q", "u", "point"), 6),
    "acceleration": (body_acceleration, ("q", "u", "udot", "point"), 6),
    "jacobian": (body_jacobian, ("q", "point"), -6), "jacobian_rate": (body_jacobian_rate, ("q", "u", "point"), -6)}
