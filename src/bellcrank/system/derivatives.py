"""Derivatives on arrays: the function that answers a question, run where the machine is; results by name."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_time, flat
from bellcrank.errors import (
    AssemblyError,
    BellcrankError,
    BellcrankWarning,
    NotYetError,
    SingularError,
    StateError,
    outside,
)
from bellcrank.system.arrangements import pinned_plans
from bellcrank.system.derivative_questions import (
    Answer,
    Question,
    Reading,
    along_speeds,
    answer_to,
    arguments_of,
    check_question,
    inputs_of,
    with_speeds,
)
from bellcrank.system.derivative_results import Derivatives, read_entries
from bellcrank.system.evaluator import Evaluator
from bellcrank.system.forces_along import by_loop_forces
from bellcrank.system.held_values import locks_closing
from bellcrank.system.inverse_dynamics import check_motion
from bellcrank.system.kernels import NO_DOORS, DoorPair, Evaluation, Wrenches
from bellcrank.system.large_derivatives import LargeDoor, in_loops, large_door, large_entries, large_question
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.state import State, parts_of
from bellcrank.system.state_slopes import differentiable, evaluator_for, in_directions_shown, refuse_large, turned
from bellcrank.system.usual_cut import usual_plans
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:

    from bellcrank.loops.plan import LoopPlan

__all__ = ["Derivatives", "bound_answer", "derivatives"]


def derivatives(plans: LoopPlans, function: str, arguments: Sequence[Any], *, by: Sequence[str] | str,
                then: str | None = None, body: str | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START,
                along: Mapping[str, npt.ArrayLike] | None = None, weights: npt.ArrayLike | None = None,
                closed: bool | None = None) -> Derivatives:
    """See `System.derivatives`."""
    if arguments and isinstance(arguments[0], State) and isinstance(function, str):
        arguments, t = _of_state(plans, Question(function, body, (), False, ""), arguments, t)
    plans = _sharing_loads(plans) if function == "reactions" else plans
    return by_loop_forces(plans, function, arguments, _answered, by=by, then=then, body=body, wrenches=wrenches, t=t,
                          along=along, weights=weights, closed=closed)


def _of_state(plans: LoopPlans, asked: Question, arguments: Sequence[Any], t: npt.ArrayLike
              ) -> tuple[Sequence[Any], npt.ArrayLike]:
    """Arguments with the arrays of a state in its place, and its time unless another is given."""
    check_question(asked)
    q, u, own = parts_of(arguments[0], plans.configuration.state_names, f"derivatives of {asked.function}")
    speeds = (u,) if "u" in inputs_of(plans, asked) else ()
    return (q, *speeds, *arguments[1:]), own if t is START and np.any(own) else t


def _sharing_loads(plans: LoopPlans) -> LoopPlans:
    """The machine cut as `reactions` has it, which decides how joints share loads that mechanics leaves open; in the
    same independent speeds."""
    usual = usual_plans(plans, alike=False)
    if usual is None:
        return plans
    names = plans.configuration.speed_names
    try:
        shown = tuple(names[v] for v in plans.shown(plans.any_reference().q, 0.0))
    except AssemblyError:  # plans are made where the states are
        shown = ()
    model = usual.model
    return LoopPlans(usual.kernels.for_model(replace(
        model, options=replace(model.options, independent=shown, chosen=True))))


def _answered(plans: LoopPlans, function: str, arguments: Sequence[Any], *, by: Sequence[str] | str,
              then: str | None = None, body: str | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START,
              along: Mapping[str, npt.ArrayLike] | None = None, weights: npt.ArrayLike | None = None,
              closed: bool | None = None) -> Derivatives:
    """The answer by the plans of the machine itself."""
    if not isinstance(function, str):
        raise StateError("derivatives: the first argument is the name of a method, then come its own arguments: "
                         "derivatives('forward_dynamics', q, u, tau, by=('q', 'u'))")
    if then is None and wrenches is None and t is START and closed is None and (along is None or weights is None):
        answered = _weighted_at_once(plans, function, arguments, by, body, weights) \
            if weights is not None and not plans.kernels.direct else \
            _at_once(plans, function, arguments, by, body, along, weights)
        if answered is not None:
            return answered
    check_time(t)
    product = _product(along, weights, then)
    names = tuple(along) if along is not None else (by,) if isinstance(by, str) else tuple(by)
    plans, arguments = _where_asked(plans, function, arguments, t)
    plans = differentiable(plans, closed)
    asked = Question(function, body, names, plans.tree.looped and closed is not False, product, then)
    check_question(asked)
    given = arguments_of(plans, asked, arguments)
    if "wrenches" in (*names, then) and wrenches is None:
        wrenches = np.zeros((len(plans.model.body_names), 6))
    asked = with_speeds(plans, asked, given["q"], t)
    other = _other_speeds(plans, asked, given["q"], t)
    looping = in_loops(plans, asked, given["q"], t)
    if other is not None and (then is not None or product == "twice" or looping):
        own = ", ".join(plans.configuration.speed_names[v] for v in plans.first(given["q"], t).independent)
        warnings.warn(f"derivatives of {plans.tree.name!r}: second ones, and those of large machines, are along {own}, "
                      "not along the independent speeds asked for", BellcrankWarning, stacklevel=outside())
        other = None
    if looping:
        large = large_question(plans, asked, given["q"], t)
        given |= _vectors(function, large.reading, along, weights)
        return read_entries(asked, large.reading, large_entries(plans, large, given, wrenches, t))
    run, plan = evaluator_for(plans, asked, given, t)
    answer = answer_to(plans, asked, run.tree)
    answer = answer if other is None else along_speeds(plans, answer, other)
    given |= _vectors(function, answer.reading, along, weights)
    rows = _run(plans, asked, answer, given, wrenches, t, run, plan, other is not None)
    return read_entries(asked, answer.reading, rows)


def _other_speeds(plans: LoopPlans, asked: Question, q: npt.ArrayLike, t: npt.ArrayLike) -> tuple[int, ...] | None:
    """Speeds that directions shall belong to if they are not those of the first plan."""
    if not asked.closed:
        return None
    shown = plans.shown(q, t)
    return None if shown == plans.first(q, t).independent else shown


def _where_asked(plans: LoopPlans, function: str, arguments: Sequence[Any], t: npt.ArrayLike
                 ) -> tuple[LoopPlans, Sequence[Any]]:
    """The machine with locked joints that close loops held where they are, and with forces that are given along such
    joints as a part of it; and the other arguments."""
    if not plans.tree.looped or not arguments:
        return plans, arguments
    if locks_closing(plans):
        plans = pinned_plans(plans, flat("q", arguments[0], plans.tree.nq, "the coordinates"), t)
    return plans, arguments


def _vectors(function: str, reading: Reading, along: Mapping[str, npt.ArrayLike] | None, weights: npt.ArrayLike | None
             ) -> dict[str, Floats]:
    """What derivatives are multiplied with, as inputs of kernels."""
    vectors = {f"along{i}": _direction(x, a, reading) for i, (x, a) in enumerate((along or {}).items())}
    if weights is None:
        return vectors
    entries, shape = np.asarray(weights, dtype=float), reading.shape
    lead = entries.shape[:max(entries.ndim - len(shape), 0)]
    if entries.shape[len(lead):] != shape:
        raise StateError(f"derivatives: weights need the shape of {function}, (..., {', '.join(map(str, shape))}), got "
                         f"{entries.shape}")
    return vectors | {"weights": entries.reshape(*lead, reading.size)}


def _at_once(plans: LoopPlans, function: str, arguments: Sequence[Any], by: Sequence[str] | str, body: str | None,
             along: Mapping[str, npt.ArrayLike] | None, weights: npt.ArrayLike | None) -> Derivatives | None:
    """Through a door, if arguments are arrays that it can take as they are."""
    product = "along" if along is not None else "weights" if weights is not None else ""
    names = tuple(along) if along is not None else (by,) if isinstance(by, str) else tuple(by)
    try:
        quick = plans.kernels.kept(("derivatives at once", function, body, names, product),
                                   lambda: _quick(plans, Question(function, body, names, plans.tree.looped, product)))
    except TypeError:  # a list within `by`
        return None
    if quick is None:
        return None
    if product:
        left = quick.left if len(arguments) == len(quick.answer.what.inputs) - 1 else ()
        vectors = tuple(along.values()) if along is not None else (weights,)
        arguments = (*arguments, *left, *vectors)
    found = quick.doors(*arguments)
    if found is None:
        return None
    value, *parts = found
    reading = quick.answer.reading
    if product == "along":
        return Derivatives(function, value, {"along": parts[0]}, reading.axes, {})
    return Derivatives(function, value, dict(zip(names, parts, strict=True)), () if product else reading.axes,
                       reading.columns)


def _weighted_at_once(plans: LoopPlans, function: str, arguments: Sequence[Any], by: Sequence[str] | str,
                      body: str | None, weights: Any) -> Derivatives | None:
    """The same for vector-Jacobian products of large machines."""
    names = (by,) if isinstance(by, str) else tuple(by)
    try:
        door = plans.kernels.kept(("weighted at once", function, body, names),
                                  lambda: _weighted_door(plans, Question(function, body, names, plans.tree.looped,
                                                                         "weights")))
    except TypeError:  # a list within `by`
        return None
    found = None if door is None else door(names, *arguments, weights)
    if door is None or found is None:
        return None
    return Derivatives(function, *found, (), door.reading.columns)


def _weighted_door(plans: LoopPlans, asked: Question) -> LargeDoor | None:
    try:
        return large_door(differentiable(plans, None), asked)
    except BellcrankError:
        return None


class Quick(NamedTuple):
    """An answer that needs no look at the state."""

    doors: DoorPair
    answer: Answer
    left: tuple[Floats, ...]  #: what stands for the last input if that is left out


def _quick(plans: LoopPlans, asked: Question) -> Quick | None:
    """The doors of an answer: of trees, and with loops by the first plan; None where there are none, and where the
    question is wrong."""
    try:
        plans, run, answer = bound_answer(plans, asked)
    except (BellcrankError, ValueError):
        return None
    inputs, (size, shape) = answer.what.inputs, (answer.what.size, answer.reading.shape)
    left = {"tau": np.zeros(plans.tree.nu), "point": np.zeros(3)}
    defaults = tuple(left[x] for x in inputs[-1:] if x in left)
    own = {"": [(*shape, *answer.reading.parts[x]) for x in asked.by], "along": [shape],
           "weights": [answer.reading.parts[x] for x in asked.by]}[asked.product]
    parts, at = [_part(0, shape)], size
    for whole in own:
        parts.append(_part(at, whole))
        at += int(np.prod(whole, dtype=int))
    form = DoorForm(defaults=() if asked.product else defaults, parts=tuple(parts))
    doors = plans.kernels.door_pair(answer.function.name, form, run)
    return None if doors is NO_DOORS else Quick(doors, answer, defaults)


def bound_answer(plans: LoopPlans, asked: Question) -> tuple[LoopPlans, Evaluator, Answer]:
    """How a question is answered whatever the state: of a tree, or by the first plan."""
    check_question(asked)
    refuse_large(plans, "derivatives at once or bound to arrays")
    plans = differentiable(plans, None)
    nowhere = {"q": plans.reference().q if plans.tree.looped else plans.configuration.neutral()}
    asked = with_speeds(plans, asked, nowhere["q"], 0.0)
    other = _other_speeds(plans, asked, nowhere["q"], 0.0)
    if other is not None:
        raise NotYetError(f"derivatives of {plans.tree.name!r} bound to arrays have other independent speeds than "
                          "those asked for; call derivatives(...), or compile without independent= and actuated=")
    run, _ = evaluator_for(plans, asked, nowhere, 0.0, plans.reference().plan if plans.tree.looped else None)
    answer = answer_to(plans, asked, run.tree)
    plans.kernels.functions |= {answer.function.name: answer.function}
    return plans, run, answer


def _part(start: int, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """A part of a door's result: all entries of an array, row by row."""
    return start, shape, tuple(int(np.prod(shape[i + 1:], dtype=int)) for i in range(len(shape)))


