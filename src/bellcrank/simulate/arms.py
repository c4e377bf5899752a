"""Runs of method "operator" with closures that change: blocks of code for the arms, and one for every set of closures.

See `formulations.operator.changing_closures`. The arms are compiled once; what is made for a set is step (D).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bellcrank.formulations import functions_of
from bellcrank.formulations.operator.changing_closures import arm_ends, closing_wrenches, end_pairs, read_ends
from bellcrank.loops.loop_paths import common_ancestor
from bellcrank.lowering.choose import read_inputs
from bellcrank.lowering.function import Function, direct
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.spatial import Force
from bellcrank.system.evaluator import CompiledEvaluator
from bellcrank.target.backend import Block
from bellcrank.target.kernel_source import GraphKernel
from bellcrank.topology.tree import Tree

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.machine_functions import Machine

__all__ = ["ArmBlocks", "arm_blocks"]

#: machines with more ends of closures, or more links, have code for every set as a whole
MOST_ENDS, MOST_LINKS = 12, 40


@dataclass(frozen=True)
class ArmBlocks:
    """What computes accelerations in three calls: arms, step (D), arms with wrenches on their ends."""

    arms: Block
    size: int  #: numbers that the arms hand on
    closing: Block
    run: CompiledEvaluator  #: of the arms alone
    forward: Function


def arm_blocks(system: Machine, plan: LoopPlan | None, width: int, wrenches: bool) -> ArmBlocks | None:
    """The blocks of a machine and one set of closures, or None if it is not computed that way."""
    model, ends = system.model, _ends(system)
    changes = bool(model.released or model.mechanism.open_at_start)
    run = system.kernels.of_tree("arms", lambda: _open(model.tree))
    if (plan is None or not changes or model.method != "operator" or model.tree.relations or not ends
            or len(ends) > MOST_ENDS or model.tree.n > MOST_LINKS or system.kernels.springs_outside
            or any(map(model.tree.along_loops, model.tree.pairs)) or not isinstance(run, CompiledEvaluator)):
        return None
    forward = functions_of(model.method, False)["forward_dynamics"]
    pairs = end_pairs(ends, lambda a, b: common_ancestor(model.tree.parent.tolist(), a, b))
    entries = _arms(run.tree, ends, pairs, wrenches)
    inputs = read_inputs(run.tree, replace(forward, inputs=("q", "u", "tau")), wrenches)
    arms = run.backend.block(_kernel(entries, inputs), ("arms",), width)
    closing, given = _closing(replace(model.tree, pairs=(), plan=plan), ends, pairs, len(entries), wrenches)
    return ArmBlocks(arms, len(entries), run.backend.block(_kernel(closing, given), ("closing",), width), run, forward)


def _ends(system: Machine) -> list[int]:
    """The links that closures lie on, whether they are closed or not."""
    tree = system.model.whole or system.model.tree
    return sorted({link for c in tree.closures for link in (c.first, c.second) if link})


def _open(tree: Tree) -> Tree:
    return replace(tree, closures=(), relations=(), steps=(), plan=None,
                   pairs=tuple(p for p in tree.pairs if not tree.along_loops(p)))


def _kernel(entries: list[Number], inputs: dict[str, int]) -> GraphKernel:
    return GraphKernel([x if type(x) is Scalar else float(x) for x in entries], inputs)


def _arms(tree: Tree, ends: list[int], pairs: list[tuple[int, int]], wrenches: bool) -> list[Number]:
    """Steps (A) to (C), traced."""
    graph = Graph()
    machine = direct(tree, ("q", "u", "tau"), lambda name, i: graph.leaf((name, i)), wrenches)
    assert isinstance(machine, LoopedDirect)
    return arm_ends(machine, ends, pairs)


def _closing(tree: Tree, ends: list[int], pairs: list[tuple[int, int]], size: int, wrenches: bool
             ) -> tuple[list[Number], dict[str, int]]:
    """Step (D), traced: wrenches on all bodies, those from outside included, and what it reads."""
    graph = Graph()
    machine = direct(tree, ("q", "u"), lambda name, i: graph.leaf((name, i)), False)
    assert isinstance(machine, LoopedDirect)
    found, compliances = read_ends(ends, pairs, lambda i: graph.leaf(("arms", i)))
    machine.know({link: end.moving for link, end in found.items()})
    loads = closing_wrenches(machine, found, compliances)
    inputs = {"arms": size}
    if tree.timed:
        inputs["t"] = 1
    if tree.parameters:
        inputs["parameters"] = len(tree.parameters)
    out = _on_bodies(machine, loads)
    if wrenches:
        inputs["outside"] = len(out)
        out = [x + graph.leaf(("outside", i)) for i, x in enumerate(out)]
    return out, inputs


def _on_bodies(machine: LoopedDirect, loads: dict[int, Force]) -> list[Number]:
    """Loads on links as kernels read wrenches on bodies: world axes, about the origin of each link's first body."""
    ground, out = machine.world.ground.rotation, list[Number]()
    for link, members in enumerate(machine.tree.members[1:], 1):
        own, rest = loads.get(link), len(members)
        if own is not None:
            moment = own.moment - machine.views[link].numbers.origins[0].cross(own.force)
            for part in (moment, own.force):
                out += ground.apply(machine.moving[link].axes.apply(part))
            rest -= 1
        out += [0.0] * (6 * rest)
    return [*out, *[0.0] * (6 * (len(machine.tree.members[0]) - 1))]
