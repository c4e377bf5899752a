"""Flexible links in the operator recursions: section 4 of the paper, and what its last paragraph promises.

(4.1)-(4.3) write the velocities of a link's nodes as V^f = B* V + h* u and the velocity of what hangs from a node as
phi* V + C* h* u, so that deformation rates u and joint rates beta stand side by side in X = (u; beta), and the mass
operator is M^f = (h; H B) [I + C phi B] m [I + C phi B]* (h; H B)*. It is inverted as for rigid links: the innovations
of (3.7), (A.2) for the deformation coordinates of a link first, for its joint then.

| paper | here |
|---|---|
| u_k, h_k (4.1) | modal speeds of a frame, ``link.u``; the modes (h = [I, 0]: displacements of all nodes but one) |
| C_k* h_k* (4.1), (4.2) | ``link.moving_columns`` of nodes |
| B_k m B_k*, B_k m h_k*, h_k m h_k* (4.3) | ``mass``, ``columns``, ``matrix`` of `ModalLink.resistance` |
| P, D, G, epsilon, nu of a link's deformation | ``load.mass``, ``load.matrix``, ``gain``, ``rest``, ``nu`` |

Declared deviations
- Nodes carry links at their exact rotations, whose rates are not the plain sums that B* V + h* u has (C is then not
  phi(Q, O) alone); for one axis of rotation, and without deformation, they coincide.
- In M^f the factor (h; H B) stands as in the errata; h_k is any set of modes.
- B_k m B_k* depends on the deformation; the velocity terms of (2.1) are those of `ModalForm`.

Cost: O(n) in links, O(k^3) in the deformation coordinates of one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bellcrank.formulations.common.flexible_links import ModalLoad, inward_node_load
from bellcrank.formulations.dense import solve_positive
from bellcrank.lowering.flexible_link import ModalLink, NodeLink, by_role
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, Motion

__all__ = ["accelerations_of_flexible_links"]

Carried = tuple[Motion, tuple[Number, ...]]
#: nu and G of a link's deformation
Deformed = tuple[tuple[Number, ...], tuple[Force, ...]]


def accelerations_of_flexible_links(tree: Sweeps, bias: Field, inward: Callable[..., Any], outward: Callable[..., Any]
                                    ) -> Field:
    """(3.7) with X in place of beta; `bias` is C of (2.5), `inward` and `outward` are the steps of rigid links."""
    k = tree.world.modes

    def inward_rigid(link: Link, outboard: ModalLoad, own: tuple[Number, ...]) -> tuple[ModalLoad, Any]:
        (mass, z), kept = inward(link, (outboard.mass, outboard.force), own)
        return ModalLoad.rigid(mass, z, k), kept

    def outward_rigid(link: Link, inboard: Carried, kept: Any) -> tuple[Carried, tuple[Number, ...]]:
        acceleration, udot = outward(link, inboard[0], kept)
        return (acceleration, (0.0,) * k), udot

    zero = ModalLoad.rigid(ArticulatedInertia.zero(), Force.zero(), k)
    kept, _ = tree.inward(by_role(inward_rigid, inward_deformation, inward_node), bias, zero=zero)
    return tree.outward(by_role(outward_rigid, outward_deformation, outward_node), kept,
                        root=(Motion.zero(), (0.0,) * k))


def inward_node(link: NodeLink, outboard: ModalLoad, bias: tuple[()]) -> tuple[ModalLoad, tuple[()]]:
    mass = outboard.mass + link.inertia.articulated()
    return inward_node_load(link, mass, outboard.force).padded(link.world.modes), ()  # (4.1): C


def inward_deformation(link: ModalLink, outboard: ModalLoad, bias: tuple[Number, ...]) -> tuple[ModalLoad, Deformed]:
    mass, columns, matrix = link.resistance  # (4.3): B m B*, B m h*, h m h*
    free = [j for j, prescribed in enumerate(link.mask) if not prescribed]
    mass, z = mass + outboard.mass, outboard.force  # P of (A.1)
    ph = [columns[j] + outboard.columns[j] for j in free]
    d = [[matrix[i][j] + outboard.matrix[max(i, j)][min(i, j)] for j in free] for i in free]  # D
    rest = [link.tau[j] - bias[j] - outboard.right[j] for j in free]  # eps = That - h z
    nu = tuple(solve_positive(d, rest))  # nu = D^-1 eps
    inverse = [solve_positive(d, [1.0 if i == j else 0.0 for j in range(len(free))]) for i in range(len(free))]
    gain = [sum((f * x for f, x in zip(ph, row, strict=True)), Force.zero()) for row in inverse]  # G = P h* D^-1
    for f, g, e in zip(ph, gain, rest, strict=True):
        mass, z = mass.minus(f, g), z + g * e  # (A.1), (A.2)
    for t in reversed(link.transforms):
        mass, z = t.articulated(mass), t.force(z)
    return ModalLoad.rigid(mass, z, link.world.modes), (nu, tuple(gain))


def outward_deformation(link: ModalLink, inboard: Carried, kept: Deformed) -> tuple[Carried, tuple[Number, ...]]:
    acceleration = inboard[0]
    for t in link.transforms:
        acceleration = t.velocity(acceleration)  # phi*
    udot = link.prescribed_udot
    free = [j for j, prescribed in enumerate(link.mask) if not prescribed]
    for j, nu, g in zip(free, *kept, strict=True):
        udot[j] = nu - acceleration.dot(g)  # (A.2)
    moving = [0.0 if prescribed else x for x, prescribed in zip(udot, link.mask, strict=True)]
    return (acceleration, (*moving, *(0.0,) * (link.world.modes - len(moving)))), tuple(udot)


def outward_node(link: NodeLink, inboard: Carried, nothing: tuple[()]) -> tuple[Carried, tuple[()]]:
    acceleration, udot = inboard
    for t in link.transforms:
        acceleration = t.velocity(acceleration)
    for column, value in zip(link.moving_columns, udot, strict=False):
        acceleration = acceleration + column * value  # (4.1): C* h* u
    return (acceleration, (0.0,) * len(udot)), ()
