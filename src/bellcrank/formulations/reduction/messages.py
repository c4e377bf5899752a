"""A group of links in the coordinate reduction: which loop it closes, and its messages to parent and children.

A group is a *link* of a tree, a *ring* (the first loop on a base: all its links are its own), or an *ear* (a further
loop on the same base: its own links and, beyond the joint that closes it, a body that was placed before, the *virtual
body*). Rings and ears hang from their base, the group's reference. Groups that are none of these are what the paper
leaves open in 4.4.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bellcrank.errors import ModelError
from bellcrank.formulations.kane import Known
from bellcrank.lowering.group import PASSING, GroupShape, GroupView, shapes_of
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps, flatten, rebuild
from bellcrank.spatial import ArticulatedInertia, Force, General, Matrix3, Motion, Symmetric3, Vector
from bellcrank.topology.tree import Tree

__all__ = ["AXES", "BURDEN", "KNOWN", "MOTION", "Burden", "EdgeLayout", "Relative", "Role", "Virtual",
           "check_coverage", "from_parent", "packed", "role_of", "to_children", "unpacked", "width_of"]


class Relative(NamedTuple):
    """A body's place and motion relative to the base of its loop."""

    axes: General  #: in the base's axes
    origin: Vector  #: in the base's axes, from the first joint on the base: lever arms around a loop stay short
    omega: Vector  #: in its own axes, as all that follows
    velocity: Vector
    remainder: Motion

    def from_origin(self, origin: Vector) -> Relative:
        return self._replace(origin=origin)


class Burden(NamedTuple):
    """What is moved onto a body: inertia and the force it takes."""

    mass: ArticulatedInertia
    force: Force


class Virtual(NamedTuple):
    """What a loop moves onto its virtual body, and the rows that couple it to the base (none if that is fixed)."""

    own: Burden
    cross: tuple[Force, ...]


class EdgeLayout(NamedTuple):
    """What travels along an edge: one value for every body that tree-like children hang from, one for every slot."""

    body: Any
    slot: Any
    fixed: Any  #: the same if the base is fixed


_AXES = General(Matrix3.zero())
_FORCE = Force.zero()
_BURDEN = Burden(ArticulatedInertia(Symmetric3.zero(), Matrix3.zero(), Symmetric3.zero()), _FORCE)
_RELATIVE = Relative(_AXES, Vector.zero(), Vector.zero(), Vector.zero(), Motion.zero())

#: layouts of the sweeps
AXES = EdgeLayout(_AXES, (), ())
KNOWN = EdgeLayout(Known(Vector.zero(), Motion.zero()), _RELATIVE, _RELATIVE)
BURDEN = EdgeLayout(_BURDEN, Virtual(_BURDEN, (_FORCE,) * 6), Virtual(_BURDEN, ()))
MOTION = EdgeLayout(Motion.zero(), Motion.zero(), Motion.zero())


class Role(NamedTuple):
    """What a group is, and where its neighbours' values stand."""

    own: tuple[int, ...]  #: its own members, parents first
    foreign: bool  #: it is an ear: beyond its closing joint lies the virtual body
    virtual_first: bool  #: the virtual body is the first side of the closing joint
    slots: tuple[tuple[int, int], ...]  #: (slot, member) of the bodies that ears may close on
    slot: int  #: where its own virtual body stands among the parent's slots


def role_of(shape: GroupShape) -> Role:
    """The role of a group; raises if the paper has none for it."""
    path = _checked(shape)
    own = tuple(k for k, mine in enumerate(shape.own) if mine)
    first = bool(path) and shape.closures[0].first in path
    slot = _slot_above(shape, shape.closures[0].first if first else shape.closures[0].second) if path else -1
    return Role(own, bool(path), first, _slots(shape), slot)


def check_coverage(tree: Tree) -> None:
    """Refuse a machine, with its plan, that the paper does not cover."""
    shapes = [local.shape for local in shapes_of(tree)]
    for shape in shapes:
        _checked(shape)  # before neighbours are looked at: the reasons are clearer
    for shape in shapes:
        role_of(shape)


def _checked(shape: GroupShape) -> tuple[int, ...]:
    """The members between the base and the virtual body, if the group is one that the paper covers."""
    if shape.relations:
        raise _unsupported("a coupler binds coordinates without closing a loop of joints")
    if len(shape.closures) > 1:
        raise _unsupported(f"{len(shape.closures)} loops depend on each other: the last coordinates around each do not "
                           "follow from the loops before it")
    if any(up >= 0 and mine and not shape.own[up] for up, mine in zip(shape.parents, shape.own, strict=True)):
        raise _unsupported("a loop starts at a body of another loop, so that they have no common base body (or a joint "
                           "was cut by hand)")
    path = tuple(k for k, mine in enumerate(shape.own) if not mine)
    closure = shape.closures[0] if shape.closures else None
    paths = (closure.first_path, closure.second_path) if closure else ((), ())
    if any(b >= 0 and not shape.own[b] for b in shape.ports.bodies) or any(
            ends and shape.parents[ends[-1]] >= 0 for ends in paths):
        raise _unsupported("two coupled loops have different base bodies")
    if path and set(path) not in (set(paths[0]), set(paths[1])):
        raise _unsupported("a loop runs through several loops and has no base body in common with them (or a joint was "
                           "cut by hand)")
    return path


