"""What the inward sweep carries of a machine with loops, and what it leaves; symbols as in `recursive`."""

from __future__ import annotations

from typing import Any, NamedTuple

from bellcrank.formulations.common.multipliers import LoadShare, Triangle, triangle
from bellcrank.scalar.graph import Number
from bellcrank.spatial import ArticulatedInertia, Force

__all__ = ["Kept", "Loops"]


class Loops(NamedTuple):
    """What the inward sweep carries of a machine with loops."""

    mass: ArticulatedInertia
    force: Force
    jacobian: tuple[Force, ...]  #: Phi_Z, one covector for each constraint
    matrix: Triangle  #: Phi_lambda so far
    gamma_shift: tuple[Number, ...]  #: gamma - gammabar so far

    @staticmethod
    def zero(m: int) -> Loops:
        return Loops(ArticulatedInertia.zero(), Force.zero(), (Force.zero(),) * m, triangle(m), (0.0,) * m)


#: eliminated rows, each with `free` and `with_free`, and the shares of the unit loads in them
Kept = tuple[tuple[Any, ...], tuple[LoadShare, ...]]
