"""Rotors (armatures) in matrices that are made along the paths to the root: on the diagonal, where a path begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.spatial import Force

__all__ = ["WithRotors", "past_rotors", "rotors_on_diagonal"]


class WithRotors(NamedTuple):
    """A path's force, and what its row has beyond it at the link where it begins."""

    force: Force
    extra: tuple[Number, ...]

    @staticmethod
    def padded(force: Force, extra: Sequence[Number]) -> WithRotors:
        """With as many entries as any joint has speeds: what travels must be alike for all links."""
        return WithRotors(force, (*extra, *(0.0,) * (6 - len(extra))))


def rotors_on_diagonal(link: Link, forces: Sequence[Force]) -> tuple[WithRotors, ...]:
    """The forces with which the paths of a link's columns begin, and what the rotors add to the diagonal."""
    return tuple(WithRotors.padded(force, [a if i == j else 0.0 for j, a in enumerate(link.armature)])
                 for i, force in enumerate(forces))


def past_rotors(step: Callable[..., tuple[Force, tuple[Number, ...]]]
                ) -> Callable[..., tuple[WithRotors, tuple[Number, ...]]]:
    """The step of a path whose first row has more."""
    def passed(link: Link, carried: WithRotors, own: Any) -> tuple[WithRotors, tuple[Number, ...]]:
        force, row = step(link, carried.force, own)
        return WithRotors.padded(force, ()), tuple(x + more for x, more in zip(row, carried.extra, strict=False))

    return passed
