"""Inertial parameters from measured motion: which combinations show, and their values, physical ones.

Inverse dynamics is linear in the inertial parameters p, Y p = τ - rest (`System.regressor`). Not all of them show in
the forces: a rotation about a fixed axis knows one moment of inertia alone. `base_parameters` finds the combinations
that do, by the rank of Y over many states (M. Gautier, "Numerical calculation of the base inertial parameters of
robots", 1991).

`identify` fits p to data. Bodies stay physical: each has a positive-definite pseudo-inertia (P. M. Wensing, S. Kim,
J.-J. E. Slotine, "Linear matrix inequalities for physically consistent inertial parameter identification", 2018)

    [ Σ   h ]        Σ = ½ tr(I) 1 - I,  h = m c,
    [ hᵀ  m ] = U Uᵀ      U upper triangular, its diagonal exp of variables    (1)

so that the variables are free (C. Rucker and P. M. Wensing, "Smooth parameterization of rigid-body inertia", 2022), and
what the data do not show stays near the model's own values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.errors import ModelError, StateError
from bellcrank.mechanism.inertia import Inertia
from bellcrank.spatial import RigidInertia, Symmetric3, Vector
from bellcrank.system.regression import INERTIAL, inertial_names, inertial_values

if TYPE_CHECKING:
    from bellcrank.compiled.system import System

__all__ = ["BaseParameters", "Identified", "base_parameters", "identify", "inertial_parameters"]

#: singular values below this part of the largest mean nothing
_RANK = 1e-9
_COUNT = len(INERTIAL)
_UPPER = np.triu_indices(4)


def inertial_parameters(system: System) -> dict[str, float]:
    """Names and values of the inertial parameters of all bodies, as the columns of `System.regressor` have them.

    >>> import bellcrank as bc
    >>> arm = bc.compile(bc.load("pendulum"))
    >>> list(bc.analyze.inertial_parameters(arm))[:4]
    ['bob.mass', 'bob.mx', 'bob.my', 'bob.mz']
    """
    system.model.tree.refuse_flexible("inertial_parameters")
    values = inertial_values(system.plans)
    if values.ndim > 1:
        raise ModelError(f"{system.model.name!r} has arrays of parameters: ask about one machine at a time")
    return dict(zip(inertial_names(system.plans), values.tolist(), strict=True))


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Combinations of inertial parameters that forces show: base = matrix @ p, and Y p = Y[:, columns] @ base."""

    names: tuple[str, ...]  #: the parameters that stand for the combinations
    columns: tuple[int, ...]  #: their places among all
    matrix: Floats  #: (combinations, 10 bodies)
    every: tuple[str, ...]  #: names of all

    def __str__(self) -> str:
        lines = []
        for name, row in zip(self.names, self.matrix, strict=True):
            rest = [f"{x:+.4g} {other}" for other, x in zip(self.every, row, strict=True)
                    if abs(x) > 1e-9 and other != name]
            lines.append(" ".join([name, *rest]))
        return "\n".join(lines)


def base_parameters(system: System, samples: int = 40, seed: int = 0) -> BaseParameters:
    """The combinations of inertial parameters that the forces of a machine show, by the rank of its regressor over
    random motions. Cost: one singular-value decomposition of (samples nu) x (10 bodies).

    >>> import bellcrank as bc
    >>> base = bc.analyze.base_parameters(bc.compile(bc.load("pendulum")))
    >>> len(base.names)          # one moment of inertia, and where the mass lies in the plane
    3
    """
    rng = np.random.default_rng(seed)
    q, u = _motions(system, rng, samples)
    udot = rng.normal(size=(samples, system.nu))
    if system.model.tree.looped:
        udot = np.stack([system.forward_dynamics(a, b, rng.normal(size=system.nu)) for a, b in zip(q, u, strict=True)])
    rows = system.regressor(q, u, udot).reshape(samples * system.nu, -1)
    return _base(rows, inertial_names(system.plans))


def _motions(system: System, rng: np.random.Generator, samples: int) -> tuple[Floats, Floats]:
    q, u = system.random_state(rng, samples)
    if not system.model.tree.looped:
        return q, u
    start = system.assemble()
    near = system.integrate(start.q, 0.2 * rng.normal(size=(samples, system.nu)))
    found = system.project(near, u)
    return found.q, found.u


