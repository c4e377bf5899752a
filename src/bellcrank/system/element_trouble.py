"""Which force element or state of a machine has no finite number in a state: found on numbers, where code only says
that a result is not finite."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, SingularError
from bellcrank.lowering.element_views import element_parts
from bellcrank.mechanism.checks import HUGE
from bellcrank.system.force_elements import explain_meeting, machine_view

if TYPE_CHECKING:
    from bellcrank.lowering.machine_view import MachineView
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["element_trouble", "explain_elements"]


def element_trouble(plans: LoopPlans, q: Floats, u: Floats, t: float) -> str:
    """Which element or state is to blame for one state without finite forces, and what to do; nothing if none is."""
    try:
        explain_meeting(plans, {"q": q, "t": np.array([t])}, "")
    except SingularError as error:
        return str(error)
    if max(np.abs(q).max(initial=0.0), np.abs(u).max(initial=0.0)) > HUGE:  # numbers overflow, whatever elements do
        return ""
    try:
        sight = machine_view(plans, q, u, t)
    except SingularError:  # bodies have no places: no fault of elements
        return ""
    for what, numbers in _numbers(plans, sight):
        try:
            with np.errstate(all="ignore"):
                finite = all(np.isfinite(np.asarray(x, dtype=float)).all() for x in numbers())
        except (BellcrankError, ArithmeticError):  # it says itself what is wrong, elsewhere
            continue
        if not finite:
            return (f"{what} gives no finite number: see what it divides by, takes a root or a logarithm of, or how "
                    "fast it grows")
    return ""


def explain_elements(plans: LoopPlans, given: Mapping[str, Floats], where: str) -> None:
    """Raise `SingularError` if an element or state explains why one state, with these inputs, has no finite result."""
    explain_meeting(plans, given, where)
    if "q" not in given:
        return
    values = dict(zip(plans.model.values, given.get("parameters", ()), strict=False))
    if values:
        plans = type(plans)(plans.kernels.for_model(plans.model.with_values(values)))
    t = float(given["t"][0]) if "t" in given else 0.0
    trouble = element_trouble(plans, given["q"], given.get("u", np.zeros(plans.tree.nu)), t)
    if trouble:
        raise SingularError(f"{plans.tree.name!r}{where}: {trouble}")


def _numbers(plans: LoopPlans, sight: MachineView) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every element and state in words, and what computes its numbers."""
    tree = plans.tree
    for name, kind, part in element_parts(tree):
        yield f"element {name!r}", kind(sight, tree, part).report
    for state in plans.model.mechanism.states:
        def rate(state: Any = state) -> tuple[Any, ...]:
            return (sight.value_of(state.name, sight.bind(state.rate)),)

        yield f"the rate of state {state.name!r}", rate
