"""Functions that look at all loops at once: which code there is for them, and what is done where its plan fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import AssemblyError
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.system.evaluator import CompiledEvaluator, Evaluator
from bellcrank.system.kernels import Evaluation, Wrenches
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["Careful", "fits", "run_whole", "whole_program", "with_careful_states"]

#: computes states another way: their inputs (states, size), the wrenches there, the times; gives (states, size)
Careful = Callable[[Mapping[str, npt.ArrayLike], Wrenches, npt.ArrayLike], Floats]


def fits(plans: LoopPlans, run: Evaluator, name: str) -> bool:
    """Whether a machine is small enough for a function that looks at it as a whole."""
    if isinstance(run, CompiledEvaluator):
        return run.compiles_whole(plans.kernels.functions[name])
    return run.tree.n <= UNROLL_LINKS


def whole_program(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, name: str) -> Evaluator | None:
    """What runs such a function by the plan to try first; None where there is no such program: for large machines, and
    methods without plans."""
    if plans.model.dense_loops or plans.kernels.springs_outside or not plans.kernels.covers(name):
        return None
    try:
        run = plans.kernels.planned(plans.first(q, t))
    except AssemblyError:  # open, and closed nowhere near
        return None
    return run if fits(plans, run, name) else None


def run_whole(plans: LoopPlans, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
              careful: Careful) -> Floats:
    """Such a function by its program; the careful way where there is none, and for states in which it fails."""
    kernels, run = plans.kernels, whole_program(plans, given["q"], t, name)
    if run is None:
        return careful(given, wrenches, t)
    if wrenches is None:
        doors = kernels.kept((name, run.tree.plan.key), lambda: kernels.door_pair(name, DoorForm(), run))
        found: Floats | None = doors(*[given[x] for x in kernels.functions[name].inputs])
        if found is not None:
            return found
    return with_careful_states(plans, kernels.evaluate(name, given, wrenches, t, run), given, wrenches, t, careful)


def with_careful_states(plans: LoopPlans, found: Evaluation, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
                        t: npt.ArrayLike, careful: Careful) -> Floats:
    """A result (*batch axes, size), computed carefully in states in which it is not finite."""
    if found.finite:
        return found.result
    bad, rows, there = found.failing(wrenches, plans.model)
    if plans.model.batched or not found.lead or not len(bad):
        return careful(given, wrenches, t)
    found.out[bad] = careful(rows, there, rows["t"][:, 0] if "t" in rows else 0.0)
    return found.result
