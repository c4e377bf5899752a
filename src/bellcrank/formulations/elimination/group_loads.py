"""Loads of constraints group by group, for machines that are too large to be looked at as a whole.

Section 8 of docs/explain/elimination.md with one group's constraints at a time. Forces at carried speeds go on to the
group that has these speeds; constraints that follow from the others of their own group share its loads, (30), (31).
Results are not a number where a constraint follows from those of several groups only, where a pivot fails, (20), and
where the forces are not those of the motion: then all constraints are looked at together.

| docs/explain/elimination.md | here |
|---|---|
| f - tau (27) | the input ``tau``, and what children sent |
| L, U of J_KD (28) | ``block``, `constraint_loads.TriangularRows` |
| mu (28), f_E (29) | ``loads``, what is left in ``force`` |
| C, lambda (30), (31) | ``shares``, ``GroupLoads.loads`` |
| n_A, n_B (5) | ``ConstraintEquation.ends`` |

Deviations: none. Cost: O(n + m) for bounded group size.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from bellcrank.formulations.elimination.constraint_loads import (
    TriangularRows,
    factored,
    one_if_balanced,
    shared_loads,
    unload,
)
from bellcrank.formulations.elimination.group_rows import (
    ConstraintEquation,
    closure_constraints,
    coupler_constraint,
    local_sizes,
)
from bellcrank.lowering.group import GroupView
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps, flatten
from bellcrank.spatial import Force

__all__ = ["closing_wrenches", "group_forces", "group_multipliers", "sent_forces"]

#: closure and row, or -1 and coupler, as in `GroupShape.rows`
Place = tuple[int, int]


class GroupLoads(NamedTuple):
    """The multipliers of a group's constraints, redundant ones too, and the constraints."""

    loads: dict[Place, Number]
    stated: dict[Place, ConstraintEquation]


def group_multipliers(groups: Sweeps) -> Field:
    """The smallest multipliers of all constraints that supply forces ``tau`` at all speeds, those of closures first."""
    return groups.inward(inward_multipliers, zero=(0.0,) * groups.world.widths[1])[0]


def closing_wrenches(groups: Sweeps) -> Field:
    """What the constraints of every closure then exert on its first and on its second link: [moment; force] in link
    axes about the link's origin."""
    return groups.inward(inward_wrenches, zero=(0.0,) * groups.world.widths[1])[0]


def inward_multipliers(group: GroupView, received: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    sent, found = _loads(group, received)
    closures = [place for place in found.stated if place[0] >= 0]
    couplers = [(-1, i) for i in range(len(group.shape.relations))]
    return sent, tuple(found.loads[place] for place in (*sorted(closures), *couplers))


def inward_wrenches(group: GroupView, received: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    sent, found = _loads(group, received)
    pairs = [[Force.zero(), Force.zero()] for _ in group.shape.closures]
    for (closure, row), equation in found.stated.items():
        if closure >= 0:
            for side, (_, wrench) in enumerate(equation.ends):
                pairs[closure][side] = pairs[closure][side] + wrench * found.loads[closure, row]
    return sent, tuple(flatten(pairs))


def _loads(group: GroupView, received: Sequence[Number]) -> tuple[tuple[Number, ...], GroupLoads]:
    """Loads of one group, and what its constraints leave to those of the groups further in."""
    shape = group.shape
    force, sizes = group_forces(group, received), local_sizes(group)
    asked = [(x, sizes[v]) for v, x in force.items()]
    stated = _stated(group)
    rows = [dict(stated[place].factors) for place in shape.rows]
    block = factored(shape.dependent, shape.sizes, rows)  # (19), (20)
    kept = dict(zip(shape.rows, unload(block, rows, force), strict=True))  # (28), (29)
    left = [(force[v], sizes[v]) for v in (*shape.independent, *shape.early)]
    one = one_if_balanced(left, asked, group.world.effort)
    shares: dict[Place, Mapping[Place, Number]] = {}
    for place, equation in stated.items():
        if place not in kept:
            share, closed = _share(block, rows, equation, sizes)  # (30)
            shares[place], one = dict(zip(shape.rows, share, strict=True)), one * closed
    loads = shared_loads(kept, shares, {place: equation.size for place, equation in stated.items()})  # (31)
    return sent_forces(group, force, len(received)), GroupLoads({p: x * one for p, x in loads.items()}, stated)


def _stated(group: GroupView) -> dict[Place, ConstraintEquation]:
    """All that a group's closures and couplers state."""
    out = {(i, r): equation for i in range(len(group.shape.closures))
           for r, equation in closure_constraints(group, i, every=True).items()}
    return out | {(-1, r): coupler_constraint(group, r) for c, r in group.shape.rows if c < 0}


def _share(block: TriangularRows, rows: Sequence[Mapping[int, Number]], equation: ConstraintEquation,
           sizes: Sequence[float]) -> tuple[list[Number], Number]:
    """(30) of one row, and 1 if it follows from those of its group; else not a number."""
    row = dict(equation.factors)
    entries = [(x, sizes[v]) for v, x in row.items()]
    share = unload(block, rows, row)
    left = [(x, sizes[v]) for v, x in row.items() if v not in block.dependent]
    return share, one_if_balanced(left, entries, equation.size)


def group_forces(group: GroupView, received: Sequence[Number]) -> dict[int, Number]:
    """Forces ``tau`` at the speeds of a group's own links, and what children sent to these and to others."""
    shape = group.shape
    force: dict[int, Number] = {v: group.links[k].change("tau")[c] if shape.own[k] else 0.0
                                for v, (k, c) in enumerate(shape.speeds) if k >= 0}
    for v, load in zip(shape.ports.speeds, received, strict=False):
        force[v] = force.get(v, 0.0) + load  # (29) of the children
    return force


def sent_forces(group: GroupView, force: Mapping[int, Number], width: int) -> tuple[Number, ...]:
    """Forces at the carried speeds, as the parent takes them."""
    sent: list[Number] = [0.0] * width
    for v, slot in zip(group.shape.carried, group.shape.speed_slots, strict=True):
        sent[slot] = force.get(v, 0.0)
    return tuple(sent)
