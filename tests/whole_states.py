"""States of machines with loops from the coordinates of the joints that carry links, as references give them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

import bellcrank as bc


def carrying(system: bc.System, speeds: bool = False) -> list[int]:
    """The places in q, or in u, of the joints that carry links in this machine."""
    tree = system.model.tree
    own = {i for joint in tree.loop_joints for i in range(*(joint.u if speeds else joint.q).indices(10**9))}
    return [i for i in range(system.nu if speeds else system.nq) if i not in own]


def whole_q(system: bc.System, q: npt.ArrayLike, t: Any = 0.0) -> np.ndarray:
    """All coordinates (..., nq) from those of the joints that carry links: loop joints are where these put them."""
    given = np.asarray(q, dtype=float)
    out = np.zeros((*given.shape[:-1], system.nq)) + system.neutral()
    out[..., carrying(system)] = given
    return system.plans.loops.measured(out, t)


def whole_u(system: bc.System, q: npt.ArrayLike, u: npt.ArrayLike, t: Any = 0.0) -> np.ndarray:
    """All speeds (..., nu) from those of the joints that carry links, at whole coordinates q."""
    given = np.asarray(u, dtype=float)
    out = np.zeros((*given.shape[:-1], system.nu))
    out[..., carrying(system, True)] = given
    return system.kernels.run("joint_speeds", {"q": q, "u": out}, None, t)


def whole_state(system: bc.System, q: npt.ArrayLike, u: npt.ArrayLike, t: Any = 0.0) -> tuple[np.ndarray, np.ndarray]:
    """Both."""
    place = whole_q(system, q, t)
    return place, whole_u(system, place, u, t)


def of_tree(system: bc.System, values: npt.ArrayLike) -> np.ndarray:
    """Entries (..., nu) of the joints that carry links."""
    return np.asarray(values)[..., carrying(system, True)]


def tree_matrix(system: bc.System, q: npt.ArrayLike, t: Any = 0.0) -> np.ndarray:
    """The mass matrix of the joints that carry links."""
    some = carrying(system, True)
    return system.mass_matrix(q, t=t, speeds="tree")[..., some, :][..., :, some]


def tree_forces(system: bc.System, q: npt.ArrayLike, tau: npt.ArrayLike, t: Any = 0.0) -> np.ndarray:
    """Forces (..., speeds) of the joints that carry links that have the power of the forces tau (..., nu) of all
    joints in every motion that they allow, as if the loops were open."""
    some = carrying(system, True)
    place = np.asarray(q, dtype=float)
    still = whole_u(system, place, np.zeros(len(some)), t)
    units = whole_u(system, place[..., None, :], np.eye(len(some)), t) - still[..., None, :]
    units[..., some] = np.eye(len(some))
    return (units @ np.asarray(tau, dtype=float)[..., None])[..., 0]
