"""Derivatives on arrays: the function that answers a question, run where the machine is; results by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_time, flat
from bellcrank.derivatives.directions import MOTION
from bellcrank.errors import BellcrankError, NotYetError, SingularError, StateError
from bellcrank.loops.closer import State
from bellcrank.scalar.graph import Scalar
from bellcrank.system.derivative_questions import (
    Answer,
    Question,
    Reading,
    answer_to,
    arguments_of,
    check_question,
    inputs_of,
)
from bellcrank.system.derivative_results import Derivatives, read_entries
from bellcrank.system.evaluator import UNROLL_LINKS, CompiledEvaluator, Evaluator, TracedEvaluator
from bellcrank.system.inverse_dynamics import check_motion
from bellcrank.system.kernels import NO_DOORS, DoorPair, Evaluation, Kernels, Wrenches
from bellcrank.system.large_derivatives import LargeDoor, large_door, large_entries, large_question, large_slopes
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.reactions import reaction_program
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:

    from bellcrank.loops.plan import LoopPlan

__all__ = ["Derivatives", "Slopes", "bound_answer", "by_elimination", "derivatives", "forward_slopes_at"]


#: operations beyond which one state is interpreted sooner than compiled
_INTERPRETED = 3000


def derivatives(plans: LoopPlans, function: str, arguments: Sequence[Any], *, by: Sequence[str] | str,
                then: str | None = None, body: str | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START,
                along: Mapping[str, npt.ArrayLike] | None = None, weights: npt.ArrayLike | None = None,
                closed: bool | None = None) -> Derivatives:
    """See `System.derivatives`."""
    if then is None and wrenches is None and t is START and closed is None and (along is None or weights is None):
        answered = _weighted_at_once(plans, function, arguments, by, body, weights) \
            if weights is not None and _is_large(plans) else \
            _at_once(plans, function, arguments, by, body, along, weights)
        if answered is not None:
            return answered
    check_time(t)
    product = _product(along, weights, then)
    names = tuple(along) if along is not None else (by,) if isinstance(by, str) else tuple(by)
    plans = _by_elimination(plans, closed)
    asked = Question(function, body, names, plans.tree.looped and closed is not False, product, then)
    check_question(asked)
    if arguments and isinstance(arguments[0], State):
        state = arguments[0]
        t = state.t if t is START else t
        arguments = (*(state.q, state.u)[:2 if "u" in inputs_of(plans, asked) else 1], *arguments[1:])
    given = arguments_of(plans, asked, arguments)
    if "wrenches" in (*names, then) and wrenches is None:
        wrenches = np.zeros((len(plans.model.body_names), 6))
    if _is_large(plans):
        large = large_question(plans, asked, given["q"], t)
        given |= _vectors(function, large.reading, along, weights)
        return read_entries(asked, large.reading, large_entries(plans, large, given, wrenches, t))
    run, plan = _evaluator(plans, asked, given, t)
    answer = answer_to(plans, asked, run.tree)
    given |= _vectors(function, answer.reading, along, weights)
    rows = _run(plans, asked, answer, given, wrenches, t, run, plan)
    return read_entries(asked, answer.reading, rows)


def _vectors(function: str, reading: Reading, along: Mapping[str, npt.ArrayLike] | None, weights: npt.ArrayLike | None
             ) -> dict[str, Floats]:
    """What derivatives are multiplied with, as inputs of kernels."""
    if along is not None:
        return {f"along{i}": _direction(x, a, reading) for i, (x, a) in enumerate(along.items())}
    if weights is None:
        return {}
    entries, shape = np.asarray(weights, dtype=float), reading.shape
    lead = entries.shape[:max(entries.ndim - len(shape), 0)]
    if entries.shape[len(lead):] != shape:
        raise StateError(f"derivatives: weights need the shape of {function}, (..., {', '.join(map(str, shape))}), got "
                         f"{entries.shape}")
    return {"weights": entries.reshape(*lead, reading.size)}


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
        return large_door(_by_elimination(plans, None), asked)
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
    _refuse_large(plans, "derivatives at once or bound to arrays")
    plans = _by_elimination(plans, None)
    nowhere = {"q": plans.reference().q if plans.tree.looped else plans.configuration.neutral()}
    run, _ = _evaluator(plans, asked, nowhere, 0.0, plans.reference().plan if plans.tree.looped else None)
    answer = answer_to(plans, asked, run.tree)
    plans.kernels.functions |= {answer.function.name: answer.function}
    return plans, run, answer


def _part(start: int, shape: tuple[int, ...]) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
    """A part of a door's result: all entries of an array, row by row."""
    return start, shape, tuple(int(np.prod(shape[i + 1:], dtype=int)) for i in range(len(shape)))


def _product(along: object, weights: object, then: object) -> str:
    if sum(x is not None for x in (along, weights, then)) > 1:
        raise StateError("derivatives: give one of along=... (a direction of change), weights=... (of the entries) and "
                         "then=... (a second variable)")
    return "along" if along is not None else "weights" if weights is not None else ""


