"""The commands that speak of machines, formulations and papers: ``inspect``, ``compare``, ``examples``, ``cite``,
``convert``, ``export-c``, ``papers``, ``paper``.
"""

from __future__ import annotations

import inspect as reflection
import os
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.cli.models import check_method, options_for_writer, read_model, warn_of
from bellcrank.cli.output import FAILED, FINE, Output, UsageError, complain
from bellcrank.errors import FileError, ModelError

if TYPE_CHECKING:
    from bellcrank.analyze.comparison import Comparison
    from bellcrank.io.report import ReadReport

__all__ = ["cite", "compare", "convert", "examples", "export_c", "inspect", "paper", "papers"]


# -- the commands ``convert`` and ``export-c``, and what was made of a file, for machines -----------
def report_data(report: ReadReport) -> dict[str, Any]:
    """What was made of a file, for machines."""
    return {"source": report.source, "notes": [
        {"kind": n.kind, "element": n.tag, "name": n.name, "line": n.line, "text": n.text} for n in report.notes]}


def convert(source: str, target: Path, options: Sequence[str], write_options: Sequence[str], floating_base: bool,
            output: Output) -> int:
    """One model file into another."""
    from bellcrank.io.load import ENDINGS, describe, save

    if target.suffix.lower() not in ENDINGS:
        raise UsageError(f"{target}: the name says the format; it ends in {', '.join(ENDINGS)}")
    to_write = options_for_writer(str(target), write_options)
    with output.bar("converting"):
        machine, report = read_model(source, options, floating_base)
        if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
            raise UsageError(f"{target}: is the file that is read; give another name")
        try:
            save(machine, target, **to_write)
        except ModelError as error:
            raise ModelError(f"{target}: not written, this format cannot hold the machine: {error}"
                             f"{_advice(str(error), target)}") from error
    output.text(f"{describe(report, machine, str(target))}\nwritten: {target}")
    output.data({"command": "convert", "status": "finished", "model": machine.name, "target": str(target),
                 "bodies": len(machine.bodies), "joints": len(machine.joints), "report": report_data(report)})
    return FINE


def export_c(model: str, functions: Sequence[str], folder: Path, stepper: str | None, scalar: str, name: str | None,
             method: str, options: Sequence[str], floating_base: bool, output: Output) -> int:
    """Functions of a machine as C."""
    from bellcrank.compiled.compile import compile
    from bellcrank.io.export.export_c import export_c as export

    with output.bar("exporting"):
        machine, _ = read_model(model, options, floating_base)
        files = export(compile(machine, method), functions, folder, scalar=scalar, name=name, stepper=stepper)
    output.text(f"{machine.name}: {', '.join([*functions, *[f'a step of {stepper}'] * bool(stepper)])}\n"
                f"written: {files.header}, {files.source}")
    output.data({"command": "export-c", "status": "finished", "model": machine.name, "functions": list(functions),
                 "stepper": stepper, "scalar": scalar, "header": str(files.header), "source": str(files.source)})
    return FINE


def _advice(error: str, target: Path) -> str:
    """How to follow an error's advice on the command line."""
    from bellcrank.io.load import options_of_writer

    named = any(f"{option}=" in error for option in options_of_writer(target))
    return " (on the command line: --write-option NAME=VALUE)" if named else ""


def inspect(model: str, options: Sequence[str], floating_base: bool, cut: Sequence[str], output: Output) -> int:
    """What a machine is made of."""
    from bellcrank.analyze import explain
    from bellcrank.compiled.compile import compile
    from bellcrank.io.load import describe

    with output.bar("looking at the machine"):
        machine, report = read_model(model, options, floating_base)
        system = compile(machine, cut=cut)
        found = explain(system)
    output.text(f"{found}\n\n{describe(report)}" if report.notes else str(found))
    joints = [dict(zip(("name", "type", "parent", "child"), j, strict=True)) for j in found.joints]
    output.data({"command": "inspect", "status": "finished", "model": found.name, **asdict(found), "joints": joints,
                 "coordinates": system.coordinate_names, "speeds": system.speed_names,
                 "parameters": system.parameters, "mass": system.model.mass, "report": report_data(report)})
    return FINE


def compare(model: str, options: Sequence[str], floating_base: bool, states: int, methods: Sequence[str],
            output: Output) -> int:
    """All formulations beside each other."""
    from bellcrank.analyze.comparison import compare as run

    names = [check_method(m) for m in methods]
    with output.bar("compiling and timing") as bar:
        machine, report = read_model(model, options, floating_base)

        def progress(done: int, count: int) -> None:
            bar.stage(f"compiling and timing, {done + 1} of {count}")
            bar.update(done, count)

        found = run(machine, names or None, states=states, progress=progress)
    warn_of(report, output)
    output.text("\n".join([str(found), *_footnotes(found)]))
    output.data({"command": "compare", "status": "finished", "model": found.name, "states": found.states,
                 "rows": [asdict(r) for r in found.rows],
                 "skipped": [{"method": m, "reason": why} for m, why in found.skipped]})
    return FINE


