"""Where the joints of a `Mechanism` are meant to stay, as files and drawings say it: known, not acting."""

from __future__ import annotations

import math
from abc import abstractmethod
from typing import TYPE_CHECKING

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.checks import number
from bellcrank.scalar.graph import Scalar

if TYPE_CHECKING:
    from bellcrank.mechanism.parts import Connection

__all__ = ["JointRanges"]


@checked_methods
class JointRanges:
    """Ranges of joints with one coordinate."""

    def __init__(self) -> None:
        super().__init__()
        self._ranges: dict[str, tuple[float, float]] = {}

    @abstractmethod
    def joint(self, name: str) -> Connection:
        """The joint called `name`."""

    @property
    def ranges(self) -> dict[str, tuple[float, float]]:
        """Lower and upper end [rad or m] of joints whose range is known, by name; an end that is not is infinite."""
        return dict(self._ranges)

    def set_range(self, joint: str, lower: float = -math.inf, upper: float = math.inf) -> None:
        """Say where a joint is meant to stay, from `lower` to `upper` [rad or m]. Nothing acts there: sliders of the
        viewer end there, and files keep it; `add_limit` and `joint_limit` make stops. URDF, SDF and MJCF files bring
        the ranges of their joints.

        >>> import bellcrank as bc
        >>> m = bc.load("pendulum")
        >>> m.set_range("hinge", -1.0, 2.0)
        >>> m.ranges
        {'hinge': (-1.0, 2.0)}
        """
        kind = self.joint(joint).joint
        if kind.nq != 1:
            raise ModelError(f"range of {joint!r}: only joints with one coordinate have one; a {type(kind).__name__} "
                             f"has {kind.nq}")
        low, high = (_end(f"range of {joint!r}", name, x) for name, x in (("lower", lower), ("upper", upper)))
        if not low <= high:
            raise ModelError(f"range of {joint!r}: the lower end {low:g} is above the upper one {high:g}")
        self._ranges[joint] = low, high


def _end(what: str, label: str, value: float) -> float:
    """A number that may be infinite."""
    if isinstance(value, Scalar):
        raise ModelError(f"{what}: {label} takes a number, not a parameter")
    return value if isinstance(value, float) and math.isinf(value) else float(number(what, label, value))
