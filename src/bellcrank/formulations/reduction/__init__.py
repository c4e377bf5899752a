"""Recursive coordinate reduction: loops embedded at velocity and acceleration level, without multipliers.

K. S. Anderson and J. H. Critchley, "Improved 'Order-N' Performance Algorithm for the Simulation of Constrained
Multi-Rigid-Body Dynamic Systems", Multibody System Dynamics 9, 2003, sections 3 and 4 (with the errata of (51), (55),
(60) and of the last step into a moving base). Equation numbers are the paper's. Trees are treated as in section 2.

Going inwards, the dependent speeds of a loop are expressed by what moves independently, and the inertia and forces of
the loop's bodies are moved there: onto the loop's *virtual body* p_i, which was placed before, or onto the independent
speeds of the loop itself, which are then eliminated into the loop's base. What remains is a tree.

| paper | here |
|---|---|
| 0_i, p_i | a group's reference, its virtual body (see `messages`) |
| n_i | the far side of the closing joint, as the own links carry it |
| S^k, P_k, u_k | ``link.transforms``, ``link.columns``, ``link.u``; origins of links are the points of reference |
| A_t^k (7) | ``Known.remainder``; around a loop ``Relative.remainder`` |
| tau^k, Delta^k (37)-(45) | ``left``, ``inverse`` in `local_loop` |
| Gamma^k, Xi^k (51)-(55) | ``Dependent.factors`` and ``body``, ``offset``: their rows, joint by joint |
| P~_r^k (58) | rows of independent speeds after `substitute` |
| Ihat^{p;0}, Ihat^p, Fhat^p (60) | ``Virtual.cross``, ``Virtual.own`` |
| P_j^T Ihat^{j;0}, P_j^T Fhat^j, M_j (61)-(66) | ``Terms.base``, ``Terms.right``, ``Terms.matrix`` |
| Ihat^0, Fhat^0 (62)-(64) | ``Terms.at_base`` |

Declared deviations
- A loop is walked in the direction of the tree: from its base through the group's own links and the closing joint to
  the phantom, here a copy of the virtual body and not of the base (for a ring, of the base, as in the paper). With
  this Gamma = -Xi (S^n)^T around an ear, and one set of rows serves both.
- tau^n of the closing joint is the projection on its constraints, less those that the plan found to be redundant;
  all that follows stays in their few dimensions.
- Gamma^k and Xi^k, 6 x 6, are kept as the rows of (55), one for each dependent speed; (60) is then evaluated with the
  composite inertias of the own links, which is the same sum.
- The dependent speeds of a ring are those that the plan chose, not always the last ones around it, and so the paper's
  virtual body p_i within a ring is represented by its nonholonomic partial velocities (57), (58).
- The recursion of the remainder A_t, which the paper does not give, is the time derivative of (8) at du/dt = 0, as in
  `kane`; marked d/dt (8).
- Theta (79), (80) is implicit: an ear refers to its virtual body's whole acceleration, whose known part is A_t.
- The last step into a moving base is the corrected one: all bodies of the loop act on it by ^0S^k, not by Gamma^k.
- Forces have the opposite sign (what must be applied), gravity is an upward acceleration of the ground.

If a Delta shrinks below what the plan expects, the result is not a number and the library chooses other dependent
speeds. What the paper does not cover (4.4) `check_coverage` refuses: see `messages.role_of`.

Cost: O(n + m): a message of 27 numbers (90 where the base moves) from every loop; some 600 operations per cell of the
ladder, see `System.operation_count`.
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
from bellcrank.formulations.reduction.local_loop import Dependent, at_rest, from_base, reduce_loop, relative_to_base
from bellcrank.formulations.reduction.messages import (
    AXES,
    BURDEN,
    KNOWN,
    MOTION,
    Burden,
    Relative,
    Role,
    check_coverage,
    from_parent,
    packed,
    role_of,
    to_children,
    unpacked,
    width_of,
)
from bellcrank.lowering.group import GroupView
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import Number
from bellcrank.schedule.sweeps import Field, Sweeps
from bellcrank.spatial import Force, General, Motion, Vector

__all__ = ["BIBTEX", "OVER", "check_coverage", "constrained_dynamics", "forward_dynamics", "inverse_dynamics"]

#: the function for machines with loops sweeps over groups of links
OVER = ("groups",)

def constrained_dynamics(groups: Sweeps) -> Field:
    """Derivatives of the generalized speeds of a machine with loops."""
    known_width, burden_width, motion_width = (width_of(layout, groups) for layout in (KNOWN, BURDEN, MOTION))
    axes = _axes(groups)
    state = groups.outward(partial(outward_remainders, known_width), root=(0.0,) * known_width)
    solution, _ = groups.inward(partial(inward_reduction, burden_width), state, axes, zero=(0.0,) * burden_width)
    return groups.outward(partial(outward_substitution, motion_width), solution, root=(0.0,) * motion_width)


def _axes(groups: Sweeps) -> Field:
    """Every member's axes in the world where external wrenches need them, else None."""
    if not groups.world.world.external:
        return groups.constant(None)
    width = width_of(AXES, groups)
    return groups.outward(partial(outward_axes, width), root=(0.0,) * width)


def outward_axes(width: int, group: GroupView, flat: Sequence[Number]) -> tuple[Any, Any]:
    role = role_of(group.shape)
    base = from_parent(AXES, group, flat) if group.shape.body_slot >= 0 else ground_axes(group)

    def turned(link: Link, axes: General) -> General:
        for t in link.transforms:
            axes = t.turned(axes)
        return axes

    members = _outward(group, role, base, turned)
    return to_children(AXES, group, role, width, base, members, dict.fromkeys(members, ())), members