def _by_elimination(plans: LoopPlans, closed: bool | None) -> LoopPlans:
    """Plans by which closed machines are differentiated: those of `elimination`, since what is differentiated does not
    depend on the method."""
    tree, model = plans.tree, plans.model
    rolling = plans.kernels.kept("closures that bind speeds alone", lambda: [
        c.name for c in tree.closures if c.nonholonomic])
    if rolling and closed is not False:
        raise NotYetError(f"derivatives: {', '.join(map(repr, rolling[:4]))} bind speeds alone (rolling, knife edges): "
                          "there are more coordinates than independent speeds; closed=False differentiates by each")
    if not tree.looped or model.method == "elimination":
        return plans
    if closed is False and any(model.options.baumgarte):
        raise NotYetError("derivatives: closed=False does not go together with baumgarte=...; leave one of them out")
    return by_elimination(plans)


def _is_large(plans: LoopPlans) -> bool:
    """Whether the machine is rolled into loops."""
    return plans.tree.n > UNROLL_LINKS or plans.kernels.maker.schedule == "rolled"


def _refuse_large(plans: LoopPlans, what: str) -> None:
    if _is_large(plans):
        raise NotYetError(f"{what}: {plans.tree.name!r} is rolled into loops ({plans.tree.n} links); up to "
                          f"{UNROLL_LINKS} links can be asked about")


def by_elimination(plans: LoopPlans) -> LoopPlans:
    """The same machine; if it has loops, by the method `elimination`, which is one graph for a plan."""
    model = plans.model
    if not plans.tree.looped or model.method == "elimination":
        return plans
    kernels = plans.kernels.kept("derivatives by elimination", lambda: Kernels(
        replace(model, method="elimination"), plans.kernels.maker))
    return LoopPlans(kernels.for_model(kernels.model.with_values(model.values)))


def _direction(label: str, array: npt.ArrayLike, reading: Reading) -> Floats:
    values = np.asarray(array, dtype=float)
    if not reading.parts[label]:
        return values[..., None]
    size = prod(reading.parts[label])
    return values if values.shape[-1:] == (size,) else flat(
        f"along[{label!r}]", values, size, "one for every direction: " + ", ".join(reading.columns[label]))


def _evaluator(plans: LoopPlans, asked: Question, given: Mapping[str, Any], t: npt.ArrayLike,
               plan: LoopPlan | None = None) -> tuple[Evaluator, LoopPlan | None]:
    """What runs the function, and the plan for loops, if it is not given."""
    if asked.function == "reactions":
        program = reaction_program(plans, given["q"], t, plan)
        if program is None:
            raise NotYetError(f"derivatives of reactions: {plans.tree.name!r} has no program for them")
        return program.run, program.run.tree.plan
    if not plans.tree.looped:
        return plans.kernels.evaluator, None
    plan = plan or plans.first(given["q"], t)
    return plans.kernels.planned(plan), plan


def _run(plans: LoopPlans, asked: Question, answer: Answer, given: Mapping[str, Any], wrenches: Wrenches,
         t: npt.ArrayLike, run: Evaluator, plan: LoopPlan | None) -> Floats:
    """The entries, (*batch, size)."""
    kernels, name = plans.kernels, answer.function.name
    kernels.functions |= {f.name: f for f in (answer.function, answer.chart) if f is not None}
    found = kernels.evaluate(name, given, wrenches, t, run)
    if not found.finite:
        kernels.check_inputs(found)
        if plan is None:
            kernels.refuse(found)
        _other_plans(plans, asked, answer, found, wrenches)
    return found.result


def _other_plans(plans: LoopPlans, asked: Question, answer: Answer, found: Evaluation, wrenches: Wrenches) -> None:
    """Fill in states in which pivots of the first plan vanish, by plans made for them. Their directions are those of
    other speeds, and are turned into those of the first plan."""
    bad, rows, there = found.failing(wrenches, plans.model.body_names)
    if asked.then is not None:
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
        matrices, _ = _turned(own, asked, answer, here, None if there is None else np.asarray(there)[k], t)
        found.out[state] = _contracted(asked, answer, matrices, {x: a[k] for x, a in rows.items()})


class Slopes(NamedTuple):
    """Forward dynamics of one state, how it changes, and how the machine moves meanwhile, along independent speeds."""

    value: Floats
    matrices: dict[str, Floats]  #: of q, u, tau and wrenches, (nu, columns)
    moved: Floats  #: position, by speed, with the coordinates, (nu, k)
    speeds: tuple[Floats, Floats]  #: u with the coordinates and with the speeds, (nu, k) each


