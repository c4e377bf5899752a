"""Loops of any topology by sparse elimination, group by group: exact, linear in bodies and conditions.

A formulation of our own. The machine is taken apart into groups (see `groups`): single links of its tree, and ears,
the links a loop adds to what is already there. Going inwards, every group turns what it is made of into a message to
the next: a quadratic form in the acceleration of one *reference* link and in the accelerations of the joints that its
conditions share with groups further in (*carried* speeds). Gauss's principle makes the rest simple:

1. *Lift.* With a_k = X_k a_p + S_k udot_k + c_k the forms 1/2 a^T I a + f^T a of the group's links are carried inwards
   link by link, as in the articulated-body recursion, except that speeds bound by conditions are not eliminated on the
   way: each leaves a column F = I S (the wrench its unit acceleration takes), a diagonal entry and a right hand side.
2. *Close.* The group's conditions J udot = gamma, written around each loop and so with short lever arms, are solved
   for the *dependent* speeds by Gaussian elimination with pivots chosen beforehand and watched at run time; redundant
   conditions were dropped with the choice. Dependent speeds are substituted into the form.
3. *Minimise.* The remaining own speeds are eliminated by their rows, one after another.

Speeds that no condition involves are eliminated as soon as their link is reached: on a tree this is the articulated-
body recursion itself. Going outwards, the order is reversed.

| symbol | here |
|---|---|
| I, f | ``form.mass``, ``form.force`` |
| F_v | ``form.columns[v]`` |
| H_vw, h_v | ``form.matrix``, ``form.right``: of 1/2 udot^T H udot + h^T udot |
| J, gamma | ``condition`` rows, right hand sides |
| T, t: udot_d = T udot + t | ``DependentSpeed.factors``, ``DependentSpeed.offset`` |

No regularisation, no penalty, no iteration: accelerations are exact to rounding, conditions hold to rounding.
If a pivot falls below a hundredth of its size when the plan was made, the result is not a number and the library
chooses other pivots for that state.

Cost: O(n + m) for bounded group size and coupling.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from bellcrank import __version__
from bellcrank.formulations.common.link_kinematics import ground_axes, known_motion
from bellcrank.formulations.common.pivot import absent
from bellcrank.formulations.common.small_systems import guarded_inverse
from bellcrank.formulations.elimination.group_rows import Condition, group_conditions
from bellcrank.formulations.recursive import forward_dynamics, inverse_dynamics, joint_wrenches
from bellcrank.lowering.group import GroupShape, GroupView, Message
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import ArticulatedInertia, Force, General, Matrix3, Motion, Vector

__all__ = ["BIBTEX", "OVER", "constrained_dynamics", "forward_dynamics", "inverse_dynamics", "joint_wrenches"]

BIBTEX = f"""@software{{bellcrank,
  author  = {{{{The Bellcrank team}}}},
  title   = {{Bellcrank: sparse elimination for closed loops of any topology}},
  version = {{{__version__}}},
  year    = {{2026}}
}}"""

#: the loop text sweeps over groups
OVER = ("groups",)

#: a pivot that has shrunk to this part of what it was calls for other pivots
_SHRUNK = 0.01


class Turning(NamedTuple):
    """A member's angular velocity, the part of its acceleration known from the state, its axes if forces need them."""

    omega: Vector
    bias: Motion
    axes: General | None


class Form:
    """A quadratic form in one body's acceleration and in the accelerations of several speeds."""

    def __init__(self) -> None:
        self.mass, self.force = ArticulatedInertia.zero(), Force.zero()
        self.columns: dict[int, Force] = {}


class EliminatedSpeed(NamedTuple):
    """An eliminated speed: udot = -(free + body . a + sum of factors * udot_w)."""

    speed: int
    member: int  #: whose acceleration `body` refers to; -1: the reference's
    body: Force
    factors: tuple[tuple[int, Number], ...]
    free: Number


class DependentSpeed(NamedTuple):
    """A dependent speed: udot = offset + sum of factors * udot_w."""

    speed: int
    factors: tuple[tuple[int, Number], ...]
    offset: Number


