"""Loads of constraints, by the pivots of a plan: forces at independent speeds that do the same, and the multipliers.

Section 8 of docs/explain/elimination.md. The whole machine is looked at as one group that states every constraint.

| docs/explain/elimination.md | here |
|---|---|
| J, gamma, phi, phidot (8)-(10) | ``Statement.free``, ``driven`` (columns of prescribed speeds), ``gamma``, ... |
| K, R | ``plan.kept`` by groups, ``plan.redundant`` |
| L, U of J_KD, by groups (28) | ``TriangularRows.lower``, ``rows``, ``inverses`` |
| f, mu (28), f_E (29) | ``force``, ``Projected.loads``, ``Projected.force`` |
| C, nu (30), (31) | ``shares``, ``extra`` |

Deviations: none. Cost: O(m w) for m constraints of w speeds in small groups, and O(r m w) for r redundant ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple, TypeVar

from bellcrank.formulations.common.shares import largest
from bellcrank.formulations.common.small_systems import guarded_inverse, solve_positive
from bellcrank.formulations.elimination.group_rows import ConstraintEquation, group_constraints
from bellcrank.loops.tolerances import MOVED, OPEN
from bellcrank.lowering.group import whole_machine
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.functions import maximum, select_less
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.schedule.sweeps import Sweeps

__all__ = ["LoadSolver", "Projected", "Statement", "TriangularRows", "allowed_motions", "every_constraint", "factored",
           "one_if_balanced", "shared_loads", "smallest_loads", "unload"]

Key = TypeVar("Key")
#: a number, and what is an ordinary change of the coordinate that it works on
Measured = tuple[Number, float]

#: sigma of (20)
_SHRUNK = 0.01
_NOT_A_NUMBER = float("nan")


class Statement(NamedTuple):
    """One constraint: free . udot = gamma, its value and rate, and what a unit of its multiplier does."""

    free: dict[int, Number]  #: by free speed
    driven: dict[int, Number]  #: by prescribed speed
    equation: ConstraintEquation


class Projected(NamedTuple):
    """Forces at the independent speeds that do the work of others, (29), and the loads of constraints, (28)."""

    force: dict[int, Number]
    loads: dict[int, Number]


class TriangularRows(NamedTuple):
    """The constraints of one group, J_KD = L U."""

    dependent: tuple[int, ...]
    rows: list[dict[int, Number]]  #: U, by dependent speed
    lower: dict[tuple[int, int], Number]  #: L below its ones
    inverses: list[Number]  #: of the pivots


def every_constraint(machine: LoopedDirect) -> list[Statement]:
    """All constraints, redundant ones too, in order."""
    fixed = machine.tree.prescribed_speeds()
    out = []
    for equation in group_constraints(whole_machine(machine)):
        free: dict[int, Number] = {}
        driven: dict[int, Number] = {}
        for v, x in equation.factors:
            if not is_zero(x):
                part = driven if fixed[v] else free
                part[v] = part[v] + x if v in part else x
        out.append(Statement(free, driven, equation))
    return out


class LoadSolver:
    """Solves for loads of the constraints that count, with the pivots of a plan and the same watch over them."""

    def __init__(self, machine: LoopedDirect, constraints: Sequence[Statement]) -> None:
        plan = machine.tree.plan
        self.constraints, self.independent, self.nu = constraints, plan.independent, machine.tree.nu
        self.blocks = [(group.rows, factored(group.dependent, group.sizes, [constraints[r].free for r in group.rows]))
                       for group in plan.groups if group.rows]

    def motion(self, independent: Mapping[int, Number], right: Sequence[Number]) -> list[Number]:
        """Accelerations of all free speeds with J udot = right, one number for every constraint, from those of the
        independent ones, zero if not given; group by group, as (21)."""
        known = dict.fromkeys(self.independent, 0.0) | dict(independent)
        for rows, block in self.blocks:  # inner groups first: outer ones carry their speeds
            rest = []
            for r in rows:
                value = right[r]
                for v, x in self.constraints[r].free.items():
                    if v not in block.dependent and not is_zero(known.get(v, 0.0)):
                        value = value - x * known[v]
                rest.append(value)
            known |= determined(block, rest)
        return [known.get(v, 0.0) for v in range(self.nu)]

    def projected(self, force: Mapping[int, Number]) -> Projected:
        """(28), (29) for forces by speed: what they amount to at the independent speeds."""
        left = dict(force)
        loads: dict[int, Number] = {}
        for rows, block in reversed(self.blocks):  # outer groups load the speeds they carry
            own = unload(block, [self.constraints[r].free for r in rows], left)
            loads |= dict(zip(rows, own, strict=True))
        return Projected({v: left.get(v, 0.0) for v in self.independent}, loads)


def factored(dependent: tuple[int, ...], sizes: Sequence[float], rows: Sequence[Mapping[int, Number]]
             ) -> TriangularRows:
    """(19), (20) of one group, kept as J_KD = L U."""
    work = [{v: row[v] for v in dependent if v in row} for row in rows]
    lower: dict[tuple[int, int], Number] = {}
    inverses: list[Number] = []
    for i, (v, size) in enumerate(zip(dependent, sizes, strict=True)):
        inverses.append(guarded_inverse(work[i][v], _SHRUNK * size))  # (20)
        for j in range(i + 1, len(work)):
            if v in work[j]:
                lower[j, i] = work[j].pop(v) * inverses[i]  # (19): l
                for w, x in work[i].items():
                    if w != v:
                        _less(work[j], w, lower[j, i] * x)  # (19): J_j
    return TriangularRows(dependent, work, lower, inverses)


def unload(block: TriangularRows, rows: Sequence[Mapping[int, Number]], force: dict[int, Number]) -> list[Number]:
    """Loads mu of one group's constraints that take the forces off its dependent speeds, (28); the others change with
    them, in place, (29)."""
    loads = _transposed(block, force)
    for row, load in zip(rows, loads, strict=True):
        for v, x in row.items():
            if not is_zero(load) and v not in block.dependent:
                _less(force, v, x * load)  # (29)
    return loads


def determined(block: TriangularRows, right: Sequence[Number]) -> dict[int, Number]:
    """J_KD x = right for the dependent speeds of one group, by (19) and back substitution as in (21)."""
    y: list[Number] = []
    for i, value in enumerate(right):
        for j in range(i):
            if (i, j) in block.lower and not is_zero(y[j]):
                value = value - block.lower[i, j] * y[j]
        y.append(value)
    out: dict[int, Number] = {}
    for i in reversed(range(len(y))):
        total = y[i]
        for w, x in block.rows[i].items():
            if w != block.dependent[i] and not is_zero(out[w]):
                total = total - x * out[w]
        out[block.dependent[i]] = total if is_zero(total) else total * block.inverses[i]
    return out


def _transposed(block: TriangularRows, force: Mapping[int, Number]) -> list[Number]:
    """(28) of one group: U^T y = f_D, then L^T mu = y."""
    n = len(block.rows)
    y: list[Number] = []
    for i, v in enumerate(block.dependent):
        total = force.get(v, 0.0)
        for k in range(i):
            if v in block.rows[k] and not is_zero(y[k]):
                total = total - block.rows[k][v] * y[k]
        y.append(total if is_zero(total) else total * block.inverses[i])
    for i in reversed(range(n)):
        for j in range(i + 1, n):
            if (j, i) in block.lower and not is_zero(y[j]):
                y[i] = y[i] - block.lower[j, i] * y[j]
    return y


def smallest_loads(machine: LoopedDirect, solver: LoadSolver, loads: Mapping[int, Number]) -> list[Number]:
    """The multipliers of all constraints, the smallest that do the same as `loads` of those that count: (30), (31)."""
    plan, constraints = machine.tree.plan, solver.constraints
    shares = {r: solver.projected(constraints[r].free).loads for r in plan.redundant}  # (30): C
    found = shared_loads(loads, shares, {r: c.equation.size for r, c in enumerate(constraints)})  # (31)
    return [found.get(r, 0.0) for r in range(len(constraints))]


def shared_loads(loads: Mapping[Key, Number], shares: Mapping[Key, Mapping[Key, Number]], sizes: Mapping[Key, float]
                 ) -> dict[Key, Number]:
    """(31): loads mu of the constraints that count, shared with redundant ones, whose rows C are `shares`: the smallest
    of all, each times the size of its constraint, so that forces and moments are alike."""
    out = dict(loads)
    every = {r: {k: x for k, x in c.items() if not is_zero(x)} for r, c in shares.items()}
    out |= dict.fromkeys(every, 0.0)
    some = [r for r, c in every.items() if c]
    alike = {r: {k: _times(x, sizes[k] / sizes[r]) for k, x in every[r].items()} for r in some}
    matrix = [[_product(alike[a], alike[b]) + (1.0 if a == b else 0.0) for b in some[:i + 1]]
              for i, a in enumerate(some)]
    whole = {k: _times(x, sizes[k]) for k, x in loads.items()}
    extra = solve_positive(matrix, [_product(alike[r], whole) for r in some])  # (31): nu
    for r, found in zip(some, extra, strict=True):
        out[r] = nu = _times(found, 1.0 / sizes[r])
        for k, x in every[r].items():
            out[k] = out[k] - x * nu  # (31): lambda_K
    return out


def one_if_balanced(left: Iterable[Measured], whole: Iterable[Measured], least: float) -> Number:
    """1 if what is left of forces, or of entries of a row, is nothing beside all of them, or beside `least`; else not a
    number. Each comes with the size of its speed's coordinate."""
    rest, size = (largest(_times(x, own) for x, own in some) for some in (left, whole))
    return 1.0 if is_zero(rest) else select_less(rest, (size + least) * OPEN, 1.0, _NOT_A_NUMBER)


