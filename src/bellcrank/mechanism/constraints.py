"""Constraints between bodies that are no joints: rods without mass, slots, planes. They close loops only."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.mechanism.constraint_rows import Row, Side, distance, within
from bellcrank.mechanism.joints.joint import Array, frame_with_z, unit_vector
from bellcrank.scalar.graph import Number

__all__ = ["Distance", "PointOnLine", "PointOnPlane"]


class Distance:
    """A massless rod: the two origins keep the distance `length` [m]."""

    condition_names = ("length",)

    def __init__(self, length: float) -> None:
        try:
            self.length = float(length)
        except (TypeError, ValueError):
            raise ModelError(f"Distance: the length {length!r} is not a number; parameters are not supported") from None
        if not 0.0 < self.length < float("inf"):
            raise ModelError(f"Distance: the length {length} must be positive; for points that coincide use Spherical")

    def alignment(self) -> Array:
        return np.eye(3)

    def constants(self) -> tuple[Number, ...]:
        return (self.length,)

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (distance(first, second, k[0]),)

    def __repr__(self) -> str:
        return f"Distance({self.length})"


class PointOnLine:
    """The child's origin stays on the line through the parent's origin along `axis`; orientations are free."""

    condition_names = ("along x", "along y")

    def __init__(self, axis: str | Sequence[float] = "z") -> None:
        self.axis = unit_vector(axis, "PointOnLine axis")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.axis))

    def constants(self) -> tuple[Number, ...]:
        return ()

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return within(first, second, first.x), within(first, second, first.y)

    def __repr__(self) -> str:
        return f"PointOnLine({self.axis})"


class PointOnPlane:
    """The child's origin stays in the plane through the parent's origin with the given normal."""

    condition_names = ("height",)

    def __init__(self, normal: str | Sequence[float] = "z") -> None:
        self.normal = unit_vector(normal, "PointOnPlane normal")

    def alignment(self) -> Array:
        return frame_with_z(np.array(self.normal))

    def constants(self) -> tuple[Number, ...]:
        return ()

    def closure_rows(self, first: Side, second: Side, k: Sequence[Number]) -> tuple[Row, ...]:
        return (within(first, second, first.z),)

    def __repr__(self) -> str:
        return f"PointOnPlane({self.normal})"
