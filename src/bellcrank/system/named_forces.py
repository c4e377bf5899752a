"""Joint forces by name, also of joints that were cut: these act as wrenches on the two bodies they connect."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats, Forces, by_name, flat
from bellcrank.lowering.element_loads import closing_motion
from bellcrank.system.force_elements import binder, link_motions, on_bodies, stacked
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_errors import closure_index

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans

__all__ = ["GivenForces", "closing_part", "given_forces"]


class GivenForces(NamedTuple):
    """Forces of the tree's joints (..., nu), wrenches that act on bodies besides, and what joints that were cut exert
    on their children about their points there (..., 6), world axes, by name."""

    tau: npt.ArrayLike
    wrenches: Wrenches
    closing: dict[str, Floats]


def given_forces(plans: LoopPlans, q: npt.ArrayLike, tau: Forces | None, wrenches: Wrenches = None,
                 t: npt.ArrayLike = 0.0) -> GivenForces:
    """What forces of joints, an array or by name, do to the tree and to its bodies."""
    if tau is None:
        return GivenForces(np.zeros(plans.tree.nu), wrenches, {})
    own = closing_part(plans, tau)
    if not own:
        return GivenForces(plans.configuration.forces(tau), wrenches, {})
    bodies, closing = _wrenches(plans, q, own, t)
    if wrenches is not None:
        bodies = bodies + plans.model.wrench_rows(wrenches)
    assert isinstance(tau, Mapping)
    rest = {key: value for key, value in tau.items() if plans.configuration.split(key)[0] not in plans.tree.cut_names}
    return GivenForces(plans.configuration.forces(rest), bodies, closing)


def closing_part(plans: LoopPlans, tau: Forces) -> dict[str, Floats]:
    """Forces (..., nu of the joint) of joints that were cut, from {joint or joint.speed: values}."""
    if not isinstance(tau, Mapping):
        return {}
    out: dict[str, Floats] = {}
    for name in plans.tree.cut_names:
        labels = plans.model.mechanism.joint(name).joint.speed_names
        places = {name: list(range(len(labels)))} | {f"{name}.{label}": [k] for k, label in enumerate(labels)}
        own = {key: value for key, value in tau.items() if key in places}
        if own:
            out[name] = by_name("tau", own, places.__getitem__, len(labels))
    return out


def _wrenches(plans: LoopPlans, q: npt.ArrayLike, forces: Mapping[str, Floats], t: npt.ArrayLike
              ) -> tuple[Floats, dict[str, Floats]]:
    """Wrenches on all bodies (..., bodies, 6), and on the children of the joints (..., 6), world axes."""
    place = flat("q", q, plans.tree.nq, "the coordinates")
    turn, _ = plans.loops.poses(place, t)
    moving = link_motions(plans, place, None, t)
    found: list[tuple[int, Floats]] = []
    closing = {}
    for name, amount in forces.items():
        c = plans.tree.closures[closure_index(plans, name)]
        motion = closing_motion(c, moving, binder(plans))
        own = np.zeros(6)
        for k, column in enumerate(motion.columns):
            own = own + stacked(column) * amount[..., k, None]
        closing[name] = own
        for link, sign in ((c.first, -1.0), (c.second, 1.0)):
            arm = np.stack(np.broadcast_arrays(*(motion.point - moving(link).origin)), axis=-1)
            moment = own[..., :3] + np.cross(arm, own[..., 3:])
            found.append((link, sign * np.concatenate(np.broadcast_arrays(moment, own[..., 3:]), axis=-1)))
    return on_bodies(plans, found, turn, place.shape[:-1]), closing
