"""Derivatives on arrays: what is asked for, checked; the function that computes it; results by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_time, flat
from bellcrank.derivatives.derived import (
    Quantity,
    Space,
    derivative,
    product_backward,
    product_forward,
    second_derivative,
)
from bellcrank.derivatives.directions import MOTION, Variable, width
from bellcrank.derivatives.quantities import AT_STATE, plain, quantity
from bellcrank.errors import AssemblyError, ModelError, NotYetError, StateError, hint
from bellcrank.formulations.common.body_kinetics import AT_BODY
from bellcrank.loops.closer import State
from bellcrank.lowering.function import Function
from bellcrank.system.evaluator import UNROLL_LINKS, Evaluator
from bellcrank.system.kernels import Evaluation, Kernels, Wrenches
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.reactions import reaction_program
from bellcrank.target.backend import DoorForm
from bellcrank.topology.tree import wrench_order

if TYPE_CHECKING:
    import xarray

    from bellcrank.loops.plan import LoopPlan
    from bellcrank.topology.tree import Tree

__all__ = ["Derivatives", "derivatives"]

_BODY_SHAPES: dict[str, tuple[Any, ...]] = {"pose": (12,), "velocity": (6,), "acceleration": (6,),
                                            "jacobian": (6, "speeds"), "jacobian_rate": (6, "speeds")}


class Derivatives(Mapping[str, Floats]):
    """A value and its derivatives: ``d["q"]`` is an array (*batch, *value, columns), one column for every direction.

    `columns` names them. A number that is differentiated by (time, one parameter) has no axis of columns.
    """

    def __init__(self, name: str, value: Floats, parts: Mapping[str, Floats], axes: Sequence[tuple[str, Sequence[Any]]],
                 columns: Mapping[str, tuple[str, ...]]) -> None:
        self.name, self.value, self._parts, self._axes = name, value, dict(parts), tuple(axes)
        #: names of the directions, by variable
        self.columns = dict(columns)

    def __getitem__(self, by: str) -> Floats:
        return self._parts[by]

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        shapes = ", ".join(f"{by}: {array.shape}" for by, array in self._parts.items())
        return f"<derivatives of {self.name}: {shapes}>"

    def dataset(self) -> xarray.Dataset:
        """All of it with names, as an `xarray.Dataset`: the value, and ``d_<variable>`` for each variable."""
        import xarray

        own = [name for name, _ in self._axes]
        lead = [f"batch{i}" for i in range(self.value.ndim - len(own))]
        coordinates: dict[str, Any] = {name: list(labels) for name, labels in self._axes}
        arrays: dict[str, Any] = {self.name: ([*lead, *own], self.value)}
        for by, array in self._parts.items():
            columns = self.columns.get(by)
            if columns is not None:
                coordinates[f"by_{by}"] = list(columns)
            arrays[f"d_{by}"] = ([*lead, *own, *([] if columns is None else [f"by_{by}"])], array)
        return xarray.Dataset(arrays, coordinates)


@dataclass(frozen=True)
class Question:
    """What is asked for, whatever the state: hashable, so that its function is made once."""

    function: str
    body: str | None
    by: tuple[str, ...]
    closed: bool
    product: str  #: "", "along" or "weights"
    then: str | None = None


class Answer(NamedTuple):
    """How a question is answered: the function, what it is of, and how its entries are to be read."""

    function: Function
    what: Quantity
    shape: tuple[int, ...]  #: of the value
    axes: tuple[tuple[str, Sequence[Any]], ...]  #: names of its entries, axis by axis
    parts: dict[str, tuple[int, ...]]  #: shapes of the axes of columns, by variable
    columns: dict[str, tuple[str, ...]]


def derivatives(plans: LoopPlans, function: str, arguments: Sequence[Any], *, by: Sequence[str] | str,
                then: str | None = None, body: str | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START,
                along: Mapping[str, npt.ArrayLike] | None = None, weights: npt.ArrayLike | None = None,
                closed: bool | None = None) -> Derivatives:
    """See `System.derivatives`."""
    check_time(t)
    product = _product(along, weights, then)
    names = tuple(along) if along is not None else (by,) if isinstance(by, str) else tuple(by)
    plans = _by_elimination(plans, closed)
    asked = Question(function, body, names, plans.tree.looped and closed is not False, product, then)
    if arguments and isinstance(arguments[0], State):
        state = arguments[0]
        t = state.t if t is START else t
        arguments = (*(state.q, state.u)[:2 if "u" in _inputs(plans, asked) else 1], *arguments[1:])
    given = _given(plans, asked, arguments)
    if "wrenches" in (*names, then) and wrenches is None:
        wrenches = np.zeros((len(plans.model.body_names), 6))
    run, plan = _evaluator(plans, asked, given, t)
    answer = _answer(plans, asked, run.tree)
    if along is not None:
        given |= {f"along{i}": _direction(x, a, answer) for i, (x, a) in enumerate(along.items())}
    if weights is not None:
        entries = np.asarray(weights, dtype=float)
        if entries.shape[entries.ndim - len(answer.shape):] != answer.shape:
            raise StateError(f"derivatives: weights need the shape of {function}, (..., {_shown(answer.shape)}), got "
                             f"{entries.shape}")
        given["weights"] = entries.reshape(*entries.shape[:entries.ndim - len(answer.shape)], answer.what.size)
    rows = _run(plans, asked, answer, given, wrenches, t, run, plan)
    return _read(asked, answer, rows)


def _product(along: object, weights: object, then: object) -> str:
    if sum(x is not None for x in (along, weights, then)) > 1:
        raise StateError("derivatives: give one of along=... (a direction of change), weights=... (of the entries) and "
                         "then=... (a second variable)")
    return "along" if along is not None else "weights" if weights is not None else ""


def _by_elimination(plans: LoopPlans, closed: bool | None) -> LoopPlans:
    """Plans by which closed machines are differentiated: those of `elimination`, since what is differentiated does not
    depend on the method."""
    tree, model = plans.tree, plans.model
    if tree.n > UNROLL_LINKS or plans.kernels.maker.schedule == "rolled":
        raise NotYetError(f"derivatives: {tree.name!r} is rolled into loops ({tree.n} links); up to {UNROLL_LINKS} "
                          "links can be differentiated")
    if not tree.looped or model.method == "elimination":
        return plans
    if closed is False and any(model.options.baumgarte):
        raise NotYetError("derivatives: closed=False does not go together with baumgarte=...; leave one of them out")
    kernels = plans.kernels.kept("derivatives by elimination", lambda: Kernels(
        replace(model, method="elimination"), plans.kernels.maker))
    return LoopPlans(kernels.for_model(kernels.model.with_values(model.values)))


# -- what is asked for ----------------------------------------------------------------------------------------------
def _inputs(plans: LoopPlans, asked: Question) -> tuple[str, ...]:
    """The inputs of what is differentiated, in the order of a method's arguments."""
    if asked.function in AT_BODY:
        return AT_BODY[asked.function][1]
    return quantity(asked.function, plans.kernels.functions, plans.tree).inputs


