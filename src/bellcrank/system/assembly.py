"""Putting a machine together: states in which its loops are closed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, absent, check_finite, flat, half_turn, leading, one_time
from bellcrank.errors import (
    AssemblyError,
    AssemblyWarning,
    BellcrankError,
    BranchWarning,
    ModelError,
    StateError,
    outside,
)
from bellcrank.loops.drawing_tolerance import off
from bellcrank.loops.nearest import End, Held, Nearest
from bellcrank.loops.tolerances import SAME
from bellcrank.mechanism.checks import HUGE
from bellcrank.system.assembly_speeds import asked_speeds, consistent_speeds
from bellcrank.system.force_elements import with_values
from bellcrank.system.held_values import Values, batch_axes, begin, names_closing, near, speeds_near, weighting
from bellcrank.system.loop_errors import drawing_error
from bellcrank.system.state import AssemblyFailure, State
from bellcrank.system.usual_cut import usual_plans

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["assemble", "check_parameters", "on_branch", "project", "same_position", "with_laws", "without_turns"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def assemble(plans: LoopPlans, q: State | Values = None, u: Values = None, *, guess: State | Values = None,
             weights: Mapping[str, float] | None = None, t: float = START) -> State:
    """A state in which all loops are closed, at position and velocity level. See `System.assemble`."""
    if isinstance(q, State):
        u, t = _speeds_of(q) if u is None else u, q.t if t is START else t
    return _noted(plans, _assembled(plans, q, u, guess, weights, t))


def _speeds_of(state: State) -> Floats:
    """The speeds of a state, zero where it could not be reached."""
    return np.where(absent(state.q)[..., None], 0.0, state.u) if state.failures else state.u


def _noted(plans: LoopPlans, made: State) -> State:
    """A state with the error of the drawing there."""
    if not plans.tree.looped or plans.drawing is None:
        return made
    error = np.maximum(drawing_error(plans, made.q, made.t), made.drawing_error)
    return replace(made, drawing_error=error if error.ndim else float(error))


def _assembled(plans: LoopPlans, q: State | Values, u: Values, guess: State | Values,
               weights: Mapping[str, float] | None, t: float) -> State:
    t = one_time(t)
    usual = usual_plans(plans)
    if usual is not None:
        return _as_usual(plans, usual, q, u, guess, weights, t)
    return _assembled_here(plans, q, u, guess, weights, t)


def _assembled_here(plans: LoopPlans, q: State | Values, u: Values, guess: State | Values,
                    weights: Mapping[str, float] | None, t: float) -> State:
    """A closed state by this machine's own loops."""
    axes = [batch_axes(plans, q), batch_axes(plans, guess), batch_axes(plans, u, speeds=True),
            plans.model.parameter_axes]
    if any(axes):
        given = leading([np.empty((*each, 0)) for each in axes[:-1]])
        try:
            lead = np.broadcast_shapes(given, axes[-1])
        except ValueError:
            raise StateError(f"assemble {plans.tree.name!r}: the batch of parameters does not fit the states {given}: "
                             f"its axes are {axes[-1]}") from None
        return _assemble_many(plans, q, u, guess, weights, t, lead)
    start, held = begin(plans, q, guess, weights)
    scale = weighting(plans, weights, plans.configuration.usual)
    position, end = on_branch(plans, start, held, scale, t, "assemble")
    plans.remember(position, t)
    speeds, errors = consistent_speeds(plans, position[None], asked_speeds(plans, u), scale, t)
    for error in errors.values():
        raise error
    made = plans.configuration.state(*with_laws(plans, position, speeds[0], t), t)
    return made if end is None else replace(made, branch_changed=True)


def _as_usual(plans: LoopPlans, usual: LoopPlans, q: Any, u: Values, guess: Any, weights: Mapping[str, float] | None,
              t: float) -> State:
    """The same by the machine cut as usual: what is near does not depend on where loops are cut."""
    made = assemble(usual, q, u, guess=guess, weights=weights, t=t)
    if plans.drawing is not None:  # other constraints are dropped there
        again = _assembled_here(plans, made, _speeds_of(made), None, None, t)
        return replace(again, branch_changed=made.branch_changed | again.branch_changed)
    if made.q.ndim == 1:
        plans.remember(made.q, made.t)
    return made


