"""Putting a machine together: states in which its loops are closed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import (
    Floats,
    by_name,
    check_finite,
    check_time,
    check_unmasked,
    flat,
    half_turn,
    leading,
    one_time,
)
from bellcrank.errors import AssemblyError, BranchWarning, ModelError, StateError
from bellcrank.loops.closer import Extra, State, Target, project
from bellcrank.loops.nearest import End, Held, Nearest
from bellcrank.loops.tolerances import CLOSED, DRIFTED, SAME
from bellcrank.mechanism.checks import HUGE
from bellcrank.system.loop_errors import LoopErrors

__all__ = ["Assembled", "Values"]

Values = Mapping[str, float | Sequence[float]] | npt.ArrayLike | None


class Assembled(LoopErrors):
    """The methods of a `System` that find closed states."""

    _plan_state: dict[str, Any]

    def assemble(self, q: State | Values = None, u: Values = None, *, guess: State | Values = None,
                 weights: Mapping[str, float] | None = None, t: float = 0.0) -> State:
        """A state in which all loops are closed, at position and velocity level.

        `q` and `u` as mappings {joint or "joint.coordinate": value} are **held**. First the guess is closed, if it is
        open: to the nearest closed position, measured by the norm of the changes of all coordinates [rad, m], each
        times its weight in `weights` {joint: weight}. From there the coordinates held are walked to their values, as
        `drive` does, so that the machine stays on the branch of the guess wherever that exists; what is left free
        ends as near to the guess as it can. If the branch ends on the way, the nearest closed position with these
        values is taken, the state says so by `branch_changed`, and a `BranchWarning` names the joint and the value at
        which it ended. Angles are walked as numbers: from 0 to 3 through 1 and 2.

        As arrays nothing of `q` and `u` is held: `q` is the guess and `u` the speeds to be made consistent. Joints
        that close loops may be held too. Prescribed joints are where their laws have them at time `t`.

        `guess` is an array, a mapping (joints that are not named at zero, those that close loops left aside) or a
        `State`, of which the coordinates count. Positions and speeds that are both only near a closed state, such as
        keyframes of files, are made one by `project`. Cost: some closings of O(nu m^2) for m conditions, more the
        longer the way.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> bool(abs(linkage.loop_error(state.q)).max() < 1e-12), state.branch_changed
        (True, False)
        >>> other = linkage.assemble(q={"A": 0.5}, guess={"A": 0.5, "B": -1.4, "C": 2.3})  # put together another way
        >>> bool(state.q[2] < -1.0 and other.q[2] > 1.0)
        True
        """
        check_time(t)
        if any(_many(values) for values in (q, u, guess)):
            return self._assemble_many(q, u, guess, weights, _time("assemble", t))
        start, held = self._begin(q, guess)
        scale = self._weights(weights)
        t = _time("assemble", t)
        position, end = self._on_branch(start, held, scale, t, "assemble")
        self._plan_state.setdefault("closed", (position, t))
        made = State(*self._with_laws(position, self._consistent(position, u, scale, t), t), t)
        return made if end is None else made.on_other_branch()

    def _assemble_many(self, q: State | Values, u: Values, guess: State | Values, weights: Mapping[str, float] | None,
                       t: float) -> State:
        """States of a batch of guesses and speeds: those near closed ones together, the others one by one."""
        if isinstance(q, Mapping) or isinstance(u, Mapping) or (q is not None and guess is not None):
            raise StateError("assemble: a batch is an array of guesses q (..., nq) and one of speeds u (..., nu); hold "
                             "coordinates and speeds by name for one state at a time")
        begin = self._near("q", guess if q is None else q, many=True)
        speeds = np.zeros(self.nu) if u is None else flat("u", u, self.nu, "one for every speed")
        check_finite("assemble", "u", speeds, self.speed_names)
        _check_size("assemble", "u", speeds, self.speed_names)
        lead = leading([begin, speeds])
        start = np.broadcast_to(begin, (*lead, self.nq)).reshape(-1, self.nq)
        wanted = np.broadcast_to(speeds, (*lead, self.nu)).reshape(-1, self.nu)
        scale = self._weights(weights)
        position, rates = self.normalize(start), wanted.copy()
        if self.tree.looped:
            self._one_machine("assemble")
            near, mask, good = self._assembler.near, self._prescribed_mask(), np.zeros(len(start), dtype=bool)
            if near is not None and len(start):
                position, good = near.nearest(start, mask, scale, t)
                open_ = np.flatnonzero(~good)
                if len(open_):
                    position[open_], good[open_] = near.compared(start[open_], mask, scale, t, self._turning)
            for i in np.flatnonzero(~good):
                position[i] = self.assemble(start[i], weights=weights, t=t).q
            rates = self._nearest_speeds(position, wanted, scale, t)
        position, rates = self._with_laws(position, rates, t)
        return State(position.reshape(*lead, self.nq), rates.reshape(*lead, self.nu), t)

    def _on_branch(self, start: Floats, held: Held, scale: Floats, t: float, what: str) -> tuple[Floats, End | None]:
        """The closed position on the branch of a guess with everything held at its value; on another branch, with a
        warning, and where the branch ended, if it does."""
        if not self.tree.looped:
            return self.normalize(held.put(start)), None
        self._one_machine(what)
        near = Nearest(self._assembler, scale, t, self._turning, self.speed_names)
        first = self._nearest_closed(near, start)
        if first is None:
            q = near.held(start, [start], held) if held.any else None
            if q is None:
                raise self._unclosed(near, start, held, what)
            return q, None
        if not held.any:
            return first, None
        found = near.walked(first, start, held)
        if not isinstance(found, End):
            return found, None
        where = self._said(near, first, held, found)
        q = near.held(start, [found.q, first], held)
        if q is None:
            failed = self._unclosed(near, found.q, held, what)
            raise AssemblyError(f"{failed}. The branch of the guess ends at {where}")
        warnings.warn(f"{what} {self.tree.name!r}: the branch of the guess ends at {where}; this is the nearest closed "
                      "position on another branch. Start from a guess on the branch that is meant", BranchWarning,
                      stacklevel=3)
        return q, found

    def _nearest_closed(self, near: Nearest, guess: Floats) -> Floats | None:
        """The nearest closed position to a guess, remembered for the last few guesses: many calls share one."""
        known = self._assembler.known
        key = (guess.tobytes(), near.weights.tobytes(), near.t)
        if key not in known:
            found = near.free(guess, self._prescribed_mask())
            if len(known) >= 8:
                known.pop(next(iter(known), key), None)
            known[key] = found
        found = known[key]
        return None if found is None else found.copy()

    def _unclosed(self, near: Nearest, start: Floats, held: Held, what: str) -> AssemblyError:
        q, _ = self._assembler.close(held.put(start), near.target(held.mask, held.extra), near.t)
        return self._assembler.failure(q, near.t, f"{what} {self.tree.name!r}", held.extra)

    def _said(self, near: Nearest, first: Floats, held: Held, end: End) -> str:
        """Where a branch ended: the coordinate that was walked farthest, its value there, and what was lost."""
        label, value, aim = near.place(first, held, end, self.coordinate_names)
        return f"{label} = {value:.6g} on the way to {aim:.6g}: there joint {end.joint!r} is no longer determined"

    def _one_machine(self, what: str) -> None:
        names = [name for name, value in self._values.items() if np.ndim(value)]
        if names:
            raise ModelError(f"{what}: {self.tree.name!r} has arrays of the parameters {', '.join(names)}: put "
                             "one machine together at a time, with_parameters() of one value for each")
        for name, value in self._values.items():
            if not abs(float(np.asarray(value))) <= HUGE:
                raise ModelError(f"{what}: the parameter {name!r} of {self.tree.name!r} is {value}, which cannot be "
                                 "computed with")

    @cached_property
    def _turning(self) -> npt.NDArray[np.bool_]:
        """Speeds of angles that whole turns do not change: not of screws, and not of couplers, which count turns."""
        out = np.array([name.rpartition(".")[2].startswith("angle") and not record.joint.counts_turns
                        for record in self._records for name in record.joint.speed_names], dtype=bool)
        out[self._loops.relation_var] = False
        return out

    def _begin(self, q: State | Values, guess: State | Values) -> tuple[Floats, Held]:
        """The guess, and what is held."""
        start, mask = self._near("guess", guess), self._prescribed_mask()
        target = start.copy()
        places: list[int] = []
        extra: list[Extra] = []
        if isinstance(q, Mapping):
            for key, value in q.items():
                places += self._hold(key, value, target, mask, extra)
        elif q is not None:
            start = self._near("q", q)
        target = self.normalize(target)
        return start, Held(mask, tuple(places), target[places], tuple(extra))

    def _near(self, name: str, values: State | Values, what: str = "assemble", many: bool = False) -> Floats:
        """Coordinates to start from, all of them: those of a state, of an array (of several if `many`), or by name."""
        if values is None:
            return self.neutral()
        if not isinstance(values, Mapping):
            given = values.q if isinstance(values, State) else values
            start = flat(name, given, self.nq, "the coordinates")
            start = start.copy() if many else _one(what, name, start)
            check_finite(what, name, start, self.coordinate_names)
            _check_size(what, name, start, self.coordinate_names)
            return start
        start = self.neutral()
        for key, value in values.items():
            numbers, joint, coordinate = self._named(key, value, what)
            kind = self.mechanism.joint(joint).joint
            names = kind.coordinate_names()
            if coordinate is not None and coordinate not in names:
                raise StateError(f"{what}: {key!r} is a speed; there are {', '.join(names)}")
            self._check_count(key, numbers, kind.nq if coordinate is None else 1, what)
            if joint not in self.tree.cut_names:
                first = self._starts[joint][0] + (0 if coordinate is None else names.index(coordinate))
                start[first:first + len(numbers)] = numbers
        return start

    def _speeds_near(self, values: Mapping[str, Any]) -> Floats:
        """All speeds from those given by name, zero where nothing is said; joints that close loops are left aside."""
        named = {key: value for key, value in values.items() if self._split(key)[0] not in self.tree.cut_names}
        return by_name("u", named, self._speed_entries, self.nu)

    def _with_laws(self, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """q and u, shapes (..., nq) and (..., nu), with what prescribed joints do at times t."""
        if not self._prescribed_mask().any():
            return q, u
        q, u, clock = np.array(q), np.array(u), np.asarray(t, dtype=float)
        for link, law in enumerate(self.tree.prescribed):
            joint = self.tree.joints[link]
            if law is None or joint is None:
                continue
            i, j = self._starts[self.tree.joint_names[link]]
            places, rates = [q[..., i + k] for k in range(joint.nq)], [u[..., j + k] for k in range(joint.nu)]
            there, speeds, _ = law.values(clock if clock.ndim else float(clock), places, rates, rates)
            for k, x in enumerate(there):
                q[..., i + k] = x
            for k, x in enumerate(speeds):
                u[..., j + k] = x
        return q, u

    def _closed(self, start: Floats, t: float) -> Floats:
        """Some closed position near a start, the first that is found: plans are made there."""
        if not self.tree.looped:
            return self.normalize(start)
        held, first = self._prescribed_mask(), None
        target = Target(held, np.ones(self.nu))
        rng = np.random.default_rng(1)
        for attempt in range(12 if self.nu > 300 else 24):  # small steps away from the guess first, then any
            shake = np.zeros(self.nu) if attempt == 0 else rng.normal(size=self.nu) * min(0.05 * 2.0**attempt, 2.5)
            shake[held] = 0.0
            found, size = self._assembler.close(self.integrate(start, shake), target, t)
            if first is None:
                first = found
            if size < CLOSED and not self._assembler.flipped(found, t):
                return found
        assert first is not None
        raise self._assembler.failure(first, t, f"assemble {self.tree.name!r}")

    def branches(self, q: State | Values = None, *, tries: int = 60, guess: State | Values = None, t: float = 0.0,
                 seed: int = 0) -> list[State]:
        """Different closed positions found from random starts with the coordinates in `q` held (as an array, `q` is
        the guess), nearest to the guess first. Only meaningful if what is held leaves no freedom: then it lists the
        assembly branches."""
        t = one_time(t)
        guessed, held = self._begin(q, guess)
        t = _time("branches", t)
        if self.tree.looped:
            self._one_machine("branches")
        start = held.put(guessed)
        rng = np.random.default_rng(seed)
        found: list[Floats] = []
        for attempt in range(tries):
            shake = np.where(held.mask, 0.0, rng.normal(size=self.nu) * (0.0 if attempt == 0 else 1.5))
            position, size = self._assembler.close(self.integrate(start, shake),
                                                   Target(held.mask, np.ones(self.nu), held.extra), t)
            if size < CLOSED and not self._assembler.flipped(position, t) \
                    and not any(self._same(position, other) for other in found):
                found.append(position)
        found.sort(key=lambda x: float(np.linalg.norm(self._wrapped(self.difference(start, x)))))
        return [State(*self._with_laws(x, np.zeros(self.nu), t), float(t)) for x in found]

    def _same(self, a: Floats, b: Floats) -> bool:
        return bool(np.abs(self._wrapped(self.difference(a, b))).max(initial=0.0) < SAME)

    def _wrapped(self, change: Floats) -> Floats:
        """Changes of all coordinates without whole turns of angles."""
        return np.where(self._turning, half_turn(change), change)

    def _consistent(self, q: Floats, u: Values, scale: Floats, t: float) -> Floats:
        held = self._prescribed_mask()
        wanted = np.zeros(self.nu)
        if isinstance(u, Mapping):
            for key, value in u.items():
                entries = self._speed_entries(key)
                if held[entries].any() and self.mechanism.joint(self._split(key)[0]).prescribed is not None:
                    raise StateError(f"assemble: joint {key!r} follows a prescribed motion; give the time t instead")
                check_unmasked(f"u of {key!r}", value)
                try:
                    wanted[entries] = np.asarray(value, dtype=float)
                except (TypeError, ValueError):
                    raise StateError(f"assemble: {value!r} for the speeds of {key!r} is not {len(entries)} numbers"
                                     ) from None
                held[entries] = True
        elif u is not None:
            wanted = _one("assemble", "u", flat("u", u, self.nu, "one for every speed"))
        check_finite("assemble", "u", wanted, self.speed_names)
        _check_size("assemble", "u", wanted, self.speed_names)
        if not self.tree.looped or not (wanted.any() or self._prescribed_mask().any()):
            return wanted
        if not isinstance(u, Mapping):
            return np.asarray(self._nearest_speeds(q[None], wanted[None], scale, t)[0])
        speeds, left = project(self._loops, q, wanted, Target(held, scale), t)
        size = 1.0 + float(np.abs(wanted).max(initial=0.0))
        if left > DRIFTED * size:
            rate = np.abs(self.loop_rate_error(q, speeds, t=t))
            worst = int(np.argmax(rate))
            raise AssemblyError(f"assemble {self.tree.name!r}: the speeds held contradict each other; the condition "
                                f"{self._loops.row_names[worst]} changes at {rate[worst]:.3g}. Hold fewer of "
                                "them, or take the nearest that agree: project()")
        return speeds

    def _nearest_speeds(self, q: Floats, u: Floats, scale: Floats, t: float) -> Floats:
        """The speeds nearest to u (n, nu) that keep the loops closed at q (n, nq)."""
        target = Target(self._prescribed_mask(), scale)
        if not (u.any() or target.held.any()):
            return u.copy()
        near, good, out = self._assembler.near, np.zeros(len(q), dtype=bool), u.copy()
        if near is not None and (scale == 1.0).all():
            _, out, good = near.consistent(q, u, t)
        some = np.flatnonzero(~good)
        if len(some):
            out = out.copy()
            out[some] = project(self._loops, q[some], u[some], target, t)[0]
        return out

    def _weights(self, weights: Mapping[str, float] | None) -> Floats:
        out = np.ones(self.nu)
        for key, value in (weights or {}).items():
            try:
                good = 0.0 < float(value) < float("inf")
            except (TypeError, ValueError):
                good = False
            if not good:
                raise StateError(f"weights: {key!r} needs a positive number, got {value!r}")
            out[self._speed_entries(key)] = float(value)
        return out

    def _hold(self, key: str, value: Any, q: Floats, held: npt.NDArray[np.bool_], extra: list[Extra]) -> list[int]:
        """Put a value that is held into q, `held` or `extra`; the coordinates of q that are held."""
        numbers, joint, coordinate = self._named(key, value, "assemble")
        if joint in self.tree.cut_names:
            index = self._closure_index(joint)
            names = self.tree.closures[index].kind.coordinate_names()
            if coordinate is not None and coordinate not in names:
                raise StateError(f"assemble: {key!r} is a speed; hold one of {', '.join(names)}")
            which = range(len(names)) if coordinate is None else [names.index(coordinate)]
            self._check_count(key, numbers, len(which))
            extra += [Extra(index, i, float(x)) for i, x in zip(which, numbers, strict=True)]
            return []
        record = self.mechanism.joint(joint)
        if record.prescribed is not None and (coordinate is None or held[self._speed_entries(key)].all()):
            raise StateError(f"assemble: joint {joint!r} follows a prescribed motion; give the time t instead")
        names = record.joint.coordinate_names()
        start_q, start_u = self._starts[joint]
        if coordinate is None:
            self._check_count(key, numbers, record.joint.nq)
            q[start_q:start_q + record.joint.nq] = numbers
            held[start_u:start_u + record.joint.nu] = True
            return list(range(start_q, start_q + record.joint.nq))
        self._check_count(key, numbers, 1)
        if record.joint.nq != record.joint.nu:
            raise StateError(f"assemble: joint {joint!r} is held as a whole, by all {record.joint.nq} coordinates")
        i = names.index(coordinate)
        q[start_q + i] = numbers[0]
        held[start_u + i] = True
        return [start_q + i]

    def _named(self, key: str, value: Any, what: str) -> tuple[Floats, str, str | None]:
        """The numbers given for a joint or one of its coordinates, and which these are."""
        joint, coordinate = self._split(key)
        check_unmasked(f"{what}: the value of {key!r}", value)
        try:
            numbers = np.atleast_1d(np.asarray(value, dtype=float))
        except (TypeError, ValueError):
            raise StateError(f"{what}: {value!r} for {key!r} is not a number") from None
        if not np.isfinite(numbers).all():
            raise StateError(f"{what}: {value!r} for {key!r} is not finite")
        _check_size(what, "the value", numbers, [repr(key)] * len(numbers))
        return numbers, joint, coordinate

    def _check_count(self, key: str, numbers: Floats, n: int, what: str = "assemble") -> None:
        if numbers.shape != (n,):
            raise StateError(f"{what}: {key!r} needs {n} value{'s' * (n != 1)}, got {numbers.size}")


def _time(what: str, t: float) -> float:
    """One finite time."""
    if np.ndim(t):
        raise StateError(f"{what}: one state at a time; t must be a number")
    try:
        time = float(t)
    except (TypeError, ValueError):
        raise StateError(f"{what}: the time {t!r} is not a number") from None
    if not abs(time) < float("inf"):
        raise StateError(f"{what}: the time {time} is not finite")
    return time


def _many(values: State | Values) -> bool:
    """Whether these are the numbers of several states."""
    return getattr(values.q if isinstance(values, State) else values, "ndim", 1) > 1


def _check_size(what: str, label: str, array: Floats, names: Sequence[str]) -> None:
    """Refuse numbers whose squares and products overflow."""
    if np.abs(array).max(initial=0.0) > HUGE:
        place = tuple(int(i) for i in np.argwhere(np.abs(array) > HUGE)[0])
        raise StateError(f"{what}: {label} of {names[place[-1]]} is {array[place]:g}, above {HUGE:g}: that cannot be "
                         "computed with")


def _one(what: str, name: str, array: Floats) -> Floats:
    if array.ndim != 1:
        raise StateError(f"{what}: one state at a time; {name} has shape {array.shape}")
    return array.copy()