def _times(x: Number, factor: float) -> Number:
    return x if factor == 1.0 else x * factor


def _product(a: Mapping[Key, Number], b: Mapping[Key, Number]) -> Number:
    total: Number = 0.0
    for k, x in a.items():
        if k in b:
            total = total + x * b[k]
    return total


def _less(into: dict[int, Number], key: int, value: Number) -> None:
    into[key] = into[key] - value if key in into else -value


def allowed_motions(tree: Sweeps) -> tuple[Number, ...]:
    """N, row by row, with udot = N vdot + d for the accelerations vdot of the independent speeds, and d: (21) of all
    groups. Not a number where a pivot fails, (20), or where N opens constraints that should be redundant."""
    machine = require_direct(tree)
    constraints = every_constraint(machine)
    solver = LoadSolver(machine, constraints)
    still: list[Number] = [0.0] * len(constraints)
    columns = [machine.with_loop_joints("speeds", solver.motion({v: 1.0}, still)) for v in solver.independent]
    drift = machine.with_loop_joints("accelerations", solver.motion({}, [c.equation.gamma for c in constraints]))
    given = machine.joint_vector([None, *(view.prescribed_udot for view in machine.views[1:])])
    sizes = machine.tree.speed_sizes
    motions = [(column, float(sizes[v])) for v, column in zip(solver.independent, columns, strict=True)]
    closed = _one_if_allowed([constraints[r] for r in machine.tree.plan.redundant], motions)
    return (*(x for row in zip(*columns, strict=True) for x in row),
            *((a + b) * closed for a, b in zip(drift, given, strict=True)))


def _one_if_allowed(rows: Sequence[Statement], columns: Sequence[tuple[Sequence[Number], float]]) -> Number:
    """1 if motions change no constraint of these rows by more than `MOVED` of what its entries make of them."""
    worst: Number = 0.0
    for row in rows:
        for column, unit in columns:
            least = row.equation.size / unit  # of what ordinary motions make of it
            parts = [x * column[v] for v, x in row.free.items() if not is_zero(column[v])]
            total, size = sum(parts, 0.0), sum((abs(x) for x in parts), least)
            worst = maximum(worst, abs(total) / size) if parts else worst
    return 1.0 if is_zero(worst) else select_less(worst, MOVED, 1.0, _NOT_A_NUMBER)
