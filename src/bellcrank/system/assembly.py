"""Putting a machine together: states in which its loops are closed."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, check_finite, check_unmasked, flat, half_turn, leading, one_time
from bellcrank.errors import AssemblyError, BellcrankError, BranchWarning, ModelError, StateError, outside
from bellcrank.loops.closer import Target
from bellcrank.loops.closer import project as project_speeds
from bellcrank.loops.drawing_tolerance import off
from bellcrank.loops.nearest import End, Held, Nearest
from bellcrank.loops.tolerances import DRIFTED, SAME
from bellcrank.mechanism.checks import HUGE
from bellcrank.system.closing_speeds import ClosingSpeeds, closing_speeds, with_closing_speeds
from bellcrank.system.force_elements import with_values
from bellcrank.system.held_values import (
    Values,
    batch_axes,
    begin,
    check_size,
    locks_closing,
    names_closing,
    near,
    one_of,
    one_state,
    speeds_near,
    weighting,
)
from bellcrank.system.loop_errors import drawing_error, loop_rate_error
from bellcrank.system.state import State
from bellcrank.system.usual_cut import usual_plans

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["assemble", "initial_speeds", "on_branch", "one_machine", "project", "same_position", "with_laws",
           "without_turns"]


def assemble(plans: LoopPlans, q: State | Values = None, u: Values = None, *, guess: State | Values = None,
             weights: Mapping[str, float] | None = None, t: float = START) -> State:
    """A state in which all loops are closed, at position and velocity level. See `System.assemble`."""
    if isinstance(q, State):
        u, t = q.u if u is None else u, q.t if t is START else t
    return _noted(plans, _assembled(plans, q, u, guess, weights, t))


def _noted(plans: LoopPlans, made: State) -> State:
    """A state with the error of the drawing there."""
    if plans.drawing is None:
        return made
    error = drawing_error(plans, made.q, made.t)
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
    axes = [*(batch_axes(plans, values) for values in (q, guess)), batch_axes(plans, u, speeds=True),
            initial_speeds(plans).shape[:-1]]
    if any(axes):
        return _assemble_many(plans, q, u, guess, weights, t, leading([np.empty((*lead, 0)) for lead in axes]))
    start, held = begin(plans, q, guess, weights)
    scale = weighting(plans, weights, plans.configuration.usual)
    position, end = on_branch(plans, start, held, scale, t, "assemble")
    plans.remember(position, t)
    speeds = _consistent(plans, position[None], u, scale, t)[0]
    made = plans.configuration.state(*with_laws(plans, position, speeds, t), t)
    return made if end is None else replace(made, branch_changed=True)


def _as_usual(plans: LoopPlans, usual: LoopPlans, q: Any, u: Values, guess: Any, weights: Mapping[str, float] | None,
              t: float) -> State:
    """The same by the machine cut as usual: what is near does not depend on where loops are cut."""
    made = assemble(usual, q, u, guess=guess, weights=weights, t=t)
    if plans.drawing is not None:  # other constraints are dropped there
        again = _assembled_here(plans, made.q, made.u, None, None, t)
        return replace(again, branch_changed=made.branch_changed or again.branch_changed)
    if made.q.ndim == 1:
        plans.remember(made.q, made.t)
    return made


def _assemble_many(plans: LoopPlans, q: State | Values, u: Values, guess: State | Values,
                   weights: Mapping[str, float] | None, t: float, lead: tuple[int, ...]) -> State:
    """A batch: states near closed ones, and that hold joints of the tree, together; others one by one."""
    nq, nu = plans.tree.nq, plans.tree.nu
    scale, changed = weighting(plans, weights, plans.configuration.usual), False
    if (locks_closing(plans) or names_closing(plans, weights)) and not isinstance(q, Mapping):
        q, guess = {}, guess if q is None else q
    if q is None and names_closing(plans, guess):
        q = {}  # nothing is held
    if isinstance(q, Mapping):
        position, changed = _held_positions(plans, q, guess, weights, t, lead)
    else:
        first = near(plans, "guess", guess, many=True) if q is None else near(plans, "q", q, many=True)
        start = np.broadcast_to(first, (*lead, nq)).reshape(-1, nq)
        position = plans.configuration.normalize(start)
        if plans.tree.looped:
            one_machine(plans, "assemble")
            position, good = _near_positions(plans, start, scale, t)
            for i in np.flatnonzero(~good):
                with _at_index(int(i), lead):
                    position[i] = _careful_position(plans, start[i], scale, t)
    rates = _consistent(plans, position, u, scale, t, lead)
    position, rates = with_laws(plans, position, rates, t)
    made = plans.configuration.state(position.reshape(*lead, nq), rates.reshape(*lead, nu), t)
    return replace(made, branch_changed=changed)


@contextmanager
def _at_index(state: int, lead: tuple[int, ...]) -> Iterator[None]:
    """Say of which state of a batch an error is."""
    try:
        yield
    except AssemblyError as error:
        index = tuple(int(i) for i in np.unravel_index(state, lead))
        raise AssemblyError(f"{error}; this is batch index {index}") from None


def _held_positions(plans: LoopPlans, q: Mapping[str, Any], guess: State | Values, weights: Mapping[str, float] | None,
                    t: float, lead: tuple[int, ...]) -> tuple[Floats, bool]:
    """Closed positions (states, nq) with coordinates held, and whether one of them is on another branch: all together,
    those that cannot go on one by one."""
    scale = weighting(plans, weights, plans.configuration.usual)
    asked = [begin(plans, one_of(plans, q, lead, i), one_of(plans, guess, lead, i), weights) for i in np.ndindex(*lead)]
    out, good = _walked_together(plans, asked, scale, t)
    changed = False
    for i in np.flatnonzero(~good):
        with _at_index(int(i), lead):
            out[i], end = on_branch(plans, *asked[i], scale, t, "assemble")
        changed = changed or end is not None
    return out, changed


def _walked_together(plans: LoopPlans, asked: Sequence[tuple[Floats, Held]], scale: Floats, t: float
                     ) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Positions (states, nq) of guesses on their branches with what is held at its values, and which were found."""
    starts = np.array([start for start, _ in asked]).reshape(-1, plans.tree.nq)
    out, good = starts.copy(), np.zeros(len(starts), dtype=bool)
    if not plans.tree.looped or not len(starts) or not asked[0][1].places or asked[0][1].wanted:
        return out, good
    one_machine(plans, "assemble")
    near = Nearest(plans.closer, scale, t, plans.turning, plans.configuration.speed_names)
    guesses, which = np.unique(starts, axis=0, return_inverse=True)
    first = [_nearest_closed(plans, near, guess) for guess in guesses]
    some = np.flatnonzero([first[i] is not None for i in which.ravel()])
    if len(some):
        closed = np.array([first[i] for i in which.ravel()[some]])
        out[some], good[some] = near.walked_together(closed, starts[some], [asked[int(i)][1] for i in some])
    return out, good


