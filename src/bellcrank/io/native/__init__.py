"""Bellcrank's own model files: YAML or JSON that people can read, and that hold all that a `Mechanism` can hold.

The form is described in ``docs/howto/model_file.md`` and, for other programs, by the JSON Schema in
``docs/reference/model.schema.json``.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.errors import FileError
from bellcrank.io.common.model_meshes import Folders, Meshes, MeshFinder, MeshStore
from bellcrank.io.native.same import difference, same_mechanism
from bellcrank.io.report import ReadReport, warn_of_surprises
from bellcrank.mechanism.carried_joints import uncarried
from bellcrank.mechanism.mechanism import Mechanism

if TYPE_CHECKING:
    from pydantic import ValidationError

    from bellcrank.io.native.source_lines import Marked

__all__ = ["SUFFIXES", "difference", "from_text", "json_schema", "load_native", "read_native", "same_mechanism",
           "text_of", "write_native"]

#: what the names of model files end in
SUFFIXES = (".yaml", ".yml", ".json")


def read_native(path: str | os.PathLike[str], *, packages: Folders = None) -> tuple[Mechanism, ReadReport]:
    """The machine in a model file. Nothing in it is changed or left out; the report tells of mesh files that are
    missing. They are looked for beside the model file, and in the folders `packages`.

    Raises `FileError` with file, line and element. Laws are formulas, and formulas are arithmetic: no file can make
    Python run anything. Cost: linear in the size of the file, at most 64 MiB.
    """
    from bellcrank.io.native.source_lines import read_marked

    source = os.fsdecode(path)
    return _built(read_marked(source), source, packages)


def from_text(text: str, source: str = "text") -> Mechanism:
    """The machine of a text in JSON, as `text_of` writes it; `source` is what errors call it."""
    from bellcrank.io.native.source_lines import marked_text

    return _built(marked_text(text, source, True), source, None)[0]


def _built(marks: Marked, source: str, packages: Folders) -> tuple[Mechanism, ReadReport]:
    from pydantic import ValidationError

    from bellcrank.io.native.build import build
    from bellcrank.io.native.schema import Document

    try:
        document = Document.model_validate(marks.value)
    except ValidationError as error:
        raise _complaint(error, marks, source) from None
    mechanism, notes = build(document, marks, source, MeshFinder(packages))
    return mechanism, ReadReport(source, tuple(notes))


def load_native(path: str | os.PathLike[str], *, packages: Folders = None) -> Mechanism:
    """The machine in a model file."""
    mechanism, report = read_native(path, packages=packages)
    warn_of_surprises(report, "read_native")
    return mechanism


def write_native(mechanism: Mechanism, path: str | os.PathLike[str], *, meshes: Meshes = "copy") -> None:
    """Write a machine to a .yaml, .yml or .json file, whole or not at all.

    Mesh files that do not lie beside it are copied to a folder there, or, with ``meshes="refer"``, only named; meshes
    that are arrays stand in the file itself.

    Reading it gives the same machine: every number to the last bit, and laws that compute the same in the same order.
    Laws written in Python are traced for that; one that cannot be is a `ModelError` that names it, as is a joint type
    of your own.
    """
    from bellcrank.files.model_files import write_text

    suffix = Path(os.fsdecode(path)).suffix.lower()
    if suffix not in SUFFIXES:
        raise FileError(f"{os.fsdecode(path)}: model files end in {', '.join(SUFFIXES)}, not in {suffix!r}")
    store = MeshStore(os.fsdecode(path), meshes)
    text = text_of(mechanism, json=suffix == ".json", store=store)
    store.write()
    write_text(path, text)


def text_of(mechanism: Mechanism, *, json: bool = False, store: MeshStore | None = None) -> str:
    """The text of a model file; `store` says what mesh files are called in it.

    >>> import bellcrank as bc
    >>> print(text_of(bc.load("pendulum")))
    # A machine for Bellcrank: SI units, radians; inertia about the centre of mass.
    ---
    bellcrank: 1
    name: pendulum
    gravity: [0.0, 0.0, -9.81]
    bodies:
      bob:
        mass: 1.0
        com: [0.0, 0.0, -1.0]
    joints:
      hinge:
        type: revolute
        axis: x
        parent: ground
        child: bob
    ...
    <BLANKLINE>
    """
    from bellcrank.io.native.dump import dump
    from bellcrank.io.native.source_lines import as_json, as_yaml

    mechanism = uncarried(mechanism)
    return (as_json if json else as_yaml)(dump(mechanism, store or MeshStore("model", "refer")))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of model files."""
    from bellcrank.io.native.schema import json_schema as made

    return made()


