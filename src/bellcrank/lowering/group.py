"""What a step of the elimination sees of one group: its links, constraints and neighbours, all by local numbers.

A *member* is a link the group works with: its own, or one further in whose joint its constraints involve (*foreign*).
All members hang from the group's *reference* link, which has the local number -1. *Ports* are the bodies (members or
the reference) and speeds that the messages of a group's children refer to. See docs/elimination.md for the method.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, NamedTuple

from bellcrank.loops.constraint_kinematics import paths_between
from bellcrank.loops.plan import Group, LoopPlan
from bellcrank.lowering.element_loads import columns_of
from bellcrank.lowering.function import Function, binder, direct
from bellcrank.lowering.link import Link, World
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.mechanism.constraint_rows import at_time
from bellcrank.mechanism.coupling import Part
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Field, flatten, rebuild
from bellcrank.spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Vector
from bellcrank.topology.tree import Tree

#: the member of speeds that only pass through a group
PASSING = -2
#: the member of another group that a group hangs from or closes on, where it is seen as one body: see `base_shapes`
VIRTUAL = -3

__all__ = ["VIRTUAL", "ClosureShape", "GroupShape", "GroupView", "Local", "Message", "Ports", "closure_shape",
           "closure_starts", "direct_groups", "free_speeds", "group_couplers", "place_groups", "row_places",
           "shapes_of", "whole_machine"]


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


class Message(NamedTuple):
    """A quadratic form in the acceleration of the reference and the carried speeds' accelerations."""

    mass: ArticulatedInertia
    force: Force
    columns: tuple[Force, ...]
    matrix: tuple[tuple[Number, ...], ...]  #: lower triangle
    right: tuple[Number, ...]


class Incoming(NamedTuple):
    """The sum of the messages of a group's children, by ports."""

    bodies: tuple[tuple[ArticulatedInertia, Force, tuple[Force, ...]], ...]
    matrix: tuple[tuple[Number, ...], ...]
    right: tuple[Number, ...]


_FORCE = Force.zero()
_MASS = ArticulatedInertia(Symmetric3.zero(), Matrix3.zero(), Symmetric3.zero())


class ClosureNumbers(NamedTuple):
    """The joint's frame on both sides of a closure, and its constants."""

    first_turn: tuple[Vector, Vector, Vector]  #: axes in the link's frame
    first_shift: Vector
    second_turn: tuple[Vector, Vector, Vector]
    second_shift: Vector
    constants: tuple[Number, ...]