def _product(along: object, weights: object, then: object) -> str:
    if then is not None and (along is not None or weights is not None):
        raise StateError("derivatives: then=... (a second variable) gives matrices; leave it out, or along=... (a "
                         "direction of change) and weights=... (of the entries)")
    if along is not None and weights is not None:
        return "twice"
    return "along" if along is not None else "weights" if weights is not None else ""


def _direction(label: str, array: npt.ArrayLike, reading: Reading) -> Floats:
    values = np.asarray(array, dtype=float)
    if not reading.parts[label]:
        return values[..., None]
    size = prod(reading.parts[label])
    return values if values.shape[-1:] == (size,) else flat(
        f"along[{label!r}]", values, size, "one for every direction: " + ", ".join(reading.columns[label]))


def _run(plans: LoopPlans, asked: Question, answer: Answer, given: Mapping[str, Any], wrenches: Wrenches,
         t: npt.ArrayLike, run: Evaluator, plan: LoopPlan | None, other: bool) -> Floats:
    """The entries, (*batch, size); `other`: directions are not those of the plan."""
    kernels, name = plans.kernels, answer.function.name
    kernels.functions |= {f.name: f for f in (answer.function, answer.chart) if f is not None}
    found = kernels.evaluate(name, given, wrenches, t, run)
    if other:
        matrices = in_directions_shown(plans, asked, answer, given, wrenches, t, run, plans.first(given["q"], t))
        rows = {x: np.broadcast_to(a, (len(found.out), a.shape[-1]))
                for x, a in zip(found.inputs, found.arrays, strict=True)}
        found = found.with_rows(_contracted(asked, matrices, rows))
    if not found.finite:
        kernels.check_inputs(found)
        if plan is None:
            kernels.refuse(found)
        _other_plans(plans, asked, answer, found, wrenches)
    return found.result


