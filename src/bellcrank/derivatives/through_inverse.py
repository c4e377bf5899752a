"""Forward dynamics of a tree, differentiated through its inverse:

    M(q) u̇ + h(q, u) = τ        M ∂u̇/∂x = ∂τ/∂x - ∂/∂x [M u̇ + h] at fixed u̇    (1)

The bracket is inverse dynamics: its derivatives take half the work of those of forward dynamics, whatever the method,
and are then multiplied by M⁻¹. M is factored as LᵀDL, from the tips inwards, so that L has entries for pairs of a
speed and one inboard of it alone, and no others appear (R. Featherstone, "Rigid Body Dynamics Algorithms", 2008,
section 6.5). Speeds that are prescribed have accelerations of their own; the others follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from bellcrank.derivatives.directions import Seeds, Solved
from bellcrank.formulations import SHARED
from bellcrank.lowering.function import Tracer
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar, is_zero

__all__ = ["InertiaFactors", "forward_slopes", "forward_solved"]


class InertiaFactors:
    """M = LᵀDL of the free speeds, from a traced mass matrix; `order`: the speeds, inboard ones first."""

    def __init__(self, matrix: Sequence[Number], nu: int, order: Sequence[int]) -> None:
        self.order = tuple(order)
        rows = [{i: matrix[v * nu + w] for i, w in enumerate(order[:k + 1]) if not is_zero(matrix[v * nu + w])}
                for k, v in enumerate(order)]
        for k in range(len(order) - 1, -1, -1):
            row = rows[k]
            inverse = 1.0 / row.pop(k)
            for i in sorted(row, reverse=True):
                a = row[i] * inverse
                for j in [j for j in row if j <= i]:
                    rows[i][j] = rows[i].get(j, 0.0) - a * row[j]
            rows[k] = {i: x * inverse for i, x in row.items()}
            rows[k][k] = inverse
        #: by row: entries of L left of the diagonal, and 1/D on it
        self.rows = rows

    def solve(self, right: Mapping[int, Number]) -> dict[int, Number]:
        """M⁻¹ times a column {speed: entry}."""
        place = {v: k for k, v in enumerate(self.order)}
        x = self._substituted({place[v]: b for v, b in right.items()}, len(self.order))
        return {v: x[k] for k, v in enumerate(self.order) if k in x}

    def inverse(self) -> dict[int, dict[int, Number]]:
        """M⁻¹ by columns; of each pair of entries that are equal, one is computed."""
        columns: dict[int, dict[int, Number]] = {}
        for k in range(len(self.order)):
            x = self._substituted({k: 1.0}, k + 1)  # those below k are found from columns that are still to come
            for m in range(k + 1):
                if m in x:
                    columns.setdefault(self.order[k], {})[self.order[m]] = x[m]
                    columns.setdefault(self.order[m], {})[self.order[k]] = x[m]
        return columns

    def _substituted(self, right: Mapping[int, Number], n: int) -> dict[int, Number]:
        """The first n entries of x in LᵀDL x = b, where b has none beyond them."""
        x = dict(right)
        for k in range(n - 1, -1, -1):
            if k in x:
                for i, a in self.rows[k].items():
                    if i < k:
                        part = a * x[k]
                        x[i] = x[i] - part if i in x else -part
        for k in range(n):
            value = x[k] * self.rows[k][k] if k in x else 0.0
            for i, a in self.rows[k].items():
                if i < k and i in x:
                    value = value - a * x[i]
            if not is_zero(value):
                x[k] = value
        return x


class _Equations(NamedTuple):
    """(1), with the free speeds in the order of the factors."""

    order: list[int]
    values: list[Number]  #: accelerations of all speeds
    own: list[Number]  #: those of prescribed ones
    residual: list[Number]  #: τ - [M u̇ + h], u̇ an input
    factors: InertiaFactors


def _equations(tracer: Tracer) -> _Equations:
    tree, graph = tracer.tree, tracer.graph
    free = set(tree.free_speeds())
    order = [int(tree.u_start[k]) + j for k, joint in enumerate(tree.joints) if joint is not None
             for j in range(joint.nu) if int(tree.u_start[k]) + j in free]
    laws = tracer(SHARED["joint_laws"]) if tree.joint_forces else [0.0] * tree.nu
    drives = tracer(SHARED["drives"]) if tree.actuators else [graph.leaf(("tau", i)) for i in range(tree.nu)]
    own = tracer(SHARED["prescribed"])
    bias, inverse = tracer(SHARED["bias"]), tracer(SHARED["inverse_dynamics"])
    factors = InertiaFactors(tracer(SHARED["mass_matrix"]), tree.nu, order)
    udot = factors.solve({v: drives[v] + laws[v] - bias[v] for v in order})
    values = [udot.get(v, 0.0) if v in free else own[v] for v in range(tree.nu)]
    return _Equations(order, values, own, [drives[v] + laws[v] - inverse[v] for v in order], factors)


def forward_slopes(tracer: Tracer, seeds: Seeds) -> tuple[list[Number], list[dict[Any, Number]]]:
    """Accelerations of all speeds, and how they change along the directions of `seeds`. Cost: O(n depth) for each."""
    order, values, own, residual, factors = _equations(tracer)
    by_inverse = not tracer.tree.actuators and _entry_by_entry(seeds)
    rows = jacobian(residual, {leaf: rates for leaf, rates in seeds.items() if not (by_inverse and _is_force(leaf))})
    right = _columns(order, _at_accelerations(tracer, rows, values))
    out: list[dict[Any, Number]] = [{} if v in order else row for v, row in enumerate(jacobian(own, seeds))]
    for d, column in right.items():
        for v, x in factors.solve(column).items():
            out[v][d] = x
    if by_inverse:  # the derivatives by τ are M⁻¹ itself
        for v, column in factors.inverse().items():
            for w, x in column.items():
                out[w][("tau", v)] = x
    return values, out


def forward_solved(tracer: Tracer, seeds: Seeds) -> Solved:
    """The same, one direction after the other."""
    order, values, own, residual, factors = _equations(tracer)
    rows = _at_accelerations(tracer, jacobian(residual, seeds), values)
    fixed = [v for v in range(tracer.tree.nu) if v not in order]
    moved = jacobian(own, seeds)

    def solve(column: Sequence[Number]) -> list[Number]:
        found = factors.solve({v: x for v, x in zip(order, column, strict=False) if not is_zero(x)})
        found |= dict(zip(fixed, column[len(order):], strict=True))
        return [found.get(v, 0.0) for v in range(tracer.tree.nu)]

    return Solved(values, [*rows, *(moved[v] for v in fixed)], solve)


def _is_force(leaf: Scalar) -> bool:
    return bool(leaf.args[0][0] == "tau")


def _entry_by_entry(seeds: Seeds) -> bool:
    """Whether forces are among the variables, each a direction of its own."""
    forces = {leaf: rates for leaf, rates in seeds.items() if _is_force(leaf)}
    return bool(forces) and all(rates == {leaf.args[0]: 1.0} for leaf, rates in forces.items())


def _at_accelerations(tracer: Tracer, rows: Sequence[Mapping[Any, Number]], udot: Sequence[Number]
                      ) -> list[dict[Any, Number]]:
    """Derivatives with the accelerations, which were inputs, at their values."""
    flat = iter(evaluate([x for row in rows for x in row.values()], lambda key: udot[key[1]] if key[0] == "udot" else
                         tracer.graph.leaf(key)))
    return [{d: next(flat) for d in row} for row in rows]


def _columns(order: Sequence[int], rows: Sequence[Mapping[Any, Number]]) -> dict[Any, dict[int, Number]]:
    """Rows by directions as columns: {direction: {speed: entry}}."""
    columns: dict[Any, dict[int, Number]] = {}
    for v, row in zip(order, rows, strict=True):
        for d, x in row.items():
            columns.setdefault(d, {})[v] = x
    return columns
