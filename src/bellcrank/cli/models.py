"""From what stands on the command line to a machine and a state."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from types import NoneType, UnionType
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Union, get_args, get_origin

import numpy as np

from bellcrank.cli.output import Output, UsageError
from bellcrank.errors import AssemblyError, BellcrankError, FileError, ModelError, StateError

if TYPE_CHECKING:
    from bellcrank.arrays import Floats
    from bellcrank.compiled.system import System
    from bellcrank.io.report import ReadReport
    from bellcrank.mechanism.mechanism import Mechanism
    from bellcrank.system.state import State

__all__ = ["ReadModel", "Settings", "assemble", "check_method", "keyframe_of", "options_for_writer", "pair",
           "read_model", "settings_of", "warn_of", "with_settings"]


# -- options of readers, examples and writers, from text to the values that they take ---------------
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
        return _some_numbers(text, 1, "a number")[0]
    if get_origin(kind) is Sequence:  # of numbers; those that readers take are vectors
        return tuple(_some_numbers(text, 3, "3 numbers, separated by commas"))
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


def _some_numbers(text: str, count: int, what: str) -> list[float]:
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


#: names that an error lists
_LISTED = 24


class ReadModel(NamedTuple):
    """A machine, and what was made of its file."""

    machine: Mechanism
    report: ReadReport


def read_model(model: str, options: Sequence[str], floating_base: bool) -> ReadModel:
    """The machine of a file or an example; what is wrong with it because of options is wrong usage."""
    from bellcrank.io.load import read

    given = options_for_reader(model, options, floating_base)
    try:
        return ReadModel(*read(model, **given))
    except FileError:
        raise
    except (TypeError, ValueError, BellcrankError) as error:
        if not given:
            raise
        raise UsageError(f"{model}: {error}") from error


def warn_of(report: ReadReport, output: Output) -> None:
    """What may make the machine move differently than its file says."""
    from bellcrank.io.report import condensed

    for line in condensed(report.surprises):
        output.warn(f"{report.source}: {line}")


def check_method(method: str, *others: str) -> str:
    """The name of a formulation that exists, or one of the others."""
    from bellcrank.formulations import method_names

    known = (*others, *method_names())
    if method not in known:
        raise UsageError(f"no formulation {method!r}; there are {', '.join(known)}")
    return method


class Settings(NamedTuple):
    """Values given by ``--set``."""

    q: dict[str, list[float]]
    u: dict[str, list[float]]
    parameters: dict[str, float]


def settings_of(system: System, given: Sequence[str]) -> Settings:
    """Read ``q:NAME=VALUE``, ``u:NAME=VALUE``, ``p:NAME=VALUE`` and plain ``NAME=VALUE``."""
    found = Settings({}, {}, {})
    kinds = {"q": _sizes(system, False), "u": _sizes(system, True), "p": dict.fromkeys(system.parameters, 1)}
    for text in given:
        name, value = pair(text)
        kind, name = _kind(name, kinds)
        numbers = _grid_numbers(text, value)
        if name not in kinds[kind]:
            raise UsageError(f"--set {text}: {_unknown(kind, name, kinds[kind])}{_of_body(system, name)}")
        if len(numbers) != kinds[kind][name]:
            n = kinds[kind][name]
            takes = "1 number" if n == 1 else f"{n} numbers, separated by commas"
            raise UsageError(f"--set {text}: {name!r} takes {takes}, got {len(numbers)}")
        place: dict[str, Any] = found[("q", "u", "p").index(kind)]
        if name in place:
            raise UsageError(f"--set {text}: {name!r} is set twice")
        place[name] = numbers[0] if kind == "p" else numbers
    return found


def _kind(name: str, kinds: Mapping[str, Mapping[str, int]]) -> tuple[str, str]:
    """Whether a name speaks of a coordinate, a speed or a parameter."""
    head, colon, rest = name.partition(":")
    if colon and head in kinds:
        return head, rest
    if name in kinds["p"]:
        if name in kinds["q"]:
            raise UsageError(f"--set {name}=...: this is a joint and a parameter; write q:{name}= or p:{name}=")
        return "p", name
    return "q", name


def _grid_numbers(text: str, value: str) -> list[float]:
    try:
        numbers = [float(x) for x in value.split(",")]
    except ValueError:
        raise UsageError(f"--set {text}: {value!r} is not a number, nor numbers separated by commas") from None
    if not all(math.isfinite(x) for x in numbers):
        raise UsageError(f"--set {text}: values must be finite")
    return numbers


def _sizes(system: System, speeds: bool) -> dict[str, int]:
    """Joints and their single coordinates or speeds by name, with how many numbers they take."""
    out: dict[str, int] = {}
    for r in system.model.mechanism.joints:
        names = r.joint.speed_names if speeds else r.joint.coordinate_names()
        if not names:
            continue
        out[r.name] = len(names)
        out |= {f"{r.name}.{n}": 1 for n in names}
    return out


def _unknown(kind: str, name: str, known: Mapping[str, int]) -> str:
    what = {"q": "coordinate", "u": "speed", "p": "parameter"}[kind]
    # a joint with one coordinate is known well enough by its name
    shown = [n for n in known if not (n.rpartition(".")[0] in known and known[n.rpartition(".")[0]] == 1)]
    if not shown:
        return f"no {what} {name!r}; this machine has no {what}s"
    more = f" and {len(shown) - _LISTED} more" if len(shown) > _LISTED else ""
    return f"no {what} {name!r}; there are {', '.join(shown[:_LISTED])}{more}"


def _of_body(system: System, name: str) -> str:
    """Which joint is meant where a body is named."""
    head, dot, rest = name.rpartition(".") if "." in name else (name, "", "")
    names = ["ground", *(b.name for b in system.model.described.bodies)]
    joints = [r.name for r in system.model.described.joints if r.joint.nu and head == names[r.child]]
    return f"; {head!r} is a body, which the joint {joints[0]!r} moves: {joints[0]}{dot}{rest}=..." if joints else ""


def with_settings(system: System, settings: Settings, keyframe: Mapping[str, Any] | None = None) -> System:
    """The machine with the parameters of a keyframe, and those that were set."""
    parameters = {**(keyframe or {}).get("parameters", {}), **settings.parameters}
    return system.with_parameters(**parameters) if parameters else system


def assemble(system: System, settings: Settings, keyframe: Mapping[str, Any] | None = None) -> State:
    """A closed state with what was set held, near a keyframe if there is one.

    The keyframe's coordinates are the guess; its speeds are made consistent with the loops, unless some are set.
    """
    key = keyframe or {}
    guess = _spread(system.coordinate_names, system.neutral(), key.get("q", {}))
    speeds = _spread(system.speed_names, np.zeros(system.nu), key.get("u", {}))
    try:
        return system.assemble(q=settings.q, u=settings.u if settings.u or not speeds.any() else speeds, guess=guess)
    except AssemblyError:
        raise
    except (ModelError, StateError) as error:
        if not settings.q and not settings.u:
            raise
        raise UsageError(f"--set: {error}") from error


def _spread(names: Sequence[str], values: Floats, given: Mapping[str, Any]) -> Floats:
    """Values by joint put in their places."""
    joints = [name.rpartition(".")[0] for name in names]
    for joint, value in given.items():
        places = [i for i, name in enumerate(joints) if name == joint]
        if places:
            values[places] = value
    return values


def keyframe_of(report: ReadReport, name: str | None) -> Mapping[str, Any] | None:
    """A state that the file names."""
    if name is None:
        return None
    known = list(report.keyframes)
    if name not in known:
        there = f"there are {', '.join(known[:_LISTED])}" if known else "this machine has none"
        raise UsageError(f"{report.source}: no keyframe {name!r}; {there}")
    return report.keyframes[name]
