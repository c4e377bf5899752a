"""Closing loops: damped Gauss-Newton for any number of positions at once, with chosen coordinates held.

For constraints c(q) = 0 with Jacobian J of the speeds that may move, each scaled by its weight W, a step is

    W d = - (J W^-1)^T ((J W^-1) (J W^-1)^T + mu |c|)^-1 c

by singular values, so that redundant and contradicting constraints do no harm; it is taken if it makes |c| smaller,
else the damping mu grows. Values c and the rows of J are shares of the machine's size
(`loops.constraint_sizes`). Every position has its own damping and ends by itself: it never knows its neighbours.
Cost per step and position: O(nu m^2) for m constraints; machines beyond `tolerances.DENSE` by sparse factors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, half_turn
from bellcrank.errors import AssemblyError
from bellcrank.loops.constraint_kinematics import LoopKinematics
from bellcrank.loops.constraint_sizes import closing_sizes
from bellcrank.loops.loop_paths import loop_joints, paths_between
from bellcrank.loops.near_closer import NearCloser
from bellcrank.loops.tolerances import CLOSED, DENSE, FLIPPED, OPEN, RANK, RANK_DAMPED, STRIDE

__all__ = ["Closer", "Extra", "Factors", "Target", "factors", "project", "size_of", "sparse_least", "times"]

Ints = npt.NDArray[np.int64]
#: damping of the first step, and its least and largest value
_DAMPING, _LEAST, _MOST = 1e-3, 1e-12, 1e6
#: below this a position that stops getting better is left alone
_STALLED = 1e-12
#: constraints that contradict each other by less, as a share of the machine's length, may be meant to agree
_MEANT = 3e-3
#: singular values below this, relative to the largest, may be those of constraints that are meant to be redundant
_NEARLY = 0.03


@dataclass(frozen=True)
class Extra:
    """A coordinate of a joint that was cut, held at a value: closure, coordinate, value; or that shall be near it, with
    a weight."""

    closure: int
    coordinate: int
    value: Any  #: a number, or one for every sample of a batch
    weight: float = 1.0


@dataclass(frozen=True)
class Target:
    """What a closing is asked for: which speeds stay (mask, prescribed ones included), how much each change counts,
    and coordinates of closing joints that have values to take."""

    held: npt.NDArray[np.bool_]
    weights: Floats
    extra: tuple[Extra, ...] = ()

    @property
    def free(self) -> Ints:
        """The speeds that may move."""
        return np.flatnonzero(~self.held)


class Factors(NamedTuple):
    """Singular value factors of scaled Jacobians, and whether they exist: LAPACK would never return from what is not
    finite."""

    u: Floats
    s: Floats
    vt: Floats
    finite: npt.NDArray[np.bool_]

    def solve(self, value: Floats, damping: Floats | float, rank: float) -> tuple[Floats, npt.NDArray[np.int64]]:
        """x with A x = value in the least-squares sense, damped, of directions above `rank` alone; and how many."""
        kept = self.s > rank * np.maximum(self.s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
        with np.errstate(over="ignore"):  # far off, where nothing closes
            gain = np.where(kept, self.s / np.where(kept, self.s * self.s + damping, 1.0), 0.0)
        x = times(np.swapaxes(self.vt, -1, -2), gain * times(np.swapaxes(self.u, -1, -2), value))
        return np.where(self.finite[..., None], x, np.nan), kept.sum(axis=-1)


def factors(matrix: Floats) -> Factors:
    """Singular value factors of matrices (..., m, n)."""
    finite = np.asarray(np.isfinite(matrix).all(axis=(-2, -1)))
    if not matrix.size:
        lead, (m, n) = matrix.shape[:-2], matrix.shape[-2:]
        return Factors(np.zeros((*lead, m, 0)), np.zeros((*lead, 0)), np.zeros((*lead, 0, n)), finite)
    u, s, vt = np.linalg.svd(matrix if finite.all() else np.where(finite[..., None, None], matrix, 0.0),
                             full_matrices=False)
    return Factors(u, s, vt, finite)


def times(matrix: Floats, vector: Floats) -> Floats:
    """Matrices (..., m, n) times vectors (..., n)."""
    return np.asarray((matrix @ vector[..., None])[..., 0])


class Closer:
    """Finds positions in which all loops close. Positions have any leading axes; times broadcast against them."""

    def __init__(self, loops: LoopKinematics, integrate: Callable[[Any, Any], Floats],
                 normalize: Callable[[Any], Floats], difference: Callable[[Any, Any], Floats],
                 near: NearCloser | None = None, rank: float = RANK_DAMPED) -> None:
        self.loops, self.integrate, self.normalize, self.difference = loops, integrate, normalize, difference
        #: the quick way from nearby, for machines that are small enough
        self.near = near
        self.rank = rank  #: singular values below this part of the largest are zero in damped steps
        #: closed positions by guess, weights, time and what is wanted of closing joints: see `Assembled`
        self.known: dict[tuple[bytes, bytes, float, tuple[Extra, ...]], Floats | None] = {}

    def close(self, q: Floats, target: Target, t: npt.ArrayLike = 0.0, *, iterations: int = 120
              ) -> tuple[Floats, Any]:
        """The nearest closing positions found from q (..., nq), and their largest residuals (...). Never raises."""
        lead = q.shape[:-1]
        when = np.broadcast_to(np.asarray(t, dtype=float), lead).reshape(-1)
        flat = self.normalize(q).reshape(-1, q.shape[-1])
        value = self.residual(flat, when, target.extra)
        best = size_of(value)
        damping = np.full(len(flat), _DAMPING)
        active = np.flatnonzero((best > 0.0) & np.isfinite(best)) if len(target.free) else np.zeros(0, dtype=np.int64)
        for _ in range(iterations):
            if not len(active):
                break
            active = self._advance(flat, value, best, damping, active, when, target)
        found, left = self.loops.measured(self.normalize(flat), when).reshape(q.shape), best.reshape(lead)
        return found, left if lead else float(left)

    def closed(self, q: Floats, target: Target, t: float, *, iterations: int) -> tuple[Floats, npt.NDArray[np.bool_]]:
        """The positions (n, nq) of `close`, and which are closed with all axes pointing the right way."""
        found, left = self.close(q, target, t, iterations=iterations)
        return found, np.array([size < CLOSED and not self.flipped(x, t) for x, size in zip(found, left, strict=True)],
                               dtype=bool)

    def _advance(self, q: Floats, value: Floats, best: Floats, damping: Floats, active: Ints, t: Floats, target: Target
                 ) -> Ints:
        """One step of the positions that are not done, in place; those that are not done then."""
        step = self.step(q[active], value[active], t[active], target,
                         damping[active] * np.minimum(best[active], 1.0))[0]
        longest = self.loops.step_length(step)
        going = np.isfinite(longest)
        active, step, longest = active[going], step[going], longest[going]
        if not len(active):
            return active
        step = step * np.minimum(1.0, STRIDE / np.maximum(longest, 1e-300))[:, None]
        trial = self.integrate(q[active], step)  # within where the linear picture holds
        left = self.residual(trial, t[active], target.extra)
        size, before = size_of(left), best[active]
        better = size < before
        stalled = better & (size > 0.5 * before) & (size < _STALLED) & (longest < _STALLED)  # weak directions go on
        lost = ~better & ((before < _STALLED) | (damping[active] > _MOST))
        took = active[better]
        q[took], value[took], best[took] = trial[better], left[better], size[better]
        damping[active] = np.where(better, np.maximum(damping[active] * 0.1, _LEAST),
                                   np.maximum(damping[active], 1e-6) * 10.0)
        return np.asarray(active[~(stalled | lost | (size == 0.0))])

    def step(self, q: Floats, value: Floats, t: npt.ArrayLike, target: Target, damping: Floats | float = 0.0
             ) -> tuple[Floats, npt.NDArray[np.int64]]:
        """The steps of all speeds (..., nu) that close `value` to first order, plain and of well determined directions
        only where undamped (not finite where there is none); and how many of these there are, 0 if not known."""
        loops, free = self.loops, target.free
        out = np.zeros((*q.shape[:-1], loops.tree.nu))
        scale = 1.0 / target.weights[free]
        soft = np.broadcast_to(np.asarray(damping, dtype=float), q.shape[:-1])
        if target.extra or loops.m * len(free) <= DENSE:
            part, rank = self.factors(q, t, target).solve(
                value, soft[..., None], self.rank if np.any(soft) else RANK)
            out[..., free] = -scale * part
            return np.where(np.isfinite(value).all(axis=-1, keepdims=True), out, np.nan), rank
        entries = loops.position_entries(q, t) / loops.row_sizes[loops.all_rows]
        for index in np.ndindex(q.shape[:-1]):
            if np.isfinite(entries[index]).all() and np.isfinite(value[index]).all():
                out[(*index, free)] = -scale * sparse_least(
                    loops.all_rows, loops.all_vars, entries[index], loops.m, free, scale, value[index],
                    max(float(soft[index]), 1e-10))
            else:
                out[index] = np.nan
        return out, np.zeros(q.shape[:-1], dtype=np.int64)

    def newton(self, q: Floats, t: npt.ArrayLike, target: Target) -> tuple[Any, Floats, Any]:
        """What is left open (...), the plain Newton steps of all speeds that would close it (the smallest ones,
        measured with weights), and whether the loops determine everything that is free."""
        value = self.residual(q, t, target.extra)
        step, rank = self.step(q, value, t, target)
        return size_of(value), step, rank == len(target.free)

    def tangential(self, q: Floats, change: Floats, t: npt.ArrayLike, target: Target) -> Floats:
        """The speeds that undo as much of a change (speeds, too) as the loops allow without opening."""
        loops = self.loops
        rate = loops.shares(loops.through_entries(loops.position_entries(q, t), change))
        extra = [(self.coordinate_row(q, e, t) * change).sum(-1) for e in target.extra]
        if extra:
            rate = np.concatenate([rate, np.stack(extra, axis=-1)], axis=-1)
        return self.step(q, -rate, t, target)[0] - change

    def factors(self, q: Floats, t: npt.ArrayLike, target: Target, *, speeds: bool = False) -> Factors:
        """Singular value factors of the Jacobians by the free speeds, each by its weight; `speeds`: with the
        constraints that bind speeds alone."""
        loops = self.loops
        jacobian = loops.dense(loops.linearized(q, t)[1] if speeds else loops.position_entries(q, t))
        jacobian = jacobian / loops.row_sizes[:, None]
        if target.extra:
            extra = [self.coordinate_row(q, e, t) for e in target.extra]
            jacobian = np.concatenate([jacobian, np.stack(extra, axis=-2)], axis=-2)
        return factors(jacobian[..., target.free] / target.weights[target.free])

    def residual(self, q: Floats, t: npt.ArrayLike, extra: tuple[Extra, ...] = ()) -> Floats:
        """What is left open as shares of the machine's size, (..., constraints and extra ones)."""
        value = self.loops.shares(self.loops.error(q, t))
        gaps = [self._gap(q, t, e, extra) for e in extra]
        return np.concatenate([value, np.stack(gaps, axis=-1)], axis=-1) if gaps else value

    def _gap(self, q: Floats, t: npt.ArrayLike, e: Extra, every: tuple[Extra, ...]) -> Floats:
        """How far a coordinate of a closing joint is from its value, as a share of its size."""
        now = self.coordinates(q, e.closure, t)
        if now.shape[-1] in (4, 7):
            along = sum(now[..., f.coordinate] * f.value for f in every if f.closure == e.closure and f.coordinate < 4)
            if e.coordinate < 4:
                now = np.where(np.asarray(along)[..., None] < 0.0, -now, now)  # the same turn
        gap = now[..., e.coordinate] - e.value
        return np.asarray(half_turn(gap) if self.turns(e) else gap / self.size(e))  # measured within a turn

    def size(self, e: Extra) -> float:
        """An ordinary change of a coordinate of a closing joint."""
        return float(closing_sizes(self.loops.tree, e.closure)[e.coordinate])

    def turns(self, e: Extra) -> bool:
        """Whether a coordinate is an angle that is measured within a turn; those of screws count turns."""
        kind = self.loops.tree.closures[e.closure].kind
        return kind.within_a_turn(e.coordinate)

    def coordinate_row(self, q: Floats, e: Extra, t: npt.ArrayLike) -> Floats:
        """d(coordinate of a cut joint, by its size)/du, (..., nu), by central differences of its measurement along the
        loop: the only row that is not exact, since `Joint.measure` works on arrays, of users' joints too, and has no
        derivative. Those of constraints are (`LoopKinematics.position_entries`)."""
        tree = self.loops.tree
        c = tree.closures[e.closure]
        links = [k for path in paths_between(tree, c.first, c.second) for k in path]
        speeds = [int(tree.u_start[k]) + i for k in links for i in range(getattr(tree.joints[k], "nu", 0))]
        moves = np.zeros((len(speeds), tree.nu))
        moves[np.arange(len(speeds)), speeds] = 1e-6 * tree.speed_sizes[speeds]
        when = np.asarray(t, dtype=float)[..., None]
        plus, minus = (self.coordinates(self.integrate(q[..., None, :], s * moves), e.closure, when)[..., e.coordinate]
                       for s in (1.0, -1.0))
        change = plus - minus
        if self.turns(e):
            change = half_turn(change)
        out = np.zeros((*change.shape[:-1], tree.nu))
        out[..., speeds] = change / (2e-6 * self.size(e) * tree.speed_sizes[speeds])
        return out

    def coordinates(self, q: Floats, closure: int, t: npt.ArrayLike = 0.0) -> Floats:
        """Coordinates of a joint that closes a loop, shape (..., nq)."""
        turn, shift = self.relative_pose(q, closure, t)
        return np.asarray(self.loops.tree.closures[closure].kind.measure(turn, shift))

    def relative_pose(self, q: npt.ArrayLike, closure: int, t: npt.ArrayLike = 0.0) -> tuple[Floats, Floats]:
        """Pose of a closing joint's child side in its parent side."""
        c = self.loops.tree.closures[closure]
        turn, origin = self.loops.poses(q, t)
        a = turn[..., c.first, :, :]
        b = turn[..., c.second, :, :]
        values = self.loops.values
        pa = origin[..., c.first, :] + (a @ values(c.first_shift)[..., None])[..., 0]
        pb = origin[..., c.second, :] + (b @ values(c.second_shift)[..., None])[..., 0]
        back = np.swapaxes(a @ self.loops.axes(c, 0), -1, -2)
        return back @ (b @ self.loops.axes(c, 1)), (back @ (pb - pa)[..., None])[..., 0]

    def flipped(self, q: Floats, t: float = 0.0) -> list[str]:
        """Joints that close but for an axis that points the wrong way: dot products cannot tell."""
        return [self.loops.tree.closures[k].name for k, first, second in self.joint_axes(q, t)
                if np.abs(self.allowed(k, first.T @ second) - first.T @ second).max() > FLIPPED]

    def joint_axes(self, q: Floats, t: float = 0.0) -> list[tuple[int, Floats, Floats]]:
        """The axes (3, 3) of both sides of all joints that close loops and count, at one position."""
        loops, out = self.loops, []
        turn, origin = loops.poses(q, t)
        for family in loops.families:
            if hasattr(family.kind, "measure"):
                first, second = (loops.frames(family, turn, origin, which)[2] for which in (0, 1))
                out += [(k, first[i], second[i]) for i, k in enumerate(family.members.tolist())
                        if any(loops.uses(r) for r in range(int(loops.starts[k]), int(loops.starts[k + 1])))]
        return out

    def allowed(self, closure: int, relative: Floats) -> Floats:
        """Where the coordinates of a loop joint would put the axes of its second side, (3, 3) in those of the first,
        for axes that are turned so."""
        from bellcrank.spatial import Vector

        kind, out = self.loops.tree.closures[closure].kind, np.eye(3)
        constants = [float(np.ravel(self.loops.values([k]))[0]) for k in kind.constants()]
        for factor in kind.transforms(list(kind.measure(relative, np.zeros(3))), constants):
            columns = [factor.rotation.apply(Vector(*e)) for e in np.eye(3).tolist()]
            out = out @ np.array(columns, dtype=float).T
        return out

    def of_cluster(self, rows: npt.NDArray[np.bool_]) -> Closer:
        """The same for constraints of one cluster (`LoopKinematics.clusters`) alone."""
        def in_use() -> npt.NDArray[np.bool_]:
            used = self.loops.in_use
            return rows if used is None else rows & used

        return Closer(self.loops.restricted(in_use), self.integrate, self.normalize, self.difference, rank=self.rank)

    def failure(self, q: Floats, t: float, what: str, extra: tuple[Extra, ...] = ()) -> AssemblyError:
        """An error with the residual of every loop that does not close."""
        loops = self.loops
        value = np.abs(loops.error(q, t))
        per: list[tuple[float, str, str]] = []
        for i, c in enumerate(loops.tree.closures):
            size = float(value[loops.starts[i]:loops.starts[i + 1]].max(initial=0.0))
            per.append((size, f"{c.name!r} by {size:.3g} (joints {', '.join(loop_joints(loops.tree, i)[:8])})", c.name))
        for k, relation in enumerate(loops.tree.relations):
            size = float(value[loops.m_closures + k])
            per.append((size, f"coupler {relation.name!r} by {size:.3g}", relation.name))
        for e in extra:
            c = loops.tree.closures[e.closure]
            now = float(self.coordinates(q, e.closure, t)[e.coordinate])
            label = f"{c.name}.{c.kind.coordinate_names()[e.coordinate]}"
            per.append((abs(now - e.value), f"{label!r} held at {e.value:.6g} is {now:.6g}", c.name))
        worst = sorted(per, reverse=True)[:4]
        flipped = self.flipped(q, t) if size_of(self.residual(q, t, extra)) < OPEN else []
        if flipped:
            shown = ", ".join(repr(f) for f in flipped[:4])
            return AssemblyError(f"{what}: the loops close, but the axes of {shown} point the wrong way there; start "
                                 "from a guess on the other side", flipped[0])
        against = "" if extra else self.contradiction(q, t)
        if against:
            return AssemblyError(f"{what}: {against}", worst[0][2])
        return AssemblyError(f"{what}: the loops do not close; {'; '.join(p[1] for p in worst)}. Check dimensions, "
                             "hold fewer coordinates, or start from a better guess", worst[0][2])


    def contradiction(self, q: Floats, t: float) -> str:
        """Which constraints contradict each other, and by how much, if little is open and no motion changes that."""
        loops = self.loops
        units, value = loops.row_sizes, self.residual(q, t)
        size = float(np.abs(value).max(initial=0.0))
        jacobian = loops.dense(loops.position_entries(q, t)) * loops.tree.speed_sizes / units[:, None]
        if not _MEANT > size > CLOSED or not np.isfinite(jacobian).all():
            return ""
        u, s, _ = factors(jacobian)[:3]
        moving = u[:, s > _NEARLY * s.max(initial=0.0)]
        rest = value - moving @ (moving.T @ value)
        if np.abs(rest).max() < 0.5 * size:
            return ""
        rows = np.flatnonzero(np.abs(rest) > 0.1 * np.abs(rest).max())
        worst = int(np.argmax(np.abs(rest)))
        closures = dict.fromkeys(loops.closure_of_row[r] for r in rows if r < loops.m_closures)
        joints = dict.fromkeys(name for k in closures for name in loop_joints(loops.tree, k))
        unit = "rad" if any(word in loops.row_names[worst] for word in (": about", ": angle")) else "m"
        return (f"these constraints contradict each other by {abs(rest[worst]) * units[worst]:.3g} {unit}: "
                f"{', '.join(loops.row_names[r] for r in rows[:6])} (joints {', '.join(list(joints)[:8])}). Check "
                f"dimensions; compile(..., drawing_tolerance={10.0 ** np.ceil(np.log10(2.0 * size)):.0e}) "
                "drops those that are redundant")


