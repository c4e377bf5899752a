"""The commands that speak of machines and formulations: ``inspect``, ``compare``, ``examples``, ``cite``."""

from __future__ import annotations

import inspect as reflection
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from bellcrank.cli.convert import read_with_report, report_data, warn_of
from bellcrank.cli.models import check_method, read_model
from bellcrank.cli.output import Output
from bellcrank.cli.program import FINE

__all__ = ["cite", "compare", "examples", "inspect"]


def inspect(model: str, options: Sequence[str], floating_base: bool, cut: Sequence[str], output: Output) -> int:
    """What a machine is made of."""
    from bellcrank.io.load import describe
    from bellcrank.system.compile import compile

    with output.bar("looking at the machine"):
        machine, report = read_with_report(model, options, floating_base)
        system = compile(machine, cut=cut)
        found = system.explain()
    warn_of(report, output)
    output.text(f"{found}\n\n{describe(report)}" if report.notes else str(found))
    joints = [dict(zip(("name", "type", "parent", "child"), j, strict=True)) for j in found.joints]
    output.data({"command": "inspect", "status": "finished", "model": found.name, **asdict(found), "joints": joints,
                 "coordinates": system.coordinate_names, "speeds": system.speed_names,
                 "parameters": system.parameters, "mass": system.mass, "report": report_data(report)})
    return FINE


def compare(model: str, options: Sequence[str], floating_base: bool, states: int, methods: Sequence[str],
            output: Output) -> int:
    """All formulations beside each other."""
    from bellcrank.analyse.compare import compare as run

    names = [check_method(m) for m in methods]
    with output.bar("compiling and timing"):
        found = run(read_model(model, options, floating_base, output), names or None, states=states)
    output.text(str(found))
    output.data({"command": "compare", "status": "finished", "model": found.name, "states": found.states,
                 "rows": [asdict(r) for r in found.rows],
                 "skipped": [{"method": m, "reason": why} for m, why in found.skipped]})
    return FINE


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


def cite(method: str, output: Output) -> int:
    """Where a formulation comes from."""
    from bellcrank.formulations import cite as entry

    text = entry(check_method(method))
    output.text(text)
    output.data({"command": "cite", "status": "finished", "method": method, "bibtex": text})
    return FINE
