"""Reactions: the wrench that every joint exerts, also where it closes a loop, and at welds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces, wrench_array
from bellcrank.errors import AssemblyError
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.system.body_kinematics import pose
from bellcrank.system.evaluator import Evaluator
from bellcrank.system.force_elements import actuator_forces, law_wrench
from bellcrank.system.forward_dynamics import forward_doors, forward_dynamics
from bellcrank.system.inverse_dynamics import inverse_dynamics
from bellcrank.system.kernels import NO_DOORS, DoorPair, Wrenches
from bellcrank.system.loop_loads import loop_loads
from bellcrank.system.tree_dynamics import run_forced
from bellcrank.system.whole_programs import with_careful_states
from bellcrank.target.backend import Door, DoorForm
from bellcrank.topology.builder import build_tree
from bellcrank.topology.release import carried_joints, lock, release

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.model import Model
    from bellcrank.topology.tree import Tree

__all__ = ["reaction_doors", "reactions"]


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
    program = reaction_program(plans, q, t)
    if program is not None:
        return _by_program(plans, program, {"q": q, "u": u, "tau": tau, "udot": udot}, wrenches, t)
    return _careful_reactions(plans, q, u, tau, udot, wrenches, t)


class ReactionProgram(NamedTuple):
    """What runs the function of all reactions, and the names of what exerts them."""

    run: Evaluator
    names: tuple[str, ...]


def reaction_program(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, plan: LoopPlan | None = None
                     ) -> ReactionProgram | None:
    """The program of all reactions, by a plan or the one to try first; None where there is none: for large machines,
    and methods without plans."""
    kernels = plans.kernels
    if kernels.springs_outside or plans.model.dense_loops:
        return None
    try:
        plan = (plan or plans.first(q, t)) if plans.tree.looped else None
    except AssemblyError:  # open, and closed nowhere near
        return None
    run = kernels.of_tree(("reactions", None if plan is None else plan.key),
                          lambda: replace(_unmerged(plans.model), plan=plan))
    if [c.name for c in run.tree.closures] != [c.name for c in plans.tree.closures]:
        return None
    fits = run.tree.n <= UNROLL_LINKS and kernels.maker.schedule != "rolled"
    names = (*run.tree.joint_names[1:], *(c.name for c in run.tree.closures))
    return ReactionProgram(run, names) if fits else None


def _by_program(plans: LoopPlans, program: ReactionProgram, given: Mapping[str, npt.ArrayLike | None],
                wrenches: Wrenches, t: npt.ArrayLike) -> dict[str, Floats]:
    """Reactions by the program, the careful way for states where pivots vanish."""
    arrays = {name: np.zeros(plans.tree.nu) if a is None else a for name, a in given.items()}

    def careful(rows: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        made = _careful_reactions(plans, rows["q"], rows["u"], rows["tau"], rows["udot"], wrenches, t)
        return np.concatenate([made[name] for name in program.names], axis=-1)

    found = plans.kernels.evaluate("joint_reactions", arrays, wrenches, t, program.run)
    rows = with_careful_states(plans, found, arrays, wrenches, t, careful)
    each = rows.reshape(*rows.shape[:-1], len(program.names), 6)
    return dict(zip(program.names, np.moveaxis(each, -2, 0), strict=True))


def _careful_reactions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None, udot: npt.ArrayLike,
                       wrenches: Wrenches, t: npt.ArrayLike) -> dict[str, Floats]:
    """Closing loads by singular values or sparse factors, the rest from the tree."""
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


def reaction_doors(plans: LoopPlans) -> DoorPair:
    """Reactions at the accelerations of forward dynamics at the least cost, (q, u, tau), where both are one kernel."""
    try:
        program = None if plans.tree.actuators else reaction_program(
            plans, plans.reference().q if plans.tree.looped else plans.configuration.neutral(), 0.0)
    except AssemblyError:  # plans are made where the states are
        program = None
    forward, none = forward_doors(plans), np.zeros(plans.tree.nu)
    if program is None or forward is NO_DOORS:
        return NO_DOORS
    names = program.names
    form = DoorForm(parts=tuple((6 * i, (6,), (1,)) for i in range(len(names))))
    own = plans.kernels.door_pair("joint_reactions", form, program.run)

    def through(first: Door, second: Door) -> Door:
        def door(q: Any = None, u: Any = None, tau: Any = None, *more: Any) -> dict[str, Floats] | None:
            force = none if tau is None else tau
            udot = None if more else first(q, u, force)
            found: Any = None if udot is None else second(q, u, force, udot)
            return None if found is None else dict(zip(names, found, strict=True))

        return door

    return DoorPair(through(forward.one, own.one), through(forward.many, own.many))


def _unmerged(model: Model) -> Tree:
    """Every body a link of its own, frames at the joints, so that welds have reactions too."""
    tree = build_tree(model.mechanism, merge_welds=False, free_frames=False, cut=model.tree.cut_names)
    absent = [(joint, None) for body in model.absent for joint in carried_joints(tree, body)]
    return lock(release(tree, model.released), (*model.locked, *absent))


def closure_wrenches(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike | None, loads: Floats, t: npt.ArrayLike
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
    for i, (name, (first, second, point)) in enumerate(closure_wrenches(plans, q, u, loads, t).items()):
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