def _unsupported(reason: str) -> ModelError:
    return ModelError(f"recursive coordinate reduction (Anderson and Critchley 2003, 4.4) does not cover this machine: "
                      f"{reason}; use method='elimination'")


def _slot_above(shape: GroupShape, end: int) -> int:
    """The parent's slot of the virtual body: counted from the last of the speeds that its children depend on."""
    mine = [v for v, (member, _) in enumerate(shape.speeds) if member == end]
    if not mine or not set(mine) <= set(shape.carried):
        raise _unsupported("a loop closes on a body whose joint is prescribed")
    if not shape.grounded and shape.above.bodies[shape.body_slot] >= 0:
        raise _unsupported("two coupled loops have different base bodies")
    return len(shape.above.speeds) - 1 - max(shape.speed_slots[shape.carried.index(v)] for v in mine)


def _slots(shape: GroupShape) -> tuple[tuple[int, int], ...]:
    """One slot for every speed that children depend on; a member stands at that of its last speed."""
    n = len(shape.ports.speeds)
    found: dict[int, int] = {}
    for i, v in enumerate(shape.ports.speeds):
        member = shape.speeds[v][0]
        if member == PASSING or not shape.own[member]:
            raise _unsupported("a loop closes on a body that is not of the loop it is coupled with")
        found[member] = n - 1 - i
    return tuple((slot, member) for member, slot in found.items())


# -- messages ------------------------------------------------------------------------------------------------------
def views(groups: Sweeps) -> Iterable[GroupView]:
    """The groups' views: all of them, or one of each kind."""
    kinds = getattr(groups, "kinds", None)
    return [v for v in groups.views if v is not None] if kinds is None else [k.view for k in kinds]  # type: ignore


def width_of(layout: EdgeLayout, groups: Sweeps) -> int:
    """How many numbers travel along every edge."""
    found = 0
    seen = views(groups)
    for view in seen:
        _checked(view.shape)  # before neighbours are looked at: the reasons are clearer
    for view in seen:
        _, body, _, slot = _parts(layout, view.shape)
        slots = 1 + max((slot for slot, _ in role_of(view.shape).slots), default=-1)
        found = max(found, len(view.shape.ports.bodies) * body + slots * slot)
    return found


def _parts(layout: EdgeLayout, shape: GroupShape) -> tuple[Any, int, Any, int]:
    slot = layout.fixed if shape.grounded else layout.slot
    return layout.body, _count(layout.body), slot, _count(slot)


def _count(like: Any) -> int:
    return len(list(flatten(like)))


def packed(layout: EdgeLayout, shape: GroupShape, bodies: int, width: int, by_body: dict[int, Any],
           by_slot: dict[int, Any]) -> tuple[Number, ...]:
    """Values by their places as one row of numbers; `bodies`: how many places the bodies have."""
    _, body, _, slot = _parts(layout, shape)
    out: list[Number] = [0.0] * width
    for i, value in by_body.items():
        out[i * body:(i + 1) * body] = flatten(value)
    for i, value in by_slot.items():
        at = bodies * body + i * slot
        out[at:at + slot] = flatten(value)
    return tuple(out)


def unpacked(layout: EdgeLayout, shape: GroupShape, bodies: int, flat: Sequence[Number], body: int = -1, slot: int = -1
             ) -> Any:
    """The value at one of the bodies' places, or at a slot."""
    body_like, n, slot_like, m = _parts(layout, shape)
    if body >= 0:
        return rebuild(body_like, iter(flat[n * body:n * (body + 1)]))
    start = n * bodies + m * slot
    return rebuild(slot_like, iter(flat[start:start + m]))


def from_parent(layout: EdgeLayout, group: GroupView, flat: Sequence[Number]) -> Any:
    """The part of the parent's message that is about the group's reference."""
    shape = group.shape
    return unpacked(layout, shape, len(shape.above.bodies), flat, body=shape.body_slot)


def to_children(layout: EdgeLayout, group: GroupView, role: Role, width: int, reference: Any, members: dict[int, Any],
                at_slots: dict[int, Any]) -> tuple[Number, ...]:
    """The message to the children: about members, the reference, and members that ears close on."""
    ports = group.shape.ports.bodies
    return packed(layout, group.shape, len(ports), width,
                  {i: reference if b < 0 else members[b] for i, b in enumerate(ports)},
                  {slot: at_slots[member] for slot, member in role.slots})
