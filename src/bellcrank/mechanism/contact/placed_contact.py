"""Contacts as a mechanism holds them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bellcrank.mechanism.contact.contact_material import Compliant, Unyielding
from bellcrank.mechanism.pose import Pose

__all__ = ["PlacedContact"]


@dataclass(frozen=True, slots=True)
class PlacedContact:
    """Two shapes that may touch: bodies by their indices, shapes as contact sees them, and what they are made of."""

    name: str
    first: int
    second: int
    first_pose: Pose
    second_pose: Pose
    first_shape: Any
    second_shape: Any
    material: Compliant | Unyielding
    shape_names: tuple[str, str]
    bends: tuple[tuple[str, ...], ...] = ()  #: states of the bristles at every place, if it has some

    @property
    def rigid(self) -> bool:
        """Whether the shapes do not give way."""
        return isinstance(self.material, Unyielding)