def _given(plans: LoopPlans, asked: Question, arguments: Sequence[Any]) -> dict[str, Any]:
    """The arguments by the names of inputs."""
    if asked.function not in AT_STATE and asked.function not in AT_BODY:
        known = (*AT_STATE, *AT_BODY)
        raise ModelError(f"derivatives: no function {asked.function!r}; there are {', '.join(known)}"
                         f"{hint(asked.function, known)}")
    if (asked.body is not None) != (asked.function in AT_BODY):
        raise ModelError(f"derivatives of {asked.function}: " + (
            "needs body=..., the body or frame that it is asked about" if asked.body is None else
            "is not about one body; leave out body=..."))
    inputs = _inputs(plans, asked)
    left = {"tau": np.zeros(plans.tree.nu), "point": np.zeros(3)}
    needed = [x for x in inputs if x not in left]
    if not len(needed) <= len(arguments) <= len(inputs):
        raise StateError(f"derivatives of {asked.function}: needs {', '.join(needed)}"
                         f"{''.join(f' and perhaps {x}' for x in inputs if x in left)}, got {len(arguments)} arrays")
    given: dict[str, Any] = left | dict(zip(inputs, arguments, strict=False))
    given["tau"] = left["tau"] if given["tau"] is None else plans.configuration.forces(given["tau"])
    return {x: given[x] for x in inputs}


