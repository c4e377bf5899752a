"""The commands ``convert`` and ``export-c``, and what was made of a file, for machines."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.cli.application import FINE
from bellcrank.cli.models import read_model
from bellcrank.cli.options import options_for_writer
from bellcrank.cli.output import Output, UsageError
from bellcrank.errors import ModelError

if TYPE_CHECKING:
    from bellcrank.io.report import ReadReport

__all__ = ["convert", "export_c", "report_data"]


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
