"""The operators of section 4 as matrices: phi, H, B, C, h, m of a machine of flexible links, and M^f made of them.

For looking at the factored mass matrix, and for checks; the recursions are in `flexible_recursion`. Matrices are those
of one position, on numbers; stars (transposes) take velocities outward.

| paper | here |
|---|---|
| phi* = (1 - E_phi*)^-1, E_phi* with blocks phi*(k+1, k) (2.2), (4.1) | ``FlexibleOperators.phi``, ``shift`` |
| H*(k), C_k*, B_k*, h_k* (4.1)-(4.3) | ``H``, ``C``, ``B``, ``h``: transposed, as they act on velocities |
| m, M^f (4.3) | ``m``, ``mass()`` |

Declared deviations
- Velocities of links are [angular; linear] in the axes of their frames, those of nodes (ux, uy, uz, rx, ry, rz) as in
  finite elements. X has the order of the machine's speeds.
- C takes rates of nodal rotations as angular velocities, as the paper does: the matrices are those of the recursions
  where nodes turn about one axis, or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.lowering.flexible_link import ModalLink, NodeLink
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.mechanism.flexible.component_modes import rigid_motions
from bellcrank.spatial import Motion, Transform, Vector

__all__ = ["FlexibleOperators", "flexible_operators"]


@dataclass(frozen=True, eq=False)
class FlexibleOperators:
    """All of them for N links with n nodes together and nu speeds; transposed where the paper has a star."""

    shift: Floats  #: E_phi*, (6 N, 6 N)
    H: Floats  #: H*, (6 N, nu): zero in columns of modes
    C: Floats  #: C*, (6 N, 6 n)
    B: Floats  #: B*, (6 n, 6 N)
    h: Floats  #: h*, (6 n, nu): zero in columns of joints
    m: Floats  #: (6 n, 6 n)

    @property
    def phi(self) -> Floats:
        """phi*."""
        return np.asarray(np.linalg.inv(np.eye(len(self.shift)) - self.shift), dtype=float)

    def velocities(self) -> Floats:
        """V^f = [I + B* phi* C*] (h* + B* H*) X: the matrix of X, (6 n, nu)."""
        carried: Floats = np.eye(len(self.m)) + self.B @ self.phi @ self.C
        return np.asarray(carried @ (self.h + self.B @ self.H))  # (4.3)

    def mass(self) -> Floats:
        """M^f, (4.3)."""
        nodes = self.velocities()
        return np.asarray(nodes.T @ self.m @ nodes)


def flexible_operators(machine: LoopedDirect, masses: Mapping[str, Floats]) -> FlexibleOperators:
    """Of a machine on numbers; `masses` has the finite-element mass matrix of every body, (6 nodes, 6 nodes)."""
    tree = machine.tree
    frames = [k for k in range(1, tree.n + 1) if isinstance(machine.views[k], ModalLink)]
    counts = [len(machine.views[k].deformation.body.nodes) for k in frames]
    at = dict(zip(frames, np.concatenate([[0], np.cumsum(counts)[:-1]]).tolist(), strict=True))
    n, total = len(frames), sum(counts)
    shift, H, C = np.zeros((6 * n, 6 * n)), np.zeros((6 * n, tree.nu)), np.zeros((6 * n, 6 * total))
    B, h, m = np.zeros((6 * total, 6 * n)), np.zeros((6 * total, tree.nu)), np.zeros((6 * total, 6 * total))
    for i, k in enumerate(frames):
        view = machine.views[k]
        body, rows = view.deformation.body, slice(6 * at[k], 6 * (at[k] + counts[i]))
        speeds = slice(int(tree.u_start[k]), int(tree.u_start[k]) + body.size)
        e = np.array([float(x) for x in view.q])
        places = body.nodes + body.modes[:, :3] @ e
        B[rows, 6 * i:6 * i + 6] = rigid_motions(places, 6)[:, [3, 4, 5, 0, 1, 2]]  # (4.3): B_k*
        h[rows, speeds] = body.modes.reshape(-1, body.size)  # (4.1): h_k*
        m[rows, rows] = masses[tree.joint_names[k]]
        mine, node = _inboard(machine, k)
        below: list[Transform] = []
        for link in mine:  # from the frame inwards
            own = machine.views[link]
            for j, column in enumerate(own.columns if link != k else ()):
                H[6 * i:6 * i + 6, int(tree.u_start[link]) + j] = _six(_seen(column, below))  # (4.1): H*(k)
            below = [*own.transforms, *below]
        if node:
            carrier = int(tree.parent[node])
            up, turn = frames.index(carrier), machine.views[node].transforms[-1].rotation
            place = 6 * (at[carrier] + machine.views[node].node.node)
            for c, unit in enumerate(np.eye(6).tolist()):
                angular, linear = turn.inverse(Vector(*unit[3:])), turn.inverse(Vector(*unit[:3]))
                C[6 * i:6 * i + 6, place + c] = _six(_seen(Motion(angular, linear), below))  # (4.2)
            shift[6 * i:6 * i + 6, 6 * up:6 * up + 6] = C[6 * i:6 * i + 6] @ B[:, 6 * up:6 * up + 6]  # B C = E_phi
    return FlexibleOperators(shift, H, C, B, h, m)


def _inboard(machine: LoopedDirect, frame: int) -> tuple[list[int], int]:
    """The links from a frame inwards to the node that carries it, and that node; 0 for the ground."""
    mine, link = [], frame
    while link and not isinstance(machine.views[link], NodeLink):
        if link != frame and any(float(x) for x in machine.views[link].inertia[0:1]):
            raise ModelError(f"{machine.tree.link_names[link]!r} is rigid: the operators of section 4 are those of "
                             "machines whose bodies all deform")
        mine.append(link)
        link = machine.parent[link]
    return mine, link


def _seen(motion: Motion, below: list[Transform]) -> Motion:
    """A velocity as a frame further out sees it."""
    for t in below:
        motion = t.velocity(motion)
    return motion


def _six(motion: Any) -> list[float]:
    return [float(x) for part in motion for x in part]
