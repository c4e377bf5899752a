"""A joint's methods on plain numbers: the pose of its child side, its motions there, and two bodies it connects."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.mechanism.constraint_rows import Side
from bellcrank.mechanism.joints import quaternion
from bellcrank.mechanism.joints.joint import Joint
from bellcrank.spatial import Force, Motion, Vector

__all__ = ["Place", "place_of", "side_at", "six", "turned"]


class Place(NamedTuple):
    """A pose of the child in the parent."""

    turn: Floats
    shift: Floats

    def __matmul__(self, other: Place) -> Place:
        return Place(self.turn @ other.turn, self.turn @ other.shift + self.shift)

    def inverse(self) -> Place:
        """The pose of the parent in the child."""
        return Place(self.turn.T, -self.turn.T @ self.shift)

    def off(self, other: Place) -> float:
        """The largest difference of any entry."""
        return float(max(np.abs(self.turn - other.turn).max(), np.abs(self.shift - other.shift).max()))


def place_of(joint: Joint, q: Sequence[float] | Floats, k: Sequence[float]) -> Place:
    """The child side in the parent side, canonical axes."""
    place = Place(np.eye(3), np.zeros(3))
    for t in joint.transforms([float(x) for x in q], list(k)):
        columns = [np.array(t.rotation.apply(Vector(*e)), dtype=float) for e in np.eye(3).tolist()]
        place = place @ Place(np.stack(columns, axis=-1), np.array(t.translation, dtype=float))
    return place


def six(motion: Motion | Force) -> Floats:
    """A motion or force as six numbers."""
    return np.array([float(x) for part in motion for x in part])


def turned(angle: npt.ArrayLike) -> Floats:
    """The rotation matrix of a rotation vector."""
    turn = quaternion.exponential(np.asarray(angle, dtype=float))
    return np.stack([quaternion.turn(turn, e) for e in np.eye(3)], axis=-1)


def side_at(place: Place, arm: Floats, omega: Floats, rate: Floats) -> Side:
    """One side of a closure on a body that moves."""
    vectors = (place.shift, arm, *place.turn.T, omega, rate)
    return Side(*(Vector(*(float(x) for x in v)) for v in vectors))