def _base(rows: Floats, names: tuple[str, ...]) -> BaseParameters:
    from scipy.linalg import qr

    size = np.abs(rows).max(initial=0.0)
    _, r, order = qr(rows, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(r))
    rank = int((diagonal > _RANK * max(size, diagonal.max(initial=0.0))).sum())
    kept, rest = order[:rank], order[rank:]
    matrix = np.zeros((rank, rows.shape[1]))
    matrix[np.arange(rank), kept] = 1.0
    if len(rest):
        matrix[:, rest] = np.linalg.solve(r[:rank, :rank], r[:rank, rank:])
    matrix[np.abs(matrix) < 1e-10] = 0.0
    turn = np.argsort(kept)
    return BaseParameters(tuple(names[i] for i in kept[turn]), tuple(int(i) for i in kept[turn]), matrix[turn], names)


@dataclass(frozen=True, eq=False)
class Identified:
    """Inertial parameters that fit measurements."""

    parameters: dict[str, float]  #: by name, `System.regressor` has the columns
    inertias: dict[str, Inertia]  #: of the bodies, all physical
    base: BaseParameters  #: the combinations that the data show
    values: Floats  #: of these combinations
    deviations: Floats  #: their standard deviations, from the scatter of the data
    residual: float  #: root mean square of what is left of the forces

    def __str__(self) -> str:
        lines = [f"residual {self.residual:.4g}"]
        lines += [f"{name:24} {value:+.6g} ± {d:.2g}" for name, value, d in
                  zip(self.base.names, self.values, self.deviations, strict=True)]
        return "\n".join(lines)


def identify(system: System, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, tau: npt.ArrayLike, *,
             joints: Sequence[str] | None = None, bodies: Sequence[str] | None = None, prior: float = 1e-3,
             weights: Mapping[str, float] | None = None, t: npt.ArrayLike = 0.0) -> Identified:
    """Inertial parameters of the bodies from measured motion (samples, ...) and joint forces `tau` (samples, nu).

    `joints` whose forces were measured (all with drives if not given), `bodies` to be found (all that have mass; others
    keep theirs). `prior` pulls what the data hardly show to the model's values: how many residuals of one standard
    deviation a change of a body by its own size costs. `weights` {joint: w} divide forces by their accuracy. Bodies
    stay physical. With loops, the forces are those at the drives. Cost: some twenty linear least-squares problems.
    """
    check_time(t)
    position, speeds = flat("q", q, system.nq, "the coordinates"), flat("u", u, system.nu, "one for every speed")
    rates, force = (flat(name, x, system.nu, "one for every speed") for name, x in (("udot", udot), ("tau", tau)))
    if position.ndim != 2 or not len(position) == len(speeds) == len(rates) == len(force):
        raise StateError("identify: q, u, udot and tau need one row for every sample, as many of each")
    matrix = system.regressor(position, speeds, rates, t=t)
    own = inertial_values(system.plans)
    needed = system.inverse_dynamics(position, speeds, rates, t=t)
    rest = needed - matrix @ own  # rotors, springs and other loads
    rows = _rows_of(system, joints, needed)
    scale = np.array([1.0 / float((weights or {}).get(system.speed_names[v].rpartition(".")[0], 1.0)) for v in rows])
    wide = (matrix[:, rows] * scale[:, None]).reshape(-1, matrix.shape[-1])
    right = ((force - rest)[:, rows] * scale).reshape(-1)
    found = _fitted(system, wide, right, own, bodies, prior)
    base = _base(wide, inertial_names(system.plans))
    left = right - wide @ found
    spread = float(left @ left) / max(1, len(right) - len(base.names))
    chosen = wide[:, list(base.columns)]
    covariance = spread * np.linalg.pinv(chosen.T @ chosen)
    named = dict(zip(inertial_names(system.plans), found.tolist(), strict=True))
    return Identified(named, _inertias(system, found), base, base.matrix @ found, np.sqrt(np.diag(covariance)),
                      float(np.sqrt(np.mean(left * left))))


def _rows_of(system: System, joints: Sequence[str] | None, needed: Floats) -> list[int]:
    """Speeds whose forces are looked at."""
    if joints is not None:
        return [v for name in joints for v in system.model.configuration.speed_entries(name)]
    driven = system.model.prescribed_mask()
    shown = np.abs(needed).max(axis=0) > 0.0 if system.model.tree.looped else ~driven
    return np.flatnonzero(shown & ~driven).tolist()


def _inertias(system: System, values: Floats) -> dict[str, Inertia]:
    out = {}
    for k, name in enumerate(system.body_names):
        p = values[_COUNT * k:_COUNT * (k + 1)].tolist()
        out[name] = Inertia.from_rigid(RigidInertia(p[0], Vector(*p[1:4]), Symmetric3(*p[4:])))
    return out


