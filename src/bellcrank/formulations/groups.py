"""How a machine with loops is taken apart: groups of links, the speeds each one solves for, and in which order."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

__all__ = ["Group", "LoopPlan"]


@dataclass(frozen=True)
class Group:
    """Links that are eliminated together: one link of a tree, or the links of an ear with its closures.

    Groups are numbered so that parents precede children. All numbers of links, rows and speeds are global.
    """

    links: tuple[int, ...]  #: ascending: parents first
    parent: int  #: the group that hears from it, -1 for none
    reference: int  #: the link it finally acts on
    rows: tuple[int, ...]  #: conditions solved here, in the order of their pivots
    dependent: tuple[int, ...]  #: the speed each row is solved for
    sizes: tuple[float, ...]  #: how large each pivot was when the plan was made
    independent: tuple[int, ...]  #: own speeds left to the dynamics
    carried: tuple[int, ...]  #: speeds of groups further in that its conditions involve
    closures: tuple[int, ...]  #: closures that have rows here


@dataclass(frozen=True, eq=False)
class LoopPlan:
    """The groups of a machine, and what its conditions amount to. Plans with the same `key` give the same code."""

    groups: tuple[Group, ...]
    kept: tuple[int, ...]  #: conditions that count
    redundant: tuple[int, ...]  #: conditions that say nothing new
    independent: tuple[int, ...]  #: speeds that remain free
    smallest: float = 1.0  #: the smallest pivot met when the plan was made, relative to its row
    baumgarte: tuple[float, float] = field(default=(0.0, 0.0))

    @cached_property
    def key(self) -> int:
        """What tells plans apart."""
        return hash((self.groups, self.kept, self.baumgarte))
