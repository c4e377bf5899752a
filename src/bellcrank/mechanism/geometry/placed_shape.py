"""Shapes placed on bodies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bellcrank.mechanism.geometry.colors import Color
from bellcrank.mechanism.geometry.height_field import HeightField
from bellcrank.mechanism.geometry.solids import Box, Capsule, Cone, Cylinder, Ellipsoid, Plane, Sphere
from bellcrank.mechanism.geometry.triangle_mesh import Mesh
from bellcrank.mechanism.pose import Pose

__all__ = ["ROLES", "SHAPES", "AnyShape", "PlacedShape", "Role"]

AnyShape = Box | Capsule | Cone | Cylinder | Ellipsoid | HeightField | Mesh | Plane | Sphere
SHAPES = (Box, Capsule, Cone, Cylinder, Ellipsoid, HeightField, Mesh, Plane, Sphere)

Role = Literal["visual", "collision"]
ROLES = ("visual", "collision")


@dataclass(frozen=True, slots=True)
class PlacedShape:
    """A shape on a body. It says how the body looks ("visual") or where it can touch others ("collision"); it has no
    mass, and changes nothing that is computed of a machine."""

    name: str
    body: int  #: index of the body; 0 is the ground
    shape: AnyShape
    pose: Pose  #: where the shape's frame lies in that of the body
    color: Color | None  #: red, green, blue, opacity in 0..1; None: nothing was said
    role: Role
    friction: float | None = None  #: Coulomb's, of contacts for which none is given
    groups: tuple[int, int] = (1, 1)  #: bits of what it is, and of what it touches
