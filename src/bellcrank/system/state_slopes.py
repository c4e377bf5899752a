"""Derivatives where a machine is: by which plan, in whose directions; of forward dynamics and of forces at rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.derivatives.derived import Space, directions_twice, product_forward
from bellcrank.derivatives.directions import Variable
from bellcrank.derivatives.quantities import unbalanced
from bellcrank.errors import NotYetError, SingularError
from bellcrank.lowering.function import Function
from bellcrank.scalar.graph import Scalar
from bellcrank.system.derivative_questions import Answer, Question, answer_to
from bellcrank.system.evaluator import UNROLL_LINKS, CompiledEvaluator, Evaluator, TracedEvaluator
from bellcrank.system.kernels import Kernels, Wrenches
from bellcrank.system.large_derivatives import in_loops, large_slopes
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.system.reactions import reaction_tree

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan

__all__ = ["Slopes", "by_elimination", "differentiable", "evaluator_for", "forward_slopes_at", "in_directions_shown",
           "refuse_large", "second_rows", "turned", "unbalanced_rates"]

#: operations beyond which one state is interpreted sooner than compiled
_INTERPRETED = 3000
#: states for which it is compiled whatever its size
_FEW = 20
#: speeds whose part in a motion is smaller than this do not determine it
_NONE = 1e-9


def differentiable(plans: LoopPlans, closed: bool | None) -> LoopPlans:
    """Plans by which closed machines are differentiated: those of `elimination`, since what is differentiated does not
    depend on the method."""
    tree, model = plans.tree, plans.model
    if not tree.looped or model.method == "elimination":
        return plans
    if closed is False and any(model.options.baumgarte):
        raise NotYetError("derivatives: closed=False does not go together with baumgarte=...; leave one of them out")
    return by_elimination(plans)


def refuse_large(plans: LoopPlans, what: str) -> None:
    """Refuse machines whose code is rolled into loops."""
    if not plans.kernels.direct:
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


def evaluator_for(plans: LoopPlans, asked: Question, given: Mapping[str, Any], t: npt.ArrayLike,
               plan: LoopPlan | None = None) -> tuple[Evaluator, LoopPlan | None]:
    """What runs the function, and the plan for loops, if it is not given."""
    if plans.tree.looped:
        plan = plan or plans.first(given["q"], t)
    if asked.function == "reactions":
        run = plans.kernels.kept(("reactions as a whole", None if plan is None else plan.key),
                                 lambda: plans.kernels.maker(reaction_tree(plans, plan)))
        if [c.name for c in run.tree.closures] != [c.name for c in plans.tree.closures]:
            raise NotYetError(f"derivatives of reactions: welds close loops of {plans.tree.name!r}, and their "
                              "reactions have no program; join the welded bodies, or give the welds as other joints")
        return run, plan
    return planned(plans, plan), plan


def planned(plans: LoopPlans, plan: LoopPlan | None) -> Evaluator:
    """What runs functions of the whole machine, springs between its links included, by a plan."""
    kernels = plans.kernels
    if kernels.springs_outside:
        return kernels.kept(("with springs", None if plan is None else plan.key),
                            lambda: kernels.maker(replace(plans.tree, plan=plan)))
    return kernels.evaluator if plan is None else kernels.planned(plan)


class Slopes(NamedTuple):
    """Forward dynamics of one state, how it changes, and how the machine moves meanwhile, along displacements of p
    chosen speeds and along k independent speeds."""

    value: Floats
    matrices: dict[str, Floats]  #: of q, u, tau and wrenches, (nu, columns)
    moved: Floats  #: position, by speed, with the displacements, (nu, p)
    speeds: tuple[Floats, Floats]  #: u with the displacements, (nu, p), and with the speeds, (nu, k)


def forward_slopes_at(plans: LoopPlans, q: Floats, u: Floats, tau: Floats, wrenches: Floats | None, t: float,
                      placed: Sequence[int], independent: Sequence[int], by: tuple[str, ...], states: int = 1
                      ) -> Slopes:
    """Derivatives of forward dynamics of one state, along displacements of the speeds `placed`, which determine the
    position, along independent speeds, and `by` tau or wrenches. What would take longer to compile than to interpret
    for so many states is interpreted."""
    plans = differentiable(plans, None)
    here, p, nu = {"q": q, "u": u, "tau": tau}, len(placed), plans.tree.nu
    asked = Question("forward_dynamics", None, ("q", "u", *by), plans.tree.looped, "")
    if in_loops(plans, asked, q, t):
        value, found, motions = large_slopes(plans, here, wrenches, t, independent, ("q", "u", *by))
        if motions is not None:
            return Slopes(value, found, motions[0], motions[1:])
        found[""], motion = value, np.zeros((0, 0))
    else:
        run, _ = evaluator_for(plans, asked, here, t)
        answer = answer_to(plans, asked, run.tree)._replace(ways={"q": list(placed), "u": list(independent)})
        found, motion = turned(plans, asked, answer, here, wrenches, t, states)
    if not plans.tree.looped:  # every speed is its own direction
        chosen = np.eye(nu)[:, list(independent)]
        found |= {x: found[x] @ chosen for x in ("q", "u")}
        return Slopes(found[""], found, chosen, (np.zeros((nu, p)), chosen))
    return Slopes(found[""], found, motion[:nu, :p], (motion[nu:, :p], motion[nu:, p:]))


def unbalanced_rates(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], along: Floats, wrenches: Wrenches,
                     t: npt.ArrayLike) -> Floats:
    """How what forces leave unbalanced at every speed (`derivatives.quantities.unbalanced`) changes along motions of
    all speeds (..., nu), for q, tau and multipliers of the constraints; every coordinate by itself, exactly."""
    kernels, tree = plans.kernels, plans.tree
    refuse_large(plans, "derivatives of forces at rest")

    def make() -> Function:
        space = Space((Variable("q", "q", tuple(range(tree.nu))),), False, kernels.functions)
        return product_forward("unbalanced forces along motions", unbalanced(kernels.functions, tree), space, tree)

    function = kernels.kept("unbalanced forces", make)
    kernels.functions |= {function.name: function}  # shared with other parameters, which have functions of their own
    run = _for_few(kernels.evaluator, function, wrenches is not None)
    arrays = {"u": np.zeros(tree.nu), **given, "along0": along}
    return kernels.run(function.name, arrays, wrenches, t, run)[..., tree.nu:]


def turned(plans: LoopPlans, asked: Question, answer: Answer, here: Mapping[str, Floats], wrenches: Wrenches, t: float,
           states: int = 1) -> tuple[dict[str, Floats], Floats]:
    """The value, and the matrices of one state, (entries, columns): in directions of the first plan, by another; and
    how the machine moves along them, rows of position, u and u̇ by speed.

    With c the first plan's motion (position, u and u̇ at the speeds that its directions belong to) along the other's
    directions, m of motion and x of anything else: D_c = D_m (dc/dm)⁻¹, D_x - D_c (dc/dx).
    """
    plan = plans.at(here["q"], t) if plans.tree.looped else None
    full = _whole_question(asked, answer)
    run, _ = evaluator_for(plans, asked, here, t, plan)
    whole = answer_to(plans, full, run.tree)
    plans.kernels.functions |= {f.name: f for f in (whole.function, whole.chart) if f is not None}
    one = _for_few(run, whole.function, wrenches is not None, states)
    found = plans.kernels.evaluate(whole.function.name, here, wrenches, t, one)
    if not found.finite:
        plans.kernels.refuse(found)
    chart = np.zeros((1, 0))
    if asked.closed:
        assert whole.chart is not None and plan is not None
        ways = planned(plans, plan)
        ways = TracedEvaluator(ways) if isinstance(ways, CompiledEvaluator) and states < _FEW else ways
        chart = plans.kernels.evaluate(whole.chart.name, here, None, t, ways).out
    out, motions = _directed(plans, answer, whole, full, found.out, chart)
    return {x: a[0] for x, a in out.items()}, motions[0]


def in_directions_shown(plans: LoopPlans, asked: Question, answer: Answer, given: Mapping[str, Any], wrenches: Wrenches,
                        t: npt.ArrayLike, run: Evaluator, plan: LoopPlan) -> dict[str, Floats]:
    """The same of many states, (states, entries, columns), by one plan, which may have no pivots in some: NaN there."""
    full = _whole_question(asked, answer)
    whole = answer_to(plans, full, run.tree)
    assert whole.chart is not None
    plans.kernels.functions |= {whole.function.name: whole.function, whole.chart.name: whole.chart}
    here = {x: given[x] for x in answer.what.inputs if x != "t"}
    found = plans.kernels.evaluate(whole.function.name, here, wrenches, t, run)
    chart = plans.kernels.evaluate(whole.chart.name, here, None, t, planned(plans, plan)).result
    rows = np.broadcast_to(chart, (*found.lead, chart.shape[-1])).reshape(len(found.out), -1)
    good = np.isfinite(found.out).all(axis=-1) & np.isfinite(rows).all(axis=-1)
    out, _ = _directed(plans, answer, whole, full, found.out[good], rows[good])
    every = {x: np.full((len(rows), *a.shape[1:]), np.nan) for x, a in out.items()}
    for x, some in out.items():
        every[x][good] = some
    return every


def second_rows(plans: LoopPlans, asked: Question, answer: Answer, given: Mapping[str, Any], wrenches: Wrenches,
                t: npt.ArrayLike, plan: LoopPlan | None, turn: bool) -> Floats:
    """The entries of second derivatives, (*batch, entries), by one plan; NaN where it has no pivots. `turn`: directions
    of the answer are not those of the plan. Matrices are made of products, column by column.

    With s the coordinates of the answer, y those of the plan, C = ds/dy (m of motion), T = dy/ds, weights w and a
    direction r:    D_s(D_s(w f) r) = [D_y(D_y(w f) T r) - D_y(D_y(mu s) T r)] T,    mu = D_m(w f) / C_m.
    """
    given = given if asked.then is None else {**given, **_units(asked, answer, given)}
    motion = answer.what.motion if turn else ()
    labels = (*motion, *(x for x in asked.varied if x not in motion))
    twice = replace(asked, by=labels, product="twice", then=None)
    run, plan = evaluator_for(plans, asked, given, t, plan)
    whole = answer_to(plans, twice, run.tree)

    def product(function: Function, on: Evaluator, way: Mapping[str, Floats], weights: Floats | None) -> Floats:
        plans.kernels.functions |= {function.name: function}
        arrays = {**given, **{f"along{i}": a for i, a in enumerate(way.values())}, "weights": weights}
        arrays = {x: np.asarray(arrays[x], dtype=float) for x in function.inputs if x != "t"}
        states = prod(np.broadcast_shapes(*(a.shape[:-1] for a in arrays.values())))
        felt = wrenches if on is run else None
        return plans.kernels.evaluate(function.name, arrays, felt, t, _for_few(on, function, felt is not None, states)
                                      ).result

    size, way = answer.what.size, {x: np.asarray(given[f"along{i}"]) for i, x in enumerate(asked.varied)}
    if not turn:
        entries = product(whole.function, run, way, given["weights"])
        return _second_entries(asked, whole, entries[..., :2 * size], _parts(whole, labels, entries[..., 2 * size:]))
    assert plan is not None and whole.chart is not None
    ways = planned(plans, plan)
    places = product(whole.chart, ways, {}, None)
    good = np.asarray(np.isfinite(places).all(axis=-1))
    if not good.any():
        return np.full((*good.shape, 1), np.nan)
    chart = _Turn.of(plans, answer, whole, labels, np.where(good[..., None], places, places[good][0]))
    way = chart.along(way)
    first = answer_to(plans, replace(twice, by=motion, product="weights"), run.tree)
    mu = chart.pulled(product(first.function, run, {}, given["weights"])[..., size:])
    entries = product(whole.function, run, way, given["weights"])
    bent = product(_directions_twice(plans, twice, whole, chart.rows, ways), ways, way, mu)
    parts = {x: a[..., None, :] for x, a in _parts(whole, labels, entries[..., 2 * size:] - bent).items()}
    rows = _second_entries(asked, whole, entries[..., :2 * size],
                           {x: a[..., 0, :] for x, a in chart.back(parts).items()})
    return np.where(good[..., None], rows, np.nan)


def _units(asked: Question, answer: Answer, given: Mapping[str, Any]) -> dict[str, Floats]:
    """Directions and weights by which products are entries of second derivatives: one more axis of the batch, the first
    one, in the order of the matrices."""
    reading, size = answer.reading, answer.what.size
    widths = {x: prod(reading.parts[x]) for x in asked.varied}
    some = [np.asarray(given[x], dtype=float).ndim - 1 for x in answer.what.inputs if x != "t"]
    batch = (1,) * max([0, *some])
    blocks = [(x, i, j) for x in asked.by for i in range(size) for j in range(widths[x])]
    out = {f"along{k}": np.array([np.eye(n)[j] if x == y else np.zeros(n) for x, _, j in blocks])
           for k, (y, n) in enumerate(widths.items())}
    out["weights"] = np.array([np.eye(size)[i] for _, i, _ in blocks])
    return {x: a.reshape(len(blocks), *batch, a.shape[-1] if a.size else 0) for x, a in out.items()}


def _parts(whole: Answer, labels: Sequence[str], entries: Floats) -> dict[str, Floats]:
    """Entries variable by variable."""
    ends = np.cumsum([prod(whole.reading.parts[x]) for x in labels])[:-1]
    return dict(zip(labels, np.split(entries, ends, axis=-1), strict=True))


def _second_entries(asked: Question, whole: Answer, values: Floats, parts: Mapping[str, Floats]) -> Floats:
    """As `read_entries` takes them."""
    if asked.then is None:
        return np.concatenate([values, *(parts[x] for x in asked.by)], axis=-1)
    columns = np.moveaxis(parts[asked.then], 0, -2)
    return columns.reshape(*columns.shape[:-2], -1)


def _directions_twice(plans: LoopPlans, twice: Question, whole: Answer, rows: tuple[int, ...], run: Evaluator
                        ) -> Function:
    """How some rows of a plan's directions change, made once."""
    def make() -> Function:
        space = Space(tuple(whole.reading.variables[x] for x in twice.by), True, plans.kernels.functions)
        return directions_twice(f"change of directions of {twice} at {rows}", whole.what, space, rows, run.tree)

    return plans.kernels.kept(("directions twice", twice, rows, run.tree.plan.key), make)


