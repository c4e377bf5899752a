"""Decoupled natural orthogonal complements: twist propagation, the inertia matrix and its U D U^T.

S. K. Saha and W. O. Schiehlen, "Recursive Kinematics and Dynamics for Parallel Structured Closed-Loop Multibody
Systems", Mechanics of Structures and Machines 29(2), 2001, with the serial (here: tree) complements it builds on,
S. K. Saha, "A Decomposition of the Manipulator Inertia Matrix", IEEE Trans. Robotics and Automation 13(2), 1997.
Equation numbers are those of the first paper, [D..] marks the second.

| paper | here |
|---|---|
| t_i, w_i (1) | ``omega`` and ``rate`` (dt_i/dt), ``wrench`` |
| A_{i,i-1}, p_i (7a), (7b) | ``link.transforms``, ``link.columns`` |
| M_i (2), composite Mtilde_i (27), (28) | ``link.inertia``, `inward_composites` |
| N_l, N_d (16c), (17a) | applied by sweeps, never formed: outward N_l N_d, inward N_d^T N_l^T |
| i_ij (34), [D] i_ij = p_i^T Mtilde_i A_ij p_j | `mass_matrix`, element by element |
| mhat_i, psihat_i, psi_i, Mhat_i [D] | ``Pivot.gain`` is psi_i; the others inside `eliminate` |
| u_ij, D [D] | `factor_columns`, `factor_diagonal` |
| phi = tau - C thetadot (25) | ``phi`` |

Declared deviations
- A joint with several speeds is its speeds one after another, as the paper says below (3): universal, spherical
  and other joints need no fictitious links.
- Vectors are resolved in body axes, so A_{i,i-1} holds a rotation.
- For parallel structures N_c (16c) stands between N_l and N_d, see `platforms`; trees have none.
- Prescribed speeds are not eliminated; their accelerations are part of dt/dt.

Cost: O(n) for inverse and forward dynamics, O(n * depth) for the matrix and its factors.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.pivot import Pivot, eliminate, solve
from bellcrank.formulations.complement.platforms import check_coverage, constrained_dynamics, constrained_inverse
from bellcrank.formulations.dense import WithRotors, mass_matrix, past_rotors
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
  year    = {2001}
}"""


class Twist(NamedTuple):
    """Angular velocity and rate of the twist."""

    omega: Vector
    rate: Motion


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
    """Columns of the unit triangular U in I = U D U^T [D]."""
    pivots, _ = tree.inward(inward_pivots, zero=ArticulatedInertia.zero())
    if tree.world.rotors:
        return tree.paths(start_with_rotors, past_rotors(inward_factor), pivots)
    return tree.paths(start_factor, inward_factor, pivots)


def factor_diagonal(tree: Sweeps) -> Field:
    """The diagonal D in I = U D U^T [D]."""
    pivots, _ = tree.inward(inward_pivots, zero=ArticulatedInertia.zero())
    return tree.outward(_diagonal, pivots, root=())


def outward_twists(link: Link, parent: Twist) -> tuple[Twist, Twist]:
    omega, rate = parent
    for t in link.transforms:
        moved = t.acceleration(rate)  # d/dt (7a)
        rate = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega = t.rotation.inverse(omega)
    relative = link.rate
    rate = rate + Motion(omega.cross(relative.angular), omega.cross(relative.linear) * 2.0)
    rate = rate + link.joint.drift(link.q, link.u, link.numbers.joint)
    for column, udot in zip(link.columns, link.udot, strict=True):
        rate = rate + column * udot  # d/dt (7a): p_i thetaddot_i
    own = Twist(omega + relative.angular, rate)  # (7a)
    return own, own


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
    mass, eta = upper[0] + link.inertia.articulated(), upper[1]  # [D]: Mhat_i = M_i + A^T Mhat_{i+1,i} A
    pivots = []
    for column, tau, c, armature, prescribed in zip(link.columns, link.tau, convective, link.armature, link.mask,
                                                    strict=True):
        if not prescribed:
            # [D]: psihat, mhat, psi, phihat, phitilde
            mass, eta, pivot = eliminate(mass, eta, column, tau - c, armature)
            pivots.append(pivot)
    for t in reversed(link.transforms):
        mass, eta = t.articulated(mass), t.force(eta)
    return (mass, eta), tuple(pivots)


def outward_solution(link: Link, mu: Motion, pivots: tuple[Pivot, ...]) -> tuple[Motion, tuple[Number, ...]]:
    for t in link.transforms:
        mu = t.acceleration(mu)
    mu, thetaddot = solve(mu, link.columns, link.mask, pivots, link.prescribed_udot)  # [D]: phitilde - psi^T mu
    return mu, tuple(thetaddot)


# -- I = U D U^T --------------------------------------------------------------------------------------------------
class Factor(NamedTuple):
    """psi_i and mhat_i of one speed."""

    psi: Force
    inertia: Number


def inward_pivots(link: Link, upper: ArticulatedInertia) -> tuple[ArticulatedInertia, tuple[Factor, ...]]:
    mass = upper + link.inertia.articulated()  # [D]
    kept = []
    for column, armature in zip(link.columns, link.armature, strict=True):
        inertia = column.dot(mass @ column) + armature  # [D]: mhat_i = p_i^T Mhat_i p_i
        mass, _, pivot = eliminate(mass, Force.zero(), column, 0.0, armature)  # [D]: Mhat_i - psihat_i psi_i^T
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
    row = tuple(column.dot(psi) for column in link.columns)  # [D]: u_ji = p_j^T A_ij^T psi_i
    for t in reversed(link.transforms):
        psi = t.force(psi)
    return psi, row
