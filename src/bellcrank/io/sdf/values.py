"""Values in SDF files: numbers, truth values, vectors and poses in the text of elements."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from bellcrank.errors import ModelError
from bellcrank.io.angles import cosine_sine, rotation
from bellcrank.io.xml import Element, clipped
from bellcrank.mechanism.pose import Pose

__all__ = ["HUGE", "Poses", "blame", "boolean", "number", "number_in", "text_in", "unit", "vector"]

#: numbers above this cannot be computed with: their squares and products overflow
HUGE = 1e100

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_INFINITE = re.compile(r"([+-]?)inf(?:inity)?", re.IGNORECASE)
_TRUE, _FALSE = ("true", "1"), ("false", "0")


def vector(element: Element, count: int) -> tuple[float, ...]:
    """The text of an element as `count` finite numbers."""
    words = element.text.split()
    if len(words) != count:
        raise element.error(f"{clipped(element.text)!r} needs {count} number{'s' * (count > 1)}, got {len(words)}")
    return tuple(_finite(element, word) for word in words)


def _finite(element: Element, word: str) -> float:
    value = float(word) if _NUMBER.fullmatch(word) else math.nan
    if not math.isfinite(value):
        raise element.error(f"{clipped(word)!r} is not a finite number")
    if abs(value) > HUGE:
        raise element.error(f"{clipped(word)!r} is above {HUGE:g}, which cannot be computed with")
    return value


def number(element: Element) -> float:
    """The text of an element as one finite number."""
    return vector(element, 1)[0]


def number_in(element: Element | None, tag: str, default: float, *, infinite: bool = False) -> float:
    """The number in the child called `tag`; `infinite` lets inf pass, and 1e16 and more stand for it."""
    child = None if element is None else element.first(tag)
    if child is None or not child.text:
        return default
    if not infinite:
        return number(child)
    sign = _INFINITE.fullmatch(child.text)
    if sign:
        return -math.inf if sign[1] == "-" else math.inf
    words = child.text.split()
    value = float(words[0]) if len(words) == 1 and _NUMBER.fullmatch(words[0]) else number(child)
    return value if abs(value) < 1e16 else math.copysign(math.inf, value)


def boolean(element: Element, text: str) -> bool:
    """A truth value as SDF writes it."""
    word = text.strip().lower()
    if word in _TRUE:
        return True
    if word in _FALSE:
        return False
    raise element.error(f"{clipped(text)!r} is neither true nor false")


def text_in(element: Element, tag: str) -> str:
    """The text of the child called `tag`, which has to be there and must not be blank."""
    child = element.only(tag)
    if not child.text:
        raise child.error("is blank")
    return child.text


def unit(values: Sequence[float]) -> tuple[float, ...]:
    """The vector at length 1; huge and tiny entries are scaled first, so that squares stay finite."""
    largest = max(map(abs, values))
    scaled = [v / largest for v in values]
    length = math.hypot(*scaled)
    return tuple(v / length for v in scaled)


class Poses:
    """Reads <pose> elements and counts the angles that were made exact."""

    def __init__(self, exact_angles: bool) -> None:
        self.exact_angles = exact_angles
        self.restored = 0

    def __call__(self, element: Element | None) -> Pose:
        if element is None or not element.text:
            return Pose()
        kind = element.attributes.get("rotation_format", "euler_rpy")
        degrees = "degrees" in element.attributes and boolean(element, element.attributes["degrees"])
        if kind == "quat_xyzw":
            if degrees:
                raise element.error("has both degrees and a quaternion; a quaternion has no angles")
            *at, x, y, z, w = vector(element, 7)
            if x == y == z == w == 0.0:
                raise element.error("the quaternion is zero and gives no direction")
            turn = unit((w, x, y, z))
            return Pose(at) if turn[1:] == (0.0, 0.0, 0.0) else Pose(at, turn)
        if kind != "euler_rpy":
            raise element.error(f"the rotation_format {clipped(kind)!r} is unknown; SDF has euler_rpy and quat_xyzw")
        *at, roll, pitch, yaw = vector(element, 6)
        angles = [math.radians(a) for a in (roll, pitch, yaw)] if degrees else [roll, pitch, yaw]
        if not self.exact_angles:
            return Pose.rpy(at, *angles)
        turns = []
        for angle in angles:
            pair, restored = cosine_sine(angle)
            turns.append(pair)
            self.restored += restored and not degrees
        return Pose(at, rotation(turns))


@contextmanager
def blame(element: Element) -> Iterator[None]:
    """Complaints of the model, told with the place in the file."""
    try:
        yield
    except ModelError as error:
        raise element.error(str(error)) from None
