"""Loops of any topology by sparse elimination, group by group: exact, linear in bodies and constraints.

A formulation of our own. Its derivation, with the numbers that the lines below carry, is docs/explain/elimination.md:
Gauss's function (3) is minimised group by group (see `loops.plan`), each group's constraints being solved for some of
its own speeds first. `group_form` has the quadratic form that is minimised and what is done to it; here are the sweeps.

| docs/explain/elimination.md | here |
|---|---|
| omega_k, c_k (4) | ``MemberMotion.omega``, ``MemberMotion.bias`` |
| X_k, S_k, s (1) | ``link.transforms``, ``link.columns``, ``column`` |
| I_k, b_k, w_k; r_v, tau_v (3) | ``link.inertia``, ``gyroscopic``, ``external``; ``armature``, ``tau`` |
| J, gamma (2), (8)-(10) | ``ConstraintEquation.factors``, ``gamma``, from `group_rows` |
| I, f, F_v (11) | ``BodyForm.mass``, ``force``, ``columns[v]`` |
| H_vw, h_v (11) | ``GroupForm.matrix``, ``right`` |
| rho, C | the group's reference (member -1), ``shape.carried`` |
| D; E, in two parts | ``shape.dependent``; ``shape.independent``, and ``shape.early`` |
| F_v / H_vv, H_vw / H_vv, h_v / H_vv (15) | ``EliminatedSpeed.body``, ``factors``, ``free`` |
| T, t (21) | ``DependentSpeed.factors``, ``offset`` |
| pi_i, s_i, sigma (19), (20) | ``rows[i][v]``, ``shape.sizes``, ``_SHRUNK`` |

Declared deviations from the page
- The inertia that is left of a link after the elimination of a unit column without a rotor has a row and a column of
  exact zeros, which (16) gives up to rounding: they are written as zeros (`unresisting`).
- Terms that are zero in every state are not there: the rows and forms are kept by their entries.

No regularization, no penalty, no iteration: accelerations are exact to rounding, constraints hold to rounding. If a
pivot fails (20) the result is not a number, and the library chooses other pivots for that state.

Cost: O(n + m) for bounded group size and coupling; O(k^3) in the length k of a single loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bellcrank import __version__
from bellcrank.formulations.common.link_kinematics import ground_axes, known_motion
from bellcrank.formulations.common.pivot import absent
from bellcrank.formulations.common.small_systems import guarded_inverse
from bellcrank.formulations.elimination.group_form import (
    BodyForm,
    DependentSpeed,
    EliminatedSpeed,
    GroupForm,
    add_modes,
    eliminate,
    introduce,
    substitute,
)
from bellcrank.formulations.elimination.group_rows import ConstraintEquation, group_constraints
from bellcrank.formulations.recursive import forward_dynamics, inverse_dynamics, joint_wrenches
from bellcrank.lowering.group import GroupView, Message
from bellcrank.lowering.group_shape import GroupShape
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Matrix3, Motion, Vector

__all__ = ["BIBTEX", "FLEXIBLE", "OVER", "constrained_dynamics", "forward_dynamics", "inverse_dynamics",
           "joint_wrenches"]

BIBTEX = f"""@software{{bellcrankelimination,
  author  = {{{{The Bellcrank team}}}},
  title   = {{Bellcrank: sparse elimination for closed loops of any topology}},
  version = {{{__version__}}},
  year    = {{2026}},
  note    = {{Derivation: docs/explain/elimination.md}}
}}"""

#: functions that cover bodies that deform
FLEXIBLE = ("forward_dynamics", "inverse_dynamics", "joint_wrenches", "constrained_dynamics")
#: the function for machines with loops sweeps over groups of links, and tells the accelerations of loop joints
OVER = ("groups", "joints")

#: sigma of (20): a pivot that has shrunk to this part of what it was calls for other pivots
_SHRUNK = 0.01


class MemberMotion(NamedTuple):
    """A member's angular velocity and the known part of its acceleration, (4); its axes if forces need them."""

    omega: Vector
    bias: Motion
    axes: General | None


def constrained_dynamics(groups: Sweeps) -> Field:
    """Joint accelerations for given joint forces."""
    answers = (0.0,) * groups.world.widths[1]
    rates = (0.0,) * (2 * groups.world.widths[1])  # three numbers a body, and nine if forces need its axes
    known = groups.outward(outward_known_motions, root=rates)
    solution, _ = groups.inward(inward_elimination, known, zero=(0.0,) * groups.world.widths[0])
    return groups.outward(outward_accelerations, known, solution, root=answers)


