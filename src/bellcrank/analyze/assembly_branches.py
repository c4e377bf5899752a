"""The different ways in which a machine can be put together."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bellcrank.arrays import Floats, how_many, one_time, random_source
from bellcrank.loops.closer import Target
from bellcrank.loops.tolerances import CLOSED
from bellcrank.system.assembly import check_parameters, same_position, with_laws, without_turns
from bellcrank.system.held_values import Values, begin
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["branches"]


def branches(system: System, q: State | Values = None, *, tries: int = 60, guess: State | Values = None,
             t: float = 0.0, seed: int = 0) -> list[State]:
    """Different closed positions found from random starts with the coordinates in `q` held (as an array, `q` is
    the guess), nearest to the guess first. Only meaningful if what is held leaves no freedom: then it lists the
    assembly branches. Cost: `tries` closings, side by side.

    >>> import bellcrank as bc
    >>> linkage = bc.compile(bc.load("four_bar"))
    >>> len(bc.analyze.branches(linkage, q={"A": 0.5}))
    2
    """
    plans, nu = system.plans, system.nu
    t = one_time(t)
    guessed, held = begin(plans, q, guess)
    check_parameters(plans, "branches", many=False)
    start = held.put(guessed)
    usual = plans.tree.speed_sizes
    shakes = 1.5 * random_source(seed).normal(size=(how_many("branches: tries", tries), nu)) * usual
    shakes[:1] = 0.0
    starts = plans.configuration.integrate(start, np.where(held.mask, 0.0, shakes))
    positions, sizes = plans.closer.close(starts, Target(held.mask, 1.0 / usual, held.extra), t)
    found: list[Floats] = []
    for position in positions[sizes < CLOSED]:
        if not any(same_position(plans, position, other) for other in found) \
                and not plans.closer.flipped(position, t):
            found.append(position)
    found.sort(key=lambda x: float(np.linalg.norm(
        without_turns(plans, plans.configuration.difference(start, x)) / usual)))
    return [plans.configuration.state(*with_laws(plans, x, np.zeros(nu), t), t) for x in found]
