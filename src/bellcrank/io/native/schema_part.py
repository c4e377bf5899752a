"""What parts of a model file have in common: named values, none of them unknown; places; rows of numbers."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Discriminator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from bellcrank.io.native.entries import Fixed, Law, Num, NumRows, Three, form, shown

__all__ = ["MachineLawPart", "Matrix", "Part", "Pose", "PosePart"]

Matrix = list[list[Fixed]]


class Part(BaseModel):
    """Something with named values; names that are not known are refused."""

    model_config = ConfigDict(strict=True, frozen=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _known(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            raise PydanticCustomError("mapping", "needs a mapping of names to values, got {got}",
                                      {"got": shown(value)})
        for key in value:
            if key not in cls.model_fields:
                raise PydanticCustomError("unknown", "{shown} is not known here{hint}", {
                    "key": key, "shown": shown(key), "hint": _hint(key, list(cls.model_fields))})
        return value


def _hint(key: str, known: list[str]) -> str:
    import difflib

    near = difflib.get_close_matches(key, known, n=1)
    return f"; did you mean {near[0]!r}?" if near else f"; it takes {', '.join(known)}"


class PosePart(Part):
    """A frame in another: position [m], and rotation as quaternion (w, x, y, z), as matrix, or by angles."""

    position: Three = Field(default=[0.0, 0.0, 0.0], description="[m]")
    rotation: Annotated[
        Annotated[Annotated[list[Num], Field(min_length=4, max_length=4)], Tag("list")]
        | Annotated[NumRows, Tag("matrix")], Discriminator(form)] | None = Field(
        default=None, description="unit quaternion, scalar first, or rotation matrix by rows")
    rpy: Three | None = Field(
        default=None, description="angles [rad] about the fixed axes x, then y, then z")


Pose = Annotated[Annotated[Three, Tag("list")] | Annotated[PosePart, Tag("mapping")], Discriminator(form)]


class MachineLawPart(Part):
    """A law of the whole machine: formulas of the numbers r1, r2, ... that are read from it."""

    formulas: list[Law] = Field(description="one; or six: force and moment")
    reads: list[list[str | float]] = Field(description="what r1, r2, ... are, such as [q, crank]")
