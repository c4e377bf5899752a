"""Equations of motion in independent speeds: what remains of a machine when its loops are solved.

With N the motions that the loops leave, u = N v + c and udot = N vdot + d, the equations of the spanning tree,
M udot + h = tau + J^T lambda, become

    (N^T M N) vdot + N^T (h + M d) = N^T tau                                        (1)

because J N = 0. The independent speeds v are those that the user asked for, or those of the plan that forward dynamics
tries first; one state that is a dead point for them gets others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, check_time, flat
from bellcrank.errors import ModelError, SingularError
from bellcrank.loops.null_space import null_space
from bellcrank.loops.tolerances import MOVED
from bellcrank.system import body_kinematics
from bellcrank.system.drive_programs import allowed_motions
from bellcrank.system.force_terms import TERMS
from bellcrank.system.loop_errors import loop_jacobian, loop_rows
from bellcrank.system.tree_dynamics import bias, mass_matrix

if TYPE_CHECKING:
    from bellcrank.system.kernels import Wrenches
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["ReducedModel", "independent_motions", "motions_for", "reduced"]

#: nor are those so many times as fast as the independent speeds that they follow from
_FAST = 1e7


@dataclass(frozen=True)
class ReducedModel:
    """A machine at states (...) in its d independent speeds v: ``mass_matrix @ vdot + bias = motions.T @ tau``.

    `motions` N (..., nu, d) and `drift` (..., nu) give all accelerations, ``udot = N vdot + drift``; `offset` (..., nu)
    the speeds that prescribed motions cause, ``u = N v + offset``.
    """

    speeds: tuple[str, ...]  #: names of the independent speeds
    entries: tuple[int, ...]  #: their places in u
    motions: Floats
    offset: Floats
    drift: Floats
    mass_matrix: Floats  #: (..., d, d)
    bias: Floats  #: (..., d)
    _plans: LoopPlans = field(repr=False)
    _q: Floats = field(repr=False)
    _t: npt.ArrayLike = field(repr=False)

    def jacobian(self, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Floats:
        """J N with [angular velocity; velocity of a point of the body] = J N v + J offset, world axes, (..., 6, d)."""
        whole = body_kinematics.jacobian(self._plans.kernels, self._q, body, point, self._t)
        return np.asarray(whole @ self.motions)

    def operational_inertia(self, body: str, point: npt.ArrayLike = (0.0, 0.0, 0.0)) -> Floats:
        """The inertia (..., 6, 6) that a wrench [moment; force] at a point of the body, in world axes, feels: the
        inverse of J M^-1 J^T in the independent speeds. Along what the body cannot do it is zero: the wrench moves
        nothing there."""
        jacobian = self.jacobian(body, point)
        mobility = jacobian @ np.linalg.solve(self.mass_matrix, np.swapaxes(jacobian, -1, -2))
        return np.asarray(np.linalg.pinv(mobility, rcond=1e-10, hermitian=True))

    def accelerations(self, rates: npt.ArrayLike) -> Floats:
        """All accelerations udot (..., nu) for those of the independent speeds (..., d)."""
        return np.asarray((self.motions @ np.asarray(rates, dtype=float)[..., None])[..., 0] + self.drift)


def reduced(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None,
            t: npt.ArrayLike = 0.0, terms: tuple[str, ...] = TERMS) -> ReducedModel:
    """Mass matrix, bias and motions in independent speeds. See `System.reduced`."""
    check_time(t)
    tree, names = plans.tree, plans.configuration.speed_names
    q = flat("q", q, tree.nq, "the coordinates")
    u = flat("u", u, tree.nu, "one for every speed")
    entries = plans.shown(q, t) if tree.looped else tuple(tree.free_speeds())
    try:
        motions, drift = _motions(plans, q, u, entries, t)
    except SingularError:
        if q.ndim > 1 or np.ndim(t):  # states of a batch have the same independent speeds
            raise
        entries = tuple(plans.at(q, float(np.asarray(t))).independent)
        motions, drift = _motions(plans, q, u, entries, t)
    lead = np.broadcast_shapes(motions.shape[:-2], drift.shape[:-1])
    motions = np.broadcast_to(motions, (*lead, tree.nu, len(entries)))
    whole, force = mass_matrix(plans.kernels, q, t), bias(plans, q, u, wrenches=wrenches, t=t, terms=terms)
    if "inertia" in terms:  # the bias holds what prescribed joints accelerate
        free = np.where(plans.model.prescribed_mask(), 0.0, drift)
        force = force + (whole @ free[..., None])[..., 0]
    turned = np.swapaxes(motions, -1, -2)
    own = np.where(plans.model.prescribed_mask(), plans.kernels.run("driven_speeds", {"q": q, "u": u}, None, t), u)
    offset = own - (motions @ own[..., list(entries), None])[..., 0]
    return ReducedModel(tuple(names[i] for i in entries), entries, motions, offset, drift, turned @ whole @ motions,
                        (turned @ force[..., None])[..., 0], plans, q, t)


def motions_for(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, speeds: str) -> Floats | None:
    """N of `independent_motions` where functions of machines with loops refer to independent speeds; None for those of
    the tree."""
    if speeds not in ("independent", "tree"):
        raise ModelError(f"speeds is 'independent' or 'tree', got {speeds!r}")
    return independent_motions(plans, q, t) if plans.tree.looped and speeds == "independent" else None


def independent_motions(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike = 0.0) -> Floats:
    """N (..., nu, d) with u = N v for the independent speeds v (`LoopPlans.shown`), without what laws of time cause."""
    place = flat("q", q, plans.tree.nq, "the coordinates")
    return _motions(plans, place, np.zeros(plans.tree.nu), plans.shown(place, t), t)[0]


def _motions(plans: LoopPlans, q: Floats, u: Floats, entries: tuple[int, ...], t: npt.ArrayLike
             ) -> tuple[Floats, Floats]:
    """N, and the accelerations at rest of the independent speeds."""
    if not plans.tree.looped:
        return _of_tree(plans, q, u, entries, t)
    own = plans.first(q, t).independent if plans.tree.loop_speeds()[list(entries)].any() else entries
    quick = allowed_motions(plans, q, u, t)
    own = plans.first(q, t).independent if quick is not None else own
    motions, drift = _of_constraints(plans, q, u, own, t) if quick is None else quick
    if own != entries:
        turned = motions[..., list(entries), :]
        sizes = plans.tree.speed_sizes
        shares = turned * sizes[list(own)] / sizes[list(entries)][:, None]
        there = ~np.isnan(shares).any(axis=(-1, -2), keepdims=True)  # not of states that are absent
        if len(own) != len(entries) or (np.linalg.cond(np.where(there, shares, np.eye(len(own)))) > _FAST).any():
            raise _dead_point(plans, entries)
        motions = motions @ np.linalg.inv(turned)
        motions[..., list(entries), :] = np.eye(len(entries))
        drift = drift - (motions @ drift[..., list(entries), None])[..., 0]
        drift[..., list(entries)] = 0.0
    return motions, drift


def _of_tree(plans: LoopPlans, q: Floats, u: Floats, entries: tuple[int, ...], t: npt.ArrayLike
             ) -> tuple[Floats, Floats]:
    drift = np.where(plans.model.prescribed_mask(), plans.kernels.run("prescribed", {"q": q, "u": u}, None, t), 0.0)
    motions = np.zeros((*q.shape[:-1], plans.tree.nu, len(entries)))
    motions[..., list(entries), np.arange(len(entries))] = 1.0
    return motions, drift


def _of_constraints(plans: LoopPlans, q: Floats, u: Floats, entries: tuple[int, ...], t: npt.ArrayLike
                    ) -> tuple[Floats, Floats]:
    """The same for independent speeds of links, by singular values."""
    tree = plans.tree
    motions, drift = _of_tree(plans, q, u, entries, t)
    rest = [i for i in tree.free_speeds() if i not in set(entries)]
    matrix = loop_jacobian(plans, q, t=t)
    solve = null_space(matrix[..., rest], plans.loops.row_sizes, tree.speed_sizes[rest])[0]
    motions[..., rest, :] = -solve @ matrix[..., list(entries)]
    _check_motions(plans, matrix, motions, entries)
    drift = np.broadcast_to(drift, (*np.broadcast_shapes(drift.shape[:-1], q.shape[:-1]), tree.nu)).copy()
    drift[..., rest] += (solve @ plans.loops.gamma(q, u, t)[..., None])[..., 0]
    if tree.loop_joints:
        motions = motions + loop_rows(plans, q, t) @ motions
        drift = plans.kernels.run("joint_accelerations", {"q": q, "u": u, "udot": drift}, None, t)
    return motions, drift


def _check_motions(plans: LoopPlans, matrix: Floats, motions: Floats, entries: tuple[int, ...]) -> None:
    """Refuse states in which the independent speeds do not determine the others."""
    sizes = plans.tree.speed_sizes
    motions, matrix = motions * sizes[list(entries)] / sizes[:, None], matrix * sizes / plans.loops.row_sizes[:, None]
    fast = np.abs(motions).max(axis=(-1, -2), initial=1.0)
    left = np.abs(matrix @ motions).max(axis=(-1, -2), initial=0.0) / (
        fast * np.abs(matrix).max(axis=(-1, -2), initial=1e-300))
    dead = np.asarray((fast > _FAST) | (left > MOVED) | ~np.isfinite(fast)) & ~np.isnan(matrix).any(axis=(-1, -2))
    if not dead.any():
        return
    raise _dead_point(plans, entries, tuple(int(i) for i in np.argwhere(dead)[0]))


def _dead_point(plans: LoopPlans, entries: tuple[int, ...], index: tuple[int, ...] = ()) -> SingularError:
    names = ", ".join(plans.configuration.speed_names[i] for i in entries)
    return SingularError(f"reduced: {plans.tree.name!r} is at a dead point for the speeds {names}"
                        f"{f' at batch index {index}' if index else ''}, which do not determine its motion there; ask "
                        "for such states one by one, or compile with other independent=")
