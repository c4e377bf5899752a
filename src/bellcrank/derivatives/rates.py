"""The Jacobian of the equations of motion (q, u) -> (qdot, udot), for implicit integrators."""

from __future__ import annotations

from collections.abc import Mapping

from bellcrank.derivatives.directions import Seeds
from bellcrank.derivatives.through_constraints import closed_slopes
from bellcrank.derivatives.through_inverse import forward_slopes
from bellcrank.formulations import SHARED
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.lowering.function import Function, Tracer
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.topology.tree import Tree

__all__ = ["rates_jacobian"]


def rates_jacobian(functions: Mapping[str, Function], tree: Tree) -> Function | None:
    """The derivatives of all rates by all entries of q and u, as they stand (no tangent space), row by row; None for
    machines that are too large, and with loops for plans of other methods and for stabilized constraints."""
    special = tree.looped and (functions["forward_dynamics"].bases or any(tree.plan.baumgarte))
    if tree.n > UNROLL_LINKS or special:
        return None
    size = tree.nq + tree.nu

    def made(tracer: Tracer) -> list[Number]:
        names = [("q", i) for i in range(tree.nq)] + [("u", i) for i in range(tree.nu)]
        seeds: Seeds = {tracer.graph.leaf(name): {k: 1.0} for k, name in enumerate(names)}
        rows = jacobian(tracer(SHARED["coordinate_rates"]), seeds)
        rows += (closed_slopes if tree.looped else forward_slopes)(tracer, seeds)[1]
        return [x if type(x) is Scalar else float(x) for row in rows for x in (row.get(k, 0.0) for k in range(size))]

    return Function("rates_jacobian", SHARED["bias"].text, ("q", "u", "tau"), "totals", size * size, made=made)
