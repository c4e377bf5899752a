"""Constraints of loops as loads and as measurements: what a multiplier does to the links, what a row reads off them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.lowering.looped import LoopRow
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Direct, Field
from bellcrank.spatial import Force, Motion

__all__ = ["Load", "classical", "row_loads", "row_values"]


class Load(NamedTuple):
    """What acts on a link (link axes, about its origin), and along each speed of its joint."""

    wrench: Force
    joint: tuple[Number, ...]


def row_loads(machine: Direct, rows: Sequence[LoopRow], factors: Sequence[Number]) -> Field:
    """The transposed Jacobian times multipliers, as loads on the links: no joint is passed here. Cost: O(n + m)."""
    wrench = [Force.zero() for _ in machine.parent]
    joint: list[list[Number]] = [[0.0] * width for width in machine.widths]
    for row, factor in zip(rows, factors, strict=True):
        for link, w in row.ends:
            wrench[link] = wrench[link] + w * factor
        for link, i, k in row.joints:
            joint[link][i] = joint[link][i] + k * factor
    return [Load(w, tuple(t)) for w, t in zip(wrench, joint, strict=True)]


def row_values(rows: Sequence[LoopRow], motion: Field, joint: Field) -> list[Number]:
    """What the rows read off motions of links and of joints, one number each."""
    out: list[Number] = []
    for row in rows:
        value: Number = 0.0
        for link, w in row.ends:
            value = value + motion[link].dot(w)
        for link, i, k in row.joints:
            value = value + joint[link][i] * k
        out.append(value)
    return out


def classical(velocity: Motion, rate: Motion) -> Motion:
    """Acceleration of a link's origin from the rate of its velocity's components in link axes."""
    return Motion(rate.angular, rate.linear + velocity.angular.cross(velocity.linear))
