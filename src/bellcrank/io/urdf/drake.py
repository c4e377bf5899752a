"""Drake's elements in URDF files: ball and weld constraints, bushings, springs, and frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from bellcrank.io.common.names import near
from bellcrank.io.common.xml import XmlElement, blame, clipped
from bellcrank.mechanism.joints import Joint, Spherical, Weld
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.mechanism.pose import Pose

if TYPE_CHECKING:
    from bellcrank.io.urdf.robot import RobotReader

__all__ = ["DRAKE"]

_TURNS = ("torque_stiffness", "torque_damping")
_SLIDES = ("force_stiffness", "force_damping")


def _name(reader: RobotReader, element: XmlElement, prefix: str) -> str:
    return element.attributes.get("name", "").strip() or reader.names.fresh(prefix)


def _close(reader: RobotReader, machine: Mechanism, element: XmlElement, joint: Joint, ends: tuple[str, str],
           poses: tuple[Pose, Pose], prefix: str) -> None:
    name = _name(reader, element, prefix)
    reader.names.add(name)
    with blame(element):
        machine.add_joint(name, joint, *ends, *poses)


def _frame(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """<frame name link xyz rpy/>, or Isaac Sim's <fixed_frame> with <parent> and <origin>."""
    name = element.attribute("name")
    if element.tag == "frame":
        link, pose = reader.link(element.attribute("link"), element, world=True), reader.pose(element)
    else:
        parent = element.only("parent")
        link, pose = reader.link(parent.attribute("link"), parent), reader.pose(element.first("origin"))
    if name in reader.frames or name in reader.links or name in (machine.ground.name, *reader.renamed.values()):
        reader.note("ignored", element, "another frame or link has this name")
        return
    with blame(element):
        machine.add_frame(name, link, pose)
    reader.frames[name] = link, pose


def _end(reader: RobotReader, element: XmlElement, tag: str) -> tuple[str, Pose]:
    """The body and pose that <tag name=.../> stands for: a frame or a link."""
    side = element.only(tag)
    name = side.attributes.get("name") or side.text
    if not name:
        raise side.error("needs the attribute 'name'")
    if name in reader.frames:
        return reader.frames[name]
    if name in reader.links:
        return reader.body(name), Pose()
    if name in ("world", "WorldBody", "world_body"):
        return "ground", Pose()
    known = {**reader.links, **reader.frames}
    raise side.error(f"there is no frame or link {clipped(name)!r}{near(name, known)}")


def _point(element: XmlElement, tag: str) -> Pose:
    side = element.first(tag)
    return Pose() if side is None else Pose(side.numbers("value", 3))


def _ball(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    ends = [_end(reader, element, f"drake:ball_constraint_body_{side}") for side in "AB"]
    points = _point(element, "drake:ball_constraint_p_AP"), _point(element, "drake:ball_constraint_p_BQ")
    with blame(element):
        poses = ends[0][1] @ points[0], ends[1][1] @ points[1]
    _close(reader, machine, element, Spherical(), (ends[0][0], ends[1][0]), poses, "ball_constraint")


def _weld(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    one, two = _end(reader, element, "parent"), _end(reader, element, "child")
    _close(reader, machine, element, Weld(), (one[0], two[0]), (one[1], two[1]), "weld_constraint")


def _bushing(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    one, two = (_end(reader, element, f"drake:bushing_frame{side}") for side in "AC")
    turn, turn_damping, slide, slide_damping = (element.only(f"drake:bushing_{what}").numbers("value", 3)
                                                for what in _TURNS + _SLIDES)
    name = _name(reader, element, "bushing")
    with blame(element):
        machine.add_bushing(name, one[0], two[0], one[1], two[1], stiffness=slide, turn_stiffness=turn,
                            damping=slide_damping, turn_damping=turn_damping)
    reader.note("warned", element, "equal to Drake's bushing for small displacements and turns only: it acts along the "
                                   "first frame's axes and measures large turns differently")


def _spring(reader: RobotReader, machine: Mechanism, element: XmlElement) -> None:
    """<drake:linear_spring_damper>: a spring between two points, exactly."""
    what = "drake:linear_spring_damper_"
    one, two = _end(reader, element, f"{what}body_A"), _end(reader, element, f"{what}body_B")
    with blame(element):
        poses = one[1] @ _point(element, f"{what}p_AP"), two[1] @ _point(element, f"{what}p_BQ")
    length, stiffness, damping = (element.only(f"{what}{part}").number("value")
                                  for part in ("free_length", "stiffness", "damping"))
    name = _name(reader, element, "spring")
    with blame(element):
        machine.add_spring(name, one[0], two[0], poses[0].position, poses[1].position, stiffness=stiffness,
                           damping=damping, length=length)


DRAKE: dict[str, Callable[[RobotReader, Mechanism, XmlElement], None]] = {
    "frame": _frame, "fixed_frame": _frame, "drake:ball_constraint": _ball, "drake:weld_constraint": _weld,
    "drake:linear_bushing_rpy": _bushing, "drake:linear_spring_damper": _spring}
