"""Inverse dynamics of closed machines as compiled code: which program serves which drives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import AssemblyError
from bellcrank.formulations.elimination.closed_inverse import with_drives_at, with_more_drives
from bellcrank.lowering.function import Function
from bellcrank.system.evaluator import Evaluator
from bellcrank.system.kernels import NO_DOORS, DoorPair
from bellcrank.system.whole_programs import fits, whole_program
from bellcrank.target.backend import DoorForm

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["DriveProgram", "allowed_motions", "drive_entries", "drive_program", "drives_doors", "inverse_at",
           "usual_drives"]


class DriveProgram(NamedTuple):
    """A function by name, and what runs it."""

    name: str
    run: Evaluator
    shared: bool  #: whether there are more drives than degrees of freedom


def drive_entries(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, actuated: Sequence[str] | None
                  ) -> tuple[int, ...]:
    """Speeds with drives, prescribed ones left out: those of the joints named here or to `compile`, else the
    independent ones."""
    names = plans.model.options.actuated if actuated is None else tuple(actuated)
    if not names:
        return plans.shown(q, t)
    driven = plans.model.prescribed_mask()
    return tuple(sorted({v for name in names for v in plans.configuration.speed_entries(name) if not driven[v]}))


def drive_program(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, drives: tuple[int, ...]) -> DriveProgram | None:
    """The program for drives; None where there is none: for machines that are too large, methods without plans, drives
    that do not determine the motion."""
    if plans.model.dense_loops or plans.kernels.springs_outside:
        return None
    try:
        first = plans.first(q, t)
        loop_joints = bool(plans.tree.loop_speeds()[list(drives)].any())
        plan = first if loop_joints or set(first.independent) <= set(drives) else plans.driven_at(drives)
    except AssemblyError:  # open, and closed nowhere near; or plans are made where the states are
        return None
    if not plan.independent or len(drives) < len(plan.independent):
        return None
    if loop_joints or not set(plan.independent) <= set(drives):
        name = inverse_at(drives).name
        plans.kernels.functions.setdefault(name, inverse_at(drives))
    else:
        name = _function(plans, plan is first, tuple(v for v in drives if v not in plan.independent))
    run = plans.kernels.planned(plan)
    return DriveProgram(name, run, len(drives) > len(plan.independent)) if fits(plans, run, name) else None


def _function(plans: LoopPlans, usual: bool, extra: tuple[int, ...]) -> str:
    """The name of the function: the method's own where its source has one (for the usual plan), or that of all."""
    functions = plans.kernels.functions
    if not extra:
        own = "constrained_inverse" in functions and not plans.model.prescribed_mask().any() \
            and not plans.tree.joint_forces and usual
        return "constrained_inverse" if own else "closed_inverse"
    name = f"closed_inverse with drives at {extra}"
    functions.setdefault(name, Function(name, lambda tree: with_more_drives(tree, extra), ("q", "u", "udot"), "speeds",
                                        whole=True))
    return name


@cache
def inverse_at(drives: tuple[int, ...]) -> Function:
    """Inverse dynamics with drives at any speeds."""
    return Function(f"closed_inverse at {drives}", lambda tree: with_drives_at(tree, drives), ("q", "u", "udot"),
                    "vector", whole=True)


def usual_drives(plans: LoopPlans) -> DriveProgram | None:
    """The program for calls that name no drives, if states need no plans of their own."""
    try:
        q = plans.reference().q
    except AssemblyError:
        return None
    return drive_program(plans, q, 0.0, drive_entries(plans, q, 0.0, None))


def drives_doors(plans: LoopPlans) -> DoorPair:
    """Inverse dynamics of a closed machine at the least cost, (q, u, udot), where that is one kernel."""
    usual = usual_drives(plans)
    return NO_DOORS if usual is None else plans.kernels.door_pair(usual.name, DoorForm(), usual.run)


def allowed_motions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, t: npt.ArrayLike
                    ) -> tuple[Floats, Floats] | None:
    """N (..., nu, dof) and d (..., nu) with udot = N vdot + d for the independent speeds of the plan to try first; None
    where that takes another plan, or a method without plans, or a smaller machine."""
    run, kernels = whole_program(plans, q, t, "allowed_motions"), plans.kernels
    if run is None or not run.tree.plan.independent:
        return None
    plan = run.tree.plan
    doors = kernels.kept(("motions", plan.key), lambda: kernels.door_pair("allowed_motions", DoorForm(), run))
    rows: Floats | None = doors(q, u)
    if rows is None:
        found = kernels.evaluate("allowed_motions", {"q": q, "u": u}, None, t, run)
        if not found.finite:
            return None
        rows = found.result
    nu, dof = plans.tree.nu, len(plan.independent)
    return rows[..., :nu * dof].reshape(*rows.shape[:-1], nu, dof), rows[..., nu * dof:]
