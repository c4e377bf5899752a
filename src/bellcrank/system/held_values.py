"""What `assemble` and others are given by name: values that are held, guesses, weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, absent, by_name, check_finite, check_unmasked, flat, leading
from bellcrank.errors import StateError
from bellcrank.loops.closer import Extra
from bellcrank.loops.nearest import Held
from bellcrank.mechanism.checks import HUGE
from bellcrank.mechanism.joints.derived_joints import HeldJoint
from bellcrank.system.loop_errors import closure_index
from bellcrank.system.state import State, coordinates_of
from bellcrank.topology.tree import Closure

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["Values", "batch_axes", "begin", "check_size", "closing_near", "locks_closing", "names_closing", "near",
           "one_of", "one_state", "speeds_near", "weighting"]

#: coordinates or speeds: an array, or {joint or "joint.coordinate": values}
#: coordinates that mean something together
_QUATERNION = ("qw", "qx", "qy", "qz")

Values = Mapping[str, npt.ArrayLike] | npt.ArrayLike | None


def begin(plans: LoopPlans, q: State | Values, guess: State | Values, weights: Mapping[str, float] | None = None,
          many: bool = False) -> tuple[Floats, Held]:
    """The guess (..., nq), and what is held; joints that close loops count where the guess or `weights` name them.
    With batch axes if `many`."""
    mask = plans.model.bound_mask()
    if q is not None and not isinstance(q, Mapping):  # it is the guess, and nothing is held
        if guess is not None:
            near(plans, "guess", guess, many=many)
        start = near(plans, "q", q, many=many)
        return start, Held(mask, (), np.zeros(0), locked_near_guess(plans, q, start), _wanted(plans, q, weights, start))
    start = near(plans, "guess", guess, many=many)
    if many:
        lead = leading([start, np.empty((*batch_axes(plans, q), 0))])
        start = np.array(np.broadcast_to(start, (*lead, plans.tree.nq)))
    target = start.copy()
    places: list[int] = []
    extra: list[Extra] = []
    if isinstance(q, Mapping):
        for key, value in q.items():
            places += _hold(plans, key, value, target, mask, extra, many)
    for own in plans.tree.loop_joints:  # angles of theirs are sought near the values that they are to have
        start[..., own.q] = target[..., own.q]
    named = {(e.closure, e.coordinate) for e in extra}
    extra += [e for e in locked_near_guess(plans, guess, start) if (e.closure, e.coordinate) not in named]
    target, places = plans.configuration.normalize(target), list(dict.fromkeys(places))
    wanted = _wanted(plans, guess, weights, start)
    return start, Held(mask, tuple(places), target[..., places], tuple(extra), wanted)


def _wanted(plans: LoopPlans, guess: State | Values, weights: Mapping[str, float] | None, start: Floats
            ) -> tuple[Extra, ...]:
    """Coordinates of joints that close loops that count: those that the guess names, and those with weights, which are
    at zero in a guess by name that does not name them."""
    found = {(e.closure, e.coordinate): e for e in closing_near(plans, guess)}
    for key, weight in (weights or {}).items():
        joint, coordinate = plans.configuration.split(key)
        for i, c in enumerate(plans.tree.closures):
            if c.name != joint or not c.is_joint:
                continue
            names = c.kind.coordinate_names()
            known = guess is None or isinstance(guess, Mapping)
            at = c.kind.neutral() if known else plans.closer.coordinates(start, i)
            for k in range(len(names)) if coordinate is None else [names.index(coordinate)]:
                found[i, k] = replace(found.get((i, k), Extra(i, k, _entry(at, k))), weight=float(weight))
    return tuple(found.values())


def locked_near_guess(plans: LoopPlans, guess: State | Values, start: Floats) -> tuple[Extra, ...]:
    """Coordinates of joints that close loops and are locked (`System.lock`), where the guess has them: by name, else at
    zero as all joints that a mapping does not name, or where they are in the coordinates `start`."""
    out, given = [], {(e.closure, e.coordinate): e for e in closing_near(plans, guess)}
    for i, c in enumerate(plans.tree.closures):
        kind = _locked(c)
        if kind is None:
            continue
        at = kind.neutral() if guess is None or isinstance(guess, Mapping) else plans.closer.coordinates(start, i)
        out += [given.get((i, k), Extra(i, k, _entry(at, k))) for k in kind.held]
    return tuple(out)


def _entry(array: Floats, k: int) -> Any:
    """An entry of the last axis, a number where it is one."""
    return float(array[k]) if array.ndim == 1 else array[..., k]


def _locked(c: Closure) -> HeldJoint | None:
    """A closure's joint, if coordinates of it stay where they are."""
    return c.kind if isinstance(c.kind, HeldJoint) and c.kind.values is None else None


