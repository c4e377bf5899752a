"""Carriers: bodies at which a `Mechanism` can be cut beside a joint, see `topology.carriers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bellcrank.errors import ModelError
from bellcrank.mechanism.inertia import Inertia
from bellcrank.mechanism.joints import Weld
from bellcrank.mechanism.parts import Body, Connection
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose
from bellcrank.scalar.graph import Number

if TYPE_CHECKING:
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["AT_CLOSING", "Carrier", "carried", "check_poses", "closing_numbers", "frame_parameters", "open_poses",
           "uncarried"]


@dataclass(frozen=True, slots=True)
class Carrier:
    """A body that a joint moves in place of a real one, to which it is welded."""

    name: str
    joint: str
    weld: str
    real: str
    shares: bool  #: whether links share the inertia of the real body


def carried(mechanism: Mechanism, joint: str, on_child: bool, shares: bool) -> tuple[Mechanism, Carrier]:
    """A copy in which a joint moves a carrier in place of its child, or of its parent."""
    made = mechanism.copy()
    record = made.joint(joint)
    body, pose = (record.child, record.child_pose) if on_child else (record.parent, record.parent_pose)
    index = len(made.bodies) + 1
    carrier = Carrier(f"{joint}.carrier", joint, f"{joint}.closing", (made.ground, *made.bodies)[body].name, shares)
    if carrier.name in {b.name for b in made.bodies} or carrier.weld in {r.name for r in made.joints}:
        raise ModelError(f"joint {joint!r} is cut: the names {carrier.name!r} and {carrier.weld!r} are needed for what "
                         "closes its loop; call your own parts otherwise")
    moved = replace(record, child=index) if on_child else replace(record, parent=index)
    made.replace_parts(
        bodies=(*made.bodies, Body(carrier.name, index, Inertia.zero())),
        joints=(*(moved if r.name == joint else r for r in made.joints),
                Connection(carrier.weld, Weld(), index, body, pose, pose)),
        carriers=(*made.carriers, carrier))
    return made, carrier


def uncarried(mechanism: Mechanism) -> Mechanism:
    """The mechanism as it was described, without carriers."""
    if not mechanism.carriers:
        return mechanism
    made = mechanism.copy()
    index = {b.name: b.index for b in (made.ground, *made.bodies)}
    instead = {index[c.name]: index[c.real] for c in made.carriers}
    gone = {c.name for c in made.carriers} | {c.weld for c in made.carriers}
    made.replace_parts(
        bodies=tuple(b for b in made.bodies if b.name not in gone),
        joints=tuple(replace(r, parent=instead.get(r.parent, r.parent), child=instead.get(r.child, r.child))
                     for r in made.joints if r.name not in gone), carriers=())
    return made


# -- frames of joints that are defined at the moment the joint closes: grippers, latches, feet on the floor ---
#: in place of a pose: the frame lies where the joint's other frame is when it closes
AT_CLOSING = "at closing"
_AXES = tuple(f"{row}{column}" for row in "xyz" for column in "xyz")


def check_poses(what: str, parent: Pose | str, child: Pose | str, closed: bool) -> tuple[tuple[Pose, Pose], str]:
    """Both poses as a description keeps them, and which of the two is defined at closing: "parent", "child" or none.

    That one comes back as the identity, in the place of which its parameters are put.
    """
    free = [side for side, pose in (("parent", parent), ("child", child))
            if isinstance(pose, str) and pose == AT_CLOSING]
    if free and closed:
        raise ModelError(f"{what}: a frame is defined at closing only if the joint is open at the start; give "
                         "closed=False")
    if len(free) == 2:
        raise ModelError(f"{what}: only one of its two frames can be defined at closing")
    poses = []
    for pose in (parent, child):
        if isinstance(pose, str) and pose == AT_CLOSING:
            pose = Pose()
        if not isinstance(pose, Pose):
            text = f"the text {pose!r}" if isinstance(pose, str) else type(pose).__name__
            raise ModelError(f"{what}: poses must be bellcrank.Pose, or {AT_CLOSING!r} with closed=False; got {text}")
        poses.append(pose.fixed(what, turns=True))
    return (poses[0], poses[1]), free[0] if free else ""


def closing_poses(poses: tuple[Pose, Pose], free: str, rigid: bool, numbers: Sequence[Number]) -> tuple[Pose, Pose]:
    """Both poses, with parameters in the one that is defined at closing.

    All axes of a weld are alike: they are taken along those of the body on that side, and are parameters on the other.
    What the weld then states of a body that is grasped looks the same whatever its pose, and so does what is solved.
    """
    given = poses[1] if free == "parent" else poses[0]
    made = _pose_of_parameters(numbers[:3], IDENTITY_ROWS if rigid else numbers[3:])
    other = _pose_of_parameters(given.position, numbers[3:]) if rigid else given
    return (made, other) if free == "parent" else (other, made)


def _pose_of_parameters(position: Sequence[Number], rows: Sequence[Number]) -> Pose:
    """A pose whose rotation matrix, by rows, may be parameters: only frames of loop closures compute with them."""
    pose = Pose()
    pose.position, pose.rows = tuple(position), tuple(rows)
    return pose


def open_poses(noted: dict[str, str], parameter: Callable[[str, float], Number], name: str, poses: tuple[Pose, Pose],
               free: str, closed: bool, rigid: bool) -> tuple[Pose, Pose]:
    """Note what is open at the start; a frame that is defined at closing has parameters for its numbers."""
    if closed:
        return poses
    if free:
        poses = closing_poses(poses, free, rigid, [parameter(*x) for x in frame_parameters(name).items()])
    noted[name] = free
    return poses


def closing_numbers(side: Pose, other: Pose, given: Pose, rigid: bool) -> tuple[float, ...]:
    """The numbers of `frame_parameters` where a joint closes: poses of the body whose frame is defined then, of the
    other one, and of the frame given on that."""
    back = side.inverse()
    if rigid:
        at = back @ other @ given
        turn = other.inverse() @ side
    else:
        at = turn = back @ other @ given
    return (*at.position.tolist(), *turn.rotation.ravel().tolist())


def frame_parameters(name: str) -> dict[str, float]:
    """The parameters that hold the numbers of a frame, with their defaults: its origin, then its axes by rows.

    >>> list(frame_parameters("grip"))[:4]
    ['grip.x', 'grip.y', 'grip.z', 'grip.xx']
    """
    labels = (*"xyz", *_AXES)
    return {f"{name}.{label}": value for label, value in zip(labels, (0.0, 0.0, 0.0, *IDENTITY_ROWS), strict=True)}