def _other_plans(plans: LoopPlans, asked: Question, answer: Answer, found: Evaluation, wrenches: Wrenches) -> None:
    """Fill in states in which pivots of the first plan vanish, by plans made for them. Their directions are those of
    other speeds, and are turned into those of the first plan."""
    bad, rows, there = found.failing(wrenches, plans.model)
    if asked.then is not None or asked.product == "twice":
        raise SingularError(f"derivatives of {asked.function}: the plan has no pivots at batch index {int(bad[0])}; "
                            "second derivatives are not turned into directions of another one")
    for k, state in enumerate(bad):
        here = {x: a[k] for x, a in rows.items() if x in answer.what.inputs}
        t = float(rows["t"][k, 0]) if "t" in rows else 0.0
        values = dict(zip(plans.model.values, rows.get("parameters", [()])[k if "parameters" in rows else 0],
                          strict=False))
        own = LoopPlans(plans.kernels.for_model(plans.model.with_values(values))) if values else plans
        if asked.function == "inverse_dynamics" and asked.closed:
            check_motion(own, here["q"], here["u"], here["udot"], t)
        matrices, _ = turned(own, asked, answer, here, None if there is None else np.asarray(there)[k], t)
        found.out[state] = _contracted(asked, matrices, {x: a[k] for x, a in rows.items()})


def _contracted(asked: Question, matrices: Mapping[str, Floats], rows: Mapping[str, Floats]) -> Floats:
    """The entries of an answer from the matrices."""
    value = matrices[""]
    if asked.product == "along":
        rates = [(matrices[x] @ rows[f"along{i}"][..., None])[..., 0] for i, x in enumerate(asked.by)]
        return np.concatenate([value, np.sum(rates, axis=0)], axis=-1)
    if asked.product == "weights":
        return np.concatenate([value, *((rows["weights"][..., None, :] @ matrices[x])[..., 0, :] for x in asked.by)],
                              axis=-1)
    return np.concatenate([value, *(matrices[x].reshape(*value.shape[:-1], -1) for x in asked.by)], axis=-1)