def _fitted(system: System, wide: Floats, right: Floats, own: Floats, bodies: Sequence[str] | None, prior: float
            ) -> Floats:
    """All parameters, those of the chosen bodies by least squares in the variables of (1)."""
    from scipy.optimize import least_squares

    names = list(system.body_names)
    wanted = [name for k, name in enumerate(names) if own[_COUNT * k] > 0.0] if bodies is None else list(bodies)
    for name in wanted:
        if name not in names:
            raise ModelError(f"identify: no body {name!r}; there are {', '.join(names)}")
    starts = np.concatenate([_variables(own[_COUNT * names.index(n):][:_COUNT], n) for n in wanted]) if wanted else \
        np.zeros(0)
    places = np.concatenate([np.arange(_COUNT) + _COUNT * names.index(n) for n in wanted]).astype(int) if wanted else \
        np.zeros(0, dtype=int)
    noise = float(np.sqrt(np.mean((right - wide @ np.linalg.lstsq(wide, right, rcond=None)[0]) ** 2)))
    noise = max(noise, 1e-12 * float(np.abs(right).max(initial=0.0)), 1e-300)
    pull = prior * noise

    def whole(x: Floats) -> Floats:
        p = own.copy()
        p[places] = np.concatenate([_parameters(part)[0] for part in x.reshape(-1, _COUNT)])
        return p

    def residuals(x: Floats) -> Floats:
        return np.concatenate([wide @ whole(x) - right, pull * (x - starts)])

    def slopes(x: Floats) -> Floats:
        blocks = [wide[:, places[_COUNT * k:_COUNT * (k + 1)]] @ _parameters(part)[1]
                  for k, part in enumerate(x.reshape(-1, _COUNT))]
        return np.vstack([np.hstack(blocks), pull * np.eye(len(x))])

    if not wanted:
        return own
    return whole(least_squares(residuals, starts, slopes, method="trf", x_scale="jac", xtol=1e-12, ftol=1e-12,
                               gtol=1e-12, max_nfev=200).x)


def _parameters(x: Floats) -> tuple[Floats, Floats]:
    """The inertial parameters of a body from the variables of (1), and their derivatives (10, 10)."""
    upper = np.zeros((4, 4))
    upper[_UPPER] = x
    diagonal = np.arange(4)
    upper[diagonal, diagonal] = np.exp(upper[diagonal, diagonal])
    slopes = np.zeros((_COUNT, _COUNT))
    for k, (i, j) in enumerate(zip(*_UPPER, strict=True)):
        change = np.zeros((4, 4))
        change[i, j] = upper[i, i] if i == j else 1.0
        product = change @ upper.T
        slopes[:, k] = _from_pseudo(product + product.T)
    return _from_pseudo(upper @ upper.T), slopes


def _from_pseudo(matrix: Floats) -> Floats:
    """Mass, first and second moments of a pseudo-inertia."""
    sigma, first, mass = matrix[:3, :3], matrix[:3, 3], matrix[3, 3]
    second = np.trace(sigma) * np.eye(3) - sigma
    return np.array([mass, *first, *second[np.triu_indices(3)]])


def _variables(p: Floats, name: str) -> Floats:
    """The variables of (1) for a body; one that has no volume (a rod, a point) is given a little."""
    second = np.zeros((3, 3))
    second[np.triu_indices(3)] = p[4:]
    second = second + np.triu(second, 1).T
    sigma = 0.5 * np.trace(second) * np.eye(3) - second
    pseudo = np.block([[sigma, p[1:4, None]], [p[None, 1:4], np.array([[p[0]]])]])
    little = 1e-6 * max(float(np.trace(sigma)), 1e-9 * float(p[0]))
    for _ in range(12):
        try:  # U Uᵀ with U upper triangular: Cholesky from below
            lower = np.linalg.cholesky(pseudo[::-1, ::-1])
        except np.linalg.LinAlgError:
            pseudo[:3, :3] += little * np.eye(3)
            little *= 10.0
            continue
        upper = lower[::-1, ::-1].copy()
        upper[np.arange(4), np.arange(4)] = np.log(np.diag(upper))
        return np.asarray(upper[_UPPER])
    raise ModelError(f"identify: the inertia of {name!r} in the model is not physical; correct it first, or leave the "
                     "body out with bodies=[...]")
