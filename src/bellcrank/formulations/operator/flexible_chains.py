"""Closed chains of flexible links: steps (A)-(F) of section 3 with the deformation coordinates of section 4.

G. Rodriguez, A. Jain and K. Kreutz (see `operator` for the citation). The paper has closed chains of rigid links and
trees of flexible ones; with X = (u; beta) in place of beta the steps are the same. Symbols as in `closed_chains` and
`flexible_recursion`.

Declared deviations
- Step (C) is not (A.3)-(A.5): A Lambda A* is what (A.6) makes of a unit of every row, one sweep a row, with the
  articulation of (A.1) computed once.
- There is no alternative step (D).

Cost: O(n) for (A), (B), (E), (F); O(n m) for (C); O(m^3) for (D), with m the number of constraints.
"""

from __future__ import annotations

from typing import NamedTuple

import bellcrank.formulations.operator.closed_chains as closed_chains
from bellcrank.formulations.common.flexible_links import ModalLoad, inward_node_load
from bellcrank.formulations.common.row_loads import Load, row_loads, row_values
from bellcrank.formulations.common.small_systems import solve_multipliers, solve_positive
from bellcrank.formulations.operator.closed_chains import LinkResponse
from bellcrank.formulations.operator.tree_recursion import (
    Articulation,
    Innovation,
    inverse_dynamics,
    inward_articulation,
)
from bellcrank.formulations.recursive.newton_euler import outward_motions
from bellcrank.lowering.flexible_link import ModalLink, NodeLink, by_role
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, Motion, Vector

__all__ = ["constrained_flexible_dynamics"]

Carried = tuple[Motion, tuple[Number, ...]]


class Deforming(NamedTuple):
    """D and G of a link's deformation, for its free modes."""

    d: tuple[tuple[Number, ...], ...]
    gain: tuple[Force, ...]


class Felt(NamedTuple):
    """What loads outboard exert: z on the link, and on the modes of the frame that follows."""

    z: Force
    modal: tuple[Number, ...]


def constrained_flexible_dynamics(tree: Sweeps) -> Field:
    """Xdot = Xdot^f + Xdot^delta: the steps of section 3 for all loops at once."""
    machine = require_direct(tree)
    rows, k = machine.loop_rows(), tree.world.modes
    zero = ModalLoad.rigid(ArticulatedInertia.zero(), Force.zero(), k)
    own, _ = tree.inward(by_role(_inward_rigid, inward_deforming, inward_node), zero=zero)  # (A.1)
    given = tree.outward(closed_chains.bias_free_forces, inverse_dynamics(tree), root=())  # (2.12)
    free = respond(tree, own, given)  # (A): (3.7), (A.2)
    measured = row_values(rows, *(closed_chains.part(free, name) for name in ("alpha", "betadot")))  # (B): (3.8)
    drift = [None, *(m[1] for m in tree.outward(outward_motions, root=(Vector.zero(), Motion.zero()))[1:])]
    still = [(0.0,) * max(machine.widths)] * len(drift)  # rows on joints have theirs in gamma already
    u = [row.gamma - known for row, known in zip(rows, row_values(rows, drift, still), strict=True)]  # (2.17)
    matrix = []
    for row in rows:  # (C): A Lambda A*, (3.10)
        answer = respond(tree, own, row_loads(machine, [row], [1.0]))
        matrix.append(row_values(rows, *(closed_chains.part(answer, name) for name in ("alpha", "betadot"))))
    f = solve_multipliers(matrix, [a - b for a, b in zip(measured, u, strict=True)], machine.floors)  # (D): (3.11)
    extra = respond(tree, own, row_loads(machine, rows, [-x for x in f]))  # (E): (3.12), (A.6)
    return tree.outward(closed_chains.summed, free, extra, root=())  # (F)


# -- (A.1) ----------------------------------------------------------------------------------------------------------
def _inward_rigid(link: Link, outboard: ModalLoad) -> tuple[ModalLoad, Articulation]:
    reduced, own = inward_articulation(link, outboard.mass)
    return ModalLoad.rigid(reduced, Force.zero(), link.world.modes), own


def inward_node(link: NodeLink, outboard: ModalLoad) -> tuple[ModalLoad, tuple[()]]:
    mass = outboard.mass + link.inertia.articulated()
    return inward_node_load(link, mass, Force.zero()).padded(link.world.modes), ()  # (4.1): C


