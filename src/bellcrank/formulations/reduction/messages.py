"""What groups of links tell each other in the coordinate reduction.

A group is a *link* of a tree, or the links of loops between their *base* and at most one body placed before, the
*virtual body*, which belongs to another group, the *host* (see `loops.common_base`). A host answers to its children for
the bodies that tree-like ones hang from, and, relative to the common base, for the virtual bodies of loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from bellcrank.formulations.kane import Known
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.group_shape import GroupShape
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Sweeps, flatten, rebuild
from bellcrank.spatial import ArticulatedInertia, Force, General, Matrix3, Motion, Symmetric3, Transform, Vector

__all__ = ["AXES", "BURDEN", "KNOWN", "MOTION", "SPEEDS", "Burden", "EdgeLayout", "HostBody", "Relative", "Virtual",
           "base_of", "packed", "to_children", "unpacked", "virtual_of", "width_of"]


class Relative(NamedTuple):
    """A body's place and motion relative to the base of its loop."""

    axes: General  #: in the base's axes
    origin: Vector  #: in the base's axes, from the first joint on the base: lever arms around a loop stay short
    omega: Vector  #: in its own axes, as all that follows
    velocity: Vector
    remainder: Motion

    def from_origin(self, origin: Vector) -> Relative:
        """The same with another origin."""
        return self._replace(origin=origin)

    @property
    def pose(self) -> Transform:
        """In the base, if origins are counted from that."""
        return Transform(self.axes, self.origin)


class HostBody(NamedTuple):
    """What a host says of a virtual body: all that is known from the state, and on a moving base also as seen from the
    ground."""

    relative: Relative
    known: Known | tuple[()]

    @property
    def seen_from_ground(self) -> Known:
        """Angular velocity and remainder; a base that is fixed sees what the ground does."""
        return self.known if isinstance(self.known, Known) else Known(self.relative.omega, self.relative.remainder)


class Burden(NamedTuple):
    """What is moved onto a body: inertia and the force it takes."""

    mass: ArticulatedInertia
    force: Force


class Virtual(NamedTuple):
    """What a loop moves onto its virtual body, and the rows that couple it to the base (none if that is fixed)."""

    own: Burden
    cross: tuple[Force, ...]


class EdgeLayout(NamedTuple):
    """What travels along an edge: one value for every body that tree-like children hang from, one for every virtual
    body."""

    body: Any
    host: Any
    fixed: Any  #: the same if the base is fixed


_AXES = General(Matrix3.zero())
_FORCE = Force.zero()
_BURDEN = Burden(ArticulatedInertia(Symmetric3.zero(), Matrix3.zero(), Symmetric3.zero()), _FORCE)
_RELATIVE = Relative(_AXES, Vector.zero(), Vector.zero(), Vector.zero(), Motion.zero())
_KNOWN = Known(Vector.zero(), Motion.zero())

#: layouts of the sweeps
AXES = EdgeLayout(_AXES, _AXES, _AXES)
SPEEDS = EdgeLayout((), _RELATIVE, _RELATIVE)
KNOWN = EdgeLayout(_KNOWN, HostBody(_RELATIVE, _KNOWN), HostBody(_RELATIVE, ()))
BURDEN = EdgeLayout(_BURDEN, Virtual(_BURDEN, (_FORCE,) * 6), Virtual(_BURDEN, ()))
MOTION = EdgeLayout(Motion.zero(), Motion.zero(), Motion.zero())


def views(groups: Sweeps) -> Iterable[GroupView]:
    """The groups' views: all of them, or one of each kind."""
    kinds = getattr(groups, "kinds", None)
    return [v for v in groups.views if v is not None] if kinds is None else [k.view for k in kinds]  # type: ignore


def width_of(layout: EdgeLayout, groups: Sweeps) -> int:
    """How many numbers travel along every edge."""
    found = 0
    for view in views(groups):
        _, body, _, host = _parts(layout, view.shape)
        found = max(found, len(view.shape.ports.bodies) * body + len(view.shape.hosts) * host)
    return found


def _parts(layout: EdgeLayout, shape: GroupShape) -> tuple[Any, int, Any, int]:
    host = layout.fixed if shape.grounded else layout.host
    return layout.body, _count(layout.body), host, _count(host)


def _count(like: Any) -> int:
    return len(list(flatten(like)))


def packed(layout: EdgeLayout, shape: GroupShape, bodies: int, width: int, by_body: dict[int, Any],
           by_host: dict[int, Any]) -> tuple[Number, ...]:
    """Values by their places as one row of numbers; `bodies`: how many places the bodies have."""
    _, body, _, host = _parts(layout, shape)
    out: list[Number] = [0.0] * width
    for i, value in by_body.items():
        out[i * body:(i + 1) * body] = flatten(value)
    for i, value in by_host.items():
        at = bodies * body + i * host
        out[at:at + host] = flatten(value)
    return tuple(out)


def unpacked(layout: EdgeLayout, shape: GroupShape, bodies: int, flat: Sequence[Number], body: int = -1, host: int = -1
             ) -> Any:
    """The value at one of the bodies' places, or at that of a virtual body."""
    body_like, n, host_like, m = _parts(layout, shape)
    if body >= 0:
        return rebuild(body_like, iter(flat[n * body:n * (body + 1)]))
    start = n * bodies + m * host
    return rebuild(host_like, iter(flat[start:start + m]))


def base_of(layout: EdgeLayout, group: GroupView, flat: Sequence[Number], ground: Any) -> Any:
    """The part of the parent's message that is about the group's base; `ground` if that is fixed."""
    shape = group.shape
    if shape.body_slot < 0:
        return ground
    return unpacked(layout, shape, len(shape.above.bodies), flat, body=shape.body_slot)


def virtual_of(layout: EdgeLayout, group: GroupView, flat: Sequence[Number]) -> Any:
    """The part that is about the group's virtual body, None if it has none."""
    shape = group.shape
    if shape.host_slot < 0:
        return None
    return unpacked(layout, shape, len(shape.above.bodies), flat, host=shape.host_slot)


def to_children(layout: EdgeLayout, group: GroupView, width: int, base: Any, members: dict[int, Any],
                hosted: dict[int, Any]) -> tuple[Number, ...]:
    """The message to the children: about members, the base, and virtual bodies."""
    ports = group.shape.ports.bodies
    return packed(layout, group.shape, len(ports), width,
                  {i: base if b < 0 else members[b] for i, b in enumerate(ports)},
                  {i: hosted[k] for i, k in enumerate(group.shape.hosts)})
