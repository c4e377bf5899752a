"""Reactions: the wrench that every joint exerts, also where it closes a loop, and at welds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import START, Floats, Forces
from bellcrank.errors import AssemblyError
from bellcrank.lowering.choose import UNROLL_LINKS
from bellcrank.lowering.element_loads import unit_wrench
from bellcrank.schedule.sweeps import flatten
from bellcrank.system.body_kinematics import pose
from bellcrank.system.evaluator import Evaluator
from bellcrank.system.force_elements import actuator_forces, law_wrench
from bellcrank.system.force_terms import acting
from bellcrank.system.forward_dynamics import forward_doors, forward_dynamics
from bellcrank.system.inverse_dynamics import inverse_dynamics
from bellcrank.system.kernels import NO_DOORS, DoorPair, Wrenches
from bellcrank.system.loop_loads import group_program, lacking_forces, loop_loads
from bellcrank.system.tree_dynamics import run_forced
from bellcrank.system.usual_cut import usual_plans
from bellcrank.system.whole_programs import with_careful_states
from bellcrank.target.backend import Door, DoorForm
from bellcrank.topology.builder import build_tree
from bellcrank.topology.release import carried_joints, lock, pinned, release, with_given_forces

if TYPE_CHECKING:
    from bellcrank.loops.plan import LoopPlan
    from bellcrank.system.loop_plans import LoopPlans
    from bellcrank.system.model import Model
    from bellcrank.topology.tree import Tree

__all__ = ["reaction_doors", "reaction_tree", "reactions", "sharing_plans"]


def reactions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None = None, *,
              udot: npt.ArrayLike | None = None, wrenches: Wrenches = None, t: npt.ArrayLike = START
              ) -> dict[str, Floats]:
    """Wrench [moment; force] that each joint exerts on its child, drive included, shape (..., 6)."""
    force: Floats | None = None
    limited = udot is not None and bool(plans.tree.actuators)  # motions know no limits
    usual = None if limited else sharing_plans(plans, q, t, tau is None and udot is not None)
    if usual is not None:
        return _as_usual(plans, usual, q, u, tau, udot, wrenches, t)
    if tau is None and udot is not None and plans.tree.looped:
        force = inverse_dynamics(plans, q, u, udot, wrenches=wrenches, t=t)
    if tau is not None:
        force = actuator_forces(plans, q, u, tau, t=t)
    plans = acting(plans, force)
    if udot is None:
        udot = forward_dynamics(plans, q, u, force, wrenches=wrenches, t=t)
    program = reaction_program(plans, q, t)
    return _careful_reactions(plans, q, u, force, udot, wrenches, t) if program is None else _by_program(
        plans, program, {"q": q, "u": u, "tau": force, "udot": udot}, wrenches, t)


def sharing_plans(plans: LoopPlans, q: npt.ArrayLike, t: npt.ArrayLike, drives: bool = False) -> LoopPlans | None:
    """The machine that says how joints share loads which mechanics leaves open: that cut as usual, so that nobody sees
    where loops are cut. None if it is this one, or if everything is determined; `drives`: which joints drive a motion
    is open, too, where nobody says so."""
    usual = usual_plans(plans, alike=False)
    try:
        open_ = usual is not None and ((drives and not plans.model.options.actuated) or plans.drawing is not None
                                       or plans.first(q, t).redundant)
    except AssemblyError:  # closed nowhere
        return None
    return usual if open_ else None


def _as_usual(plans: LoopPlans, usual: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: Forces | None,
              udot: npt.ArrayLike | None, wrenches: Wrenches, t: npt.ArrayLike) -> dict[str, Floats]:
    """Reactions by the machine cut as usual, accelerations by the forces that need them."""
    loads = wrenches
    if wrenches is not None:
        rows, bodies = plans.model.wrench_rows(wrenches), len(plans.model.described.bodies)
        carried = len(usual.tree.body_names) - 1 - bodies
        loads = np.concatenate([rows[..., :bodies, :], np.zeros((*rows.shape[:-2], carried, 6))], axis=-2)
    if udot is not None:
        needed = inverse_dynamics(plans, q, u, udot, wrenches=wrenches, t=t)
        udot = forward_dynamics(usual, q, u, needed, wrenches=loads, t=t)
        tau = needed if tau is None and plans.model.options.actuated else tau
    return reactions(usual, q, u, tau, udot=udot, wrenches=loads, t=t)


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
    run = kernels.of_tree(("reactions", None if plan is None else plan.key), lambda: reaction_tree(plans, plan))
    if [c.name for c in run.tree.closures] != [c.name for c in plans.tree.closures]:
        return None
    fits = run.tree.n <= UNROLL_LINKS and kernels.maker.schedule != "rolled"
    return ReactionProgram(run, run.tree.loaded_names) if fits else None


def reaction_tree(plans: LoopPlans, plan: LoopPlan | None) -> Tree:
    """The machine with every body a link of its own, and a plan, which counts links of the machine as it moves."""
    tree = _unmerged(plans.model)
    if plan is None:
        return tree
    return replace(tree, plan=plan.renumbered([tree.joint_names.index(name) for name in plans.tree.joint_names]))


def _by_program(plans: LoopPlans, program: ReactionProgram, given: Mapping[str, npt.ArrayLike | None],
                wrenches: Wrenches, t: npt.ArrayLike) -> dict[str, Floats]:
    """Reactions by the program, the careful way for states where pivots vanish."""
    arrays = {name: np.zeros(plans.tree.nu) if a is None else a for name, a in given.items()}

    def careful(rows: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike) -> Floats:
        made = _careful_reactions(plans, rows["q"], rows["u"], rows["tau"], rows["udot"], wrenches, t)
        return np.concatenate([made[name] for name in program.names], axis=-1)

    found = plans.kernels.evaluate("joint_reactions", arrays, wrenches, t, program.run)
    rows = with_careful_states(plans, found, arrays, wrenches, t, careful)
    return _named(program.names, rows.reshape(*rows.shape[:-1], len(program.names), 6))


def _careful_reactions(plans: LoopPlans, q: npt.ArrayLike, u: npt.ArrayLike, tau: npt.ArrayLike | None,
                       udot: npt.ArrayLike, wrenches: Wrenches, t: npt.ArrayLike) -> dict[str, Floats]:
    """Of large machines closing loads group by group; by singular values or sparse factors where that fails, and of
    others; the rest from the tree."""
    loops: dict[str, Floats] = {}
    all_given = wrenches
    bodies = plans.kernels.kept("unmerged tree", lambda: _unmerged(plans.model))
    run = plans.kernels.of_tree("reactions", lambda: bodies)
    given = {"q": q, "u": u, "udot": udot, "tau": np.zeros(plans.tree.nu) if tau is None else tau}
    if plans.tree.looped:
        found = None if plans.kernels.direct else _by_groups(plans, run, bodies, given, wrenches, t)
        if found is not None:
            return found
        loops, loads = _loop_reactions(plans, given, wrenches, t)
        wrenches = loads if wrenches is None else plans.model.wrench_rows(wrenches) + loads
    raw = run_forced(plans, "joint_wrenches", given, wrenches, t, run, bodies)
    if plans.tree.relations:
        raw = raw - _of_couplers(plans, run.tree, given, all_given, t)
    return _ordered(run.tree, _on_children(plans, run, raw, q, t) | loops)


def _ordered(tree: Tree, found: Mapping[str, Floats]) -> dict[str, Floats]:
    """Reactions in the order of the description."""
    return {name: found[name] for name in tree.loaded_names}


def _on_children(plans: LoopPlans, run: Evaluator, raw: Floats, q: npt.ArrayLike, t: npt.ArrayLike
                 ) -> dict[str, Floats]:
    """Wrenches of tree joints by name, on the bodies that are their children and in the axes of these, from those on
    their links (..., 6 n) in link axes."""
    tree = run.tree
    each = raw.reshape(*raw.shape[:-1], tree.n, 2, 3)
    turn = tree.body_turn[[members[0] for members in tree.members[1:]]]  # body axes in link axes
    own = np.einsum("...nkj,nji->...nki", each, turn) if (turn != np.eye(3)).any() else each.copy()
    back = sorted(tree.backwards)
    if back:
        own[..., [k - 1 for k in back], :, :] = _acting_back(plans, run, each, back, q, t)
    return _named(tree.joint_names[1:], own.reshape(*raw.shape[:-1], tree.n, 6))


def _acting_back(plans: LoopPlans, run: Evaluator, each: Floats, back: Sequence[int], q: npt.ArrayLike, t: npt.ArrayLike
                 ) -> Floats:
    """What joints exert on the bodies inboard of them, about their own origins there and in the axes of these bodies,
    (..., some, 2, 3), from what they exert on the links outboard of them."""
    tree = run.tree
    rows = plans.kernels.run("poses", {"q": q}, None, t, run)
    rows = rows.reshape(*rows.shape[:-1], tree.n, 12)
    lead = rows.shape[:-2]
    turns = np.concatenate([np.broadcast_to(tree.ground_turn, (*lead, 1, 3, 3)),
                            rows[..., :9].reshape(*lead, tree.n, 3, 3)], axis=-3)
    origins = np.concatenate([np.broadcast_to(tree.ground_shift, (*lead, 1, 3)), rows[..., 9:]], axis=-2)
    inboard = [int(tree.parent[k]) for k in back]
    places = [plans.model.values_of([*tree.numbers(k).placement.translation]) for k in back]
    arms = np.stack(np.broadcast_arrays(*places), axis=-2)
    at = origins[..., inboard, :] + (turns[..., inboard, :, :] @ arms[..., None])[..., 0]
    world = -(each[..., [k - 1 for k in back], :, :] @ np.swapaxes(turns[..., back, :, :], -1, -2))
    moment = world[..., 0, :] + np.cross(origins[..., back, :] - at, world[..., 1, :])
    axes = turns[..., inboard, :, :] @ tree.body_turn[[tree.members[k][0] for k in inboard]]
    return np.asarray(np.stack([moment, world[..., 1, :]], axis=-2) @ axes)


def _named(names: Sequence[str], each: Floats) -> dict[str, Floats]:
    """Wrenches (..., names, 6) by name."""
    return dict(zip(names, np.moveaxis(each, -2, 0), strict=True))


def reaction_doors(plans: LoopPlans) -> DoorPair:
    """Reactions at the accelerations of forward dynamics at the least cost, (q, u, tau), where both are one kernel."""
    try:
        q = plans.reference().q if plans.tree.looped else plans.configuration.neutral()
        program = None if plans.tree.actuators or sharing_plans(plans, q, 0.0) else reaction_program(plans, q, 0.0)
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
    tree = lock(pinned(release(tree, model.released), dict(model.pins)), (*model.locked, *absent))
    return with_given_forces(tree) if model.tree.forced else tree


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


def _by_groups(plans: LoopPlans, run: Evaluator, bodies: Tree, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches,
               t: npt.ArrayLike) -> dict[str, Floats] | None:
    """Reactions by compiled code that loops over groups and over links; None where it takes other pivots. `run`: of
    `bodies`, the tree with every body a link of its own."""
    q, tree, kernels = given["q"], plans.tree, plans.kernels
    planned = None if plans.model.batched else group_program(plans, q, t, "closing_wrenches")
    if planned is None:
        return None
    lack = lacking_forces(plans, given, wrenches, t)
    found = kernels.evaluate("closing_wrenches", {"q": q, "tau": lack}, None, t, planned)
    if not found.finite:
        return None
    places = _closing_places(plans, run.tree) if tree.parameters else kernels.kept(
        "places of closing wrenches", lambda: _closing_places(plans, run.tree))
    made = np.asarray((places @ found.out.T).T)
    loads, closing = (part.reshape(*found.lead, -1) for part in np.split(made, [6 * run.tree.n], axis=-1))
    raw = run_forced(plans, "loaded_wrenches", {**given, "load": loads}, wrenches, t, run, bodies)
    if tree.relations:
        raw = raw - _of_couplers(plans, run.tree, given, wrenches, t)
    out = _named([c.name for c in tree.closures], closing.reshape(*found.lead, len(tree.closures), 6))
    acted = {k for pair in filter(tree.along_loops, tree.pairs) for k, _, _ in pair.terms}
    for name in (name for name in out if tree.joint_links.get(name) in acted):
        axes = pose(kernels, q, tree.body_names[_part(plans, name).child], t=t).rotation
        out[name] = out[name] + _in_axes(law_wrench(plans, name, given, t), axes)
    return _ordered(run.tree, _on_children(plans, run, raw, q, t) | out)


def _of_couplers(plans: LoopPlans, tree: Tree, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                 ) -> Floats:
    """What couplers exert on the links of a tree, (..., 6 n) in link axes: next to the joints, as forces along sums of
    their coordinates do, and not by them."""
    q, loops = np.asarray(given["q"], dtype=float), plans.loops
    loads = loop_loads(plans, q, given["u"], given["tau"], given["udot"], wrenches, t)
    slopes = loops.rows(q, None, t).slopes
    places = {int(tree.u_start[k]) + i: (k, i) for k in range(1, tree.n + 1) for i in range(len(tree.movers(k)))}
    out = np.zeros((*loads.shape[:-1], tree.n, 6))
    for k, (row, v) in enumerate(zip(loops.relation_row, loops.relation_var, strict=True)):
        link, i = places[int(v)]
        start, joint = int(tree.q_start[link]), tree.joints[link]
        assert joint is not None
        own = [plans.model.values_of([x])[..., 0] for x in tree.numbers(link).joint]
        columns = joint.subspace([q[..., start + j] for j in range(joint.nq)], own)
        wrench = np.stack(np.broadcast_arrays(*flatten(unit_wrench(columns, i)), np.zeros(out.shape[:-2]))[:6], axis=-1)
        out[..., link - 1, :] += wrench * (slopes[..., k] * loads[..., row])[..., None]
    return out.reshape(*out.shape[:-2], -1)


def _closing_places(plans: LoopPlans, unmerged: Tree) -> Any:
    """A sparse matrix that makes of the wrenches of closures on their two links (in link axes about the link's origin)
    those on the links of another tree, whose links are bodies, and those on second bodies about the joint."""
    from scipy.sparse import coo_array

    tree, model = plans.tree, plans.model
    rows: list[int] = []
    columns: list[int] = []
    blocks: list[Floats] = []
    place = {body: link for link, members in enumerate(unmerged.members) for body in members}

    def put(row: int, column: int, block: Floats) -> None:
        rows.append(row)
        columns.append(column)
        blocks.append(block)

    for i, c in enumerate(tree.closures):
        part = _part(plans, c.name)
        for side, body in enumerate((part.parent, part.child)):
            if body:
                to_body = _moved(tree.body_turn[body].T, model.body_shift(body))
                there = np.linalg.inv(_moved(unmerged.body_turn[body].T, unmerged.body_shift[body]))
                put(6 * (place[body] - 1), 12 * i + 6 * side, there @ to_body)
        put(6 * (unmerged.n + i), 12 * i + 6, _moved(tree.body_turn[part.child].T, model.values_of(c.second_shift)))
    at = np.repeat(np.array(rows)[:, None, None] + np.arange(6)[:, None], 6, axis=2)
    of = np.repeat(np.array(columns)[:, None, None] + np.arange(6)[None, :], 6, axis=1)
    return coo_array((np.array(blocks).ravel(), (at.ravel(), of.ravel())),
                     (6 * (unmerged.n + len(tree.closures)), 12 * len(tree.closures))).tocsr()


def _moved(turn: Floats, point: Floats) -> Floats:
    """The matrix that takes a wrench about an origin to one about a point, and then to other axes."""
    x, y, z = point
    cross = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.block([[turn, -turn @ cross], [np.zeros((3, 3)), turn]])


def _in_axes(wrench: Floats, axes: Floats) -> Floats:
    """A wrench (..., 6) in world axes in those of a body."""
    turned = wrench.reshape(*wrench.shape[:-1], 2, 3) @ axes
    return np.asarray(turned.reshape(*turned.shape[:-2], 6))


def _part(plans: LoopPlans, name: str) -> Any:
    """The joint or constraint that closes a loop."""
    machine = plans.model.mechanism
    every: tuple[Any, ...] = (*machine.joints, *machine.constraints)
    parts: dict[str, Any] = plans.kernels.kept("parts by name", lambda: {r.name: r for r in every})
    return parts[name]


def _loop_reactions(plans: LoopPlans, given: Mapping[str, npt.ArrayLike], wrenches: Wrenches, t: npt.ArrayLike
                    ) -> tuple[dict[str, Floats], Floats]:
    """Wrenches of closing joints on their children (body axes, about the joint), drive included; and what the
    closures do to all bodies, as external wrenches (..., bodies, 6)."""
    q, u = given["q"], given["u"]
    loads = loop_loads(plans, q, u, given["tau"], given["udot"], wrenches, t)
    lead = loads.shape[:-1]
    bodies = np.zeros((*lead, len(plans.tree.body_names) - 1, 6))
    out = {}
    for name, (first, second, point) in closure_wrenches(plans, q, u, loads, t).items():
        part = _part(plans, name)
        for index, wrench in ((part.parent, first), (part.child, second)):
            if index:
                arm = point - pose(plans.kernels, q, plans.tree.body_names[index], t=t).position
                bodies[..., index - 1, :3] += wrench[..., :3] + np.cross(arm, wrench[..., 3:])
                bodies[..., index - 1, 3:] += wrench[..., 3:]
        total = second + law_wrench(plans, name, given, t)
        out[name] = _in_axes(total, pose(plans.kernels, q, plans.tree.body_names[part.child], t=t).rotation)
    return out, bodies
