"""Options of readers, examples and writers, from text to the values that they take."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

from bellcrank.cli.output import UsageError

__all__ = ["options_for_reader", "options_for_writer", "pair"]

_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")
_NONE = ("none", "null")


def options_for_reader(model: str, given: Sequence[str], floating_base: bool) -> dict[str, Any]:
    """What ``--option`` and ``--floating-base`` say to the reader of a file, or the maker of an example."""
    from bellcrank.io.load import options_of_reader

    if not given and not floating_base:
        return {}
    known = options_of_reader(model)
    if floating_base and "floating_base" not in known:
        raise UsageError(f"{model}: --floating-base: no such option; {_there_are(known)}")
    made = _made(model, given, known, "--option")
    return {**made, "floating_base": True} if floating_base else made


def options_for_writer(target: str, given: Sequence[str]) -> dict[str, Any]:
    """What ``--write-option`` says to the writer of a file."""
    from bellcrank.io.load import options_of_writer

    return _made(target, given, options_of_writer(target), "--write-option") if given else {}


def pair(text: str) -> tuple[str, str]:
    """Name and value of ``NAME=VALUE``."""
    name, equals, value = text.partition("=")
    if not equals or not name.strip() or not value.strip():
        raise UsageError(f"{text!r}: write NAME=VALUE")
    return name.strip(), value.strip()


def _made(whose: str, given: Sequence[str], known: Mapping[str, Any], flag: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    for text in given:
        name, value = pair(text)
        if name not in known:
            raise UsageError(f"{whose}: {flag} {text}: no such option; {_there_are(known)}")
        if name in made:
            raise UsageError(f"{whose}: {flag} {text}: {name!r} is given twice")
        try:
            made[name] = _value(value, known[name])
        except _UnfitError as error:
            raise UsageError(f"{whose}: {flag} {text}: takes {error}") from None
    return made


def _there_are(known: Mapping[str, Any]) -> str:
    return f"there {'is' if len(known) == 1 else 'are'} {', '.join(known) or 'none'}"


class _UnfitError(Exception):
    """A text is no value of the type; says what would be."""


def _value(text: str, kind: Any) -> Any:
    """The value of a type that a text stands for."""
    if get_origin(kind) in (Union, UnionType):
        return _one_of(text, get_args(kind))
    if kind is bool:
        if text.lower() not in (*_YES, *_NO):
            raise _UnfitError("true or false (also yes, no, on, off)")
        return text.lower() in _YES
    if get_origin(kind) is Literal:
        if text not in get_args(kind):
            raise _UnfitError(f"one of {', '.join(map(str, get_args(kind)))}")
        return text
    if kind is int:
        try:
            return int(text)
        except ValueError:
            raise _UnfitError("a whole number") from None
    if kind is float:
        return _numbers(text, 1, "a number")[0]
    if get_origin(kind) is Sequence:  # of numbers; those that readers take are vectors
        return tuple(_numbers(text, 3, "3 numbers, separated by commas"))
    return text if kind is str else _guessed(text)


def _one_of(text: str, kinds: Sequence[Any]) -> Any:
    """The value of one of several types; plain text is the last resort."""
    if NoneType in kinds and text.lower() in _NONE:
        return None
    others = [k for k in kinds if k is not NoneType and k is not str]
    if str in kinds and bool in kinds:  # a name, or a word for yes or no
        return text.lower() in _YES if text.lower() in (*_YES, *_NO) else text
    if len(others) == 1 and str not in kinds:
        return _value(text, others[0])
    return text if str in kinds and len(others) < 2 else _guessed(text)


def _numbers(text: str, count: int, what: str) -> list[float]:
    try:
        found = [float(x) for x in text.removeprefix("[").removesuffix("]").split(",")]
    except ValueError:
        raise _UnfitError(what) from None
    if len(found) != count or not all(math.isfinite(x) for x in found):
        raise _UnfitError(what)
    return found


def _guessed(text: str) -> Any:
    """A number, several with commas, true or false if it reads like that, else the text."""
    for form in (text, f"[{text}]"):
        try:
            return json.loads(form)
        except ValueError:
            continue
    return text