# -- batches -----------------------------------------------------------------------------------
@dataclass
class _Batch:
    """The states of a batch on their way, by their places along one axis, and what has become of them."""

    plans: LoopPlans  #: with parameters along that axis
    lead: tuple[int, ...]
    scale: Floats
    t: float
    errors: dict[int, AssemblyError] = field(default_factory=dict)  #: why states cannot be reached
    changed: dict[int, str] = field(default_factory=dict)  #: where the branches of others ended
    known: int = 0  #: how many could not be reached before
    drawn: dict[int, float] = field(default_factory=dict)  #: errors of drawings of samples that differ from the first

    def near(self, plans: LoopPlans) -> Nearest:
        """Closes the loops of samples, or of one."""
        return Nearest(plans.closer, self.scale, self.t, plans.turning, plans.configuration.speed_names)

    def leave_out(self, *given: State | Values) -> None:
        """States from which nothing can be put together, since they could not be reached themselves."""
        places = np.arange(prod(self.lead)).reshape(self.lead)
        for state in given:
            if not isinstance(state, State):
                continue
            for f in state.failures:
                which = np.zeros(state.shape, dtype=bool)
                which[f.index] = True
                self.errors |= {i: AssemblyError(f.reason, f.joint) for i in places[np.broadcast_to(
                    which, self.lead)].tolist()}
        self.known = len(self.errors)

    def tell(self) -> None:
        """Warn once of states that cannot be reached, and once of those on other branches."""
        many, name = prod(self.lead), f"assemble {self.plans.tree.name!r}: "
        if len(self.errors) > self.known:
            i = min(list(self.errors)[self.known:])
            warnings.warn(f"{name}{len(self.errors) - self.known} of {many} states cannot be reached and are NaN, as "
                          f"state.failures says of each; the first is batch index {_index(i, self.lead)}, joint "
                          f"{self.errors[i].joint!r}: {str(self.errors[i]).removeprefix(name)}", AssemblyWarning,
                          stacklevel=outside())
        if self.changed:
            i = min(self.changed)
            also = f"; so are {len(self.changed) - 1} more of {many} states, see state.branch_changed" \
                if len(self.changed) > 1 else ""
            warnings.warn(f"{self.changed[i]}; this is batch index {_index(i, self.lead)}{also}", BranchWarning,
                          stacklevel=outside())


def _assemble_many(plans: LoopPlans, q: State | Values, u: Values, guess: State | Values,
                   weights: Mapping[str, float] | None, t: float, lead: tuple[int, ...]) -> State:
    """A batch: by compiled steps together, with parameters of their own, and those that cannot go on one by one. States
    that cannot be reached are NaN."""
    check_parameters(plans, "assemble")
    start, held = begin(plans, q, guess, weights, many=True)
    asked = asked_speeds(plans, u, lead)
    batch = _Batch(plans.samples(lead), lead, weighting(plans, weights, plans.configuration.usual), t)
    batch.leave_out(q, guess)
    position = _positions(batch, np.broadcast_to(start, (*lead, plans.tree.nq)).reshape(-1, plans.tree.nq),
                          held.of_batch(lead))
    some = np.setdiff1d(np.arange(len(position)), list(batch.errors))
    own, rates = batch.plans.of_samples(some), np.zeros((len(position), plans.tree.nu))
    rates[some], errors = consistent_speeds(own, position[some], asked.only(some), batch.scale, t)
    batch.errors |= {int(some[i]): error for i, error in errors.items()}
    position[some], rates[some] = with_laws(own, position[some], rates[some], t)
    lost = sorted(batch.errors)
    position[lost] = rates[lost] = np.nan
    batch.tell()
    changed = np.isin(np.arange(len(position)), list(batch.changed)).reshape(lead)
    drawn = np.array([batch.drawn.get(i, 0.0) for i in range(len(position))]).reshape(lead) if batch.drawn else 0.0
    failures = [AssemblyFailure(_index(i, lead), batch.errors[i].joint, str(batch.errors[i])) for i in lost]
    made = plans.configuration.state(position.reshape(*lead, plans.tree.nq), rates.reshape(*lead, plans.tree.nu), t)
    return replace(made, branch_changed=changed, drawing_error=drawn, failures=tuple(failures))


