"""Closed chains with a small secondary system: the alternative step (D), which solves for betadot_S before f.

G. Rodriguez, A. Jain and K. Kreutz (see `operator` for the citation), section 3, the formulas after (3.11). The primary
system (arms) and the secondary one (what they hold) are trees that share only the ground. Then

    [M_S + J_S* A_S* X A_S J_S] betadot_S = That_S - J_S* A_S* X (A_P alphatilde_P^f - U),    X = (A_P Lambda_P A_P*)^-1
    f = X [A_P alphatilde_P^f + A_S J_S betadot_S - U]

and A_P Lambda_P A_P* has one block for each arm where arms meet in what they hold only. The paper calls that the usual
case in robotics: the step is then linear in the number of closures, for a secondary system of bounded size.

| paper | here |
|---|---|
| P, S | trees on the ground: ``plan.secondary`` names the links of S, see `choose_secondary` |
| A_P, A_S | ``_of(rows, ...)``: the rows' ends in either system |
| A_P Lambda_P A_P* | ``stiff``, its blocks by `blocks_of` |
| A_S J_S, M_S, That_S | ``turned``, ``mass``, ``force`` |
| X A_S J_S, X (A_P alphatilde_P^f - U) | ``soft``, ``rest`` |

Declared deviations
- Which trees are secondary is decided with the plan for the loops, at a general position, by counting operations; where
  none pays, or A_P Lambda_P A_P* could not be inverted with most digits, step (D) is (3.11).
- Pivots of A_P Lambda_P A_P* are watched: a state in which an arm cannot move as its grasp would need (a stretched arm)
  gets a plan without a secondary system.
- Steps (A)-(C) and (E) of the secondary system are left out: its accelerations are betadot_S.

Cost: O(n) for (A), (B), (E), (F); O(m_b^3 + m_b^2 nu_S) for every block of (D), and O(nu_S^3).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import bellcrank.formulations.operator.closed_chains as closed_chains
from bellcrank.formulations.common.row_loads import row_loads, row_values
from bellcrank.formulations.common.small_systems import guarded_inverse, solve_positive, solve_positive_columns
from bellcrank.formulations.dense import mass_matrix
from bellcrank.formulations.operator.closed_chains import LinkResponse, bias_free, respond, row_admittance
from bellcrank.formulations.operator.flexible_chains import constrained_flexible_dynamics
from bellcrank.formulations.operator.tree_recursion import inverse_dynamics, inward_articulation
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopedDirect, LoopRow, require_direct
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Motion

__all__ = ["constrained_dynamics"]

#: a pivot of A_P Lambda_P A_P* this small, relative to its diagonal, costs too many digits
_SMALL = 1e-9

#: a speed: link and number
Speed = tuple[int, int]


def constrained_dynamics(tree: Sweeps) -> Field:
    """betadot with the secondary system of the plan solved first, or as `closed_chains` does if there is none."""
    machine = require_direct(tree)
    second = set(machine.tree.plan.secondary)
    if tree.world.flexible:
        return constrained_flexible_dynamics(tree)
    if not second:
        return closed_chains.constrained_dynamics(tree)
    rows = machine.loop_rows()
    ours, theirs = _of(rows, second, False), _of(rows, second, True)  # A_P, A_S
    own, _ = tree.inward(inward_articulation, zero=ArticulatedInertia.zero())  # (A.1)
    given = tree.outward(closed_chains.bias_free_forces, inverse_dynamics(tree), root=())  # (2.12)
    free = respond(tree, own, given)  # (A): (3.7), (A.2)
    measured = row_values(ours, closed_chains.part(free, "alpha"), closed_chains.part(free, "betadot"))  # (B): (3.8)
    right = [a - u for a, u in zip(measured, bias_free(tree, rows), strict=True)]  # A_P alphatilde_P^f - U
    stiff = row_admittance(machine, own, ours)  # (C): A_P Lambda_P A_P*
    speeds = [(k, i) for k in sorted(second) for i, driven in enumerate(machine.views[k].mask) if not driven]
    turned = [_columns(tree, theirs, speed) for speed in speeds]  # (A_S J_S)*
    force = [given[k].joint[i] for k, i in speeds]  # That_S
    f, betadot = _step_d(stiff, right, turned, _mass(machine, speeds), force, machine.floors)
    extra = respond(tree, own, row_loads(machine, ours, [-x for x in f]))  # (E): (3.12), (A.6)
    solved = _by_link(machine, dict(zip(speeds, betadot, strict=True)), second)
    return tree.outward(_sum, free, extra, solved, root=())  # (F)


def _step_d(stiff: Sequence[Sequence[Number]], right: Sequence[Number], turned: Sequence[Sequence[Number]],
            mass: Sequence[Sequence[Number]], force: Sequence[Number], floors: Sequence[float]
            ) -> tuple[list[Number], list[Number]]:
    """f and betadot_S by the formulas above, block by block."""
    n = len(force)
    rest: list[Number] = [0.0] * len(right)
    soft: list[list[Number]] = [[0.0] * len(right) for _ in turned]
    for block in blocks_of(stiff):
        known = iter([floors[r] for r in block])
        found = solve_positive_columns([[stiff[a][b] for b in block] for a in block],
                                       [[column[r] for r in block] for column in (right, *turned)],
                                       lambda pivot, diagonal, known=known: guarded_inverse(  # type: ignore[misc]
                                           pivot, diagonal * _SMALL + next(known)))
        for out, values in zip((rest, *soft), found, strict=True):
            for r, value in zip(block, values, strict=True):
                out[r] = value
    felt = [[mass[a][b] + _dot(turned[max(a, b)], soft[min(a, b)]) for b in range(n)] for a in range(n)]
    betadot = solve_positive(felt, [t - _dot(column, rest) for t, column in zip(force, turned, strict=True)])
    f = [x + _dot([column[r] for column in soft], betadot) for r, x in enumerate(rest)]
    return f, betadot


def blocks_of(matrix: Sequence[Sequence[Number]]) -> list[list[int]]:
    """Rows of a symmetric matrix that entries other than the number zero connect."""
    blocks: list[list[int]] = []
    for i in range(len(matrix)):
        joined = [b for b in blocks if any(not is_zero(matrix[i][j]) for j in b)]
        blocks = [b for b in blocks if b not in joined] + [sorted([*(j for b in joined for j in b), i])]
    return sorted(blocks)


def _dot(a: Sequence[Number], b: Sequence[Number]) -> Number:
    total: Number = 0.0
    for x, y in zip(a, b, strict=True):
        if not (is_zero(x) or is_zero(y)):
            total = total + x * y
    return total


# -- the two systems ------------------------------------------------------------------------------------------------
def _of(rows: Sequence[LoopRow], second: Collection[int], which: bool) -> list[LoopRow]:
    """The part of rows that looks at one of the systems."""
    return [LoopRow(tuple(e for e in row.ends if (e[0] in second) == which),
                    tuple(j for j in row.joints if (j[0] in second) == which), row.gamma) for row in rows]


def _columns(tree: Sweeps, rows: Sequence[LoopRow], speed: Speed) -> list[Number]:
    """A_S J_S of one speed: what rows see of phi* H* e. Cost: O(n)."""
    machine = require_direct(tree)
    along = [None, *(tuple(1.0 if (k, i) == speed else 0.0 for i in range(machine.widths[k]))
                     for k in range(1, len(machine.parent)))]
    return row_values(rows, tree.outward(_carried, along, root=Motion.zero()), along)


def _carried(link: Link, motion: Motion, along: tuple[float, ...]) -> tuple[Motion, Motion]:
    for t in link.transforms:
        motion = t.velocity(motion)  # phi*
    for column, factor in zip(link.columns, along, strict=True):
        if factor:
            motion = motion + column  # H*
    return motion, motion


def _mass(machine: LoopedDirect, speeds: Sequence[Speed]) -> list[list[Number]]:
    """M_S: no other tree has a part in it."""
    matrix = machine.joint_matrix(mass_matrix(machine))
    places = [machine.slots[k] + i for k, i in speeds]
    return [[matrix[a][b] for b in places] for a in places]


def _by_link(machine: LoopedDirect, values: Mapping[Speed, Number], second: Collection[int]) -> Field:
    """Accelerations of the secondary system at its links, None at others."""
    return [None, *(tuple(values.get((k, i), 0.0) for i in range(machine.widths[k])) if k in second else None
                    for k in range(1, len(machine.parent)))]


def _sum(link: Link, nothing: tuple[()], free: LinkResponse, extra: LinkResponse,
         solved: tuple[Number, ...] | None) -> tuple[tuple[()], tuple[Number, ...]]:
    """betadot of either system, and what is prescribed."""
    own = solved if solved is not None else [a + b for a, b in zip(free.betadot, extra.betadot, strict=True)]
    return (), tuple(known + a for known, a in zip(link.prescribed_udot, own, strict=True))
