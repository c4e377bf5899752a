"""The equations of motion (q, u) -> (qdot, udot) and the closing of loops after a step, with their Jacobians by the
state as it stands (no tangent space) and by some other inputs: for implicit integrators and for sensitivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.derivatives.directions import Seeds
from bellcrank.derivatives.through_constraints import closed_slopes
from bellcrank.derivatives.through_inverse import forward_slopes
from bellcrank.formulations import SHARED
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.lowering.function import Function, Tracer
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.topology.tree import Tree

__all__ = ["corrected_with_jacobian", "rates_jacobian", "rates_with_jacobian"]

#: (input, entry)
Leaf = tuple[str, int]


def rates_jacobian(functions: Mapping[str, Function], tree: Tree) -> Function | None:
    """The derivatives of all rates by all entries of q and u, row by row; None for machines that are too large, and
    with loops for plans of other methods and for stabilized constraints."""
    special = tree.looped and (functions["forward_dynamics"].bases or any(tree.plan.baumgarte))
    if tree.n > UNROLL_LINKS or special:
        return None
    size = tree.nq + tree.nu

    def made(tracer: Tracer) -> list[Number]:
        return _numbers(_flat(_rates(tracer, _seeds(tracer, ()))[1], size))

    return Function("rates_jacobian", SHARED["bias"].text, ("q", "u", "tau"), "totals", size * size, made=made)


def rates_with_jacobian(tree: Tree, by: Sequence[Leaf]) -> Function:
    """The rates, then their derivatives by q, u and the inputs `by`, row by row."""
    size, columns = tree.nq + tree.nu, tree.nq + tree.nu + len(by)

    def made(tracer: Tracer) -> list[Number]:
        values, rows = _rates(tracer, _seeds(tracer, by))
        return _numbers([*values, *_flat(rows, columns)])

    return Function(f"rates with derivatives by {tuple(by)}", SHARED["bias"].text, ("q", "u", "tau"), "totals",
                    size * (1 + columns), made=made)


def corrected_with_jacobian(tree: Tree, by: Sequence[Leaf]) -> Function:
    """The state with its loops closed (one round), quaternions unit and prescribed joints where they should be; how far
    each speed's coordinate was moved; then the derivatives of the state by q, u and the inputs `by`, row by row."""
    size, columns = tree.nq + tree.nu, tree.nq + tree.nu + len(by)

    def made(tracer: Tracer) -> list[Number]:
        moves = tracer(SHARED["corrections"]) if tree.looped else [0.0] * (2 * tree.nu)
        put: dict[Any, Number] = {}
        for i in range(tree.nu):
            put["dq", i], put["du", i] = moves[i], moves[tree.nu + i]
        entries = evaluate([*tracer(SHARED["displaced"]), *tracer(SHARED["sped"])],
                           lambda key: put[key] if key in put else tracer.graph.leaf(key))
        return _numbers([*entries, *moves[:tree.nu], *_flat(jacobian(entries, _seeds(tracer, by)), columns)])

    return Function(f"corrections with derivatives by {tuple(by)}", SHARED["bias"].text, ("q", "u"), "totals",
                    size * (1 + columns) + tree.nu, made=made)


def _seeds(tracer: Tracer, by: Sequence[Leaf]) -> Seeds:
    names = [*(("q", i) for i in range(tracer.tree.nq)), *(("u", i) for i in range(tracer.tree.nu)), *by]
    return {tracer.graph.leaf(name): {k: 1.0} for k, name in enumerate(names)}


def _rates(tracer: Tracer, seeds: Seeds) -> tuple[list[Number], list[dict[Any, Number]]]:
    moved = tracer(SHARED["coordinate_rates"])
    udot, slopes = (closed_slopes if tracer.tree.looped else forward_slopes)(tracer, seeds)
    return [*moved, *udot], [*jacobian(moved, seeds), *slopes]


def _flat(rows: Sequence[Mapping[Any, Number]], columns: int) -> list[Number]:
    return [row.get(k, 0.0) for row in rows for k in range(columns)]


def _numbers(entries: Sequence[Number]) -> list[Number]:
    return [x if type(x) is Scalar else float(x) for x in entries]