def _variable(plans: LoopPlans, asked: Question, label: str) -> tuple[Variable, tuple[int, ...], tuple[str, ...] | None]:
    """A variable by the name that users give it: the shape of its axes, and the names of its directions."""
    model, tree = plans.model, plans.tree
    inputs, speeds = _inputs(plans, asked), tuple(model.configuration.speed_names)
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
        return Variable(label, label, tuple(range(len(model.values)))), (len(model.values),), tuple(model.values)
    if label in model.values:
        return Variable(label, "parameters", (list(model.values).index(label),)), (), None
    known = (*(x for x in inputs if x != "point" or asked.body is not None), "t", "wrenches", "parameters",
             *model.values)
    raise ModelError(f"derivatives of {asked.function}: nothing called {label!r} to differentiate by; there are "
                     f"{', '.join(known)}{hint(label, known)}")


def _direction(label: str, array: npt.ArrayLike, answer: Answer) -> Floats:
    size = int(np.prod(answer.parts[label], dtype=int))
    values = np.asarray(array, dtype=float)
    if not answer.parts[label]:
        return values[..., None]
    return flat(f"along[{label!r}]", values, size, "one for every direction: " + ", ".join(answer.columns[label]))


# -- the function ---------------------------------------------------------------------------------------------------
def _evaluator(plans: LoopPlans, asked: Question, given: Mapping[str, Any], t: npt.ArrayLike
               ) -> tuple[Evaluator, LoopPlan | None]:
    """What runs the function, and the plan for loops."""
    if asked.function == "reactions":
        program = reaction_program(plans, given["q"], t)
        if program is None:
            raise NotYetError(f"derivatives of reactions: {plans.tree.name!r} has no program for them")
        return program.run, program.run.tree.plan
    if not plans.tree.looped:
        return plans.kernels.evaluator, None
    plan = plans.first(given["q"], t)
    return plans.kernels.planned(plan), plan


def _answer(plans: LoopPlans, asked: Question, tree: Tree) -> Answer:
    """The function that answers a question, made once."""
    return plans.kernels.kept(("derivatives", asked), lambda: _made(plans, asked, tree))


def _made(plans: LoopPlans, asked: Question, tree: Tree) -> Answer:
    kernels, functions = plans.kernels, plans.kernels.functions
    what = quantity(asked.function, functions, tree) if asked.body is None else _of_body(plans, asked)
    shape, axes = _shape(plans, asked, tree)
    found = {label: _variable(plans, asked, label) for label in (*asked.by, *(() if asked.then is None else [asked.then]))}
    space = Space(tuple(found[label][0] for label in asked.by), asked.closed, functions)
    parts, columns = {}, {}
    for label, (variable, own, names) in found.items():
        moving = asked.closed and variable.input in MOTION
        parts[label] = (width(tree, variable, True),) if moving else own
        if names is not None:
            columns[label] = tuple(names[v] for v in tree.plan.independent) if moving else names
    name = f"derivatives {asked}"
    if asked.then is not None:
        function = second_derivative(name, what, space, found[asked.then][0], tree)
    else:
        makers = {"": derivative, "along": product_forward, "weights": product_backward}
        function = makers[asked.product](name, what, space, tree)
    kernels.functions[name] = function
    return Answer(function, what, shape, axes, parts, columns)


def _of_body(plans: LoopPlans, asked: Question) -> Quantity:
    assert asked.body is not None
    function = plans.kernels.at_body(asked.function, asked.body)
    if function is None:
        raise ModelError(f"derivatives of {asked.function}: {asked.body!r} stands still, or its place on its link depends "
                         "on parameters")
    return plain(function, plans.tree)


