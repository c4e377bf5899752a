"""Speeds of assembled states: those that are asked for, of loop joints as well, and made consistent with the loops."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_finite, check_unmasked, flat
from bellcrank.errors import AssemblyError, StateError
from bellcrank.loops.closer import Target, factors
from bellcrank.loops.closer import project as project_speeds
from bellcrank.loops.tolerances import DRIFTED
from bellcrank.system.held_values import Values, check_size, one_state
from bellcrank.system.loop_errors import loop_rate_error, loop_rows

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["AskedSpeeds", "asked_speeds", "consistent_speeds", "initial_speeds"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: directions in which speeds of loop joints change by less than this part of the most are left alone
_FLAT = 1e-10


@dataclass(frozen=True)
class AskedSpeeds:
    """Speeds (states, nu) that are asked for: those marked are held, others are to be near."""

    values: Floats
    held: Mask | None  #: None if all are to be near
    still: bool = False  #: whether nobody asks for any

    def only(self, some: Ints) -> AskedSpeeds:
        """The same for some of the states."""
        return replace(self, values=self.values[some])


def asked_speeds(plans: LoopPlans, u: Values, lead: tuple[int, ...] = ()) -> AskedSpeeds:
    """Speeds as they are given, checked."""
    nu, names, wanted, held = plans.tree.nu, plans.configuration.speed_names, initial_speeds(plans), None
    if isinstance(u, Mapping):
        wanted, held = _held_speeds(plans, u, lead)
    elif u is not None:
        wanted = flat("u", u, nu, "one for every speed")
        wanted = wanted if lead else one_state("assemble", "u", wanted)
    check_finite("assemble", "u", wanted, names)
    check_size("assemble", "u", wanted, names)
    values = np.broadcast_to(wanted, (*lead, nu)).reshape(-1, nu).copy()
    return AskedSpeeds(values, held, u is None)


def consistent_speeds(plans: LoopPlans, q: Floats, asked: AskedSpeeds, scale: Floats, t: float
                ) -> tuple[Floats, dict[int, AssemblyError]]:
    """Speeds (states, nu) that keep the loops closed at q (states, nq), with those held that are given by name; and
    why states have none."""
    wanted, held = asked.values, asked.held
    if not len(q) or not plans.tree.looped or (asked.still and not plans.tree.rheonomic) or \
            not (wanted.any() or plans.tree.rheonomic or (held is not None and held.any())):
        return wanted, {}
    if held is None:
        return _nearest_speeds(plans, q, wanted, scale, t)
    target, followers = Target(plans.model.bound_mask() | held, scale), np.flatnonzero(held & plans.tree.loop_speeds())
    speeds, left = project_speeds(plans.loops, q, wanted, target, t)
    errors = _contradictions(plans, q, speeds, wanted, np.atleast_1d(left), t)
    good = np.setdiff1d(np.arange(len(q)), list(errors))
    if len(followers) and len(good):
        speeds[good], more = _with_loop_joints(plans.of_samples(good), q[good], speeds[good], wanted[good], followers,
                                               target, t)
        errors |= {int(good[i]): error for i, error in more.items()}
    return speeds, errors


def _with_loop_joints(plans: LoopPlans, q: Floats, u: Floats, wanted: Floats, followers: Ints, target: Target, t: float
                      ) -> tuple[Floats, dict[int, AssemblyError]]:
    """Speeds (n, nu) nearest to u that keep the loops closed at q, what is held, and give some loop joints the speeds
    that are wanted; and why there are none."""
    loops, q, u, free = plans.loops, plans.loops.measured(q, t), u.copy(), target.free
    sizes, weights = np.concatenate([loops.row_sizes, plans.tree.speed_sizes[followers]]), target.weights[free]
    rows = np.concatenate([loops.dense(loops.linearized(q, t)[1]), loop_rows(plans, q, t)[..., followers, :]], axis=-2)
    solved = factors(rows[..., free] / weights / sizes[:, None])

    def lacking() -> Floats:
        found = plans.kernels.run("joint_speeds", {"q": q, "u": u}, None, t)
        return np.asarray(np.concatenate([-loops.rate(q, u, t), (wanted - found)[:, followers]], axis=-1) / sizes)

    size = 1.0 + np.abs(lacking()).max(axis=-1, initial=0.0)
    for _ in range(2):  # the second removes rounding
        u[:, free] += solved.solve(lacking(), 0.0, _FLAT)[0] / weights
    left, errors = np.abs(lacking()), dict[int, AssemblyError]()
    joints = [name.rpartition(".")[0] for name in plans.configuration.speed_names]
    for i in np.flatnonzero(left.max(axis=-1, initial=0.0) > DRIFTED * size).tolist():
        joint = joints[followers[int(np.argmax(left[i, loops.m:]))]]
        errors[i] = AssemblyError(f"assemble {plans.tree.name!r}: joint {joint!r} cannot have the speed that is asked "
                                  "for: what else is held, or the position, allows no such motion (it lacks "
                                  f"{(left * sizes)[i].max():.3g})", joint)
    return u, errors


def _nearest_speeds(plans: LoopPlans, q: Floats, u: Floats, scale: Floats, t: float
                    ) -> tuple[Floats, dict[int, AssemblyError]]:
    """The speeds nearest to u (n, nu) that keep the loops closed at q (n, nq), and why there are none."""
    quick, good, out = plans.closer.near, np.zeros(len(q), dtype=bool), u.copy()
    if quick is not None and (scale == 1.0).all():
        _, out, good = quick.consistent(q, u, t)
    some = np.flatnonzero(~good)
    if not len(some):
        return out, {}
    out, own = out.copy(), plans.of_samples(some)
    out[some], left = project_speeds(own.loops, q[some], u[some], Target(plans.model.bound_mask(), scale), t)
    errors = _contradictions(own, q[some], out[some], u[some], np.atleast_1d(left), t)
    return out, {int(some[i]): error for i, error in errors.items()}


def _contradictions(plans: LoopPlans, q: Floats, speeds: Floats, wanted: Floats, left: Floats, t: float
                    ) -> dict[int, AssemblyError]:
    """Errors for states whose speeds (n, nu) open the loops: what is held contradicts itself."""
    size = 1.0 + np.abs(wanted / plans.tree.speed_sizes).max(axis=-1, initial=0.0)
    errors, loops = {}, plans.loops
    for state in np.flatnonzero(left > DRIFTED * size).tolist():
        rate = np.abs(loop_rate_error(plans.sample(state), q[state], speeds[state], t=t))
        worst = int(np.argmax(loops.shares(rate)))
        errors[state] = AssemblyError(
            f"assemble {plans.tree.name!r}: the speeds held contradict each other; the constraint "
            f"{loops.row_names[worst]} changes at {rate[worst]:.3g}. Hold fewer of them, or take the nearest that "
            "agree: project()", loops.row_names[worst].partition(": ")[0])
    return errors


def _held_speeds(plans: LoopPlans, u: Mapping[str, Any], lead: tuple[int, ...]) -> tuple[Floats, Mask]:
    """Speeds (*lead, nu) given by name, and which these are; zero where nothing is said."""
    wanted = np.broadcast_to(initial_speeds(plans), (*lead, plans.tree.nu)).copy()
    held = np.zeros(plans.tree.nu, dtype=bool)
    for key, value in u.items():
        entries = plans.configuration.speed_entries(key)
        if plans.model.mechanism.joint(plans.configuration.split(key)[0]).prescribed is not None:
            raise StateError(f"assemble: joint {key!r} follows a prescribed motion; give the time t instead")
        check_unmasked(f"u of {key!r}", value)
        try:
            array = np.asarray(value, dtype=float)
            single = len(entries) == 1 and array.ndim and array.shape[-1] != 1 and getattr(value, "ndim", 0)
            wanted[..., entries] = array[..., None] if single else array
        except (TypeError, ValueError):
            raise StateError(f"assemble: {value!r} for the speeds of {key!r} is not {len(entries)} numbers") from None
        held[entries] = True
    return wanted, held


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
