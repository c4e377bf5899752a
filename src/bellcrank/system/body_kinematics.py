"""Where things are and how they move: poses, velocities, accelerations, Jacobians.

A body of a machine that is not too large has functions of its own (`Kernels.at_body`). For other machines and for what
stands still, results come from what is computed of all links.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.formulations.common.body_kinetics import (
    acceleration_at,
    jacobian_column,
    jacobian_rate_column,
    velocity_at,
)
from bellcrank.mechanism.pose import Pose
from bellcrank.spatial import Motion, Vector
from bellcrank.system.body_places import body_place

if TYPE_CHECKING:
    from bellcrank.system.kernels import Kernels

__all__ = ["acceleration", "jacobian", "jacobian_rate", "jacobians", "link_rows", "pose", "poses", "totals", "velocity"]


def link_rows(kernels: Kernels, name: str, link: int, given: Mapping[str, npt.ArrayLike], t: npt.ArrayLike) -> Floats:
    """What a function says of one link."""
    rows = kernels.run(name, given, None, t)
    width = kernels.functions[name].width
    return rows[..., (link - 1) * width:link * width]


def poses(kernels: Kernels, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Pose:
    """Poses of all bodies in the world, in the order of their names. Cost: O(n)."""
    check_time(t)
    function = kernels.at_body("pose", None)
    if function is None:
        found = [pose(kernels, q, body, t=t) for body in kernels.model.body_names]
        return Pose.of_arrays(np.stack([p.position for p in found], axis=-2),
                              np.stack([p.rotation for p in found], axis=-3))
    rows = kernels.run(function.name, {"q": q}, None, t)
    rows = rows.reshape(*rows.shape[:-1], len(kernels.model.body_names), 12)
    return Pose.of_arrays(rows[..., 9:], rows[..., :9].reshape(*rows.shape[:-1], 3, 3))


def pose(kernels: Kernels, q: npt.ArrayLike, body: str, *, t: npt.ArrayLike = 0.0) -> Pose:
    """Pose of a body or frame in the world. Cost: O(n)."""
    check_time(t)
    function = kernels.at_body("pose", body)
    if function is not None:
        row = kernels.run(function.name, {"q": q}, None, t)
        return Pose.of_arrays(row[..., 9:], row[..., :9].reshape(*row.shape[:-1], 3, 3))
    link, turn, shift = body_place(kernels.model, body)
    if link == 0:
        lead = np.broadcast_shapes(flat("q", q, kernels.tree.nq, "the coordinates").shape[:-1], shift.shape[:-1])
        rotation, origin = kernels.tree.ground_turn, kernels.tree.ground_shift
        return Pose.of_arrays(np.broadcast_to(origin + _turned(rotation, shift), (*lead, 3)).copy(),
                              np.broadcast_to(rotation @ turn, (*lead, 3, 3)).copy())
    row = link_rows(kernels, "poses", link, {"q": q}, t)
    rotation = row[..., :9].reshape(*row.shape[:-1], 3, 3)
    return Pose.of_arrays(row[..., 9:] + _turned(rotation, shift), rotation @ turn)


def _arm(kernels: Kernels, q: npt.ArrayLike, body: str, point: npt.ArrayLike, t: npt.ArrayLike) -> tuple[int, Floats]:
    """World vector from a link's origin to a point given in a body's coordinates."""
    link, turn, shift = body_place(kernels.model, body)
    local = shift + turn @ flat("point", point, 3, "x, y, z in the body's frame")
    if link == 0:
        return 0, _turned(kernels.tree.ground_turn, local)
    row = link_rows(kernels, "poses", link, {"q": q}, t)
    return link, _turned(row[..., :9].reshape(*row.shape[:-1], 3, 3), local)


def velocity(kernels: Kernels, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0), *,
             t: npt.ArrayLike = 0.0) -> Floats:
    """[angular velocity; velocity of a point of the body], world axes, shape (..., 6). Cost: O(n)."""
    check_time(t)
    function = kernels.at_body("velocity", body)
    if function is not None:
        return kernels.run(function.name, {"q": q, "u": u, "point": point}, None, t)
    link, arm = _arm(kernels, q, body, point, t)
    if link == 0:
        return np.zeros((*np.broadcast_shapes(np.shape(q)[:-1], np.shape(u)[:-1]), 6))
    return _rows(velocity_at(_motion(link_rows(kernels, "velocities", link, {"q": q, "u": u}, t)), _vector(arm)))


def acceleration(kernels: Kernels, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, body: str,
                 point: npt.ArrayLike = (0.0, 0.0, 0.0), *, t: npt.ArrayLike = 0.0) -> Floats:
    """[angular acceleration; acceleration of a point of the body], world axes, shape (..., 6). O(n)."""
    check_time(t)
    function = kernels.at_body("acceleration", body)
    if function is not None:
        return kernels.run(function.name, {"q": q, "u": u, "udot": udot, "point": point}, None, t)
    link, arm = _arm(kernels, q, body, point, t)
    if link == 0:
        return np.zeros((*np.broadcast_shapes(*(np.shape(x)[:-1] for x in (q, u, udot))), 6))
    row = link_rows(kernels, "accelerations", link, {"q": q, "u": u, "udot": udot}, t)
    omega = link_rows(kernels, "velocities", link, {"q": q, "u": u}, t)[..., :3]
    return _rows(acceleration_at(_motion(row), _vector(omega), _vector(arm)))


def jacobian(kernels: Kernels, q: npt.ArrayLike, body: str, point: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
    """J at a point of a body, (..., 6, nu). Cost: O(n)."""
    function = kernels.at_body("jacobian", body)
    if function is None:
        return jacobians(kernels, q, np.zeros(kernels.tree.nu), body, point, t)[0]
    rows = kernels.run(function.name, {"q": q, "point": point}, None, t)
    return rows.reshape(*rows.shape[:-1], 6, kernels.tree.nu)


def jacobian_rate(kernels: Kernels, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike,
                  t: npt.ArrayLike) -> Floats:
    """dJ/dt at a point of a body, (..., 6, nu). Cost: O(n)."""
    function = kernels.at_body("jacobian_rate", body)
    if function is None:
        return jacobians(kernels, q, u, body, point, t)[1]
    rows = kernels.run(function.name, {"q": q, "u": u, "point": point}, None, t)
    return rows.reshape(*rows.shape[:-1], 6, kernels.tree.nu)


def jacobians(kernels: Kernels, q: npt.ArrayLike, u: npt.ArrayLike, body: str, point: npt.ArrayLike, t: npt.ArrayLike
              ) -> tuple[Floats, Floats]:
    """J and its rate at a point of a body, (..., 6, nu) each. Cost: O(n)."""
    screws = kernels.run("screws", {"q": q, "u": u}, None, t)
    screws = screws.reshape(*screws.shape[:-1], kernels.tree.nu, 4, 3)
    link, arm = _arm(kernels, q, body, point, t)
    lead = np.broadcast_shapes(screws.shape[:-3], arm.shape[:-1])
    jacobian, rate = np.zeros((*lead, 6, kernels.tree.nu)), np.zeros((*lead, 6, kernels.tree.nu))
    if link == 0:
        return jacobian, rate
    columns, links = _path(kernels, link)
    poses = kernels.run("poses", {"q": q}, None, t)
    poses = poses.reshape(*poses.shape[:-1], kernels.tree.n, 12)
    speeds = kernels.run("velocities", {"q": q, "u": u}, None, t)
    speeds = speeds.reshape(*speeds.shape[:-1], kernels.tree.n, 6)
    tip = poses[..., link - 1, 9:] + arm
    moving = _rows(velocity_at(_motion(speeds[..., link - 1, :]), _vector(arm)))[..., 3:]
    chosen = screws[..., columns, :, :]
    screw, screw_rate = (Motion(*(_vector(chosen[..., i, :]) for i in pair)) for pair in ((0, 1), (2, 3)))
    reach = _vector(tip[..., None, :] - poses[..., [i - 1 for i in links], 9:])
    change = _vector(moving[..., None, :] - speeds[..., [i - 1 for i in links], 3:])
    jacobian[..., columns] = np.swapaxes(_rows(jacobian_column(screw, reach)), -1, -2)
    rate[..., columns] = np.swapaxes(_rows(jacobian_rate_column(screw, screw_rate, reach, change)), -1, -2)
    return jacobian, rate


def _path(kernels: Kernels, link: int) -> tuple[list[int], list[int]]:
    """Speeds between the ground and a link, and the link each belongs to."""
    columns: list[int] = []
    links: list[int] = []
    while link:
        joint = kernels.tree.joints[link]
        assert joint is not None
        columns += range(int(kernels.tree.u_start[link]), int(kernels.tree.u_start[link]) + joint.nu)
        links += [link] * joint.nu
        link = int(kernels.tree.parent[link])
    return columns, links


def _vector(rows: Floats) -> Vector:
    return Vector(rows[..., 0], rows[..., 1], rows[..., 2])


def _motion(rows: Floats) -> Motion:
    return Motion(_vector(rows[..., :3]), _vector(rows[..., 3:]))


def _rows(motion: Motion) -> Floats:
    """[angular; linear] of the last axis."""
    return np.stack(np.broadcast_arrays(*motion.angular, *motion.linear), axis=-1)


def _turned(rotation: Floats, vector: Floats) -> Floats:
    """rotation times vector, leading axes of both broadcast."""
    return np.asarray((rotation @ vector[..., None])[..., 0])


def totals(kernels: Kernels, q: npt.ArrayLike, u: npt.ArrayLike | None, t: npt.ArrayLike, lanes: bool | None = None
           ) -> Floats:
    """Sums over all moving bodies, (..., 12): mass, centre of mass times mass, linear and angular momentum, kinetic
    energy, potential energy of gravity; at rest if no speeds are given."""
    return kernels.run("totals", {"q": q, "u": np.zeros(kernels.tree.nu) if u is None else u}, None, t, lanes=lanes)
