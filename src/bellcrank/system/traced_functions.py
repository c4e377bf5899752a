"""Functions of a machine as expressions, for other libraries: what they take, what they give, and the graph between.

With loops they follow one plan, chosen beforehand: an expression cannot look at the state to choose another.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.derivatives.quantities import AT_STATE, quantity
from bellcrank.errors import ModelError, NotYetError, hint
from bellcrank.formulations import SHARED
from bellcrank.formulations.elimination.closed_inverse import with_more_drives
from bellcrank.lowering.choose import GraphTracer
from bellcrank.lowering.function import Function
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Number
from bellcrank.system.drive_programs import drive_entries
from bellcrank.system.force_terms import forced
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.reactions import reaction_program
from bellcrank.system.state_slopes import by_elimination
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.topology.tree import Tree

__all__ = ["FUNCTIONS", "InputArray", "TracedFunction", "checked_name", "traced_function"]

#: functions of a state -> the name of their result
_RESULTS = {
    "forward_dynamics": "udot", "inverse_dynamics": "tau", "bias": "tau", "mass_matrix": "matrix", "momenta": "p",
    "reactions": "reactions", "kinetic_energy": "energy", "potential_energy": "energy", "energy": "energy",
    "center_of_mass": "position", "momentum": "momentum", "joint_laws": "tau", "pair_wrenches": "wrenches",
    "stored_energy": "energy"}
#: those that say how coordinates move, and how well loops are closed: all constraints, or the independent ones
_MOTION = {"coordinate_rates": "qdot", "loop_error": "error", "loop_rate_error": "rate",
           "independent_loop_error": "error", "independent_loop_rate_error": "rate"}
#: functions of a body, named after a colon
_OF_BODY = {"pose": "rotation", "velocity": "velocity", "acceleration": "acceleration", "jacobian": "matrix",
            "jacobian_rate": "matrix"}
#: all that can be asked for
FUNCTIONS = (*_RESULTS, *_MOTION, *(f"{kind}:BODY" for kind in _OF_BODY))
#: those that external wrenches act in
_FORCED = ("forward_dynamics", "inverse_dynamics", "bias", "reactions")


class InputArray(NamedTuple):
    """An input: its shape, and a name for every entry, row by row."""

    shape: tuple[int, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class TracedFunction:
    """A function of a machine: named arrays in, named arrays out, and the graph between."""

    name: str  #: an identifier
    inputs: dict[str, InputArray]
    outputs: dict[str, tuple[int, ...]]  #: shapes
    entries: tuple[Number, ...]  #: of all outputs, row by row
    wrenches: tuple[int, ...]  #: bodies in the order in which the graph counts them
    plan: LoopPlan | None

    def run(self, arrays: Mapping[str, Sequence[Any]], functions: Mapping[str, Callable[..., Any]],
            constant: Callable[[float], Any] | None = None) -> dict[str, list[Any]]:
        """The entries of every output, row by row, for entries of inputs that are any kind of numbers; `constant`
        makes such numbers of floats."""
        none = 0.0 if constant is None else constant(0.0)

        def leaf(key: tuple[str, int]) -> Any:
            name, i = key
            if name == "wrench":
                entry = 6 * self.wrenches[i // 6] + i % 6
                return arrays["wrenches"][entry] if entry < len(arrays["wrenches"]) else none  # on carriers
            return arrays[name][i]

        found, at, out = evaluate(self.entries, leaf, functions, constant), 0, {}
        for name, shape in self.outputs.items():
            size = int(np.prod(shape, dtype=int))
            out[name] = found[at:at + size]
            at += size
        return out


def checked_name(who: str, plans: LoopPlans, name: str) -> tuple[str, str]:
    """A function and the body that it is of, if any; refuses what there is not."""
    kind, _, body = str(name).partition(":")
    if (kind in _OF_BODY) != bool(body) or (kind not in _OF_BODY and name not in FUNCTIONS):
        raise ModelError(f"{who}: no function {name!r}; there are {', '.join(map(repr, FUNCTIONS))}"
                         f"{hint(kind, (*_RESULTS, *_MOTION, *_OF_BODY))}")
    if name in _MOTION and name != "coordinate_rates":
        plans.need_loops(f"{who}: {name}")
    return kind, body


def traced_function(who: str, plans: LoopPlans, name: str, *, at: Any = None, wrenches: bool = False
                    ) -> TracedFunction:
    """A function of a machine by its name; `at`: with loops, a state at which the plan is made. `who` asks is named in
    errors. Cost: that of tracing, some microseconds for every operation."""
    kind, body = checked_name(who, plans, name)
    plans = by_elimination(forced(plans) if kind in ("forward_dynamics", "reactions") else plans)
    plan = _plan(who, plans, at)
    if wrenches and kind not in _FORCED:
        raise ModelError(f"{who}: wrenches do not act in {name!r}; they do in {', '.join(_FORCED)}")
    tree = replace(plans.tree, plan=plan)
    entries, inputs, outputs, tree = _made(who, plans, kind, body, tree, wrenches)
    arrays = {x: _input(plans, x) for x in inputs}
    if tree.timed:
        arrays["t"] = InputArray((), ("t",))
    if tree.parameters:
        arrays["parameters"] = InputArray((len(tree.parameters),), tuple(tree.parameters))
    if wrenches:
        arrays["wrenches"] = InputArray((len(plans.model.body_names), 6), tuple(
            f"{b}.{what}_{x}" for b in plans.model.body_names for what in ("moment", "force") for x in "xyz"))
    title = re.sub(r"\W+", "_", name, flags=re.ASCII).strip("_")
    return TracedFunction(title, arrays, outputs, tuple(entries), tuple(wrench_order(tree)), plan)


def _plan(who: str, plans: LoopPlans, at: Any) -> LoopPlan | None:
    """The plan that loops are solved by."""
    if not plans.tree.looped:
        return None
    if at is None:
        return plans.general()
    try:
        q = np.asarray(getattr(at, "q", at), dtype=float)
    except (TypeError, ValueError):
        q = np.zeros(0)
    if q.shape != (plans.tree.nq,) or not np.isfinite(q).all():
        raise ModelError(f"{who}: at= must be a state, or a finite array q of shape ({plans.tree.nq},)")
    return plans.at(q, float(getattr(at, "t", 0.0)))


def _made(who: str, plans: LoopPlans, kind: str, body: str, tree: Tree, wrenches: bool
          ) -> tuple[list[Number], tuple[str, ...], dict[str, tuple[int, ...]], Tree]:
    """Entries, names of inputs, shapes of outputs, and the tree that they are of."""
    functions = plans.kernels.functions
    if body:
        function = plans.kernels.at_body(kind, body)
        if function is None:
            raise ModelError(f"{who}: {kind!r} of {body!r} has no expression: {plans.kernels.why_not_at(body)}")
        shapes: dict[str, tuple[int, ...]] = {"rotation": (3, 3), "position": (3,)} if kind == "pose" else \
            {_OF_BODY[kind]: (6, tree.nu) if "jacobian" in kind else (6,)}
        return GraphTracer(tree, False)(function), function.inputs, shapes, tree
    if kind in _MOTION:
        return *_motion(kind, tree), tree
    if kind == "reactions":
        program = reaction_program(plans, plans.configuration.neutral(), 0.0, tree.plan)
        if program is None:
            raise NotYetError(f"{who}: reactions of {plans.tree.name!r} have no expressions: it has too many bodies")
        tree = program.run.tree
    if kind == "inverse_dynamics" and tree.looped:
        function, tree = _drives(who, plans, tree)
        return GraphTracer(tree, wrenches)(function), function.inputs, {"tau": (tree.nu,)}, tree
    what = quantity(kind, functions, tree)
    sizes = {"speeds": tree.nu, "bodies": len(plans.model.body_names), "joints": len(tree.loaded_names)}
    shape = tuple(sizes[x] if isinstance(x, str) else x for x in AT_STATE[kind])
    return what.entries(GraphTracer(tree, wrenches)), what.inputs, {_RESULTS[kind]: shape}, tree


def _motion(kind: str, tree: Tree) -> tuple[list[Number], tuple[str, ...], dict[str, tuple[int, ...]]]:
    """Rates of coordinates, and constraints."""
    if kind == "coordinate_rates":
        return GraphTracer(tree, False)(SHARED[kind]), ("q", "u"), {"qdot": (tree.nq,)}
    both = GraphTracer(tree, False)(SHARED["loop_state"])
    m = len(both) // 2
    rows = list(tree.plan.kept) if kind.startswith("independent") else list(range(m))
    if kind.endswith("rate_error"):
        return [both[m + r] for r in rows], ("q", "u"), {"rate": (len(rows),)}
    if kind.startswith("independent"):  # constraints on speeds alone have no value
        bound = tree.on_positions()
        rows = [r for r in rows if bound[r]]
    return [both[r] for r in rows], ("q",), {"error": (len(rows),)}


def _drives(who: str, plans: LoopPlans, tree: Tree) -> tuple[Function, Tree]:
    """Inverse dynamics of a closed machine: the forces of the drives, by a plan whose independent speeds have some."""
    plan = tree.plan
    drives = plan.independent if not plans.model.options.actuated else \
        drive_entries(plans, plans.configuration.neutral(), 0.0, None)
    if not set(plan.independent) <= set(drives):
        plan = plans.driven_at(drives)
    if not set(plan.independent) <= set(drives):
        raise ModelError(f"{who}: the actuated joints of {plans.model.name!r} do not determine its motion; name more "
                         "of them in compile(actuated=...)")
    extra = tuple(v for v in drives if v not in plan.independent)
    function = Function("closed_inverse", lambda machine: with_more_drives(machine, extra, watched=False),
                        ("q", "u", "udot"), "speeds", whole=True)
    return function, replace(tree, plan=plan)


def _input(plans: LoopPlans, name: str) -> InputArray:
    names = plans.configuration.coordinate_names if name == "q" else ("x", "y", "z") if name == "point" else \
        plans.configuration.speed_names
    return InputArray((len(names),), tuple(names))