def _careful_position(plans: LoopPlans, start: Floats, scale: Floats, t: float) -> Floats:
    """The nearest closed position to a guess from which compiled steps have not closed."""
    near = Nearest(plans.closer, scale, t, plans.turning, plans.configuration.speed_names)
    found = near.careful(plans.configuration.normalize(start), plans.model.bound_mask())
    if found is None:
        raise _unclosed(plans, near, start, Held(plans.model.bound_mask(), (), np.zeros(0), ()), "assemble")
    return found


def _near_positions(plans: LoopPlans, start: Floats, scale: Floats, t: float
                    ) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """The nearest closed positions to guesses (n, nq) that compiled steps find, and which of them are so."""
    quick, mask = plans.closer.near, plans.model.bound_mask()
    if quick is None or not len(start):
        return start.copy(), np.zeros(len(start), dtype=bool)
    position, good = quick.nearest(start, mask, scale, t)
    some = np.flatnonzero(~good)
    if len(some):
        position[some], good[some] = quick.compared(start[some], mask, scale, t, plans.turning)
    return position, good


def _nearest_speeds(plans: LoopPlans, q: Floats, u: Floats, scale: Floats, t: float) -> Floats:
    """The speeds nearest to u (n, nu) that keep the loops closed at q (n, nq)."""
    target = Target(plans.model.bound_mask(), scale)
    if not (u.any() or plans.tree.rheonomic):
        return u.copy()
    quick, good, out = plans.closer.near, np.zeros(len(q), dtype=bool), u.copy()
    if quick is not None and len(q) and (scale == 1.0).all():
        _, out, good = quick.consistent(q, u, t)
    some = np.flatnonzero(~good)
    if len(some):
        out = out.copy()
        out[some], left = project_speeds(plans.loops, q[some], u[some], target, t)
        _check_speeds(plans, q[some], out[some], u[some], np.atleast_1d(left), t)
    return out


