"""Divide and conquer: pieces of the machine are joined two by two, so that the longest chain of steps is O(log n).

R. Featherstone, "A Divide-and-Conquer Articulated-Body Algorithm for Parallel O(log(n)) Calculation of Rigid-Body
Dynamics", parts 1 and 2, The International Journal of Robotics Research 18, 1999, pages 867-875 and 876-892. The
Hamiltonian algorithm of the same kind is K. Chadaj, P. Malczyk and J. Fraczek, "A Parallel Hamiltonian Formulation for
Forward Dynamics of Closed-Loop Multibody Systems", Multibody System Dynamics 39, 2017.

Featherstone describes a piece by the accelerations of its handles as functions of the forces on them. That asks for
the inverse inertia of every body, which a thin rod does not have. Here a piece is described, as a link is in the
articulated-body algorithm, by the force that its inboard handle needs for a given acceleration:

    F   = P a + z - sum_c psi_c f_c                                                                         (1)
    v_c = psi_c . a + beta_c + sum_d Lambda_cd f_d                                                          (2)

a is the acceleration of the link inboard of the piece, F what that link must exert; a *port* c has a force f_c and an
acceleration v_c. Six ports are a link to which other pieces will be attached, one port is one constraint of a loop.

| Featherstone | here |
|---|---|
| handle | inboard link; ports ``(link, 0..5)`` |
| Phi_1, Phi_2, Phi_12, b_1, b_2 | P, Lambda, psi, z, beta: (1), (2), a mixed form of the same relations |
| assembly tree | `order.Division` |
| V, W of a joint | `hinge`: the joint's speeds are eliminated as in the articulated-body algorithm |
| connection of two pieces | `attach`, (4)-(10) |
| back substitution | ``Subassembly.motion``: (4) and (3), from the ground to single links |

Steps. A link alone has P = I, z = its velocity terms less what acts on it, psi = 1 (`bare`). A joint is passed by

    u = D^-1 (tau - s . z + sum_c r_c f_c) - G . a,   G = P s D^-1,   D = s . P s + J,   r_c = s . psi_c + k_c  (3)

with s its column, J its rotor, k_c the factor with which a coupler c acts on it; (3) is put into (1) and (2)
(`hinge`). An upper piece U is attached to link y of a lower piece, whose six ports are psi_y, beta_y, Lambda_yy:

    a_y = K (psi_y a + beta_y - Lambda_yy z_U + sum_c (Lambda_yc + Lambda_yy psi_Uc) f_c)                   (4)
    K   = (1 + Lambda_yy P_U)^-1                                                                            (5)
        = A a + a_0 + sum_c A_c f_c
    h   = P_U a_0 + z_U,   g_c = P_U A_c - psi_Uc                                                           (6)
    P   <- P + psi_y^T P_U A                                                                                (7)
    z   <- z + psi_y^T h                                                                                    (8)
    psi_c <- psi_c - psi_y^T g_c                                                                            (9)
    beta_c <- beta_c + beta_Uc - Lambda_cy h + psi_Uc . a_0,
    Lambda_cd <- Lambda_cd + Lambda_Ucd - Lambda_cy g_d + psi_Uc . A_d                                      (10)

Declared deviations
- The mixed form above. 1 + Lambda P is never singular, since neither Lambda nor P is indefinite; it is solved with row
  pivoting (`solve_general`), in compiled code by selections.
- Sets of `order.BLOCK` links are not divided any further: there the steps are those of the articulated-body algorithm.
- A joint that the inertia of its own link alone does not resist (a rod that rolls about its length) is passed after all
  that is outboard of its link has been attached: such links add a step to the depth each.
- Loops: every constraint is a port (couplers included, where Featherstone closes loops by joints between two handles);
  what remains when the machine is whole is Lambda of the constraints, solved as in the other multiplier methods.
- Gravity is an upward acceleration of the ground.

Cost: O(n) operations in O(log n) steps one after another for chains and for trees with a bounded number of children,
three to four times those of the articulated-body algorithm; with m constraints O(n m^2 + m^3).
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.formulations.common.link_kinematics import outward_axes
from bellcrank.formulations.common.multipliers import UnitLoad, gamma_with_gravity, unit_loads
from bellcrank.formulations.common.row_loads import classical, row_values
from bellcrank.formulations.common.small_systems import solve_multipliers
from bellcrank.formulations.divide.order import Division, divisions
from bellcrank.formulations.divide.pieces import Subassembly, attach, bare, hinge
from bellcrank.formulations.operator.tree_recursion import LinkState, outward_states
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopedDirect, LoopRow, require_direct
from bellcrank.scalar.graph import Number, is_constant
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Motion, Vector

__all__ = ["BIBTEX", "WHOLE", "constrained_dynamics", "forward_dynamics"]

BIBTEX = """@article{featherstone1999divide,
  author  = {Featherstone, R.},
  title   = {A Divide-and-Conquer Articulated-Body Algorithm for Parallel {O}(log(n)) Calculation of Rigid-Body
             Dynamics. {Part} 1: Basic Algorithm},
  journal = {The International Journal of Robotics Research},
  volume  = {18},
  number  = {9},
  pages   = {867--875},
  year    = {1999}
}"""

#: functions that need the machine as a whole
WHOLE = ("forward_dynamics",)


def forward_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations: pieces are joined two by two, then taken apart from the ground on."""
    return _joined(require_direct(tree), [])


