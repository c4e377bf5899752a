"""Drawings have tolerances: redundant constraints that contradict each other a little, as rounded numbers make them.

Where constraints depend on each other within the tolerance of the drawing, those that a plan leaves over are dropped.
The mechanism is then that of the constraints kept, which close to rounding, in every position and by every method. What
the dropped ones are off is the error of the drawing. Constraints that agree to rounding are not dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.closer import Closer, Target, project
from bellcrank.loops.constraint_kinematics import LoopKinematics
from bellcrank.loops.plan import NOTHING, pivots_above
from bellcrank.loops.tolerances import AGREE, CLOSED, MOVED

__all__ = ["Drawing", "check_drawing", "drawing_text", "off"]

#: how far samples of the motion are from each other [rad, m]: the first that will do
_STEPS = 0.3, 0.1, 0.03
#: random motions along which dropped constraints must stay within the tolerance: one of them may hardly disturb them
_DIRECTIONS = 1, 2, 3
#: pivots below these multiples of the tolerance may be those of redundant constraints
_PIVOTS = 10.0, 1.0


@dataclass(frozen=True)
class Drawing:
    """The constraints in use (a mask), and by how much the others contradict them: shares of the machine's length, or
    radians."""

    used: npt.NDArray[np.bool_]
    error: float


def check_drawing(close: Closer, q: Floats, t: float, held: npt.NDArray[np.bool_], usual: Floats, tolerance: float
                  ) -> Drawing | None:
    """Which constraints to drop, near a position that closes to within the tolerance; None if there are none.

    `close` knows all constraints. Positions some way off are closed by the constraints kept alone; those dropped must
    stay within the tolerance there. Constraints that are redundant to rounding at a general position that closes to
    rounding agree everywhere.
    """
    target = Target(held, 1.0 / usual)
    general = _general(close, q, t, target, usual, tolerance)
    if general is not q and off(close, general, t) <= AGREE and \
            pivots_above(close.loops, general, t, AGREE).smallest > max(_PIVOTS) * tolerance:
        return None
    strict = pivots_above(close.loops, general, t, NOTHING)
    for part in _PIVOTS:
        redundant = list(pivots_above(close.loops, general, t, part * tolerance).redundant)
        if not redundant:
            break
        used = np.ones(close.loops.m, dtype=bool)
        used[redundant] = False
        if set(redundant) > set(strict.redundant):
            _keep_weak(close, used, q, t, target, usual)
        error = _disagreement(close, used, general, t, target, usual, tolerance)
        if error <= tolerance:
            return Drawing(used, error) if error > AGREE else None
    return None


def _keep_weak(close: Closer, used: npt.NDArray[np.bool_], q: Floats, t: float, target: Target, usual: Floats) -> None:
    """Use weak constraints, such as those of short links, after all. Contradictions lock what would move without them;
    clusters of loops that close to rounding some way off, where nothing is locked, have none."""
    first = used.copy()
    loose = close.loops.restricted(lambda: first)
    exact = Closer(close.loops, close.integrate, close.normalize, close.difference)
    for rows, speeds in close.loops.clusters:
        if used[rows].all():
            continue
        own, mine = exact.of_cluster(rows), Target(target.held | ~speeds, target.weights)
        there = _general(own, q, t, mine, usual, CLOSED)
        if off(own, there, t) > CLOSED:
            continue
        with_all, without = (np.abs(_wish(loops, there, t, mine, usual, CLOSED, 0)) for loops in (own.loops, loose))
        nothing = MOVED * without.max(initial=0.0)
        if not ((with_all <= nothing) & (without > nothing)).any():
            used[rows] = True
            used[list(pivots_above(own.loops, there, t, NOTHING).redundant)] = False


def _general(close: Closer, q: Floats, t: float, target: Target, usual: Floats, tolerance: float) -> Floats:
    """A position some way off that closes to within the tolerance."""
    for moved in _ways(close, q, t, target, usual, tolerance, 0):
        found, left = close.close(moved, target, t)
        if left < CLOSED or off(close, found, t) <= tolerance:
            return found
    return q


def _ways(close: Closer, q: Floats, t: float, target: Target, usual: Floats, rank: float, seed: int) -> list[Floats]:
    """Positions some way off along the loops, the farthest first; none if nothing can move."""
    wish = _wish(close.loops, q, t, target, usual, rank, seed)
    largest = float(np.abs(wish).max(initial=0.0))
    return [close.integrate(q, wish * usual * (step / largest)) for step in _STEPS] if largest > 1e-9 else []


def _wish(loops: LoopKinematics, q: Floats, t: float, target: Target, usual: Floats, rank: float, seed: int) -> Floats:
    """A random motion that the loops allow, by ordinary changes of all speeds."""
    nu = loops.tree.nu
    wish = np.where(target.held, 0.0, np.random.default_rng(seed).normal(size=nu) * usual)
    wish = project(loops, q, wish, target, t, rank)[0]
    if loops.tree.rheonomic:  # motion caused by laws of time is not a freedom
        wish = wish - project(loops, q, np.zeros(nu), target, t, rank)[0]
    return np.asarray(wish / usual)


def _disagreement(close: Closer, used: npt.NDArray[np.bool_], q: Floats, t: float, target: Target, usual: Floats,
                  tolerance: float) -> float:
    """What is left open where the constraints in use close: near q, and as far off as they do."""
    some = Closer(close.loops.restricted(lambda: used), close.integrate, close.normalize, close.difference)
    found, left = some.close(q, target, t)
    if left >= CLOSED:
        return np.inf
    return max(off(close, found, t), *(_farther(close, some, found, t, target, usual, tolerance, seed)
                                      for seed in _DIRECTIONS))


def _farther(close: Closer, some: Closer, q: Floats, t: float, target: Target, usual: Floats, tolerance: float,
             seed: int) -> float:
    """What is left open as far off, in one direction, as the constraints in use close."""
    there = 0.0
    for moved in _ways(some, q, t, target, usual, tolerance, seed):
        other, left = some.close(moved, target, t)
        if left < CLOSED:
            return off(close, other, t)
        there = np.inf
    return there


def drawing_text(loops: LoopKinematics, drawing: Drawing) -> str:
    """What was dropped, and by how much it contradicts what was kept."""
    names = [loops.row_names[r] for r in np.flatnonzero(~drawing.used)]
    shown = ", ".join(names[:8]) + (" ..." if len(names) > 8 else "")
    return (f"the redundant constraints {shown} contradict the others by {drawing.error:.2g} (of the machine's length, "
            "or rad) and are dropped")


def off(close: Closer, q: Floats, t: float) -> float:
    """The largest error of a constraint, as a share of the machine's length, or in radians."""
    return float(np.abs(close.residual(q, t)).max(initial=0.0))
