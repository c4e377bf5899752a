"""Inverse dynamics is linear in the inertial parameters of the links: its matrix, the regressor.

Ten numbers a link, about the origin of the link's frame and in its axes: mass, first moment m c (x, y, z), second
moment (xx, xy, xz, yy, yz, zz). The text of inverse dynamics is traced with these as variables and differentiated by
them; what comes out does not depend on them.
"""

from __future__ import annotations

from dataclasses import replace

from bellcrank.formulations import SHARED
from bellcrank.lowering.choose import GraphTracer
from bellcrank.lowering.function import Function, Tracer
from bellcrank.scalar.derivative import jacobian
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.spatial import RigidInertia, Symmetric3, Vector
from bellcrank.topology.tree import Tree

__all__ = ["PER_LINK", "regressor"]

#: inertial parameters of a link
PER_LINK = 10


def regressor(tree: Tree) -> Function:
    """The regressor Y (nu, 10 links), row by row: joint forces = Y π and what rotors, springs and other loads need."""
    size = tree.nu * PER_LINK * tree.n

    def made(tracer: Tracer) -> list[Number]:
        inner = GraphTracer(_variable(tree), tracer.wrenches)
        inner.graph = tracer.graph
        first = len(tree.parameters)
        leaves = [tracer.graph.leaf(("parameters", first + i)) for i in range(PER_LINK * tree.n)]
        rows = jacobian(inner(SHARED["inverse_dynamics"]), {leaf: {i: 1.0} for i, leaf in enumerate(leaves)})
        entries = [row.get(i, 0.0) for row in rows for i in range(len(leaves))]
        return [x if type(x) is Scalar else float(x) for x in entries]

    return Function("regressor", SHARED["inverse_dynamics"].text, ("q", "u", "udot"), "totals", size, made=made)


def _variable(tree: Tree) -> Tree:
    """The same tree with the inertias of all links as parameters, after those it has."""
    graph, names = Graph(), [f"inertia {link}.{i}" for link in range(1, tree.n + 1) for i in range(PER_LINK)]
    symbolic = dict(tree.symbolic)
    for link in range(1, tree.n + 1):
        own = [graph.leaf(("parameter", name)) for name in names[PER_LINK * (link - 1):PER_LINK * link]]
        symbolic[link] = tree.numbers(link)._replace(
            inertia=RigidInertia(own[0], Vector(*own[1:4]), Symmetric3(*own[4:])))
    return replace(tree, symbolic=symbolic, parameters={**tree.parameters, **dict.fromkeys(names, 0.0)}, armatures={},
                   joint_forces={}, pairs=(), applied={})