def locks_closing(plans: LoopPlans) -> bool:
    """Whether joints that close loops are locked."""
    return any(_locked(c) is not None for c in plans.tree.closures)


def names_closing(plans: LoopPlans, values: State | Values) -> bool:
    """Whether values by name are also those of joints that close loops."""
    return isinstance(values, Mapping) and any(
        plans.configuration.split(key)[0] in plans.tree.cut_names for key in values)


def closing_near(plans: LoopPlans, values: State | Values) -> tuple[Extra, ...]:
    """Coordinates of joints that close loops to start near, if they are given by name (as `near` has checked them);
    those of loops that are open now count for nothing."""
    if not isinstance(values, Mapping):
        return ()
    closed, out = {c.name for c in plans.tree.closures if c.is_joint}, []
    for key, value in values.items():
        numbers, joint, coordinate = _named(plans, key, value, "assemble", many=True)
        if joint in closed:
            index = closure_index(plans, joint)
            names = plans.tree.closures[index].kind.coordinate_names()
            which = range(len(names)) if coordinate is None else [names.index(coordinate)]
            out += [Extra(index, i, _entry(numbers, k)) for k, i in enumerate(which)]
    return tuple(out)


def near(plans: LoopPlans, name: str, values: State | Values, what: str = "assemble", many: bool = False) -> Floats:
    """Coordinates to start from, all of them: those of a state, of an array, or by name; of several if `many`, where
    they are NaN in states that could not be reached."""
    if values is None:
        return plans.configuration.neutral()
    if not isinstance(values, Mapping):
        given = coordinates_of(values, plans.configuration.state_names, what)
        start = flat(name, given, plans.tree.nq, "the coordinates")
        start = start.copy() if many else one_state(what, name, start)
        lost = absent(start)[..., None] if many and isinstance(values, State) and values.failures else False
        for check in (check_finite, check_size):
            check(what, name, np.where(lost, 0.0, start), plans.configuration.coordinate_names)
        return start
    lead = batch_axes(plans, values) if many else ()
    start = np.array(np.broadcast_to(plans.configuration.neutral(), (*lead, plans.tree.nq)))
    for key, value in values.items():
        numbers, joint, coordinate = _named(plans, key, value, what, many)
        names = plans.model.mechanism.joint(joint).joint.coordinate_names()
        if coordinate is not None and coordinate not in names:
            raise StateError(f"{what}: {key!r} is a speed; there are {', '.join(names)}")
        first = plans.configuration.starts[joint][0] + (0 if coordinate is None else names.index(coordinate))
        start[..., first:first + numbers.shape[-1]] = numbers
    return start


def speeds_near(plans: LoopPlans, values: Mapping[str, Any]) -> Floats:
    """All speeds from those given by name, zero where nothing is said; joints that close loops are left aside."""
    cut = plans.tree.cut_names
    named = {key: value for key, value in values.items() if plans.configuration.split(key)[0] not in cut}
    return by_name("u", named, plans.configuration.speed_entries, plans.tree.nu)


def weighting(plans: LoopPlans, weights: Mapping[str, float] | None, usual: Floats | None = None) -> Floats:
    """Weights of all speeds from {joint: weight}; over what is `usual`, or one; 1 where nothing is said."""
    base = np.ones(plans.tree.nu) if usual is None else 1.0 / usual
    out = base.copy()
    for key, value in (weights or {}).items():
        try:
            good = 0.0 < float(value) < float("inf")
        except (TypeError, ValueError):
            good = False
        if not good:
            raise StateError(f"weights: {key!r} needs a positive number, got {value!r}")
        if usual is None or plans.configuration.split(key)[0] not in plans.tree.cut_names:  # others count in `begin`
            entries = plans.configuration.speed_entries(key)
            out[entries] = float(value) * base[entries]
    return out


def _hold(plans: LoopPlans, key: str, value: Any, q: Floats, held: npt.NDArray[np.bool_], extra: list[Extra],
          many: bool = False) -> list[int]:
    """Put a value that is held into q, `held` or `extra`; the coordinates of q that are held."""
    numbers, joint, coordinate = _named(plans, key, value, "assemble", many)
    record = plans.model.mechanism.joint(joint)
    names = record.joint.coordinate_names()
    if coordinate is not None and coordinate not in names:
        raise StateError(f"assemble: {key!r} is a speed; hold one of {', '.join(names)}")
    start_q, start_u = plans.configuration.starts[joint]
    which = range(len(names)) if coordinate is None else [names.index(coordinate)]
    places = [start_q + i for i in which]
    if joint in plans.tree.cut_names:
        index = closure_index(plans, joint)
        extra += [Extra(index, i, _entry(numbers, k)) for k, i in enumerate(which)]
        q[..., places] = numbers
        return []
    if record.prescribed is not None and (coordinate is None or held[plans.configuration.speed_entries(key)].all()):
        raise StateError(f"assemble: joint {joint!r} follows a prescribed motion; give the time t instead")
    if record.joint.nq != record.joint.nu:  # held as a whole, what is not named where the guess has it
        if coordinate in _QUATERNION:
            raise StateError(f"assemble: the orientation of joint {joint!r} is set by all of its coordinates, "
                             f"{joint!r} = ({', '.join(names)}), and not by {coordinate} alone")
        q[..., places] = numbers
        held[start_u:start_u + record.joint.nu] = True
        return list(range(start_q, start_q + record.joint.nq))
    q[..., places] = numbers
    held[[start_u + i for i in which]] = True
    return places


