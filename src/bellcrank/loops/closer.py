"""Closing the loops: positions by damped Gauss-Newton, velocities by projection, with chosen coordinates held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, half_turn
from bellcrank.errors import AssemblyError
from bellcrank.loops.constraint_kinematics import LoopKinematics, loop_joints, paths_between
from bellcrank.loops.null_space import RANK

__all__ = ["DENSE", "Assembler", "Extra", "State", "project", "solve_least"]

#: problems with at most this many matrix entries are solved by dense singular values, larger ones by sparse factors
DENSE = 40_000


class _Values(NamedTuple):
    """What a state is unpacked into."""

    q: Floats
    u: Floats
    t: float = 0.0


class State(_Values):
    """Coordinates and speeds that belong together; loops closed at position and velocity level.

    It unpacks like a tuple, ``q, u, t = state``. `branch_changed` is no part of that tuple.

    >>> import pickle
    >>> import numpy as np
    >>> state = State(np.zeros(1), np.zeros(1)).on_other_branch()
    >>> pickle.loads(pickle.dumps(state)).branch_changed, state._replace(t=1.0).branch_changed
    (True, True)
    """

    #: whether the branch of the guess ended on the way, so that this is a position on another one (see `assemble`)
    branch_changed: bool = False

    def on_other_branch(self) -> Self:
        """The same values, with `branch_changed`."""
        made = type(self)(*self)
        made.branch_changed = True
        return made

    def _replace(self, **values: Any) -> Self:
        made = super()._replace(**values)
        return made.on_other_branch() if self.branch_changed else made


@dataclass(frozen=True)
class Extra:
    """A coordinate of a joint that was cut, held at a value: closure, coordinate, value."""

    closure: int
    coordinate: int
    value: float


class Assembler:
    """Finds positions in which all loops close."""

    def __init__(self, loops: LoopKinematics, integrate: Callable[[Any, Any], Floats],
                 normalize: Callable[[Any], Floats], difference: Callable[[Any, Any], Floats]) -> None:
        self.loops, self.integrate, self.normalize, self.difference = loops, integrate, normalize, difference
        #: closed positions by guess, weights and time: see `Assembled`
        self.known: dict[tuple[bytes, bytes, float], Floats | None] = {}

    def close(self, q: Floats, held: npt.NDArray[np.bool_], weights: Floats, t: float = 0.0, *,
              extra: tuple[Extra, ...] = (), iterations: int = 120) -> tuple[Floats, float]:
        """The nearest closing position found from q, and its largest residual. Never raises."""
        free = np.flatnonzero(~held)
        q = self.normalize(q)
        value, rows = self._residual(q, t, extra)
        best = _size(value)
        damping = 1e-3
        for _ in range(iterations):
            if best == 0.0 or not len(free) or not np.isfinite(best):
                break
            step = self._step(q, rows, value, free, weights, damping * min(best, 1.0), t, extra)
            longest = float(np.abs(step).max(initial=0.0))
            if not np.isfinite(longest):
                break
            if longest > 0.8:  # radians or metres: stay where the linear picture holds
                step = step * (0.8 / longest)
            trial = self.integrate(q, step)
            new_value, new_rows = self._residual(trial, t, extra)
            size = _size(new_value)
            if size < best:
                stalled = size > 0.5 * best and size < 1e-12 and longest < 1e-12  # weak directions need more steps
                q, value, rows, best = trial, new_value, new_rows, size
                damping = max(damping * 0.1, 1e-12)
                if stalled:
                    break
            else:
                if best < 1e-12 or damping > 1e6:
                    break
                damping = max(damping, 1e-6) * 10.0
        return self.normalize(q), best

    def _residual(self, q: Floats, t: float, extra: tuple[Extra, ...]) -> tuple[Floats, Any]:
        rows = self.loops.rows(q, None, t)
        value = rows.value
        for e in extra:
            now = self.coordinates(q, e.closure, t)
            if len(now) in (4, 7) and sum(now[f.coordinate] * f.value for f in extra
                                          if f.closure == e.closure and f.coordinate < 4) < 0.0:
                now = np.concatenate([-now[:4], now[4:]])  # the same turn
            gap = now[e.coordinate] - e.value
            if self.turns(e):
                gap = half_turn(gap)  # measured within a turn
            value = np.append(value, gap)
        return value, rows

    def turns(self, e: Extra) -> bool:
        """Whether a coordinate is an angle that is measured within a turn; those of screws count turns."""
        kind = self.loops.tree.closures[e.closure].kind
        return bool(kind.coordinate_names()[e.coordinate].startswith("angle")) and not kind.counts_turns

    def newton(self, q: Floats, held: npt.NDArray[np.bool_], weights: Floats, t: float,
               extra: tuple[Extra, ...] = ()) -> tuple[float, Floats, bool]:
        """What is left open, the plain Newton step of all speeds that would close it (the smallest one, measured with
        weights; not finite where there is none), and whether the loops determine everything that is free."""
        free = np.flatnonzero(~held)
        value, rows = self._residual(q, t, extra)
        step, rank = self._solved(q, rows, value, free, weights, 0.0, t, extra)
        return _size(value), step, rank == len(free)

    def tangential(self, q: Floats, change: Floats, held: npt.NDArray[np.bool_], weights: Floats, t: float,
                   extra: tuple[Extra, ...] = ()) -> Floats:
        """The speeds that undo as much of a change (speeds, too) as the loops allow without opening."""
        free = np.flatnonzero(~held)
        rows = self.loops.rows(q, None, t)
        rate = np.zeros(self.loops.m)
        np.add.at(rate, self.loops.all_rows, self.loops.entries(q, rows, t) * change[self.loops.all_vars])
        rate = np.append(rate, [self.coordinate_row(q, e, t) @ change for e in extra])
        return self._step(q, rows, -rate, free, weights, 0.0, t, extra) - change

    def factors(self, q: Floats, rows: Any, free: npt.NDArray[np.int64], scale: Floats, t: float,
                extra: tuple[Extra, ...]) -> tuple[Floats, Floats, Floats] | None:
        """Singular value factors of the Jacobian by the free speeds, each times its scale; None if it is not finite,
        which LAPACK would never return from."""
        loops = self.loops
        jacobian = np.zeros((loops.m, loops.tree.nu))
        np.add.at(jacobian, (loops.all_rows, loops.all_vars), loops.entries(q, rows, t))
        for e in extra:
            jacobian = np.vstack([jacobian, self.coordinate_row(q, e, t)])
        matrix = jacobian[:, free] * scale
        if not np.isfinite(matrix).all():
            return None
        u, s, vt = np.linalg.svd(matrix, full_matrices=False)
        return u, s, vt

    def _step(self, q: Floats, rows: Any, value: Floats, free: npt.NDArray[np.int64], weights: Floats, damping: float,
              t: float, extra: tuple[Extra, ...]) -> Floats:
        return self._solved(q, rows, value, free, weights, damping, t, extra)[0]

    def _solved(self, q: Floats, rows: Any, value: Floats, free: npt.NDArray[np.int64], weights: Floats, damping: float,
                t: float, extra: tuple[Extra, ...]) -> tuple[Floats, int]:
        """The step that closes `value` to first order, plain and of well determined directions only if undamped; and
        how many of these there are, 0 where that is not known."""
        loops = self.loops
        step = np.zeros(loops.tree.nu)
        scale = 1.0 / weights[free]
        if extra or loops.m * len(free) <= DENSE:
            factors = self.factors(q, rows, free, scale, t, extra)
            if factors is None or not np.isfinite(value).all():
                return np.full(loops.tree.nu, np.nan), 0
            u, s, vt = factors
            kept = s > (1e-11 if damping else RANK) * max(float(s.max(initial=0.0)), 1e-300)
            gain = np.where(kept, s / np.where(kept, s * s + damping, 1.0), 0.0)
            step[free] = -scale * (vt.T @ (gain * (u.T @ value)))
            return step, int(kept.sum())
        entries = loops.entries(q, rows, t)
        if not (np.isfinite(entries).all() and np.isfinite(value).all()):
            return np.full(loops.tree.nu, np.nan), 0
        step[free] = -scale * sparse_least(loops.all_rows, loops.all_vars, entries, loops.m, free, scale, value,
                                           max(damping, 1e-10))
        return step, 0

    def coordinate_row(self, q: Floats, e: Extra, t: float) -> Floats:
        """d(coordinate of a cut joint)/du, by central differences of its measurement along the loop."""
        tree = self.loops.tree
        c = tree.closures[e.closure]
        links = [k for path in paths_between(tree, c.first, c.second) for k in path]
        speeds = [int(tree.u_start[k]) + i for k in links for i in range(getattr(tree.joints[k], "nu", 0))]
        moves = np.zeros((len(speeds), tree.nu))
        moves[np.arange(len(speeds)), speeds] = 1e-6
        plus, minus = (self.coordinates(self.integrate(q, s * moves), e.closure, t)[:, e.coordinate]
                       for s in (1.0, -1.0))
        change = plus - minus
        if self.turns(e):
            change = half_turn(change)
        out = np.zeros(tree.nu)
        out[speeds] = change / 2e-6
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
        back = np.swapaxes(a @ c.first_turn, -1, -2)
        return back @ (b @ c.second_turn), (back @ (pb - pa)[..., None])[..., 0]

    def flipped(self, q: Floats, t: float = 0.0) -> list[str]:
        """Joints that close but for an axis that points the wrong way: dot products cannot tell."""
        from bellcrank.spatial import Vector

        loops, out = self.loops, []
        turn, origin = loops.poses(q, t)
        for family in loops.families:
            if not hasattr(family.kind, "measure"):
                continue
            _, _, first = loops.frames(family, turn, origin, 0)
            _, _, second = loops.frames(family, turn, origin, 1)
            relative = np.swapaxes(first, -1, -2) @ second
            for i, member in enumerate(family.members):
                kind = loops.tree.closures[int(member)].kind
                r = relative[..., i, :, :]
                allowed = np.eye(3)
                shift = np.zeros(3)
                for factor in kind.transforms(list(kind.measure(r, shift)), [float(k) for k in kind.constants()]):
                    columns = [factor.rotation.apply(Vector(*e)) for e in np.eye(3).tolist()]
                    allowed = allowed @ np.array(columns, dtype=float).T
                if np.abs(allowed - r).max() > 1e-6:
                    out.append(loops.tree.closures[int(member)].name)
        return out

    def failure(self, q: Floats, t: float, what: str, extra: tuple[Extra, ...] = ()) -> AssemblyError:
        """An error with the residual of every loop that does not close."""
        loops = self.loops
        value = np.abs(loops.rows(q, None, t).value)
        per: list[tuple[float, str]] = []
        for i, c in enumerate(loops.tree.closures):
            size = float(value[loops.starts[i]:loops.starts[i + 1]].max(initial=0.0))
            per.append((size, f"{c.name!r} by {size:.3g} (joints {', '.join(loop_joints(loops.tree, i)[:8])})"))
        for k, relation in enumerate(loops.tree.relations):
            size = float(value[loops.m_closures + k])
            per.append((size, f"coupler {relation.name!r} by {size:.3g}"))
        for e in extra:
            c = loops.tree.closures[e.closure]
            now = float(self.coordinates(q, e.closure, t)[e.coordinate])
            label = f"{c.name}.{c.kind.coordinate_names()[e.coordinate]}"
            per.append((abs(now - e.value), f"{label!r} held at {e.value:.6g} is {now:.6g}"))
        worst = sorted(per, reverse=True)[:4]
        flipped = self.flipped(q, t) if max(p[0] for p in per) < 1e-6 else []
        if flipped:
            shown = ", ".join(repr(f) for f in flipped[:4])
            return AssemblyError(f"{what}: the loops close, but the axes of {shown} point the wrong way there; start "
                                 "from a guess on the other side")
        return AssemblyError(f"{what}: the loops do not close; {'; '.join(p[1] for p in worst)}. Check dimensions, "
                             "hold fewer coordinates, or start from a better guess")


def _size(value: Floats) -> float:
    return float(np.abs(value).max(initial=0.0)) if np.isfinite(value).all() else float("inf")


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


def solve_least(a: Floats, b: Floats) -> tuple[Floats, int]:
    """The smallest x with A x = b in the least-squares sense, and the rank of A. Not finite if A or b is not."""
    if not a.size:
        return np.zeros(a.shape[1]), 0
    if not (np.isfinite(a).all() and np.isfinite(b).all()):
        return np.full(a.shape[1], np.nan), 0
    u, s, vt = np.linalg.svd(a, full_matrices=False)
    kept = s > 1e-9 * max(float(s.max(initial=0.0)), 1e-300)
    x = vt.T[:, kept] @ ((u.T @ b)[kept] / s[kept])
    return x, int(kept.sum())


def project(loops: LoopKinematics, q: Floats, u: Floats, held: npt.NDArray[np.bool_], weights: Floats, t: float
            ) -> tuple[Floats, float]:
    """The speeds nearest to u that keep the loops closed, the held ones untouched, and the rate that is left."""
    free = np.flatnonzero(~held)
    rows = loops.rows(q, None, t)
    entries = loops.entries(q, rows, t)
    for _ in range(2):  # the second removes rounding
        rate = loops.rate(q, u, t, rows)
        if loops.m * len(free) <= DENSE:
            jacobian = np.zeros((loops.m, loops.tree.nu))
            np.add.at(jacobian, (loops.all_rows, loops.all_vars), entries)
            change = solve_least(jacobian[:, free] / weights[free], rate)[0]
        else:
            change = sparse_least(loops.all_rows, loops.all_vars, entries, loops.m, free, 1.0 / weights[free], rate,
                                  1e-12)
        u = u.copy()
        u[free] -= change / weights[free]
    return u, _size(loops.rate(q, u, t, rows))