def constrained_dynamics(groups: Sweeps) -> Field:
    """Joint accelerations for given joint forces."""
    answers = (0.0,) * groups.world.widths[1]
    turns = (0.0,) * (2 * groups.world.widths[1])  # three numbers a body, and nine if forces need its axes
    turning = groups.outward(outward_turning, root=turns)
    solution, _ = groups.inward(inward_elimination, turning, zero=(0.0,) * groups.world.widths[0])
    return groups.outward(outward_accelerations, turning, solution, root=answers)


# -- outward: angular velocities and what is known of accelerations ------------------------------------------------
def outward_turning(group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], tuple[Turning, ...]]:
    external = group.world.external
    shape = group.shape
    omega, axes = Vector.zero(), ground_axes(group) if external else None
    if shape.body_slot >= 0:
        omega = Vector(*flat[3 * shape.body_slot:3 * shape.body_slot + 3])
        if external:
            start = 3 * len(shape.above.bodies) + 9 * shape.body_slot
            axes = _axes(flat[start:start + 9])
    members: list[Turning] = []
    reference = Turning(omega, Motion.zero(), axes)
    for link, parent in zip(group.links, shape.parents, strict=True):
        members.append(_turn(link, reference if parent < 0 else members[parent]))
    sent: list[Number] = []
    ports = [reference if b < 0 else members[b] for b in shape.ports.bodies]
    for t in ports:
        sent += t.omega
    if external:
        for t in ports:
            assert t.axes is not None
            sent += [x for row in t.axes.rows for x in row]
    return (*sent, *(0.0,) * (len(flat) - len(sent))), tuple(members)


def _axes(nine: Sequence[Number]) -> General:
    return General(Matrix3(*(Vector(*nine[3 * i:3 * i + 3]) for i in range(3))))


def _turn(link: Link, parent: Turning) -> Turning:
    omega, bias = known_motion(link, parent.omega)
    axes = parent.axes
    for t in link.transforms:
        axes = None if axes is None else t.turned(axes)
    return Turning(omega, bias, axes)


# -- inward --------------------------------------------------------------------------------------------------------
class Work:
    """The form of a group as it is put together: forms of bodies, and the common part of all speeds."""

    def __init__(self, group: GroupView, received: Sequence[Number]) -> None:
        shape = group.shape
        self.group = group
        self.forms = [Form() for _ in shape.parents]
        self.top = Form()
        self.matrix: dict[tuple[int, int], Number] = {}
        self.right: dict[int, Number] = {}
        self.pivots: list[EliminatedSpeed] = []
        incoming = group.incoming(received)
        for body, (mass, force, columns) in zip(shape.ports.bodies, incoming.bodies, strict=True):
            form = self.top if body < 0 else self.forms[body]
            form.mass, form.force = mass, force
            form.columns = dict(zip(shape.ports.speeds, columns, strict=True))
        for i, v in enumerate(shape.ports.speeds):
            self.right[v] = incoming.right[i]
            for j, w in enumerate(shape.ports.speeds[:i + 1]):
                self.put(v, w, incoming.matrix[i][j])

    def at(self, v: int, w: int) -> Number:
        return self.matrix.get((v, w) if v >= w else (w, v), 0.0)

    def put(self, v: int, w: int, value: Number) -> None:
        self.matrix[(v, w) if v >= w else (w, v)] = value

    def add(self, v: int, w: int, value: Number) -> None:
        self.put(v, w, self.at(v, w) + value)

    def add_right(self, v: int, value: Number) -> None:
        self.right[v] = self.right.get(v, 0.0) + value


def inward_elimination(group: GroupView, received: Sequence[Number], turning: tuple[Turning, ...]
                       ) -> tuple[tuple[Number, ...], Any]:
    work = Work(group, received)
    for k in reversed(range(len(group.links))):
        lift(work, k, turning[k])
    if group.shape.grounded:  # the ground's acceleration is known: it stands for gravity
        base = Motion(Vector.zero(), -group.world.gravity)
        for v, column in work.top.columns.items():
            work.add_right(v, base.dot(column))
        work.top = Form()
    solved = close(work, group_conditions(group))
    for v in group.shape.independent:
        eliminate(work, work.top, v, -1)
    return group.packed(message(work)), (tuple(work.pivots), tuple(solved))


