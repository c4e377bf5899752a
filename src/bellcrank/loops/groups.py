"""How a machine with loops is taken apart: groups of links, the speeds each one solves for, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["Group", "LoopPlan", "PlanKey"]


@dataclass(frozen=True)
class Group:
    """Links that are eliminated together: one link of a tree, or the links of an ear with its closures.

    Groups are numbered so that parents precede children. All numbers of links, rows and speeds are global.
    """

    links: tuple[int, ...]  #: ascending: parents first
    parent: int  #: the group that hears from it, -1 for none
    reference: int  #: the link it finally acts on
    rows: tuple[int, ...]  #: constraints solved here, in the order of their pivots
    dependent: tuple[int, ...]  #: the speed each row is solved for
    sizes: tuple[float, ...]  #: how large each pivot was when the plan was made
    independent: tuple[int, ...]  #: own speeds left to the dynamics
    carried: tuple[int, ...]  #: speeds of groups further in that its constraints involve
    closures: tuple[int, ...]  #: closures that have rows here
    #: the link of another group that it hangs from or closes on, besides its reference; see `loops.common_base`
    virtual: int = -1


class PlanKey:
    """What tells plans apart: all that the code made for a plan depends on. Hashed once, compared as a whole."""

    __slots__ = ("_hash", "_parts")

    def __init__(self, *parts: object) -> None:
        self._parts, self._hash = parts, hash(parts)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, PlanKey) and self._hash == other._hash
                                 and self._parts == other._parts)


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """The groups of a machine, and which of its constraints are independent. Equal `key`s mean the same code."""

    groups: tuple[Group, ...]
    kept: tuple[int, ...]  #: independent constraints
    redundant: tuple[int, ...]  #: constraints that follow from the others
    independent: tuple[int, ...]  #: speeds that remain free
    smallest: float = 1.0  #: the smallest pivot met when the plan was made, relative to its row
    baumgarte: tuple[float, float] = field(default=(0.0, 0.0))
    #: for each independent constraint, what its compliance must exceed: below, it vanishes in this position
    floors: tuple[float, ...] = ()

    @cached_property
    def key(self) -> PlanKey:
        """What tells plans apart."""
        return PlanKey(self.groups, self.kept, self.baumgarte, self.floors)
