"""Closed positions near a guess: the nearest one, and those on the same branch.

The measure of nearness is the norm of the changes of all coordinates that may move, each by its size (1 rad, or the
machine's typical length) and times its weight, angles without whole turns. A guess that is open is closed by damped
Gauss-Newton from itself and, unless that was only a small step, from places around it; each position found then moves
along its own branch as long as it comes nearer, and the nearest is taken. What is held is walked from there to its
values (`walking.Walker`), so that the branch is kept wherever it exists. If it ends, the nearest closed position with
these values is taken, and said so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, half_turn
from bellcrank.loops.closer import Closer, Extra, Target
from bellcrank.loops.closing_ways import ClosingWays
from bellcrank.loops.loop_paths import joints_of_loops
from bellcrank.loops.near_closer import NearCloser
from bellcrank.loops.tolerances import CLOSED, DENSE, LONGEST, RANK, ROUNDING, SAME, SHORT, TINY
from bellcrank.loops.turning_errors import turned_towards
from bellcrank.loops.walking import DeadPointError, Walker
from bellcrank.loops.walking_together import WalksTogether

__all__ = ["End", "Held", "Nearest"]

Mask = npt.NDArray[np.bool_]
#: starts that are compared, and those of a guess from which nothing closes
_COMPARED, _TRIED, _TRIED_LARGE = 8, 24, 12
#: part of the way by which a walk leaves a dead point, and how far the machine may be from it then
_LEAVE, _BESIDE = 1e-3, 0.3
#: angles that shall go farther are not walked through every turn [rad]
_FAR = 20.0 * np.pi


@dataclass(frozen=True)
class Held:
    """What does not move freely: speeds (mask, prescribed ones included), coordinates of q with the values they shall
    have, and coordinates of joints that close loops; and where the guess has such joints, which are not held."""

    mask: Mask
    places: tuple[int, ...]
    values: Floats
    extra: tuple[Extra, ...]
    wanted: tuple[Extra, ...] = ()

    def put(self, q: Floats) -> Floats:
        """q with the coordinates held as they shall be."""
        q = q.copy()
        q[..., list(self.places)] = self.values
        return q

    def of_batch(self, lead: tuple[int, ...]) -> Held:
        """The same for all samples of these batch axes, along one axis."""
        def rows(every: tuple[Extra, ...]) -> tuple[Extra, ...]:
            return tuple(replace(e, value=np.broadcast_to(e.value, lead).reshape(-1)) for e in every)

        values = np.broadcast_to(self.values, (*lead, len(self.places))).reshape(prod(lead), len(self.places))
        return replace(self, values=values, extra=rows(self.extra), wanted=rows(self.wanted))

    def sample(self, index: int) -> Held:
        """The same for one of these samples."""
        def one(every: tuple[Extra, ...]) -> tuple[Extra, ...]:
            return tuple(replace(e, value=float(e.value[index])) for e in every)

        return replace(self, values=self.values[index], extra=one(self.extra), wanted=one(self.wanted))

    @property
    def any(self) -> bool:
        """Whether anything is held beyond prescribed joints."""
        return bool(self.places) or bool(self.extra)


@dataclass(frozen=True)
class End:
    """Where the branch of a guess ended: part of the way, the joint that is no longer determined, the position."""

    reached: float
    joint: str
    q: Floats


@dataclass(frozen=True)
class Nearest:
    """Closes loops near guesses. `turning` are the speeds of angles that whole turns do not change, `wanted` the
    coordinates of closing joints in the guess, which count as those of the tree do."""

    assembler: Closer
    weights: Floats
    t: float
    turning: Mask
    speed_names: Sequence[str]
    wanted: tuple[Extra, ...] = ()

    def _around(self, joint: str) -> frozenset[str]:
        """Names of the joints of all loops that depend on a joint; of all loops if none does."""
        loops = self.assembler.loops
        for rows, speeds in loops.clusters:
            own = {self.speed_names[v].rpartition(".")[0] for v in np.flatnonzero(speeds).tolist()}
            if joint in own:
                closures = {loops.closure_of_row[r] for r in np.flatnonzero(rows) if r < loops.m_closures}
                return frozenset([*own, *(loops.tree.closures[k].name for k in closures)])
        return self.looped

    @property
    def looped(self) -> frozenset[str]:
        """Names of the joints that loops bind."""
        return joints_of_loops(self.assembler.loops.tree)

    def wrapped(self, change: Floats) -> Floats:
        """Changes (..., nu) without whole turns of angles."""
        return np.where(self.turning, half_turn(change), change)

    def target(self, mask: Mask, extra: tuple[Extra, ...] = ()) -> Target:
        """What a closing is asked for."""
        return Target(mask, self.weights, extra)

    def distance(self, guess: Floats, q: Floats, mask: Mask) -> float:
        """The measure of nearness, over what may move."""
        change = self.wrapped(self.assembler.difference(guess, q))
        return self._norm(np.where(mask, 0.0, self.weights * change), self._gaps(q))

    def _gaps(self, q: Floats) -> Floats:
        """How far closing joints are from where the guess has them, each times its weight."""
        n = len(self.wanted)
        return self.assembler.residual(q, self.t, self.wanted)[-n:] * [e.weight for e in self.wanted] if n else \
            np.zeros(0)

    @staticmethod
    def _norm(change: Floats, gaps: Floats) -> float:
        return float(np.hypot(np.linalg.norm(change), np.linalg.norm(gaps)))

    # -- one position ---------------------------------------------------------------------------
    def free(self, guess: Floats, mask: Mask) -> Floats | None:
        """The nearest closed position to a guess, None if none was found."""
        start, near = self.assembler.normalize(guess), self.assembler.near
        if near is not None:
            found, good = near.nearest(start[None], mask, self.weights, self.t)
            if not good[0]:
                found, good = near.compared(start[None], mask, self.weights, self.t, self.turning)
            if good[0] and np.abs(self._gaps(found[0])).max(initial=0.0) < SAME:
                return np.asarray(found[0])
        return self.careful(start, mask)

    def careful(self, start: Floats, mask: Mask) -> Floats | None:
        """The same by damped steps with singular values, for guesses from which compiled steps have not closed."""
        first, size, left = self._straight(start, mask)
        known = first is not None and np.abs(self._gaps(first)).max(initial=0.0) < SAME
        if known and size < TINY and left < ROUNDING:
            return first
        if first is not None and size <= SHORT and not self.wanted:
            return self._tight(self.settled(first, start, mask, ()), mask, ())[0]
        best = self._best(start, [start, self.assembler.close(start, self.target(mask, self.wanted), self.t)[0]]
                          if self.wanted else [start], mask, ())
        return None if best is None else self._tight(best, mask, ())[0]

    def held(self, guess: Floats, starts: Sequence[Floats], held: Held) -> Floats | None:
        """The closed position nearest to a guess with everything held at its value, None if none was found."""
        puts = [self.assembler.normalize(held.put(s)) for s in starts]
        best = self._best(self.assembler.normalize(guess), puts, held.mask, held.extra)
        return None if best is None else held.put(self._tight(best, held.mask, held.extra)[0])

    def _straight(self, q: Floats, mask: Mask) -> tuple[Floats | None, float, float]:
        """Closed from q itself in a few steps, how far that was, and what is left; nothing moves if it is closed."""
        found, size = self.assembler.close(q, self.target(mask), self.t, iterations=12)
        if size > CLOSED or self.assembler.flipped(found, self.t):
            return None, np.inf, size
        return found, float(self.assembler.loops.step_length(self.assembler.difference(q, found))), size

    def _best(self, guess: Floats, starts: Sequence[Floats], mask: Mask, extra: tuple[Extra, ...]) -> Floats | None:
        """The nearest of the positions that close from several starts and from around them, cluster by cluster."""
        close, best = self.assembler, guess
        if len(close.loops.clusters) == 1:
            return self.best_of_cluster(guess, starts, mask, extra)
        for rows, speeds in close.loops.clusters:
            own = replace(self, assembler=close.of_cluster(rows), wanted=_those(close, self.wanted, rows))
            found = own.best_of_cluster(guess, starts, mask | ~speeds, _those(close, extra, rows))
            if found is None:
                return None
            best = close.integrate(best, np.where(speeds, close.difference(best, found), 0.0))
        held = close.integrate(best, np.where(mask, close.difference(best, starts[0]), 0.0))
        return close.normalize(held)

    def best_of_cluster(self, guess: Floats, starts: Sequence[Floats], mask: Mask, extra: tuple[Extra, ...]
                         ) -> Floats | None:
        """The same for loops that depend on each other."""
        found: list[tuple[float, Floats]] = []
        large = len(guess) > 300
        begins = self._begins(starts, mask, _TRIED_LARGE if large else _TRIED)
        parts = np.split(begins, range(1, len(begins)) if large else [_COMPARED])
        for k, some in enumerate(parts):
            tried, closed = self._tried(some, mask, extra)
            for q in tried[closed] if k == 0 else tried[closed][:1]:
                q = self._unwound(guess, q, mask)
                found.append((self.distance(guess, q, mask), q))
            if found:
                break
        if not found:
            return None
        found.sort(key=lambda pair: pair[0])
        nearest = [self.settled(q, guess, mask, extra) for _, q in found[:3]]
        far = [self.distance(guess, q, mask) for q in nearest]
        equal = [q for q, d in zip(nearest, far, strict=True) if d <= min(far) * (1.0 + 1e-6)]
        sizes = self.assembler.loops.tree.coordinate_sizes
        return max(equal, key=lambda q: ((q - guess) / sizes).round(3).tolist())  # of mirror images always the same

    def _begins(self, starts: Sequence[Floats], mask: Mask, count: int) -> Floats:
        """Starts (count, nq), and positions around them: small steps away first, then any."""
        close, which = self.assembler, np.arange(count)
        sizes = np.where(which < len(starts), 0.0, np.minimum(0.05 * 2.0**which, 2.5))
        shakes = np.random.default_rng(1).normal(size=(count, len(mask))) * close.loops.tree.speed_sizes
        return close.integrate(np.array(starts)[which % len(starts)], np.where(mask, 0.0, shakes * sizes[:, None]))

    def _tried(self, starts: Floats, mask: Mask, extra: tuple[Extra, ...]) -> tuple[Floats, Mask]:
        """Closed from starts (n, nq), or, where that fails or ends with axes that point the wrong way, from where their
        axes point the right way; and which are closed."""
        close, target = self.assembler, self.target(mask, extra)
        q, closed = close.closed(starts, target, self.t, iterations=60)
        turned = {i: turned_towards(close, starts[i], target, self.t) for i in np.flatnonzero(~closed).tolist()}
        some = [i for i, place in turned.items() if place is not None]
        if some:
            q[some], closed[some] = close.closed(np.array([turned[i] for i in some]), target, self.t, iterations=60)
        return q, closed

    def _unwound(self, guess: Floats, q: Floats, mask: Mask) -> Floats:
        """The same position with angles that may move within half a turn of the guess."""
        change = self.assembler.difference(guess, q)
        turns = np.where(self.turning & ~mask, np.round(change / (2.0 * np.pi)), 0.0)
        return self.assembler.integrate(q, -2.0 * np.pi * turns) if turns.any() else q

    def settled(self, q: Floats, guess: Floats, mask: Mask, extra: tuple[Extra, ...]) -> Floats:
        """The position on the branch of q that is nearest to the guess: down the distance, by tangential steps."""
        part, far = 1.0, np.inf
        for _ in range(60):
            change = np.where(mask, 0.0, -self.assembler.difference(q, guess))
            gaps = self._gaps(q)
            now = self._norm(self.weights * change, gaps)
            if now < 1e-9 or now > far * (1.0 - 1e-9):
                break
            step = self._descent(q, change, gaps, self.target(mask, extra))
            if not np.isfinite(step).all() or np.linalg.norm(self.weights * step) < 1e-4 * now:
                break
            step = step * min(1.0, 0.2 / max(float(self.assembler.loops.step_length(step)), 1e-300))
            moved = None
            while moved is None and part > 1e-3:
                moved = self._nearer(q, part * step, guess, now, mask, extra)
                part = part * 0.3 if moved is None else part
            if moved is None:
                break
            q, far, part = moved, now, min(1.0, 2.0 * part)
        return q

    def _descent(self, q: Floats, change: Floats, gaps: Floats, target: Target) -> Floats:
        """The step along the loops down the distance: all the way to the lowest point, or, where closing joints count,
        to that along the steepest descent."""
        if not self.wanted:
            return self.assembler.tangential(q, change, self.t, target)
        rows = np.stack([e.weight * self.assembler.coordinate_row(q, e, self.t) for e in self.wanted])
        pull = np.where(target.held, 0.0, gaps @ rows / self.weights**2)
        step = self.assembler.tangential(q, change + pull, self.t, target)
        own, across = (float(x @ x) for x in (self.weights * step, rows @ step))
        return step * (own / (own + across)) if own > 0.0 else step

    def _nearer(self, q: Floats, step: Floats, guess: Floats, now: float, mask: Mask, extra: tuple[Extra, ...]
                ) -> Floats | None:
        """Closed again after a step, if that came nearer to the guess."""
        close = self.assembler
        q, before = close.integrate(q, step), np.inf
        for _ in range(10):
            _, step, _ = close.newton(q, self.t, self.target(mask, extra))
            length = float(close.loops.step_length(step))
            if not np.isfinite(length) or length > 0.5 * before:
                break
            q, before = close.integrate(q, step), length
            if length < 1e-9:
                break
        far = self._norm(np.where(mask, 0.0, self.weights * close.difference(guess, q)), self._gaps(q))
        return q if before < 1e-6 and far < now else None

    def _tight(self, q: Floats, mask: Mask, extra: tuple[Extra, ...]) -> tuple[Floats, float]:
        """Closed to rounding, and what is left open. Where a weak direction, at a dead point that decimals lock, keeps
        a gap open, the way out leads along that direction."""
        close = self.assembler
        q, left = close.close(q, self.target(mask, extra), self.t, iterations=20)
        away = float(np.abs(close.loops.poses(q, self.t)[1]).max(initial=0.0)) / close.loops.tree.length
        rounding = ROUNDING * max(1.0, away)
        if left <= rounding:
            return q, left
        for along, weak in self._weak(q, mask, extra):
            for part in (1, -1, 3, -3, 10, -10, 30, -30, 100, -100):
                start = close.integrate(q, (part * left / weak) * along)
                other, rest = close.close(start, self.target(mask, extra), self.t, iterations=40)
                if rest < 0.1 * left:
                    q, left = other, rest
                    break
            if left <= rounding:
                break
        return q, left

    def _weak(self, q: Floats, mask: Mask, extra: tuple[Extra, ...]) -> list[tuple[Floats, float]]:
        """Directions of all speeds in which the loops hardly open, with how much they do; the weakest first."""
        close, free = self.assembler, np.flatnonzero(~mask)
        if close.loops.m * len(free) > DENSE:
            return []
        _, sizes, directions, finite = close.factors(q, self.t, self.target(mask, extra))
        if not finite:
            return []
        out = []
        for i in np.flatnonzero((sizes > RANK * sizes.max(initial=0.0)) & (sizes < 1e-3 * sizes.max(initial=0.0))):
            along = np.zeros(len(mask))
            along[free] = directions[i] / self.weights[free]
            out.append((along, float(sizes[i])))
        return out[::-1]

    # -- on the branch of a closed position -----------------------------------------------------
    def walked(self, q: Floats, guess: Floats, held: Held) -> Floats | End:
        """From a closed position to where everything held has its value, on its branch, and what that leaves free as
        near to the guess as it gets; or where the branch ended."""
        places, near = list(held.places), self.assembler.near
        way = (held.values - q[places]) / self.assembler.loops.tree.coordinate_sizes[places]
        if near is not None and not held.extra and np.abs(way).max(initial=0.0) <= LONGEST:  # not to singular positions
            there = NearWalker(self, q, held).whole(q)  # most often
            quick, good = self.walked_together(q[None], guess[None], held, held.values[None], near) if there is None \
                else self._settled_near(there[None], guess[None], held, held.values[None], near)
            if good[0] and not self.wanted:
                return np.asarray(quick[0])
            if good[0]:
                found = self.settled(quick[0], guess, held.mask, held.extra)
                return held.put(self._tight(found, held.mask, held.extra)[0])
        q = self._turned(q, held)
        walk = HeldWalker(self, q, held)
        try:
            found = held.put(walk.to(q, 0.0, 1.0))
        except DeadPointError as stop:
            return End(stop.reached, stop.joint, stop.q)
        if not walk.determined:
            found = self.settled(found, guess, held.mask, held.extra)
        found, left = self._tight(found, held.mask, held.extra)
        return held.put(found) if left < CLOSED else End(1.0, walk.loosest(found, 1.0), found)

    def walked_together(self, q: Floats, guess: Floats, held: Held, values: Floats, near: NearCloser | None
                        ) -> tuple[Floats, Mask]:
        """The same for closed positions and guesses (n, nq), of joints of the tree to values of their own, by compiled
        steps, and which of them got there; the others, and all of large machines, are to be walked one by one."""
        close, places = self.assembler, list(held.places)
        if near is None or held.extra:
            return q, np.zeros(len(q), dtype=bool)
        walks = WalksTogether(near, q, held.mask, self.weights, places, values, self.t, close.loops.tree.speed_sizes)
        found, good = walks.ends()
        found, closed = self._settled_near(found, guess, held, values, near)
        return found, good & closed & (close.loops.step_length(walks.ways) <= _FAR)

    def _settled_near(self, q: Floats, guess: Floats, held: Held, values: Floats, near: NearCloser
                      ) -> tuple[Floats, Mask]:
        """Closed positions (n, nq) with what is held at its values, and what that leaves free as near to the guesses as
        it gets; and which of them were found."""
        places, aim = list(held.places), self.assembler.normalize(guess)
        aim[:, places] = q[:, places] = values
        found, closed = near.nearest(aim, held.mask, self.weights, self.t, q, np.inf)
        found[:, places] = values
        return found, closed

    def _turned(self, q: Floats, held: Held) -> Floats:
        """q with angles that shall go many turns as many whole turns on."""
        way = np.where(held.mask, self.assembler.difference(q, held.put(q)), 0.0)
        turns = np.where(self.turning & (np.abs(way) > _FAR), np.round(way / (2.0 * np.pi)), 0.0)
        return self.assembler.integrate(q, 2.0 * np.pi * turns) if turns.any() else q

    def place(self, q: Floats, held: Held, end: End, names: Sequence[str]) -> tuple[str, float, float]:
        """The coordinate that a walk from q moved farthest of those held, of the loops in which it ended: its name,
        value at the end, and aim."""
        walk = HeldWalker(self, q, held)
        tree = self.assembler.loops.tree
        extra = [f"{tree.closures[e.closure].name}.{tree.closures[e.closure].kind.coordinate_names()[e.coordinate]}"
                 for e in held.extra]
        labels = [names[i] for i in held.places] + extra
        there = [*walk.put(q, end.reached)[list(held.places)], *(e.value for e in walk.extra(end.reached))]
        aims = [*held.values, *(e.value for e in held.extra)]
        before = [*q[list(held.places)], *(e.value for e in walk.extra(0.0))]
        sizes = [*tree.coordinate_sizes[list(held.places)], *(self.assembler.size(e) for e in held.extra)]
        way = np.abs(np.array(aims) - np.array(before)) / sizes
        looped = np.isin([label.rpartition(".")[0] for label in labels], list(self._around(end.joint)))
        which = int(np.argmax(np.where(looped, way, 0.0) if way[looped].any() else way))
        return labels[which], float(there[which]), float(aims[which])


def _those(close: Closer, extra: tuple[Extra, ...], rows: Mask) -> tuple[Extra, ...]:
    """Coordinates of joints that close loops of these constraints."""
    starts = close.loops.starts
    return tuple(e for e in extra if rows[int(starts[e.closure]):int(starts[e.closure + 1])].any())


class HeldWalker(Walker):
    """Walks what is held from a closed position (parameter 0) to its values (1): angles and lengths straight, joints
    with quaternions by one turn."""

    def __init__(self, near: Nearest, q: Floats, held: Held) -> None:
        close = near.assembler
        super().__init__(close.integrate, close.normalize, close.difference, resolution=1e-12,
                         lengths=close.loops.tree.speed_sizes)
        self.near, self.start, self.held = near, q, held
        self.determined = False  #: whether what is held and the loops determine everything, as last seen
        self._places = list(held.places)
        self._way = np.where(held.mask, close.difference(q, close.normalize(held.put(q))), 0.0)
        self._ways = ClosingWays(close, q, near.t, held.extra)

    def put(self, q: Floats, at: float) -> Floats:
        """q with the tree's coordinates on their way."""
        if at == 1.0:
            return self.held.put(q)
        q = q.copy()
        q[self._places] = self.integrate(self.start, at * self._way)[self._places]
        return q

    def extra(self, at: float) -> tuple[Extra, ...]:
        """Coordinates of closing joints on their way."""
        return tuple(replace(e, value=float(v)) for e, v in zip(self.held.extra, self._ways.at(at), strict=True))

    def newton(self, q: Floats, at: float) -> tuple[float, Floats]:
        """What is left open, and the plain Newton step of all speeds that would close it."""
        near = self.near
        size, step, determined = near.assembler.newton(q, near.t, near.target(self.held.mask, self.extra(at)))
        self.determined = bool(determined)
        return float(size), step

    def loosest(self, q: Floats, at: float) -> str:
        """The joint of a loop that moves most along the direction that is lost."""
        free, motion = self._kernel(q, at)
        if not len(free) or motion is None:
            return "none"
        joints, around = [self.near.speed_names[int(v)].rpartition(".")[0] for v in free], self.near.looped
        looped = np.flatnonzero([name in around for name in joints])
        return joints[int(looped[np.argmax(np.abs(motion[-1][looped]))])] if len(looped) else "none"

    def _kernel(self, q: Floats, at: float) -> tuple[npt.NDArray[np.int64], Floats | None]:
        """The free speeds, and their directions by how well they are determined, the worst last."""
        near, free = self.near, np.flatnonzero(~self.held.mask)
        if near.assembler.loops.m * len(free) > DENSE:
            return free, None
        plain = Target(self.held.mask, 1.0 / near.assembler.loops.tree.speed_sizes, self.extra(at))
        factors = near.assembler.factors(q, near.t, plain)
        return free, factors.vt if factors.finite and len(factors.vt) else None

    def leave(self, q: Floats, here: float, end: float) -> tuple[Floats, float] | None:
        """A walk that begins at a dead point leaves it to the nearer side: all branches that meet there are those of
        the guess."""
        there = here + _LEAVE * (end - here)
        free, directions = self._kernel(q, here)
        if directions is None:
            return None
        near, found = self.near, []
        loops, sizes = near.assembler.loops, near.assembler.loops.tree.speed_sizes
        slopes = [x / near.assembler.size(e) for x, e in zip(self._ways.slope, self.held.extra, strict=True)]
        reach = _LEAVE * float(np.abs([*(self._way / sizes), *slopes]).max(initial=0.0))
        for size in (0.0, reach, -reach, np.sqrt(reach), -np.sqrt(reach)):
            shake = np.zeros(len(self.held.mask))
            shake[free] = size * directions[-1] * sizes[free]
            place, left = near.assembler.close(self.put(self.integrate(q, shake), there),
                                               near.target(self.held.mask, self.extra(there)), near.t)
            if left < 1e-12 and loops.step_length(self.difference(q, place)) < _BESIDE:
                found.append((near.distance(q, place, self.held.mask), place))
        found.sort(key=lambda pair: pair[0])
        return (found[0][1], there) if found else None


class NearWalker(HeldWalker):
    """The same by compiled steps, all the way at once."""

    def newton(self, q: Floats, at: float) -> tuple[float, Floats]:
        near = self.near.assembler.near
        assert near is not None
        size, step = near.newton(q[None], self.held.mask, self.near.weights, self.near.t)
        return float(size[0]), step[0]

    def whole(self, q: Floats) -> Floats | None:
        """The position at the end, None if it takes more than one step."""
        return self._step(q, 0.0, 1.0)
