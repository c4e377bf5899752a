"""The commands that speak of machines and formulations: ``inspect``, ``compare``, ``examples``, ``cite``."""

from __future__ import annotations

import inspect as reflection
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from bellcrank.cli.application import FINE
from bellcrank.cli.convert import report_data
from bellcrank.cli.models import check_method, read_model, warn_of
from bellcrank.cli.output import Output

if TYPE_CHECKING:
    from bellcrank.analyze.comparison import Comparison

__all__ = ["cite", "compare", "examples", "inspect"]


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