def lift(work: Work, k: int, turning: Turning) -> None:
    """Carry a link's form to its parent."""
    group = work.group
    link, form = group.links[k], work.forms[k]
    mass, force = form.mass, form.force
    if group.shape.own[k]:
        mass = mass + link.inertia.articulated()
        force = force + link.inertia.gyroscopic(turning.omega)
        if turning.axes is not None:
            force = force - link.external(turning.axes)
    force = force + mass @ turning.bias
    for w, column in form.columns.items():
        work.add_right(w, turning.bias.dot(column))
    form.mass, form.force = mass, force
    mine = [(v, c) for v, (member, c) in enumerate(group.shape.speeds) if member == k]
    for v, c in mine:
        tau, armature = (link.tau[c], link.armature[c]) if group.shape.own[k] else (0.0, 0.0)
        introduce(work, form, v, link.columns[c], tau, armature)
        if v in group.shape.early:
            eliminate(work, form, v, k)
            form.mass = form.mass.unresisting(link.columns[c]) if absent(armature) else form.mass
    parent = group.shape.parents[k]
    target = work.top if parent < 0 else work.forms[parent]
    mass, force, columns = form.mass, form.force, dict(form.columns)
    for t in reversed(link.transforms):
        mass, force = t.articulated(mass), t.force(force)
        columns = {w: t.force(column) for w, column in columns.items()}
    target.mass, target.force = target.mass + mass, target.force + force
    for w, column in columns.items():
        target.columns[w] = target.columns[w] + column if w in target.columns else column


def introduce(work: Work, form: Form, v: int, column: Motion, tau: Number, armature: Number) -> None:
    """A joint's speed enters: a = a' + column udot_v; its rotor knows no other speed."""
    for w, other in form.columns.items():
        value = column.dot(other)
        work.add(v, w, value + value if w == v else value)
    wrench = form.mass @ column
    work.add(v, v, column.dot(wrench) + armature)
    work.add_right(v, column.dot(form.force) - tau)
    form.columns[v] = form.columns[v] + wrench if v in form.columns else wrench


def eliminate(work: Work, form: Form, v: int, member: int) -> None:
    """Minimise over one speed: its row is solved for it and substituted."""
    column = form.columns.pop(v, Force.zero())
    right = work.right.pop(v)
    others = sorted({w for pair in work.matrix if v in pair for w in pair if w != v})
    row = {w: work.matrix.pop((v, w) if v >= w else (w, v)) for w in others}
    inverse = 1.0 / work.matrix.pop((v, v))
    gain = column * inverse
    factors = {w: x * inverse for w, x in row.items()}
    form.mass = form.mass.minus(column, gain)
    form.force = form.force - gain * right
    for w in others:
        if w in form.columns:
            form.columns[w] = form.columns[w] - column * factors[w]
        else:
            form.columns[w] = -(column * factors[w])
        work.add_right(w, -(factors[w] * right))
        for x in others:
            if x <= w:
                work.add(w, x, -(row[w] * factors[x]))
    work.pivots.append(EliminatedSpeed(v, member, gain, tuple(factors.items()), right * inverse))


# -- conditions ----------------------------------------------------------------------------------------------------
def close(work: Work, conditions: Sequence[Condition]) -> list[DependentSpeed]:
    """Solve the conditions for the dependent speeds and substitute these into the form."""
    shape = work.group.shape
    rows = [dict(c.factors) for c in conditions]
    right = [c.gamma for c in conditions]
    inverses = pivoted(shape, rows, right)
    solved: dict[int, DependentSpeed] = {}
    for i in reversed(range(len(rows))):  # back substitution: each in terms of speeds that stay
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
        substitute(work, solved[v])
    return list(solved.values())


