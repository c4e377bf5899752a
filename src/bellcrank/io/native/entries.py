"""Numbers, formulas and axes in model files, and what is said about wrong ones."""

from __future__ import annotations

import math
import re
from typing import Annotated, Any

from pydantic import AfterValidator, Field, PlainValidator, StringConstraints, WithJsonSchema
from pydantic_core import PydanticCustomError

from bellcrank.io.common.names import control_character
from bellcrank.io.native.formula import NO_UNITS
from bellcrank.mechanism.checks import HUGE

__all__ = ["Axis", "Fixed", "Law", "Name", "Num", "NumRows", "Text", "Three", "ThreeTimed", "Timed",
           "form", "shown"]

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