def forward_slopes_at(plans: LoopPlans, q: Floats, u: Floats, tau: Floats, wrenches: Floats | None, t: float,
                      independent: Sequence[int], by: tuple[str, ...]) -> Slopes:
    """Derivatives of forward dynamics of one state, along chosen independent speeds and `by` tau or wrenches. What
    would take longer to compile is interpreted."""
    plans = _by_elimination(plans, None)
    here, k, nu = {"q": q, "u": u, "tau": tau}, len(independent), plans.tree.nu
    if _is_large(plans):
        value, found, motions = large_slopes(plans, here, wrenches, t, independent, ("q", "u", *by))
        if motions is not None:
            return Slopes(value, found, motions[0], motions[1:])
        found[""], motion = value, np.zeros((0, 0))
    else:
        asked = Question("forward_dynamics", None, ("q", "u", *by), plans.tree.looped, "")
        run, _ = _evaluator(plans, asked, here, t)
        answer = answer_to(plans, asked, run.tree)._replace(independent=list(independent))
        found, motion = _turned(plans, asked, answer, here, wrenches, t)
    if not plans.tree.looped:  # every speed is its own direction
        chosen = np.eye(nu)[:, list(independent)]
        found |= {x: found[x] @ chosen for x in ("q", "u")}
        return Slopes(found[""], found, chosen, (np.zeros((nu, k)), chosen))
    return Slopes(found[""], found, motion[:nu, :k], (motion[nu:, :k], motion[nu:, k:]))


def _turned(plans: LoopPlans, asked: Question, answer: Answer, here: Mapping[str, Floats], wrenches: Wrenches, t: float
            ) -> tuple[dict[str, Floats], Floats]:
    """The value, and the matrices of one state, (entries, columns): in directions of the first plan, by another; and
    how the machine moves along them, rows of position, u and u̇ by speed.

    With c the first plan's motion (position, u and u̇ at its independent speeds) along the other's directions, m of
    motion and x of anything else: D_c = D_m (dc/dm)⁻¹, D_x - D_c (dc/dx).
    """
    plan = plans.at(here["q"], t) if plans.tree.looped else None
    motion = tuple(x for x in MOTION if x in answer.what.inputs or x in ("q", "u"))
    others = tuple(x for x in asked.by if x not in motion)
    full = replace(asked, by=(*motion, *others) if asked.closed else asked.by, product="")
    run, _ = _evaluator(plans, asked, here, t, plan)
    whole = answer_to(plans, full, run.tree)
    plans.kernels.functions |= {f.name: f for f in (whole.function, whole.chart) if f is not None}
    found = plans.kernels.evaluate(whole.function.name, here, wrenches, t, _for_one(run, whole, wrenches is not None))
    if not found.finite:
        plans.kernels.refuse(found)
    size, at = answer.what.size, answer.what.size
    out = {"": found.out[0, :size]}
    for x in full.by:
        count = int(np.prod(whole.reading.parts[x], dtype=int))
        out[x] = found.out[0, at:at + size * count].reshape(size, count)
        at += size * count
    if not asked.closed:
        return out, np.zeros((0, 0))
    assert whole.chart is not None and plan is not None
    ways = plans.kernels.planned(plan)
    ways = TracedEvaluator(ways) if isinstance(ways, CompiledEvaluator) else ways
    chart = plans.kernels.evaluate(whole.chart.name, here, None, t, ways).out[0]
    first, nu, levels = answer.independent, plans.tree.nu, len(motion)
    every, rates, at = {}, {}, 0
    for x in full.by:
        count = out[x].shape[1]
        every[x] = chart[at:at + levels * nu * count].reshape(levels, nu, count)
        rates[x] = every[x][:, first].reshape(-1, count)
        at += levels * nu * count
    turn = np.concatenate([rates[x] for x in motion], axis=1)
    moving = np.concatenate([every[x].reshape(levels * nu, -1) for x in motion], axis=1)
    moved = np.linalg.solve(turn.T, np.concatenate([out[x] for x in motion], axis=1).T).T
    for x, part in zip(motion, np.split(moved, levels, axis=1), strict=True):
        out[x] = part
    for x in others:
        out[x] = out[x] - moved @ rates[x]
    return out, np.linalg.solve(turn.T, moving.T).T


def _for_one(run: Evaluator, answer: Answer, wrenches: bool) -> Evaluator:
    """What runs the answer for one state: interpreted, if that is quicker than compiling it."""
    if not isinstance(run, CompiledEvaluator):
        return run
    traced = run.trace(answer.function, wrenches)
    nodes = next((len(x.graph.nodes) for x in traced if type(x) is Scalar), 0) if isinstance(traced, list) else 0
    return TracedEvaluator(run) if nodes > _INTERPRETED else run


def _contracted(asked: Question, answer: Answer, matrices: Mapping[str, Floats], rows: Mapping[str, Floats]) -> Floats:
    """The entries of an answer from the matrices."""
    value = matrices[""]
    if asked.product == "along":
        rates = [matrices[x] @ rows[f"along{i}"] for i, x in enumerate(asked.by)]
        return np.concatenate([value, np.sum(rates, axis=0)])
    if asked.product == "weights":
        return np.concatenate([value, *(rows["weights"] @ matrices[x] for x in asked.by)])
    return np.concatenate([value, *(matrices[x].ravel() for x in asked.by)])
