"""Parallel platforms: recursive solution of the unactuated rates, and the complements of closed loops.

S. K. Saha and W. O. Schiehlen, "Recursive Kinematics and Dynamics for Closed Loop Multibody Systems" (see `complement`
for where it was published), sections III-V. Equation numbers are those of that text; (16c), (22) and (30)-(32) are
used in the corrected form: the rows i != k of N_c carry the factor (1/delta_i) p_i ptilde_i^T.

| paper | here |
|---|---|
| legs l, end effector e (Fig. 3) | `legs.platform_of`; ``Platform.point`` is E |
| A_ei p_i (7b) | ``LegScrew.screw`` |
| ptilde_i / delta_i (9b), (11c), (12c) | ``LegScrew.gain``, None for independent speeds |
| Phi_2 of a leg (11d), (12d), (13) | ``LegMotion.phi`` |
| Phi, J (14a), (14b) | ``Platform.total``, ``Platform.jacobian`` |
| Psi_i = 1 - (1/delta_i) p_i ptilde_i^T (15f) | applied: x - screw (gain . x), transposed x - gain (screw . x) |
| N_l, N_c, N_d (16c), (17a) | `generalised_forces` applies N^T; `leg_coefficients` are the rows of N_c N_d |
| wtilde_i, wbar_k (20)-(23) | inside `generalised_forces` |
| Mtilde_i, p_i^T Mtilde_ij p_j (27), (28) | `leg_inertia` |
| GIM (26), (29)-(34), C thetadot (25) | `inertia_matrix`, `generalised_forces` at zero independent accelerations |

Declared deviations
- All twists and wrenches are about the one point E and in the ground's axes: every A_ij is the identity.
  Lengths are measured in a unit typical of the machine: what the projections add must be of one size.
- The joint at which a leg is cut is taken out first, as the projection on its closure constraints, which span what its
  columns leave: Phi_{m+1} of the leg. That needs no coordinates of the cut joint, brings in the right hand sides of
  the constraints (with Baumgarte's terms), and allows constraints that are no joints. Both sides of the cut count as
  coinciding: while a loop is open by some length, accelerations are off in proportion to it.
- Any number of independent speeds per leg, none included, chosen by the plan; in (12a) t_e' then lacks all of those
  further out. Phi is regular whenever they determine the motion: t with Phi t = 0 is a motion of the platform
  without them. Redundant constraints (planar loops in space, Bennett's linkage) need no treatment: (14a) is a sum of
  projections, whose solution satisfies all constraints if any does. Its price is that of normal equations: rounding
  errors grow with the square of the condition number.
- A ring with one independent speed is one leg with t_e = 0 (erratum): then there is no Phi to invert.
- Bodies beyond the cut of a leg, the platform, and bodies in no loop enter by (26) directly, with the columns of N;
  the platform's mass is counted once.
- Forces tau_i at dependent joints: p_i^T wtilde_i - tau_i in place of p_i^T wtilde_i in (21), (22).
- Rotors (armatures) a_i: tau_i - a_i thetaddot_i in place of tau_i, and the rates they turn at per unit of the
  independent ones in (26).
- The GIM is solved as L D L^T.
- Vanishing delta_i and pivots of Phi give not-a-number: the library then chooses other independent speeds.

Cost: O(links) for the legs, O(6^3) for Phi, O(n^2) per leg for the GIM and O(n^3) for its solution, n = degrees of
freedom.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.formulations.common.pivot import absent
from bellcrank.formulations.complement.leg_motion import (
    LegScrew,
    Matrix,
    Platform,
    Six,
    added,
    dot,
    legs_of,
    less,
    momentum,
    nothing,
    plus,
    rigid_matrix,
    scaled,
    symmetric,
    times,
)
from bellcrank.formulations.complement.legs import platform_of
from bellcrank.formulations.dense import solve_positive
from bellcrank.lowering.looped import require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.topology.tree import Tree

__all__ = ["check_coverage", "constrained_dynamics", "constrained_inverse", "platform_of"]


def check_coverage(tree: Tree) -> None:
    """Refuse a machine with loops that is no parallel platform."""
    legs_of(tree)


def constrained_dynamics(tree: Sweeps) -> Field:
    """All joint accelerations: I thetaddot = tau - C thetadot (25), the dependent ones by (11b), (12b)."""
    machine = Platform(require_direct(tree))
    still: list[Number] = [0.0] * machine.n
    known = machine.accelerations(still)
    convective = generalised_forces(machine, machine.wrenches(known), less(machine.tau, machine.rotor_forces(known)))
    thetaddot = solve_positive(inertia_matrix(machine), [-x for x in convective])
    udot = machine.accelerations(thetaddot)
    return [None] + [tuple(given if driven else udot[int(machine.tree.u_start[k]) + i] for i, (given, driven)
                           in enumerate(zip(view.prescribed_udot, view.mask, strict=True)))
                     for k, view in enumerate(machine.direct.views[1:], start=1)]


def constrained_inverse(tree: Sweeps) -> Field:
    """tau = N^T w (19): the forces at the independent speeds that make a given motion, zero at all others.

    The motion (udot) must be one the loops allow. Forces of laws on joints are part of the result.
    """
    machine = Platform(require_direct(tree))
    out: list[Number] = [0.0] * machine.tree.nu
    udot = tree.joint_vector([None, *(view.udot for view in machine.direct.views[1:])])
    rotors = [-x for x in machine.rotor_forces(udot)]
    for place, force in zip(machine.tree.plan.independent, generalised_forces(machine, machine.wrenches(), rotors),
                            strict=True):
        out[place] = force
    return tree.joint_field(out)


# -- section V: dynamics -------------------------------------------------------------------------------------------
def generalised_forces(p: Platform, wrenches: Sequence[Six], joints: Sequence[Number]) -> list[Number]:
    """N^T w (19) at every independent speed, less what forces at the joints contribute."""
    out: list[Number] = [-joints[v] for v in p.column]
    at_end = nothing()
    for leg in p.legs:
        tilde, parts = nothing(), []
        for axis in reversed(leg.axes):
            if axis.body:
                tilde = plus(tilde, wrenches[axis.body])  # (21)
            force, share = dot(axis.screw, tilde), nothing()
            if axis.gain is not None:
                force = force - joints[axis.place]
                share = scaled(axis.gain, force)
            parts.append((axis, force, share))
            tilde = less(tilde, share)  # (21): Psi^T
        below = nothing()  # the sum over i < k in (22)
        for axis, force, share in reversed(parts):
            if axis.place in p.column:
                k = p.column[axis.place]
                out[k] = out[k] + force - dot(axis.screw, below)  # (22), (24)
            below = plus(below, share)
        at_end = plus(at_end, below)
    for k, column in enumerate(p.jacobian):
        out[k] = out[k] + dot(column, at_end)  # (22): the sum over all legs
    for link in p.far:
        for k, column in enumerate(p.complement[link]):
            out[k] = out[k] + dot(column, wrenches[link])  # (19)
    return out


def leg_inertia(p: Platform, axes: Sequence[LegScrew]) -> Matrix:
    """p_i^T Mtilde_ij p_j of a leg, (27), (28)."""
    mass: Matrix = [[0.0] * 6 for _ in range(6)]
    out: Matrix = [[] for _ in axes]
    for i in reversed(range(len(axes))):
        axis = axes[i]
        if axis.body:
            own = rigid_matrix(p.inertias[axis.body])
            mass = symmetric([[mass[a][b] + own[a][b] for b in range(a + 1)] for a in range(6)])
        felt = times(mass, axis.screw)
        own_inertia = dot(axis.screw, felt)
        if axis.gain is not None and i:  # Psi^T Mtilde Psi
            lean = less(felt, axis.gain, own_inertia * 0.5)
            g = axis.gain
            mass = symmetric([[mass[a][b] - (lean[a] * g[b] + g[a] * lean[b]) for b in range(a + 1)]
                              for a in range(6)])
        row = [own_inertia]
        for j in reversed(range(i)):
            gain = axes[j + 1].gain
            if gain is not None:
                felt = less(felt, gain, row[-1])  # (17c): Psi^T on the way to the base
            row.append(dot(axes[j].screw, felt))
        out[i] = row[::-1]
    return symmetric(out)


def leg_coefficients(p: Platform, axes: Sequence[LegScrew]) -> Matrix:
    """Rows of N_c N_d without p_i (16c, corrected), one for every speed of a leg."""
    out: Matrix = []
    ends = [list(column) for column in p.jacobian]
    for axis in reversed(axes):
        if axis.gain is None:
            out.append([1.0 if p.column.get(axis.place) == k else 0.0 for k in range(p.n)])
            if axis.place in p.column:
                k = p.column[axis.place]
                ends[k] = less(ends[k], axis.screw)  # (12a)
        else:
            out.append([dot(axis.gain, end) for end in ends])
    return out[::-1]


def inertia_matrix(p: Platform) -> Matrix:
    """The generalised inertia matrix I = N^T M N (26)."""
    out: Matrix = [[0.0] * (i + 1) for i in range(p.n)]
    for leg in p.legs:
        last = max((i + 1 for i, axis in enumerate(leg.axes) if axis.body), default=0)
        if not last:
            continue
        h, rows = leg_inertia(p, leg.axes[:last]), leg_coefficients(p, leg.axes)[:last]
        columns = [[row[k] for row in rows] for k in range(p.n)]
        for j, column in enumerate(columns):
            felt = [added(x * y for x, y in zip(line, column, strict=True)) for line in h]
            for i in range(j, p.n):
                out[i][j] = out[i][j] + added(x * y for x, y in zip(columns[i], felt, strict=True))  # (29)-(34)
    for link in p.far:
        columns = p.complement[link]
        for j, column in enumerate(columns):
            felt = momentum(p.inertias[link], column)
            for i in range(j, p.n):
                out[i][j] = out[i][j] + dot(columns[i], felt)  # (26)
    for place, armature in enumerate(p.armature):
        if not absent(armature) and place in p.rate_rows:  # not prescribed
            row = p.rate_rows[place]
            for i in range(p.n):
                for j in range(i + 1):
                    out[i][j] = out[i][j] + row[i] * armature * row[j]
    return symmetric(out)
