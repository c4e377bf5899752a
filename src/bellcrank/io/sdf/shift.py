"""Where a machine is drawn when it is written as SDF, and its joints as seen from there."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.mechanism.joints import Free, Universal
from bellcrank.mechanism.mechanism import Connection, Mechanism
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.spatial import Vector

__all__ = ["JointPlace", "LinkPlace", "Placed", "placed"]

#: loops that close better than this at zero need not be assembled
_CLOSED = 1e-12


@dataclass(frozen=True, slots=True)
class LinkPlace:
    """The pose of a link in the frame of a joint, or in the world."""

    joint: str | None
    pose: Pose


@dataclass(frozen=True, slots=True)
class JointPlace:
    """The pose of a joint in a link (0 is the world), or in its child."""

    base: int | None
    pose: Pose


@dataclass(frozen=True, slots=True)
class Placed:
    """The position a file draws: coordinates of every joint, and where links and joints are given."""

    start: dict[str, tuple[float, ...]]
    links: dict[int, LinkPlace]
    joints: dict[str, JointPlace]


@dataclass(frozen=True, slots=True)
class _Ends:
    """The joint's frame on its parent and on its child, moved so that they coincide in the drawn position."""

    parent: Pose
    child: Pose


def placed(machine: Mechanism, q: npt.ArrayLike | None) -> Placed:
    """Where to draw the machine: at zero if it closes there, else assembled, or at `q`."""
    zero = {j.name: tuple(j.joint.neutral().tolist()) for j in machine.joints}
    made = None if q is not None else _walk(machine, zero)
    if made is None:
        start = _assembled(machine, q)
        made = _walk(machine, start, closed=True)
        assert made is not None
    return made


def _assembled(machine: Mechanism, q: npt.ArrayLike | None) -> dict[str, tuple[float, ...]]:
    """Coordinates of all joints, cut ones included, in a position in which the loops close."""
    from bellcrank.compiled.compile import compile
    from bellcrank.system.loop_errors import loop_coordinates

    system = compile(machine)
    place = system.assemble().q if q is None else system.assemble(q=q).q
    start: dict[str, tuple[float, ...]] = {}
    at = 0
    for joint in machine.joints:
        if joint.name in system.joint_names:
            start[joint.name] = tuple(place[at:at + joint.joint.nq].tolist())
            at += joint.joint.nq
        elif joint.joint.nq:
            start[joint.name] = tuple(loop_coordinates(system.plans, place, joint.name).tolist())
        else:
            start[joint.name] = ()
    return start


def _ends(joint: Connection, start: tuple[float, ...]) -> _Ends:
    kind = joint.joint
    if start == tuple(kind.neutral().tolist()):
        return _Ends(joint.drawn_pose, joint.child_pose)
    if isinstance(kind, Universal):  # each of the two turns goes to its own side
        return _Ends(joint.parent_pose @ Pose.about(kind.axis1, start[0]),
                     joint.child_pose @ Pose.about(kind.axis2, -start[1]))
    return _Ends(joint.parent_pose @ _motion(joint, start), joint.child_pose)


def _motion(joint: Connection, start: tuple[float, ...]) -> Pose:
    """The pose of the child side in the parent side."""
    kind = joint.joint
    turn, shift = np.eye(3), np.zeros(3)
    for factor in kind.transforms(kind.normalized(list(start)), [float(k) for k in kind.constants()]):
        shift = shift + turn @ np.array(tuple(factor.translation), dtype=float)
        columns = [tuple(factor.rotation.apply(Vector(*e))) for e in np.eye(3).tolist()]
        turn = turn @ np.array(columns, dtype=float).T
    axes = kind.alignment()
    return Pose((axes @ shift).tolist(), axes @ turn @ axes.T)


def _walk(machine: Mechanism, start: dict[str, tuple[float, ...]], *, closed: bool = False) -> Placed | None:
    """Places along a spanning tree from the ground; None if a loop does not close."""
    ends = {j.name: _ends(j, start[j.name]) for j in machine.joints}
    around: dict[int, list[Connection]] = {}
    for joint in machine.joints:
        for body in (joint.parent, joint.child):
            around.setdefault(body, []).append(joint)
    world, links, joints = {0: Pose()}, {}, {}
    queue = deque([0])
    # joints first, then what hangs on the ground freely: SDF has no joint for that
    later = [j for j in machine.joints if isinstance(j.joint, Free)]
    while queue or later:
        if not queue:
            joint = later.pop(0)
            body = joint.child if joint.parent == 0 else joint.parent
            if body in world:
                continue  # others hold it, and a free joint holds nothing
            world[body] = _across(joint, ends[joint.name], body, world[0])
            links[body] = LinkPlace(None, world[body])
            queue.append(body)
        here = queue.popleft()
        for joint in around.get(here, ()):
            other = joint.child if joint.parent == here else joint.parent
            if other in world or isinstance(joint.joint, Free):
                continue
            world[other] = _across(joint, ends[joint.name], other, world[here])
            near, far = ends[joint.name].parent, ends[joint.name].child
            if other == joint.parent:
                near, far = far, near
            joints[joint.name] = JointPlace(here, near)
            links[other] = LinkPlace(joint.name, _inverse(far))
            queue.append(other)
    for part in machine.bodies:
        if part.index not in world:
            raise ModelError(f"body {part.name!r} hangs on nothing; join it to the ground")
    for joint in machine.joints:
        if joint.name in joints or isinstance(joint.joint, Free):
            continue
        end = ends[joint.name]
        if not closed and _gap(world[joint.parent] @ end.parent, world[joint.child] @ end.child) > _CLOSED:
            return None
        joints[joint.name] = JointPlace(joint.child, end.child)
    return Placed(start, links, joints)


def _across(joint: Connection, ends: _Ends, other: int, here: Pose) -> Pose:
    if other == joint.child:
        return here @ ends.parent @ _inverse(ends.child)
    return here @ ends.child @ _inverse(ends.parent)


def _inverse(pose: Pose) -> Pose:
    if pose.rows == IDENTITY_ROWS:
        return Pose([-float(x) + 0.0 for x in pose.position])
    return pose.inverse()


def _gap(one: Pose, other: Pose) -> float:
    return max(float(np.abs(np.subtract(one.rows, other.rows)).max()),
               max(abs(float(a) - float(b)) for a, b in zip(one.position, other.position, strict=True)))
