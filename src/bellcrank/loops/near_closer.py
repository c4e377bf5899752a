"""Closing from nearby by compiled steps: what `assemble` and `project` try first.

Each round is one call of the kernel `nearest_step` (`formulations.common.closing_steps`, equation 1) for all positions
at once: Newton's smallest step n, and the step s along the loops to what is nearest to the guess, both as the linear
picture at the present position has them. s is stretched by what the last round says of the curvature (the step length
of Barzilai and Borwein, kept positive, so that only minima of the distance attract). When it no longer moves,
Newton steps alone remove what is left open. A position is given up, and closed by the careful ways of `nearest`, if it
moves farther than `SHORT` or its loops stay open: what is marked as good is closed, and the nearest to `NEAREST`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.tolerances import CLOSED, EXACT, NEAREST, ROUNDING, SHORT, TINY, TURNED

__all__ = ["NearCloser"]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]
#: evaluates a function of the machine at states (n, ...): name, inputs, time; not a number where there is no result
Attempt = Callable[[str, Mapping[str, Floats], npt.ArrayLike], Floats]

#: rounds after which positions are looked at, and after the last of which they are given up
_ROUNDS = 12, 12, 24
#: least and largest factor of a step along the loops
_STRETCH = 0.05, 5.0
#: Newton steps from starts around a guess
_NEWTON = 40
#: the longest of these [rad, and parts of the machine's length]: short ones end nearer to where they begin
_STEP = 0.3
#: rounds of removing what is left open in speeds
_AGAIN = 3
#: the longest step along the loops, likewise
_SLIDE = 0.2
#: starts around a guess that are compared, and the nearest of them that are looked at closely
_COMPARED, _CLOSELY = 16, 4
#: how much farther away a position is that is no longer waited for
_BEHIND = 1.1


class NearCloser:
    """Closes positions near closed ones; all of (n, nq), independently of each other, by values of the parameters that
    are common to all or have a row (n, parameters) for each."""

    def __init__(self, attempt: Attempt, integrate: Callable[[Any, Any], Floats], normalize: Callable[[Any], Floats],
                 difference: Callable[[Any, Any], Floats], bound: Mask, sizes: Floats, places: Floats,
                 parameters: Floats | None = None) -> None:
        self._attempt, self.integrate, self.normalize, self.difference = attempt, integrate, normalize, difference
        self.parameters = parameters  #: of every position; None: those of the machine
        self.sizes, self.places = sizes, places  #: ordinary changes of speeds' coordinates, and of coordinates
        self.bound, self.nu = bound, len(bound)  #: speeds that occur in conditions: no other moves

    def only(self, some: Ints | Mask) -> NearCloser:
        """The same for some of the positions, each with its own values of the parameters."""
        if self.parameters is None:
            return self
        other = copy.copy(self)
        other.parameters = self.parameters[some]
        return other

    def attempt(self, name: str, given: Mapping[str, Floats], t: npt.ArrayLike) -> Floats:
        """A function at positions (n, ...); not a number where it has no result."""
        return self._attempt(name, given if self.parameters is None else {**given, "parameters": self.parameters}, t)

    def nearest(self, guess: Floats, held: Mask, weights: Floats, t: npt.ArrayLike, start: Floats | None = None,
                reach: float = SHORT) -> tuple[Floats, Mask]:
        """The closed positions nearest to guesses (n, nq), from these or from `start`, and which of them are so.
        No joint gets farther from the guess than `reach`."""
        guess = self.normalize(guess)
        way = np.zeros((len(guess), self.nu)) if start is None else self.difference(guess, start)
        search = _Search(self, guess, way, held, weights, reach)
        q, good = guess.copy(), np.zeros(len(guess), dtype=bool)
        some = np.arange(len(guess))
        times = np.broadcast_to(np.asarray(t, dtype=float), q.shape[:-1])
        for rounds in _ROUNDS:  # those that take long go on by themselves
            search.run(rounds, times[some])
            q[some], good[some] = search.q, search.good
            if not search.going.any():
                break
            some, search = some[search.going], search.only(search.going)
        return self.normalize(q), good

    def compared(self, guess: Floats, held: Mask, weights: Floats, t: npt.ArrayLike, turning: Mask
                 ) -> tuple[Floats, Mask]:
        """The nearest of the closed positions that Newton's steps find from guesses (n, nq) and from around them, and
        which of them can be relied on. `turning` are angles that whole turns do not change."""
        guess = self.normalize(guess)
        n, nu = len(guess), self.nu
        every = self.only(np.repeat(np.arange(n), _COMPARED))
        rng = np.random.default_rng(1)
        sizes = [0.0, *(min(0.05 * 2.0 ** k, 2.5) for k in range(1, _COMPARED))]
        shakes = np.stack([size * rng.normal(size=nu) for size in sizes]) * self.sizes
        shakes = np.where(held | ~self.bound, 0.0, shakes)
        q, closed = every.closed(self.integrate(np.repeat(guess, _COMPARED, axis=0), np.tile(shakes, (n, 1))), held,
                                 weights, t)
        change = self.difference(np.repeat(guess, _COMPARED, axis=0), q)
        turns = np.where(turning & ~held & closed[:, None], np.round(change / (2.0 * np.pi)), 0.0)
        change, q = change - 2.0 * np.pi * turns, self.integrate(q, -2.0 * np.pi * turns)
        far = np.where(closed, np.linalg.norm(np.where(held, 0.0, weights * change), axis=-1), np.inf)
        first = np.argsort(far.reshape(n, _COMPARED), axis=-1, kind="stable")[:, :_CLOSELY]
        some = (first + _COMPARED * np.arange(n)[:, None]).ravel()
        found, good = every.only(some).nearest(np.repeat(guess, _CLOSELY, axis=0), held, weights, t, q[some], np.inf)
        usable, good = closed[some].reshape(n, _CLOSELY), good.reshape(n, _CLOSELY)
        change = self.difference(np.repeat(guess, _CLOSELY, axis=0), found)
        now = np.linalg.norm(np.where(held, 0.0, weights * change), axis=-1).reshape(n, _CLOSELY)
        far = np.where(usable & good, now, np.inf)
        # those that still come nearer after so many rounds do so slowly: they do not matter if they are behind
        behind = now > _BEHIND * far.min(axis=-1, keepdims=True)
        sure = np.isfinite(far).any(axis=-1) & (good | ~usable | behind).all(axis=-1)
        return self._preferred(guess, found.reshape(n, _CLOSELY, -1), far), sure

    def _preferred(self, guess: Floats, found: Floats, far: Floats) -> Floats:
        """Of positions (n, k, nq) the nearest; of mirror images, which are equally near, always the same one."""
        best = np.empty_like(guess)
        for i, least in enumerate(far.min(axis=-1)):
            equal = found[i][far[i] <= least * (1.0 + 1e-6)] if np.isfinite(least) else found[i][:1]
            best[i] = equal[0] if len(equal) == 1 else max(equal, key=lambda q: self._rough(guess[i], q))
        return best

    def _rough(self, guess: Floats, q: Floats) -> list[float]:
        """How coordinates differ, by their sizes, as far as mirror images are alike."""
        return list(((q - guess) / self.places).round(3).tolist())

    def closed(self, q: Floats, held: Mask, weights: Floats, t: npt.ArrayLike) -> tuple[Floats, Mask]:
        """Positions (n, nq) closed by Newton's steps, and which of them are closed, axes included."""
        scale, still = np.where(held, 0.0, 1.0 / weights), np.zeros((1, self.nu))
        closed, going = np.zeros(len(q), dtype=bool), np.arange(len(q))
        for _ in range(_NEWTON):
            out = self.only(going).attempt("nearest_step", {"q": q[going], "dq": still, "scale": scale}, t)
            left, step, _, _, turned = out[:, 2 * self.nu:].T
            done = (left <= CLOSED) & (step <= CLOSED)
            closed[going] = done & (turned < TURNED)
            more = ~done & np.isfinite(step)
            going, move = going[more], out[more, :self.nu]
            if not len(going):
                break
            part = np.minimum(1.0, _STEP / np.maximum(step[more], 1e-300))
            q[going] = self.integrate(q[going], move * part[:, None])
        return q, closed

    def newton(self, q: Floats, held: Mask, weights: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
        """What is left open in positions (n, nq), and Newton's smallest steps that would close them."""
        scale = np.where(held, 0.0, 1.0 / weights)
        out = self.attempt("nearest_step", {"q": q, "dq": np.zeros((1, self.nu)), "scale": scale}, t)
        return out[:, 2 * self.nu], out[:, :self.nu]

    def consistent(self, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats, Mask]:
        """Closed positions (n, nq) and speeds (n, nu) next to states that are nearly so, and which of them are."""
        nq, going = q.shape[-1], np.ones(len(q), dtype=bool)
        for _ in range(_AGAIN):
            out = self.attempt("projected", {"q": q, "u": u}, t)
            near = going & (out[:, -1] <= 1.0)
            good = near & (out[:, -2] <= 1.0)
            q, u, going = out[:, :nq], out[:, nq:-2], near
            if (good == near).all():
                break
        return np.ascontiguousarray(q), np.ascontiguousarray(u), good  # as compiled code takes them at once


class _Search:
    """Rounds of `NearCloser.nearest`: ways from guesses, as speeds, and what has become of them."""

    def __init__(self, closer: NearCloser, guess: Floats, way: Floats, held: Mask, weights: Floats, reach: float
                 ) -> None:
        self.closer, self.held, self.weights, self.reach, n = closer, held, weights, reach, len(guess)
        self.guess, self.fixed, self.pull = guess, np.where(held, way, 0.0), np.where(held, 0.0, way)
        self.scale = np.where(held, 0.0, 1.0 / weights)
        self.q = closer.integrate(guess, way) if way.any() else guess
        self.good, self.going, self.polish = np.zeros(n, dtype=bool), np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        self.before = np.full(n, np.inf)  #: what was open a round ago
        self.last: tuple[Floats, Floats] | None = None  #: the last slides, and the steps they were parts of

    def only(self, some: Mask) -> _Search:
        """The search for some of the positions alone."""
        other = _Search(self.closer.only(some), self.guess[some], (self.fixed + self.pull)[some], self.held,
                        self.weights, self.reach)
        other.polish, other.before = self.polish[some], self.before[some]
        other.last = None if self.last is None else (self.last[0][some], self.last[1][some])
        return other

    def run(self, rounds: int, t: Floats) -> None:
        """Some rounds, or until nothing is left to do."""
        nu = self.closer.nu
        for _ in range(rounds):
            out = self.closer.attempt("nearest_step", {"q": self.q, "dq": self.pull, "scale": self.scale}, t)
            newton, along = out[:, :nu], out[:, nu:2 * nu]
            left, step, slide, moved, turned = out[:, 2 * nu:].T
            self.polish |= (slide <= NEAREST * moved) & (step <= TINY)
            closed = self.going & self.polish & (left <= ROUNDING) & ((left <= EXACT) | (left >= 0.25 * self.before))
            self.before = left
            self.good |= closed & (turned < TURNED)
            self.going &= ~closed & (moved + step <= self.reach)
            if not self.going.any():
                break
            if not self.polish.all():
                part = np.minimum(_stretch(self.last, along, self.weights), _SLIDE / np.maximum(slide, 1e-300))
                slid = np.where(self.polish, 0.0, part)[:, None] * along
                self.last, newton = (slid, along), newton + slid
            self.pull = self.pull + (newton if self.going.all() else np.where(self.going[:, None], newton, 0.0))
            self.q = self.closer.integrate(self.guess, self.fixed + self.pull)


def _stretch(last: tuple[Floats, Floats] | None, along: Floats, weights: Floats) -> Floats | float:
    """How much of the steps along the loops to take: by what the part `last[0]` of the last ones made of them."""
    if last is None:
        return 1.0
    slid = last[0]
    own = weights * weights * slid
    straight, curved = (own * slid).sum(-1), (own * (last[1] - along)).sum(-1)
    known = straight > 0.0
    found = straight / np.where(known & (curved > 0.0), curved, 1e300)
    return np.where(known, np.minimum(np.maximum(found, _STRETCH[0]), _STRETCH[1]), 1.0)
