"""What a machine is made of: bodies, joints, loops, mobility, redundant constraints, cuts and independent speeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.compiled.system import System
from bellcrank.errors import BellcrankError
from bellcrank.loops.drawing_tolerance import Drawing, drawing_text
from bellcrank.loops.loop_paths import loop_joints
from bellcrank.mechanism.joints import Planar, Prismatic, Revolute

__all__ = ["Explanation", "LoopReport", "explain"]


# -- which loads of closing joints mechanics alone does not determine, and which loops lie in a plane ---
#: machines with more constraints are not asked: the Jacobian is dense here
MOST = 400
#: entries of unit vectors below this are zero; singular values below this part of the largest are none
_NONE, _RANK = 1e-6, 1e-9


def open_rows(system: System, q: Floats) -> tuple[int, ...]:
    """Constraints whose loads are not determined at a closed position: those that take part in loads which balance each
    other, J^T lambda = 0. Cost: O(m^2 nu) for m constraints."""
    drawn, drawing = system.plans.drawn, system.plans.drawing
    rows = drawn.dense(drawn.linearized(q)[1]) * system.model.tree.speed_sizes  # angles and lengths alike
    nothing = _RANK if drawing is None else 10.0 * system.model.options.drawing_tolerance
    if not rows.size or len(rows) > MOST:
        return ()
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    some = sizes > _RANK * sizes.max()  # others are rounding, and bind nothing
    left, values, _ = np.linalg.svd(np.where(some, rows / np.where(some, sizes, 1.0), 0.0))
    rank = int((values > nothing * values.max(initial=0.0)).sum())
    return tuple(np.flatnonzero(np.abs(left[:, rank:]).max(axis=1, initial=0.0) > _NONE).tolist())


def joint_axes(system: System, q: Floats) -> dict[str, tuple[bool, Floats]]:
    """Of hinges, slides and planar joints: whether it slides, and its axis (the normal) in world axes."""
    mechanism = system.model.mechanism
    turns = np.concatenate([np.eye(3)[None], np.asarray(system.pose(q).rotation).reshape(-1, 3, 3)])
    found = {}
    for record in mechanism.joints:
        kind = record.joint
        if isinstance(kind, (Revolute, Prismatic, Planar)):
            axis = np.asarray(kind.normal if isinstance(kind, Planar) else kind.axis, dtype=float)
            turn = system.model.values_of(record.parent_pose.rows).reshape(-1, 3, 3)[0]
            found[record.name] = (isinstance(kind, Prismatic), np.asarray(turns[record.parent] @ turn @ axis))
    return found


def plane_of(axes: Mapping[str, tuple[bool, Floats]], joints: Sequence[str]) -> Floats | None:
    """The normal of the plane in which a loop of these joints moves; None if there is none."""
    if any(name not in axes for name in joints):
        return None
    normals = [axis for slides, axis in (axes[name] for name in joints) if not slides]
    slides = [axis for sliding, axis in (axes[name] for name in joints) if sliding]
    if not normals or any(np.abs(np.cross(normals[0], axis)).max() > _NONE for axis in normals):
        return None
    return None if any(abs(float(normals[0] @ axis)) > _NONE for axis in slides) else normals[0]


@dataclass(frozen=True)
class LoopReport:
    """One loop."""

    closed_by: str
    kind: str
    why: str  #: why this joint was cut
    joints: tuple[str, ...]  #: around the loop, the closing one last
    conditions: int
    redundant: int  #: constraints that follow from the others
    plane: str = ""  #: the axis that all its axes are parallel to, if it moves in a plane


@dataclass(frozen=True)
class Explanation:
    """A machine explained; prints as text."""

    name: str
    bodies: tuple[str, ...]
    joints: tuple[tuple[str, str, str, str], ...]  #: name, type, parent, child
    loops: tuple[LoopReport, ...]
    clusters: tuple[tuple[str, ...], ...]  #: loops that share joints, by what closes them
    mobility_counted: int  #: joint speeds less six for every loop (Gruebler)
    mobility: int | None  #: by the rank of the constraints; None if the machine does not close
    redundant: tuple[str, ...]  #: names of redundant constraints, such as ``D: about x``, in axes of the joint's frame
    independent: tuple[str, ...]
    prescribed: tuple[str, ...]
    why_independent: str
    problem: str  #: why nothing is known about mobility
    #: loads that mechanics alone does not determine, named as `redundant` are; empty of very large machines
    undetermined: tuple[str, ...] = ()
    #: what is said of redundant constraints that contradict others, and are dropped; empty if there are none
    drawing: str = ""

    @property
    def rank(self) -> int:
        """Independent constraints."""
        return sum(r.conditions - r.redundant for r in self.loops)

    def __str__(self) -> str:
        lines = [f"{self.name}: {_count(len(self.bodies), 'body', 'bodies')}, {_count(len(self.joints), 'joint')}, "
                 f"{_count(len(self.loops), 'loop')}"]
        width = max((len(j[0]) for j in self.joints), default=0)
        for name, kind, parent, child in self.joints[:60]:
            lines.append(f"  {name:<{width}}  {kind:<12} {parent} - {child}")
        if len(self.joints) > 60:
            lines.append(f"  ... and {len(self.joints) - 60} more joints")
        for r in self.loops[:30]:
            around = ", ".join(r.joints[:10]) + (" ..." if len(r.joints) > 10 else "")
            lines.append(f"loop through {around}")
            lines.append(f"  cut at {r.closed_by} ({r.kind}): {r.why}; {_count(r.conditions, 'condition')}"
                         + (f", {r.redundant} of them redundant" if r.redundant else "")
                         + (f"; it is planar, all axes along {r.plane}" if r.plane else ""))
        if len(self.loops) > 30:
            lines.append(f"... and {len(self.loops) - 30} more loops")
        if self.loops:
            lines.append(f"{len(self.clusters)} cluster{'s' * (len(self.clusters) != 1)} of coupled loops, the largest "
                         f"with {max(len(c) for c in self.clusters)}")
        lines += self._freedom()
        return "\n".join(lines)

    def _freedom(self) -> list[str]:
        if self.mobility is None:
            return [f"mobility: {self.mobility_counted} by counting; unknown by rank: {self.problem}"]
        lines = [f"mobility: {self.mobility} (by counting joints and loops: {self.mobility_counted})"]
        if self.redundant:
            lines += self._redundancy()
        if self.prescribed:
            lines.append(f"prescribed: {', '.join(self.prescribed[:12])}")
        shown = ", ".join(self.independent[:12]) + (" ..." if len(self.independent) > 12 else "")
        lines.append(f"independent speeds: {shown or 'none'} ({self.why_independent})")
        return lines


    def _redundancy(self) -> list[str]:
        """What redundant conditions mean, in an engineer's words."""
        lines = [f"{_count(len(self.redundant), 'redundant condition')}, which counting takes for independent: "
                 f"{_some(self.redundant)}"]
        flat = [r for r in self.loops if r.plane and r.redundant]
        if flat:
            which = "it moves" if len(self.loops) == 1 else (
                "all loops move" if len(flat) == len(self.loops) else f"the loops closed by "
                f"{_some([r.closed_by for r in flat])} move")
            lines.append(f"  a planar mechanism in space: {which} in a plane, in which every joint keeps its bodies, "
                         "more often than needed")
        left_open = _some(self.undetermined or self.redundant)
        if self.drawing:
            lines.append(f"  {self.drawing}")
        return [*lines, "  motion, driving forces and all reactions but these are exact and unique",
                f"  mechanics alone does not determine the loads {left_open}, and what they cause in",
                "  other joints of the loop: those reported are smallest at the cut joints; a ball joint or a bushing "
                "in place of a hinge decides"]


