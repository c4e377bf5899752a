"""What the multiplier methods share: constraints as unit loads on links, and unit loads beside an elimination.

A constraint's covector on accelerations is also the wrench that a unit of its multiplier exerts: M udot = tau - h +
J^T lambda. A sweep carries one load per constraint; loads that do not reach a link are exact zeros there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from bellcrank.formulations.common.pivot import Pivot, absent, eliminate
from bellcrank.lowering.looped import LoopedDirect, LoopRow
from bellcrank.scalar.graph import Number, is_zero
from bellcrank.schedule.sweeps import Field, flatten
from bellcrank.spatial import ArticulatedInertia, Force, Motion, Vector, unit_index

__all__ = [
    "LoadShare",
    "Triangle",
    "UnitLoad",
    "added_products",
    "eliminate_loaded",
    "gamma_with_gravity",
    "idle",
    "triangle",
    "unit_loads",
]

#: the lower half of a symmetric matrix, row by row
Triangle = tuple[tuple[Number, ...], ...]


class UnitLoad(NamedTuple):
    """One constraint at one link: what a unit of its multiplier exerts there, and what velocities add to its sum."""

    load: Force
    joint: tuple[Number, ...]
    bias: Number

    def at(self, load: Force, convective: Vector) -> UnitLoad:
        """The same at another point, whose acceleration lacks the part `convective` of the old point's."""
        return UnitLoad(load, self.joint, self.bias + convective.dot(load.force))


class LoadShare(NamedTuple):
    """What the unit loads contribute to one eliminated unknown: inverse * rest for each constraint."""

    inverse: Number
    rests: tuple[Number, ...]

    def under(self, multipliers: Sequence[Number]) -> Number:
        """Their joint contribution."""
        total: Number = 0.0
        for rest, multiplier in zip(self.rests, multipliers, strict=True):
            total = total + rest * multiplier
        return self.inverse * total


def idle(value: object) -> bool:
    """Whether all numbers of a nested tuple are exact zeros, known before any state is."""
    return all(is_zero(x) for x in flatten(value))


def unit_loads(tree: LoopedDirect, rows: Sequence[LoopRow]) -> Field:
    """For every link one unit load per constraint, in link axes about the link's origin."""
    loads = [[Force.zero() for _ in rows] for _ in tree.parent]
    joints: list[list[list[Number]]] = [[[0.0] * width for _ in rows] for width in tree.widths]
    for c, row in enumerate(rows):
        for link, covector in row.ends:
            loads[link][c] = loads[link][c] + covector
        for link, i, factor in row.joints:
            joints[link][c][i] = joints[link][c][i] + factor
    return [tuple(UnitLoad(load, tuple(joint), 0.0) for load, joint in zip(*own, strict=True))
            for own in zip(loads, joints, strict=True)]


def gamma_with_gravity(tree: LoopedDirect, row: LoopRow) -> Number:
    """A constraint's right hand side when the ground accelerates upward in place of gravity.

    All links then gain the same acceleration. A constraint between two links stays as it is; one between a link
    and the ground, whose row lacks the ground's end, does.
    """
    if len(row.ends) != 1:
        return row.gamma
    (link, covector), = row.ends
    return row.gamma - tree.moving[link].axes.apply(covector.force).dot(tree.world.gravity)


def triangle(n: int) -> Triangle:
    """The lower half of a zero matrix."""
    return tuple((0.0,) * (i + 1) for i in range(n))


def added_products(matrix: Triangle, share: LoadShare) -> Triangle:
    """The matrix plus rests * inverse * rests^T, lower half."""
    scaled = [0.0 if idle(rest) else rest * share.inverse for rest in share.rests]
    return tuple(row if idle(rest) else tuple(entry if idle(x) else entry + rest * x
                                              for entry, x in zip(row, scaled[:i + 1], strict=True))
                 for i, (row, rest) in enumerate(zip(matrix, share.rests, strict=True)))


def eliminate_loaded(mass: ArticulatedInertia, force: Force, loads: Sequence[Force], column: Motion, given: Number,
                     joint_loads: Sequence[Number], armature: Number
                     ) -> tuple[ArticulatedInertia, Force, tuple[Force, ...], Pivot, LoadShare]:
    """`eliminate` with unit loads (of the sign of applied forces) beside the force.

    The unknown is ``pivot.free + share.under(multipliers) - pivot.gain . motion``.
    """
    inverse = 1.0 / (column.dot(mass @ column) + armature)
    mass, force, pivot = eliminate(mass, force, column, given, armature)
    rests = tuple(own if idle(load) else column.dot(load) + own for load, own in zip(loads, joint_loads, strict=True))
    k = unit_index(column) if absent(armature) else None
    passed = []
    for load, rest, own in zip(loads, rests, joint_loads, strict=True):
        if not idle(rest):
            load = load - pivot.gain * rest
            if k is not None:  # exactly: what passes the joint is what acts on it
                load = load.with_entry(k, -own)
        passed.append(load)
    return mass, force, tuple(passed), pivot, LoadShare(inverse, rests)
