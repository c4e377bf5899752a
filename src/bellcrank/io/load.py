"""`bellcrank.load`, `read` and `save`: machines from files and to files, by the ending of the name."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, get_type_hints

from bellcrank.errors import FileError
from bellcrank.io.common.xml import control_character
from bellcrank.io.report import ReadReport, condensed
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["ENDINGS", "describe", "load", "options_of_reader", "options_of_writer", "read", "save"]

#: the format that a file's name stands for; .xml may be several, its outermost element says which
ENDINGS = {".yaml": "native", ".yml": "native", ".json": "native", ".urdf": "urdf", ".sdf": "sdf", ".world": "sdf",
           ".mjcf": "mjcf", ".xml": "mjcf"}
_HELD = re.compile(r"\bkept in report\.\w+")
_ROOTS = {"mujoco": "mjcf", "mujocoinclude": "mjcf", "robot": "urdf", "sdf": "sdf", "gazebo": "sdf"}


def load(source: str | os.PathLike[str], **options: Any) -> Mechanism:
    """Read a model file, or make a built-in example by its name.

    Files are Bellcrank's own (``.yaml``, ``.yml``, ``.json``), URDF (``.urdf``), SDFormat (``.sdf``, ``.world``) and
    MJCF (``.xml``, ``.mjcf``); an ``.xml`` file may also be one of the others. Options are those of the reader, such as
    ``floating_base=True`` for URDF, or of the example, such as ``cells=256`` for ``ladder``. A `ReadWarning` tells of
    what would make the machine move differently; `read` tells all, and its report converts states to and from those of
    MuJoCo and Pinocchio. Free joints of files are measured in the world; `System.neutral` is where bodies are drawn.

    >>> load("pendulum")
    <Mechanism 'pendulum': 1 bodies, 1 joints>
    """
    return _call("load", source, options)  # type: ignore[no-any-return]


def read(source: str | os.PathLike[str], **options: Any) -> tuple[Mechanism, ReadReport]:
    """Like `load`, and what was made of the file: what was read, changed, kept as data, or ignored. The report also
    converts states to and from those of MuJoCo and Pinocchio (`ReadReport.to_mujoco`, ...).

    >>> machine, report = read("pendulum")
    >>> print(report)
    pendulum: nothing to remark
    """
    return _call("read", source, options)  # type: ignore[no-any-return]


def save(mechanism: Mechanism, path: str | os.PathLike[str], **options: Any) -> None:
    """Write a machine to a file whose name says the format: ``.yaml``, ``.yml`` or ``.json`` hold all of it.

    ``.urdf``, ``.sdf``, ``.xml`` and ``.mjcf`` are written if the format can hold the machine; else a `ModelError`
    names the part that it cannot, and nothing is written. Files are written whole or not at all.
    """
    text = _named("save", path)
    if not isinstance(mechanism, Mechanism):
        raise FileError(f"{text}: save() writes a Mechanism, got {type(mechanism).__name__}")
    _with_options(_function("write", _ending(text), text), "writer", text, options, mechanism, path)


def describe(report: ReadReport, mechanism: Mechanism | None = None, target: str | None = None) -> str:
    """What was read, changed, kept and ignored, in words; with a `target`, where only the machine was written to.

    >>> print(describe(*reversed(read("pendulum"))))
    pendulum: nothing to remark
    read: 1 body, 1 joint
    """
    lines = [str(report)] if target is None else _without_report(report, target)
    if mechanism is not None:
        lines.append(f"read: {', '.join(_counted(mechanism)) or 'nothing'}")
    return "\n".join(lines)


def _without_report(report: ReadReport, target: str) -> list[str]:
    """A report that is not kept: neither is what only it holds."""
    notes = [replace(n, text=_HELD.sub("not written", n.text)) for n in report.notes]
    lost = {i for i, n in enumerate(report.notes) if n.kind == "kept" and _HELD.search(n.text)}
    rest = replace(report, notes=tuple(n for i, n in enumerate(notes) if i not in lost))
    head, *lines = str(rest).splitlines()
    lines = ["kept:" if line.startswith("kept (") else line for line in lines]
    if not lost:
        return [head, *lines]
    count = f"{len(lost)} not written"
    head = f"{head}, {count}" if rest.notes else f"{report.source}: {count}"
    return [head, *lines, f"not written to {target} (no part of the equations of motion):",
            *(f"  {line}" for line in condensed(tuple(notes[i] for i in sorted(lost))))]


def _parts(m: Mechanism) -> tuple[tuple[str, str, Any], ...]:
    """All parts, with what one and several of a kind are called."""
    return (("body", "bodies", m.bodies), ("joint", "joints", m.joints), ("frame", "frames", m.frames),
            ("coupler", "couplers", m.couplers), ("constraint", "constraints", m.constraints),
            ("spring", "springs", m.springs), ("bushing", "bushings", m.bushings), ("drag", "drags", m.drags),
            ("wrench", "wrenches", m.wrenches), ("joint force", "joint forces", (*m.joint_forces, *m.joint_sums)),
            ("actuator", "actuators", m.drives), ("armature", "armatures", m.armatures), ("shape", "shapes", m.shapes),
            ("contact", "contacts", m.contacts),
            ("parameter", "parameters", m.parameters))


def _counted(m: Mechanism) -> list[str]:
    """How many parts of each kind."""
    return [f"{len(found)} {one if len(found) == 1 else several}" for one, several, found in _parts(m) if found]


# -- options ----------------------------------------------------------------------------------------
def options_of_reader(source: str | os.PathLike[str]) -> dict[str, Any]:
    """Names and types of the options that `load` takes for a file or an example.

    >>> options_of_reader("ladder")
    {'cells': <class 'int'>}
    """
    made = _example(source)
    return _options(made) if made is not None else _options(_reader("read", source), keywords=True)


def options_of_writer(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Names and types of the options that `save` takes for a file of this name.

    >>> options_of_writer("robot.urdf")["split"]
    <class 'bool'>
    """
    text = _named("options_of_writer", path)
    return _options(_function("write", _ending(text), text), keywords=True)