# -- complaints -----------------------------------------------------------------------------------
def _complaint(error: ValidationError, marks: Marked, source: str) -> FileError:
    """What is wrong with the first part, in the order of the file, that is wrong."""
    found = []
    for problem in error.errors(include_url=False, include_input=False):
        path = problem["loc"]
        if problem["type"] == "unknown":
            path = (*path, problem["ctx"]["key"])
        found.append((marks.find(path).line, *_told(problem, marks)))
    line, place, text = min(found, key=lambda f: f[0])
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    return FileError(f"{source}:{line}: {f'{place}: ' if place else ''}{text}{more}")


def _told(problem: Any, marks: Marked) -> tuple[str, str]:
    """Which part it is, and what is wrong with it."""
    from bellcrank.io.native.schema import SINGULAR

    steps: list[Any] = []
    here = marks
    for step in problem["loc"]:  # the names of chosen alternatives are not in the file
        inner = here.inner
        if (isinstance(inner, dict) and step in inner) or (isinstance(inner, list) and isinstance(step, int)):
            here = inner[step]
            steps.append(step)
    missing = problem["type"] == "missing"
    if len(steps) > 1 and steps[0] in SINGULAR:
        steps[:2] = [f"{SINGULAR[steps[0]]} {_short(steps[1])!r}"]
    place = ": ".join(f"number {s + 1}" if isinstance(s, int) else str(s) for s in steps)
    return place, f"needs {problem['loc'][-1]!r}" if missing else _phrase(problem, here)


def _phrase(problem: Any, here: Marked) -> str:
    from bellcrank.io.native.schema_part import shown

    kind, context = problem["type"], problem.get("ctx", {})
    if kind in ("too_short", "too_long"):
        bound = "at least" if kind == "too_short" else "at most"
        count = context["min_length" if kind == "too_short" else "max_length"]
        return f"needs {bound} {count} numbers, got {context['actual_length']}"
    if kind == "string_type":
        quotes = "; put it in quotes" if isinstance(here.value, (bool, float)) else ""
        return f"needs text, got {shown(here.value)}{quotes}"
    if kind == "string_too_short":
        return "needs a name, got empty text"
    if kind == "union_tag_not_found":
        return "needs 'type'"
    if kind == "union_tag_invalid" and context["discriminator"] in ("'type'", "type_of()"):
        import difflib

        known = context["expected_tags"].replace("'", "").split(", ")
        near = difflib.get_close_matches(context["tag"], known, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(known)}"
        return f"there is no type {_short(context['tag'])!r}; {hint}"
    if kind == "union_tag_invalid":
        return f"a {context['tag']} is not expected here; it takes a {context['expected_tags'].replace(chr(39), '')}"
    if kind in ("dict_type", "model_attributes_type", "model_type"):
        return "needs a mapping of names to values"
    if kind == "list_type":
        return f"needs a list of three numbers, got {shown(here.value)}"  # lists of other lengths have alternatives
    text = str(problem["msg"])
    return text[0].lower() + text[1:] if text.startswith("Input ") else text


def _short(value: Any, length: int = 60) -> str:
    text = str(value)
    return text if len(text) <= length else text[:length] + "..."