def _some(names: Sequence[str]) -> str:
    return ", ".join(names[:12]) + (" ..." if len(names) > 12 else "")


def _count(n: int, one: str, several: str = "") -> str:
    return f"{n} {one if n == 1 else several or one + 's'}"


def explain(system: System) -> Explanation:
    """Explain a system. Cost: linear in its size.

    >>> import bellcrank as bc
    >>> print(str(bc.analyze.explain(bc.compile(bc.load("four_bar")))).splitlines()[-1])
    independent speeds: A.angle (largest pivots at a general position near the neutral one)
    """
    mechanism, tree = system.model.described, system.model.tree
    names = ["ground", *(b.name for b in mechanism.bodies)]
    plan, problem, place = None, "", system.neutral()
    if tree.looped:
        try:
            plan, place, _ = system.plans.any_reference()
        except BellcrankError as error:
            problem = str(error)
    drawing = system.plans.drawing if plan is not None else None
    dropped = set() if plan is None else {*plan.redundant, *_dropped(drawing)}
    loops = [] if not tree.looped else _loops(system, dropped, place)
    all_speeds = sum(r.joint.nu for r in mechanism.joints)
    held = system.model.prescribed_mask()
    rows = sum(c.rows for c in tree.closures if not c.is_joint) + len(tree.relations)
    counted = all_speeds - 6 * len(tree.cut_names) - rows - int(held.sum())
    chosen = [i for i in range(system.nu) if not held[i]] if plan is None else list(
        system.plans.shown(place, 0.0))
    wanted = system.model.options.independent
    why = "a tree: all speeds are" if not tree.looped else (
        f"asked for: {', '.join(wanted)}" if wanted else "largest pivots at a general position near the neutral one")
    return Explanation(
        mechanism.name, tuple(names[1:]),
        tuple((r.name, type(r.joint).__name__, names[r.parent], names[r.child]) for r in mechanism.joints),
        tuple(loops), _clusters(system), counted,
        None if tree.looped and plan is None else system.dof,
        tuple(system.plans.loops.row_names[r] for r in sorted(dropped)) if dropped else (),
        tuple(system.speed_names[i] for i in chosen) if tree.looped else system.speed_names,
        tuple(n for n, yes in zip(system.speed_names, held, strict=True) if yes), why, problem,
        tuple(system.plans.loops.row_names[r] for r in open_rows(system, place)) if dropped else (),
        "" if drawing is None else drawing_text(system.plans.drawn, drawing))