def _whole_question(asked: Question, answer: Answer) -> Question:
    """The matrices by all motion, and by what else is asked for."""
    motion = answer.what.motion if asked.closed else ()
    return replace(asked, product="", by=(*motion, *(x for x in asked.by if x not in motion)))


def _directed(plans: LoopPlans, answer: Answer, whole: Answer, full: Question, entries: Floats, chart: Floats
              ) -> tuple[dict[str, Floats], Floats]:
    """Matrices (states, entries, columns) in directions of the answer, from those of a whole question and how the
    machine moves along its directions; see `turned`."""
    n, size, at = len(entries), answer.what.size, answer.what.size
    out = {"": entries[:, :size]}
    for x in full.by:
        count = prod(whole.reading.parts[x])
        out[x] = entries[:, at:at + size * count].reshape(n, size, count)
        at += size * count
    if not full.closed:
        return out, np.zeros((n, 0, 0))
    turn = _Turn.of(plans, answer, whole, full.by, chart)
    return out | turn.back({x: out[x] for x in full.by}), _over(turn.moving, turn.square)


@dataclass(frozen=True)
class _Turn:
    """How the coordinates of an answer change with those of a plan, C = ds/dy: what is known of one follows for the
    other. Arrays have the axes of a batch first."""

    answer: Answer
    rows: tuple[int, ...]  #: those of a plan's directions (`derivatives.directions.chart`) that are the answer's own
    rates: dict[str, Floats]  #: C by variable
    moving: Floats  #: all rows, by motion

    @classmethod
    def of(cls, plans: LoopPlans, answer: Answer, whole: Answer, labels: Sequence[str], entries: Floats) -> _Turn:
        """From the entries of the directions of a plan."""
        nu, motion = plans.tree.nu, answer.what.motion
        rows = tuple(level * nu + v for level, x in enumerate(motion) for v in answer.ways[x])
        every, at, height = {}, 0, len(motion) * nu
        for x in labels:
            count = prod(whole.reading.parts[x])
            every[x] = entries[..., at:at + height * count].reshape(*entries.shape[:-1], height, count)
            at += height * count
        _check_directions(plans, answer, {x: every[x][..., level * nu:(level + 1) * nu, :]
                                          for level, x in enumerate(motion)})
        return cls(answer, rows, {x: a[..., list(rows), :] for x, a in every.items()},
                   np.concatenate([every[x] for x in motion], axis=-1))

    @property
    def square(self) -> Floats:
        """C of motion."""
        return self.moving[..., list(self.rows), :]

    def _split(self, array: Floats) -> dict[str, Floats]:
        motion = self.answer.what.motion
        ends = np.cumsum([len(self.answer.ways[x]) for x in motion])[:-1]
        return dict(zip(motion, np.split(array, ends, axis=-1), strict=True))

    def back(self, parts: Mapping[str, Floats]) -> dict[str, Floats]:
        """Matrices by s from those by y: D_m / C_m, and D_x - (D_m / C_m) C_x."""
        moved = _over(np.concatenate([parts[x] for x in self.answer.what.motion], axis=-1), self.square)
        own = self._split(moved)
        return {x: own[x] if x in own else a - moved @ self.rates[x] for x, a in parts.items()}

    def along(self, way: Mapping[str, Floats]) -> dict[str, Floats]:
        """A direction of y from one of s."""
        motion, others = self.answer.what.motion, {x: a for x, a in way.items() if x in self.rates}
        none = [np.zeros(len(self.answer.ways[x])) for x in motion]
        given = [way.get(x, zero) for x, zero in zip(motion, none, strict=True)]
        lead = np.broadcast_shapes(*(a.shape[:-1] for a in given))
        wanted = np.concatenate([np.broadcast_to(a, (*lead, a.shape[-1])) for a in given], axis=-1)
        for x, a in others.items():
            if x not in motion:
                wanted = wanted - (self.rates[x] @ a[..., None])[..., 0]
        moved = np.linalg.solve(self.square, wanted[..., None])[..., 0]
        return self._split(moved) | {x: a for x, a in others.items() if x not in motion}

    def pulled(self, weights: Floats) -> Floats:
        """D_m / C_m of one row."""
        return _over(weights[..., None, :], self.square)[..., 0, :]


