"""Joint forces, also of loop joints: these act as wrenches on the two bodies that they connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, check_unmasked, flat
from bellcrank.lowering.element_loads import element_loads, joint_load
from bellcrank.mechanism.forces.machine_force import KnownForce
from bellcrank.system.force_elements import machine_view, on_bodies, stacked
from bellcrank.system.kernels import Wrenches
from bellcrank.topology.pairs import SumForce

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["GivenForces", "given_forces", "loop_forces"]


class GivenForces(NamedTuple):
    """Forces of the tree's joints (..., nu), wrenches that act on bodies besides, and what loop joints exert
    on their children about their points there (..., 6), world axes, by name."""

    tau: npt.ArrayLike
    wrenches: Wrenches
    closing: dict[str, Floats]


def given_forces(plans: LoopPlans, q: npt.ArrayLike, tau: Forces | None, wrenches: Wrenches = None,
                 t: npt.ArrayLike = 0.0) -> GivenForces:
    """What forces of joints, an array or by name, do to the tree and to its bodies."""
    if tau is None:
        return GivenForces(np.zeros(plans.tree.nu), wrenches, {})
    rows = plans.configuration.forces(tau)
    own = loop_forces(plans, rows)
    if not own:
        return GivenForces(rows, wrenches, {})
    bodies, closing = _wrenches(plans, q, own, t)
    if wrenches is not None:
        bodies = bodies + plans.model.wrench_rows(wrenches)
    return GivenForces(np.where(plans.tree.loop_speeds(), 0.0, rows), bodies, closing)


def loop_forces(plans: LoopPlans, tau: npt.ArrayLike) -> dict[str, Floats]:
    """Forces (..., nu of the joint) along loop joints where there are some; joints whose loops are open have none."""
    if not plans.tree.loop_joints or np.shape(tau)[-1:] != (plans.tree.nu,):
        return {}
    check_unmasked("tau", tau)
    rows = np.asarray(tau, dtype=float)
    if not rows[..., plans.tree.loop_speeds()].any():
        return {}
    closed = {c.name for c in plans.tree.closures}
    return {own.name: rows[..., own.u] for own in plans.tree.loop_joints
            if own.name in closed and rows[..., own.u].any()}


def _wrenches(plans: LoopPlans, q: npt.ArrayLike, forces: Mapping[str, Floats], t: npt.ArrayLike
              ) -> tuple[Floats, dict[str, Floats]]:
    """Wrenches on all bodies (..., bodies, 6), and on the children of the joints (..., 6), world axes."""
    place, tree = flat("q", q, plans.tree.nq, "the coordinates"), plans.tree
    sight = machine_view(plans, place, None, t)
    found: list[tuple[int, Floats, int]] = []
    closing = {}
    for own in tree.loop_joints:
        if own.name not in forces:
            continue
        joint, link = plans.model.mechanism.joint(own.name), tree.joint_links[own.name]
        acting = tuple(SumForce(own.name, ((link, k, 1.0),), KnownForce(amount))
                       for k, amount in enumerate(np.moveaxis(forces[own.name], -1, 0)))
        for force in acting:
            loads = element_loads(tree, force, sight.moving, sight.bind, sight.around)  # the child's first
            found += [(end, stacked(load), body) for (end, load), body in zip(loads, (joint.child, joint.parent),
                                                                              strict=False)]
        closing[own.name] = stacked(joint_load(tree, link, sight.moving, sight.around, acting))
    return on_bodies(plans, found, plans.loops.poses(place, t)[0], place.shape[:-1]), closing
