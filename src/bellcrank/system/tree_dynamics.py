"""Dynamics of the spanning tree: forces for given accelerations, mass matrix, bias, momenta, as if loops were open."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats
from bellcrank.errors import NotYetError
from bellcrank.system.element_trouble import explain_elements
from bellcrank.system.evaluator import UNROLL_LINKS
from bellcrank.system.force_elements import element_wrenches, wrenches_on_bodies
from bellcrank.system.force_terms import TERMS, in_terms
from bellcrank.system.kernels import Wrenches

if TYPE_CHECKING:
    from bellcrank.system.evaluator import Evaluator
    from bellcrank.system.kernels import Kernels
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.topology.tree import Tree

__all__ = ["FORCED", "bias", "mass_matrix", "run_forced", "tree_forces", "with_elements",
           "without_laws"]

#: functions that springs between links enter as forces
FORCED = ("forward_dynamics", "inverse_dynamics", "bias", "joint_wrenches", "hamilton", "constrained_hamilton")


def run_forced(plans: LoopPlans, name: str, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
               evaluator: Evaluator | None = None, unmerged: Tree | None = None) -> Floats:
    """A function that force elements act in, on a batch; shape (*batch axes, size). `evaluator`: of another tree of the
    machine, `unmerged`, whose links are bodies."""
    if wrenches is None and evaluator is None and not plans.kernels.springs_outside:
        out = plans.kernels.quickly(name, given, t)
        if out is not None:
            return out
    found = plans.kernels.evaluate(name, given, with_elements(plans, given, wrenches, t, unmerged), t, evaluator)
    if not found.finite:
        plans.kernels.check_inputs(found)
        explain_elements(plans, *found.failed())
        plans.kernels.refuse(found)
    return found.result


def with_elements(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike,
                  unmerged: Tree | None = None) -> Wrenches:
    """External wrenches, with those of springs between links added where these act from outside of the kernels: on the
    first body of a link, or each on its own body of an `unmerged` tree."""
    if not plans.kernels.springs_outside:
        return wrenches
    if "u" not in given:
        if any(getattr(getattr(pair, "along", None), "damped", True) for pair in plans.tree.pairs):
            raise NotYetError(f"{plans.tree.name!r} has over {UNROLL_LINKS} links and springs between distant ones, "
                              "whose dampers need speeds: Hamilton's equations are not supported for it")
        given = {**given, "u": np.zeros(plans.tree.nu)}
    springs = element_wrenches(plans, given["q"], given["u"], t=t, tau=given.get("tau")) if unmerged is None else \
        wrenches_on_bodies(plans, unmerged, given, t)
    return springs if wrenches is None else springs + plans.model.wrench_rows(wrenches)


def without_laws(plans: LoopPlans, forces: Floats, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
    """Joint forces less what springs and other laws on the joints contribute."""
    if not plans.tree.joint_forces:
        return forces
    return forces - plans.kernels.run("joint_laws", {"q": q, "u": u}, None, t)


def tree_forces(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, udot: npt.ArrayLike, wrenches: Wrenches,
                t: npt.ArrayLike, tau: npt.ArrayLike | None = None) -> Floats:
    """Joint forces for given accelerations. `tau`: those that are given, for a machine in which forces along loop
    joints act. Cost: O(n)."""
    given = {"q": q, "u": u, "udot": udot, "tau": np.zeros(plans.tree.nu) if tau is None else tau}
    return without_laws(plans, run_forced(plans, "inverse_dynamics", given, wrenches, t), q, u, t)


def mass_matrix(kernels: Kernels, q: npt.ArrayLike, t: npt.ArrayLike) -> Floats:
    """Joint-space mass matrix, shape (..., nu, nu). Cost: O(n * depth)."""
    rows = kernels.run("mass_matrix", {"q": q}, None, t)
    return rows.reshape(*rows.shape[:-1], kernels.tree.nu, kernels.tree.nu)


def bias(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, *, wrenches: Wrenches = None,
         t: npt.ArrayLike = START, terms: tuple[str, ...] = TERMS) -> Floats:
    """Joint forces at zero acceleration. Cost: O(n)."""
    def forces(machine: LoopPlans, acting: Wrenches) -> Floats:
        return without_laws(machine, run_forced(machine, "bias", {"q": q, "u": u}, acting, t), q, u, t)

    return in_terms(plans, terms, forces, wrenches)
