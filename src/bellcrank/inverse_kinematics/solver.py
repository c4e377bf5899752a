"""Positions that meet targets, many at once: a damped Gauss-Newton method on the motions that the loops allow.

With B a basis (nu, k) of these motions, orthogonal in ordinary changes of all joints' coordinates (whatever the cut), e
the errors of one priority and A = J B their rates, steps z of du = B z are, priority by priority,

    z += P y,   y = (A P)^T ((A P)(A P)^T + mu |e|^2)^-1 (-e - A z),   P <- P - what A determines           (1)

(Y. Nakamura and H. Hanafusa, "Inverse kinematic solutions with singularity robustness", 1986; T. Sugihara,
"Solvability-unconcerned inverse kinematics by the Levenberg-Marquardt method", 2011, for the damping by the error,
which keeps the rate of convergence quadratic where targets can be met, and steps short where not). Coordinates that a
step would take out of their ranges come before all priorities, at the end of the range. Loops are closed after every
step by Newton's method. Cost of a step: O(n) for each target, O(k^2 rows).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.inverse_kinematics.places import Places
from bellcrank.inverse_kinematics.targets import KinematicTarget
from bellcrank.loops.closer import Target as Held
from bellcrank.loops.null_space import null_space
from bellcrank.loops.tolerances import CLOSED
from bellcrank.system.drive_programs import allowed_motions
from bellcrank.system.loop_errors import loop_jacobian, loop_rows
from bellcrank.system.random_states import CoordinateRanges

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["Found", "Problem"]

Mask = npt.NDArray[np.bool_]
Ints = npt.NDArray[np.int64]

#: most of any coordinate in a step [rad, and parts of the machine's length]
_STRIDE = 0.6
#: share of |e|^2 by which steps are damped at first, at least, and when a state is given up
_DAMPING, _LEAST, _STUCK = 0.05, 1e-9, 1e9
#: factors of the damping after steps that do much, and those that do little
_QUICKLY, _SLOWLY = 0.2, 0.6
#: directions that are determined worse than this part of the best are left to lower priorities
_RANK = 1e-7
#: how much less a priority counts than that before it, where steps are judged
_LESS = 1e-3
#: steps that remove the rest of what comes first, where other targets are not met, and their greatest length
_POLISH, _SMALL = 4, 1e-2
#: coordinates so near to an end of their range are at it [rad or m]
_NEAR = 1e-6
#: steps shorter than this end a search, and those of the posture alone
_STILL, _SETTLED = 1e-11, 1e-7
#: how often what closing has moved along the basis is taken back
_SLIPS = 12
#: how often coordinates are added to those that are kept at the end of their range, in a step
_PASSES = 6


@dataclass(frozen=True)
class Problem:
    """Targets of a machine for a batch of positions with the axes `lead`."""

    plans: LoopPlans
    targets: tuple[KinematicTarget, ...]
    start: Floats  #: closed positions (states, nq)
    posture: Floats | None  #: a position (nq,), to be near to as far as targets leave that free
    ranges: CoordinateRanges
    lead: tuple[int, ...]
    t: float

    def solve(self, q: Floats, some: Ints, tolerance: float, iterations: int) -> Found:
        """From closed positions (n, nq), which are rows `some` of the batch."""
        search = _PoseSearch(self, q, some, tolerance)
        for _ in range(iterations):
            if not search.going.any():
                break
            search.step()
        return search.found()

    def errors(self, q: Floats, some: Ints) -> list[Floats]:
        """Errors of every target (n, rows) in positions that are rows `some` of the batch, weights left out."""
        at = Places(self.plans, q, self.t, self.lead, some)
        return [target.rows(at)[0] for target in self.targets]

    @property
    def levels(self) -> list[list[KinematicTarget]]:
        """Targets by priority, the first first."""
        return [[x for x in self.targets if x.priority == p] for p in sorted({x.priority for x in self.targets})]

    def closed(self, q: Floats) -> tuple[Floats, Mask]:
        """Positions with their loops closed, and which of them are."""
        plans = self.plans
        if not plans.tree.looped:
            return plans.configuration.normalize(q), np.ones(len(q), dtype=bool)
        held = Held(plans.model.bound_mask(), 1.0 / plans.configuration.usual)
        near = plans.closer.near
        if near is not None:
            found, good = near.closed(q.copy(), held.held, held.weights, np.full(len(q), self.t))
        else:
            found, left = plans.closer.close(q, held, self.t)
            good = np.asarray(left) < CLOSED
        found = plans.configuration.normalize(found)
        return np.where(good[:, None], plans.loops.measured(np.where(good[:, None], found, q), self.t), q), good

    def basis(self, q: Floats) -> Floats:
        """B (n, nu, k): motions of all joints that the loops allow; columns of states with fewer are zero."""
        tree, sizes = self.plans.tree, self.plans.tree.speed_sizes
        if not tree.looped:
            free = np.flatnonzero(~self.plans.model.prescribed_mask())
            return np.broadcast_to((np.eye(tree.nu) * sizes)[:, free], (len(q), tree.nu, len(free)))
        quick = allowed_motions(self.plans, q, np.zeros((1, tree.nu)), self.t)
        motions = self._careful(q) if quick is None else quick[0]
        return np.asarray(np.linalg.qr(motions / sizes[:, None])[0] * sizes[:, None])

    def _careful(self, q: Floats) -> Floats:
        """The same by singular values, where no plan serves all positions."""
        tree, mask = self.plans.tree, self.plans.model.bound_mask()
        free = np.flatnonzero(~mask)
        jacobian = loop_jacobian(self.plans, q, t=self.t)[..., free]
        _, basis, kept = null_space(jacobian, self.plans.loops.row_sizes, tree.speed_sizes[free])
        most = int((~kept).sum(axis=-1).max(initial=0))
        out = np.zeros((len(q), tree.nu, most))
        order = np.argsort(kept, axis=-1, kind="stable")[:, :most]  # what is allowed first
        out[:, free] = np.take_along_axis(basis, order[:, None, :], axis=-1)
        return out + loop_rows(self.plans, q, self.t) @ out if tree.loop_joints else out


class Found(NamedTuple):
    """Where searches ended, (n, ...)."""

    q: Floats
    solved: Mask
    errors: list[Floats]  #: of every target (n, rows), weights left out
    iterations: Ints


class _Level(NamedTuple):
    """Errors and rates of one priority, with weights."""

    error: Floats
    rates: Floats


class _PoseSearch:
    """Positions on their way."""

    def __init__(self, problem: Problem, q: Floats, some: Ints, tolerance: float) -> None:
        self.problem, self.q, self.some, self.tolerance = problem, q.copy(), some, tolerance
        n = len(q)
        self.going, self.solved = np.ones(n, dtype=bool), np.zeros(n, dtype=bool)
        self.damping, self.count = np.full(n, _DAMPING), np.zeros(n, dtype=np.int64)
        self.levels = self.evaluated(self.q, np.arange(n))
        #: whether targets may leave motions free, whose rest is then a matter of the way
        self.loose = problem.plans.tree.looped and (problem.posture is not None or self._leave_free())
        self.check(np.arange(n), np.full(n, np.inf))

    def _leave_free(self) -> bool:
        """Whether the rates of all targets determine less than all motions, in the first position."""
        basis = self.problem.basis(self.q[:1])
        rates = np.concatenate([x.rates[:1] @ basis for x in self.levels], axis=-2)
        return bool((np.linalg.matrix_rank(rates) < basis.shape[-1]).any())

    # -- errors -----------------------------------------------------------------------------------
    def evaluated(self, q: Floats, rows: Ints) -> list[_Level]:
        """Errors and rates in positions, level by level."""
        at = Places(self.problem.plans, q, self.problem.t, self.problem.lead, self.some[rows])
        out = []
        for level in self.problem.levels:
            found = [(target.weight, *target.rows(at)) for target in level]
            out.append(_Level(np.concatenate([w * e for w, e, _ in found], axis=-1),
                              np.concatenate([w * j for w, _, j in found], axis=-2)))
        return out

    def merit(self, q: Floats, levels: Sequence[_Level]) -> Floats:
        """One number that steps must not raise: sizes of errors, not their squares, so that what comes first is met in
        full whatever the others ask for; those of lower priority count less."""
        total = np.linalg.norm(self.beyond(q), axis=-1) / _LESS
        return np.asarray(total + sum(_LESS ** i * np.linalg.norm(level.error, axis=-1)
                                      for i, level in enumerate(levels)))

    def beyond(self, q: Floats) -> Floats:
        """By how much coordinates are out of their ranges, in ordinary changes."""
        ranges = self.problem.ranges
        return np.asarray(ranges.beyond(q) / self.problem.plans.tree.speed_sizes[ranges.speeds])

    def check(self, rows: Ints, moved: Floats) -> None:
        """Which searches have ended; `moved`: the lengths of the last steps."""
        worst = np.max([np.abs(level.error[rows]).max(axis=-1, initial=0.0) for level in self.levels], axis=0)
        inside = self.beyond(self.q[rows]).max(axis=-1, initial=0.0) <= 1e-8
        met = (worst <= self.tolerance) & inside
        self.solved[rows] = met
        done = met & (moved < _SETTLED) if self.problem.posture is not None else met
        done |= moved < _STILL
        done |= self.damping[rows] > _STUCK
        self.going[rows[done]] = False

    # -- steps ------------------------------------------------------------------------------------
    def step(self) -> None:
        """One step of all that go on."""
        rows, space = np.flatnonzero(self.going), self.problem.plans.configuration
        q = self.q[rows]
        basis = self.problem.basis(q)
        levels = [_Level(x.error[rows], x.rates[rows] @ basis) for x in self.levels]
        z, ends = self._within(q, basis, levels, self.damping[rows])
        way, size = self._way(basis, z)
        found, good = self._retracted(space.integrate(q, way), basis)
        there = self.evaluated(found, rows)
        if len(levels) > 1 or not np.isnan(ends).all():  # what comes first is met to second order, too
            back = self._back(found, basis, levels, there, ends)
            found, closed = self._retracted(space.integrate(found, self._way(basis, back)[0]), basis)
            found, good = self._clipped(found), good & closed
            there = self.evaluated(found, rows)
        before = self.merit(q, [_Level(x.error[rows], x.rates) for x in self.levels])
        after = self.merit(found, there)
        fine = good & np.isfinite(after) & ((after <= before * (1.0 + 1e-12)) | (after <= self.tolerance))
        self.count[rows] += 1
        better = np.where(after <= 0.75 * before, _QUICKLY, _SLOWLY)
        self.damping[rows] = np.where(fine, np.maximum(better * self.damping[rows], _LEAST), 4.0 * self.damping[rows])
        took = rows[fine]
        self.q[took] = found[fine]
        for mine, new in zip(self.levels, there, strict=True):
            mine.error[took], mine.rates[took] = new.error[fine], new.rates[fine]
        self.check(rows, np.where(fine, size, np.inf))

    def _retracted(self, ahead: Floats, basis: Floats) -> tuple[Floats, Mask]:
        """Positions with their loops closed, and which are: by motions across those of the basis where targets leave
        some free, so that the way of a search does not depend on where loops are cut."""
        found, good = self.problem.closed(ahead)
        space, sizes = self.problem.plans.configuration, self.problem.plans.tree.speed_sizes
        back = np.swapaxes(basis / sizes[:, None], -1, -2)
        for _ in range(_SLIPS if self.loose else 0):
            slip = (back @ (space.difference(ahead, found) / sizes)[..., None])[..., 0]
            slip[~good] = 0.0
            if np.abs(slip).max(initial=0.0) < _STILL:
                break
            found, closed = self.problem.closed(space.integrate(found, -(basis @ slip[..., None])[..., 0]))
            good = good & closed
        return found, good

    def _way(self, basis: Floats, z: Floats) -> tuple[Floats, Floats]:
        """What all joints move, not too far at once, and how far that is."""
        way = (basis @ z[..., None])[..., 0]
        size = np.abs(way / self.problem.plans.tree.speed_sizes).max(axis=-1, initial=0.0)
        return way * np.minimum(1.0, _STRIDE / np.maximum(size, 1e-300))[:, None], np.minimum(size, _STRIDE)

    def _back(self, q: Floats, basis: Floats, levels: Sequence[_Level], there: Sequence[_Level], ends: Floats
              ) -> Floats:
        """What a step has left of the errors that come before the last priority, to be removed."""
        first = [_Level(new.error, old.rates) for new, old in zip(there[:-1], levels[:-1], strict=True)]
        if not np.isnan(ends).all():
            first = [self._kept(q, basis, ends), *first]
        return self._prioritized(q, basis, first, np.zeros(len(q)), len(first), posture=False)

    def _kept(self, q: Floats, basis: Floats, ends: Floats) -> _Level:
        """How far coordinates are from the ends (n, coordinates) at which they are kept, NaN where they are not."""
        ranges, sizes = self.problem.ranges, self.problem.plans.tree.speed_sizes
        units, kept = sizes[ranges.speeds], ~np.isnan(ends)
        return _Level(np.where(kept, q[:, ranges.places] - np.where(kept, ends, 0.0), 0.0) / units,
                      np.where(kept[..., None], basis[:, ranges.speeds] / units[:, None], 0.0))

    def _clipped(self, q: Floats) -> Floats:
        """Coordinates that rounding has taken out of their ranges, at the ends; of machines without loops."""
        ranges = self.problem.ranges
        if self.problem.plans.tree.looped or not len(ranges.places):
            return q
        q = q.copy()
        near = ranges.beyond(q) < 1e-6
        q[:, ranges.places] = np.where(near, np.clip(q[:, ranges.places], ranges.low, ranges.high), q[:, ranges.places])
        return q

    def _within(self, q: Floats, basis: Floats, levels: list[_Level], damping: Floats) -> tuple[Floats, Floats]:
        """Steps (1) that keep coordinates in their ranges, and the ends (n, coordinates) at which they keep some."""
        ranges = self.problem.ranges
        z, ends = self._prioritized(q, basis, levels, damping), np.full((len(q), len(ranges.places)), np.nan)
        if not len(ranges.places):
            return z, ends
        rows, now = basis[:, ranges.speeds], q[:, ranges.places]
        for _ in range(_PASSES):
            ahead, free = now + (rows @ z[..., None])[..., 0], np.isnan(ends)
            low, high = (ahead < ranges.low - 1e-12) & free, (ahead > ranges.high + 1e-12) & free
            some = (low | high).any(axis=-1)
            if not some.any():
                break
            ends = np.where(low, ranges.low, np.where(high, ranges.high, ends))
            first = self._kept(q[some], basis[some], ends[some])
            z = z.copy()
            z[some] = self._prioritized(q[some], basis[some], [first, *(_Level(x.error[some], x.rates[some])
                                                                     for x in levels)], damping[some], exact=1)
        return z, ends

    def _prioritized(self, q: Floats, basis: Floats, levels: Sequence[_Level], damping: Floats, exact: int = 0,
                     posture: bool = True) -> Floats:
        """Steps (1); the first `exact` levels are not damped."""
        posture = posture and self.problem.posture is not None
        n, k = len(q), basis.shape[-1]
        z, allowed = np.zeros((n, k)), np.broadcast_to(np.eye(k), (n, k, k))
        for i, (error, rates) in enumerate(levels):
            own = rates @ allowed
            u, s, vt = np.linalg.svd(own, full_matrices=False)
            most = s.max(axis=-1, keepdims=True, initial=0.0)
            size = (error ** 2).sum(axis=-1, keepdims=True)
            extra = 0.0 if i < exact else damping[:, None] * size
            fine = s > np.maximum(_RANK * most, 1e-12)
            gain = np.where(fine, s / np.where(fine, s * s + extra, 1.0), 0.0)
            left = -error - (rates @ z[..., None])[..., 0]
            z = z + (np.swapaxes(vt, -1, -2) @ (gain * (np.swapaxes(u, -1, -2) @ left[..., None])[..., 0])[..., None]
                     )[..., 0]
            if i + 1 < len(levels) or posture:
                taken = vt * fine[..., None]
                allowed = allowed - np.swapaxes(taken, -1, -2) @ taken
        if posture:
            assert self.problem.posture is not None
            sizes = self.problem.plans.tree.speed_sizes
            way = self.problem.plans.configuration.difference(q, np.broadcast_to(self.problem.posture, q.shape)) / sizes
            wish = (np.swapaxes(basis / sizes[:, None], -1, -2) @ way[..., None])[..., 0]
            z = z + (allowed @ (wish - z)[..., None])[..., 0]
        return z

    # -- the end ----------------------------------------------------------------------------------
    def _polish(self, rows: Ints) -> None:
        """Where not all can be had: the ends of ranges, and what comes before the last priority, by Newton's steps."""
        problem, ranges = self.problem, self.problem.ranges
        if not len(rows) or (len(self.levels) < 2 and not len(ranges.places)):
            return
        for _ in range(_POLISH):
            q = self.q[rows]
            basis, x = problem.basis(q), q[:, ranges.places]
            ends = np.where(x > ranges.high - _NEAR, ranges.high, np.where(x < ranges.low + _NEAR, ranges.low, np.nan))
            levels = [_Level(level.error, level.rates @ basis) for level in self.evaluated(q, rows)]
            way, size = self._way(basis, self._back(q, basis, levels, levels, ends))
            found, good = problem.closed(problem.plans.configuration.integrate(q, way))
            fine = good & (size < _SMALL) & (self._first(found, rows) <= self._first(q, rows))
            self.q[rows[fine]] = self._clipped(found)[fine]

    def _first(self, q: Floats, rows: Ints) -> Floats:
        """How far what comes before the last priority is from being met."""
        size = np.linalg.norm(self.beyond(q), axis=-1)
        return np.asarray(size + sum(np.linalg.norm(x.error, axis=-1) for x in self.evaluated(q, rows)[:-1]))

    def found(self) -> Found:
        """What has become of all."""
        self._polish(np.flatnonzero(~self.solved))
        return Found(self.q, self.solved, self.problem.errors(self.q, self.some), self.count)
