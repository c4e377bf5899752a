"""The loops of a machine: how well they are closed, and the joints that close them. A tree has none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.errors import ModelError, hint
from bellcrank.lowering.group_kinds import few_kinds

if TYPE_CHECKING:
    from bellcrank.system.evaluator import Evaluator
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["closure_index", "drawing_error", "largest_errors", "loop_acceleration_error", "loop_coordinates",
           "loop_error", "loop_jacobian", "loop_names", "loop_rate_error", "loop_rows", "loop_speeds",
           "loop_state", "open_shares", "over_groups"]


def loop_names(plans: LoopPlans) -> tuple[str, ...]:
    """Names of what closes loops: joints, then other constraints and couplers."""
    return tuple(c.name for c in plans.tree.closures) + tuple(r.name for r in plans.tree.relations)


def loop_error(plans: LoopPlans, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
    """How far every constraint of every loop is from being met, shape (..., constraints): distances [m] and
    cosines of angles that should be right; zero for those that are dropped (`drawing_error`). Cost: O(n)."""
    check_time(t)
    if not plans.tree.looped:
        return np.zeros((*flat("q", q, plans.tree.nq, "the coordinates").shape[:-1], 0))
    return plans.loops.error(q, t)


def drawing_error(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> Floats:
    """The largest error of constraints that are dropped since the drawing contradicts itself, shape (...)."""
    if plans.drawing is None:
        return np.zeros(np.shape(q)[:-1])
    return np.asarray(np.abs(plans.drawn.error(q, t)[..., ~plans.drawing.used]).max(axis=-1, initial=0.0))


def loop_state(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike, lanes: bool | None = None
               ) -> Floats | None:
    """Values and rates of all constraints by compiled code, which small machines have."""
    if plans.kernels.compiled("loop_state") is None:
        return None
    both = plans.kernels.run("loop_state", {"q": q, "u": u}, None, t, lanes=lanes)
    return both if plans.drawing is None else np.where(np.tile(plans.drawing.used, 2), both, 0.0)


def largest_errors(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike, lanes: bool | None = None
                   ) -> tuple[Floats, Floats]:
    """The largest of `loop_error` and of `loop_rate_error` at every state; `lanes` as in `Kernels.run`. Cost: O(n).

    Large machines: the rates are taken relative to the link that a loop's ends have in common. That makes a difference
    where the loop is open, of its error times that link's angular velocity."""
    if not plans.tree.looped:
        return np.zeros(q.shape[:-1]), np.zeros(q.shape[:-1])
    both = loop_state(plans, q, u, t, lanes)
    if both is not None:
        m = both.shape[-1] // 2
        return np.abs(both[..., :m]).max(axis=-1, initial=0.0), np.abs(both[..., m:]).max(axis=-1, initial=0.0)
    run = over_groups(plans, q, t)
    if run is None and lanes is False:
        return _by_fours(plans, q, u, t)
    if run is None:
        return (np.abs(loop_error(plans, q, t=t)).max(axis=-1, initial=0.0),
                np.abs(loop_rate_error(plans, q, u, t=t)).max(axis=-1, initial=0.0))
    found = plans.kernels.run("largest_errors", {"q": q, "u": u}, None, t, run, lanes)
    return found[..., ::3].max(axis=-1), found[..., 1::3].max(axis=-1)


def open_shares(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike = 0.0) -> tuple[Floats, Floats]:
    """The largest value and rate of a constraint at states (...), as shares of the machine's size; rates by that of the
    fastest speed as well."""
    fast = 1.0 + np.abs(u / plans.tree.speed_sizes).max(axis=-1, initial=0.0)
    value, rate = (np.abs(plans.loops.shares(x)).max(axis=-1, initial=0.0) for x in (
        loop_error(plans, q, t=t), loop_rate_error(plans, q, u, t=t)))
    return value, rate / fast