def constrained_dynamics(tree: Sweeps) -> Field:
    """Joint accelerations of a machine with loops: its constraints are the ports of the whole."""
    machine = require_direct(tree)
    return _joined(machine, machine.loop_rows())


def _joined(tree: LoopedDirect, rows: Sequence[LoopRow]) -> Field:
    states = tree.outward(outward_states, root=LinkState(Motion.zero(), Motion.zero()))  # free accelerations are zero
    given = tree.outward(outward_given, states, outward_axes(tree), root=Motion.zero())
    wholes = assembled(tree, given, unit_loads(tree, rows))
    upward = Motion(Vector.zero(), -tree.world.gravity)
    multipliers = _multipliers(tree, rows, states, wholes, upward) if rows else []
    udot: list[tuple[Number, ...] | None] = [None] * len(tree.parent)
    for whole in wholes:
        for link, values in whole.motion(upward, {(0, c): f for c, f in enumerate(multipliers)}):  # (3), (4)
            udot[link] = values
    return udot


Given = tuple[Motion, Force]


def outward_given(link: Link, velocity: Motion, state: LinkState, axes: General | None) -> tuple[Motion, Given]:
    """What the state alone gives: the acceleration relative to the parent, and the force needed at rest otherwise."""
    for t in link.transforms:
        velocity = t.velocity(velocity)
    drift = velocity.cross(link.rate)
    for column, change, u, known in zip(link.columns, link.column_rates(link.u), link.u, link.prescribed_udot,
                                        strict=True):
        drift = drift + change * u + column * known
    force = state.velocity.cross_force(link.inertia @ state.velocity)
    if axes is not None:
        force = force - link.external(axes)
    return state.velocity, (drift, force)


def assembled(machine: LoopedDirect, given: Field, units: Field) -> list[Subassembly]:
    """One piece for every link on the ground: all that moves with it."""
    def piece(division: Division) -> Subassembly:
        if division.lower is not None and division.upper is not None:
            return attach(piece(division.lower), division.link, piece(division.upper),
                          keep=division.link in division.outside)
        link = division.link
        loads: tuple[UnitLoad, ...] = units[link]
        left = len(division.first) + (link in division.outside)  # pieces still to be attached here
        out = bare(link, machine.views[link], given[link][1], loads, left > 0)
        for outboard in division.first:
            left -= 1
            out = attach(out, link, piece(outboard), keep=left > 0)
        return hinge(out, machine.views[link], link, given[link][0], loads)

    late = [link > 0 and _unresisted(machine.views[link]) for link in range(len(machine.parent))]
    return [piece(division) for division in divisions(machine.parent, late)]


def _unresisted(link: Link) -> bool:
    """Whether the inertia of the link alone does not resist its joint in every state, known before any is."""
    inertia = link.inertia
    trace = inertia.second.xx + inertia.second.yy + inertia.second.zz
    mass = inertia.articulated()
    for column, armature, prescribed in zip(link.columns, link.armature, link.mask, strict=True):
        if prescribed:
            continue
        felt = mass @ column
        d = column.dot(felt) + armature
        scale = column.angular.dot(column.angular) * trace + column.linear.dot(column.linear) * inertia.mass + armature
        if not (is_constant(d) and is_constant(scale)):
            continue
        if d <= _RESISTED * scale:
            return True
        mass = mass.minus(felt, felt * (1.0 / d))
    return False


#: the part of a link's inertia below which a joint counts as not resisted by it
_RESISTED = 1e-9


def _multipliers(machine: LoopedDirect, rows: Sequence[LoopRow], states: Field, wholes: Sequence[Subassembly],
                 upward: Motion) -> list[Number]:
    """The loads of all constraints from (2) for the whole machine."""
    swing = [None, *(classical(state.velocity, Motion.zero()) for state in states[1:])]
    still = [(0.0,) * width for width in machine.widths]
    right = [gamma_with_gravity(machine, row) - known for row, known in
             zip(rows, row_values(rows, swing, still), strict=True)]
    matrix: list[list[Number]] = [[0.0] * (c + 1) for c in range(len(rows))]
    for whole in wholes:
        for (_, c), port in whole.ports.items():
            right[c] = right[c] - port.value(upward)
            for d in range(c + 1):
                matrix[c][d] = matrix[c][d] + port.coupling.get((0, d), 0.0)
    return solve_multipliers(matrix, right, machine.floors)
