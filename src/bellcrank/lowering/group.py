"""What a step of the elimination sees of one group in a state: its links, constraints and messages of neighbours.

See `group_shape` for members, ports and local numbers, docs/explain/elimination.md for the method.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate, islice
from typing import Any, NamedTuple

from bellcrank.loops.plan import Group
from bellcrank.lowering.element_loads import columns_of
from bellcrank.lowering.function import Function
from bellcrank.lowering.group_shape import PASSING, GroupShape, Local, Ports, closure_shape, row_places, shared_columns
from bellcrank.lowering.link import Link, World
from bellcrank.lowering.loop_joints import LoopJointView
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.mechanism.constraint_rows import at_time
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Field, flatten, rebuild
from bellcrank.spatial import ArticulatedInertia, Force, Matrix3, Motion, Symmetric3, Vector
from bellcrank.topology.tree import Tree

__all__ = ["ClosureNumbers", "GroupView", "GroupWorld", "Message", "closure_numbers", "closure_starts",
           "direct_groups", "group_couplers", "message_widths", "place_groups", "whole_machine"]


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
                 witnesses: Sequence[Link] = (), joints: Sequence[LoopJointView] = ()) -> None:
        self.joints = list(joints)  #: loop joints
        self.shape, self.links, self.closures, self.kinds = shape, list(links), list(closures), list(kinds)
        self.witnesses = list(witnesses)  #: links whose coordinates couplers refer to
        self.world, self.baumgarte = world, baumgarte
        self.widths = widths  #: of messages and of answers, for all groups alike

    def at_speeds(self, speeds: Mapping[int, Number]) -> GroupView:
        """The same group with its local speeds as given; others, those of links that no constraint involves, and
        prescribed ones stay as they are."""
        shape = self.shape
        number = shape.numbers
        links = [link.with_speeds([speeds.get(number.get((k, c), PASSING), x)
                                   for c, x in enumerate(link.moving_speeds)]) for k, link in enumerate(self.links)]
        seen: dict[int, dict[int, Number]] = {}
        for relation in shape.relations:
            for v, place in relation.terms:
                witness, c, _ = relation.every[place]
                seen.setdefault(witness, {})[c] = speeds[v]
        witnesses = [link.with_speeds([seen.get(i, {}).get(c, x) for c, x in enumerate(link.u)])
                     for i, link in enumerate(self.witnesses)]
        return GroupView(shape, links, self.closures, self.kinds, self.world, self.baumgarte, self.widths, witnesses,
                         self.joints)

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


def direct_groups(flat: LoopedDirect, shapes: Sequence[Local]) -> Direct:
    """Sweeps over groups that execute at once; the links' views carry the springs between links."""
    tree, bind = flat.tree, flat.bind
    widths = message_widths(shapes)

    def make(item: int) -> GroupView:
        local = shapes[item - 1]
        return GroupView(local.shape.bound(bind), [flat.views[link] for link in local.links],
                         [closure_numbers(tree, k, bind, flat.world.time) for k in local.closures],
                         [tree.closures[k].kind for k in local.closures], flat.world, tree.plan.baumgarte, widths,
                         [flat.views[link] for link in local.witnesses], [flat.loop_joints[j] for j in local.joints])

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
        speeds=tuple(owner.get(v, (PASSING, v)) for v in range(tree.nu)), rows=rows, dependent=(), sizes=(),
        independent=(), early=(),
        carried=(), closures=tuple(closure_shape(tree, k, bodies) for k in closures), relations=relations,
        grounded=True, ports=nothing, above=nothing, body_slot=-1, speed_slots=(),
        shared=shared_columns(tree, range(1, n + 1), {v: v for v in range(tree.nu)}))
    numbers = [closure_numbers(tree, k, flat.bind, flat.world.time) for k in closures]
    return GroupView(shape.bound(flat.bind), flat.views[1:], numbers, [c.kind for c in tree.closures], flat.world,
                     (0.0, 0.0), (0, 0), [flat.views[link] for link in witnesses])


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
            for j in group.joints if function.keeps_loop_joints else ():
                own = tree.loop_joints[j]
                out[first + own.u_start:first + own.u_start + own.closure.kind.nu] = islice(values, own.closure.kind.nu)
    return out
