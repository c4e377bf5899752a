"""Speeds of assembled states: those that are asked for, of joints that were cut as well, and made consistent with the
loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, by_name, check_finite, check_unmasked, flat
from bellcrank.errors import AssemblyError, StateError
from bellcrank.loops.closer import Target
from bellcrank.loops.closer import project as project_speeds
from bellcrank.loops.tolerances import DRIFTED
from bellcrank.mechanism.machine_sizes import speed_sizes
from bellcrank.system.held_values import Values, check_size, one_state
from bellcrank.system.loop_errors import loop_rate_error, loop_speeds

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["AskedSpeeds", "asked_speeds", "consistent_speeds", "initial_speeds"]

Ints = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
#: directions in which speeds of cut joints change by less than this part of the most are left alone
_FLAT = 1e-10


class _ClosingSpeeds(NamedTuple):
    """Speeds (states, some) that a joint which was cut shall have, and which of its speeds these are."""

    joint: str
    which: list[int]
    values: Floats

    def of_states(self, some: Ints) -> _ClosingSpeeds:
        """The same for some of the states."""
        return _ClosingSpeeds(self.joint, self.which, self.values[some])


def _closing_speeds(plans: LoopPlans, u: Mapping[str, Any], lead: tuple[int, ...]
                   ) -> tuple[list[_ClosingSpeeds], dict[str, Any]]:
    """Speeds {joint or joint.speed: values} of joints that were cut, and the others."""
    out: list[_ClosingSpeeds] = []
    rest: dict[str, Any] = {}
    for key, value in u.items():
        joint, label = plans.configuration.split(key)
        if joint not in plans.tree.cut_names:
            rest[key] = value
            continue
        names = plans.model.mechanism.joint(joint).joint.speed_names
        if label is not None and label not in names:
            raise StateError(f"{key!r} is a coordinate without a speed of its own; there are {', '.join(names)}")
        which = list(range(len(names))) if label is None else [names.index(label)]
        places = {key: list(range(len(which)))}
        array = by_name("u", {key: value}, places.__getitem__, len(which))
        if not np.isfinite(array).all():
            raise StateError(f"assemble: u of {key!r} is not finite")
        out.append(_ClosingSpeeds(joint, which, np.broadcast_to(array, (*lead, len(which))).reshape(-1, len(which))))
    return out, rest


def _with_closing_speeds(plans: LoopPlans, q: Floats, u: Floats, asked: Sequence[_ClosingSpeeds], target: Target,
                        t: float) -> Floats:
    """Speeds (nu,) nearest to u that keep the loops closed at q, what is held, and have what is asked for, (1, some)
    each."""
    units, free, scale = np.eye(plans.tree.nu), target.free, target.weights[target.free]
    kinds = {joint: speed_sizes(plans.model.mechanism.joint(joint).joint, plans.tree.length) for joint, _, _ in asked}
    sizes = np.concatenate([plans.loops.row_sizes, *(kinds[joint][which] for joint, which, _ in asked)])
    rows, lacks, out = [plans.loops.dense(plans.loops.linearized(q, t)[1])], [], u.copy()
    for joint, which, values in asked:
        still = loop_speeds(plans, q, np.zeros(plans.tree.nu), joint, t=t)
        rows.append((loop_speeds(plans, q, units, joint, t=t) - still).T[which])
        lacks.append(values[0] - loop_speeds(plans, q, u, joint, t=t)[which])
    matrix = np.vstack(rows)[:, free] / scale / sizes[:, None]
    wanted = np.concatenate([np.zeros(len(rows[0])), *lacks]) / sizes
    change = np.linalg.lstsq(matrix, wanted, rcond=_FLAT)[0]
    lacking = np.abs(matrix @ change - wanted)
    if lacking.max(initial=0.0) > DRIFTED * (1.0 + float(np.abs(wanted).max(initial=0.0))):
        raise AssemblyError(f"assemble {plans.tree.name!r}: joint {asked[0].joint!r} cannot have the speed that is "
                            f"asked for: what else is held, or the position, allows no such motion (it lacks "
                            f"{(lacking * sizes)[np.argmax(lacking)]:.3g})", asked[0].joint)
    out[free] += change / scale
    return out


@dataclass(frozen=True)
class AskedSpeeds:
    """Speeds (states, nu) that are asked for: those marked are held, others are to be near; and those of joints that
    close loops."""

    values: Floats
    held: Mask | None  #: None if all are to be near
    across: Sequence[_ClosingSpeeds] = ()
    still: bool = False  #: whether nobody asks for any

    def only(self, some: Ints) -> AskedSpeeds:
        """The same for some of the states."""
        return replace(self, values=self.values[some], across=[a.of_states(some) for a in self.across])


def asked_speeds(plans: LoopPlans, u: Values, lead: tuple[int, ...] = ()) -> AskedSpeeds:
    """Speeds as they are given, checked."""
    nu, names, wanted = plans.tree.nu, plans.configuration.speed_names, initial_speeds(plans)
    across, held = list[_ClosingSpeeds](), None
    if isinstance(u, Mapping):
        across, rest = _closing_speeds(plans, u, lead)
        held = plans.model.bound_mask()
        wanted = _held_speeds(plans, rest, held, lead)
    elif u is not None:
        wanted = flat("u", u, nu, "one for every speed")
        wanted = wanted if lead else one_state("assemble", "u", wanted)
    check_finite("assemble", "u", wanted, names)
    check_size("assemble", "u", wanted, names)
    values = np.broadcast_to(wanted, (*lead, nu)).reshape(-1, nu).copy()
    return AskedSpeeds(values, held, across, u is None)


def consistent_speeds(plans: LoopPlans, q: Floats, asked: AskedSpeeds, scale: Floats, t: float
                ) -> tuple[Floats, dict[int, AssemblyError]]:
    """Speeds (states, nu) that keep the loops closed at q (states, nq), with those held that are given by name; and
    why states have none."""
    wanted, held = asked.values, asked.held
    if not len(q) or not plans.tree.looped or (asked.still and not plans.tree.rheonomic) or \
            not (wanted.any() or plans.tree.rheonomic or asked.across):
        return wanted, {}
    if held is None:
        return _nearest_speeds(plans, q, wanted, scale, t)
    target = Target(held, scale)
    speeds, left = project_speeds(plans.loops, q, wanted, target, t)
    errors = _contradictions(plans, q, speeds, wanted, np.atleast_1d(left), t)
    for i in np.setdiff1d(np.arange(len(q)), list(errors)).tolist() if asked.across else ():
        across = asked.only(np.array([i])).across
        try:
            speeds[i] = _with_closing_speeds(plans.sample(i), q[i], speeds[i], across, target, t)
        except AssemblyError as error:
            errors[i] = error
    return speeds, errors


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
