"""Recursive coordinate reduction: loops embedded at velocity and acceleration level, without multipliers.

K. S. Anderson and J. H. Critchley, "Improved 'Order-N' Performance Algorithm for the Simulation of Constrained
Multi-Rigid-Body Dynamic Systems", Multibody System Dynamics 9, 2003, sections 3 and 4 (with the errata of (51), (55),
(60) and of the last step into a moving base). Equation numbers are the paper's. Trees are treated as in section 2.

Going inwards, the dependent speeds of a loop are expressed by what moves independently, and the inertia and forces of
the loop's bodies are moved there: onto the loop's *virtual body* p_i, which was placed before, or onto the independent
speeds of the loop itself, which are then eliminated into the loop's base. What remains is a tree.

| paper | here |
|---|---|
| 0_i, p_i | a group's reference (local number -1), its virtual body (``VIRTUAL``) |
| n_i | the far side of the closing joint |
| S^k, P_k, u_k | ``link.transforms``, ``link.columns``, ``link.u``; origins of links are the points of reference |
| A_t^k (7) | ``Known.remainder``; around a loop ``Relative.remainder`` |
| tau^k, Delta^k (37)-(45) | ``left``, ``inverse`` in `local_loop` |
| u_k (46)-(51) | ``dependent_speeds``, ``speed_changes`` |
| Gamma^k, Xi^k (51)-(55) | ``Dependent.factors`` and ``body``, ``offset``: their rows, joint by joint |
| P~_r^k (58) | rows of independent speeds after `substitute` |
| Ihat^{p;0}, Ihat^p, Fhat^p (60) | ``Virtual.cross``, ``Virtual.own`` |
| P_j^T Ihat^{j;0}, P_j^T Fhat^j, M_j (61)-(66) | ``Terms.base``, ``Terms.right``, ``Terms.matrix`` |
| Ihat^0, Fhat^0 (62)-(64) | ``Terms.at_base`` |

Declared deviations
- A loop is walked as the spanning tree has it. Where its own links hang from the base and close on the virtual body,
  the phantom is a copy of that and not of the base, and Gamma = -Xi (S^n)^T: one set of rows serves both. Where they
  hang from the virtual body and close on the base, as in the paper's ladder, the phantom is the base's.
- tau^n of the closing joint is the projection on its constraints, less those that the plan found to be redundant;
  all that follows stays in their few dimensions.
- Gamma^k and Xi^k, 6 x 6, are kept as the rows of (55), one for each dependent speed; (60) is then evaluated with the
  composite inertias of the own links, which is the same sum.
- The dependent speeds of a loop are those that the plan chose, not always the last ones around it, and so the paper's
  virtual body p_i within a ring is represented by its nonholonomic partial velocities (57), (58).
- Loops that do not leave their virtual body all its freedom, as legs of manipulators with fewer than six do not, are
  closed together with those of that body: tau and Delta then act on the closing relations of all, one below another.
- The recursion of the remainder A_t, which the paper does not give, is the time derivative of (8) at du/dt = 0, as in
  `kane`; marked d/dt (8).
- Theta (79), (80) is implicit: a loop refers to its virtual body's whole acceleration, whose known part is A_t.
- The last step into a moving base is the corrected one: all bodies of the loop act on it by ^0S^k, not by Gamma^k.
- Forces have the opposite sign (what must be applied), gravity is an upward acceleration of the ground.

If a Delta shrinks below what the plan expects, the result is not a number and the library chooses other dependent
speeds. What the paper leaves open (4.4) is refused by topology alone: see `loops.common_base`.

Cost: O(n + m): a message of 27 numbers (90 where the base moves) from every loop; some 600 operations per cell of the
ladder, see `System.operation_count`. Loops that are closed together cost the cube of their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from bellcrank.formulations.common.link_kinematics import ground_axes
from bellcrank.formulations.common.pivot import Pivot, solve
from bellcrank.formulations.kane import BIBTEX, Known, forward_dynamics, inverse_dynamics
from bellcrank.formulations.reduction.local_kinetics import (
    Mass,
    ReducedRow,
    Terms,
    add_masses,
    compose,
    compose_base,
    remove,
    speeds_of,
    substitute,
    total,
)
from bellcrank.formulations.reduction.local_loop import (
    SHRUNK,
    Dependent,
    at_rest,
    dependent_speeds_of,
    from_base,
    lacking_acceleration,
    lacking_velocity,
    relative_to_base,
)
from bellcrank.formulations.reduction.messages import (
    AXES,
    BURDEN,
    KNOWN,
    MOTION,
    SPEEDS,
    Burden,
    HostBody,
    Relative,
    base_of,
    packed,
    to_children,
    unpacked,
    virtual_of,
    width_of,
)
from bellcrank.loops.base_plan import make_base_plan as make_plan
from bellcrank.loops.common_base import loops_on_bases
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.group_shape import VIRTUAL
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Motion, Vector
from bellcrank.topology.tree import Tree

__all__ = ["BIBTEX", "OVER", "check_topology", "constrained_dynamics", "dependent_speeds", "forward_dynamics",
           "inverse_dynamics", "make_plan", "speed_changes"]

#: the functions for machines with loops sweep over groups of links, seen from their bases
OVER = ("groups", "bases")
#: corrections of speeds divide errors of integration by the pivots, which may shrink to this part
_SHRUNK = 0.1


def check_topology(tree: Tree) -> None:
    """Refuse a machine that the paper does not cover."""
    loops_on_bases(tree)


def constrained_dynamics(groups: Sweeps) -> Field:
    """Derivatives of the generalized speeds of a machine with loops."""
    known_width, burden_width, motion_width = (width_of(layout, groups) for layout in (KNOWN, BURDEN, MOTION))
    axes = _axes(groups)
    state = groups.outward(partial(outward_remainders, known_width), root=(0.0,) * known_width)
    solution, _ = groups.inward(partial(inward_reduction, burden_width), state, axes, zero=(0.0,) * burden_width)
    return groups.outward(partial(outward_substitution, motion_width), state, solution, root=(0.0,) * motion_width)


def dependent_speeds(groups: Sweeps) -> Field:
    """All generalized speeds from the independent ones of u, which alone are read."""
    width = width_of(SPEEDS, groups)
    return groups.outward(partial(outward_speeds, width), root=(0.0,) * width)


def speed_changes(groups: Sweeps) -> Field:
    """Changes of the dependent speeds of u to what the independent ones make of them."""
    width = width_of(SPEEDS, groups)
    return groups.outward(partial(outward_speed_changes, width), root=(0.0,) * width)


def _outward(group: GroupView, base: Any, virtual: Any, step: Callable[[Link, Any], Any]) -> dict[int, Any]:
    """A value for each member, from its parent's."""
    out: dict[int, Any] = {}
    for k, (link, parent) in enumerate(zip(group.links, group.shape.parents, strict=True)):
        out[k] = step(link, virtual if parent == VIRTUAL else base if parent < 0 else out[parent])
    return out


