"""Forward dynamics of a closed machine, differentiated through the equations that determine it.

With the multipliers λ of the constraints that count,

    M u̇ + h - Jᵀλ = τ,    J u̇ = γ    (1)

and along any direction, with u̇ and λ at their values on the right,

    M δu̇ - Jᵀ δλ = -δ(M u̇ + h - Jᵀλ - τ) = r,    J δu̇ = -δ(J u̇ - γ) = s    (2)

which is solved as the dynamics are, by the plan: a with J a = s, and zero at the independent speeds; then

    Nᵀ M N δv̇ = Nᵀ (r - M a),    δu̇ = a + N δv̇    (3)

N is never formed for the right hand sides: `motion` and `projected` apply it and its transpose group by group, (21),
(28) and (29) of docs/explain/elimination.md. The factors of Nᵀ M N are made once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.derivatives.directions import Seeds, Solved
from bellcrank.derivatives.through_inverse import InertiaFactors
from bellcrank.formulations import SHARED
from bellcrank.formulations.elimination.closed_inverse import needed_forces
from bellcrank.formulations.elimination.constraint_loads import LoadSolver, every_constraint
from bellcrank.lowering.function import Tracer
from bellcrank.lowering.looped import require_direct
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, is_zero

__all__ = ["closed_slopes", "closed_solved"]


def closed_slopes(tracer: Tracer, seeds: Seeds) -> tuple[list[Number], list[dict[Any, Number]]]:
    """Accelerations of all speeds, and how they change along the directions of `seeds`."""
    values, rows, solve = closed_solved(tracer, seeds)
    out: list[dict[Any, Number]] = [{} for _ in values]
    for d in dict.fromkeys(d for row in rows for d in row):
        for v, x in enumerate(solve([row.get(d, 0.0) for row in rows])):
            if not is_zero(x):
                out[v][d] = x
    return values, out


def closed_solved(tracer: Tracer, seeds: Seeds) -> Solved:
    """The same, one direction after the other."""
    tree, graph = tracer.tree, tracer.graph
    machine = require_direct(tracer.machine(("q", "u", "udot", "tau")))
    constraints = every_constraint(machine)
    solver = LoadSolver(machine, constraints)
    kept = [r for rows, _ in solver.blocks for r in rows]
    fixed = [v for v, driven in enumerate(tree.prescribed_speeds()) if driven]
    free = [v for v in range(tree.nu) if v not in fixed]
    needed = needed_forces(machine)  # M u̇ + h, laws of joints taken off
    drives = tracer(SHARED["drives"]) if tree.actuators else [graph.leaf(("tau", i)) for i in range(tree.nu)]
    own = tracer(SHARED["prescribed"])
    matrix = tracer(SHARED["mass_matrix"])
    factors = _reduced(solver, matrix, tree.nu)

    # values: (3) with the equations themselves on the right
    at_rest = {("udot", v): 0.0 for v in range(tree.nu)}
    rest = dict(zip(needed, evaluate(list(needed.values()), lambda k: at_rest[k] if k in at_rest else graph.leaf(k)),
                    strict=True))
    gamma = [c.equation.gamma for c in constraints]
    zero = [0.0] * len(constraints)
    udot = _solved(solver, factors, matrix, {v: drives[v] - rest[v] for v in free}, gamma, free)
    values = [own[v] if v in fixed else udot[v] for v in range(tree.nu)]
    at = {("udot", v): values[v] for v in range(tree.nu)}

    def placed(entries: Sequence[Number], loads: Mapping[int, Number]) -> list[Number]:
        return evaluate(entries, lambda k: at[k] if k in at else loads[k[1]] if k[0] == "load" else graph.leaf(k))

    left = placed([needed[v] - drives[v] for v in free], {})
    loads = solver.projected(dict(zip(free, left, strict=True))).loads

    # (2)
    residual = []
    for v in free:
        total = drives[v] - needed[v]
        for r in kept:
            x = constraints[r].free.get(v)
            if x is not None:
                total = total + x * graph.leaf(("load", r))
        residual.append(total)
    for r in kept:
        total = constraints[r].equation.gamma
        for v, x in constraints[r].free.items():
            total = total - x * graph.leaf(("udot", v))
        residual.append(total)
    rows = jacobian(residual, seeds)
    flat = iter(placed([x for row in rows for x in row.values()], loads))
    rows = [{d: next(flat) for d in row} for row in rows]
    moved = jacobian(own, seeds)

    def solve(column: Sequence[Number]) -> list[Number]:
        force = {v: x for v, x in zip(free, column, strict=False) if not is_zero(x)}
        right = list(zero)
        for r, x in zip(kept, column[len(free):], strict=False):
            right[r] = x
        found = _solved(solver, factors, matrix, force, right, free)
        for v, x in zip(fixed, column[len(free) + len(kept):], strict=True):
            found[v] = x
        return found

    return Solved(values, [*rows, *(moved[v] for v in fixed)], solve)


def _reduced(solver: LoadSolver, matrix: Sequence[Number], nu: int) -> InertiaFactors:
    """The factors of Nᵀ M N."""
    independent = solver.independent
    reduced: list[Number] = [0.0] * nu * nu
    for v in independent:
        column = solver.motion({v: 1.0}, [0.0] * len(solver.constraints))
        projected = solver.projected(_times(matrix, column, nu)).force
        for w in independent:
            reduced[w * nu + v] = projected[w]
    return InertiaFactors(reduced, nu, independent)


def _times(matrix: Sequence[Number], column: Sequence[Number], nu: int) -> dict[int, Number]:
    """A matrix times a column, zeros left out."""
    out: dict[int, Number] = {}
    for j, x in enumerate(column):
        if is_zero(x):
            continue
        for i in range(nu):
            a = matrix[i * nu + j]
            if not is_zero(a):
                out[i] = out[i] + a * x if i in out else a * x
    return out


def _solved(solver: LoadSolver, factors: InertiaFactors, matrix: Sequence[Number], force: Mapping[int, Number],
            right: Sequence[Number], free: Sequence[int]) -> list[Number]:
    """(3)"""
    nu = solver.nu
    a = solver.motion({}, right)
    left = dict(force)
    for v, x in _times(matrix, a, nu).items():
        left[v] = left[v] - x if v in left else -x
    rates = factors.solve({v: x for v, x in solver.projected(left).force.items() if not is_zero(x)})
    moved = solver.motion(rates, [0.0] * len(right))
    return [x + y for x, y in zip(a, moved, strict=True)]
