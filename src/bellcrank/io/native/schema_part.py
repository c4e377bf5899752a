"""What parts of a model file have in common: named values, none of them unknown; places; rows of numbers."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    PlainValidator,
    StringConstraints,
    Tag,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from bellcrank.io.common.xml import control_character
from bellcrank.io.native.formula import NO_UNITS
from bellcrank.mechanism.checks import HUGE

__all__ = ["Axis", "Fixed", "Law", "MachineLawPart", "Matrix", "Name", "Num", "NumRows", "Part", "Pose", "PosePart",
           "Text", "Three", "ThreeTimed", "Timed", "form", "shown"]


# -- numbers, formulas and axes in model files, and what is said about wrong ones -------------------
_AXES = ("x", "y", "z", "-x", "-y", "-z")
_WITH_UNIT = re.compile(r"[-+]?[0-9.]+(?:[eE][-+]?[0-9]+)?\s*[^\W0-9].*")


def _seen(value: str) -> str:
    found = control_character(value)
    if found is not None:
        raise PydanticCustomError("name", "the name holds the control character {found}", {"found": found})
    return value


def _finite(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        unit = f"; {NO_UNITS}" if isinstance(value, str) and _WITH_UNIT.fullmatch(value) else ""
        raise PydanticCustomError("number", "needs a number, got {got}{unit}", {"got": shown(value), "unit": unit})
    if not abs(value) < math.inf:
        raise PydanticCustomError("number", "the number is not finite", {})
    if abs(value) > HUGE:
        raise PydanticCustomError("number", "the number {got} is above {huge}, which cannot be computed with",
                                  {"got": shown(value), "huge": f"{HUGE:g}"})
    return float(value)


def _number(value: Any) -> float | str:
    if isinstance(value, str):
        if not value.strip():
            raise PydanticCustomError("number", "needs a number or a formula, got blank text", {})
        return value
    return _finite(value)


def _law(value: Any) -> float | str:
    """A law given as ``{law: text}``, the form for laws that do not name their argument, is its text with a mark."""
    if isinstance(value, dict) and list(value) == ["law"] and isinstance(value["law"], (str, float, int)):
        inner = _number(value["law"])
        return f"={inner!r}" if isinstance(inner, float) else f"={inner}"
    found = _number(value)
    if isinstance(found, str) and found.startswith("="):
        raise PydanticCustomError("number", "a formula does not begin with '='", {})
    return found


def _axis(value: Any) -> str | tuple[float | str, ...]:
    if isinstance(value, str) and value in _AXES:
        return value
    if not isinstance(value, (list, tuple)) or len(value) != 3:
        raise PydanticCustomError("axis", "needs one of x, y, z, -x, -y, -z or three numbers, got {got}",
                                  {"got": shown(value)})
    return tuple(_number(v) for v in value)


def shown(value: Any) -> str:
    text = {True: "true", False: "false", None: "nothing"}[value] if value is None or isinstance(value, bool) else \
        "a mapping" if isinstance(value, dict) else "a list" if isinstance(value, (list, tuple)) else \
        repr(value).removesuffix(".0") if isinstance(value, float) else repr(value)
    return text if len(text) <= 60 else text[:60] + "..."


def form(value: Any) -> str:
    """Which of the ways to write a thing is used."""
    if isinstance(value, (list, tuple)):
        return "matrix" if value and isinstance(value[0], (list, tuple)) else "list"
    return "mapping" if isinstance(value, dict) else "number"


_NUMBER_FORM = {"anyOf": [{"type": "number"}, {"type": "string", "description": "a formula of parameters"}]}
Text = Annotated[str, AfterValidator(_seen)]
Name = Annotated[str, StringConstraints(min_length=1), AfterValidator(_seen)]
Fixed = Annotated[float, PlainValidator(_finite), WithJsonSchema({"type": "number"})]
Num = Annotated[float | str, PlainValidator(_number), WithJsonSchema(_NUMBER_FORM)]
Law = Annotated[float | str, PlainValidator(_number), WithJsonSchema(
    {"anyOf": [{"type": "number"}, {"type": "string", "description": "a formula"}]})]
Timed = Annotated[float | str, PlainValidator(_law), WithJsonSchema({"anyOf": [
    {"type": "number"}, {"type": "string", "description": "a formula of parameters and of the time t"},
    {"type": "object", "properties": {"law": {"type": ["string", "number"]}}, "required": ["law"],
     "additionalProperties": False, "description": "a formula of the time that does not name t"}]})]
Axis = Annotated[str | tuple[float | str, ...], PlainValidator(_axis), WithJsonSchema({"anyOf": [
    {"enum": list(_AXES)}, {"type": "array", "items": _NUMBER_FORM, "minItems": 3, "maxItems": 3}]})]
Three = Annotated[list[Num], Field(min_length=3, max_length=3)]
ThreeTimed = Annotated[list[Timed], Field(min_length=3, max_length=3)]
NumRows = Annotated[list[Three], Field(min_length=3, max_length=3)]


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