def _named(plans: LoopPlans, key: str, value: Any, what: str, many: bool = False) -> tuple[Floats, str, str | None]:
    """The numbers (..., values) given for a joint or one of its coordinates, and which these are; batch axes, of
    arrays, if `many`."""
    joint, coordinate = plans.configuration.split(key)
    check_unmasked(f"{what}: the value of {key!r}", value)
    try:
        numbers = np.atleast_1d(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        raise StateError(f"{what}: {value!r} for {key!r} is not a number") from None
    n = _width(plans, key, False)
    if many and np.ndim(value) and hasattr(value, "ndim") and len(_axes_of(numbers, n)) == numbers.ndim:
        numbers = numbers[..., None]
    finite = np.isfinite(numbers)
    if not finite.all():
        said = f"{numbers[~finite][0]} among the values" if many and numbers.size > n else repr(value)
        raise StateError(f"{what}: {said} for {key!r} is not finite")
    check_size(what, "the value", numbers, [repr(key)] * numbers.shape[-1])
    if numbers.shape[-1] != n or (numbers.ndim > 1 and not many):
        several = "; several states at once are an array, not a list: np.array([...])" if n == 1 < numbers.size else ""
        raise StateError(f"{what}: {key!r} needs {n} value{'s' * (n != 1)}, got {numbers.size}{several}")
    return numbers, joint, coordinate


def batch_axes(plans: LoopPlans, values: State | Values, speeds: bool = False) -> tuple[int, ...]:
    """The batch axes of coordinates or speeds: of an array (..., size), or of {name: array (..., size)}, whose last
    axis may be left out where it has one entry. Lists of numbers have none."""
    if isinstance(values, Mapping):
        parts = [np.empty((*_axes_of(value, _width(plans, key, speeds)), 0)) for key, value in values.items()
                 if getattr(value, "ndim", 0)]
        return leading(parts) if parts else ()
    shape: tuple[int, ...] = getattr(coordinates_of(values, plans.configuration.state_names, "assemble"), "shape", ())
    return shape[:-1]


def _axes_of(value: Any, width: int) -> tuple[int, ...]:
    shape: tuple[int, ...] = value.shape
    return shape if width == 1 and shape[-1:] != (1,) else shape[:-1]


def _width(plans: LoopPlans, key: str, speeds: bool) -> int:
    joint, coordinate = plans.configuration.split(key)
    kind = plans.model.mechanism.joint(joint).joint
    return 1 if coordinate is not None else kind.nu if speeds else kind.nq


def one_of(plans: LoopPlans, values: State | Values, lead: tuple[int, ...], index: tuple[int, ...]) -> Values:
    """The coordinates of one state of a batch, given as `batch_axes` has them."""
    if isinstance(values, Mapping):
        out: dict[str, Any] = {}
        for key, value in values.items():
            array: Any = value
            if getattr(array, "ndim", 0):
                rest = array.shape[len(_axes_of(array, _width(plans, key, False))):]
                array = np.broadcast_to(array, (*lead, *rest))[index]
            out[key] = array
        return out
    array = coordinates_of(values, plans.configuration.state_names, "assemble")
    whole: Values = np.broadcast_to(array, (*lead, array.shape[-1]))[index] if getattr(array, "ndim", 0) > 1 else array
    return whole


def check_size(what: str, label: str, array: Floats, names: Sequence[str]) -> None:
    """Refuse numbers whose squares and products overflow."""
    if np.abs(array).max(initial=0.0) > HUGE:
        place = tuple(int(i) for i in np.argwhere(np.abs(array) > HUGE)[0])
        raise StateError(f"{what}: {label} of {names[place[-1]]} is {array[place]:g}, above {HUGE:g}: that cannot be "
                         "computed with")


def one_state(what: str, name: str, array: Floats) -> Floats:
    """A copy of what must be one state."""
    if array.ndim != 1:
        raise StateError(f"{what}: one state at a time; {name} has shape {array.shape}")
    return array.copy()
