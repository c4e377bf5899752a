"""Where everything in an SDF file lies: links, joints, frames and models are nodes of one tree of poses."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.io.common.readings import Turns, unit
from bellcrank.io.common.xml import XmlElement, clipped, near
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose

__all__ = ["FrameNode", "Poses", "Scope", "attach", "boolean", "number_in", "place", "relative", "text_in"]

_SHORT = 16
#: poses between models and their placement frames, all together
_LONG = 20_000


@dataclass(eq=False, slots=True)
class FrameNode:
    """Something with a place: what it is measured from, and (after `attach`) the link it moves with."""

    kind: str  #: world, model, link, joint or frame
    name: str  #: as it is called in the mechanism
    element: XmlElement
    scope: Scope
    pose: Pose
    named_at: XmlElement  #: where the file says what `pose` is given in
    base_name: str = ""  #: the frame that `pose` is given in, by its name
    holder_name: str = ""  #: what it is attached to, by its name
    base: FrameNode | None = None
    holder: FrameNode | None = None  #: the link (or world) it moves with
    depth: int = -1
    absolute: Pose = field(default_factory=Pose)


@dataclass(eq=False, slots=True)
class Scope:
    """The names inside a world or a model."""

    element: XmlElement
    prefix: str
    version: tuple[int, int]
    outer: Scope | None
    static: bool = False
    source: str = ""
    names: dict[str, FrameNode] = field(default_factory=dict)
    nested: dict[str, Scope] = field(default_factory=dict)
    model: FrameNode = None  # type: ignore[assignment]
    world: FrameNode = None  # type: ignore[assignment]
    placement: str = ""
    self_collide: bool = False  #: whether links of the model touch each other, unless they say otherwise
    merged: bool = False  #: whether its links belong to the model around

    @property
    def owner(self) -> Scope:
        """The model that links belong to."""
        return self.outer.owner if self.merged and self.outer is not None else self

    def full(self, name: str) -> str:
        return f"{self.prefix}::{name}" if self.prefix else name

    def get(self, name: str) -> FrameNode | None:
        """The node that a name means here, if there is one; ``a::b`` is b inside the model a."""
        scope, rest = self, name
        while True:
            if rest == "__model__":
                return scope.model
            if rest in scope.names:
                return scope.names[rest]
            if rest in ("world", "__root__") and scope is self:
                return scope.world
            first, colon, behind = rest.partition("::")
            if not colon or first not in scope.nested:
                return None
            scope, rest = scope.nested[first], behind

    def find(self, name: str, at: XmlElement) -> FrameNode:
        """The node that a name means here."""
        found = self.get(name)
        if found is None:
            raise at.error(f"there is no link, joint, frame or model {clipped(name)!r} here"
                           + near(name, {**self.names, **self.nested}))
        return found


def place(nodes: Iterable[FrameNode], scopes: Iterable[Scope]) -> None:
    """Find out what every node is measured from, and where it is at the start. Cost: linear."""
    everything = list(nodes)
    for node in everything:
        # a model is placed among its neighbours, everything else among the members of its model
        around = node.scope.outer if node.kind == "model" else node.scope
        if around is not None and node.kind != "world":
            node.base = around.find(node.base_name, node.named_at)
    steps = 0
    for scope in reversed(list(scopes)):  # inner models first
        if scope.placement:
            pose, walked = _above(scope.find(scope.placement, scope.element), scope.model, _LONG - steps)
            scope.model.pose = scope.model.pose @ pose.inverse()
            steps += walked
    for node in everything:
        _settle(node)


def _above(node: FrameNode, model: FrameNode, most: int) -> tuple[Pose, int]:
    """The pose of a placement frame in its model, and the number of poses it is made of, `most` of them."""
    pose, here, steps = Pose(), node, 0
    while here is not model:
        if here.base is None or steps > most:
            raise model.element.error(f"the placement frame {clipped(node.name)!r} does not lie in the model, or there "
                                      f"are more than {_LONG} frames on the way")
        pose, here, steps = here.pose @ pose, here.base, steps + 1
    return pose, steps


def _settle(node: FrameNode) -> None:
    chain: list[FrameNode] = []
    seen: set[int] = set()
    here: FrameNode | None = node
    while here is not None and here.depth < 0:
        if id(here) in seen:
            raise node.element.error("its pose is given relative to itself, by way of "
                                     + " and ".join(repr(clipped(n.name)) for n in chain[:5]))
        seen.add(id(here))
        chain.append(here)
        here = here.base
    for here in reversed(chain):
        if here.base is None:
            here.depth, here.absolute = 0, here.pose
        else:
            here.depth = here.base.depth + 1
            try:
                here.absolute = here.base.absolute @ here.pose
            except ModelError as error:
                raise here.element.error(str(error)) from None


def attach(nodes: Iterable[FrameNode]) -> None:
    """Find out which link (or the world) every node moves with. Cost: linear."""
    for node in nodes:
        chain: list[FrameNode] = []
        seen: set[int] = set()
        here = node
        while here.holder is None:
            if id(here) in seen:
                raise node.element.error("is attached to itself, by way of "
                                         + " and ".join(repr(clipped(n.name)) for n in chain[:5]))
            seen.add(id(here))
            chain.append(here)
            if here.kind in ("link", "world"):
                here.holder = here
            elif here.kind == "model":
                here = _canonical(here)
            else:
                here = here.scope.find(here.holder_name, here.element)
        for passed in chain:
            passed.holder = here.holder


def _canonical(model: FrameNode) -> FrameNode:
    scope = model.scope
    if scope.static:
        return scope.world
    if model.holder_name:
        return scope.find(model.holder_name, model.element)
    for node in scope.names.values():
        if node.kind == "link":
            return node
    for inner in scope.nested.values():
        return inner.model
    raise model.element.error("has no <link>")


def relative(outer: FrameNode, inner: FrameNode) -> Pose:
    """The pose of a node in another at the start.

    Near ones by way of their common base, so that what is written relative to each other stays as written.
    """
    ups: list[FrameNode] = []
    downs: list[FrameNode] = []
    a, b = outer, inner
    while a is not b and len(ups) + len(downs) <= _SHORT:
        if a.depth >= b.depth and a.base is not None:
            ups.append(a)
            a = a.base
        elif b.base is not None:
            downs.append(b)
            b = b.base
        else:
            break
    if a is not b:
        return _clean(outer.absolute.inverse() @ inner.absolute)
    if not ups and not downs:
        return Pose()
    back = forth = None
    for node in ups:
        back = node.pose if back is None else node.pose @ back
    for node in downs:
        forth = node.pose if forth is None else node.pose @ forth
    if back is None:
        assert forth is not None
        return forth if len(downs) == 1 else _clean(forth)
    undone = back.inverse()
    return _clean(undone if forth is None else undone @ forth)


def _clean(pose: Pose) -> Pose:
    """Without the last bits that products of rotations leave on zeros and ones."""
    rows = np.array(pose.rows)
    nearest = np.round(rows)
    rows = np.where(np.abs(rows - nearest) < 1e-15, nearest, rows)
    if tuple(rows) == IDENTITY_ROWS:
        return Pose(pose.position)
    return Pose(pose.position, rows.reshape(3, 3))


# -- values in SDF files: numbers, truth values and poses in the text of elements -------------------
#: limits from here on stand for none
_UNLIMITED = 1e16
_TRUE, _FALSE = ("true", "1"), ("false", "0")


def number_in(element: XmlElement | None, tag: str, default: float, *, infinite: bool = False) -> float:
    """The number in the child called `tag`; `infinite` lets inf pass, and 1e16 and more stand for it."""
    child = None if element is None else element.first(tag)
    if child is None or not child.text:
        return default
    value = child.text_number(infinite=infinite)
    return math.copysign(math.inf, value) if infinite and abs(value) >= _UNLIMITED else value


def boolean(element: XmlElement, text: str) -> bool:
    """A truth value as SDF writes it."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise element.error(f"{clipped(text)!r} is neither true nor false")


