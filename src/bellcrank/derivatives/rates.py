"""The equations of motion (q, u) -> (qdot, udot) and the closing of loops after a step, with their Jacobians by the
state as it stands (no tangent space) and by some other inputs: for implicit integrators and for sensitivities."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from bellcrank.derivatives.directions import Seeds
from bellcrank.derivatives.through_constraints import closed_slopes
from bellcrank.derivatives.through_inverse import forward_slopes
from bellcrank.formulations import SHARED
from bellcrank.lowering.choose import UNROLL_LINKS, GraphTracer
from bellcrank.lowering.function import Function, Tracer
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number, Scalar, digest
from bellcrank.topology.release import with_given_forces
from bellcrank.topology.tree import Tree

__all__ = ["corrected_with_jacobian", "rates_jacobian", "rates_with_jacobian", "thrown_with_jacobian"]

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


def rates_with_jacobian(tree: Tree, by: Sequence[Leaf], laws: Mapping[Leaf, Number] = MappingProxyType({})
                        ) -> Function:
    """The rates, then their derivatives by q, u and the inputs `by`, row by row.

    `laws` are forces that follow from the state, {("tau", i) or ("wrench", i): expression}."""
    size, columns = tree.nq + tree.nu, tree.nq + tree.nu + len(by)

    def made(tracer: Tracer) -> list[Number]:
        graph, seeds = tracer.graph, _seeds(tracer, by)
        acting = dict(zip(laws, evaluate(list(laws.values()), graph.leaf), strict=True))
        for key, rates in zip(acting, jacobian(list(acting.values()), seeds), strict=True):
            if rates:
                seeds[graph.leaf(key)] = rates
        values, rows = _rates(tracer, seeds)
        entries = [*values, *_flat(rows, columns)]
        return _numbers(evaluate(entries, lambda k: acting[k] if k in acting else graph.leaf(k)) if acting else entries)

    ruled = {key[0] for key in laws}
    inputs = ("q", "u", *(() if "tau" in ruled else ("tau",)), *(("t",) if laws else ()))
    name = f"rates with derivatives by {tuple(by)}" + (f", {digest(list(laws.values()))}" if laws else "")
    return Function(name, SHARED["bias"].text, inputs, "totals", size * (1 + columns), made=made)


def thrown_with_jacobian(tree: Tree, entry: int, restitution: Number, by: Sequence[Leaf]) -> Function:
    """Speeds after a stop has thrown back v, an entry of u, then their derivatives by q, u and `by`, row by row.

        u+ = u - (1 + e) v c / c_v,    c = du̇/dτ_v: what a force at that speed does to all    (1)

    e is the `restitution`, a number or an expression of inputs."""
    size, columns = tree.nq + tree.nu, tree.nq + tree.nu + len(by)

    def made(tracer: Tracer) -> list[Number]:
        free = replace(tracer.tree, actuators={})  # impulses know no limits of motors
        inner = GraphTracer(with_given_forces(free) if tree.loop_speeds()[entry] else free, False)
        graph, e = inner.graph, evaluate([restitution], inner.graph.leaf)[0]
        response = [slope.get(0, 0.0) for slope in _accelerations(inner, {graph.leaf(("tau", entry)): {0: 1.0}})[1]]
        factor = (1.0 + e) * graph.leaf(("u", entry)) / response[entry]
        after = [graph.leaf(("u", i)) - factor * c for i, c in enumerate(response)]
        entries = [*after, *_flat(jacobian(after, _seeds(inner, by)), columns)]
        return _numbers(evaluate(entries, tracer.graph.leaf))

    name = f"speed {entry} thrown back, {digest([restitution])}, with derivatives by {tuple(by)}"
    return Function(name, SHARED["bias"].text, ("q", "u"), "totals", (size - tree.nq) * (1 + columns), made=made)


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
    udot, slopes = _accelerations(tracer, seeds)
    return [*moved, *udot], [*jacobian(moved, seeds), *slopes]


def _accelerations(tracer: Tracer, seeds: Seeds) -> tuple[list[Number], list[dict[Any, Number]]]:
    return (closed_slopes if tracer.tree.looped else forward_slopes)(tracer, seeds)


def _flat(rows: Sequence[Mapping[Any, Number]], columns: int) -> list[Number]:
    return [row.get(k, 0.0) for row in rows for k in range(columns)]


def _numbers(entries: Sequence[Number]) -> list[Number]:
    return [x if type(x) is Scalar else float(x) for x in entries]