def pivoted(shape: GroupShape, rows: list[dict[int, Number]], right: list[Number], shrunk: float = _SHRUNK
            ) -> list[Number]:
    """Make the rows triangular in the dependent speeds, in place; returns the inverses of the pivots. A pivot that has
    `shrunk` to so much of its size in the plan makes everything NaN."""
    inverses: list[Number] = []
    for i, (v, size) in enumerate(zip(shape.dependent, shape.sizes, strict=True)):
        inverses.append(guarded_inverse(rows[i][v], shrunk * size))
        for j in range(i + 1, len(rows)):
            if v in rows[j]:
                factor = rows[j].pop(v) * inverses[i]
                right[j] = right[j] - factor * right[i]
                for w, x in rows[i].items():
                    if w != v:
                        rows[j][w] = rows[j].get(w, 0.0) - factor * x
    return inverses


def substitute(work: Work, solved: DependentSpeed) -> None:
    """Replace a dependent speed by what it depends on."""
    v, factors, offset = solved
    form = work.top
    others = sorted({w for pair in work.matrix if v in pair for w in pair if w != v})
    row = {w: work.matrix.pop((v, w) if v >= w else (w, v)) for w in others}
    diagonal = work.matrix.pop((v, v))
    right = work.right.pop(v) + diagonal * offset
    for w, x in row.items():
        work.add_right(w, x * offset)
    for i, (a, x) in enumerate(factors):
        work.add_right(a, x * right)
        scaled = diagonal * x
        for b, y in factors[:i + 1]:
            work.add(a, b, scaled * y)
        for w, y in row.items():
            value = y * x
            work.add(a, w, value + value if a == w else value)
    column = form.columns.pop(v, None)
    if column is not None:
        form.force = form.force + column * offset
        for a, x in factors:
            form.columns[a] = form.columns[a] + column * x if a in form.columns else column * x


def message(work: Work) -> Message:
    """What is left: a form in the reference's acceleration and the carried speeds."""
    carried = work.group.shape.carried
    return Message(work.top.mass, work.top.force, tuple(work.top.columns.get(v, Force.zero()) for v in carried),
                   tuple(tuple(work.at(v, w) for w in carried[:i + 1]) for i, v in enumerate(carried)),
                   tuple(work.right.get(v, 0.0) for v in carried))


# -- outward: accelerations ----------------------------------------------------------------------------------------
def outward_accelerations(group: GroupView, flat: Sequence[Number], turning: tuple[Turning, ...],
                          solution: tuple[tuple[EliminatedSpeed, ...], tuple[DependentSpeed, ...]]
                          ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    pivots, solved = solution
    shape = group.shape
    reference, speeds = group.heard(flat)
    for p in reversed([p for p in pivots if p.member < 0]):
        speeds[p.speed] = _solve(p, reference, speeds)
    for s in solved:
        total = s.offset
        for w, x in s.factors:
            total = total + x * speeds[w]
        speeds[s.speed] = total
    motions: list[Motion | None] = []
    for k, (link, parent) in enumerate(zip(group.links, shape.parents, strict=True)):
        above = reference if parent < 0 else motions[parent]
        assert above is not None
        motions.append(_accelerate(group, k, link, above, turning[k], pivots, speeds))
    number = {pair: v for v, pair in enumerate(shape.speeds)}
    kept = []
    for k, link in enumerate(group.links):
        if shape.own[k]:
            given = link.prescribed_udot
            kept += [speeds[number[k, c]] if (k, c) in number else given[c] for c in range(link.joint.nu)]
    return group.answer(reference, motions, speeds), tuple(kept)


def _solve(p: EliminatedSpeed, motion: Motion, speeds: dict[int, Number]) -> Number:
    total = p.free + motion.dot(p.body)
    for w, x in p.factors:
        total = total + x * speeds[w]
    return -total


def _accelerate(group: GroupView, k: int, link: Link, motion: Motion, turning: Turning,
                pivots: Sequence[EliminatedSpeed], speeds: dict[int, Number]) -> Motion:
    """A member's acceleration, and the speeds that were eliminated at it."""
    for t in link.transforms:
        motion = t.acceleration(motion)
    here = [(v, c) for v, (member, c) in enumerate(group.shape.speeds) if member == k]
    by_speed = {p.speed: p for p in pivots}
    for v, c in reversed(here):  # a row knows the motion without the columns that entered before it
        if v in group.shape.early:
            speeds[v] = _solve(by_speed[v], motion, speeds)
        motion = motion + link.columns[c] * speeds[v]
    return motion + turning.bias  # the pivots' right hand sides know it already

