"""From what stands on the command line to a machine and a state."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.cli.options import options_for_reader, pair
from bellcrank.cli.output import Output, UsageError
from bellcrank.errors import AssemblyError, BellcrankError, FileError, ModelError, StateError

if TYPE_CHECKING:
    from bellcrank.arrays import Floats
    from bellcrank.compiled.system import System
    from bellcrank.io.report import ReadReport
    from bellcrank.mechanism.mechanism import Mechanism
    from bellcrank.system.state import State

__all__ = ["ReadModel", "Settings", "assemble", "check_method", "keyframe_of", "read_model", "settings_of", "warn_of",
           "with_settings"]

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
        numbers = _numbers(text, value)
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


def _numbers(text: str, value: str) -> list[float]:
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