def _index(state: int, lead: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(int(i) for i in np.unravel_index(state, lead))


def _positions(batch: _Batch, start: Floats, held: Held) -> Floats:
    """Closed positions (states, nq) on the branches of guesses with everything held at its values: all together,
    those that cannot go on one by one."""
    plans, first = batch.plans, dict[int, Floats | None]()
    if not plans.tree.looped:
        return plans.configuration.normalize(held.put(start))
    found, good = start.copy(), np.zeros(len(start), dtype=bool)
    some = np.setdiff1d(np.arange(len(start)), list(batch.errors))
    if not (held.extra or held.wanted) and len(some):
        found[some], good[some], first = _together(batch, start, held, some)
    for i in some[~good[some]].tolist():
        own, mine = plans.sample(i), held.sample(i)
        near = replace(batch.near(own), wanted=mine.wanted)
        try:
            closed = first[i] if i in first else _nearest_closed(own, near, start[i])
            found[i], end, said = _from_closed(own, near, closed, start[i], mine, "assemble")
        except BellcrankError as error:  # a sample may be no machine at all, its axis zero
            batch.errors[i] = error if isinstance(error, AssemblyError) else AssemblyError(str(error))
            continue
        if end is not None:
            batch.changed[i] = said
        if own is not plans and own.drawing is not None:
            batch.drawn[i] = float(drawing_error(own, found[i], batch.t))
    return found


def _together(batch: _Batch, start: Floats, held: Held, some: Ints) -> tuple[Floats, Mask, dict[int, Floats | None]]:
    """Positions of some samples on the branches of their guesses with what is held at its values, and which were found;
    of the others, by sample, the nearest closed positions to their guesses, which may be None."""
    plans = batch.plans
    parameters = [plans.kernels.parameter_array()[some]] if plans.model.batched else []
    _, first, which = np.unique(np.hstack([start[some], *parameters]), axis=0, return_index=True, return_inverse=True)
    closed, good = _nearest_together(batch, start[some[first]], some[first])
    closed, good = closed[which.ravel()], good[which.ravel()]
    found = closed.copy()
    if held.places:
        going, quick = np.flatnonzero(good), plans.closer.near
        own = some[going]
        found[going], good[going] = batch.near(plans).walked_together(
            closed[going], start[own], held, held.values[own], None if quick is None else quick.only(own))
    none = np.asarray(np.isnan(closed).any(axis=-1))
    return found, good, {int(some[i]): None if none[i] else closed[i] for i in np.flatnonzero(~good).tolist()}


def _nearest_together(batch: _Batch, start: Floats, some: Ints) -> tuple[Floats, Mask]:
    """The nearest closed positions to guesses of some samples, NaN where there are none, and where there are some."""
    plans, mask = batch.plans, batch.plans.model.bound_mask()
    found, good = start.copy(), np.zeros(len(start), dtype=bool)
    near = plans.closer.near
    if near is not None and len(start) > 1:
        quick = near.only(some)
        found, good = quick.nearest(start, mask, batch.scale, batch.t)
        left = np.flatnonzero(~good)
        if len(left):
            found[left], good[left] = quick.only(left).compared(start[left], mask, batch.scale, batch.t, plans.turning)
        done = np.flatnonzero(good)
        good[done] = _usable(plans.of_samples(some[done]), found[done], batch.t)
    for i in np.flatnonzero(~good).tolist():
        own, one = plans.sample(int(some[i])), None
        with suppress(BellcrankError):  # whoever tries again says what is wrong
            one = _nearest_closed(own, batch.near(own), start[i], near is None or len(start) == 1)
        found[i], good[i] = (np.nan, False) if one is None else (one, True)
    return found, good


def _usable(plans: LoopPlans, q: Floats, t: float) -> Mask:
    """Closed positions (n, nq) of samples at which constraints can be differentiated, and at which those that are
    dropped for the first of them are within the tolerance of the drawing."""
    good: Mask
    try:
        good = np.asarray(np.isfinite(plans.loops.linearized(q, t)[1]).all(axis=-1))
    except BellcrankError:
        good = np.array([_regular(plans.sample(i), x, t) for i, x in enumerate(q)], dtype=bool)
    if plans.model.batched and plans.drawing is not None:
        gap = np.abs(plans.drawn.shares(plans.drawn.error(q, t))).max(axis=-1, initial=0.0)
        return np.asarray(good & (gap <= plans.model.options.drawing_tolerance))
    return good


def _projected(plans: LoopPlans, q: Floats, u: Floats) -> State | None:
    """A state that is nearly closed by compiled code; None if it is not, or that did not suffice."""
    nq = plans.tree.nq
    for _ in range(3):
        out = plans.doors["projected"].one(q, u)
        if out is None or out[-1] > 1.0:
            return None
        q, u = out[:nq], out[nq:-2]
        if out[-2] <= 1.0:
            plans.remember(q, 0.0)
            return _noted(plans, plans.configuration.state(q, u))
    return None


def project(plans: LoopPlans, q: State | Values, u: Values = None, *, t: float | None = None) -> State:
    """The nearest state whose loops are closed. See `System.project`."""
    usual = usual_plans(plans)
    if usual is not None:
        made = project(usual, q, u, t=t)
        return made if plans.drawing is None else _assembled_here(plans, made.q, made.u, None, None, made.t)
    if q.__class__ is np.ndarray and u.__class__ is np.ndarray and t is None and plans.quick:
        quick = _projected(plans, q, u)
        if quick is not None:
            return quick
    if isinstance(q, State):
        q.check_names(plans.configuration.state_names, "project")
        u, t = _speeds_of(q) if u is None else u, q.t if t is None else t
        if q.failures:
            return assemble(plans, q, u, t=t)
    t = 0.0 if t is None else one_time(t)
    speeds = speeds_near(plans, u) if isinstance(u, Mapping) else u
    if names_closing(plans, q):
        return assemble(plans, guess=q, u=speeds, t=t)
    place = near(plans, "q", q, "project", many=True)
    if (place.ndim > 1 or plans.model.batched) and speeds is not None and plans.tree.looped \
            and plans.closer.near is not None:
        return _project_many(plans, place, flat("u", speeds, plans.tree.nu, "one for every speed"), t)
    return assemble(plans, q=place, u=speeds, t=t)


def _project_many(plans: LoopPlans, q: Floats, u: Floats, t: float) -> State:
    """States of a batch: those that are nearly closed by compiled code, the others as `assemble` does it."""
    nq, nu = plans.tree.nq, plans.tree.nu
    check_parameters(plans, "project")
    check_finite("project", "u", u, plans.configuration.speed_names)
    lead = leading([q, u, np.empty((*plans.model.parameter_axes, 0))])
    samples = plans.samples(lead)
    place, rates = (np.broadcast_to(a, (*lead, a.shape[-1])).reshape(-1, a.shape[-1]) for a in (q, u))
    assert samples.closer.near is not None
    found, speeds, good = samples.closer.near.consistent(place, rates, t)
    if plans.model.batched and len(found):
        done = np.flatnonzero(good)
        good[done] = _usable(samples.of_samples(done), found[done], t)
    some, failures = np.flatnonzero(~good), list[AssemblyFailure]()
    if len(some):
        rest = assemble(samples.of_samples(some), q=place[some], u=rates[some], t=t)
        found, speeds = found.copy(), speeds.copy()
        found[some], speeds[some] = rest.q, rest.u
        failures = [replace(f, index=_index(int(some[f.index[0]]), lead)) for f in rest.failures]
    done = np.flatnonzero(~np.isnan(found).all(axis=-1))
    found[done], speeds[done] = with_laws(samples.of_samples(done), found[done], speeds[done], t)
    made = plans.configuration.state(found.reshape(*lead, nq), speeds.reshape(*lead, nu), t)
    return _noted(plans, replace(made, branch_changed=np.zeros(lead, dtype=bool),
                                 failures=tuple(failures)))


def on_branch(plans: LoopPlans, start: Floats, held: Held, scale: Floats, t: float, what: str
              ) -> tuple[Floats, End | None]:
    """The closed position on the branch of a guess with everything held at its value; on another branch, with a
    warning, and where the branch ended, if it does."""
    if not plans.tree.looped:
        return plans.configuration.normalize(held.put(start)), None
    check_parameters(plans, what, many=False)
    near = Nearest(plans.closer, scale, t, plans.turning, plans.configuration.speed_names, held.wanted)
    q, end, said = _from_closed(plans, near, _nearest_closed(plans, near, start), start, held, what)
    if end is not None:
        warnings.warn(said, BranchWarning, stacklevel=outside())
    return q, end


def _from_closed(plans: LoopPlans, near: Nearest, first: Floats | None, start: Floats, held: Held, what: str
                 ) -> tuple[Floats, End | None, str]:
    """The same from the closed position nearest to the guess; what to warn of, if the branch ended."""
    if first is None:
        q = near.held(start, [start], held) if held.any else None
        if q is None:
            raise _unclosed(plans, near, start, held, what)
        return q, None, ""
    if not held.any:
        return first, None, ""
    found = near.walked(first, start, held)
    if not isinstance(found, End):
        return found, None, ""
    where = _said(plans, near, first, held, found)
    q = near.held(start, [found.q, first], held)
    if q is None:
        failed = _unclosed(plans, near, found.q, held, what)
        raise AssemblyError(f"{failed}. The branch of the guess ends at {where}", found.joint)
    return q, found, (f"{what} {plans.tree.name!r}: the branch of the guess ends at {where}; this is the nearest "
                      "closed position on another branch. Start from a guess on the branch that is meant")


def _nearest_closed(plans: LoopPlans, near: Nearest, guess: Floats, quick: bool = True) -> Floats | None:
    """The nearest closed position to a guess, remembered for the last few guesses: many calls share one. Compiled steps
    are tried first, if `quick`."""
    known = plans.closer.known
    key = (guess.tobytes(), near.weights.tobytes(), near.t, near.wanted)
    if key not in known:
        with np.errstate(all="ignore"):  # what comes out is looked at
            mask = plans.model.bound_mask()
            found = near.free(guess, mask) if quick else near.careful(plans.configuration.normalize(guess), mask)
            if not _regular(plans, found, near.t):
                found = _over_long_ways(plans, near, guess)
        if len(known) >= 8:
            known.pop(next(iter(known), key), None)
        known[key] = found
    found = known[key]
    return None if found is None else found.copy()


def _regular(plans: LoopPlans, q: Floats | None, t: float) -> bool:
    """Whether a closed position was found, and constraints can be differentiated there (a disk that lies flat cannot
    roll)."""
    if q is None:
        return False
    try:
        return bool(np.isfinite(plans.loops.linearized(q, t)[1]).all())
    except BellcrankError:
        return False


def _over_long_ways(plans: LoopPlans, near: Nearest, guess: Floats) -> Floats | None:
    """The nearest closed position, where displacements as long as the gaps at the guess are no longer than a turn of
    one radian: bodies far from their place would rather turn than move, by the machine's own length."""
    tree = plans.tree
    lengths = replace(tree, length=2.0 * tree.length).speed_sizes > tree.speed_sizes
    gap = max(1.0, off(plans.closer, plans.configuration.normalize(guess), near.t))
    found = replace(near, weights=np.where(lengths, near.weights / gap, near.weights)).free(
        guess, plans.model.bound_mask())
    return found if _regular(plans, found, near.t) else None


def _unclosed(plans: LoopPlans, near: Nearest, start: Floats, held: Held, what: str) -> AssemblyError:
    q, _ = plans.closer.close(held.put(start), near.target(held.mask, held.extra), near.t)
    return plans.closer.failure(q, near.t, f"{what} {plans.tree.name!r}", held.extra)


def _said(plans: LoopPlans, near: Nearest, first: Floats, held: Held, end: End) -> str:
    """Where a branch ended: the coordinate that was walked farthest, its value there, and what was lost."""
    label, value, aim = near.place(first, held, end, plans.configuration.coordinate_names)
    return f"{label} = {value:.6g} on the way to {aim:.6g}: there joint {end.joint!r} is no longer determined"


def check_parameters(plans: LoopPlans, what: str, many: bool = True) -> None:
    """Refuse parameters of loops that cannot be computed with, and unless `many` those with many values."""
    if not plans.tree.looped:
        return
    names = [name for name, value in plans.model.values.items() if np.ndim(value)]
    if names and not many:
        raise ModelError(f"{what}: {plans.tree.name!r} has arrays of the parameters {', '.join(names)}; call it for "
                         "with_parameters() of one value each")
    for name, value in plans.model.values.items():
        values = np.asarray(value, dtype=float)
        bad = values[~(np.abs(values) <= HUGE)]
        if len(bad):
            raise ModelError(f"{what}: the parameter {name!r} of {plans.tree.name!r} is {bad[0]}, which cannot be "
                             "computed with")


def with_laws(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    """q and u, shapes (..., nq) and (..., nu), with what prescribed joints do at times t, and loop joints."""
    if plans.model.prescribed_mask().any():
        q, u = _prescribed(plans, q, u, t)
    if plans.tree.loop_joints:
        q = plans.loops.measured(q, t)
        u = plans.kernels.run("joint_speeds", {"q": q, "u": u}, None, t)
    return q, u


def _prescribed(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    q, u, clock = np.array(q), np.array(u), np.asarray(t, dtype=float)
    for link, law in enumerate(plans.tree.prescribed):
        joint = plans.tree.joints[link]
        if law is None or joint is None:
            continue
        i, j = plans.configuration.starts[plans.tree.joint_names[link]]
        places, rates = [q[..., i + k] for k in range(joint.nq)], [u[..., j + k] for k in range(joint.nu)]
        there, speeds, _ = with_values(plans, law).values(clock if clock.ndim else float(clock), places, rates, rates)
        q, u = _as_large(plans, [q, u], [*there, *speeds])
        for k, x in enumerate(there):
            q[..., i + k] = x
        for k, x in enumerate(speeds):
            u[..., j + k] = x
    return q, u


def _as_large(plans: LoopPlans, arrays: Sequence[Floats], values: Sequence[npt.ArrayLike]) -> list[Floats]:
    """Arrays with the leading axes that laws of parameters with many values bring."""
    lead, more = arrays[0].shape[:-1], [np.shape(x) for x in values]
    try:
        wider = np.broadcast_shapes(lead, *more)
    except ValueError:
        raise StateError(f"{plans.tree.name!r}: the batch of parameters does not fit the states {lead}") from None
    return [a if wider == lead else np.broadcast_to(a, (*wider, a.shape[-1])).copy() for a in arrays]


def same_position(plans: LoopPlans, a: Floats, b: Floats) -> bool:
    """Whether two positions differ by nothing but whole turns."""
    return bool(plans.loops.step_length(without_turns(plans, plans.configuration.difference(a, b))) < SAME)


def without_turns(plans: LoopPlans, change: Floats) -> Floats:
    """Changes of all coordinates without whole turns of angles."""
    return np.where(plans.turning, half_turn(change), change)
