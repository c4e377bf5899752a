"""The textbook method: composite-body mass matrix, Newton-Euler bias, Cholesky. Oracle and baseline.

M. W. Walker and D. E. Orin, "Efficient Dynamic Computer Simulation of Robotic Mechanisms", Journal of
Dynamic Systems, Measurement, and Control 104, 1982 (their third method).

| symbol | here |
|---|---|
| M, the joint-space mass matrix | ``mass_matrix``, entry by entry along the path to the root |
| h, forces at zero acceleration | ``inverse_dynamics`` with udot = 0 |
| L, M = L L^T | `solve_positive` (as L D L^T, without square roots) |

Deviations: none of substance; composite inertias are kept about the joint point in body axes, and the inertias of
rotors (armatures) are added to the diagonal.

Cost: O(n^2) for the matrix, O(n^3) for the solution.
"""

from __future__ import annotations

from bellcrank.formulations.common.link_kinematics import inward_composites
from bellcrank.formulations.common.rotor_rows import WithRotors, past_rotors, rotors_on_diagonal
from bellcrank.formulations.common.small_systems import solve_positive
from bellcrank.formulations.dense.flexible_matrix import matrix_with_modes
from bellcrank.formulations.recursive import inverse_dynamics
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, RigidInertia

__all__ = ["BIBTEX", "BY_MATRIX", "FLEXIBLE", "WHOLE", "forward_dynamics", "inverse_dynamics", "mass_matrix",
           "solve_positive"]

BIBTEX = """@article{walker1982efficient,
  author  = {Walker, M. W. and Orin, D. E.},
  title   = {Efficient Dynamic Computer Simulation of Robotic Mechanisms},
  journal = {Journal of Dynamic Systems, Measurement, and Control},
  volume  = {104},
  pages   = {205--211},
  year    = {1982}
}"""


#: functions that cover bodies that deform
FLEXIBLE = ("forward_dynamics", "inverse_dynamics", "mass_matrix")
#: functions that need the matrix as a whole
WHOLE = ("forward_dynamics",)
#: those that LAPACK computes just as well
BY_MATRIX = ("forward_dynamics",)


def mass_matrix(tree: Sweeps) -> Field:
    """Columns of the joint-space mass matrix, lower part, along the paths to the root."""
    if tree.world.flexible:
        return matrix_with_modes(tree)
    composites, _ = tree.inward(inward_composites, zero=RigidInertia.zero())
    if tree.world.rotors:
        return tree.paths(start_with_rotors, past_rotors(inward_column), composites)
    return tree.paths(start_column, inward_column, composites)


def start_column(link: Link, composite: RigidInertia) -> tuple[Force, ...]:
    """The forces that give everything outboard a unit acceleration of one joint speed."""
    return tuple(composite @ column for column in link.columns)


def inward_column(link: Link, force: Force, composite: RigidInertia) -> tuple[Force, tuple[Number, ...]]:
    row = tuple(column.dot(force) for column in link.columns)
    for t in reversed(link.transforms):
        force = t.force(force)
    return force, row


def start_with_rotors(link: Link, composite: RigidInertia) -> tuple[WithRotors, ...]:
    """The forces of `start_column`, and what the rotors take."""
    return rotors_on_diagonal(link, start_column(link, composite))


def forward_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations for given joint forces: M_ff udot_f = tau_f - h_f, prescribed accelerations in h."""
    matrix = tree.joint_matrix(mass_matrix(tree))
    bias = tree.joint_vector(inverse_dynamics(tree))
    tau = tree.joint_vector(tree.outward(_given_tau, root=()))
    udot = tree.joint_vector(tree.outward(_given_udot, root=()))
    free = [i for i, free in enumerate(tree.joint_vector(tree.outward(_free, root=()))) if free]  # no loop joints
    solved = solve_positive([[matrix[i][j] for j in free] for i in free], [tau[i] - bias[i] for i in free])
    for i, value in zip(free, solved, strict=True):
        udot[i] = value
    return tree.joint_field(udot)


def _given_tau(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.tau)


def _given_udot(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(link.udot)


def _free(link: Link, nothing: tuple[()]) -> tuple[tuple[()], tuple[bool, ...]]:
    return (), tuple(not driven for driven in link.mask)