class GroupView:
    """A group with its state."""

    def __init__(self, shape: GroupShape, links: Sequence[Link], closures: Sequence[ClosureNumbers],
                 kinds: Sequence[Any], world: World, baumgarte: tuple[float, float], widths: tuple[int, int],
                 witnesses: Sequence[Link] = ()) -> None:
        self.shape, self.links, self.closures, self.kinds = shape, list(links), list(closures), list(kinds)
        self.witnesses = list(witnesses)  #: links whose coordinates couplers refer to
        self.world, self.baumgarte = world, baumgarte
        self.widths = widths  #: of messages and of answers, for all groups alike

    def at_speeds(self, speeds: Mapping[int, Number]) -> GroupView:
        """The same group with its local speeds as given; others, those of links that no constraint involves, and
        prescribed ones stay as they are."""
        shape = self.shape
        number = {pair: v for v, pair in enumerate(shape.speeds)}
        links = [link.with_speeds([speeds.get(number.get((k, c), PASSING), x) for c, x in enumerate(link.u)])
                 for k, link in enumerate(self.links)]
        seen: dict[int, dict[int, Number]] = {}
        for relation in shape.relations:
            for v, place in relation.terms:
                witness, c, _ = relation.every[place]
                seen.setdefault(witness, {})[c] = speeds[v]
        witnesses = [link.with_speeds([seen.get(i, {}).get(c, x) for c, x in enumerate(link.u)])
                     for i, link in enumerate(self.witnesses)]
        return GroupView(shape, links, self.closures, self.kinds, self.world, self.baumgarte, self.widths, witnesses)

    def incoming(self, flat: Sequence[Number]) -> Incoming:
        """What the children sent, unpacked."""
        bodies, speeds = self.shape.ports
        feed = iter(flat)
        like = (_MASS, _FORCE, (_FORCE,) * len(speeds))
        per_body = tuple(rebuild(like, feed) for _ in bodies)
        matrix = tuple(tuple(next(feed) for _ in range(i + 1)) for i in range(len(speeds)))
        return Incoming(per_body, matrix, tuple(next(feed) for _ in speeds))

    def packed(self, message: Message) -> tuple[Number, ...]:
        """A message to the parent, in the order of its ports."""
        shape = self.shape
        n, s = len(shape.above.bodies), len(shape.above.speeds)
        if not n and not s:
            return (0.0,) * self.widths[0]
        place = {slot: i for i, slot in enumerate(shape.speed_slots)}
        out: list[Number] = []
        for body in range(n):
            mine = body == shape.body_slot
            out += flatten((message.mass, message.force) if mine else (_MASS, _FORCE))
            for k in range(s):
                out += flatten(message.columns[place[k]] if mine and k in place else _FORCE)
        for i in range(s):
            for j in range(i + 1):
                both = i in place and j in place
                a, b = (max(place[i], place[j]), min(place[i], place[j])) if both else (0, 0)
                out.append(message.matrix[a][b] if both else 0.0)
        out += [message.right[place[i]] if i in place else 0.0 for i in range(s)]
        return (*out, *(0.0,) * (self.widths[0] - len(out)))

    def from_parent(self, flat: Sequence[Number]) -> tuple[Motion, dict[int, Number]]:
        """From the parent's answer: the reference's motion, and the accelerations of the carried speeds."""
        shape = self.shape
        reference = Motion(Vector.zero(), -self.world.gravity)
        if shape.body_slot >= 0:
            a = [flat[6 * shape.body_slot + i] for i in range(6)]
            reference = Motion(Vector(*a[:3]), Vector(*a[3:]))
        start = 6 * len(shape.above.bodies)
        return reference, {v: flat[start + slot] for v, slot in zip(shape.carried, shape.speed_slots, strict=True)}

    def answer(self, reference: Motion, motions: Sequence[Motion | None], speeds: dict[int, Number]
               ) -> tuple[Number, ...]:
        """The answer to the children, in the order of the ports."""
        out: list[Number] = []
        for body in self.shape.ports.bodies:
            motion = reference if body < 0 else motions[body]
            out += flatten(motion)
        out += [speeds[v] for v in self.shape.ports.speeds]
        return (*out, *(0.0,) * (self.widths[1] - len(out)))


# -- shapes from a plan --------------------------------------------------------------------------------------------
class Local(NamedTuple):
    """A group's shape with the global numbers of its parts."""

    shape: GroupShape
    links: tuple[int, ...]
    closures: tuple[int, ...]
    witnesses: tuple[int, ...]


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
        out.append(Local(full, links, closures, index.witnesses))
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
    bound = {speeds[int(tree.u_start[links[m]]) + c] for s in closures for m in (*s.first_path, *s.second_path)
             for c in free_speeds(tree, links[m])} | {v for r in relations for v, _ in r.terms} | set(ports.speeds)
    own = [speeds[v] for v in group.independent]
    shape = GroupShape(
        parents=tuple(bodies[int(tree.parent[link])] for link in links),
        own=tuple(link in group.links for link in links),
        speeds=tuple(pairs), rows=row_place, dependent=tuple(speeds[v] for v in group.dependent), sizes=group.sizes,
        independent=tuple(v for v in own if v in bound), early=tuple(v for v in own if v not in bound),
        carried=tuple(speeds[v] for v in group.carried), closures=closures, relations=relations,
        grounded=reference == 0, ports=ports, above=Ports((), ()), body_slot=-1, speed_slots=())
    return shape, links, group.closures, _Index(bodies, speeds, witnesses)


def closure_shape(tree: Tree, k: int, bodies: dict[int, int]) -> ClosureShape:
    """A closure by local numbers; links that have none are left out of its paths."""
    c = tree.closures[k]
    left, right = ([bodies[link] for link in path if bodies.get(link, -1) >= 0]
                   for path in paths_between(tree, c.first, c.second))
    kind = c.kind.kind() if c.is_joint else (type(c.kind).__name__,)
    plain = tuple(bool((t == [[1, 0, 0], [0, 1, 0], [0, 0, 1]]).all()) for t in (c.first_turn, c.second_turn))
    return ClosureShape(kind, bodies[c.first], bodies[c.second], tuple(left), tuple(right), (plain[0], plain[1]))


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


# -- direct execution ----------------------------------------------------------------------------------------------
def message_widths(shapes: Sequence[Local]) -> tuple[int, int]:
    """The widest message and answer of all groups."""
    return (max((s.shape.ports.inward for s in shapes), default=0),
            max((s.shape.ports.outward for s in shapes), default=0))


