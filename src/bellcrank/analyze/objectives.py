"""Gradients of what a motion ends in, by a sweep back through its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.analyze.minimal import closed_state
from bellcrank.arrays import Floats
from bellcrank.errors import ModelError, StateError
from bellcrank.scalar.derivative import adjoints
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Scalar
from bellcrank.simulate.events import Event
from bellcrank.simulate.run import recorded
from bellcrank.simulate.sensitivity import check_differentiable, swept_back
from bellcrank.simulate.setup import Setup
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["gradient"]


def gradient(objective: Callable[[Any, Any], Any], system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike],
             duration: float, *, by: Sequence[str] = ("q0", "u0"), step: float = 1e-3, stepper: str = "rk4",
             tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None = None, wrenches: Any = None, control: Any = None,
             events: Sequence[Event] = ()) -> tuple[float, dict[str, Floats]]:
    """The value of ``objective(q, u)`` of the state at the end of a motion, and its gradient, {name: array}.

    `objective` is written with `bellcrank.math`, of lists q and u. `by` names "q0" and "u0" (the beginning: one column
    for every speed, of a closed machine for every independent one), "tau" (constant joint forces) and parameters.
    Forces, `control` (a `Traced` function) and `events` are those of `System.simulate`, events that change the topology
    excepted; one that stops the run moves its end. The gradient is exact for the steps that are made, closing of loops
    included. Cost: the run, and about three times its steps with Jacobians, whatever the number of unknowns; memory
    grows with the root of the number of steps.

    >>> import bellcrank as bc
    >>> arm = bc.compile(bc.load("double_pendulum"))
    >>> value, slope = bc.gradient(lambda q, u: q[1] * q[1], arm, ([0.3, 0.1], [0.0, 0.0]), 0.1, by=["u0"], step=0.01)
    >>> slope["u0"].shape
    (2,)
    """
    trim = closed_state(system, state, None, "gradient")
    setup = Setup.of(system, trim, duration, step, stepper, None, tau, wrenches, control, events, 1e-9, 1e-12, None)
    check_differentiable(setup)
    hold = setup.holds()
    setup = replace(setup, every=hold * max(1, round(setup.steps**0.5 / hold)))
    graph = Graph()
    q, u = ([graph.leaf((name, i)) for i in range(n)] for name, n in (("q", system.nq), ("u", system.nu)))
    try:
        made = objective(q, u)
    except TypeError as error:
        raise ModelError(f"gradient: the objective cannot be traced: {error}") from None
    if type(made) is not Scalar:
        raise ModelError("gradient: the objective must give one number that depends on the state, got "
                         f"{type(made).__name__}")
    slopes = adjoints([made], [1.0], [*q, *u])
    entries = [made, *(slopes.get(x, 0.0) for x in (*q, *u))]

    def slope(y: Floats) -> tuple[float, Floats]:
        values = evaluate(entries, lambda key: float(y[key[1] + (system.nq if key[0] == "u" else 0)]))
        return float(values[0]), np.array(values[1:], dtype=float)

    result, log = recorded(setup)
    if result.attrs["status"] not in ("finished", "stopped"):
        raise StateError(f"gradient: the motion {result.attrs['status']}: {result.attrs['reason']}")
    return swept_back(setup, log, np.hstack([result.q.values, result.u.values]), by, slope)
