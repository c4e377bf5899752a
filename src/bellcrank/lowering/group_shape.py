"""The shape of a group of links, from a plan: its links, constraints and neighbours by local numbers; no state.

A *member* is a link the group works with: its own, or one further in whose joint its constraints involve (*foreign*).
All members hang from the group's *reference* link, which has the local number -1. *Ports* are the bodies (members or
the reference) and speeds that the messages of a group's children refer to.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any, NamedTuple

from bellcrank.loops.loop_paths import paths_between
from bellcrank.loops.plan import Group, LoopPlan
from bellcrank.mechanism.flexible.deformation import NodeMotion
from bellcrank.mechanism.motion import Part
from bellcrank.topology.tree import LoopJoint, Tree

__all__ = ["PASSING", "VIRTUAL", "ClosureShape", "GroupShape", "JointShape", "Local", "Ports", "RelationShape",
           "closure_shape", "free_speeds", "row_places", "shapes_of", "shared_columns"]

#: the member of speeds that only pass through a group
PASSING = -2
#: the member of another group that a group hangs from or closes on, where it is seen as one body: see `base_shapes`
VIRTUAL = -3


class Ports(NamedTuple):
    """The bodies and speeds that the messages of a group's children refer to."""

    bodies: tuple[int, ...]  #: members, -1 for the reference
    speeds: tuple[int, ...]  #: local numbers of speeds

    @property
    def inward(self) -> int:
        """Numbers in a message."""
        n, s = len(self.bodies), len(self.speeds)
        return n * (27 + 6 * s) + s * (s + 1) // 2 + s

    @property
    def outward(self) -> int:
        """Numbers in an answer."""
        return 6 * len(self.bodies) + len(self.speeds)


class ClosureShape(NamedTuple):
    """One closure of a group."""

    kind: tuple[object, ...]
    first: int  #: members, -1 for the reference
    second: int
    first_path: tuple[int, ...]  #: members from the end up to, not including, the nearest common ancestor
    second_path: tuple[int, ...]
    axes: tuple[bool, bool]  #: whether the joint's axes coincide with the link's, on both sides


class JointShape(NamedTuple):
    """A loop joint of a group."""

    kind: tuple[object, ...]
    first: int  #: members, -1 for the reference
    second: int
    first_path: tuple[int, ...]  #: members from the common ancestor, which is left out, to the end
    second_path: tuple[int, ...]
    open: bool  #: it is released


class RelationShape(NamedTuple):
    """One coupler: all coordinates (witness, component, factor or function), and which of them are free speeds."""

    terms: tuple[tuple[int, int], ...]  #: local speed, place in `every`
    every: tuple[tuple[int, int, Part], ...]
    offset: Any  #: a number, or a function of time


@dataclass(frozen=True)
class GroupShape:
    """Everything about a group but numbers."""

    parents: tuple[int, ...]
    own: tuple[bool, ...]
    speeds: tuple[tuple[int, int], ...]  #: member and component of every local speed
    rows: tuple[tuple[int, int], ...]  #: (closure, row) or (-1, relation) of every constraint, in pivot order
    dependent: tuple[int, ...]
    sizes: tuple[float, ...]
    independent: tuple[int, ...]  #: solved together, after the constraints
    early: tuple[int, ...]  #: own speeds that no constraint involves: eliminated at their link
    carried: tuple[int, ...]
    closures: tuple[ClosureShape, ...]
    relations: tuple[RelationShape, ...]
    grounded: bool  #: the reference is the ground
    ports: Ports
    #: the parent's ports, the place of the reference there (-1: none), the places of the carried speeds
    above: Ports
    body_slot: int
    speed_slots: tuple[int, ...]
    #: members that children hang from or close on as their virtual bodies, and the place of the own one among the
    #: parent's (-1: none); see `base_shapes`
    hosts: tuple[int, ...] = ()
    host_slot: int = -1
    #: member, column and local speed of what moves nodes of flexible bodies
    shared: tuple[tuple[int, int, int], ...] = ()
    #: what constraints and dependent speeds are measured by, where several are compared; see `base_shapes`
    row_units: tuple[float, ...] = ()
    speed_units: tuple[float, ...] = ()
    joints: tuple[JointShape, ...] = ()

    def bound(self, bind: Callable[[Any], Any]) -> GroupShape:
        """The same with the parameters of couplers replaced by what `bind` makes of them."""
        return replace(self, relations=bind(self.relations)) if self.relations else self

    @property
    def numbers(self) -> dict[tuple[int, int], int]:
        """The local speed of every column that moves a member relative to its parent."""
        return {pair: v for v, pair in enumerate(self.speeds)} | {(k, c): v for k, c, v in self.shared}