def _axes(groups: Sweeps) -> Field:
    """Every member's axes in the world where external wrenches need them, else None."""
    if not groups.world.world.external:
        return groups.constant(None)
    width = width_of(AXES, groups)
    return groups.outward(partial(outward_axes, width), root=(0.0,) * width)


def outward_axes(width: int, group: GroupView, flat: Sequence[Number]) -> tuple[Any, Any]:
    def turned(link: Link, axes: General) -> General:
        for t in link.transforms:
            axes = t.turned(axes)
        return axes

    base = base_of(AXES, group, flat, ground_axes(group))
    members = _outward(group, base, virtual_of(AXES, group, flat), turned)
    return to_children(AXES, group, width, base, members, members), members


# -- outward: dependent speeds -------------------------------------------------------------------------------------
def outward_speeds(width: int, group: GroupView, flat: Sequence[Number], shrunk: float = SHRUNK
                   ) -> tuple[tuple[Number, ...], Any]:
    rest = at_rest(Motion.zero())
    virtual = virtual_of(SPEEDS, group, flat)
    speeds = {v: 0.0 if v in group.shape.dependent else group.links[k].u[c]
              for v, (k, c) in enumerate(group.shape.speeds)}
    if group.shape.closures:
        still = relative_to_base(group, _at_speeds(group, speeds), rest, virtual)
        for d in dependent_speeds_of(group, lacking_velocity, rest, still, virtual, shrunk):
            speeds[d.speed] = d.offset  # (47), (51): V_t of the phantom holds what is independent, too
    links = _at_speeds(group, speeds)
    members = relative_to_base(group, links, rest, virtual) if group.shape.hosts else {}  # (46), (50)
    return (to_children(SPEEDS, group, width, (), dict.fromkeys(range(len(links)), ()), from_base(group, members)),
            tuple(x for link in links for x in link.u))


