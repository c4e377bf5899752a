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

from collections.abc import Iterator, Mapping, Sequence
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
    machine = _ClosedMachine(tracer)
    free, kept, fixed = machine.free, machine.kept, machine.fixed
    values = machine.accelerations()
    following = _Following(tracer, machine, values, seeds)
    loads = machine.loads(values)
    rows = jacobian(machine.residual(), seeds)
    flat = iter(machine.placed([x for row in rows for x in row.values()], values, loads))
    rows = [{d: next(flat) for d in row} for row in rows]
    moved = jacobian(machine.own, seeds)

    def solve(column: Sequence[Number]) -> list[Number]:
        force = {v: x for v, x in zip(free, column, strict=False) if not is_zero(x)}
        right: list[Number] = [0.0] * len(machine.constraints)
        for r, x in zip(kept, column[len(free):], strict=False):
            right[r] = x
        found = machine.solved(force, right)
        rest = iter(column[len(free) + len(kept):])
        for v, x in zip(fixed, rest, strict=False):
            found[v] = x
        return following.added(found, rest)

    return Solved(following.values, [*rows, *(moved[v] for v in fixed), *following.rows], solve)


class _Following:
    """Accelerations of loop joints, which follow from those of the links: (3) of `lowering.loop_joints`."""

    def __init__(self, tracer: Tracer, machine: _ClosedMachine, values: Sequence[Number], seeds: Seeds) -> None:
        tree, graph = tracer.tree, tracer.graph
        self.places = [v for v, own in enumerate(tree.loop_speeds()) if own]
        whole = tracer(SHARED["joint_accelerations"]) if self.places else []
        own = [whole[v] for v in self.places]
        by_udot = jacobian(own, {graph.leaf(("udot", v)): {v: 1.0} for v in (*machine.free, *machine.fixed)})
        parts = [own, [x for row in by_udot for x in row.values()]]
        rows = jacobian(own, seeds)
        placed, factors, flat = (iter(machine.placed(part, values, {})) for part in (
            *parts, [x for row in rows for x in row.values()]))
        self.values = list(values)
        for v, x in zip(self.places, placed, strict=True):
            self.values[v] = x
        self.factors = [{v: next(factors) for v in row} for row in by_udot]
        self.rows = [{d: next(flat) for d in row} for row in rows]  #: at accelerations of links that do not change

    def added(self, found: list[Number], own: Iterator[Number]) -> list[Number]:
        """Changes of all accelerations, from those of links and what loop joints change by themselves."""
        for v, row, total in zip(self.places, self.factors, own, strict=True):
            for w, x in row.items():
                if not is_zero(found[w]):
                    total = total + x * found[w]
            found[v] = total
        return found


class _ClosedMachine:
    """The equations (1) of a machine, and the plan's way to solve them."""

    def __init__(self, tracer: Tracer) -> None:
        tree, self.graph = tracer.tree, tracer.graph
        machine = require_direct(tracer.machine(("q", "u", "udot", "tau")))
        self.nu = tree.nu
        self.constraints = every_constraint(machine)
        self.solver = LoadSolver(machine, self.constraints)
        self.kept = [r for rows, _ in self.solver.blocks for r in rows]  #: the constraints that count
        self.fixed = [v for v, driven in enumerate(tree.prescribed_speeds()) if driven]
        self.free = tree.free_speeds()
        self.needed = needed_forces(machine)  #: M u̇ + h, laws of joints taken off
        self.drives = tracer(SHARED["drives"]) if tree.actuators else [
            self.graph.leaf(("tau", i)) for i in range(tree.nu)]
        self.own = tracer(SHARED["prescribed"])  #: accelerations that laws of time give
        self.matrix = tracer(SHARED["mass_matrix"])
        self.factors = _reduced(self.solver, self.matrix, tree.nu)

    def accelerations(self) -> list[Number]:
        """u̇ of all speeds: (3) with the equations themselves on the right."""
        at_rest = {("udot", v): 0.0 for v in range(self.nu)}
        rest = dict(zip(self.needed, evaluate(list(self.needed.values()), lambda k: (
            at_rest[k] if k in at_rest else self.graph.leaf(k))), strict=True))
        gamma = [c.equation.gamma for c in self.constraints]
        udot = self.solved({v: self.drives[v] - rest[v] for v in self.free}, gamma)
        return [self.own[v] if v in self.fixed else udot[v] for v in range(self.nu)]

    def loads(self, udot: Sequence[Number]) -> Mapping[int, Number]:
        """λ of the constraints that count."""
        left = self.placed([self.needed[v] - self.drives[v] for v in self.free], udot, {})
        return self.solver.projected(dict(zip(self.free, left, strict=True))).loads

    def residual(self) -> list[Number]:
        """τ + Jᵀλ - M u̇ - h of the free speeds, then γ - J u̇, u̇ and λ being leaves of the graph: what (2) varies."""
        out = []
        for v in self.free:
            total = self.drives[v] - self.needed[v]
            for r in self.kept:
                x = self.constraints[r].free.get(v)
                if x is not None:
                    total = total + x * self.graph.leaf(("load", r))
            out.append(total)
        for r in self.kept:
            total = self.constraints[r].equation.gamma
            for v, x in self.constraints[r].free.items():
                total = total - x * self.graph.leaf(("udot", v))
            out.append(total)
        return out

    def placed(self, entries: Sequence[Number], udot: Sequence[Number], loads: Mapping[int, Number]) -> list[Number]:
        """Entries with u̇ and λ at these values."""
        at = {("udot", v): x for v, x in enumerate(udot)}
        return evaluate(entries, lambda k: at[k] if k in at else loads[k[1]] if k[0] == "load" else self.graph.leaf(k))

    def solved(self, force: Mapping[int, Number], right: Sequence[Number]) -> list[Number]:
        """(3)"""
        a = self.solver.motion({}, right)
        left = dict(force)
        for v, x in _times(self.matrix, a, self.nu).items():
            left[v] = left[v] - x if v in left else -x
        rates = self.factors.solve({v: x for v, x in self.solver.projected(left).force.items() if not is_zero(x)})
        moved = self.solver.motion(rates, [0.0] * len(right))
        return [x + y for x, y in zip(a, moved, strict=True)]


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
