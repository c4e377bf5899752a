"""Reactions: the wrench that every joint exerts, cut joints and other constraints included.

Section 8 of docs/explain/elimination.md. Every body is a link of its own here, with its frame at its inboard joint,
so that welds have reactions, too.

| docs/explain/elimination.md | here |
|---|---|
| f - tau (27) | ``lacking_forces`` |
| lambda (27), (30), (31) | ``multipliers`` |
| n_A, n_B (5) | ``ConstraintEquation.ends`` |

Deviations: none. Cost: that of inverse dynamics of the tree, and of the multipliers.
"""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.formulations.elimination.closed_inverse import lacking_forces
from bellcrank.formulations.elimination.constraint_loads import (
    LoadSolver,
    Statement,
    every_constraint,
    smallest_loads,
)
from bellcrank.formulations.recursive import joint_wrenches
from bellcrank.lowering.element_loads import joint_load, unit_wrench
from bellcrank.lowering.link import Link
from bellcrank.lowering.looped import LoopedDirect, require_direct
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps, flatten
from bellcrank.spatial import Force, General, Matrix3, Vector
from bellcrank.topology.tree import Closure

__all__ = ["joint_reactions", "loaded_wrenches"]


def joint_reactions(tree: Sweeps) -> tuple[Number, ...]:
    """[moment; force] of every joint on its child as it was described, then of every constraint on its second body, in
    the order of `Tree.loaded_names`: about the joint's origin on that body, in that body's axes."""
    machine = require_direct(tree)
    wrenches = joint_wrenches(machine)
    loads = [Force.zero() for _ in machine.parent]
    closing: list[Force] = []
    if machine.tree.looped:
        constraints = every_constraint(machine)
        multipliers = _multipliers(machine, constraints)
        loads = _on_links(machine, constraints, multipliers)
        closing = _at_closures(machine, constraints, multipliers)
    left, _ = machine.inward(inward_relief, wrenches, loads, zero=Force.zero())
    beside = _of_couplers(machine, constraints, multipliers) if machine.tree.relations else [Force.zero()] * len(loads)
    own = {machine.tree.joint_names[k]: _on_child(machine, k, left[k] - beside[k])
           for k in range(1, len(machine.parent))}
    own |= {c.name: wrench for c, wrench in zip(machine.tree.closures, closing, strict=True)}
    return tuple(flatten([own[name] for name in machine.tree.loaded_names]))


def _on_child(machine: LoopedDirect, link: int, wrench: Force) -> Force:
    """What a tree joint exerts on its child, from what it exerts on its link: if it was described the other way round,
    what acts back on the body inboard of it, about the joint's origin there."""
    if link not in machine.tree.backwards:
        return _in_body_axes(machine, link, wrench)
    placement, *moving = machine.views[link].transforms
    for t in reversed(moving):
        wrench = t.force(wrench)
    turn = placement.rotation
    back = Force(-turn.apply(wrench.moment), -turn.apply(wrench.force))
    return _in_body_axes(machine, int(machine.parent[link]), back)


def _multipliers(machine: LoopedDirect, constraints: Sequence[Statement]) -> list[Number]:
    """(27) for given joint forces: what the closures must supply."""
    solver = LoadSolver(machine, constraints)
    found = solver.projected(lacking_forces(machine))  # (27), (28)
    return smallest_loads(machine, solver, found.loads)  # (30), (31)


def _on_links(machine: LoopedDirect, constraints: Sequence[Statement], multipliers: Sequence[Number]) -> list[Force]:
    """What the constraints exert on every link, in its axes about its origin; the ground first."""
    out = [Force.zero() for _ in machine.parent]
    for statement, load in zip(constraints, multipliers, strict=True):
        for member, wrench in statement.equation.ends:
            out[member + 1] = out[member + 1] + wrench * load
    return out


def _of_couplers(machine: LoopedDirect, constraints: Sequence[Statement], multipliers: Sequence[Number]
                 ) -> list[Force]:
    """What couplers, (10), exert on every link along the coordinates of its joint: next to the joint, as forces along
    sums of coordinates do, and not by it."""
    out = [Force.zero() for _ in machine.parent]
    places = {int(machine.tree.u_start[k]) + i: (k, i) for k in range(1, len(machine.parent))
              for i in range(len(machine.views[k].columns))}
    first = sum(c.rows for c in machine.tree.closures)
    for statement, load in zip(constraints[first:], multipliers[first:], strict=True):
        for v, slope in statement.equation.factors:
            link, i = places[v]
            out[link] = out[link] + unit_wrench(machine.views[link].columns, i) * (slope * load)
    return out


def _at_closures(machine: LoopedDirect, constraints: Sequence[Statement], multipliers: Sequence[Number]) -> list[Force]:
    """What every closure exerts on its second body, with the forces along its own coordinates."""
    out, at = [], 0
    for c in machine.tree.closures:
        total = Force.zero()
        for row in range(at, at + c.rows):
            total = total + constraints[row].equation.ends[1][1] * multipliers[row]
        at += c.rows
        arm = Vector(*machine.bind(tuple(c.second_shift)))
        total = Force(total.moment - arm.cross(total.force), total.force) + _along_closure(machine, c)
        out.append(_in_body_axes(machine, c.second, total))
    return out


def _along_closure(machine: LoopedDirect, c: Closure) -> Force:
    """What elements exert along a loop joint's coordinates on its second link, about the joint's point there."""
    link = machine.tree.joint_links.get(c.name)
    if link is None:
        return Force.zero()
    load = joint_load(machine.tree, link, machine.moving.__getitem__, machine.around)
    axes = machine.moving[c.second].axes
    return Force(axes.inverse(load.moment), axes.inverse(load.force))


def loaded_wrenches(tree: Sweeps) -> Field:
    """[moment; force] of every tree joint on its outboard link, in link axes about its origin, if wrenches ``load`` of
    constraints act on the links: for machines of any size, whose closures' loads are known (`group_loads`)."""
    loads = tree.outward(outward_given_loads, root=())
    return tree.inward(inward_relief, joint_wrenches(tree), loads, zero=Force.zero())[0]


def outward_given_loads(link: Link, nothing: tuple[()]) -> tuple[tuple[()], Force]:
    return (), link.load


def inward_relief(link: Link, upper: Force, wrench: Force, own: Force) -> tuple[Force, Force]:
    """What a joint exerts if constraints carry part of it: what acts on its link and on all outboard of that."""
    total = upper + own
    lower = total
    for t in reversed(link.transforms):
        lower = t.force(lower)
    return lower, wrench - total


def _in_body_axes(machine: LoopedDirect, link: int, wrench: Force) -> Force:
    turn = machine.tree.body_turn[machine.tree.members[link][0]]  # body axes in link axes
    axes = General(Matrix3(*(Vector(*row) for row in turn.tolist())))
    return Force(axes.inverse(wrench.moment), axes.inverse(wrench.force))