# -- outward: angular velocities and the known parts of accelerations, (4) -----------------------------------------
def outward_known_motions(group: GroupView, flat: Sequence[Number]
                          ) -> tuple[tuple[Number, ...], tuple[MemberMotion, ...]]:
    external = group.world.external
    shape = group.shape
    omega, axes = Vector.zero(), ground_axes(group) if external else None
    if shape.body_slot >= 0:
        omega = Vector(*flat[3 * shape.body_slot:3 * shape.body_slot + 3])
        if external:
            start = 3 * len(shape.above.bodies) + 9 * shape.body_slot
            axes = _axes(flat[start:start + 9])
    members: list[MemberMotion] = []
    reference = MemberMotion(omega, Motion.zero(), axes)
    for link, parent in zip(group.links, shape.parents, strict=True):
        members.append(_known_motion(link, reference if parent < 0 else members[parent]))
    members.append(reference)  # the place of member -1
    sent: list[Number] = []
    ports = [members[b] for b in shape.ports.bodies]
    for t in ports:
        sent += t.omega
    if external:
        for t in ports:
            assert t.axes is not None
            sent += [x for row in t.axes.rows for x in row]
    return (*sent, *(0.0,) * (len(flat) - len(sent))), tuple(members)


def _axes(nine: Sequence[Number]) -> General:
    return General(Matrix3(*(Vector(*nine[3 * i:3 * i + 3]) for i in range(3))))


def _known_motion(link: Link, parent: MemberMotion) -> MemberMotion:
    omega, bias = known_motion(link, parent.omega)  # (4)
    axes = parent.axes
    for t in link.transforms:
        axes = None if axes is None else t.turned(axes)
    return MemberMotion(omega, bias, axes)


# -- inward: (11)-(23) ---------------------------------------------------------------------------------------------
def inward_elimination(group: GroupView, received: Sequence[Number], known: tuple[MemberMotion, ...]
                       ) -> tuple[tuple[Number, ...], Any]:
    work = GroupForm(group, received)
    for k in reversed(range(len(group.links))):
        lift(work, k, known[k])
    if group.shape.grounded:  # the ground's acceleration is known: it stands for gravity
        base = Motion(Vector.zero(), -group.world.gravity)  # (1): a_0
        for v, column in work.top.columns.items():
            work.add_right(v, base.dot(column))  # (18)
        work.top = BodyForm()
    solved = close(work, group_constraints(group))
    for v in group.shape.independent:
        eliminate(work, work.top, v, -1)  # (15), (16)
    return group.packed(message(work)), (tuple(work.pivots), tuple(solved))


def lift(work: GroupForm, k: int, known: MemberMotion) -> None:
    """Carry a link's form to its parent: (12)-(14), (17), and (15), (16) of early speeds."""
    group = work.group
    link, form = group.links[k], work.forms[k]
    mass, force = form.mass, form.force
    mine = [(v, c) for v, (member, c) in enumerate(group.shape.speeds) if member == k]
    if group.shape.own[k]:
        inertia, needed = link.kinetics(known.omega)
        mass, force = mass + inertia, force + needed  # (12)
        add_modes(work, form, link.modal_rows(known.omega), {c: v for v, c in mine})  # (12)
        if known.axes is not None:
            force = force - link.external(known.axes)  # (12)
    force = force + mass @ known.bias  # (13)
    for w, column in form.columns.items():
        work.add_right(w, known.bias.dot(column))  # (13)
    form.mass, form.force = mass, force
    for member, c, v in group.shape.shared:
        if member == k:
            introduce(work, form, v, link.moving_columns[c], 0.0, 0.0)
    for v, c in mine:
        tau, armature = (link.tau[c], link.armature[c]) if group.shape.own[k] else (0.0, 0.0)
        introduce(work, form, v, link.columns[c], tau, armature)
        if v in group.shape.early:
            eliminate(work, form, v, k)  # (15), (16)
            form.mass = form.mass.unresisting(link.columns[c]) if absent(armature) else form.mass
    parent = group.shape.parents[k]
    target = work.top if parent < 0 else work.forms[parent]
    mass, force, columns = form.mass, form.force, dict(form.columns)
    for t in reversed(link.transforms):
        mass, force = t.articulated(mass), t.force(force)  # (17)
        columns = {w: t.force(column) for w, column in columns.items()}  # (17)
    target.mass, target.force = target.mass + mass, target.force + force  # (17)
    for w, column in columns.items():
        target.columns[w] = target.columns[w] + column if w in target.columns else column  # (17)


