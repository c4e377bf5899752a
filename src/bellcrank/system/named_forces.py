"""Joint forces, also of loop joints: these act as wrenches on the two bodies that they connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, check_unmasked, flat
from bellcrank.lowering.element_loads import unit_forces
from bellcrank.system.force_elements import binder, link_motions, on_bodies, stacked
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_errors import closure_index

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
    place = flat("q", q, plans.tree.nq, "the coordinates")
    turn, _ = plans.loops.poses(place, t)
    moving = link_motions(plans, place, None, t)
    found: list[tuple[int, Floats, int]] = []
    closing = {}
    for name, amount in forces.items():
        joint = plans.model.mechanism.joint(name)
        c = plans.tree.closures[closure_index(plans, name)]
        unit = unit_forces(c, moving, binder(plans))
        own = np.zeros(6)
        for k, column in enumerate(unit.columns):
            own = own + stacked(column) * amount[..., k, None]
        closing[name] = own
        for link, body, sign in ((c.first, joint.parent, -1.0), (c.second, joint.child, 1.0)):
            arm = np.stack(np.broadcast_arrays(*(unit.point - moving(link).origin)), axis=-1)
            moment = own[..., :3] + np.cross(arm, own[..., 3:])
            found.append((link, sign * np.concatenate(np.broadcast_arrays(moment, own[..., 3:]), axis=-1), body))
    return on_bodies(plans, found, turn, place.shape[:-1]), closing