def outward_speed_changes(width: int, group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], Any]:
    sent, speeds = outward_speeds(width, group, flat, _SHRUNK)
    given = [x for link in group.links for x in link.u]
    return sent, tuple(new - old for new, old in zip(speeds, given, strict=True))


def _at_speeds(group: GroupView, speeds: dict[int, Number]) -> list[Link]:
    number = {pair: v for v, pair in enumerate(group.shape.speeds)}
    return [link.with_speeds([speeds[number[k, c]] if (k, c) in number else x for c, x in enumerate(link.u)])
            for k, link in enumerate(group.links)]


# -- outward: what is known from the state, and the loops' dependent speeds -----------------------------------------
class GroupState(NamedTuple):
    """What is known of the members and of the virtual body, and the reduced loops."""

    known: dict[int, Known]
    virtual: Relative | None
    dependent: tuple[Dependent, ...]


def outward_remainders(width: int, group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], GroupState]:
    shape = group.shape
    gravity = Motion(Vector.zero(), -group.world.gravity)
    base = base_of(KNOWN, group, flat, Known(Vector.zero(), gravity))
    host: HostBody | None = virtual_of(KNOWN, group, flat)
    virtual = None if host is None else host.relative
    known = _outward(group, base, None if host is None else host.seen_from_ground, _remainder)
    relative: dict[int, Relative] = {}
    dependent: tuple[Dependent, ...] = ()
    rest = at_rest(gravity if shape.grounded else Motion.zero())  # gravity cancels around a loop
    if shape.closures or shape.hosts:
        relative = relative_to_base(group, group.links, rest, virtual)
    if shape.closures:
        dependent = dependent_speeds_of(group, lacking_acceleration, rest, relative, virtual)
    hosted = {k: HostBody(body, () if shape.grounded else known[k]) for k, body in from_base(group, relative).items()}
    return to_children(KNOWN, group, width, base, known, hosted), GroupState(known, virtual, dependent)


def _remainder(link: Link, parent: Known) -> Known:
    omega, remainder = parent
    for t in link.transforms:
        moved = t.acceleration(remainder)  # d/dt (8): (S^k)^T A_t
        remainder = Motion(moved.angular, moved.linear + t.rotation.inverse(omega.centripetal(t.translation)))
        omega = t.rotation.inverse(omega)
    rate = link.rate
    remainder = remainder + link.drift + Motion(omega.cross(rate.angular), omega.cross(rate.linear) * 2.0)  # d/dt (8)
    return Known(omega + rate.angular, remainder)  # (2)


# -- inward: loops become virtual bodies ----------------------------------------------------------------------------
class Solution(NamedTuple):
    """What is needed to go outwards again."""

    rows: tuple[ReducedRow, ...]
    dependent: tuple[Dependent, ...]
    early: dict[int, tuple[Pivot, ...]]


