"""The cheapest way of one call: straight into the compiled function where the method is that and nothing more.

Each function here makes an `Once` of `system.at_state`: given a system and the arguments of a method, it returns the
result, or None if they are not one state in arrays as compiled code takes them; then the general way is taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bellcrank.mechanism.pose import Pose
from bellcrank.system.at_state import Once
from bellcrank.system.reactions import named_reactions

__all__ = ["at_body", "energy_once", "matrix", "number", "pose_once", "reactions_once", "tree_bias", "vector"]

_ORIGIN = np.zeros(3)


def vector(name: str) -> Once:
    """A function whose result is an array of numbers."""
    def once(system: Any, args: tuple[Any, ...]) -> Any:
        door, size, batch = system.kernels.doors[name]
        out = np.empty(size)
        return out if door(*args, out) is out else batch(*args)

    return once


def number(name: str) -> Once:
    """A function with one number as result."""
    def once(system: Any, args: tuple[Any, ...]) -> Any:
        door, size, batch = system.kernels.doors[name]
        out = np.empty(size)
        if door(*args, out) is out:
            return out[0]
        many = batch(*args)
        return None if many is None else many[:, 0]

    return once


def matrix(name: str) -> Once:
    """A function whose result is a square matrix over the speeds."""
    def once(system: Any, args: tuple[Any, ...]) -> Any:
        door, size, batch = system.kernels.doors[name]
        out = np.empty(size)
        if door(*args, out) is out:
            return out.reshape(system.nu, -1)
        many = batch(*args)
        return None if many is None else many.reshape(-1, system.nu, system.nu)

    return once


def tree_bias(system: Any, args: tuple[Any, ...]) -> Any:
    """The bias where neither springs nor other laws are to be taken off."""
    return _BIAS(system, args) if system.kernels.free_of_laws else None


def energy_once(system: Any, args: tuple[Any, ...]) -> Any:
    """The energy where no force element stores any."""
    return _ENERGY(system, args) if system.kernels.free_of_laws else None


def pose_once(system: Any, args: tuple[Any, ...]) -> Any:
    """The pose of a body, or those of all."""
    if len(args) == 1:
        return _all_poses(system, args[0])
    if len(args) != 2:
        return None
    try:
        door, size, batch = system.kernels.doors["pose", args[1]]
    except TypeError:  # no name
        return None
    out = np.empty(size)
    if door(args[0], out) is out:
        return Pose.of_arrays(out[9:], out[:9].reshape(3, 3))
    many = batch(args[0])
    return None if many is None else Pose.of_arrays(many[:, 9:], many[:, :9].reshape(-1, 3, 3))


def _all_poses(system: Any, q: Any) -> Any:
    door, size, batch = system.kernels.doors["pose", None]
    out = np.empty(size)
    if door(q, out) is out:
        rows = out.reshape(-1, 12)
        return Pose.of_arrays(rows[:, 9:], rows[:, :9].reshape(-1, 3, 3))
    many = batch(q)
    if many is None:
        return None
    rows = many.reshape(len(many), -1, 12)
    return Pose.of_arrays(rows[:, :, 9:], rows[:, :, :9].reshape(len(many), -1, 3, 3))


def at_body(what: str, count: int, matrix: bool = False) -> Once:
    """A function of `count` arrays, a body, and perhaps a point of it; with the speeds as columns if it is a matrix."""
    def once(system: Any, args: tuple[Any, ...]) -> Any:
        if len(args) == count + 1:
            *arrays, body = args
            point: Any = _ORIGIN
        elif len(args) == count + 2:
            *arrays, body, point = args
            if type(point) is not np.ndarray:
                try:
                    point = np.array(point, dtype=float)
                except (TypeError, ValueError):
                    return None
        else:
            return None
        try:
            door, size, batch = system.kernels.doors[what, body]
        except TypeError:  # no name
            return None
        out = np.empty(size)
        if door(*arrays, point, out) is out:
            return out.reshape(6, -1) if matrix else out
        many = batch(*arrays, point)
        return many if many is None or not matrix else many.reshape(len(many), 6, -1)

    return once


def reactions_once(system: Any, args: tuple[Any, ...]) -> Any:
    """Reactions at the accelerations of forward dynamics, which have a door of their own."""
    forward, doors = system._forward_door, system._reaction_doors
    if forward is None or doors.one is None or not 2 <= len(args) <= 3:
        return None
    q, u = args[0], args[1]
    tau = system._zeros if len(args) == 2 or args[2] is None else args[2]
    udot = np.empty(system.nu)
    if forward(q, u, tau, udot) is udot:
        out = np.empty(6 * len(doors.names))
        return named_reactions(doors.names, out) if doors.one(q, u, tau, udot, out) is out else None
    udot = system._forward_batch(q, u, tau)
    many = None if udot is None else doors.many(q, u, tau, udot)
    return None if many is None else named_reactions(doors.names, many)


_BIAS, _ENERGY = vector("bias"), number("motion_and_gravity")
