"""Questions about derivatives: what is asked for, checked; and the function that answers, made once for each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.derivatives.derived import (
    Quantity,
    Space,
    derivative,
    directions_of_plan,
    product_backward,
    product_forward,
    product_twice,
)
from bellcrank.derivatives.directions import MOTION, Variable, ways
from bellcrank.derivatives.quantities import AT_STATE, INDEPENDENT, in_independent_speeds, plain, quantity
from bellcrank.errors import BellcrankError, ModelError, StateError, hint
from bellcrank.formulations.common.body_kinetics import AT_BODY
from bellcrank.lowering.choose import GraphTracer
from bellcrank.lowering.function import Function
from bellcrank.lowering.looped import LoopedDirect
from bellcrank.scalar.graph import LEAF, reachable
from bellcrank.system.drive_programs import drive_entries, inverse_at
from bellcrank.system.evaluator import CompiledEvaluator, TracedEvaluator
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["Answer", "Question", "Reading", "along_speeds", "answer_to", "arguments_of", "check_question", "inputs_of",
           "reading_of", "with_speeds"]

#: (what, names of its entries)
Axes = tuple[tuple[str, Sequence[Any]], ...]

_BODY_SHAPES: dict[str, tuple[Any, ...]] = {"pose": (12,), "velocity": (6,), "acceleration": (6,),
                                            "jacobian": (6, "speeds"), "jacobian_rate": (6, "speeds")}


@dataclass(frozen=True)
class Question:
    """What is asked for, whatever the state: hashable, so that its function is made once."""

    function: str
    body: str | None
    by: tuple[str, ...]
    closed: bool
    product: str  #: "", "along", "weights" or "twice"
    then: str | None = None
    #: with loops: the speeds at which forces of inverse dynamics act, or those that functions of the tree refer to
    speeds: tuple[int, ...] = ()

    @property
    def varied(self) -> tuple[str, ...]:
        """All variables."""
        return self.by if self.then is None or self.then in self.by else (*self.by, self.then)

    def __str__(self) -> str:
        return (f"derivatives of {self.function}" + (f" of {self.body!r}" if self.body is not None else "")
                + f" by {', '.join(self.by)}" + (f", then {self.then}" if self.then is not None else "")
                + (" along the closed machine" if self.closed else "")
                + {"": "", "along": " (one direction)", "weights": " (weighted)",
                   "twice": " (one direction, weighted)"}[self.product])


class Reading(NamedTuple):
    """How the entries of an answer are to be read."""

    shape: tuple[int, ...]  #: of the value
    axes: Axes  #: names of its entries, axis by axis
    parts: dict[str, tuple[int, ...]]  #: shapes of the axes of columns, by variable
    columns: dict[str, tuple[str, ...]]
    variables: dict[str, Variable]

    @property
    def size(self) -> int:
        """Entries of the value."""
        return prod(self.shape)

    def along(self, ways: Mapping[str, Sequence[int]], names: Sequence[str]) -> Reading:
        """The same with columns of motion named by other speeds."""
        columns = {x: tuple(names[v] for v in ways[self.variables[x].input]) if self.variables[x].input in ways else own
                   for x, own in self.columns.items()}
        return self._replace(columns=columns)


class Answer(NamedTuple):
    """How a question is answered: the function, what it is of, and how its entries are to be read."""

    function: Function
    what: Quantity
    reading: Reading
    ways: dict[str, list[int]]  #: of closed machines, the speeds that directions belong to, by input
    chart: Function | None  #: how the machine moves along them

    def along(self, ways: dict[str, list[int]], names: Sequence[str]) -> Answer:
        """The same in directions of other speeds."""
        return self._replace(ways=ways, reading=self.reading.along(ways, names))


def inputs_of(plans: LoopPlans, asked: Question) -> tuple[str, ...]:
    """The inputs of what is differentiated, in the order of a method's arguments."""
    if asked.function in AT_BODY:
        return AT_BODY[asked.function][1]
    return tuple(x for x in _quantity(plans, asked, plans.tree).inputs if x != "t")


def arguments_of(plans: LoopPlans, asked: Question, arguments: Sequence[Any]) -> dict[str, Any]:
    """The arguments by the names of inputs."""
    inputs = inputs_of(plans, asked)
    left = {"tau": np.zeros(plans.tree.nu), "point": np.zeros(3)}
    needed = [x for x in inputs if x not in left]
    if not len(needed) <= len(arguments) <= len(inputs):
        raise StateError(f"derivatives of {asked.function}: needs {', '.join(needed)}"
                         f"{''.join(f' and perhaps {x}' for x in inputs if x in left)}, got {len(arguments)} arrays")
    given: dict[str, Any] = left | dict(zip(inputs, arguments, strict=False))
    given["tau"] = left["tau"] if given["tau"] is None else plans.configuration.forces(given["tau"])
    return {x: given[x] for x in inputs}


