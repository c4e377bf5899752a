"""Frames of joints that are defined at the moment the joint closes: grippers, latches, feet on the floor."""

from __future__ import annotations

from bellcrank.errors import ModelError
from bellcrank.mechanism.pose import IDENTITY_ROWS, Pose

__all__ = ["AT_CLOSING", "check_poses", "frame_parameters"]

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
        poses.append(pose.fixed(what))
    return (poses[0], poses[1]), free[0] if free else ""


def frame_parameters(name: str) -> dict[str, float]:
    """The parameters that hold the numbers of a frame, with their defaults: its origin, then its axes by rows.

    >>> list(frame_parameters("grip"))[:4]
    ['grip.x', 'grip.y', 'grip.z', 'grip.xx']
    """
    labels = (*"xyz", *_AXES)
    return {f"{name}.{label}": value for label, value in zip(labels, (0.0, 0.0, 0.0, *IDENTITY_ROWS), strict=True)}
