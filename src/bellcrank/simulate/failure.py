"""What became of a state that cannot go on."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError
from bellcrank.system.element_trouble import element_trouble

if TYPE_CHECKING:
    from bellcrank.simulate.control import Drive
    from bellcrank.system.machine_functions import Machine

__all__ = ["Failure", "trouble_ahead"]

#: shares of a step at which elements are asked
_AHEAD = (0.0, 0.1, 1.0, 3.0)


class Failure(NamedTuple):
    """A state that cannot go on."""

    state: int
    time: float
    reason: str
    diverged: bool = False  #: its numbers have grown beyond all bounds


def trouble_ahead(system: Machine, q: Floats, u: Floats, t: float, step: float, drives: Sequence[Drive] = ()) -> str:
    """What elements, laws and controllers say of where a state was going: a table may end there, a gas spring have no
    room left, a law divide by zero. Nothing if nobody minds."""
    with suppress(BellcrankError, ValueError, IndexError):
        for share in _AHEAD:
            there, then = system.integrate(q, share * step * u), t + share * step
            trouble = system.kernels.law_trouble(there, u, then) or element_trouble(system.plans, there, u, then)
            trouble = trouble or next(filter(None, (d.trouble(system, there, u, then) for d in drives)), "")
            if trouble:
                return trouble
    return ""
