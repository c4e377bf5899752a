"""Groups as recursive coordinate reduction sees them: own links, a base, and at most one virtual body.

Where the elimination's groups know all members of others that their constraints involve, here these are one body, the
virtual one (`VIRTUAL`): its motion relative to the base is told by the group it belongs to, its *host*. So a group's
shape does not depend on how far it is from the base, and cells of a ladder are of one kind whatever its spanning tree.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import accumulate

from bellcrank.errors import ModelError
from bellcrank.loops.constraint_sizes import row_sizes
from bellcrank.loops.plan import Group, LoopPlan
from bellcrank.lowering.function import Function
from bellcrank.lowering.group_shape import (
    VIRTUAL,
    GroupShape,
    Local,
    Ports,
    closure_shape,
    free_speeds,
    row_places,
    shapes_of,
)
from bellcrank.topology.tree import Tree

__all__ = ["base_shapes_of", "shapes_for"]


def shapes_for(function: Function) -> Callable[[Tree], list[Local]]:
    """What makes the shapes that a function sweeps over."""
    return base_shapes_of if function.bases else shapes_of


def base_shapes_of(tree: Tree) -> list[Local]:
    """Shapes of all groups of a plan by `loops.base_plan`. Cost: linear, and that of the paths of closures."""
    plan: LoopPlan = tree.plan
    children: list[list[Group]] = [[] for _ in plan.groups]
    for group in plan.groups:
        if group.parent >= 0:
            children[group.parent].append(group)
    starts = [0, *accumulate(c.rows for c in tree.closures)]
    members, units = [_members(group) for group in plan.groups], row_sizes(tree)
    ports = [Ports(tuple(sorted({members[g][c.reference] for c in some if c.reference})), ())
             for g, some in enumerate(children)]
    hosts = [tuple(sorted({members[g][c.virtual] for c in some if c.virtual >= 0})) for g, some in enumerate(children)]
    out = []
    for g, group in enumerate(plan.groups):
        above, body_slot, host_slot = Ports((), ()), -1, -1
        if group.parent >= 0:
            up = members[group.parent]
            above = ports[group.parent]
            body_slot = above.bodies.index(up[group.reference]) if group.reference else -1
            host_slot = hosts[group.parent].index(up[group.virtual]) if group.virtual >= 0 else -1
        shape = _shape(tree, group, members[g], starts, bool(hosts[g]))
        full = GroupShape(**{**shape.__dict__, "ports": ports[g], "above": above, "body_slot": body_slot,
                             "hosts": hosts[g], "host_slot": host_slot,
                             "row_units": tuple(units[list(group.rows)].tolist()),
                             "speed_units": tuple(tree.speed_sizes[list(group.dependent)].tolist())})
        out.append(Local(full, group.links, group.closures, ()))
    return out


def _members(group: Group) -> dict[int, int]:
    """Local numbers of the links that a group knows."""
    return {**{link: i for i, link in enumerate(group.links)}, group.reference: -1,
            **({group.virtual: VIRTUAL} if group.virtual >= 0 else {})}


def _shape(tree: Tree, group: Group, bodies: dict[int, int], starts: list[int], hosting: bool) -> GroupShape:
    links = group.links
    pairs = [(i, c) for i, link in enumerate(links) for c in free_speeds(tree, link)]
    speeds = {int(tree.u_start[links[i]]) + c: n for n, (i, c) in enumerate(pairs)}
    try:
        parents = tuple(bodies[int(tree.parent[link])] for link in links)
        closures = tuple(closure_shape(tree, k, bodies) for k in group.closures)
    except KeyError:
        raise ModelError(f"{tree.name!r}: this plan is not one of coordinate reduction") from None
    rows, relations, _ = row_places(tree, starts, group, speeds)
    own = tuple(speeds[v] for v in group.independent)
    looped = bool(closures) or len(links) > 1 or group.virtual >= 0 or hosting  # else the link of a tree
    return GroupShape(
        parents=parents, own=(True,) * len(links), speeds=tuple(pairs), rows=rows,
        dependent=tuple(speeds[v] for v in group.dependent), sizes=group.sizes, independent=own if looped else (),
        early=() if looped else own, carried=(), closures=closures, relations=relations,
        grounded=group.reference == 0, ports=Ports((), ()), above=Ports((), ()), body_slot=-1, speed_slots=())
