"""`bellcrank.load`, `read` and `save`: machines from files and to files, by the ending of the name."""

from __future__ import annotations

import os
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

from bellcrank.errors import FileError
from bellcrank.io.report import ReadReport
from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["ENDINGS", "describe", "load", "read", "save"]

#: the format that a file's name stands for; .xml may be several, its outermost element says which
ENDINGS = {".yaml": "native", ".yml": "native", ".json": "native", ".urdf": "urdf", ".sdf": "sdf", ".world": "sdf",
           ".mjcf": "mjcf", ".xml": "mjcf"}
_ROOTS = {"mujoco": "mjcf", "mujocoinclude": "mjcf", "robot": "urdf", "sdf": "sdf", "gazebo": "sdf"}


def load(source: str | os.PathLike[str], **options: Any) -> Mechanism:
    """Read a model file, or make a built-in example by its name.

    Files are Bellcrank's own (``.yaml``, ``.yml``, ``.json``), URDF (``.urdf``), SDFormat (``.sdf``, ``.world``) and
    MJCF (``.xml``, ``.mjcf``); an ``.xml`` file may also be one of the others. Options are those of the reader, such as
    ``floating_base=True`` for URDF, or of the example, such as ``cells=256`` for ``ladder``. A `ReadWarning` tells of
    what would make the machine move differently; `read` tells all.

    >>> load("pendulum")
    <Mechanism 'pendulum': 1 bodies, 1 joints>
    """
    return _call("load", source, options)  # type: ignore[no-any-return]


def read(source: str | os.PathLike[str], **options: Any) -> tuple[Mechanism, ReadReport]:
    """Like `load`, and what was made of the file: what was read, changed, kept as data, or ignored.

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
    text = os.fsdecode(path)
    if not isinstance(mechanism, Mechanism):
        raise FileError(f"{text}: save() writes a Mechanism, got {type(mechanism).__name__}")
    _function("write", _ending(text), text)(mechanism, path, **options)


def describe(report: ReadReport, mechanism: Mechanism | None = None) -> str:
    """What was read, changed, kept and ignored, in words.

    >>> print(describe(*reversed(read("pendulum"))))
    pendulum: nothing to remark
    read: 1 body, 1 joint
    """
    lines = [str(report)]
    if mechanism is not None:
        lines.append(f"read: {', '.join(_counted(mechanism)) or 'nothing'}")
    return "\n".join(lines)


def _counted(m: Mechanism) -> list[str]:
    """How many parts of each kind."""
    parts = (("body", "bodies", m.bodies), ("joint", "joints", m.joints), ("frame", "frames", m.frames),
             ("coupler", "couplers", m.couplers), ("constraint", "constraints", m.constraints),
             ("spring", "springs", m.springs), ("bushing", "bushings", m.bushings), ("drag", "drags", m.drags),
             ("wrench", "wrenches", m.wrenches),
             ("joint force", "joint forces", (*m.joint_forces, *m.joint_sums)),
             ("actuator", "actuators", m.drives), ("armature", "armatures", m.armatures),
             ("parameter", "parameters", m.parameters))
    return [f"{len(found)} {one if len(found) == 1 else several}" for one, several, found in parts if found]


# -- which format ---------------------------------------------------------------------------------
def _call(verb: str, source: str | os.PathLike[str], options: dict[str, Any]) -> Any:
    from bellcrank import examples

    text = os.fsdecode(source)
    if isinstance(source, str) and source in examples.names():
        made = examples.load(source, **options)
        return made if verb == "load" else (made, ReadReport(source))
    path = Path(text)
    if path.suffix.lower() not in ENDINGS and not _exists(path):
        raise FileError(f"{text!r} is neither a file nor an example; examples are {', '.join(examples.names())}")
    kind = _ending(text)
    if path.suffix.lower() == ".xml":
        kind = _root(text)
    try:
        return _function(verb, kind, text)(source, **options)
    except TypeError as error:
        for option in options:
            if f"unexpected keyword argument {option!r}" in str(error):
                raise FileError(f"{text}: the reader of this format has no option {option!r}") from None
        raise


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
    from bellcrank.io.xml import read_xml

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