def inward_deforming(link: ModalLink, outboard: ModalLoad) -> tuple[ModalLoad, Deforming]:
    mass, columns, matrix = link.resistance  # (4.3): B m B*, B m h*, h m h*
    free = _free(link)
    mass = mass + outboard.mass  # P of (A.1)
    ph = [columns[j] + outboard.columns[j] for j in free]
    d = tuple(tuple(matrix[i][j] + outboard.matrix[max(i, j)][min(i, j)] for j in free) for i in free)  # D
    inverse = [solve_positive(d, [1.0 if i == j else 0.0 for j in range(len(free))]) for i in range(len(free))]
    gain = tuple(sum((f * x for f, x in zip(ph, row, strict=True)), Force.zero()) for row in inverse)  # G = P h* D^-1
    for f, g in zip(ph, gain, strict=True):
        mass = mass.minus(f, g)
    for t in reversed(link.transforms):
        mass = t.articulated(mass)
    return ModalLoad.rigid(mass, Force.zero(), link.world.modes), Deforming(d, gain)


def _free(link: Link) -> list[int]:
    return [j for j, prescribed in enumerate(link.mask) if not prescribed]


# -- (A.2), (A.6) ---------------------------------------------------------------------------------------------------
def respond(tree: Sweeps, own: Field, loads: Field) -> Field:
    """What loads on links, along joints and along modes make of all of them. Cost: O(n)."""
    k = tree.world.modes
    innovation, _ = tree.inward(by_role(_inward_loads, inward_modal_loads, inward_node_loads), own, loads,
                                zero=Felt(Force.zero(), (0.0,) * k))
    return tree.outward(by_role(_outward_response, outward_deformation, outward_node), innovation,
                        root=(Motion.zero(), (0.0,) * k))


def _inward_loads(link: Link, outboard: Felt, own: Articulation, load: Load) -> tuple[Felt, Innovation]:
    z, innovation = closed_chains.inward_loads(link, outboard.z, own, load)
    return Felt(z, (0.0,) * link.world.modes), innovation


def inward_node_loads(link: NodeLink, outboard: Felt, own: tuple[()], load: Load) -> tuple[Felt, tuple[()]]:
    z = outboard.z + load.wrench
    modal = [column.dot(z) for column in link.moving_columns]  # (4.1): h C z
    return Felt(_lowered(link, z), (*modal, *(0.0,) * (link.world.modes - len(modal)))), ()


def inward_modal_loads(link: ModalLink, outboard: Felt, own: Deforming, load: Load) -> tuple[Felt, Innovation]:
    z = outboard.z + load.wrench  # z = psi z + xhat
    rest = [load.joint[j] + outboard.modal[j] for j in _free(link)]  # eps = T + h z
    nu = tuple(solve_positive(own.d, rest))  # nu = D^-1 eps
    for g, e in zip(own.gain, rest, strict=True):
        z = z - g * e
    return Felt(_lowered(link, z), (0.0,) * link.world.modes), Innovation(nu, own.gain)


def _outward_response(link: Link, inboard: Carried, innovation: Innovation) -> tuple[Carried, LinkResponse]:
    alpha, response = closed_chains.outward_response(link, inboard[0], innovation)
    return (alpha, (0.0,) * link.world.modes), response


def outward_deformation(link: ModalLink, inboard: Carried, innovation: Innovation) -> tuple[Carried, LinkResponse]:
    alpha = inboard[0]
    for t in link.transforms:
        alpha = t.velocity(alpha)  # phi*
    udot: list[Number] = [0.0] * len(link.mask)
    for j, nu, g in zip(_free(link), innovation.nu, innovation.gain, strict=True):
        udot[j] = nu - alpha.dot(g)  # (A.2)
    return (alpha, (*udot, *(0.0,) * (link.world.modes - len(udot)))), LinkResponse(alpha, tuple(udot))


def outward_node(link: NodeLink, inboard: Carried, nothing: tuple[()]) -> tuple[Carried, LinkResponse]:
    alpha, udot = inboard
    for t in link.transforms:
        alpha = t.velocity(alpha)
    for column, value in zip(link.moving_columns, udot, strict=False):
        alpha = alpha + column * value  # (4.1): C* h* u
    return (alpha, (0.0,) * len(udot)), LinkResponse(alpha, ())


def _lowered(link: Link, z: Force) -> Force:
    for t in reversed(link.transforms):
        z = t.force(z)
    return z
