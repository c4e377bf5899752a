"""Values in SDF files: numbers, truth values and poses in the text of elements."""

from __future__ import annotations

import math

from bellcrank.io.common.angles import Turns, unit
from bellcrank.io.common.xml import XmlElement, clipped
from bellcrank.mechanism.pose import Pose

__all__ = ["Poses", "boolean", "number_in", "text_in"]

#: limits from here on stand for none
_UNLIMITED = 1e16
_TRUE, _FALSE = ("true", "1"), ("false", "0")


def number_in(element: XmlElement | None, tag: str, default: float, *, infinite: bool = False) -> float:
    """The number in the child called `tag`; `infinite` lets inf pass, and 1e16 and more stand for it."""
    child = None if element is None else element.first(tag)
    if child is None or not child.text:
        return default
    value = child.text_number(infinite=infinite)
    return math.copysign(math.inf, value) if infinite and abs(value) >= _UNLIMITED else value


def boolean(element: XmlElement, text: str) -> bool:
    """A truth value as SDF writes it."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise element.error(f"{clipped(text)!r} is neither true nor false")


def text_in(element: XmlElement, tag: str) -> str:
    """The text of the child called `tag`, which has to be there and must not be blank."""
    child = element.only(tag)
    if not child.text:
        raise child.error("is blank")
    return child.text


class Poses:
    """Reads <pose> elements."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns

    def __call__(self, element: XmlElement | None) -> Pose:
        if element is None or not element.text:
            return Pose()
        kind = element.attributes.get("rotation_format", "euler_rpy").strip()
        degrees = "degrees" in element.attributes and boolean(element, element.attributes["degrees"])
        if kind == "quat_xyzw":
            if degrees:
                raise element.error("has both degrees and a quaternion; a quaternion has no angles")
            *at, x, y, z, w = element.text_numbers(7)
            if x == y == z == w == 0.0:
                raise element.error("the quaternion is zero and gives no direction")
            turn = unit((w, x, y, z))
            return Pose(at) if turn[1:] == (0.0, 0.0, 0.0) else Pose(at, turn)
        if kind != "euler_rpy":
            raise element.error(f"the rotation_format {clipped(kind)!r} is unknown; SDF has euler_rpy and quat_xyzw")
        *at, roll, pitch, yaw = element.text_numbers(6)
        angles = (roll, pitch, yaw)
        return self.turns.pose(at, [math.radians(a) for a in angles] if degrees else angles)