def inward_reduction(width: int, group: GroupView, received: Sequence[Number], state: GroupState,
                     axes: dict[int, General] | None) -> tuple[tuple[Number, ...], Solution]:
    shape = group.shape
    terms = Terms()
    masses, forces = _own(group, state, axes)
    ports = len(shape.ports.bodies)
    for i, b in enumerate(shape.ports.bodies):
        mass, force = unpacked(BURDEN, shape, ports, received, body=i)
        if b < 0:
            terms.at_base = Burden(terms.at_base.mass + mass, terms.at_base.force + force)
        else:
            masses[b], forces[b] = add_masses(masses[b], mass), forces[b] + force  # (14), (15)
    hosted = {k: unpacked(BURDEN, shape, ports, received, host=i) for i, k in enumerate(shape.hosts)}
    if not shape.grounded:
        compose_base(group, terms, masses, forces, hosted, state.virtual)
    for k, virtual in hosted.items():  # (60): terminal bodies of this group's tree
        masses[k] = add_masses(masses[k], virtual.own.mass)
        forces[k] = forces[k] + virtual.own.force
    compose(group, terms, masses, forces)
    substitute(group, terms, state.dependent)
    rows = tuple(remove(terms, v) for v in shape.independent)
    return _message(width, group, terms), Solution(rows, state.dependent, terms.early)


def _message(width: int, group: GroupView, terms: Terms) -> tuple[Number, ...]:
    shape = group.shape
    return packed(BURDEN, shape, len(shape.above.bodies), width,
                  {} if shape.body_slot < 0 else {shape.body_slot: terms.at_base},
                  {} if shape.host_slot < 0 else {shape.host_slot: terms.virtual})


def _own(group: GroupView, state: GroupState, axes: dict[int, General] | None) -> tuple[dict[int, Mass],
                                                                                       dict[int, Force]]:
    """I^k and -F^k, (11), (12)."""
    masses: dict[int, Mass] = {}
    forces: dict[int, Force] = {}
    for k, link in enumerate(group.links):
        known = state.known[k]
        masses[k] = link.inertia
        forces[k] = link.inertia @ known.remainder + link.inertia.gyroscopic(known.omega)
        if axes is not None:
            forces[k] = forces[k] - link.external(axes[k])
    return masses, forces


# -- outward: accelerations -----------------------------------------------------------------------------------------
def outward_substitution(width: int, group: GroupView, flat: Sequence[Number], state: GroupState, solution: Solution
                         ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    shape = group.shape
    base = base_of(MOTION, group, flat, Motion.zero())  # (69)
    body = virtual_of(MOTION, group, flat) or Motion.zero()
    speeds: dict[int, Number] = {}
    for row in reversed(solution.rows):
        speeds[row.speed] = row.free - base.dot(row.base) - body.dot(row.body) - total(
            x * speeds[w] for w, x in row.factors)  # (70)
    for d in solution.dependent:
        speeds[d.speed] = d.offset + body.dot(d.body) + total(x * speeds[r] for r, x in d.factors)  # (55)
    udots = {k: _udot(group, k, speeds) for k in range(len(group.links))}
    whole = {VIRTUAL: body if state.virtual is None else state.virtual.pose.acceleration(base) + body, -1: base}
    relative = {VIRTUAL: body, -1: Motion.zero()}
    for k, (link, parent) in enumerate(zip(group.links, shape.parents, strict=True)):
        motion = _moved(link, whole[parent])
        if k in solution.early:
            whole[k], udots[k] = solve(motion, link.columns, link.mask, solution.early[k], link.prescribed_udot)  # (67)
        else:
            whole[k] = _turned(group, k, motion, speeds)  # (68)
        if shape.hosts:
            relative[k] = _turned(group, k, _moved(link, relative[parent]), speeds)  # (71)
    return (to_children(MOTION, group, width, base, whole, relative),
            tuple(x for k in range(len(group.links)) for x in udots[k]))


def _udot(group: GroupView, k: int, speeds: dict[int, Number]) -> list[Number]:
    udot = group.links[k].prescribed_udot
    for v, c in speeds_of(group, k):
        udot[c] = speeds.get(v, 0.0)
    return udot


def _moved(link: Link, motion: Motion) -> Motion:
    for t in link.transforms:
        motion = t.acceleration(motion)  # (68), (71): (S^k)^T
    return motion


def _turned(group: GroupView, k: int, motion: Motion, speeds: dict[int, Number]) -> Motion:
    for v, c in speeds_of(group, k):
        motion = motion + group.links[k].columns[c] * speeds.get(v, 0.0)  # (68), (71): P_k udot_k
    return motion
