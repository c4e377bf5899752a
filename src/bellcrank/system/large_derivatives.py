"""Derivatives of machines that are rolled into loops: products with vectors, linear in the number of links, and
matrices, column by column (or row by row, where these are fewer), side by side in lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats, absent, flat
from bellcrank.derivatives.directions import MOTION
from bellcrank.derivatives.pair_functions import pair_functions
from bellcrank.derivatives.quantities import INDEPENDENT
from bellcrank.errors import BellcrankError, NotYetError, SingularError, StateError
from bellcrank.formulations import functions_of
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.lowering.function import Function, input_sizes
from bellcrank.system.array_products import Chain, ClosedInverse, ClosedMotion, OpenProducts, Plain, Sum
from bellcrank.system.derivative_questions import Question, Reading, check_question, reading_of
from bellcrank.system.element_products import Loaded, OfMotions
from bellcrank.system.kernels import NO_DOORS, DoorPair
from bellcrank.system.loop_plans import LoopPlans
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    import numpy.typing as npt

    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.kernels import Wrenches
    from bellcrank.topology.tree import Tree

__all__ = ["LargeDoor", "LargeQuestion", "OneState", "failing_states", "in_loops", "large_door", "large_entries",
           "large_question", "large_slopes"]

#: what is one function as it stands
_PLAIN = ("momenta", "kinetic_energy", "potential_energy", "center_of_mass", "momentum", "joint_laws")
#: and all functions whose derivatives are
_ROLLED = ("forward_dynamics", "inverse_dynamics", "bias", "stored_energy", "energy", *_PLAIN)
#: what is one graph that grows with the number of links alone, for machines of any size
_LINEAR = ("pose", "velocity", "acceleration", "jacobian", "jacobian_rate", "outputs", "joint_coordinates",
           "joint_speeds", "joint_accelerations", "pair_wrenches")


def _functions(tree: Tree) -> dict[str, Function]:
    """The functions that are differentiated, whatever the method: what they compute does not depend on it."""
    return functions_of("elimination", True) if tree.looped else functions_of("recursive")


def _chain(plans: LoopPlans, name: str, functions: Mapping[str, Function]) -> Chain:
    """What is differentiated, made of functions that are rolled."""
    tree, outside = plans.tree, plans.kernels.springs_outside
    pairs = plans.kernels.kept("functions of elements", lambda: pair_functions(tree)) if outside else None

    def forced(function: str) -> Chain:
        own = Plain(functions[function], True)
        return own if pairs is None else Loaded(own, pairs, functions)

    def less_laws(function: str) -> Chain:
        own = forced(function)
        return Sum(((1.0, own), (-1.0, Plain(functions["joint_laws"])))) if tree.joint_forces else own

    stored: Chain = Plain(functions["joint_energy"] if outside or not tree.pairs else functions["stored_energy"])
    if pairs is not None:
        stored = Sum(((1.0, stored), (1.0, OfMotions(pairs.energy, pairs.links, functions))))
    made: dict[str, Callable[[], Chain]] = {
        "forward_dynamics": lambda: forced(name), "bias": lambda: less_laws(name), "stored_energy": lambda: stored,
        "inverse_dynamics": lambda: ClosedInverse(less_laws(name), functions["independent_forces"])
        if tree.looped else less_laws(name),
        "energy": lambda: Sum(((1.0, Plain(functions["motion_and_gravity"])), (1.0, stored)))
        if tree.joint_forces or tree.pairs else Plain(functions["motion_and_gravity"])}
    made |= dict.fromkeys(_PLAIN, lambda: Plain(functions[name]))
    return made[name]()


class LargeQuestion(NamedTuple):
    """A question about a large machine, with what answers it."""

    asked: Question
    reading: Reading
    chain: Chain
    functions: Mapping[str, Function]
    plan: LoopPlan | None  #: the first to be tried
    independent: tuple[int, ...]  #: the speeds that directions of closed machines belong to

    def along(self, independent: Sequence[int], names: Sequence[str] = ()) -> LargeQuestion:
        """The same with directions of other speeds, and columns of their names if these are given."""
        reading = self.reading.along(dict.fromkeys(MOTION, independent), names) if names else self.reading
        return self._replace(reading=reading, independent=tuple(independent))

    @property
    def moved(self) -> bool:
        """Whether the machine moves along with its variables."""
        return self.asked.closed and any(self.reading.variables[x].input in (*MOTION, "t", "parameters")
                                         for x in self.asked.by)


def in_loops(plans: LoopPlans, asked: Question, q: npt.ArrayLike, t: npt.ArrayLike) -> bool:
    """Whether a question is answered by code that loops over links; others are one graph of the whole machine."""
    if plans.kernels.direct:
        return False
    covered = asked.then is None and asked.product != "twice" and asked.function in _ROLLED
    if covered and plans.tree.looped:
        plan = plans.first(q, t)
        covered = not (asked.closed and (plan.slipping or asked.function in INDEPENDENT)) and (
            asked.function != "inverse_dynamics" or (
                asked.speeds == plan.independent and not any(plans.tree.prescribed_speeds())))
    if not covered and plans.kernels.large and (asked.then is not None or asked.function not in _LINEAR):
        raise NotYetError(f"{asked}: {plans.tree.name!r} has {plans.tree.n} links and is rolled into loops; of "
                          f"machines with more than {UNROLL_LINKS} links {', '.join((*_ROLLED, *_LINEAR))} can be "
                          "differentiated, once; of closed ones forces at the independent joints where nothing is "
                          "prescribed, and forces where nothing rolls; of functions in independent speeds none")
    return covered


def large_question(plans: LoopPlans, asked: Question, q: npt.ArrayLike, t: npt.ArrayLike) -> LargeQuestion:
    """What answers a question (see `in_loops`). Directions of closed machines are those of the first plan."""
    tree = plans.tree
    plan = plans.first(q, t) if tree.looped else None

    def made() -> LargeQuestion:
        functions = _functions(tree)
        return LargeQuestion(asked, reading_of(plans, asked, tree, plan), _chain(plans, asked.function, functions),
                             functions, plan, () if plan is None else plan.independent)

    return plans.kernels.kept(("large question", asked, None if plan is None else plan.key), made)


class LargeDoor(NamedTuple):
    """The cheapest way to a vector-Jacobian product: one kernel, which looks at the arrays itself."""

    doors: DoorPair
    reading: Reading
    chosen: dict[str, npt.NDArray[np.int64]]  #: of variables that belong to some speeds, which these are

    def __call__(self, by: Sequence[str], *arrays: Any) -> tuple[Floats, dict[str, Floats]] | None:
        """The value, and the derivatives by each variable; None if the arrays do not fit."""
        found = self.doors.one(*arrays)
        if found is None:
            return None
        value, *parts = found
        return value, {x: part.take(self.chosen[x]) if x in self.chosen else part
                       for x, part in zip(by, parts, strict=True)}


def large_door(plans: LoopPlans, asked: Question) -> LargeDoor | None:
    """The door of a vector-Jacobian product by q, u, tau or udot, where one kernel computes it; None where not, and
    where the question is wrong."""
    if not set(asked.by) <= {"q", "u", "tau", "udot"} or len(set(asked.by)) < len(asked.by):
        return None
    try:
        check_question(asked)
        start = plans.reference().q if plans.tree.looped else plans.configuration.neutral()
        of = large_question(plans, asked, start, 0.0)
    except BellcrankError:
        return None
    if not isinstance(of.chain, Plain) or of.chain.function.layout != "speeds":
        return None
    if asked.closed != of.chain.function.groups:
        return None
    kernels = plans.kernels
    run = kernels.evaluator if of.plan is None else kernels.planned(of.plan)
    at, size, nu = OpenProducts(kernels, run, {}, None, 0.0), of.reading.size, plans.tree.nu
    inputs = of.chain.function.inputs if asked.closed else tuple(x for x in of.chain.function.inputs if x in asked.by)
    made = at.product(of.chain.function, inputs, True, of.functions["dependent_speeds"] if asked.closed else None)
    starts = {x: size + nu * i for i, x in enumerate(inputs)}
    if asked.closed:
        starts |= {"q": size + nu * len(inputs), "u": size + nu * (len(inputs) + 1)}
    parts = ((0, (size,), (1,)), *((starts[x], (nu,), (1,)) for x in asked.by))
    doors = kernels.door_pair(made.name, DoorForm(parts=parts), run)
    chosen = {x: np.array(of.independent, dtype=np.int64) for x in asked.by if asked.closed and x in MOTION}
    return None if doors is NO_DOORS else LargeDoor(doors, of.reading, chosen)


def large_entries(plans: LoopPlans, of: LargeQuestion, given: Mapping[str, Any], wrenches: Wrenches, t: npt.ArrayLike
                  ) -> Floats:
    """The entries of an answer, (*batch, size): the value, then the derivatives. `given` are the inputs, and what
    derivatives are multiplied with ("along0" and so on, or "weights")."""
    arrays = _shaped(plans, given)
    rows = _entries(plans, of, arrays, wrenches, t, of.plan)
    if not np.isfinite(rows).all():
        rows[np.broadcast_to(absent(arrays["q"]), rows.shape[:-1])] = np.nan
        _check(arrays)
        if of.plan is None:
            raise SingularError(f"derivatives of {of.asked.function}: {plans.tree.name!r} has no finite result: the "
                                "state or the machine is singular (an inertia vanishes, a quaternion is zero, or "
                                "numbers overflow)")
        _by_other_plans(plans, of, arrays, wrenches, t, rows)
    return rows


class LargeSlopes(NamedTuple):
    """Forward dynamics of one state, its matrices, and how a closed machine moves along chosen speeds, (nu, k) each:
    positions and speeds with coordinates, speeds with speeds."""

    value: Floats
    matrices: dict[str, Floats]
    motions: tuple[Floats, Floats, Floats] | None  #: none of trees


def large_slopes(plans: LoopPlans, here: Mapping[str, Floats], wrenches: Wrenches, t: float,
                 independent: Sequence[int], by: tuple[str, ...]) -> LargeSlopes:
    """Derivatives of forward dynamics by `by`, along chosen independent speeds of a closed machine."""
    tree = plans.tree
    of = large_question(plans, Question("forward_dynamics", None, by, tree.looped, ""), here["q"], t)
    plan = plans.at(here["q"], t) if tree.looped else None
    of = of.along(independent) if tree.looped else of
    rows = _entries(plans, of, here, wrenches, t, plan)
    if not np.isfinite(rows).all():
        raise SingularError(f"derivatives of forward_dynamics: {tree.name!r} is singular")
    matrices, at = {}, tree.nu
    for x in by:
        count = prod(of.reading.parts[x])
        matrices[x] = rows[at:at + tree.nu * count].reshape(tree.nu, count)
        at += tree.nu * count
    if plan is None:
        return LargeSlopes(rows[:tree.nu], matrices, None)
    moving = ClosedMotion(OpenProducts(plans.kernels, plans.kernels.planned(plan), here, None, t), of.functions,
                          of.independent)
    unit = np.eye(len(independent))
    place, speed = moving.forward({"q": unit}), moving.forward({"u": unit})
    return LargeSlopes(rows[:tree.nu], matrices, (place["q"].T, place["u"].T, speed["u"].T))


def _shaped(plans: LoopPlans, given: Mapping[str, Any]) -> dict[str, Floats]:
    """Inputs as arrays, checked."""
    sizes, out = input_sizes(plans.tree), {}
    for x, array in given.items():
        what = "the coordinates" if x == "q" else "one for every speed"
        out[x] = flat(x, array, sizes[x], what) if x in sizes else np.asarray(array, dtype=float)
    return out


def _entries(plans: LoopPlans, of: LargeQuestion, given: Mapping[str, Floats], wrenches: Wrenches, t: npt.ArrayLike,
             plan: LoopPlan | None) -> Floats:
    """The same by one plan; not finite where its pivots vanish."""
    kernels = plans.kernels
    run = kernels.evaluator if plan is None else kernels.planned(plan)
    inputs = {x: a for x, a in given.items() if x != "weights" and not x.startswith("along")}
    at = OpenProducts(kernels, run, inputs, wrenches, t)
    chart = ClosedMotion(at, of.functions, of.independent) if of.moved else None
    if of.asked.product == "along":
        value, change = _forward(of, at, chart, {x: given[f"along{i}"] for i, x in enumerate(of.asked.by)})
        return np.concatenate(np.broadcast_arrays(value, change), axis=-1)
    if of.asked.product == "weights":
        value, parts = _backward(of, at, chart, given["weights"])
        return _joined([value, *(parts[x] for x in of.asked.by)])
    return _matrices(plans, of, at, chart)


def _forward(of: LargeQuestion, at: OpenProducts, chart: ClosedMotion | None, ways: Mapping[str, Floats]
             ) -> tuple[Floats, Floats]:
    """The value, and its rate for rates of the variables."""
    rates: dict[str, Floats] = {}
    for label, way in ways.items():
        variable = of.reading.variables[label]
        if of.asked.closed and variable.input in MOTION:
            rates[variable.input] = way
            continue
        whole = way
        if label != variable.input:  # some entries, or in another order
            whole = np.zeros((*way.shape[:-1], _size(at, variable.input)))
            whole[..., list(variable.entries)] = way
        rates[variable.input] = rates[variable.input] + whole if variable.input in rates else whole
    return of.chain.forward(at, rates if chart is None else chart.forward(rates))


def _size(at: OpenProducts, name: str) -> int:
    return at.run.tree.nu if name == "q" else input_sizes(at.run.tree)[name]


def _backward(of: LargeQuestion, at: OpenProducts, chart: ClosedMotion | None, weights: Floats
              ) -> tuple[Floats, dict[str, Floats]]:
    """The value, and the derivatives of its sum with weights by each variable."""
    sought = [of.reading.variables[x].input for x in of.asked.by]
    if chart is not None and chart.turn is None and isinstance(of.chain, Plain) and of.chain.function.groups:
        value, found = chart.backward_at_once(of.chain, tuple(dict.fromkeys(sought)), weights)
    else:
        every = sought if chart is None else [*sought, *(x for x in MOTION if x in at.given and x not in sought)]
        value, found = of.chain.backward(at, tuple(dict.fromkeys(every)), weights)
        found = found if chart is None else chart.backward(found, sought)
    out = {}
    for label in of.asked.by:
        variable = of.reading.variables[label]
        if of.asked.closed and variable.input in MOTION:
            part = found.get(variable.input, np.zeros(len(of.independent)))
        else:
            whole = found.get(variable.input)
            part = np.zeros(len(variable.entries)) if whole is None else \
                whole if label == variable.input else whole[..., list(variable.entries)]
        out[label] = part
    return value, out


def _joined(parts: Sequence[Floats]) -> Floats:
    lead = np.broadcast_shapes(*(p.shape[:-1] for p in parts))
    return np.concatenate([np.broadcast_to(p, (*lead, p.shape[-1])) for p in parts], axis=-1)


def _matrices(plans: LoopPlans, of: LargeQuestion, at: OpenProducts, chart: ClosedMotion | None) -> Floats:
    """The value and matrices, row by row: directions (or weights of single entries) are one more axis of the batch, the
    first one."""
    widths = {x: int(np.prod(of.reading.parts[x], dtype=int)) for x in of.asked.by}
    size, batch = of.reading.size, _batch_axes(plans, at)

    def units(n: int) -> Floats:
        return np.eye(n).reshape(n, *(1,) * batch, n)

    if size <= sum(widths.values()):
        value, found = _backward(of, at, chart, units(size))
        rows = {x: np.moveaxis(np.broadcast_to(a, (*value.shape[:-1], a.shape[-1])), 0, -2) for x, a in found.items()}
        return _joined([value[0], *(a.reshape(*a.shape[:-2], -1) for a in rows.values())])
    total, start, ways = sum(widths.values()), 0, {}
    for x, n in widths.items():
        way = np.zeros((total, *(1,) * batch, n))
        way[start:start + n] = units(n)
        ways[x], start = way, start + n
    value, change = _forward(of, at, chart, ways)
    if value.ndim == batch + 1:  # it depends on none of the variables
        value, change = value[None], change[None]
    change = np.broadcast_to(change, (total, *value.shape[1:]))
    parts, start = [value[0]], 0
    for n in widths.values():
        block = np.moveaxis(change[start:start + n], 0, -1)
        parts.append(block.reshape(*block.shape[:-2], -1))
        start += n
    return _joined(parts)


def _batch_axes(plans: LoopPlans, at: OpenProducts) -> int:
    """How many axes the batch has."""
    axes = [a.ndim - 1 for a in at.given.values()] + [np.ndim(at.t)]
    if plans.tree.parameters:
        axes.append(plans.kernels.parameter_array().ndim - 1)
    if at.wrenches is not None:
        axes.append(plans.model.wrench_rows(at.wrenches).ndim - 2)
    return max(axes)


def _check(given: Mapping[str, Floats]) -> None:
    """Say which input is not finite, if one is not."""
    for x, array in given.items():
        bad = np.argwhere(~np.isfinite(array) & ~(x in ("q", "u") and absent(given["q"])[..., None]))
        if len(bad):
            where = f", batch index {tuple(bad[0][:-1].tolist())}" if array.ndim > 1 else ""
            raise StateError(f"derivatives: {x}[{int(bad[0][-1])}] is {array[tuple(bad[0])]}{where}; inputs must be "
                             "finite")


class OneState(NamedTuple):
    """A state of a batch, with the machine as its parameters are there."""

    place: tuple[int, ...]  #: its index in the batch
    plans: LoopPlans
    given: dict[str, Floats]
    wrenches: Floats | None
    t: float


def failing_states(plans: LoopPlans, rows: Floats, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
                   t: npt.ArrayLike) -> Iterator[OneState]:
    """The states whose rows (*batch, size) are not finite."""
    lead = rows.shape[:-1]
    whole = {x: np.broadcast_to(np.asarray(a, dtype=float), (*lead, np.shape(a)[-1])) for x, a in given.items()}
    times = np.broadcast_to(np.asarray(t, dtype=float), lead)
    felt = None if wrenches is None else plans.model.wrench_rows(wrenches)
    felt = felt if felt is None else np.broadcast_to(felt, (*lead, *felt.shape[-2:]))
    values = plans.kernels.parameter_array() if plans.model.batched else None
    for state in map(tuple, np.argwhere(~np.isfinite(rows).all(axis=-1) & ~absent(whole["q"])).tolist()):
        own = plans
        if values is not None:
            here = np.broadcast_to(values, (*lead, values.shape[-1]))[state]
            own = LoopPlans(plans.kernels.for_model(plans.model.with_values(
                dict(zip(plans.model.values, here.tolist(), strict=True)))))
        yield OneState(state, own, {x: a[state] for x, a in whole.items()}, None if felt is None else felt[state],
                       float(times[state]))


def _by_other_plans(plans: LoopPlans, of: LargeQuestion, given: Mapping[str, Floats], wrenches: Wrenches,
                    t: npt.ArrayLike, rows: Floats) -> None:
    """Fill in states in which pivots of the first plan vanish, by plans made for them; directions stay those of the
    first plan."""
    for at in failing_states(plans, rows, given, wrenches, t):
        found = _entries(at.plans, of, at.given, at.wrenches, at.t, at.plans.at(at.given["q"], at.t))
        if not np.isfinite(found).all():
            names = ", ".join(plans.configuration.speed_names[v] for v in of.independent)
            raise SingularError(f"derivatives of {of.asked.function}: {plans.tree.name!r} is singular, or {names} do "
                                f"not determine its motion{f' at batch index {at.place}' if at.place else ''}; choose "
                                "other independent=...")
        rows[at.place] = found
