"""Derivatives on arrays: the function that answers a question, run where the machine is; results by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_time, flat
from bellcrank.errors import BellcrankError, NotYetError, StateError
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
from bellcrank.system.force_terms import acting, forced
from bellcrank.system.held_values import locks_closing
from bellcrank.system.inverse_dynamics import check_motion
from bellcrank.system.kernels import NO_DOORS, DoorPair, Wrenches
from bellcrank.system.large_derivatives import (
    LargeDoor,
    OneState,
    failing_states,
    in_loops,
    large_door,
    large_entries,
    large_question,
)
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.state import State, parts_of
from bellcrank.system.state_slopes import (
    differentiable,
    evaluator_for,
    in_directions_shown,
    refuse_large,
    second_rows,
    turned,
)
from bellcrank.system.usual_cut import usual_plans
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:

    from bellcrank.loops.plan import LoopPlan

__all__ = ["Derivatives", "bound_answer", "derivatives"]


def derivatives(plans: LoopPlans, function: str, arguments: Sequence[Any], *, by: Sequence[str] | str,
                then: str | None = None, body: str | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START,
                along: Mapping[str, npt.ArrayLike] | None = None, weights: npt.ArrayLike | None = None,
                closed: bool | None = None, independent: Sequence[str] | None = None) -> Derivatives:
    """See `System.derivatives`."""
    if arguments and isinstance(arguments[0], State) and isinstance(function, str):
        arguments, t = _of_state(plans, Question(function, body, (), False, ""), arguments, t)
    speeds = None if independent is None else _chosen(plans, independent, closed)
    usual = usual_plans(plans, alike=False) if function == "reactions" and arguments else None
    if usual is not None:  # how joints share loads that mechanics leaves open is as in `reactions`
        speeds = plans.shown(arguments[0], t) if speeds is None and closed is not False else speeds
        plans = usual
    return _answered(_with_loop_forces(plans, function, arguments, along or by, then), function, arguments, by=by,
                     then=then, body=body, wrenches=wrenches, t=t, along=along, weights=weights, closed=closed,
                     speeds=speeds)


def _with_loop_forces(plans: LoopPlans, function: str, arguments: Sequence[Any], by: Collection[str],
                      then: str | None) -> LoopPlans:
    """The machine in which forces along loop joints act, if some do or derivatives by them are asked for."""
    if function not in ("forward_dynamics", "reactions") or not plans.tree.loop_joints:
        return plans
    if then == "tau" or by == "tau" or (not isinstance(by, str) and "tau" in by):
        return forced(plans)
    return acting(plans, plans.configuration.forces(arguments[2])) if len(arguments) > 2 else plans


def _chosen(plans: LoopPlans, names: Sequence[str], closed: bool | None) -> tuple[int, ...]:
    """The speeds of joints or coordinates that columns shall belong to."""
    if isinstance(names, str):
        raise StateError(f"derivatives: independent is a list of names; write [{names!r}]")
    found = tuple(dict.fromkeys(v for name in names for v in plans.configuration.speed_entries(name)))
    if not plans.tree.looped or closed is False:
        whole = tuple(v for v, fixed in enumerate(plans.model.prescribed_mask()) if not fixed)
        if set(found) != set(whole):
            raise StateError("derivatives: independent= is about machines with loops that stay closed; leave it out "
                             f"{plans.tree.name!r}, which has none, and with closed=False")
    return found


def _of_state(plans: LoopPlans, asked: Question, arguments: Sequence[Any], t: npt.ArrayLike
              ) -> tuple[Sequence[Any], npt.ArrayLike]:
    """Arguments with the arrays of a state in its place, and its time unless another is given."""
    check_question(asked)
    q, u, own = parts_of(arguments[0], plans.configuration.state_names, f"derivatives of {asked.function}")
    speeds = (u,) if "u" in inputs_of(plans, asked) else ()
    return (q, *speeds, *arguments[1:]), own if t is START and np.any(own) else t


def _answered(plans: LoopPlans, function: str, arguments: Sequence[Any], *, by: Sequence[str] | str,
              then: str | None = None, body: str | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START,
              along: Mapping[str, npt.ArrayLike] | None = None, weights: npt.ArrayLike | None = None,
              closed: bool | None = None, speeds: tuple[int, ...] | None = None) -> Derivatives:
    """The answer by the plans of the machine itself, along some speeds."""
    if not isinstance(function, str):
        raise StateError("derivatives: the first argument is the name of a method, then come its own arguments: "
                         "derivatives('forward_dynamics', q, u, tau, by=('q', 'u'))")
    plain = then is None and wrenches is None and t is START and closed is None and speeds is None
    if plain and (along is None or weights is None):
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
    other = _other_speeds(plans, asked, given["q"], t, speeds)
    if in_loops(plans, asked, given["q"], t):
        large = large_question(plans, asked, given["q"], t)
        large = large if other is None else large.along(other, plans.configuration.speed_names)
        given |= _vectors(function, large.reading, along, weights)
        return read_entries(asked, large.reading, large_entries(plans, large, given, wrenches, t))
    run, plan = evaluator_for(plans, asked, given, t)
    answer = answer_to(plans, asked, run.tree)
    answer = answer if other is None else along_speeds(plans, answer, other, other)
    given |= _vectors(function, answer.reading, along, weights)
    rows = _run(plans, asked, answer, given, wrenches, t, run, plan, other is not None)
    return read_entries(asked, answer.reading, rows)


def _other_speeds(plans: LoopPlans, asked: Question, q: npt.ArrayLike, t: npt.ArrayLike,
                  wanted: tuple[int, ...] | None = None) -> tuple[int, ...] | None:
    """Speeds that directions shall belong to if they are not those of the first plan."""
    if not asked.closed:
        return None
    plan, shown = plans.first(q, t), plans.shown(q, t) if wanted is None else wanted
    if len(shown) != len(plan.independent):
        names = ", ".join(plans.configuration.speed_names[v] for v in shown) or "none"
        raise StateError(f"derivatives: {plans.tree.name!r} has {len(plan.independent)} independent speeds, "
                         f"independent= names {names}")
    return None if shown == plan.independent else shown


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
    if asked.then is not None or (asked.product == "twice" and other):
        return _run_twice(plans, asked, answer, given, wrenches, t, plan, other)
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
        for at in failing_states(plans, found.result, given, wrenches, t):
            found.result[at.place] = _by_other_plan(asked, answer, at)
    return found.result


def _by_other_plan(asked: Question, answer: Answer, at: OneState) -> Floats:
    """The entries of one state in which pivots of the first plan vanish, by a plan made for it. Its directions are
    those of other speeds, and are turned into those of the first plan."""
    here = {x: a for x, a in at.given.items() if x in answer.what.inputs}
    if asked.function == "inverse_dynamics" and asked.closed:
        check_motion(at.plans, here["q"], here["u"], here["udot"], at.t)
    if asked.product == "twice":
        plan = at.plans.at(here["q"], at.t)
        return second_rows(at.plans, asked, answer, at.given, at.wrenches, at.t, plan, True)
    matrices, _ = turned(at.plans, asked, answer, here, at.wrenches, at.t)
    return _contracted(asked, matrices, at.given)


def _run_twice(plans: LoopPlans, asked: Question, answer: Answer, given: Mapping[str, Any], wrenches: Wrenches,
               t: npt.ArrayLike, plan: LoopPlan | None, other: bool) -> Floats:
    """The same for second derivatives that are made of products."""
    given = {x: np.asarray(a, dtype=float) for x, a in given.items()}
    rows = second_rows(plans, asked, answer, given, wrenches, t, plan, other)
    if plan is None or np.isfinite(rows).all():
        return rows
    for at in failing_states(plans, rows, given, wrenches, t):
        own = at.plans.at(at.given["q"], at.t)
        rows[at.place] = second_rows(at.plans, asked, answer, at.given, at.wrenches, at.t, own, True)
    return rows


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