def _check_speeds(plans: LoopPlans, q: Floats, speeds: Floats, wanted: Floats, left: Floats, t: float) -> None:
    """Refuse speeds (n, nu) that open the loops: what is held contradicts itself."""
    size = 1.0 + np.abs(wanted / plans.tree.speed_sizes).max(axis=-1, initial=0.0)
    if not (left > DRIFTED * size).any():
        return
    state = int(np.argmax(left / size))
    rate = np.abs(loop_rate_error(plans, q[state], speeds[state], t=t))
    worst = int(np.argmax(plans.loops.shares(rate)))
    raise AssemblyError(f"assemble {plans.tree.name!r}: the speeds held contradict each other; the constraint "
                        f"{plans.loops.row_names[worst]} changes at {rate[worst]:.3g}. Hold fewer of them, or take the "
                        "nearest that agree: project()")


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
        u, t = q.u if u is None else u, q.t if t is None else t
    t = 0.0 if t is None else one_time(t)
    speeds = speeds_near(plans, u) if isinstance(u, Mapping) else u
    if names_closing(plans, q):
        return assemble(plans, guess=q, u=speeds, t=t)
    place = near(plans, "q", q, "project", many=True)
    if place.ndim > 1 and speeds is not None and plans.tree.looped and plans.closer.near is not None:
        return _project_many(plans, place, flat("u", speeds, plans.tree.nu, "one for every speed"), t)
    return assemble(plans, q=place, u=speeds, t=t)


def _project_many(plans: LoopPlans, q: Floats, u: Floats, t: float) -> State:
    """States of a batch: those that are nearly closed by compiled code, the others as `assemble` does it."""
    nq, nu, quick = plans.tree.nq, plans.tree.nu, plans.closer.near
    assert quick is not None
    one_machine(plans, "project")
    check_finite("project", "u", u, plans.configuration.speed_names)
    lead = leading([q, u])
    place, rates = (np.broadcast_to(a, (*lead, a.shape[-1])).reshape(-1, a.shape[-1]) for a in (q, u))
    found, speeds, good = quick.consistent(place, rates, t)
    some = np.flatnonzero(~good)
    if len(some):
        rest = assemble(plans, q=place[some], u=rates[some], t=t)
        found, speeds = found.copy(), speeds.copy()
        found[some], speeds[some] = rest.q, rest.u
    found, speeds = with_laws(plans, found, speeds, t)
    return _noted(plans, plans.configuration.state(found.reshape(*lead, nq), speeds.reshape(*lead, nu), t))


def on_branch(plans: LoopPlans, start: Floats, held: Held, scale: Floats, t: float, what: str
              ) -> tuple[Floats, End | None]:
    """The closed position on the branch of a guess with everything held at its value; on another branch, with a
    warning, and where the branch ended, if it does."""
    if not plans.tree.looped:
        return plans.configuration.normalize(held.put(start)), None
    one_machine(plans, what)
    near = Nearest(plans.closer, scale, t, plans.turning, plans.configuration.speed_names, held.wanted)
    first = _nearest_closed(plans, near, start)
    if first is None:
        q = near.held(start, [start], held) if held.any else None
        if q is None:
            raise _unclosed(plans, near, start, held, what)
        return q, None
    if not held.any:
        return first, None
    found = near.walked(first, start, held)
    if not isinstance(found, End):
        return found, None
    where = _said(plans, near, first, held, found)
    q = near.held(start, [found.q, first], held)
    if q is None:
        failed = _unclosed(plans, near, found.q, held, what)
        raise AssemblyError(f"{failed}. The branch of the guess ends at {where}")
    warnings.warn(f"{what} {plans.tree.name!r}: the branch of the guess ends at {where}; this is the nearest closed "
                  "position on another branch. Start from a guess on the branch that is meant", BranchWarning,
                  stacklevel=outside())
    return q, found


def _nearest_closed(plans: LoopPlans, near: Nearest, guess: Floats) -> Floats | None:
    """The nearest closed position to a guess, remembered for the last few guesses: many calls share one."""
    known = plans.closer.known
    key = (guess.tobytes(), near.weights.tobytes(), near.t, near.wanted)
    if key not in known:
        with np.errstate(all="ignore"):  # what comes out is looked at
            found = near.free(guess, plans.model.bound_mask())
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


