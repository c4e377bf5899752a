"""What makes a tree of links a machine with loops: closures, couplers, and forces between distant links."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Side, at_time
from bellcrank.mechanism.flexible.deformation import Modal
from bellcrank.mechanism.forces import Actuator, MachineForce
from bellcrank.mechanism.forces.element import Along
from bellcrank.mechanism.forces.motors import EVERY
from bellcrank.mechanism.joints import Prismatic
from bellcrank.mechanism.mechanism import Connection, Mechanism
from bellcrank.mechanism.parts import Constraint, StateRate
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.spatial import Vector
from bellcrank.topology.check_closing import check_closing
from bellcrank.topology.contact_pairs import ContactPair
from bellcrank.topology.pairs import BushingPair, DragPair, Pair, PointPair, SumForce, WrenchPair
from bellcrank.topology.spanning_tree import Topology
from bellcrank.topology.tree import Closure, LinkStep, LoopJoint, Relation, Tree

if TYPE_CHECKING:
    from bellcrank.topology.builder import _Builder

__all__ = ["add_loops"]


def add_loops(tree: Tree, *, mechanism: Mechanism, topology: Topology, builder: _Builder) -> Tree:
    """The tree with everything that is not part of a tree. Cost: O(joints)."""
    records = mechanism.joints
    parts: list[Connection | Constraint] = [records[i] for i in topology.closing]
    index = {r.name: i for i, r in enumerate(parts)}
    parts += mechanism.constraints
    turns: dict[str, Any] = {}
    checked: set[object] = set()
    ends = _closed_from(topology, records)
    closures = tuple(_closure(part, builder, turns, checked, part.name in ends) for part in parts)
    link_of = {name: link for link, name in enumerate(tree.joint_names) if link}
    relations = _relations(link_of, mechanism, index)
    joints = tuple(LoopJoint(closures[k], *builder.starts[i]) for k, i in enumerate(topology.closing)
                   if closures[k].kind.nu)
    of_loops = {own.name: link for link, own in enumerate(joints, tree.n + 1)}
    forces, pairs, named = _forces({**link_of, **of_loops}, mechanism, index, builder)
    steps = _steps(tree, topology, builder, len(topology.closing), len(closures)) \
        if closures or relations else ()
    return replace(tree, loop_joints=joints, cut_names=tuple(records[i].name for i in topology.closing),
                   cut_reasons=topology.reasons, closures=closures,
                   relations=relations, steps=steps, joint_forces=forces, pairs=pairs,
                   named_forces=named, joint_ends=_joint_ends({**link_of, **of_loops}, mechanism, builder),
                   contacts=tuple(pair for pair, rigid in _contacts(mechanism, builder) if rigid),
                   actuators=_actuators(link_of, mechanism, index),
                   armatures=_armatures(link_of, mechanism, index))


def _closed_from(topology: Topology, records: Sequence[Connection]) -> set[str]:
    """Joints that close a loop which begins with a slide, and whose child was placed with it, on a parent that was
    there before and moves: pins of connecting rods on the crank that other cylinders turn, too.

    Along the axes of what was placed last, the last joint before the cut always moves the same way, so that its
    constraint can be solved for it in all positions. Along those of a crank that turns it cannot: pivots vanish every
    quarter of a turn. (Loops of hinges alone stay along the axes of their parents: parallelograms cost less so.)
    """
    found: set[str] = set()
    for step in topology.steps:
        new = set(step.bodies)
        begins = [records[topology.joint[b]].joint for b in step.bodies if topology.parent[b] not in new]
        if any(isinstance(joint, Prismatic) for joint in begins):
            found |= {r.name for r in (records[i] for i in step.closing)
                      if r.child in new and r.parent and r.parent not in new}
    return found


def _closure(part: Connection | Constraint, builder: _Builder, turns: dict[str, Any], checked: set[object],
             along_child: bool) -> Closure:
    kind: Any = part.joint if isinstance(part, Connection) else part.kind
    if isinstance(part, Connection):
        if any(type(x) is Scalar for x in kind.constants()):
            raise ModelError(f"joint {part.name!r} closes a loop, where its own numbers (such as a pitch) cannot be "
                             "parameters; cut another joint of the loop with cut=")
        check_closing(part.name, kind, checked)
        kind = kind.along_child() if along_child else kind
    same = repr(kind)  # says everything about its axes
    align, child = turns[same] if same in turns else turns.setdefault(same, _alignments(kind))
    first, first_turn, first_shift = builder.frame_on_link(part.parent, part.parent_pose, align)
    second, second_turn, second_shift = builder.frame_on_link(part.child, part.child_pose, child)
    axes = (builder.axes_on_link(part.parent, part.parent_pose, align),
            builder.axes_on_link(part.child, part.child_pose, child))
    is_joint = isinstance(part, Connection)
    rows = 6 - kind.nu if is_joint else _count_rows(kind)
    return Closure(part.name, kind, first, second, first_turn, first_shift, second_turn, second_shift, rows, is_joint,
                   *axes)


def _alignments(kind: Any) -> tuple[Any, Any]:
    """The canonical axes in the frames on both sides: the same, unless a constraint has other axes on its child."""
    align = kind.alignment()
    return align, kind.child_alignment() if hasattr(kind, "child_alignment") else align


def _count_rows(kind: Any) -> int:
    names = getattr(kind, "condition_names", ())
    if names:
        return len(names)
    zero, x, y, z = Vector.zero(), Vector(1.0, 0.0, 0.0), Vector(0.0, 1.0, 0.0), Vector(0.0, 0.0, 1.0)
    side = Side(zero, zero, x, y, z, zero, zero)
    return len(kind.closure_rows(side, side, at_time(kind.constants(), 0.0)))


def _relations(link_of: dict[str, int], mechanism: Mechanism, cut: dict[str, int]) -> tuple[Relation, ...]:
    out = []
    for c in mechanism.couplers:
        for joint, _, _ in c.terms:
            if joint in cut:
                raise ModelError(f"coupler {c.name!r}: joint {joint!r} was cut to close a loop; cut another joint of "
                                 "that loop with cut=")
        out.append(Relation(c.name, tuple((link_of[j], i, f) for j, i, f in c.terms), c.offset))
    return tuple(out)


def _joint_ends(link_of: dict[str, int], mechanism: Mechanism, builder: _Builder
                ) -> dict[int, tuple[tuple[int, tuple[Number, ...]], ...]]:
    """Origins of the frames of joints along which forces act, on parent and child."""
    laden = {*(f.joint for f in mechanism.joint_forces), *(d.joint for d in mechanism.drives),
             *(joint for s in mechanism.joint_sums for joint, _, _ in s.terms)}
    out = {}
    for r in mechanism.joints:
        if r.name in laden and r.name in link_of and isinstance(r.parent_pose, Pose) and isinstance(r.child_pose, Pose):
            ends = (builder.frame_on_link(body, pose, np.eye(3))
                    for body, pose in ((r.parent, r.parent_pose), (r.child, r.child_pose)))
            out[link_of[r.name]] = tuple((link, shift) for link, _, shift in ends)
    return out


def _forces(link_of: dict[str, int], mechanism: Mechanism, cut: dict[str, int], builder: _Builder
            ) -> tuple[dict[int, tuple[tuple[int, Along], ...]], tuple[Pair | SumForce, ...],
                       dict[str, SumForce]]:
    """Forces on coordinates of tree joints by link, elements between links, and the first by name."""
    named: dict[str, SumForce] = {}
    forces: dict[int, tuple[tuple[int, Along], ...]] = {}
    pairs: list[Pair | SumForce] = []
    for index, kind in enumerate(builder.joints):
        if isinstance(kind, Modal):
            forces[index] = tuple(enumerate(kind.springs()))
    for state in mechanism.states:
        forces[link_of[state.name]] = ((0, StateRate(state.name, state.rate, 1.0, builder.uses[state.name].clock)),)
    for f in mechanism.joint_forces:
        link, along = link_of[f.joint], _told(f, builder)
        force = SumForce(f.name, ((link, f.coordinate, 1.0),), along)
        if f.joint in cut:
            pairs.append(force)
            continue
        forces[link] = (*forces.get(link, ()), (f.coordinate, along))
        named[f.name] = force
    for many in mechanism.joint_sums:
        for joint in (j for j, _, _ in many.terms if j in cut):
            raise ModelError(f"joint force {many.name!r}: joint {joint!r} was cut to close a loop; cut another joint "
                             "of that loop with cut=")
        pairs.append(SumForce(many.name, tuple((link_of[j], i, f) for j, i, f in many.terms),
                              _told(many, builder)))
    plain = np.eye(3)
    for s in mechanism.springs:
        first, _, a = builder.frame_on_link(s.first, Pose(s.first_point), plain)
        second, _, b = builder.frame_on_link(s.second, Pose(s.second_point), plain)
        pairs.append(PointPair(s.name, first, second, a, b, _told(s, builder)))
    for c in mechanism.bushings:
        one, other = _frame(builder, c.first, c.first_pose), _frame(builder, c.second, c.second_pose)
        pairs.append(BushingPair(c.name, one[0], other[0], *one[1:], *other[1:], c.bushing))
    for d in mechanism.drags:
        link, _, at = builder.frame_on_link(d.body, Pose(d.at), plain)
        if link:
            pairs.append(DragPair(d.name, link, at, d.drag))
    for w in mechanism.wrenches:
        link, turn, at = builder.frame_on_link(w.body, Pose(w.at), plain)
        if link and w.law is not None:
            pairs.append(WrenchPair(w.name, link, at, turn if w.axes == "body" else None, w.law,
                                    builder.uses[w.name].clock))
    pairs += [pair for pair, rigid in _contacts(mechanism, builder) if not rigid]
    return forces, tuple(pairs), named


def _frame(builder: _Builder, body: int, pose: Pose
           ) -> tuple[int, tuple[tuple[Number, ...], ...], tuple[Number, ...]]:
    """The link of a frame, its axes and its origin there."""
    link, turn, shift = builder.frame_on_link(body, pose, np.eye(3))
    rows = builder.axes_on_link(body, pose, np.eye(3)) or tuple(turn.ravel().tolist())
    return link, (rows[0::3], rows[1::3], rows[2::3]), shift


def _contacts(mechanism: Mechanism, builder: _Builder) -> list[tuple[ContactPair, bool]]:
    """Contacts between links, and whether they are rigid."""
    out = []
    for c in mechanism.contacts:
        first, second = _frame(builder, c.first, c.first_pose), _frame(builder, c.second, c.second_pose)
        if first[0] == second[0]:
            raise ModelError(f"contact {c.name!r}: its bodies do not move against each other (they are welded "
                             "together, or both to the ground)")
        out.append((ContactPair(c.name, first[0], second[0], *first[1:], *second[1:], c.first_shape, c.second_shape,
                                c.material, c.bends, c.shape_names), c.rigid))
    return out


def _told(element: Any, builder: _Builder) -> Along:
    """The force of an element; of one that looks at the machine, whether it looks at the time."""
    along: Along = element.along
    return replace(along, clock=builder.uses[element.name].clock) if isinstance(along, MachineForce) else along


def _actuators(link_of: dict[str, int], mechanism: Mechanism, cut: dict[str, int]
               ) -> dict[int, tuple[tuple[int, Actuator], ...]]:
    found: dict[int, tuple[tuple[int, Actuator], ...]] = {}
    for d in mechanism.drives:
        if d.joint in cut:
            raise ModelError(f"actuator {d.name!r}: joint {d.joint!r} was cut to close a loop; cut another joint of "
                             "that loop with cut=")
        link = link_of[d.joint]
        found[link] = (*found.get(link, ()), (d.coordinate, d.actuator))
    return found


def _armatures(link_of: dict[str, int], mechanism: Mechanism, cut: dict[str, int]
               ) -> dict[int, tuple[tuple[int, Number], ...]]:
    found: dict[int, tuple[tuple[int, Number], ...]] = {}
    for a in mechanism.armatures:
        if a.joint in cut:
            raise ModelError(f"armature {a.name!r}: joint {a.joint!r} was cut to close a loop; cut a joint of that "
                             "loop that has no armature with cut=")
        link = link_of[a.joint]
        which = range(3) if a.coordinate == EVERY else (a.coordinate,)
        found[link] = (*found.get(link, ()), *((i, a.inertia) for i in which))
    for state in mechanism.states:  # rotors of unit inertia
        found[link_of[state.name]] = (*found.get(link_of[state.name], ()), (0, 1.0))
    return found


def _steps(tree: Tree, topology: Topology, builder: _Builder, joints: int, closures: int) -> tuple[LinkStep, ...]:
    """Placement of links, from the placement of bodies."""
    place = {joint: i for i, joint in enumerate(topology.closing)}
    heads = cast(Any, builder.heads)
    link_of = builder.link_of.tolist()
    steps = [LinkStep(tuple(link_of[b] for b in s.bodies if heads[link_of[b]] == b), tuple(place[c] for c in s.closing))
             for s in topology.steps]
    if not steps:
        steps = [LinkStep((link,), ()) for link in range(1, tree.n + 1)]
    steps += [LinkStep((), (i,)) for i in range(joints, closures)]
    return tuple(s for s in steps if s.links or s.closures)
