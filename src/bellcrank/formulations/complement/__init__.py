"""Decoupled natural orthogonal complements: twist propagation, the inertia matrix and its U D U^T.

S. K. Saha and W. O. Schiehlen, "Recursive Kinematics and Dynamics for Closed Loop Multibody Systems", the authors'
preprint; equation numbers are those of this text. It was published as "Recursive Kinematics and Dynamics for Parallel
Structured Closed-Loop Multibody Systems", Mechanics of Structures and Machines 29(2), 2001, whose numbers were not
compared. For the factors of I the preprint refers to S. K. Saha, "A Decomposition of the Manipulator Inertia Matrix",
IEEE Trans. Robotics and Automation 13(2), 1997: Gaussian elimination of (34) from the last row upwards. That paper's
numbers are not used; the elimination is written out here as (D1)-(D7), for the speeds i of a tree:

    Mhat_i = M_i + sum of A_ji^T (Mhat_j - psihat_j psi_j^T) A_ji over the links j that hang from i     (D1)
    psihat_i = Mhat_i p_i,   mhat_i = p_i^T psihat_i,   psi_i = psihat_i / mhat_i                       (D2)
    I = U D U^T:   u_ji = p_j^T A_ij^T psi_i for j on the way from i to the root,   D = diag(mhat_i)    (D3)
    phihat_i = phi_i - p_i^T eta_i,   phitilde_i = phihat_i / mhat_i                                    (D4)
    eta_i = sum of A_ji^T (eta_j + psi_j phihat_j)                                                      (D5)
    thetaddot_i = phitilde_i - psi_i^T mu_i,   mu_i = A_ih (mu_h + p_h thetaddot_h), h the parent of i  (D6)

A rotor (armature) a_i adds to mhat_i:   mhat_i = p_i^T psihat_i + a_i                                  (D7)

| paper | here |
|---|---|
| t_i, w_i (1) | ``omega`` and ``rate`` (dt_i/dt), ``wrench`` |
| A_{i,i-1}, p_i (7a), (7b) | ``link.transforms``, ``link.columns`` |
| M_i (2), Mtilde_i of the composite body (28) | ``link.inertia``, `inward_composite_masses` |
| N_l, N_d (16c), (17a) | applied by sweeps, never formed: outward N_l N_d, inward N_d^T N_l^T |
| Mtilde_ij = Mtilde_i A_ij (28), i_ij (34) | `mass_matrix`, row by row: p_i^T Mtilde_ij p_j |
| mhat_i, psihat_i, psi_i, Mhat_i (D1), (D2) | ``Pivot.gain`` is psi_i; the others inside `eliminate` |
| u_ij, D (D3) | `factor_columns`, `factor_diagonal` |
| phi = tau - C thetadot (25) | ``phi`` |

Declared deviations
- A joint with several speeds is its speeds one after another, as the paper says below (3): universal, spherical
  and other joints need no fictitious links.
- Vectors are resolved in body axes, so A_{i,i-1} holds a rotation.
- For parallel structures N_c (16c) stands between N_l and N_d, see `platforms`; trees have none, so that in (26)
  Mbar = Mtilde and (34) holds for every pair of speeds, not for those of the actuated joints k alone.
- The sum over the bodies of a composite body, (28) and the text below it, is a recursion: Mtilde_i = M_i + the sum of
  A_ji^T Mtilde_j A_ji over the links j that hang from i, a 6 x 6 matrix throughout. It does not use that a composite
  body is rigid, as `dense` does.
- Inertias of rotors (armatures) are added to the diagonal of I.
- Prescribed speeds are not eliminated; their accelerations are part of dt/dt.

Cost: O(n) for inverse and forward dynamics, O(n * depth) for the matrix and its factors.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.pivot import Pivot, eliminate, solve
from bellcrank.formulations.common.rotor_rows import WithRotors, past_rotors, rotors_on_diagonal
from bellcrank.formulations.complement.platforms import check_coverage, constrained_dynamics, constrained_inverse
from bellcrank.formulations.complement.twists import Twist, outward_twists
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Motion, Vector

__all__ = ["BIBTEX", "check_coverage", "constrained_dynamics", "constrained_inverse", "factor_columns",
           "factor_diagonal", "forward_dynamics", "inverse_dynamics", "mass_matrix"]

BIBTEX = """@article{saha2001recursive,
  author  = {Saha, S. K. and Schiehlen, W. O.},
  title   = {Recursive Kinematics and Dynamics for Parallel Structured Closed-Loop Multibody Systems},
  journal = {Mechanics of Structures and Machines},
  volume  = {29},
  number  = {2},
  pages   = {143--175},
  year    = {2001},
  note    = {Equation numbers refer to the preprint: Recursive Kinematics and Dynamics for Closed Loop Multibody
             Systems}
}"""


def inverse_dynamics(tree: Sweeps) -> Field:
    """tau = N_d^T N_l^T w, (19)-(21), (24)."""
    axes = outward_axes(tree)
    twist = tree.outward(outward_twists, root=Twist(Vector.zero(), Motion(Vector.zero(), -tree.world.gravity)))
    return tree.inward(inward_wrenches, twist, axes, zero=Force.zero())[0]


def forward_dynamics(tree: Sweeps) -> Field:
    """I thetaddot = tau - C thetadot, (25), by the analytical U D U^T of I."""
    convective = inverse_dynamics(tree)  # free accelerations read as zero here
    pivots, _ = tree.inward(inward_elimination, convective, zero=(ArticulatedInertia.zero(), Force.zero()))
    return tree.outward(outward_solution, pivots, root=Motion.zero())


def factor_columns(tree: Sweeps) -> Field:
    """Columns of the unit triangular U in I = U D U^T, (D3)."""
    pivots, _ = tree.inward(inward_pivots, zero=ArticulatedInertia.zero())
    if tree.world.rotors:
        return tree.paths(start_with_rotors, past_rotors(inward_factor), pivots)
    return tree.paths(start_factor, inward_factor, pivots)


def factor_diagonal(tree: Sweeps) -> Field:
    """The diagonal D in I = U D U^T, (D3)."""
    pivots, _ = tree.inward(inward_pivots, zero=ArticulatedInertia.zero())
    return tree.outward(_diagonal, pivots, root=())


# -- I = N_d^T N_l^T M N_l N_d, (26) ------------------------------------------------------------------------------
def mass_matrix(tree: Sweeps) -> Field:
    """Rows of the generalized inertia matrix I (26), lower part, along the paths to the root."""
    composites, _ = tree.inward(inward_composite_masses, zero=ArticulatedInertia.zero())
    if tree.world.rotors:
        return tree.paths(start_inertia_row_with_rotors, past_rotors(inward_inertia_row), composites)
    return tree.paths(start_inertia_row, inward_inertia_row, composites)


def inward_composite_masses(link: Link, upper: ArticulatedInertia) -> tuple[ArticulatedInertia, ArticulatedInertia]:
    own = upper + link.inertia.articulated()  # (28): Mtilde_i
    lower = own
    for t in reversed(link.transforms):
        lower = t.articulated(lower)  # (27): A^T Mtilde_i A
    return lower, own


def start_inertia_row(link: Link, composite: ArticulatedInertia) -> tuple[Force, ...]:
    return tuple(composite @ column for column in link.columns)  # (28): p_i^T Mtilde_ii, A_ii = 1


def start_inertia_row_with_rotors(link: Link, composite: ArticulatedInertia) -> tuple[WithRotors, ...]:
    return rotors_on_diagonal(link, start_inertia_row(link, composite))


def inward_inertia_row(link: Link, row: Force, composite: ArticulatedInertia) -> tuple[Force, tuple[Number, ...]]:
    entries = tuple(column.dot(row) for column in link.columns)  # (34): i_ij = p_i^T Mtilde_ij p_j
    for t in reversed(link.transforms):
        row = t.force(row)  # (17c), (28): p_i^T Mtilde_ij A_{j,j-1}
    return row, entries


# -- inverse and forward dynamics ----------------------------------------------------------------------------------
def inward_wrenches(link: Link, upper: Force, twist: Twist, axes: General | None
                    ) -> tuple[Force, tuple[Number, ...]]:
    wrench = upper + link.inertia @ twist.rate + link.inertia.gyroscopic(twist.omega)  # (18a), (21)
    if axes is not None:
        wrench = wrench - link.external(axes)
    lower = wrench
    for t in reversed(link.transforms):
        lower = t.force(lower)  # (21): A^T
    return lower, link.with_rotors(column.dot(wrench) for column in link.columns)  # (24)


def inward_elimination(link: Link, upper: tuple[ArticulatedInertia, Force], convective: tuple[Number, ...]
                       ) -> tuple[tuple[ArticulatedInertia, Force], tuple[Pivot, ...]]:
    mass, eta = upper[0] + link.inertia.articulated(), upper[1]  # (D1): Mhat_i
    pivots = []
    for column, tau, c, armature, prescribed in zip(link.columns, link.tau, convective, link.armature, link.mask,
                                                    strict=True):
        if not prescribed:
            # (D2), (D4), (D7)
            mass, eta, pivot = eliminate(mass, eta, column, tau - c, armature)
            pivots.append(pivot)
    for t in reversed(link.transforms):
        mass, eta = t.articulated(mass), t.force(eta)  # (D1), (D5)
    return (mass, eta), tuple(pivots)


def outward_solution(link: Link, mu: Motion, pivots: tuple[Pivot, ...]) -> tuple[Motion, tuple[Number, ...]]:
    for t in link.transforms:
        mu = t.acceleration(mu)
    mu, thetaddot = solve(mu, link.columns, link.mask, pivots, link.prescribed_udot)  # (D6)
    return mu, tuple(thetaddot)


# -- I = U D U^T --------------------------------------------------------------------------------------------------
class Factor(NamedTuple):
    """psi_i and mhat_i of one speed."""

    psi: Force
    inertia: Number


def inward_pivots(link: Link, upper: ArticulatedInertia) -> tuple[ArticulatedInertia, tuple[Factor, ...]]:
    mass = upper + link.inertia.articulated()  # (D1)
    kept = []
    for column, armature in zip(link.columns, link.armature, strict=True):
        inertia = column.dot(mass @ column) + armature  # (D2), (D7): mhat_i
        mass, _, pivot = eliminate(mass, Force.zero(), column, 0.0, armature)  # (D1): Mhat_i - psihat_i psi_i^T
        kept.append(Factor(pivot.gain, inertia))
    for t in reversed(link.transforms):
        mass = t.articulated(mass)
    return mass, tuple(kept)


def _diagonal(link: Link, nothing: tuple[()], own: tuple[Factor, ...]) -> tuple[tuple[()], tuple[Number, ...]]:
    return (), tuple(factor.inertia for factor in own)


def start_factor(link: Link, own: tuple[Factor, ...]) -> tuple[Force, ...]:
    return tuple(factor.psi for factor in own)


def start_with_rotors(link: Link, own: tuple[Factor, ...]) -> tuple[WithRotors, ...]:
    """psi_i, and what rotors lack in it: the entries of U within a joint are p_j^T psi_i for later j, 1 and 0 else."""
    out = []
    for i, factor in enumerate(own):
        lacking = [(1.0 if i == j else 0.0) - column.dot(factor.psi) for j, column in enumerate(link.columns[:i + 1])]
        out.append(WithRotors.padded(factor.psi, lacking))
    return tuple(out)


def inward_factor(link: Link, psi: Force, own: tuple[Factor, ...]) -> tuple[Force, tuple[Number, ...]]:
    row = tuple(column.dot(psi) for column in link.columns)  # (D3): u_ji
    for t in reversed(link.transforms):
        psi = t.force(psi)
    return psi, row