def with_speeds(plans: LoopPlans, asked: Question, q: npt.ArrayLike, t: npt.ArrayLike) -> Question:
    """A question about inverse dynamics, with the drives that the method itself has; or about a function of the tree,
    with the independent speeds that it refers to."""
    if plans.tree.looped and asked.function == "inverse_dynamics":
        return replace(asked, speeds=drive_entries(plans, q, t, None))
    if asked.closed and asked.function in INDEPENDENT:
        return replace(asked, speeds=plans.shown(q, t))
    return asked


def check_question(asked: Question) -> None:
    """Refuse what cannot be asked."""
    if asked.function not in AT_STATE and asked.function not in AT_BODY:
        known = (*AT_STATE, *AT_BODY)
        raise ModelError(f"derivatives: no function {asked.function!r}; there are {', '.join(known)}"
                         f"{hint(asked.function, known)}")
    if (asked.body is not None) != (asked.function in AT_BODY):
        raise ModelError(f"derivatives of {asked.function}: " + (
            "needs body=..., the body or frame that it is asked about" if asked.body is None else
            "is not about one body; leave out body=..."))


def _variable(plans: LoopPlans, asked: Question, label: str
              ) -> tuple[Variable, tuple[int, ...], tuple[str, ...] | None]:
    """A variable by the name that users give it: the shape of its axes, and the names of its directions."""
    model, tree = plans.model, plans.tree
    inputs, speeds = inputs_of(plans, asked), tuple(model.configuration.speed_names)
    if label in inputs and label in ("q", "u", "udot", "tau"):
        return Variable(label, label, tuple(range(tree.nu))), (tree.nu,), speeds
    if label == "point" and "point" in inputs:
        return Variable(label, label, (0, 1, 2)), (3,), ("x", "y", "z")
    if label == "t":
        return Variable(label, label, (0,)), (), None
    if label == "wrenches":
        place = {body: slot for slot, body in enumerate(wrench_order(tree))}
        entries = tuple(6 * place[b] + k for b in range(len(model.body_names)) for k in range(6))
        return Variable(label, "wrench", entries), (len(entries),), tuple(
            f"{b}.{what}_{x}" for b in model.body_names for what in ("moment", "force") for x in "xyz")
    if label == "parameters":
        described = tuple(name for name in model.values if name in model.mechanism.parameters)  # they come first
        return Variable(label, label, tuple(range(len(described)))), (len(described),), described
    if label in model.values:
        return Variable(label, "parameters", (list(model.values).index(label),)), (), None
    known = (*(x for x in inputs if x != "point" or asked.body is not None), "t", "wrenches", "parameters",
             *model.values)
    raise ModelError(f"derivatives of {asked.function}: nothing called {label!r} to differentiate by; there are "
                     f"{', '.join(known)}{hint(label, known)}")


def answer_to(plans: LoopPlans, asked: Question, tree: Tree) -> Answer:
    """The function that answers a question, made once for a plan: that has its own directions."""
    key = tree.plan.key if asked.closed else None
    return plans.kernels.kept(("derivatives", asked, key), lambda: _made(plans, asked, tree))


def along_speeds(plans: LoopPlans, answer: Answer, speeds: Sequence[int], placed: Sequence[int]) -> Answer:
    """An answer in the directions of some speeds that determine the machine's motion, displacements of those `placed`
    its position."""
    ways = {x: list(placed if x == "q" else speeds) for x in MOTION}
    return answer.along(ways, plans.configuration.speed_names)


def reading_of(plans: LoopPlans, asked: Question, tree: Tree, plan: LoopPlan | None) -> Reading:
    """How an answer is to be read, with directions of a plan if the machine is closed."""
    shape, axes = _shape(plans, asked, tree)
    parts, columns, variables = {}, {}, {}
    for label in asked.varied:
        variables[label], own, names = _variable(plans, asked, label)
        moving = asked.closed and variables[label].input in MOTION
        some = ways(plan, variables[label].input) if moving and plan is not None else ()
        parts[label] = (len(some),) if moving else own
        if names is not None:
            columns[label] = tuple(names[v] for v in some) if moving else names
    return Reading(shape, axes, parts, columns, variables)


def _made(plans: LoopPlans, asked: Question, tree: Tree) -> Answer:
    kernels, functions = plans.kernels, plans.kernels.functions
    what = _quantity(plans, asked, tree)
    reading = reading_of(plans, asked, tree, tree.plan)
    space = Space(tuple(reading.variables[label] for label in asked.by), asked.closed, functions)
    name = str(asked)
    if asked.speeds and (tree.plan is None or asked.speeds != tree.plan.independent):
        name += f" at the speeds {', '.join(plans.configuration.speed_names[v] for v in asked.speeds)}"
    if asked.then is not None:  # by products, column by column
        space = Space(tuple(reading.variables[label] for label in asked.varied), asked.closed, functions)
    makers = {"": derivative, "along": product_forward, "weights": product_backward, "twice": product_twice}
    function = makers["twice" if asked.then is not None else asked.product](name, what, space, tree)
    chart = directions_of_plan(f"directions of {name}", what, space, tree) if asked.closed else None
    kernels.functions |= {f.name: f for f in (function, chart) if f is not None}
    own = {x: list(ways(tree.plan, x)) for x in MOTION} if asked.closed else {}
    return Answer(function, what, reading, own, chart)