def closure_numbers(tree: Tree, k: int, bind: Callable[[Any], Any], time: Number) -> ClosureNumbers:
    """The numbers of one closure at a time."""
    c = tree.closures[k]
    turns = [columns_of(bind(rows)) for rows in c.turns]
    return ClosureNumbers(turns[0], Vector(*bind(tuple(c.first_shift))), turns[1],
                          Vector(*bind(tuple(c.second_shift))), at_time(bind(tuple(c.kind.constants())), time))


def direct_groups(tree: Tree, inputs: tuple[str, ...], read: Callable[[str, int], Number], wrenches: bool,
                  shapes: Sequence[Local]) -> Direct:
    """Sweeps over groups that execute at once."""
    flat = direct(tree, inputs, read, wrenches)  # its views carry the springs between links
    bind = binder(tree, read)
    widths = message_widths(shapes)

    def make(item: int) -> GroupView:
        local = shapes[item - 1]
        return GroupView(local.shape, [flat.views[link] for link in local.links],
                         [closure_numbers(tree, k, bind, flat.world.time) for k in local.closures],
                         [tree.closures[k].kind for k in local.closures], flat.world, tree.plan.baumgarte, widths,
                         [flat.views[link] for link in local.witnesses])

    parent = [0, *(group.parent + 1 for group in tree.plan.groups)]
    return Direct(parent, make, GroupWorld(flat.world, widths), [0] * len(parent), [0] * len(parent))


def whole_machine(flat: LoopedDirect) -> GroupView:
    """The machine as one group in which every constraint is stated: all links are members, numbered from zero; all
    speeds, prescribed ones included, have their own numbers; nothing is stabilised."""
    tree, n = flat.tree, flat.tree.n
    bodies = {link: link - 1 for link in range(n + 1)}
    owner = {int(tree.u_start[link]) + c: (link - 1, c) for link in range(1, n + 1) for c in range(flat.widths[link])}
    starts = [0, *accumulate(c.rows for c in tree.closures)]
    closures = tuple(range(len(tree.closures)))
    constraints = tuple(range(starts[-1] + len(tree.relations)))
    every = Group(tuple(range(1, n + 1)), -1, 0, constraints, (), (), (), (), closures)
    rows, relations, witnesses = row_places(tree, starts, every, {v: v for v in owner})
    nothing = Ports((), ())
    shape = GroupShape(
        parents=tuple(bodies[int(tree.parent[link])] for link in range(1, n + 1)), own=(True,) * n,
        speeds=tuple(owner[v] for v in range(tree.nu)), rows=rows, dependent=(), sizes=(), independent=(), early=(),
        carried=(), closures=tuple(closure_shape(tree, k, bodies) for k in closures), relations=relations,
        grounded=True, ports=nothing, above=nothing, body_slot=-1, speed_slots=())
    return GroupView(shape, flat.views[1:], [closure_numbers(tree, k, flat.bind, flat.world.time) for k in closures],
                     [c.kind for c in tree.closures], flat.world, (0.0, 0.0), (0, 0),
                     [flat.views[link] for link in witnesses])


class GroupWorld(NamedTuple):
    """What all groups share."""

    world: World
    widths: tuple[int, int]


def closure_starts(function: Function, tree: Tree) -> list[int]:
    """Where the numbers of every closure begin in a result that has some for each, and where those of the last end."""
    return [0, *accumulate(c.rows if function.layout == "rows" else function.width for c in tree.closures)]


def group_couplers(tree: Tree, group: Group) -> list[int]:
    """The places of a group's couplers among all constraints."""
    first = sum(c.rows for c in tree.closures)
    return [r for r in group.rows if r >= first]


def place_groups(function: Function, tree: Tree, field: Field) -> list[Number]:
    """The entries of a result with a number, or two, per speed: groups keep those of their own links, in order; or
    with some per group."""
    if function.layout == "groups":
        return [x for kept in field[1:] for x in kept]
    size = function.size(tree)
    out: list[Number] = [0.0] * size
    if function.layout in ("rows", "closures"):
        starts = closure_starts(function, tree)
        for group, kept in zip(tree.plan.groups, field[1:], strict=True):
            places = [starts[k] + r for k in group.closures for r in range(starts[k + 1] - starts[k])]
            for place, x in zip((*places, *group_couplers(tree, group)), kept, strict=False):
                out[place] = x
        return out
    for group, kept in zip(tree.plan.groups, field[1:], strict=True):
        values = iter(kept)
        for first in range(0, size, tree.nu):
            for link in group.links:
                joint = tree.joints[link]
                assert joint is not None
                for i in range(joint.nu):
                    out[first + int(tree.u_start[link]) + i] = next(values)
    return out