def _outward(group: GroupView, role: Role, base: Any, step: Callable[[Link, Any], Any]) -> dict[int, Any]:
    """A value for each own member, from its parent's."""
    members: dict[int, Any] = {}
    for k in role.own:
        parent = group.shape.parents[k]
        members[k] = step(group.links[k], base if parent < 0 else members[parent])
    return members


# -- outward: what is known from the state, and the loops' dependent speeds -----------------------------------------
class GroupState(NamedTuple):
    """What is known of the own members, and the reduced loop."""

    known: dict[int, Known]
    dependent: tuple[Dependent, ...]


def outward_remainders(width: int, group: GroupView, flat: Sequence[Number]) -> tuple[tuple[Number, ...], GroupState]:
    shape = group.shape
    role = role_of(shape)
    gravity = Motion(Vector.zero(), -group.world.gravity)
    base = from_parent(KNOWN, group, flat) if shape.body_slot >= 0 else Known(Vector.zero(), gravity)
    known = _outward(group, role, base, _remainder)
    relative: dict[int, Relative] = {}
    dependent: tuple[Dependent, ...] = ()
    if shape.closures or role.slots:
        rest = at_rest(gravity if shape.grounded else Motion.zero())  # gravity cancels around a loop
        for k in role.own:
            parent = shape.parents[k]
            relative[k] = relative_to_base(group.links[k], rest if parent < 0 else relative[parent], parent < 0)
    if shape.closures:
        virtual = unpacked(KNOWN, shape, len(shape.above.bodies), flat, slot=role.slot) if role.foreign else None
        dependent = reduce_loop(group, role, rest, relative, virtual)
    return to_children(KNOWN, group, role, width, base, known, from_base(group, relative)), GroupState(known, dependent)


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
    role = role_of(shape)
    terms = Terms()
    masses, forces = _own(group, role, state, axes)
    ports = len(shape.ports.bodies)
    for i, b in enumerate(shape.ports.bodies):
        mass, force = unpacked(BURDEN, shape, ports, received, body=i)
        if b < 0:
            terms.at_base = Burden(terms.at_base.mass + mass, terms.at_base.force + force)
        else:
            masses[b], forces[b] = add_masses(masses[b], mass), forces[b] + force  # (14), (15)
    ears = {member: unpacked(BURDEN, shape, ports, received, slot=slot) for slot, member in role.slots}
    if not shape.grounded:
        compose_base(group, role, terms, masses, forces, ears)
    for member, virtual in ears.items():  # (60): terminal bodies of this group's tree
        masses[member] = add_masses(masses[member], virtual.own.mass)
        forces[member] = forces[member] + virtual.own.force
    compose(group, role, terms, masses, forces)
    substitute(group, role, terms, state.dependent)
    rows = tuple(remove(terms, v) for v in shape.independent)
    return _message(width, group, role, terms), Solution(rows, state.dependent, terms.early)


def _message(width: int, group: GroupView, role: Role, terms: Terms) -> tuple[Number, ...]:
    shape = group.shape
    return packed(BURDEN, shape, len(shape.above.bodies), width,
                  {} if shape.body_slot < 0 else {shape.body_slot: terms.at_base},
                  {role.slot: terms.virtual} if role.foreign else {})


def _own(group: GroupView, role: Role, state: GroupState, axes: dict[int, General] | None
         ) -> tuple[dict[int, Mass], dict[int, Force]]:
    """I^k and -F^k, (11), (12)."""
    masses: dict[int, Mass] = {}
    forces: dict[int, Force] = {}
    for k in role.own:
        link, known = group.links[k], state.known[k]
        masses[k] = link.inertia
        forces[k] = link.inertia @ known.remainder + link.inertia.gyroscopic(known.omega)
        if axes is not None:
            forces[k] = forces[k] - link.external(axes[k])
    return masses, forces


# -- outward: accelerations -----------------------------------------------------------------------------------------
def outward_substitution(width: int, group: GroupView, flat: Sequence[Number], solution: Solution
                         ) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
    shape = group.shape
    role = role_of(shape)
    base = from_parent(MOTION, group, flat) if shape.body_slot >= 0 else Motion.zero()  # (69)
    body = unpacked(MOTION, shape, len(shape.above.bodies), flat, slot=role.slot) if role.foreign else Motion.zero()
    speeds: dict[int, Number] = {}
    for row in reversed(solution.rows):
        speeds[row.speed] = row.free - base.dot(row.base) - body.dot(row.body) - total(
            x * speeds[w] for w, x in row.factors)  # (70)
    for d in solution.dependent:
        speeds[d.speed] = d.offset + body.dot(d.body) + total(x * speeds[r] for r, x in d.factors)  # (55)
    udots = {k: _udot(group, k, speeds) for k in role.own}
    whole: dict[int, Motion] = {}
    relative: dict[int, Motion] = {}
    for k in role.own:
        parent, link = shape.parents[k], group.links[k]
        motion = _moved(link, base if parent < 0 else whole[parent])
        if k in solution.early:
            whole[k], udots[k] = solve(motion, link.columns, link.mask, solution.early[k], link.prescribed_udot)  # (67)
        else:
            whole[k] = _turned(group, k, motion, speeds)  # (68)
        if role.slots:
            relative[k] = _turned(group, k, _moved(link, Motion.zero() if parent < 0 else relative[parent]),
                                  speeds)  # (71)
    return (to_children(MOTION, group, role, width, base, whole, relative),
            tuple(x for k in role.own for x in udots[k]))


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