def one_machine(plans: LoopPlans, what: str) -> None:
    """Refuse parameters with many values, and such as cannot be computed with."""
    names = [name for name, value in plans.model.values.items() if np.ndim(value)]
    if names:
        raise ModelError(f"{what}: {plans.tree.name!r} has arrays of the parameters {', '.join(names)}: put "
                         "one machine together at a time, with_parameters() of one value for each")
    for name, value in plans.model.values.items():
        if not abs(float(np.asarray(value))) <= HUGE:
            raise ModelError(f"{what}: the parameter {name!r} of {plans.tree.name!r} is {value}, which cannot be "
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


def _consistent(plans: LoopPlans, q: Floats, u: Values, scale: Floats, t: float, lead: tuple[int, ...] = ()) -> Floats:
    """Speeds (states, nu) that keep the loops closed at q (states, nq), with those held that are given by name."""
    nu, names = plans.tree.nu, plans.configuration.speed_names
    held = plans.model.bound_mask()
    if u is None and not plans.tree.rheonomic:
        return np.broadcast_to(initial_speeds(plans), (*lead, nu)).reshape(-1, nu).copy()
    wanted: Floats = initial_speeds(plans)
    across: list[ClosingSpeeds] = []
    if isinstance(u, Mapping):
        across, rest = closing_speeds(plans, u, lead)
        wanted = _held_speeds(plans, rest, held, lead)
    elif u is not None:
        wanted = flat("u", u, nu, "one for every speed")
        wanted = wanted if lead else one_state("assemble", "u", wanted)
    check_finite("assemble", "u", wanted, names)
    check_size("assemble", "u", wanted, names)
    wanted = np.broadcast_to(wanted, (*lead, nu)).reshape(-1, nu).copy()
    if not plans.tree.looped or not (wanted.any() or plans.tree.rheonomic or across):
        return wanted
    if not isinstance(u, Mapping):
        return _nearest_speeds(plans, q, wanted, scale, t)
    if not len(q):
        return wanted
    speeds, left = project_speeds(plans.loops, q, wanted, Target(held, scale), t)
    _check_speeds(plans, q, speeds, wanted, np.atleast_1d(left), t)
    return with_closing_speeds(plans, q, speeds, across, Target(held, scale), t) if across else speeds


def _held_speeds(plans: LoopPlans, u: Mapping[str, Any], held: npt.NDArray[np.bool_], lead: tuple[int, ...]) -> Floats:
    """Speeds (*lead, nu) given by name, marked in `held`; zero where nothing is said."""
    wanted = np.broadcast_to(initial_speeds(plans), (*lead, plans.tree.nu)).copy()
    for key, value in u.items():
        entries = plans.configuration.speed_entries(key)
        joint = plans.model.mechanism.joint(plans.configuration.split(key)[0])
        if held[entries].any() and joint.prescribed is not None:
            raise StateError(f"assemble: joint {key!r} follows a prescribed motion; give the time t instead")
        check_unmasked(f"u of {key!r}", value)
        try:
            array = np.asarray(value, dtype=float)
            single = len(entries) == 1 and array.ndim and array.shape[-1] != 1 and getattr(value, "ndim", 0)
            wanted[..., entries] = array[..., None] if single else array
        except (TypeError, ValueError):
            raise StateError(f"assemble: {value!r} for the speeds of {key!r} is not {len(entries)} numbers") from None
        held[entries] = True
    return wanted


def initial_speeds(plans: LoopPlans) -> Floats:
    """Zero, but for states of elements, which begin at their initial values: (..., nu), with the axes of parameters."""
    model = plans.model
    states = model.mechanism.states
    if not states:
        return np.zeros(plans.tree.nu)
    values = model.values_of([state.initial for state in states])
    out = np.zeros((*values.shape[:-1], plans.tree.nu))
    out[..., [model.configuration.starts[state.name][1] for state in states]] = values
    return out


def same_position(plans: LoopPlans, a: Floats, b: Floats) -> bool:
    """Whether two positions differ by nothing but whole turns."""
    return bool(plans.loops.step_length(without_turns(plans, plans.configuration.difference(a, b))) < SAME)


def without_turns(plans: LoopPlans, change: Floats) -> Floats:
    """Changes of all coordinates without whole turns of angles."""
    return np.where(plans.turning, half_turn(change), change)