def _quantity(plans: LoopPlans, asked: Question, tree: Tree) -> Quantity:
    """What is differentiated."""
    whole = _whole(plans, asked, tree)
    if not asked.closed or asked.function not in INDEPENDENT or tree.plan is None:
        return whole
    return in_independent_speeds(asked.function, whole, plans.kernels.functions, tree,
                                 (asked.speeds, _pivots(plans, asked, tree)))


def _pivots(plans: LoopPlans, asked: Question, tree: Tree) -> dict[int, int]:
    """The speeds that a function refers to, each with a column of the motions of the plan's independent speeds that can
    be divided by its entry there: the largest entries in turn at a closed position of the machine."""
    own, names = tree.plan.independent, asked.speeds
    columns = {v: k for k, v in enumerate(own)}
    if own == names:
        return columns
    try:
        found = _motions(plans, plans.any_reference().q, tree)
    except BellcrankError:
        return dict(zip(names, range(len(own)), strict=True))
    sizes = tree.speed_sizes
    shares = found[list(names)] * sizes[list(own)] / sizes[list(names)][:, None]
    columns = {}
    for _ in names:
        i, k = divmod(int(np.nanargmax(np.abs(shares))), len(own))
        columns[names[i]] = k
        shares = shares - np.outer(shares[:, k], shares[i] / (shares[i, k] or 1.0))
        shares[i] = shares[:, k] = np.nan
    return columns


def _motions(plans: LoopPlans, q: Floats, tree: Tree) -> Floats:
    """N (nu, d) at a position, with u = N v for the independent speeds of the tree's plan."""
    run = plans.kernels.planned(tree.plan)
    run = TracedEvaluator(run) if isinstance(run, CompiledEvaluator) else run
    found = plans.kernels.evaluate("allowed_motions", {"q": q, "u": np.zeros(tree.nu)}, None, 0.0, run).result
    return found[:tree.nu * len(tree.plan.independent)].reshape(tree.nu, -1)


def _whole(plans: LoopPlans, asked: Question, tree: Tree) -> Quantity:
    """The same of the spanning tree."""
    if asked.body is not None:
        return _of_body(plans, asked, asked.body)
    if asked.function == "outputs":
        return plans.kernels.kept("outputs", lambda: _outputs(plans))
    if asked.function == "inverse_dynamics" and asked.speeds and (
            tree.plan is None or asked.speeds != tree.plan.independent):
        return plain(inverse_at(asked.speeds), tree)
    return quantity(asked.function, plans.kernels.functions, tree)


def _outputs(plans: LoopPlans) -> Quantity:
    """The outputs of the mechanism, one after the other."""
    outputs = plans.model.mechanism.outputs
    function = Function("outputs", lambda machine: tuple(o.law(cast(LoopedDirect, machine).sight) for o in outputs),
                        ("q", "u"), "totals", len(outputs), whole=True, linear=True, flexible=True)
    leaves = reachable(GraphTracer(plans.tree, False)(function))
    read = {x.args[0][0] for x in leaves if x.op is LEAF}
    clock = ("t",) if "t" in read and not plans.tree.timed else ()
    return Quantity(("q", "u", *clock), len(outputs), lambda tracer: tracer(function), still="u" not in read)


def _of_body(plans: LoopPlans, asked: Question, body: str) -> Quantity:
    function = plans.kernels.at_body(asked.function, body, whole=True)
    if function is None:
        raise ModelError(f"derivatives of {asked.function}: {plans.kernels.why_not_at(body)}")
    return plain(function, plans.tree)


def _shape(plans: LoopPlans, asked: Question, tree: Tree) -> tuple[tuple[int, ...], Axes]:
    """The shape of a value, and names of its entries."""
    speeds: Sequence[str] = plans.configuration.speed_names
    if asked.closed and asked.function in INDEPENDENT:
        speeds = tuple(speeds[v] for v in asked.speeds)
    names: dict[str, Sequence[Any]] = {
        "speeds": speeds, "coordinates": plans.configuration.coordinate_names,
        "bodies": plans.model.body_names, "joints": tree.loaded_names,
        "output": [output.name for output in plans.model.mechanism.outputs]}
    axes: list[tuple[str, Sequence[Any]]] = []
    for i, x in enumerate(AT_STATE.get(asked.function) or _BODY_SHAPES.get(asked.function, ())):
        label = x if isinstance(x, str) and not any(x == used for used, _ in axes) else f"axis{i}"
        axes.append((label, names[x] if isinstance(x, str) else range(x)))
    return tuple(len(labels) for _, labels in axes), tuple(axes)
