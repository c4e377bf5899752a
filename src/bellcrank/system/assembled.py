"""Putting a machine together: states in which its loops are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import AssemblyError, StateError
from bellcrank.system.arrays import Floats, by_name, check_finite, check_time, check_unmasked, flat, one_time
from bellcrank.system.assembly import Extra, State, project
from bellcrank.system.loop_errors import LoopErrors

__all__ = ["CLOSED", "Assembled", "Values"]

Values = Mapping[str, float | Sequence[float]] | npt.ArrayLike | None

#: closures are tight when no residual is larger
CLOSED = 1e-9


class Assembled(LoopErrors):
    """The methods of a `System` that find closed states."""

    _plan_state: dict[str, Any]

    def assemble(self, q: State | Values = None, u: Values = None, *, guess: State | Values = None,
                 weights: Mapping[str, float] | None = None, t: float = 0.0) -> State:
        """A state in which all loops are closed, at position and velocity level.

        `q` and `u` as mappings {joint or "joint.coordinate": value} are **held**; everything else moves as little as
        it can from `guess`, in the measure of `weights` {joint: weight}. As arrays nothing of them is held: `q` is the
        guess and `u` the speeds to be made consistent. Joints that close loops may be held too. Prescribed joints are
        where their laws have them at time `t`.

        `guess` is an array, a mapping (joints that are not named at zero, those that close loops left aside) or a
        `State`, of which the coordinates count. Positions and speeds that are both only near a closed state, such as
        keyframes of files, are made one by `project`.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> bool(abs(linkage.loop_error(state.q)).max() < 1e-12)
        True
        >>> other = linkage.assemble(guess={"A": 0.5, "B": -2.0})  # another way to put it together
        >>> bool(abs(other.q[1] - state.q[1]) > 1.0)
        True
        """
        check_time(t)
        start, held, extra = self._begin(q, guess)
        scale = self._weights(weights)
        if np.ndim(t):
            raise StateError("assemble: one state at a time; t must be a number")
        position = self._closed(start, held, scale, t, extra)
        self._plan_state.setdefault("closed", (position, t))
        return State(*self._with_laws(position, self._consistent(position, u, scale, t), t), float(t))

    def _begin(self, q: State | Values, guess: State | Values
               ) -> tuple[Floats, npt.NDArray[np.bool_], tuple[Extra, ...]]:
        """Where to start from, which speeds are held there, and what is held of joints that close loops."""
        start, held = self._near("guess", guess), self._prescribed_mask()
        extra: list[Extra] = []
        if isinstance(q, Mapping):
            for key, value in q.items():
                self._hold(key, value, start, held, extra)
        elif q is not None:
            start = self._near("q", q)
        return start, held, tuple(extra)

    def _near(self, name: str, values: State | Values, what: str = "assemble") -> Floats:
        """Coordinates to start from, all of them: those of a state, of an array, or by name."""
        if values is None:
            return self.neutral()
        if not isinstance(values, Mapping):
            given = values.q if isinstance(values, State) else values
            start = _one(what, name, flat(name, given, self.nq, "the coordinates"))
            check_finite(what, name, start, self.coordinate_names)
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

    def _closed(self, start: Floats, held: npt.NDArray[np.bool_], scale: Floats, t: float, extra: tuple[Extra, ...]
                ) -> Floats:
        if not self.tree.looped:
            return self.normalise(start)
        first = None
        rng = np.random.default_rng(1)
        for attempt in range(12 if self.nu > 300 else 24):  # small steps away from the guess first, then any
            shake = np.zeros(self.nu) if attempt == 0 else rng.normal(size=self.nu) * min(0.05 * 2.0**attempt, 2.5)
            shake[held] = 0.0
            guess = self.integrate(start, shake)
            found, size = self._assembler.close(guess, held, scale, t, extra=extra)
            if first is None:
                first = found
            if size < CLOSED and not self._assembler.flipped(found, t):
                return found
        assert first is not None
        raise self._assembler.failure(first, t, f"assemble {self.tree.name!r}", extra)

    def branches(self, q: State | Values = None, *, tries: int = 60, guess: State | Values = None, t: float = 0.0,
                 seed: int = 0) -> list[State]:
        """Different closed positions found from random starts with the coordinates in `q` held (as an array, `q` is
        the guess), nearest to the guess first. Only meaningful if what is held leaves no freedom: then it lists the
        assembly branches."""
        t = one_time(t)
        start, held, extra = self._begin(q, guess)
        rng = np.random.default_rng(seed)
        found: list[Floats] = []
        for attempt in range(tries):
            shake = np.where(held, 0.0, rng.normal(size=self.nu) * (0.0 if attempt == 0 else 1.5))
            position, size = self._assembler.close(self.integrate(start, shake), held, np.ones(self.nu), t,
                                                   extra=extra)
            if size < CLOSED and not self._assembler.flipped(position, t) \
                    and not any(self._same(position, other) for other in found):
                found.append(position)
        found.sort(key=lambda x: float(np.linalg.norm(_wrapped(self.difference(start, x)))))
        return [State(*self._with_laws(x, np.zeros(self.nu), t), float(t)) for x in found]

    def _same(self, a: Floats, b: Floats) -> bool:
        return bool(np.abs(_wrapped(self.difference(a, b))).max(initial=0.0) < 1e-6)

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
        if not self.tree.looped:
            return wanted
        speeds, left = project(self._loops, q, wanted, held, scale, t)
        size = 1.0 + float(np.abs(wanted).max(initial=0.0))
        if left > 1e-8 * size:
            rate = np.abs(self.loop_rate_error(q, speeds, t=t))
            worst = int(np.argmax(rate))
            raise AssemblyError(f"assemble {self.tree.name!r}: the speeds held contradict each other; the condition "
                                f"{self._loops.row_names[worst]} changes at {rate[worst]:.3g}. Hold fewer of "
                                "them, or take the nearest that agree: project()")
        return speeds

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

    def _hold(self, key: str, value: Any, q: Floats, held: npt.NDArray[np.bool_], extra: list[Extra]) -> None:
        numbers, joint, coordinate = self._named(key, value, "assemble")
        if joint in self.tree.cut_names:
            index = self._closure_index(joint)
            names = self.tree.closures[index].kind.coordinate_names()
            if coordinate is not None and coordinate not in names:
                raise StateError(f"assemble: {key!r} is a speed; hold one of {', '.join(names)}")
            which = range(len(names)) if coordinate is None else [names.index(coordinate)]
            self._check_count(key, numbers, len(which))
            extra += [Extra(index, i, float(x)) for i, x in zip(which, numbers, strict=True)]
            return
        record = self.mechanism.joint(joint)
        if record.prescribed is not None and (coordinate is None or held[self._speed_entries(key)].all()):
            raise StateError(f"assemble: joint {joint!r} follows a prescribed motion; give the time t instead")
        names = record.joint.coordinate_names()
        start_q, start_u = self._starts[joint]
        if coordinate is None:
            self._check_count(key, numbers, record.joint.nq)
            q[start_q:start_q + record.joint.nq] = numbers
            held[start_u:start_u + record.joint.nu] = True
        else:
            self._check_count(key, numbers, 1)
            if record.joint.nq != record.joint.nu:
                raise StateError(f"assemble: joint {joint!r} is held as a whole, by all {record.joint.nq} coordinates")
            i = names.index(coordinate)
            q[start_q + i] = numbers[0]
            held[start_u + i] = True

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
        return numbers, joint, coordinate

    def _check_count(self, key: str, numbers: Floats, n: int, what: str = "assemble") -> None:
        if numbers.shape != (n,):
            raise StateError(f"{what}: {key!r} needs {n} value{'s' * (n != 1)}, got {numbers.size}")


def _one(what: str, name: str, array: Floats) -> Floats:
    if array.ndim != 1:
        raise StateError(f"{what}: one state at a time; {name} has shape {array.shape}")
    return array.copy()


def _wrapped(x: Floats) -> Floats:
    """Angles modulo whole turns. Lengths of several metres are rare enough not to matter here."""
    return np.asarray((x + np.pi) % (2.0 * np.pi) - np.pi)