# -- constraints: (19)-(22) ----------------------------------------------------------------------------------------
def close(work: GroupForm, constraints: Sequence[ConstraintEquation]) -> list[DependentSpeed]:
    """Solve the constraints for the dependent speeds, (19)-(21), and substitute these into the form, (22)."""
    shape = work.group.shape
    rows = [dict(c.factors) for c in constraints]
    right = [c.gamma for c in constraints]
    inverses = pivoted(shape, rows, right)  # (19), (20)
    solved: dict[int, DependentSpeed] = {}
    for i in reversed(range(len(rows))):  # (21), back substitution: each in terms of E and C
        v = shape.dependent[i]
        offset: Number = right[i]
        factors: dict[int, Number] = {}
        for w, x in rows[i].items():
            if w == v:
                continue
            if w in solved:
                offset = offset - x * solved[w].offset
                for y, z in solved[w].factors:
                    factors[y] = factors.get(y, 0.0) - x * z
            else:
                factors[w] = factors.get(w, 0.0) - x
        solved[v] = DependentSpeed(v, tuple((w, x * inverses[i]) for w, x in factors.items()), offset * inverses[i])
    for v in shape.dependent:
        substitute(work, solved[v])  # (22)
    return list(solved.values())


def pivoted(shape: GroupShape, rows: list[dict[int, Number]], right: list[Number], shrunk: float = _SHRUNK
            ) -> list[Number]:
    """Make the rows triangular in the dependent speeds, in place, (19); returns the inverses of the pivots. A pivot
    that has `shrunk` to so much of its size in the plan makes everything NaN, (20)."""
    inverses: list[Number] = []
    for i, (v, size) in enumerate(zip(shape.dependent, shape.sizes, strict=True)):
        inverses.append(guarded_inverse(rows[i][v], shrunk * size))  # (20)
        for j in range(i + 1, len(rows)):
            if v in rows[j]:
                factor = rows[j].pop(v) * inverses[i]  # (19): l
                right[j] = right[j] - factor * right[i]  # (19): gamma_j
                for w, x in rows[i].items():
                    if w != v:
                        rows[j][w] = rows[j].get(w, 0.0) - factor * x  # (19): J_j
    return inverses


def message(work: GroupForm) -> Message:
    """What is left, (23): a form in the reference's acceleration and the carried speeds."""
    carried = work.group.shape.carried
    return Message(work.top.mass, work.top.force, tuple(work.top.columns.get(v, Force.zero()) for v in carried),
                   tuple(tuple(work.at(v, w) for w in carried[:i + 1]) for i, v in enumerate(carried)),
                   tuple(work.right.get(v, 0.0) for v in carried))


# -- outward: accelerations, (24) ----------------------------------------------------------------------------------
def outward_accelerations(group: GroupView, flat: Sequence[Number], known: tuple[MemberMotion, ...],
                          solution: tuple[tuple[EliminatedSpeed, ...], tuple[DependentSpeed, ...]]
                          ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    pivots, solved = solution
    shape = group.shape
    reference, speeds = group.from_parent(flat)
    for p in reversed([p for p in pivots if p.member < 0]):
        speeds[p.speed] = _solve(p, reference, speeds)  # (24): E by (15)
    for s in solved:
        total = s.offset
        for w, x in s.factors:
            total = total + x * speeds[w]
        speeds[s.speed] = total  # (24): D by (21)
    motions: list[Motion] = []
    for k, (link, parent) in enumerate(zip(group.links, shape.parents, strict=True)):
        above = reference if parent < 0 else motions[parent]
        motions.append(_accelerate(group, k, link, above, known[k], pivots, speeds))
    number = {pair: v for v, pair in enumerate(shape.speeds)}
    kept = []
    for k, link in enumerate(group.links):
        if shape.own[k]:
            given = link.prescribed_udot
            kept += [speeds[number[k, c]] if (k, c) in number else given[c] for c in range(link.joint.nu)]
    bodies = [*motions, reference]
    for joint, own in zip(group.joints, shape.joints, strict=True):
        kept += joint.between(*((known[b].omega, bodies[b]) for b in (own.first, own.second)))
    return group.answer(reference, motions, speeds), tuple(kept)


def _solve(p: EliminatedSpeed, motion: Motion, speeds: dict[int, Number]) -> Number:
    """(15)."""
    total = p.free + motion.dot(p.body)
    for w, x in p.factors:
        total = total + x * speeds[w]
    return -total


def _accelerate(group: GroupView, k: int, link: Link, motion: Motion, known: MemberMotion,
                pivots: Sequence[EliminatedSpeed], speeds: dict[int, Number]) -> Motion:
    """A member's acceleration, (24), and the early speeds that were eliminated at it."""
    for t in link.transforms:
        motion = t.acceleration(motion)  # (1): X a_p
    for member, c, v in group.shape.shared:
        if member == k:
            motion = motion + link.moving_columns[c] * speeds[v]  # (1): nodes
    here = [(v, c) for v, (member, c) in enumerate(group.shape.speeds) if member == k]
    by_speed = {p.speed: p for p in pivots}
    for v, c in reversed(here):  # a row refers to the motion without the columns introduced before it
        if v in group.shape.early:
            speeds[v] = _solve(by_speed[v], motion, speeds)  # (15)
        motion = motion + link.columns[c] * speeds[v]  # (1): S udot
    return motion + known.bias  # (1): c, which the right hand sides of (15) contain already, by (13)