def _options(function: Callable[..., Any], keywords: bool = False) -> dict[str, Any]:
    hints = get_type_hints(function)
    return {p.name: hints.get(p.name, Any) for p in inspect.signature(function).parameters.values()
            if not keywords or p.kind is p.KEYWORD_ONLY}


def _with_options(function: Callable[..., Any], what: str, text: str, options: dict[str, Any], *args: Any) -> Any:
    try:
        return function(*args, **options)
    except TypeError as error:
        for option in options:
            if f"unexpected keyword argument {option!r}" in str(error):
                raise FileError(f"{text}: the {what} of this format has no option {option!r}") from None
        raise


# -- which format ---------------------------------------------------------------------------------
def _named(verb: str, source: Any) -> str:
    """What a file is called."""
    try:
        return os.fsdecode(source)
    except TypeError:
        raise FileError(f"{verb}() needs the name of a file (or of an example), got {type(source).__name__}") from None


def _call(verb: str, source: str | os.PathLike[str], options: dict[str, Any]) -> Any:
    from bellcrank import examples

    text = _named(verb, source)
    if _example(source) is not None:
        made = examples.load(text, **options)
        return made if verb == "load" else (made, ReadReport(text))
    found = _with_options(_reader(verb, source), "reader", text, options, source)
    _check_names(found if verb == "load" else found[0], text)
    return found


def _example(source: str | os.PathLike[str]) -> Callable[..., Mechanism] | None:
    """What makes the example of this name."""
    from bellcrank import examples

    return examples._MAKERS.get(source) if isinstance(source, str) else None


def _reader(verb: str, source: str | os.PathLike[str]) -> Callable[..., Any]:
    """What reads a file."""
    text = _named(verb, source)
    path = Path(text)
    if path.suffix.lower() not in ENDINGS and not _exists(path):
        raise FileError(_neither(text))
    return _function(verb, _root(text) if path.suffix.lower() == ".xml" else _ending(text), text)


def _neither(text: str) -> str:
    import difflib

    from bellcrank.examples import names

    near = difflib.get_close_matches(text, names(), n=1)
    hint = f"did you mean {near[0]!r}? Examples" if near else "examples"
    return f"{text!r} is neither a file nor an example; {hint} are {', '.join(names())}"


def _check_names(mechanism: Mechanism, text: str) -> None:
    """Refuse names that do not show what they are; readers that know the line have done so before."""
    for what, name in _names(mechanism):
        found = None if name.isprintable() else control_character(name)
        if found is not None:
            raise FileError(f"{text}: {what} {name!r}: the name holds the control character {found}")


def _names(mechanism: Mechanism) -> Iterator[tuple[str, str]]:
    yield "machine", mechanism.name
    for what, _, parts in _parts(mechanism):
        for part in parts:
            yield what, part if isinstance(part, str) else part.name


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a name too long, a zero byte
        return False


def _ending(text: str) -> str:
    suffix = Path(text).suffix.lower()
    if suffix not in ENDINGS:
        raise FileError(f"{text}: the name of a model file ends in {', '.join(ENDINGS)}; this one ends in {suffix!r}")
    return ENDINGS[suffix]


def _root(text: str) -> str:
    """What an .xml file is, by its outermost element."""
    from bellcrank.io.common.xml import read_xml

    root = read_xml(text)
    if root.tag not in _ROOTS:
        raise root.error("is no model: the outermost element of one is <mujoco>, <robot> or <sdf>")
    return _ROOTS[root.tag]


def _function(verb: str, kind: str, text: str) -> Callable[..., Any]:
    """`load_urdf` and the like."""
    name = f"{verb}_{kind}"
    try:
        return getattr(import_module(f"bellcrank.io.{kind}"), name)  # type: ignore[no-any-return]
    except (AttributeError, ModuleNotFoundError) as error:
        if isinstance(error, ModuleNotFoundError) and not str(error.name).startswith(f"bellcrank.io.{kind}"):
            raise
        what = "written" if verb == "write" else "read"
        raise FileError(f"{text}: files of this format cannot be {what} by this version") from None