def _footnotes(found: Comparison) -> list[str]:
    """What the table does not say itself."""
    notes = []
    if any(r.operations is None for r in found.rows):
        notes.append("-: on this machine the method is not one piece of compiled code (matrices are formed and solved "
                     "outside it): nothing to count, no time of one state")
    elif any(r.single is None for r in found.rows):
        notes.append("-: motions of time are not bound to one state")
    names = {r.method for r in found.rows}
    if any(name.startswith("recursive/") for name in names):
        notes.append("recursive/centroid, recursive/joint, recursive/origin: the source's three reference points, in "
                     "global axes; recursive: the same at the joints, in body axes with frames chosen for zeros")
    return notes


def examples(output: Output) -> int:
    """The built-in machines."""
    from bellcrank.examples import load, names

    rows: list[dict[str, Any]] = []
    for name in names():
        machine = load(name)
        rows.append({"name": name, "bodies": len(machine.bodies), "joints": len(machine.joints),
                     "speeds": sum(r.joint.nu for r in machine.joints),
                     "loops": len(machine.joints) - len(machine.bodies), **_maker(name)})
    output.table([(r["name"], str(r["bodies"]), str(r["speeds"]), str(r["loops"]), " ".join(r["options"]), r["about"])
                  for r in rows], ("name", "bodies", "speeds", "loops", "options", "about"))
    output.data({"command": "examples", "status": "finished", "examples": rows})
    return FINE


def _maker(name: str) -> dict[str, Any]:
    """What a machine is, in a sentence, and its options with their defaults."""
    from bellcrank.examples import _MAKERS

    maker = _MAKERS[name]
    text = " ".join((maker.__doc__ or "").split())
    options = {p.name: p.default for p in reflection.signature(maker).parameters.values()}
    return {"about": text.partition(". ")[0].rstrip("."),
            "options": {k: None if v is reflection.Parameter.empty else v for k, v in options.items()}}


def cite(method: str | None, output: Output) -> int:
    """How to cite this software, or where a formulation comes from."""
    from bellcrank.formulations import cite as entry

    text = entry(None if method is None else check_method(method, "auto"))
    output.text(text)
    output.data({"command": "cite", "status": "finished", "method": method, "bibtex": text})
    return FINE


# -- the commands that compute figures and tables of the papers: ``papers`` and ``paper`` -----------
def papers(docs: Path | None, short: bool, output: Output) -> int:
    """List all items, or write the pages that show them."""
    from bellcrank.papers import items_of, sources

    if docs is not None:
        return _pages(docs, short, output)
    rows = [{"name": item.name, "paper": source.authors, "where": item.where, "title": item.title}
            for source in sources() for item in items_of(source)]
    output.table([(r["name"], r["where"], r["title"]) for r in rows], ("item", "in the paper", "what it shows"))
    output.data({"command": "papers", "status": "finished", "items": rows})
    return FINE


def _pages(folder: Path, short: bool, output: Output) -> int:
    from bellcrank.papers.page import missing, write_pages

    with output.bar("computing") as bar:
        def progress(name: str, done: int, count: int) -> None:
            bar.stage(f"{name}, {done + 1} of {count}")
            bar.update(done, count)

        files, wrong = write_pages(folder, short, progress)
    if missing():
        output.warn(f"no pictures: they are drawn by {missing()}, which is not installed")
    output.text("\n".join(str(f) for f in files if f.suffix == ".md"))
    output.data({"command": "papers", "status": "finished", "files": [str(f) for f in files], "differ": wrong})
    if wrong:
        complain(f"these differ from what they should be: {', '.join(wrong)}")
    return FAILED if wrong else FINE


def paper(name: str, short: bool, folder: Path | None, picture: str, output: Output) -> int:
    """Compute an item, print it, write its rows and its picture."""
    from bellcrank.papers import find, source_of
    from bellcrank.papers.page import as_text, write_csv

    try:
        item = find(name)
    except ModelError as error:
        raise UsageError(str(error)) from None
    if picture not in ("png", "svg", "pdf"):
        raise UsageError(f"--format {picture}: pictures are png, svg or pdf")
    if folder is not None:
        _make(folder)
    with output.bar(f"computing {name}"):
        result = item.compute(short)
    files: list[str] = []
    if folder is not None:
        write_csv(result, folder / f"{name}.csv")
        files.append(str(folder / f"{name}.csv"))
        files += _drawn(item, result, folder / f"{name}.{picture}", output)
    output.text("\n".join([as_text(item, result), *files]))
    output.data({"command": "paper", "status": "finished", "item": name, "paper": source_of(item).authors,
                 "where": item.where, "title": item.title, "short": short, "holds": result.holds,
                 "columns": [c.label for c in result.table.columns], "rows": result.table.rows,
                 "agreements": [{**asdict(a), "difference": a.difference, "holds": a.holds, "judged": a.judged}
                                for a in result.agreements], "notes": result.notes, "files": files})
    if not result.holds:
        complain(f"{name}: {', '.join(a.what for a in result.agreements if not a.holds)}: not as it should be")
    return FINE if result.holds else FAILED


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f"{folder}: cannot be made ({error})") from error


def _drawn(item: Any, result: Any, path: Path, output: Output) -> list[str]:
    from bellcrank.papers.page import draw, missing

    if missing():
        output.warn(f"no picture: it is drawn by {missing()}, which is not installed")
        return []
    draw(item, result, path)
    return [str(path)]