# -- shapes from a plan --------------------------------------------------------------------------------------------
class Local(NamedTuple):
    """A group's shape with the global numbers of its parts."""

    shape: GroupShape
    links: tuple[int, ...]
    closures: tuple[int, ...]
    witnesses: tuple[int, ...]
    joints: tuple[int, ...] = ()  #: loop joints


def shapes_of(tree: Tree) -> list[Local]:
    """Shapes of all groups of the tree's plan. Cost: linear."""
    plan: LoopPlan = tree.plan
    children: list[list[int]] = [[] for _ in plan.groups]
    for g, group in enumerate(plan.groups):
        if group.parent >= 0:
            children[group.parent].append(g)
    starts = [0, *accumulate(c.rows for c in tree.closures)]
    drafts = [_draft(tree, group, [plan.groups[c] for c in children[g]], starts) for g, group in enumerate(plan.groups)]
    out = []
    for g, group in enumerate(plan.groups):
        shape, links, closures, index = drafts[g]
        above, body_slot = Ports((), ()), -1
        slots: tuple[int, ...] = ()
        if group.parent >= 0:
            up_shape, _, _, up = drafts[group.parent]
            above = up_shape.ports
            if group.reference:
                body_slot = above.bodies.index(up.bodies[group.reference])
            place = {v: i for i, v in enumerate(above.speeds)}
            slots = tuple(place[up.speeds[v]] for v in group.carried)
        full = GroupShape(**{**shape.__dict__, "above": above, "body_slot": body_slot, "speed_slots": slots})
        out.append(Local(full, links, closures, index.witnesses, group.joints))
    return out


class _Index(NamedTuple):
    """Local numbers of global links and speeds."""

    bodies: dict[int, int]
    speeds: dict[int, int]
    witnesses: tuple[int, ...]


def free_speeds(tree: Tree, link: int) -> list[int]:
    """The components of a link's speeds that are not prescribed."""
    return [i for i, driven in enumerate(tree.mask(link)) if not driven]


