"""Putting a machine together: states in which its loops are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.errors import AssemblyError, StateError
from bellcrank.system.arrays import Floats, flat
from bellcrank.system.assembly import Extra, State, project
from bellcrank.system.loop_errors import LoopErrors

__all__ = ["CLOSED", "Assembled"]

Values = Mapping[str, float | Sequence[float]] | npt.ArrayLike | None

#: closures are tight when no residual is larger
CLOSED = 1e-9


class Assembled(LoopErrors):
    """The methods of a `System` that find closed states."""

    _plan_state: dict[str, Any]

    def assemble(self, q: Values = None, u: Values = None, *, guess: npt.ArrayLike | None = None,
                 weights: Mapping[str, float] | None = None, t: float = 0.0) -> State:
        """A state in which all loops are closed, at position and velocity level.

        `q` and `u` as mappings {joint or "joint.coordinate": value} are **held**; everything else moves as little as
        it can from `guess` (all joints at zero if not given), in the measure of `weights` {joint: weight}. As arrays,
        `q` is the guess and `u` the speeds to be made consistent. Joints that close loops may be held too.

        >>> import bellcrank as bc
        >>> linkage = bc.compile(bc.load("four_bar"))
        >>> state = linkage.assemble(q={"A": 0.5}, u={"A": 1.0})
        >>> bool(abs(linkage.loop_error(state.q)).max() < 1e-12)
        True
        """
        start = self.neutral() if guess is None else _one("guess", flat("guess", guess, self.nq, "the coordinates"))
        held = self._prescribed_mask()
        scale = self._weights(weights)
        if np.ndim(t):
            raise StateError("assemble: one state at a time; t must be a number")
        extra: list[Extra] = []
        if isinstance(q, Mapping):
            for key, value in q.items():
                self._hold(key, value, start, held, extra)
        elif q is not None:
            start = _one("q", flat("q", q, self.nq, "the coordinates"))
        if not np.isfinite(start).all():
            raise StateError("assemble: the guess must be finite")
        position = self._closed(start, held, scale, t, tuple(extra))
        self._plan_state.setdefault("closed", (position, t))
        return State(position, self._consistent(position, u, scale, t), float(t))

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

    def branches(self, q: Values = None, *, tries: int = 60, guess: npt.ArrayLike | None = None, t: float = 0.0,
                 seed: int = 0) -> list[State]:
        """Different closed positions found from random starts with the coordinates in `q` held (as an array, `q` is
        the guess), nearest to the guess first. Only meaningful if what is held leaves no freedom: then it lists the
        assembly branches."""
        start = self.neutral() if guess is None else flat("guess", guess, self.nq, "the coordinates").copy()
        held = self._prescribed_mask()
        extra: list[Extra] = []
        if isinstance(q, Mapping):
            for key, value in q.items():
                self._hold(key, value, start, held, extra)
        elif q is not None:
            start = _one("q", flat("q", q, self.nq, "the coordinates"))
        rng = np.random.default_rng(seed)
        found: list[Floats] = []
        for attempt in range(tries):
            shake = np.where(held, 0.0, rng.normal(size=self.nu) * (0.0 if attempt == 0 else 1.5))
            position, size = self._assembler.close(self.integrate(start, shake), held, np.ones(self.nu), t,
                                                   extra=tuple(extra))
            if size < CLOSED and not self._assembler.flipped(position, t) \
                    and not any(self._same(position, other) for other in found):
                found.append(position)
        found.sort(key=lambda x: float(np.linalg.norm(_wrapped(self.difference(start, x)))))
        return [State(x, np.zeros(self.nu), float(t)) for x in found]

    def _same(self, a: Floats, b: Floats) -> bool:
        return bool(np.abs(_wrapped(self.difference(a, b))).max(initial=0.0) < 1e-6)

    def _consistent(self, q: Floats, u: Values, scale: Floats, t: float) -> Floats:
        held = self._prescribed_mask()
        wanted = np.zeros(self.nu)
        if isinstance(u, Mapping):
            for key, value in u.items():
                entries = self._speed_entries(key)
                try:
                    wanted[entries] = np.asarray(value, dtype=float)
                except (TypeError, ValueError):
                    raise StateError(f"assemble: {value!r} for the speeds of {key!r} is not {len(entries)} numbers"
                                     ) from None
                held[entries] = True
        elif u is not None:
            wanted = _one("u", flat("u", u, self.nu, "one for every speed"))
        if not np.isfinite(wanted).all():
            raise StateError("assemble: speeds must be finite")
        if not self.tree.looped:
            return wanted
        speeds, left = project(self._loops, q, wanted, held, scale, t)
        size = 1.0 + float(np.abs(wanted).max(initial=0.0))
        if left > 1e-8 * size:
            rate = np.abs(self.loop_rate_error(q, speeds, t=t))
            worst = int(np.argmax(rate))
            raise AssemblyError(f"assemble {self.tree.name!r}: the speeds held contradict each other; the condition "
                                f"{self._loops.row_names[worst]} changes at {rate[worst]:.3g}. Hold fewer of them")
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
        try:
            numbers = np.atleast_1d(np.asarray(value, dtype=float))
        except (TypeError, ValueError):
            raise StateError(f"assemble: {value!r} for {key!r} is not a number") from None
        if not np.isfinite(numbers).all():
            raise StateError(f"assemble: {value!r} for {key!r} is not finite")
        joint, coordinate = self._split(key)
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

    def _check_count(self, key: str, numbers: Floats, n: int) -> None:
        if numbers.shape != (n,):
            raise StateError(f"assemble: {key!r} needs {n} value{'s' * (n != 1)}, got {numbers.size}")


def _one(name: str, array: Floats) -> Floats:
    if array.ndim != 1:
        raise StateError(f"assemble: one state at a time; {name} has shape {array.shape}")
    return array.copy()


def _wrapped(x: Floats) -> Floats:
    """Angles modulo whole turns. Lengths of several metres are rare enough not to matter here."""
    return np.asarray((x + np.pi) % (2.0 * np.pi) - np.pi)