def _dropped(drawing: Drawing | None) -> list[int]:
    return [] if drawing is None else np.flatnonzero(~drawing.used).tolist()


def _loops(system: System, dropped: set[int], q: Floats) -> list[LoopReport]:
    tree, starts = system.model.tree, system.plans.loops.starts
    reasons = dict(zip(tree.cut_names, tree.cut_reasons, strict=True))
    out, axes = [], joint_axes(system, q) if dropped else {}
    kinds = {r.name: type(r.joint).__name__ for r in system.model.described.joints}
    for i, c in enumerate(tree.closures):
        rows = range(int(starts[i]), int(starts[i + 1]))
        why = reasons.get(c.name, "a constraint, which only closes loops") + ", driven by time" * c.timed
        if c.nonholonomic:
            why += f", {c.nonholonomic} of its conditions on speeds alone"
        joints, redundant = tuple(loop_joints(tree, i)), sum(r in dropped for r in rows)
        normal = plane_of(axes, joints) if redundant else None
        out.append(LoopReport(c.name, kinds.get(c.name, type(c.kind).__name__), why, joints, c.rows, redundant,
                              "" if normal is None else _axis(normal)))
    for k, relation in enumerate(tree.relations):
        joints = tuple(tree.joint_names[link] for link, _, _ in relation.terms)
        out.append(LoopReport(relation.name, "coupler", "a coupler of joint coordinates", (*joints, relation.name), 1,
                              int(system.plans.loops.m_closures + k in dropped)))
    return out


def _axis(direction: Floats) -> str:
    """x, y or z, or three numbers."""
    for i, name in enumerate("xyz"):
        if abs(abs(float(direction[i])) - 1.0) < 1e-9:
            return name
    return f"({', '.join(f'{x:.3g}' for x in np.asarray(direction).tolist())})"


def _clusters(system: System) -> tuple[tuple[str, ...], ...]:
    """Loops that share speeds."""
    if not system.model.tree.looped:
        return ()
    loops, names = system.plans.loops, system.loops
    rows = [range(a, b) for a, b in zip(loops.starts[:-1], loops.starts[1:], strict=True)]
    own = dict(zip(names, [*rows, *([r] for r in range(loops.m_closures, loops.m))], strict=True))
    bound = [tuple(name for name in names if own[name] and mask[own[name][0]]) for mask, _ in loops.clusters]
    return (*bound, *((name,) for name in names if not own[name]))
