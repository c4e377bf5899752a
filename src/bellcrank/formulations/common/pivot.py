"""Elimination of one joint speed (or acceleration) from an articulated inertia, shared by the recursions.

In all sources a joint's row reads ``column . (mass motion + force) = given``, with the motion made of what the
parent imposes plus the column times the unknown; a rotor on the joint (its armature) adds its inertia times the
unknown. Solving it for the unknown and substituting back leaves an inertia and a force without the joint.
Columns of one joint are eliminated one after another, which is an L D L^T factorisation of its joint-space block.
"""

from __future__ import annotations

from typing import NamedTuple

from bellcrank.scalar.graph import Number, is_zero
from bellcrank.spatial import ArticulatedInertia, Force, Motion, unit_index

__all__ = ["Pivot", "absent", "eliminate", "solve"]


class Pivot(NamedTuple):
    """One eliminated unknown: ``free - gain . motion``."""

    gain: Force
    free: Number

    def with_free(self, free: Number) -> Pivot:
        return self._replace(free=free)


def absent(armature: Number) -> bool:
    """Whether a joint speed has no rotor, known before any state is."""
    return is_zero(armature)


def eliminate(mass: ArticulatedInertia, force: Force, column: Motion, given: Number, armature: Number
              ) -> tuple[ArticulatedInertia, Force, Pivot]:
    """Solve one unknown from its row and remove it from inertia and force."""
    m21 = mass @ column
    inverse = 1.0 / (column.dot(m21) + armature)
    gain = m21 * inverse
    rest = given - column.dot(force)
    lower = force + gain * rest
    if not absent(armature):  # the rotor takes its share, and resists when the joint is all that moves
        return mass.minus(m21, gain), lower, Pivot(gain, inverse * rest)
    k = unit_index(column)
    if k is not None:  # exactly: the gain on itself is one, and what passes the joint is what was given
        gain, lower = gain.with_entry(k, 1.0), lower.with_entry(k, given)
    return mass.eliminated(column, m21, gain), lower, Pivot(gain, inverse * rest)


def solve(motion: Motion, columns: tuple[Motion, ...], prescribed: tuple[bool, ...], pivots: tuple[Pivot, ...],
          values: list[Number]) -> tuple[Motion, list[Number]]:
    """Back substitution at one joint: the unknowns, last eliminated first, and the motion they add up to.

    `values` holds the prescribed ones; the motion given includes their effect.
    """
    free = [i for i, known in enumerate(prescribed) if not known]
    for i, pivot in zip(reversed(free), reversed(pivots), strict=True):
        values[i] = pivot.free - motion.dot(pivot.gain)
        motion = motion + columns[i] * values[i]
    return motion, values
