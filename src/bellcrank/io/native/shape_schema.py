"""What a model file may hold of shapes."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from bellcrank.io.native.entries import Fixed, Name
from bellcrank.io.native.schema_part import Matrix, Part, Pose

__all__ = ["AnyShapePart", "MeshShapePart", "ShapePart"]


class ShapePart(Part):
    """A shape on a body, in a frame of its own; it moves nothing."""

    body: Name
    pose: Pose = [0.0, 0.0, 0.0]
    color: Annotated[list[Fixed], Field(min_length=3, max_length=4)] | None = Field(
        default=None, description="red, green, blue and opacity in 0..1")
    role: Literal["visual", "collision"] = "visual"
    friction: Fixed | None = Field(default=None, description="of contacts for which none is given")
    groups: Annotated[list[Fixed], Field(min_length=2, max_length=2)] = Field(
        default=[1.0, 1.0], description="bits of what it is, and of what it touches")


class BoxShapePart(ShapePart):
    type: Literal["box"]
    size: Annotated[list[Fixed], Field(min_length=3, max_length=3)] = Field(description="edges [m]")


class SphereShapePart(ShapePart):
    type: Literal["sphere"]
    radius: Fixed


class EllipsoidShapePart(ShapePart):
    type: Literal["ellipsoid"]
    radii: Annotated[list[Fixed], Field(min_length=3, max_length=3)] = Field(description="half axes [m]")


class RoundShapePart(ShapePart):
    type: Literal["cylinder", "capsule", "cone"]
    radius: Fixed
    length: Fixed = Field(description="along z [m]")


class PlaneShapePart(ShapePart):
    type: Literal["plane"]
    size: Annotated[list[Fixed], Field(min_length=2, max_length=2)] | None = Field(
        default=None, description="edges [m]; nothing if it has no end")


class MeshShapePart(ShapePart):
    type: Literal["mesh"]
    file: Name | None = Field(default=None, description="relative to the model file, with slashes")
    scale: Annotated[list[Fixed], Field(min_length=3, max_length=3)] | None = None
    vertices: Matrix | None = Field(default=None, description="in place of a file [m]")
    faces: Matrix | None = Field(default=None, description="three numbers of vertices each, from 0")
    colors: Matrix | None = Field(default=None, description="of the faces: red, green, blue, opacity in 0..1")


class HeightFieldPart(ShapePart):
    type: Literal["heightfield"]
    x: list[Fixed] = Field(description="places of the grid [m]")
    y: list[Fixed] = Field(description="places of the grid [m]")
    heights: Matrix = Field(description="[m], a row for every x")
    kind: Literal["linear", "cubic", "akima", "monotone"] = "monotone"


AnyShapePart = Annotated[BoxShapePart | SphereShapePart | EllipsoidShapePart | RoundShapePart | PlaneShapePart
                         | HeightFieldPart | MeshShapePart, Field(discriminator="type")]
