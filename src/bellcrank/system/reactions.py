"""Reactions: the wrench that every joint exerts, also where it closes a loop, and at welds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, wrench_array
from bellcrank.system.body_kinematics import pose
from bellcrank.system.force_elements import actuator_forces, law_wrench
from bellcrank.system.forward_dynamics import forward_dynamics
from bellcrank.system.inverse_dynamics import inverse_dynamics
from bellcrank.system.kernels import Wrenches
from bellcrank.system.loop_loads import loop_loads
from bellcrank.system.tree_dynamics import run_forced
from bellcrank.topology.builder import build_tree
from bellcrank.topology.release import lock, release

if TYPE_CHECKING:
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.model import Model
    from bellcrank.topology.tree import Tree

__all__ = ["reactions"]


def reactions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
              udot: npt.ArrayLike | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START
              ) -> dict[str, Floats]:
    """Wrench [moment; force] that each joint exerts on its outboard body, drive included, shape (..., 6)."""
    if tau is None and udot is not None and plans.tree.looped:
        tau = inverse_dynamics(plans, q, u, udot, wrenches=wrenches, t=t)
    elif tau is not None:
        tau = actuator_forces(plans, q, u, tau, t=t)
    if udot is None:
        udot = forward_dynamics(plans, q, u, tau, wrenches=wrenches, t=t)
    loops: dict[str, Floats] = {}
    if plans.tree.looped:
        force = np.zeros(plans.tree.nu) if tau is None else tau
        loops, loads = _loop_reactions(plans, q, u, force, udot, wrenches, t)
        wrenches = loads if wrenches is None else wrench_array(wrenches, plans.model.body_names) + loads
    run = plans.kernels.of_tree("reactions", lambda: _unmerged(plans.model))
    raw = run_forced(plans, "joint_wrenches", {"q": q, "u": u, "udot": udot}, wrenches, t, run)
    tree = run.tree
    raw = raw.reshape(*raw.shape[:-1], tree.n, 2, 3)
    turn = tree.body_turn[[members[0] for members in tree.members[1:]]]  # body axes in link axes
    local = np.einsum("...nkj,nji->...nki", raw, turn)
    return {name: local[..., i, :, :].reshape(*local.shape[:-3], 6)
            for i, name in enumerate(tree.joint_names[1:])} | loops


def _unmerged(model: Model) -> Tree:
    """Every body a link of its own, frames at the joints, so that welds have reactions too."""
    tree = build_tree(model.mechanism, merge_welds=False, free_frames=False, cut=model.tree.cut_names)
    return lock(release(tree, model.released), model.locked)


def _closure_wrenches(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, loads: Floats, t: npt.ArrayLike
                      ) -> dict[str, tuple[Floats, Floats, Floats]]:
    """For every closure: the wrenches of its constraints on the first and on the second link, world axes, about
    the joint's point on the second, and that point."""
    loops, tree = plans.loops, plans.tree
    rows = loops.rows(q, u, t)
    turn, origin = loops.poses(q, t)
    out = {}
    for i, c in enumerate(tree.closures):
        some = slice(int(loops.starts[i]), int(loops.starts[i + 1]))
        point = origin[..., c.second, :] + (turn[..., c.second, :, :] @ plans.model.values_of(c.second_shift)[..., None]
                                            )[..., 0]
        pair = []
        for link, w in ((c.first, rows.first), (c.second, rows.second)):
            total = (w[..., some, :] * loads[..., some, None]).sum(axis=-2)
            arm = origin[..., link, :] - point
            pair.append(np.concatenate([total[..., :3] + np.cross(arm, total[..., 3:]), total[..., 3:]], axis=-1))
        out[c.name] = (pair[0], pair[1], point)
    return out


def _loop_reactions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces, udot: npt.ArrayLike,
                    wrenches: Wrenches, t: npt.ArrayLike) -> tuple[dict[str, Floats], Floats]:
    """Wrenches of closing joints on their children (body axes, about the joint), drive included; and what the
    closures do to all bodies, as external wrenches (..., bodies, 6)."""
    loads = loop_loads(plans, q, u, tau, udot, wrenches, t)
    lead = loads.shape[:-1]
    bodies = np.zeros((*lead, len(plans.tree.body_names) - 1, 6))
    parts: dict[str, Any] = {r.name: r for r in plans.model.mechanism.joints}
    parts |= {r.name: r for r in plans.model.mechanism.constraints}
    out = {}
    for i, (name, (first, second, point)) in enumerate(_closure_wrenches(plans, q, u, loads, t).items()):
        part = parts[name]
        for index, wrench in ((part.parent, first), (part.child, second)):
            if index:
                arm = point - pose(plans.kernels, q, plans.tree.body_names[index], t=t).position
                bodies[..., index - 1, :3] += wrench[..., :3] + np.cross(arm, wrench[..., 3:])
                bodies[..., index - 1, 3:] += wrench[..., 3:]
        total = second + law_wrench(plans, i, q, u, t)
        back = np.swapaxes(pose(plans.kernels, q, plans.tree.body_names[part.child], t=t).rotation, -1, -2)
        out[name] = np.concatenate([(back @ total[..., :3, None])[..., 0], (back @ total[..., 3:, None])[..., 0]],
                                   axis=-1)
    return out, bodies
