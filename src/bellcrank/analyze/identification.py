"""Inertial parameters from measured motion: which combinations show, and their values, physical ones.

Inverse dynamics is linear in the inertial parameters p, Y p = τ - rest (`System.regressor`). Not all of them show in
the forces: a rotation about a fixed axis knows one moment of inertia alone. `base_parameters` finds the combinations
that do, by the rank of Y over many states (M. Gautier, "Numerical calculation of the base inertial parameters of
robots", 1991).

`identify` fits p to data. Bodies stay physical: each has a positive-definite pseudo-inertia (P. M. Wensing, S. Kim,
J.-J. E. Slotine, "Linear matrix inequalities for physically consistent inertial parameter identification", 2018)

    [ Σ   h ]                    Σ = ½ tr(I) 1 - I,  h = m c,
    [ hᵀ  m ] = U V Vᵀ Uᵀ        U of the model's own values; U, V upper triangular,
                                 diagonal of V exp of variables, its other entries variables     (1)

so that the variables are free (C. Rucker and P. M. Wensing, "Smooth parameterization of rigid-body inertia", 2022),
zero for the model's own values, and one for a change of a body by its own size. What the data do not show stays near
the model's values: masses of single bodies are rarely determined, combinations (`Identified.base`) are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat, how_many, random_source
from bellcrank.compiled.system import System
from bellcrank.errors import BellcrankWarning, ModelError, StateError, outside
from bellcrank.mechanism.inertia import Inertia
from bellcrank.spatial import RigidInertia, Symmetric3, Vector
from bellcrank.system.regression import INERTIAL, inertial_names, inertial_values

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
    rng, samples = random_source(seed), how_many("base_parameters: samples", samples)
    q, u = _motions(system, rng, samples)
    sizes = system.model.tree.speed_sizes
    udot = rng.normal(size=(samples, system.nu)) * sizes
    if system.model.tree.looped:
        effort = system.model.tree.effort / sizes
        udot = np.stack([system.forward_dynamics(a, b, rng.normal(size=system.nu) * effort)
                         for a, b in zip(q, u, strict=True)])
    rows = (system.regressor(q, u, udot) * sizes[:, None]).reshape(samples * system.nu, -1)
    return _base(rows, system)


def _motions(system: System, rng: np.random.Generator, samples: int) -> tuple[Floats, Floats]:
    tree = system.model.tree
    q, u = system.model.configuration.random_state(rng, samples)
    u = u * tree.speed_sizes
    if not tree.looped:
        return q * tree.coordinate_sizes, u
    start = system.assemble()
    near = system.integrate(start.q, 0.2 * rng.normal(size=(samples, system.nu)) * tree.speed_sizes)
    found = system.project(near, u)
    return found.q, found.u


def _base(rows: Floats, system: System) -> BaseParameters:
    """By columns in units of mass, so that they can be compared."""
    from scipy.linalg import qr

    names, length = inertial_names(system.plans), system.model.tree.length
    units = np.resize([1.0, *(length,) * 3, *(length**2,) * 6], rows.shape[1])
    rows = rows * units
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
    matrix = matrix * units[kept][:, None] / units
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
    unconstrained: float  #: the same of the linear fit, in which bodies need not be physical

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
    stay physical. With loops, the forces are those at the drives.

    The data determine the combinations in `Identified.base`, with the standard deviations given there. The mass of a
    single body is usually not among them: it may differ from the true one although all forces are right. A warning says
    if physical bodies fit the data worse than the linear fit does.
    Cost: one QR factorization of the regressor, then some twenty least-squares problems in its parameters alone.
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
    found, unconstrained = _fitted(system, wide, right, own, bodies, prior)
    base = _base(wide, system)
    left = right - wide @ found
    spread = float(left @ left) / max(1, len(right) - len(base.names))
    chosen = wide[:, list(base.columns)]
    covariance = spread * np.linalg.pinv(chosen.T @ chosen)
    named = dict(zip(inertial_names(system.plans), found.tolist(), strict=True))
    return Identified(named, _inertias(system, found), base, base.matrix @ found, np.sqrt(np.diag(covariance)),
                      float(np.sqrt(np.mean(left * left))), unconstrained)


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
            ) -> tuple[Floats, float]:
    """All parameters, those of the chosen bodies by least squares in the variables of (1), and the root mean square
    of what the linear fit leaves."""
    places, factors = _chosen(system, own, bodies)
    n, known = len(places), own.copy()
    known[places] = 0.0
    # Q R of the regressor and the forces: sums of squares of the residuals are those of R's rows
    triangle: Floats = np.asarray(np.linalg.qr(np.column_stack([wide[:, places], right - wide @ known]), mode="r"))
    matrix, target = triangle[:, :n], triangle[:, n]
    rest = target - matrix @ np.linalg.lstsq(matrix, target, rcond=None)[0]
    unconstrained = float(np.sqrt(rest @ rest / len(right)))
    if not n:
        return own, unconstrained
    pull = prior * max(unconstrained, 1e-12 * float(np.abs(right).max(initial=0.0)), 1e-300)
    values, squares, converged = _physical_fit(matrix, target, factors, pull)
    residual = float(np.sqrt(squares / len(right)))
    if residual > 1.5 * unconstrained + 1e-6 * float(np.abs(right).max(initial=0.0)):
        cause = "" if converged else " (the search did not converge: a larger prior, or fewer bodies, may help)"
        warnings.warn(f"identify: physical bodies of {system.model.name!r} leave {residual:.4g} of the forces, the "
                      f"linear fit {unconstrained:.4g}{cause}: check signs and units of the data, and friction and "
                      "loads that the model lacks", BellcrankWarning, stacklevel=outside())
    known[places] = values
    return known, unconstrained


def _chosen(system: System, own: Floats, bodies: Sequence[str] | None) -> tuple[npt.NDArray[np.int64], list[Floats]]:
    """The places of the parameters of the chosen bodies, and the factors U of (1) of each of these."""
    names = list(system.body_names)
    wanted = [name for k, name in enumerate(names) if own[_COUNT * k] > 0.0] if bodies is None else list(bodies)
    for name in wanted:
        if name not in names:
            raise ModelError(f"identify: no body {name!r}; there are {', '.join(names)}")
    first = [_COUNT * names.index(name) for name in wanted]
    return (np.add.outer(np.array(first, dtype=np.int64), np.arange(_COUNT)).reshape(-1),
            [_factor(own[k:k + _COUNT], name) for k, name in zip(first, wanted, strict=True)])


def _physical_fit(matrix: Floats, target: Floats, factors: list[Floats], pull: float) -> tuple[Floats, float, bool]:
    """The parameters that fit best, the sum of squares of what they leave, and whether the search converged."""
    from scipy.optimize import least_squares

    def values(x: Floats) -> Floats:
        parts = zip(x.reshape(-1, _COUNT), factors, strict=True)
        return np.concatenate([_parameters(part, factor)[0] for part, factor in parts])

    def residuals(x: Floats) -> Floats:
        return np.concatenate([matrix @ values(x) - target, pull * x])

    def slopes(x: Floats) -> Floats:
        blocks = [matrix[:, _COUNT * k:_COUNT * (k + 1)] @ _parameters(part, factors[k])[1]
                  for k, part in enumerate(x.reshape(-1, _COUNT))]
        return np.vstack([np.hstack(blocks), pull * np.eye(len(x))])

    # the variables are of one size: scaled by columns ("jac"), those that the data do not show would run away
    found = least_squares(residuals, np.zeros(_COUNT * len(factors)), slopes, method="trf", x_scale=1.0, xtol=1e-12,
                          ftol=1e-12, gtol=1e-12, max_nfev=500)
    best = values(found.x)
    left = matrix @ best - target
    return best, float(left @ left), found.status > 0


def _parameters(x: Floats, factor: Floats) -> tuple[Floats, Floats]:
    """The inertial parameters of a body from the variables of (1), and their derivatives (10, 10)."""
    v = np.zeros((4, 4))
    v[_UPPER] = x
    diagonal = np.arange(4)
    v[diagonal, diagonal] = np.exp(v[diagonal, diagonal])
    slopes = np.zeros((_COUNT, _COUNT))
    for k, (i, j) in enumerate(zip(*_UPPER, strict=True)):
        change = np.zeros((4, 4))
        change[i, j] = v[i, i] if i == j else 1.0
        product = factor @ change @ v.T @ factor.T
        slopes[:, k] = _from_pseudo(product + product.T)
    return _from_pseudo(factor @ v @ v.T @ factor.T), slopes


def _from_pseudo(matrix: Floats) -> Floats:
    """Mass, first and second moments of a pseudo-inertia."""
    sigma, first, mass = matrix[:3, :3], matrix[:3, 3], matrix[3, 3]
    second = np.trace(sigma) * np.eye(3) - sigma
    return np.array([mass, *first, *second[np.triu_indices(3)]])


def _factor(p: Floats, name: str) -> Floats:
    """The factor U of (1) of a body; one that has no volume (a rod, a point) is given a little."""
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
        return np.asarray(lower[::-1, ::-1])
    raise ModelError(f"identify: the inertia of {name!r} in the model is not physical; correct it first, or leave the "
                     "body out with bodies=[...]")
