"""Which shapes may touch as far as files and users say, and with what friction."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from bellcrank.mechanism.geometry.placed_shape import PlacedShape
from bellcrank.mechanism.joints.weld import Weld
from bellcrank.mechanism.parts import Connection

__all__ = ["ContactRule", "friction_of_pair", "meant_to_touch", "neighboring", "rigid_groups"]


@dataclass(frozen=True, slots=True)
class ContactRule:
    """What `Mechanism.add_contacts` does with a pair, two shapes or two bodies by their names: whether it is wanted at
    all, and its friction (None: that of the shapes)."""

    first: str
    second: str
    touch: bool = True
    friction: float | None = None

    @property
    def name(self) -> str:
        """Both names, in the order of the alphabet."""
        return ", ".join(sorted((self.first, self.second)))


def meant_to_touch(one: PlacedShape, other: PlacedShape) -> bool:
    """Whether the groups of two shapes let them touch: what one is must be among what the other touches."""
    return bool(one.groups[0] & other.groups[1] or other.groups[0] & one.groups[1])


def friction_of_pair(one: PlacedShape, other: PlacedShape, larger: bool) -> float | None:
    """The smaller (or larger) friction of two shapes, or that of the one that has some."""
    known = [s.friction for s in (one, other) if s.friction is not None]
    if not known:
        return None
    return max(known) if larger else min(known)


def rigid_groups(bodies: int, joints: Iterable[Connection]) -> list[int]:
    """The number of the first body that each is welded to, itself if none."""
    group = list(range(bodies))

    def root(i: int) -> int:
        while group[i] != i:
            i = group[i]
        return i

    for c in joints:
        if isinstance(c.joint, Weld):
            a, b = sorted((root(c.parent), root(c.child)))
            group[b] = a
    return [root(i) for i in range(bodies)]


def neighboring(groups: list[int], joints: Iterable[Connection], carriers: Collection[int] = ()
                ) -> set[frozenset[int]]:
    """Pairs of bodies that a joint connects, and of groups that move; the ground itself has no neighbors. `carriers`
    are bodies that only carry axes, such as those of a hip with three of them: what they connect is connected."""
    beside: dict[int, set[int]] = {}
    for c in joints:
        if c.parent and c.child:
            beside.setdefault(c.parent, set()).add(c.child)
            beside.setdefault(c.child, set()).add(c.parent)
    found = set()
    for body in beside:
        seen, ahead = {body}, [body]
        while ahead:
            for other in beside[ahead.pop()] - seen:
                seen.add(other)
                found.add(frozenset((body, other)))
                if groups[body] and groups[other]:
                    found.add(frozenset((groups[body], groups[other])))
                if other in carriers:
                    ahead.append(other)
    return found
