"""Joints that close loops, written in the dialects that `read_urdf` knows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.joints import (
    AxisJoint,
    Cylindrical,
    Joint,
    Planar,
    Prismatic,
    Revolute,
    Screw,
    Spherical,
    Universal,
    Weld,
)
from bellcrank.mechanism.pose import Pose
from bellcrank.scalar.graph import Scalar

__all__ = ["Dialect", "Ends", "closing_text", "origin"]

Dialect = Literal["loop_joint", "constraint", "gazebo", "drake"]
_WORDS: dict[type[Joint], str] = {Revolute: "revolute", Prismatic: "prismatic", Spherical: "spherical", Weld: "fixed",
                                  Cylindrical: "cylindrical", Planar: "planar", Screw: "screw", Universal: "universal"}
#: how far apart the two sides may be at zero for Gazebo's spelling [m, and as a sine]
_CLOSED = 1e-13


@dataclass(frozen=True, slots=True)
class Ends:
    """A joint that closes a loop: its sides in the link frames, and the link frames while all joints are at zero."""

    name: str
    joint: Joint
    parent: str
    child: str
    parent_pose: Pose
    child_pose: Pose
    parent_place: Pose
    child_place: Pose

    def refuse(self, dialect: str) -> ModelError:
        return ModelError(f"joint {self.name!r} closes a loop; loops={dialect!r} cannot hold a "
                          f"{type(self.joint).__name__} there")


def closing_text(dialect: Dialect, ends: Ends) -> Iterator[str]:
    """The lines for one joint."""
    if type(ends.joint) not in _WORDS:
        raise ends.refuse(dialect)
    writers: dict[str, Callable[[Ends], Iterator[str]]] = {"loop_joint": _loop_joint, "constraint": _constraint,
                                                           "gazebo": _gazebo, "drake": _drake}
    return writers[dialect](ends)


def origin(pose: Pose, what: str) -> str:
    """The attributes xyz and rpy of a pose."""
    return f"xyz=\"{_vector(_numbers(pose, what))}\" rpy=\"{_vector(angles(pose))}\""


def angles(pose: Pose) -> tuple[float, float, float]:
    """Fixed-axis angles of a rotation, accurate near pitch = +-pi/2, too."""
    r = pose.rotation
    yaw = math.atan2(r[1, 0], r[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    # what is left after turning the yaw back is a turn about y times one about x, whatever the yaw was
    rest = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]]) @ r
    return (math.atan2(-rest[1, 2], rest[1, 1]) + 0.0, math.atan2(-rest[2, 0], rest[0, 0]) + 0.0, yaw + 0.0)


def _numbers(pose: Pose, what: str) -> tuple[float, ...]:
    if any(isinstance(x, Scalar) for x in pose.position):
        raise ModelError(f"{what}: its place has parameters; URDF holds numbers only")
    return tuple(float(x) for x in pose.position)


def _vector(numbers: Sequence[float]) -> str:
    return " ".join(repr(float(x) + 0.0) for x in numbers)


def _axis(joint: Joint) -> tuple[float, ...] | None:
    if isinstance(joint, AxisJoint):
        return joint.axis
    return joint.normal if isinstance(joint, Planar) else None


def _pitch(ends: Ends) -> float | None:
    """The advance of a screw per turn."""
    if not isinstance(ends.joint, Screw):
        return None
    if isinstance(ends.joint.pitch, Scalar):
        raise ModelError(f"joint {ends.name!r}: its pitch is a parameter; URDF holds numbers only")
    return float(ends.joint.pitch) * 2.0 * math.pi


def _loop_joint(ends: Ends) -> Iterator[str]:
    if isinstance(ends.joint, Universal):
        raise ends.refuse("loop_joint")
    what = f"joint {ends.name!r}"
    yield f"  <loop_joint name={quoteattr(ends.name)} type=\"{_WORDS[type(ends.joint)]}\">"
    yield f"    <link1 link={quoteattr(ends.parent)} {origin(ends.parent_pose, what)}/>"
    yield f"    <link2 link={quoteattr(ends.child)} {origin(ends.child_pose, what)}/>"
    axis, pitch = _axis(ends.joint), _pitch(ends)
    if axis is not None:
        yield f"    <axis xyz=\"{_vector(axis)}\"/>"
    if pitch is not None:
        yield f"    <thread_pitch value=\"{pitch!r}\"/>"
    yield "  </loop_joint>"


def _constraint(ends: Ends) -> Iterator[str]:
    what = f"joint {ends.name!r}"
    first = second = _axis(ends.joint)
    if isinstance(ends.joint, Universal):
        first, second = ends.joint.axis1, ends.joint.axis2
        if abs(float(np.dot(first, second))) > 1e-15:
            raise ends.refuse("constraint")
    pitch = _pitch(ends)
    yield f"  <constraint name={quoteattr(ends.name)} type=\"{_WORDS[type(ends.joint)]}\">"
    yield f"    <parent link={quoteattr(ends.parent)}/>"
    yield f"    <parent_origin {origin(ends.parent_pose, what)}/>"
    if first is not None:
        yield f"    <parent_axis xyz=\"{_vector(first)}\"/>"
    yield f"    <child link={quoteattr(ends.child)}/>"
    yield f"    <child_origin {origin(ends.child_pose, what)}/>"
    if second is not None:
        yield f"    <child_axis xyz=\"{_vector(second)}\"/>"
    if pitch is not None:
        yield f"    <thread_pitch value=\"{pitch!r}\"/>"
    yield "  </constraint>"


def _gazebo(ends: Ends) -> Iterator[str]:
    joint = ends.joint
    if isinstance(joint, Cylindrical | Planar):
        raise ends.refuse("gazebo")
    what = f"joint {ends.name!r}"
    _check_closed(ends, what)
    word = "ball" if isinstance(joint, Spherical) else _WORDS[type(joint)]
    pose = f"{_vector(_numbers(ends.child_pose, what))} {_vector(angles(ends.child_pose))}"
    yield "  <gazebo>"
    yield f"    <joint name={quoteattr(ends.name)} type=\"{word}\">"
    yield f"      <parent>{escape(ends.parent)}</parent>"
    yield f"      <child>{escape(ends.child)}</child>"
    yield f"      <pose>{pose}</pose>"
    axes = (joint.axis1, joint.axis2) if isinstance(joint, Universal) else (_axis(joint),)
    for tag, axis in zip(("axis", "axis2"), axes, strict=False):
        if axis is not None:
            yield f"      <{tag}><xyz>{_vector(axis)}</xyz></{tag}>"
    pitch = _pitch(ends)
    if pitch is not None:
        yield f"      <screw_thread_pitch>{pitch!r}</screw_thread_pitch>"
    yield "    </joint>"
    yield "  </gazebo>"


def _check_closed(ends: Ends, what: str) -> None:
    """Gazebo's joints are given in the child only: the parent's side is where the child's is at zero."""
    if ends.parent != ends.parent.strip() or ends.child != ends.child.strip():
        raise ModelError(f"{what}: loops=\"gazebo\" cannot hold link names that begin or end with a blank")
    _numbers(ends.parent_pose, what), _numbers(ends.child_pose, what)
    one, two = ends.parent_place @ ends.parent_pose, ends.child_place @ ends.child_pose
    gap = np.array(two.position, dtype=float) - np.array(one.position, dtype=float)
    size = max(1.0, float(np.abs(np.array(one.position, dtype=float)).max()))
    turn = np.abs(one.rotation - two.rotation).max()
    if isinstance(ends.joint, Spherical):
        turn = 0.0
    elif isinstance(ends.joint, Revolute):  # where the angle is zero does not matter
        axis = np.array(ends.joint.axis)
        turn = np.abs(one.rotation @ axis - two.rotation @ axis).max()
    if np.abs(gap).max() > _CLOSED * size or turn > _CLOSED:
        raise ModelError(f"{what}: loops=\"gazebo\" holds loops that are closed while all joints are at zero; this one "
                         f"is {np.abs(gap).max():.3g} m and {turn:.3g} (sine) open; use loops=\"loop_joint\"")


def _drake(ends: Ends) -> Iterator[str]:
    if not isinstance(ends.joint, Spherical):
        raise ends.refuse("drake")
    what = f"joint {ends.name!r}"
    points = [_vector(_numbers(pose, what)) for pose in (ends.parent_pose, ends.child_pose)]
    yield f"  <drake:ball_constraint name={quoteattr(ends.name)}>"
    yield f"    <drake:ball_constraint_body_A name={quoteattr(ends.parent)}/>"
    yield f"    <drake:ball_constraint_body_B name={quoteattr(ends.child)}/>"
    yield f"    <drake:ball_constraint_p_AP value=\"{points[0]}\"/>"
    yield f"    <drake:ball_constraint_p_BQ value=\"{points[1]}\"/>"
    yield "  </drake:ball_constraint>"
