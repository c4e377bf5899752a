"""Closing loops for many states at once, with chosen speeds given; and minimal coordinates made of it.

The methods of `analyze` move machines about: a few speeds are *given* (driven, held, or chosen as independent) and the
loops determine the others. `Closer` does that for positions, speeds and accelerations, batches included; `Chart` adds
local minimal coordinates about one position. Cost per state: O(nu m^2), by singular values of the loop Jacobian.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_finite, flat, one_time
from bellcrank.errors import ModelError, SingularError, StateError
from bellcrank.loops.closer import State
from bellcrank.loops.null_space import RANK, null_space
from bellcrank.system import assembly
from bellcrank.system.loop_errors import loop_acceleration_error, loop_jacobian

if TYPE_CHECKING:
    from bellcrank.system.system import System

__all__ = ["Chart", "Closer", "closed_state", "driven_entries", "force_array", "independent_speeds", "length_scale",
           "speed_labels", "with_laws"]

#: closures are tight when no residual is larger
CLOSED = 1e-9
#: independent speeds whose share of the motion is smaller than this are poor coordinates
_GOOD = 0.02


class Closer:
    """Closes loops while the speeds in `given` (and prescribed ones) are what they are."""

    def __init__(self, system: System, given: Iterable[int]) -> None:
        if system.model.batched:
            raise ModelError(f"{system.model.name!r} has arrays of parameters: analyze one machine at a time, with one "
                             "value for each")
        self.system = system
        mask = system.model.prescribed_mask()
        mask[list(given)] = True
        self.solved = np.flatnonzero(~mask)  #: speeds that the loops must determine

    @property
    def looped(self) -> bool:
        """Whether there is anything to close."""
        return self.system.model.tree.looped and len(self.solved) > 0

    def spread(self, part: Floats) -> Floats:
        """Entries of the solved speeds as vectors of all speeds."""
        out = np.zeros((*part.shape[:-1], self.system.nu))
        out[..., self.solved] = part
        return out

    def residual(self, q: Floats, t: npt.ArrayLike) -> Floats:
        """What is left open, shape (..., conditions)."""
        return self.system.loop_error(q, t=t)

    def factors(self, q: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Singular value factors of the Jacobian of the solved speeds."""
        return _svd(loop_jacobian(self.system.plans, q, t=t)[..., self.solved])

    def newton(self, q: Floats, t: float) -> tuple[float, Floats]:
        """What is left open in one position, and the plain Newton step of all speeds that would close it."""
        loops = self.system.plans.loops
        rows = loops.rows(q, None, t)
        u, s, vt = _svd(loops.jacobian(q, rows, t)[:, self.solved])
        kept = s > RANK * max(float(s.max(initial=0.0)), 1e-300)
        gain = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
        return float(np.abs(rows.value).max(initial=0.0)), self.spread(-(vt.T @ (gain * (u.T @ rows.value))))

    def determined(self, q: Floats, t: float) -> int:
        """How many of the solved speeds the loops determine in one position."""
        if not self.looped:
            return 0
        s = self.factors(q, t)[1]
        return int((s > RANK * max(float(s.max(initial=0.0)), 1e-300)).sum())

    def close(self, q: Floats, t: npt.ArrayLike = 0.0, *, iterations: int = 60) -> tuple[Floats, Floats]:
        """The nearest closing positions found from q (n, nq), and what is left open (n,). Damped Gauss-Newton."""
        q = self.system.normalize(q)
        if not self.looped:
            return q, np.abs(self.residual(q, t)).max(axis=-1, initial=0.0)
        times = np.broadcast_to(np.asarray(t, dtype=float), q.shape[:-1])
        value = self.residual(q, times)
        best = _size(value)
        damping = np.full(len(q), 1e-6)
        active = np.flatnonzero((best > 0.0) & np.isfinite(best))
        for _ in range(iterations):
            if not len(active):
                break
            soft = damping[active] * np.minimum(best[active], 1.0)
            step = self._damped(q[active], times[active], value[active], soft)
            trial = self.system.integrate(q[active], self.spread(step))
            left = self.residual(trial, times[active])
            size = _size(left)
            better = size < best[active]
            done = (~better & ((best[active] < 1e-12) | (damping[active] > 1e6))) \
                | (better & (size > 0.5 * best[active]) & (size < 1e-12)) | (size == 0.0)
            took = active[better]
            q[took], value[took], best[took] = trial[better], left[better], size[better]
            damping[active] = np.where(better, np.maximum(damping[active] * 0.1, 1e-14),
                                       np.maximum(damping[active], 1e-6) * 10.0)
            active = active[~done]
        return self.system.normalize(q), best

    def _damped(self, q: Floats, t: Floats, value: Floats, damping: Floats) -> Floats:
        u, s, vt = self.factors(q, t)
        kept = s > 1e-11 * np.maximum(s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
        gain = np.where(kept, s / np.where(kept, s * s + damping[:, None], 1.0), 0.0)
        step = -_times(np.swapaxes(vt, -1, -2), gain * _times(np.swapaxes(u, -1, -2), value))
        longest = np.abs(step).max(axis=-1, initial=0.0)
        return np.asarray(step * np.minimum(1.0, 0.8 / np.maximum(longest, 1e-300))[:, None])

    def inverse(self, q: Floats, t: npt.ArrayLike) -> Floats:
        """Pseudo-inverse of the Jacobian of the solved speeds, shape (..., solved, conditions)."""
        u, s, vt = self.factors(q, t)
        kept = s > RANK * np.maximum(s.max(axis=-1, keepdims=True, initial=0.0), 1e-300)
        gain = np.where(kept, 1.0 / np.where(kept, s, 1.0), 0.0)
        return np.asarray((np.swapaxes(vt, -1, -2) * gain[..., None, :]) @ np.swapaxes(u, -1, -2))

    def speeds(self, q: Floats, u: Floats, t: npt.ArrayLike = 0.0) -> Floats:
        """Speeds that keep the loops closed, those given as in u."""
        if not self.looped:
            return np.array(u)
        u = np.where(np.isin(np.arange(self.system.nu), self.solved), 0.0, u)
        back = self.inverse(q, t)
        for _ in range(2):  # the second removes rounding
            u = u - self.spread(_times(back, self.system.loop_rate_error(q, u, t=t)))
        return u

    def accelerations(self, q: Floats, u: Floats, udot: Floats, t: npt.ArrayLike = 0.0) -> Floats:
        """Accelerations that keep the loops closed, those given as in udot."""
        if not self.looped:
            return np.array(udot)
        udot = np.where(np.isin(np.arange(self.system.nu), self.solved), 0.0, udot)
        back = self.inverse(q, t)
        for _ in range(2):
            udot = udot - self.spread(_times(back, loop_acceleration_error(self.system.plans, q, u, udot, t=t)))
        return udot

    def basis(self, q: Floats, columns: Sequence[int], t: npt.ArrayLike = 0.0) -> Floats:
        """What all speeds do when those in `columns` do one each, shape (..., nu, columns)."""
        lead = q.shape[:-1]
        out = np.zeros((*lead, self.system.nu, len(columns)))
        out[..., list(columns), np.arange(len(columns))] = 1.0
        if self.looped:
            rows = loop_jacobian(self.system.plans, q, t=t)[..., list(columns)]
            out[..., self.solved, :] = -self.inverse(q, t) @ rows
        return out


@dataclass(frozen=True)
class Chart:
    """Local minimal coordinates z about a closed position: displacements of the `independent` speeds; z = 0 there."""

    system: System
    q: Floats
    t: float
    independent: tuple[int, ...]
    closer: Closer

    @classmethod
    def at(cls, system: System, q: Floats, t: float, *, held: Sequence[int] = (), wanted: Sequence[int] | None = None
           ) -> Chart:
        """The chart at one closed position; speeds `held` do not move. Raises where the machine is singular."""
        chosen = independent_speeds(system, q, t, held, wanted)
        return cls(system, q, t, tuple(chosen), Closer(system, [*chosen, *held]))

    def positions(self, z: Floats, *, iterations: int = 25) -> tuple[Floats, Floats]:
        """Closed positions (n, nq) for coordinates (n, k), and what is left open (n,)."""
        tangent = self.closer.basis(self.q, self.independent, self.t)
        return self.closer.close(self.system.integrate(self.q, z @ tangent.T), self.t, iterations=iterations)

    def basis(self, q: Floats) -> Floats:
        """N with u = N zdot for what is not prescribed, shape (..., nu, k)."""
        return self.closer.basis(q, self.independent, self.t)

    def speeds(self, q: Floats, rates: Floats) -> Floats:
        """All speeds for rates (..., k) of the independent ones; loops and prescribed joints have their say."""
        u = np.zeros((*np.broadcast_shapes(q.shape[:-1], rates.shape[:-1]), self.system.nu))
        u[..., list(self.independent)] = rates
        return with_laws(self.system, q, self.closer.speeds(q, u, self.t), self.t)[1]

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the coordinates: joints with one speed by their own name."""
        return tuple(speed_labels(self.system)[v] for v in self.independent)


def independent_speeds(system: System, q: Floats, t: float, held: Sequence[int] = (),
                       wanted: Sequence[int] | None = None) -> list[int]:
    """Speeds that determine all others in one position: those wanted, else the drives or the plan's if they are good
    coordinates there, else the best by pivoting."""
    mask = system.model.prescribed_mask()
    mask[list(held)] = True
    free = np.flatnonzero(~mask)
    if not system.model.tree.looped:
        if wanted is not None and sorted(wanted) != free.tolist():
            raise ModelError(f"{system.model.name!r} has no loops: its coordinates are all {len(free)} speeds that are "
                             "free")
        return [int(v) for v in (free if wanted is None else wanted)]
    _, basis, kept = null_space(loop_jacobian(system.plans, q, t=t)[:, free])
    basis = basis[:, ~kept]
    k = basis.shape[1]
    if not held and k > system.dof:
        system.plans.at(q, t)  # says which loops are singular
        raise SingularError(f"{system.model.name!r} is in a singular position: it may move in {k} ways there instead "
                            f"of {system.dof}")
    place = {int(v): i for i, v in enumerate(free)}

    def quality(entries: Sequence[int]) -> float:
        if len(entries) != k or any(v not in place for v in entries):
            return 0.0
        s = np.linalg.svd(basis[[place[v] for v in entries]], compute_uv=False)
        return float(s.min(initial=1.0))

    if wanted is not None:
        if quality(wanted) < 1e-6:
            names = ", ".join(system.speed_names[v] for v in wanted)
            raise ModelError(f"{system.model.name!r} cannot be described by {names} in this position: it needs {k} "
                             "speeds that determine all others")
        return [int(v) for v in wanted]
    drives = sorted({v for name in system.model.options.actuated if name not in system.model.tree.cut_names
                     for v in system.model.configuration.speed_entries(name)})
    for candidate in (drives, system.plans.general().independent):
        if quality(candidate) > _GOOD:
            return [int(v) for v in candidate]
    return _pivoted(basis, free)


def _pivoted(basis: Floats, free: npt.NDArray[np.int64]) -> list[int]:
    from scipy.linalg import qr

    if not basis.shape[1]:
        return []
    return sorted(int(free[i]) for i in qr(basis.T, mode="r", pivoting=True)[1][:basis.shape[1]])


def speed_labels(system: System) -> tuple[str, ...]:
    """Names of the speeds, those of joints that have only one by the joint's own name."""
    return tuple(r.name if r.joint.nu == 1 else f"{r.name}.{c}" for r in system.model.configuration.records
                 for c in r.joint.speed_names)


def with_laws(system: System, q: Floats, u: Floats, t: npt.ArrayLike) -> tuple[Floats, Floats]:
    """q and u with the entries of prescribed joints as their laws say at time t."""
    return assembly.with_laws(system.plans, q, u, t)


def force_array(system: System, tau: Mapping[str, npt.ArrayLike] | npt.ArrayLike | None) -> Floats:
    """Joint forces of one state from an array or from {joint: value}."""
    if tau is None:
        return np.zeros(system.nu)
    out = flat("tau", system.model.configuration.forces(tau), system.nu, "one for every speed")
    if out.ndim != 1 or not np.isfinite(out).all():
        raise StateError(f"tau: needs {system.nu} finite numbers, got shape {out.shape}")
    return out.copy()


def closed_state(system: System, state: State | tuple[npt.ArrayLike, npt.ArrayLike], t: float | None, what: str
                 ) -> State:
    """One state, checked: right sizes, finite, loops closed. `t` overrides the state's own time."""
    try:
        q, u = state[0], state[1]
    except (TypeError, IndexError, KeyError):
        raise StateError(f"{what}: needs a State or (q, u), got {type(state).__name__}") from None
    position, speed = flat("q", q, system.nq, "the coordinates"), flat("u", u, system.nu, "one for every speed")
    if position.ndim != 1 or speed.ndim != 1:
        raise StateError(f"{what}: one state at a time; q has shape {position.shape}")
    check_finite(what, "q", position, system.coordinate_names)
    check_finite(what, "u", speed, system.speed_names)
    when = one_time(t if t is not None else state[2] if len(state) > 2 else 0.0)
    if system.model.tree.looped:
        gap = float(np.abs(system.loop_error(position, t=when)).max(initial=0.0))
        rate = float(np.abs(system.loop_rate_error(position, speed, t=when)).max(initial=0.0))
        if gap > 1e-7 or rate > 1e-6 * (1.0 + float(np.abs(speed).max(initial=0.0))):
            raise StateError(f"{what}: the loops of {system.model.name!r} are open by {gap:.3g} (rate {rate:.3g}); "
                             "use assemble() or project()")
    return State(*with_laws(system, system.normalize(position), speed.copy(), when), when)


def driven_entries(system: System, keys: Iterable[str], what: str) -> list[int]:
    """Speeds of joints or coordinates by name; prescribed ones are refused."""
    mask = system.model.prescribed_mask()
    out: list[int] = []
    for key in keys:
        entries = system.model.configuration.speed_entries(key)
        if mask[entries].any():
            raise ModelError(f"{what}: joint {key!r} follows a prescribed motion already")
        out += entries
    return list(dict.fromkeys(out))


def length_scale(system: System, q: Floats, t: float) -> float:
    """A length typical of the machine in one position [m], at most 1."""
    points = np.array([system.pose(q, b, t=t).position for b in system.body_names] + [system.center_of_mass(q, t=t)])
    spread = float(np.abs(points - points.mean(axis=0)).max(initial=0.0))
    return min(1.0, spread) if spread > 1e-9 else 1.0


def _svd(matrix: Floats) -> tuple[Floats, Floats, Floats]:
    """Singular value factors; zero where the matrix is not finite, which LAPACK would never return from."""
    bad = ~np.isfinite(matrix).all(axis=(-2, -1), keepdims=True)
    u, s, vt = np.linalg.svd(np.where(bad, 0.0, matrix) if bad.any() else matrix, full_matrices=False)
    return u, s, vt


def _size(value: Floats) -> Floats:
    size = np.abs(value).max(axis=-1, initial=0.0)
    return np.where(np.isfinite(size), size, np.inf)


def _times(matrix: Floats, vector: Floats) -> Floats:
    return np.asarray((matrix @ vector[..., None])[..., 0])
