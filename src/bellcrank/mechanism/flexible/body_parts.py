"""What a flexible body is made of, before it is checked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from bellcrank.arrays import Floats
from bellcrank.mechanism.flexible.shape_integrals import ShapeIntegrals
from bellcrank.mechanism.flexible.stiffening import Stiffening
from bellcrank.mechanism.flexible.stress_modes import Ints, StressModes

__all__ = ["INERTIAS", "BodyParts"]

#: how masses are distributed: at the nodes, by a finite-element matrix, along the elements themselves
INERTIAS = ("lumped", "consistent_nodal", "continuum")


class BodyParts(NamedTuple):
    """See `FlexibleBody`; shapes may have three or six rows a node."""

    nodes: Floats
    shapes: Floats  #: (n, d, k)
    integrals: ShapeIntegrals
    stiffness: Floats
    names: Mapping[str, int]
    inertia: str
    clamped: str | None
    stiffening: Stiffening | None = None
    forces: Floats | None = None  #: section forces of beams
    stresses: StressModes | None = None
    edges: Ints | None = None
