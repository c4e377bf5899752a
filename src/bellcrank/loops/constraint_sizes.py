"""Sizes of constraints and coordinates: by these, values and steps of loops become shares of the machine's own size.

A constraint on lengths is measured by the machine's typical length, one on angles between axes by 1, a coupler by its
largest term for ordinary changes of its coordinates. All are powers of two, so that machines described in other units
of length take the same decisions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.mechanism.constraint_rows import Side
from bellcrank.mechanism.joints import Joint
from bellcrank.mechanism.machine_sizes import coordinate_sizes, power_of_two
from bellcrank.mechanism.motion import Part, share
from bellcrank.spatial import Vector
from bellcrank.topology.tree import Relation, Tree

__all__ = ["closing_sizes", "coupler_size", "row_sizes"]


def row_sizes(tree: Tree) -> Floats:
    """What every constraint is measured by, (m,): values of closures, then of couplers."""
    closures = [tree.length if x else 1.0 for x in _lengths(tree)]
    return np.array([*closures, *(_relation(tree, relation) for relation in tree.relations)])


def closing_sizes(tree: Tree, closure: int) -> Floats:
    """Ordinary changes of the coordinates of a joint that closes a loop."""
    return coordinate_sizes(tree.closures[closure].kind, tree.length)


def _lengths(tree: Tree) -> list[bool]:
    """For every row of the closures, whether it is a length: whether it acts on motions of points."""
    known: dict[tuple[Any, ...], list[bool]] = {}
    out: list[bool] = []
    for c in tree.closures:
        key = (type(c.kind), c.kind.kind() if isinstance(c.kind, Joint) else ())
        if key not in known:
            rows = c.kind.closure_rows(*_sides(), [1.0] * len(c.kind.constants()))
            known[key] = [any(float(x) != 0.0 for force in (row.first, row.second) for x in force.force)
                          for row in rows]
        out += known[key]
    return out


@cache
def _sides() -> tuple[Side, Side]:
    """Two sides of a closure in no special position."""
    still, x, y, z = Vector.zero(), Vector(0.36, 0.48, 0.8), Vector(-0.8, 0.6, 0.0), Vector(-0.48, -0.64, 0.6)
    return (Side(Vector(0.1, 0.2, 0.3), Vector(0.3, 0.1, 0.2), x, y, z, still, still),
            Side(Vector(0.7, 0.4, 0.5), Vector(0.2, 0.3, 0.1), y, z, x, still, still))


def _relation(tree: Tree, relation: Relation) -> float:
    return coupler_size([(float(tree.speed_sizes[int(tree.u_start[link]) + coordinate]), part)
                         for link, coordinate, part in relation.terms])


def coupler_size(terms: Sequence[tuple[float, Part]]) -> float:
    """The size of a coupler's largest term, by ordinary changes of its coordinates and what it makes of them."""
    sizes = []
    for size, part in terms:
        try:
            slopes = [abs(float(share(part, x * size).slope)) for x in (0.0, 1.0)]
        except (ArithmeticError, ValueError, TypeError, BellcrankError):  # a law that is defined elsewhere
            continue
        sizes.append(size * max(slopes))
    return power_of_two(max(sizes, default=1.0))
