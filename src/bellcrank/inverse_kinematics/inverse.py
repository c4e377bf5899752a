"""`System.inverse_kinematics`: where to begin, how often, and what to say of the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, how_many
from bellcrank.errors import AssemblyError, ModelError, NotYetError, StateError
from bellcrank.inverse_kinematics.solver import Found, Problem
from bellcrank.inverse_kinematics.targets import KinematicTarget, targets_of
from bellcrank.system import assembly
from bellcrank.system.body_places import body_place
from bellcrank.system.random_states import CoordinateRanges, random_state
from bellcrank.system.state import State

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["InverseKinematics", "inverse_kinematics"]

Values = Mapping[str, Any] | npt.ArrayLike
Ints = npt.NDArray[np.int64]

#: random starts of states that are not solved, if no guess is given
_STARTS = 30
#: how many of them are tried at first, and the most steps from each
_WAVE, _TRIED = 2, 50
#: by how much whole turns may change errors
_ROUNDING = 1e-12


@dataclass(frozen=True)
class InverseKinematics:
    """Positions and how well they meet the targets; arrays have the batch axes of these.

    `solved` says where all targets are met within the tolerance and all coordinates are in their ranges; elsewhere
    `state` is the nearest that was found, and `error` says how far it is off. Loops are closed in both.
    """

    state: State
    solved: npt.NDArray[np.bool_]
    error: Floats  #: the largest error of all targets, in lengths of the machine, rad or sizes
    errors: dict[str, Floats]  #: of every target by its name, (..., rows)
    iterations: npt.NDArray[np.int64]
    at_ends: dict[str, npt.NDArray[np.bool_]]  #: where coordinates are at an end of their range, by name

    def __repr__(self) -> str:
        if not self.solved.ndim:
            return f"<InverseKinematics: {'solved' if self.solved else 'not solved'}, error {float(self.error):.3g}>"
        return f"<InverseKinematics: {int(self.solved.sum())} of {self.solved.size} solved>"


def inverse_kinematics(plans: LoopPlans, targets: KinematicTarget | Sequence[KinematicTarget], *,
                       guess: State | Values | None = None, posture: State | Values | None = None,
                       ranges: bool = True, starts: int | None = None,
                       every: bool = False, tolerance: float = 1e-10, iterations: int = 100, seed: int = 0,
                       t: float = 0.0) -> InverseKinematics:
    """See `System.inverse_kinematics`."""
    several = targets_of(targets)
    _check(plans, several)
    iterations = how_many("inverse_kinematics: iterations", iterations, 1)
    if not 0.0 < tolerance < np.inf:
        raise StateError(f"inverse_kinematics: tolerance must be a positive number, got {tolerance!r}")
    begun = assembly.assemble(plans, guess=guess, t=t)
    lead = _lead(plans, several, begun)
    starts = how_many("inverse_kinematics: starts", _STARTS if starts is None and guess is None else starts or 0, 0)
    aim = None if posture is None else np.asarray(assembly.assemble(plans, guess=posture, t=t).q)
    if aim is not None and aim.ndim != 1:
        raise StateError(f"inverse_kinematics: posture is one position, got shape {aim.shape}")
    limits = CoordinateRanges.of(plans) if ranges else CoordinateRanges.none()
    q = np.broadcast_to(begun.q, (*lead, plans.tree.nq)).reshape(-1, plans.tree.nq)
    problem = Problem(plans, several, q, aim, limits, lead, t)
    if every:
        return _every(problem, q, how_many("inverse_kinematics: starts", starts or _STARTS, 1), tolerance, iterations,
                      seed)
    some = np.arange(len(q))
    found = problem.solve(q, some, tolerance, iterations)
    others = q[:0] if found.solved.all() else _random(problem, starts, seed)
    first, wave = 0, _WAVE
    while first < len(others) and not found.solved.all():  # a few at a time: most need few
        left = np.flatnonzero(~found.solved)
        found = _again(problem, found, left, others[first:first + wave], tolerance, min(iterations, _TRIED))
        first, wave = first + wave, 2 * wave
    return _told(problem, found, lead)


def _random(problem: Problem, starts: int, seed: int) -> Floats:
    """Random positions to begin at, (starts, nq); none where joints are not brought within their ranges."""
    try:
        return random_state(problem.plans, np.random.default_rng(seed), starts, problem.t).q
    except AssemblyError:
        return problem.start[:0]


def _check(plans: LoopPlans, targets: Sequence[KinematicTarget]) -> None:
    if plans.model.batched:
        raise NotYetError(f"inverse_kinematics: {plans.tree.name!r} has arrays of parameters; ask for one machine at a "
                          "time")
    for target in targets:
        links = [body_place(plans.model, body)[0] for body in target.bodies]  # says what is not there
        if target.bodies and not any(links):
            raise ModelError(f"inverse_kinematics: the {target.label} cannot change: it belongs to the ground")


def _lead(plans: LoopPlans, targets: Sequence[KinematicTarget], begun: State) -> tuple[int, ...]:
    """The batch axes of targets and guess."""
    shapes = [target.lead(plans.configuration) for target in targets]
    try:
        return np.broadcast_shapes(*shapes, begun.q.shape[:-1])
    except ValueError:
        said = ", ".join(f"{target.label} {shape}" for target, shape in zip(targets, shapes, strict=True))
        raise StateError(f"inverse_kinematics: the batch axes of the targets ({said}) and of the guess "
                         f"{begun.q.shape[:-1]} do not fit together") from None


def _again(problem: Problem, found: Found, left: Ints, begun: Floats, tolerance: float, iterations: int) -> Found:
    """With searches from other positions for some, of which the best ends are taken."""
    starts = len(begun)
    some = np.repeat(left, starts)
    more = problem.solve(np.tile(begun, (len(left), 1)), some, tolerance, iterations)
    worst = _largest(more.errors).reshape(len(left), starts)
    rank = np.where(more.solved.reshape(len(left), starts), -1.0, worst)
    best = np.argmin(rank, axis=-1) + starts * np.arange(len(left))
    better = more.solved[best] | (_largest(more.errors)[best] < _largest(found.errors)[left])
    rows, taken = left[better], best[better]
    q, solved, count = found.q.copy(), found.solved.copy(), found.iterations.copy()
    q[rows] = _unwound(problem, problem.start[rows], more.q[taken], rows)
    solved[rows], count[rows] = more.solved[taken], more.iterations[taken]
    return Found(q, solved, problem.errors(q, np.arange(len(q))), count)


def _every(problem: Problem, q: Floats, starts: int, tolerance: float, iterations: int, seed: int
           ) -> InverseKinematics:
    """All solutions that searches from random positions find, each once, the nearest to the guess first."""
    if len(q) != 1:
        raise StateError("inverse_kinematics: every=True is about one set of targets at a time")
    begun = np.concatenate([q, _random(problem, starts, seed)])
    found = problem.solve(begun, np.zeros(len(begun), dtype=np.int64), tolerance, iterations)
    plans, chosen = problem.plans, list[int]()
    way = assembly.without_turns(plans, plans.configuration.difference(np.broadcast_to(q, found.q.shape), found.q))
    far = np.abs(way / plans.tree.speed_sizes).max(axis=-1, initial=0.0)
    for i in np.argsort(np.where(found.solved, far, np.inf), kind="stable").tolist():
        if found.solved[i] and not any(assembly.same_position(plans, found.q[j], found.q[i]) for j in chosen):
            chosen.append(i)
    some = np.zeros(len(chosen), dtype=np.int64)
    kept = _unwound(problem, q, found.q[chosen], some)
    return _told(problem, Found(kept, found.solved[chosen], problem.errors(kept, some), found.iterations[chosen]),
                 (len(chosen),))


def _unwound(problem: Problem, guess: Floats, q: Floats, some: Ints) -> Floats:
    """Positions, rows `some` of the batch, with angles by whole turns nearer to those of a guess, where targets and
    ranges let them."""
    plans, ranges = problem.plans, problem.ranges
    way = plans.configuration.difference(np.broadcast_to(guess, q.shape), q)
    turns = np.where(plans.turning, -2.0 * np.pi * np.round(way / (2.0 * np.pi)), 0.0)
    turns[..., ranges.speeds] = 0.0
    if not turns.any():
        return q
    nearer = plans.configuration.integrate(q, turns)
    before, after = (_largest(problem.errors(x, some)) for x in (q, nearer))
    return np.where((after <= before + _ROUNDING)[:, None], nearer, q)


def _largest(errors: Sequence[Floats]) -> Floats:
    """The largest error of all targets, (n,)."""
    return np.asarray(np.max([np.abs(e).max(axis=-1, initial=0.0) for e in errors], axis=0))


def _told(problem: Problem, found: Found, lead: tuple[int, ...]) -> InverseKinematics:
    plans, ranges = problem.plans, problem.ranges
    q = found.q.reshape(*lead, plans.tree.nq)
    state = assembly.assemble(plans, q, np.zeros(plans.tree.nu), t=problem.t) if plans.tree.rheonomic else \
        plans.configuration.state(q, np.zeros((*lead, plans.tree.nu)), problem.t)
    labels: dict[str, int] = {}
    errors = {}
    for target, e in zip(problem.targets, found.errors, strict=True):
        labels[target.label] = labels.get(target.label, 0) + 1
        name = target.label if labels[target.label] == 1 else f"{target.label} ({labels[target.label]})"
        errors[name] = e.reshape(*lead, e.shape[-1])
    x, sizes = q[..., ranges.places], plans.tree.speed_sizes[ranges.speeds]
    ends = np.minimum(np.abs(x - ranges.low), np.abs(x - ranges.high)) <= 1e-8 * sizes
    names = [plans.configuration.coordinate_names[i] for i in ranges.places.tolist()]
    at_ends = {name: ends[..., i] for i, name in enumerate(names) if ends[..., i].any()}
    return InverseKinematics(state, found.solved.reshape(lead), _largest(found.errors).reshape(lead), errors,
                             found.iterations.reshape(lead), at_ends)