def _shape(plans: LoopPlans, asked: Question, tree: Tree) -> tuple[tuple[int, ...], tuple[tuple[str, Sequence[Any]], ...]]:
    """The shape of a value, and names of its entries."""
    names: dict[str, Sequence[Any]] = {
        "speeds": plans.configuration.speed_names, "bodies": plans.model.body_names,
        "joints": (*tree.joint_names[1:], *(c.name for c in tree.closures))}
    axes: list[tuple[str, Sequence[Any]]] = []
    for i, x in enumerate(AT_STATE.get(asked.function) or _BODY_SHAPES.get(asked.function, ())):
        label = x if isinstance(x, str) and not any(x == used for used, _ in axes) else f"axis{i}"
        axes.append((label, names[x] if isinstance(x, str) else range(x)))
    return tuple(len(labels) for _, labels in axes), tuple(axes)


# -- running --------------------------------------------------------------------------------------------------------
def _run(plans: LoopPlans, asked: Question, answer: Answer, given: Mapping[str, Any], wrenches: Wrenches,
         t: npt.ArrayLike, run: Evaluator, plan: LoopPlan | None) -> Floats:
    """The entries, (*batch, size)."""
    kernels, name = plans.kernels, answer.function.name
    kernels.functions.setdefault(name, answer.function)
    found = kernels.evaluate(name, given, wrenches, t, run)
    if not found.finite:
        kernels.check_inputs(found)
        if plan is None:
            kernels.refuse(found)
        _other_plans(plans, asked, answer, found, wrenches, plan)
    return found.result


def _other_plans(plans: LoopPlans, asked: Question, answer: Answer, found: Evaluation, wrenches: Wrenches,
                 first: LoopPlan) -> None:
    """Fill in states in which pivots of the first plan vanish, by plans made for them; their directions are then those
    of other speeds, and are turned into those of the first plan."""
    bad, rows, there = found.failing(wrenches, plans.model.body_names)
    times = rows.get("t", np.zeros((len(bad), 1)))[:, 0]
    for k, state in enumerate(bad):
        here = {x: a[k] for x, a in rows.items() if x not in ("t", "parameters", "wrench")}
        load = None if there is None else np.asarray(there)[k]
        values = dict(zip(plans.model.values, rows["parameters"][k], strict=True)) if "parameters" in rows else {}
        own = LoopPlans(plans.kernels.for_model(plans.model.with_values(values))) if values else plans
        plan = own.at(here["q"], float(times[k]))
        tree = own.kernels.of_tree(("reactions", plan.key), lambda plan=plan: None).tree \
            if asked.function == "reactions" else None
        run = own.kernels.planned(plan) if tree is None else own.kernels.of_tree(("reactions", plan.key), lambda: tree)
        again = own.kernels.evaluate(found.name, here, load, times[k], run)
        if not again.finite:
            own.kernels.refuse(again)
        found.out[state] = again.out[0] if not asked.closed else _in_directions(
            own, asked, answer, again.out[0], here, float(times[k]), plan, first)


def _in_directions(plans: LoopPlans, asked: Question, answer: Answer, row: Floats, here: Mapping[str, Floats], t: float,
                   plan: LoopPlan, first: LoopPlan) -> Floats:
    raise NotYetError("derivatives: a pivot vanishes here")


def _read(asked: Question, answer: Answer, rows: Floats) -> Derivatives:
    """Entries as named arrays."""
    lead, size, shape = rows.shape[:-1], answer.what.size, answer.shape
    parts: dict[str, Floats] = {}
    value, at = rows[..., :0], 0
    if asked.then is None:
        value, at = rows[..., :size].reshape(*lead, *shape), size
    if asked.product == "along":
        return Derivatives(asked.function, value, {"along": rows[..., size:].reshape(*lead, *shape)}, answer.axes, {})
    own = () if asked.product else shape
    after = answer.parts[asked.then] if asked.then is not None else ()
    for label in asked.by:
        whole = (*own, *answer.parts[label], *after)
        count = int(np.prod(whole, dtype=int))
        parts[label] = rows[..., at:at + count].reshape(*lead, *whole)
        at += count
    return Derivatives(asked.function, value, parts, answer.axes if not asked.product else (), answer.columns)


def _shown(shape: Sequence[int]) -> str:
    return ", ".join(map(str, shape))