def text_in(element: XmlElement, tag: str) -> str:
    """The text of the child called `tag`, which has to be there and must not be blank."""
    child = element.only(tag)
    if not child.text:
        raise child.error("is blank")
    return child.text


class Poses:
    """Reads <pose> elements."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def __call__(self, element: XmlElement | None) -> Pose:
        if element is None or not element.text:
            return Pose()
        kind = element.attributes.get("rotation_format", "euler_rpy").strip()
        degrees = "degrees" in element.attributes and boolean(element, element.attributes["degrees"])
        if kind == "quat_xyzw":
            if degrees:
                raise element.error("has both degrees and a quaternion; a quaternion has no angles")
            *at, x, y, z, w = element.text_numbers(7)
            if x == y == z == w == 0.0:
                raise element.error("the quaternion is zero and gives no direction")
            turn = unit((w, x, y, z))
            return Pose(at) if turn[1:] == (0.0, 0.0, 0.0) else Pose(at, turn)
        if kind != "euler_rpy":
            raise element.error(f"the rotation_format {clipped(kind)!r} is unknown; SDF has euler_rpy and quat_xyzw")
        *at, roll, pitch, yaw = element.text_numbers(6)
        angles = (roll, pitch, yaw)
        return self.turns.pose(at, [math.radians(a) for a in angles] if degrees else angles)