def _draft(tree: Tree, group: Group, children: list[Group], row_starts: list[int]
           ) -> tuple[GroupShape, tuple[int, ...], tuple[int, ...], _Index]:
    wanted = set(group.links)
    starts = [*group.links, *(c.reference for c in children)]
    for k in group.closures:
        starts += [tree.closures[k].first, tree.closures[k].second]
    for j in group.joints:
        starts += [tree.loop_joints[j].closure.first, tree.loop_joints[j].closure.second]
    reference = group.reference
    for link in starts:
        while link != reference:
            wanted.add(link)
            link = int(tree.parent[link])
    links = tuple(sorted(wanted))
    bodies = {link: i for i, link in enumerate(links)}
    bodies[reference] = -1
    pairs = [(i, c) for i, link in enumerate(links) for c in free_speeds(tree, link)]
    speeds = {int(tree.u_start[links[i]]) + c: n for n, (i, c) in enumerate(pairs)}
    for v in sorted({v for c in children for v in c.carried} | set(group.carried)):
        if v not in speeds:  # passes through: no member moves by it
            speeds[v] = len(pairs)
            pairs.append((PASSING, len(pairs)))
    closures = tuple(closure_shape(tree, k, bodies) for k in group.closures)
    row_place, relations, witnesses = row_places(tree, row_starts, group, speeds)
    ports = Ports(tuple(sorted({bodies[c.reference] for c in children if c.reference})),
                  tuple(sorted({speeds[v] for c in children for v in c.carried})))
    bound = {speeds[v] for s in closures for m in (*s.first_path, *s.second_path) for v in tree.movers(links[m])
             if v in speeds} | {v for r in relations for v, _ in r.terms} | set(ports.speeds)
    own = [speeds[v] for v in group.independent]
    shape = GroupShape(
        parents=tuple(bodies[int(tree.parent[link])] for link in links),
        own=tuple(link in group.links for link in links),
        speeds=tuple(pairs), rows=row_place, dependent=tuple(speeds[v] for v in group.dependent), sizes=group.sizes,
        independent=tuple(v for v in own if v in bound), early=tuple(v for v in own if v not in bound),
        carried=tuple(speeds[v] for v in group.carried), closures=closures, relations=relations,
        grounded=reference == 0, ports=ports, above=Ports((), ()), body_slot=-1, speed_slots=(),
        shared=shared_columns(tree, links, speeds),
        joints=tuple(joint_shape(tree, tree.loop_joints[j], bodies) for j in group.joints))
    return shape, links, group.closures, _Index(bodies, speeds, witnesses)


def shared_columns(tree: Tree, links: Sequence[int], speeds: Mapping[int, int]) -> tuple[tuple[int, int, int], ...]:
    """Member, column and local speed of what moves nodes of flexible bodies."""
    if not tree.flexible:
        return ()
    return tuple((k, c, speeds[v]) for k, link in enumerate(links) if isinstance(tree.joints[link], NodeMotion)
                 for c, v in enumerate(tree.movers(link)) if v in speeds)


def closure_shape(tree: Tree, k: int, bodies: dict[int, int]) -> ClosureShape:
    """A closure by local numbers; links that have none are left out of its paths."""
    c = tree.closures[k]
    left, right = ([bodies[link] for link in path if bodies.get(link, -1) >= 0]
                   for path in paths_between(tree, c.first, c.second))
    kind = c.kind.kind() if c.is_joint else (type(c.kind).__name__,)
    plain = tuple(bool((t == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).all()) for t in (c.first_turn, c.second_turn))
    return ClosureShape(kind, bodies[c.first], bodies[c.second], tuple(left), tuple(right), (plain[0], plain[1]))


def joint_shape(tree: Tree, own: LoopJoint, bodies: dict[int, int]) -> JointShape:
    """A loop joint by local numbers."""
    c = own.closure
    left, right = (tuple(bodies[link] for link in reversed(path)) for path in paths_between(tree, c.first, c.second))
    return JointShape(c.kind.kind(), bodies[c.first], bodies[c.second], left, right, own.open)


def row_places(tree: Tree, starts: list[int], group: Group, speeds: dict[int, int]
          ) -> tuple[tuple[tuple[int, int], ...], tuple[RelationShape, ...], tuple[int, ...]]:
    """Closure and row of every constraint in the order of its pivots, the couplers among them, and their witnesses."""
    order = {k: i for i, k in enumerate(group.closures)}
    out: list[tuple[int, int]] = []
    relations: list[RelationShape] = []
    witnesses: list[int] = []
    for r in group.rows:
        if r < starts[-1]:
            k = bisect_right(starts, r) - 1
            out.append((order[k], r - starts[k]))
            continue
        terms: list[tuple[int, int]] = []
        every: list[tuple[int, int, Part]] = []
        relation = tree.relations[r - starts[-1]]
        for link, i, part in relation.terms:
            v = speeds.get(int(tree.u_start[link]) + i)
            if v is not None:
                terms.append((v, len(every)))
            every.append((len(witnesses), i, part))
            witnesses.append(link)
        out.append((-1, len(relations)))
        relations.append(RelationShape(tuple(terms), tuple(every), relation.offset))
    return tuple(out), tuple(relations), tuple(witnesses)