def size_of(value: Floats) -> Any:
    """The largest entry of each row (..., n); infinite where one is not finite."""
    size = np.abs(value).max(axis=-1, initial=0.0)
    return np.where(np.isfinite(size), size, np.inf)


def sparse_least(rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], entries: Floats, m: int,
                 free: npt.NDArray[np.int64], scale: Floats, value: Floats, damping: float) -> Floats:
    """x that minimises |A x - value|^2 + damping |x|^2 for the columns `free` of a sparse matrix.

    Solved as [[I, A], [A^T, -damping]], which does not square the condition.
    """
    from scipy.sparse import bmat, coo_matrix, identity
    from scipy.sparse.linalg import splu

    place = np.full(int(columns.max(initial=0)) + 1, -1)
    place[free[free < len(place)]] = np.flatnonzero(free < len(place))
    use = place[columns] >= 0
    at = place[columns[use]]
    a = coo_matrix((entries[use] * scale[at], (rows[use], at)), shape=(m, len(free))).tocsc()
    root = np.sqrt(damping)
    whole = bmat([[root * identity(m), a], [a.T, -root * identity(len(free))]], format="csc")
    solved = splu(whole).solve(np.concatenate([value, np.zeros(len(free))]))
    return np.asarray(solved[m:])


def project(loops: LoopKinematics, q: Floats, u: Floats, target: Target, t: npt.ArrayLike, rank: float = RANK
            ) -> tuple[Floats, Any]:
    """The speeds nearest to u (..., nu) that keep loops closed, the held ones untouched, and the rates left (...), as
    shares of the machine's size."""
    free, scale = target.free, 1.0 / target.weights[target.free]
    entries = loops.linearized(q, t)[1] / loops.row_sizes[loops.all_rows]
    small = loops.m * len(free) <= DENSE
    dense = loops.dense(entries) if small else None
    solved = None if dense is None else factors(dense[..., free] * scale)

    def rates(u: Floats) -> Floats:
        return loops.shares(loops.rate(q, u, t)) if dense is None or loops.driven else times(dense, u)

    for _ in range(2):  # the second removes rounding
        rate = rates(u)
        u = np.array(np.broadcast_to(u, (*rate.shape[:-1], loops.tree.nu)))
        if solved is not None:
            u[..., free] -= solved.solve(rate, 0.0, rank)[0] * scale
            continue
        for index in np.ndindex(rate.shape[:-1]):
            u[(*index, free)] -= scale * sparse_least(loops.all_rows, loops.all_vars, entries[index], loops.m, free,
                                                      scale, rate[index], 1e-12)
    return (loops.run("joint_speeds", {"q": q, "u": u}, t) if loops.tree.loop_joints else u), size_of(rates(u))