def _by_fours(plans: LoopPlans, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    """`largest_errors` of few states at a time, for which there is code already."""
    lead = q.shape[:-1]
    times = np.broadcast_to(np.asarray(t, dtype=float), lead).ravel()
    q, u = q.reshape(-1, q.shape[-1]), u.reshape(-1, u.shape[-1])
    errors, rates = np.zeros(len(q)), np.zeros(len(q))
    for start in range(0, len(q), 4):
        some = slice(start, start + 4)
        errors[some], rates[some] = largest_errors(plans, q[some], u[some], times[some])
    return errors.reshape(lead), rates.reshape(lead)


def over_groups(plans: LoopPlans, q: Floats, t: npt.ArrayLike) -> Evaluator | None:
    """What evaluates the constraints group by group, if these hold all of them and the code for that is small."""
    kernels, tree = plans.kernels, plans.tree
    if kernels.compiled("largest_errors") is None or plans.drawing is not None:
        return None
    plan = plans.first(q, t)

    def found() -> Evaluator | None:
        first = sum(c.rows for c in tree.closures)
        held = {k for group in plan.groups for k in group.closures}
        rows = {r for group in plan.groups for r in group.rows}
        if len(held) < len(tree.closures) or any(first + k not in rows for k in range(len(tree.relations))):
            return None
        run = kernels.planned(plan)
        return run if few_kinds(run.tree, kernels.functions["largest_errors"]) else None

    return kernels.kept(("largest_errors", plan.key), found)


def loop_rate_error(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
    """Rates of `loop_error`, shape (..., constraints). Cost: O(n)."""
    check_time(t)
    if not plans.tree.looped:
        return np.zeros((*flat("q", q, plans.tree.nq, "the coordinates").shape[:-1], 0))
    return plans.loops.rate(q, u, t)


def loop_acceleration_error(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, *,
                            t: npt.ArrayLike = 0.0) -> Floats:
    """Second derivatives of `loop_error`, shape (..., constraints). Cost: O(n)."""
    check_time(t)
    if not plans.tree.looped:
        return np.zeros((*flat("q", q, plans.tree.nq, "the coordinates").shape[:-1], 0))
    loops = plans.loops
    rows = loops.rows(q, u, t)
    motion = loops.motions("accelerations", {"q": q, "u": u, "udot": udot}, t)
    out = loops.through(rows, motion) - rows.gamma
    if not plans.tree.relations:
        return out
    laws = plans.kernels.run("prescribed", {"q": q, "u": u}, None, t)
    return loops.add_couplers(out, rows, np.where(plans.model.prescribed_mask(), laws, np.asarray(udot, dtype=float)))


def loop_jacobian(plans: LoopPlans, q: npt.ArrayLike, *, t: npt.ArrayLike = 0.0) -> Floats:
    """d(loop_rate_error)/du for the free speeds, shape (..., constraints, nu)."""
    return plans.loops.dense(plans.loops.linearized(q, t)[1])


def loop_coordinates(plans: LoopPlans, q: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = 0.0) -> Floats:
    """Coordinates of a joint, shape (..., nq of the joint): of a loop joint as the poses of its links have them."""
    check_time(t)
    place = flat("q", q, plans.tree.nq, "the coordinates")
    return plans.loops.measured(place, t)[..., plans.configuration.coordinate_entries(joint)]


def loop_speeds(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, joint: str, *, t: npt.ArrayLike = 0.0) -> Floats:
    """Speeds of a joint, shape (..., nu of the joint): of a loop joint as the speeds of its links have them."""
    check_time(t)
    place = plans.loops.measured(flat("q", q, plans.tree.nq, "the coordinates"), t)
    found = plans.kernels.run("joint_speeds", {"q": place, "u": u}, None, t)
    return found[..., plans.configuration.speed_entries(joint)]


def loop_rows(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> Floats:
    """How speeds of loop joints follow from those of the tree, (..., nu, nu): rows of other speeds are zero."""
    place = flat("q", q, plans.tree.nq, "the coordinates")[..., None, :]
    units = np.eye(plans.tree.nu + 1, plans.tree.nu, -1)  # the first: what prescribed motions cause
    given = {"q": place, "u": units}
    if plans.model.batched:  # their axes are those of the states
        given["parameters"] = plans.kernels.parameter_array()[..., None, :]
    found = plans.kernels.run("joint_speeds", given, None, np.asarray(t, dtype=float)[..., None])
    rows = np.swapaxes(found[..., 1:, :] - found[..., :1, :], -1, -2)
    return np.where(plans.tree.loop_speeds()[:, None] & ~plans.tree.loop_speeds(), rows, 0.0)


def closure_index(plans: LoopPlans, joint: str) -> int:
    """Which closure a joint that closes a loop is."""
    for i, c in enumerate(plans.tree.closures):
        if c.name == joint and c.is_joint:
            return i
    known = [c.name for c in plans.tree.closures if c.is_joint]
    raise ModelError(f"no joint {joint!r} closes a loop of {plans.tree.name!r}; those that do: "
                     f"{', '.join(map(repr, known)) or 'none'}{hint(joint, known)}")
