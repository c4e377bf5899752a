"""The command ``convert``, and what commands say about the reading of a file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.cli.models import options_of
from bellcrank.cli.output import Output, UsageError
from bellcrank.cli.program import FINE
from bellcrank.errors import BellcrankError, FileError, ModelError

if TYPE_CHECKING:
    from bellcrank.io.report import ReadReport
    from bellcrank.mechanism.mechanism import Mechanism

__all__ = ["convert", "read_with_report", "report_data", "warn_of"]


def read_with_report(model: str, options: Sequence[str], floating_base: bool) -> tuple[Mechanism, ReadReport]:
    """The machine of a file or an example, and what was made of the file."""
    from bellcrank.io.load import read

    given = options_of(options, floating_base)
    try:
        return read(model, **given)
    except FileError:
        raise
    except (TypeError, BellcrankError) as error:
        if not given:
            raise
        raise UsageError(f"{model}: {error}") from error


def report_data(report: ReadReport) -> dict[str, Any]:
    """What was made of a file, for machines."""
    return {"source": report.source, "notes": [
        {"kind": n.kind, "element": n.tag, "name": n.name, "line": n.line, "text": n.text} for n in report.notes]}


def warn_of(report: ReadReport, output: Output) -> None:
    """What may make the machine move differently than its file says."""
    from bellcrank.io.report import condensed

    for line in condensed(report.surprises):
        output.warn(f"{report.source}: {line}")


def convert(source: str, target: Path, options: Sequence[str], floating_base: bool, output: Output) -> int:
    """One model file into another."""
    from bellcrank.io.load import ENDINGS, describe, save

    if target.suffix.lower() not in ENDINGS:
        raise UsageError(f"{target}: the name says the format; it ends in {', '.join(ENDINGS)}")
    with output.bar("converting"):
        machine, report = read_with_report(source, options, floating_base)
        if os.path.exists(source) and os.path.exists(target) and os.path.samefile(source, target):
            raise UsageError(f"{target}: is the file that is read; give another name")
        try:
            save(machine, target)
        except ModelError as error:
            raise ModelError(f"{target}: not written, this format cannot hold the machine: {error}") from error
    output.text(f"{describe(report, machine)}\nwritten: {target}")
    warn_of(report, output)
    output.data({"command": "convert", "status": "finished", "model": machine.name, "target": str(target),
                 "bodies": len(machine.bodies), "joints": len(machine.joints), "report": report_data(report)})
    return FINE