def _over(a: Floats, b: Floats) -> Floats:
    """a b⁻¹"""
    return np.swapaxes(np.linalg.solve(np.swapaxes(b, -1, -2), np.swapaxes(a, -1, -2)), -1, -2)


def _check_directions(plans: LoopPlans, answer: Answer, motions: Mapping[str, Floats]) -> None:
    """Refuse directions that belong to speeds which do not determine the motion there."""
    for x, way in motions.items():
        entries = answer.ways[x]
        s = np.linalg.svd(way[..., entries, :], compute_uv=False).min(axis=-1, initial=np.inf)
        if (s < _NONE * np.maximum(np.abs(way).max(axis=(-1, -2), initial=0.0), 1.0)).any():
            names = ", ".join(plans.configuration.speed_names[v] for v in entries)
            raise SingularError(f"derivatives: {plans.tree.name!r} is in a position where {names} do not determine its "
                                "motion, so that nothing changes with them alone; choose other independent=...")


def _for_few(run: Evaluator, function: Function, wrenches: bool, states: int = 1) -> Evaluator:
    """What runs a function for a state or a few: interpreted, if that is quicker than compiling it."""
    if not isinstance(run, CompiledEvaluator) or states >= _FEW:
        return run
    traced = run.trace(function, wrenches)
    nodes = next((len(x.graph.nodes) for x in traced if type(x) is Scalar), 0) if isinstance(traced, list) else 0
    return TracedEvaluator(run) if nodes > _INTERPRETED else run
