"""Real machines from published files: read, counted, assembled, moved by every method, simulated, beside MuJoCo and
Pinocchio.

    python benchmarks/machines.py [--only NAME] [--seconds 10] [--json FILE] [--no-peers]

`--only` takes a part of a name and may be given several times. Files that are not here are named with what to do
(`make models` fetches most of them). What the columns mean is told in docs/reference/machines.md.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import machine_peers
import numpy as np
from machine_checks import Run, agreement, simulated
from machine_list import MACHINES, Machine
from timing import time_text

import bellcrank as bc
from bellcrank.io.report import ReadReport, condensed
from models import MissingError  # tests/ is on the path since machine_list


def measure(machine: Machine, seconds: float) -> dict[str, Any]:
    """Everything about one machine, as numbers and short texts."""
    begun = time.perf_counter()
    mechanism, report = machine.read()
    system = bc.compile(mechanism)
    state = machine.state(system)
    closed = float(np.abs(system.loop_error(state.q)).max(initial=0.0))
    found: dict[str, Any] = {
        "name": machine.name, "bodies": len(mechanism.bodies), "speeds": system.nu, "dof": system.dof,
        "expected": machine.dof, "stated": machine.stated, "loops": len(system.loops), "assembled": closed,
        "reading and compiling [s]": time.perf_counter() - begun, "warnings": warned(report)}
    methods = agreement(machine, mechanism)
    found |= {"apart": methods.apart, "refused": methods.refused}
    return found | {"run": _plain(simulated(machine, mechanism, seconds))}


def warned(report: ReadReport) -> list[str]:
    """The reader's warnings, one for each kind, without places in the file."""
    return [line.partition("> of ")[2].partition(": ")[2] for line in condensed(report.warned)]


def _plain(run: Run) -> dict[str, Any]:
    values = run._asdict()
    choice = values.pop("choice")
    return {**choice._asdict(), **values, "relative": run.relative}


def line(found: dict[str, Any]) -> str:
    """A row of the table."""
    run, apart = found["run"], found["apart"]
    worst = max(apart, key=lambda m: apart[m]) if apart else ""
    steps = run["steps"] or "-"
    count = f"{found['dof']}" if found["dof"] == found["expected"] else f"**{found['dof']}, not {found['expected']}**"
    energy = f"{run['balance']:.0e} / {run['relative']:.0e}"
    if run["status"] != "finished" or run["samples_missing"]:
        energy = f"**{run['status']} at {run['reached']:.3g} s, {run['samples_missing']} samples missing**"
    return (f"| {found['name']} | {found['bodies']} | {found['speeds']} | {found['loops']} | {count} | "
            f"{len(apart) + 1}, {apart[worst]:.0e} | {run['stepper']} | {steps} | {time_text(run['wall'])} | "
            f"{run['position']:.0e} / {run['rate']:.0e} / {run['acceleration']:.0e} | {energy} |")


HEAD = ("| machine | bodies | speeds | loops | moves in | methods, apart | stepper | steps | wall | loop errors | "
        "energy [J] / relative |\n|---|---|---|---|---|---|---|---|---|---|---|")


def peers(machine: Machine) -> list[str]:
    """Rows about MuJoCo and Pinocchio."""
    rows = []
    if machine.closing:
        b = machine_peers.built(machine)
        rows.append(f"| {machine.name} | Pinocchio | mu = {_list(machine_peers.MUS)} | {_list(b.pinocchio)} | |")
        rows.append(f"| | MuJoCo, weakest {b.weakest:.0e} | 1 - d = {_list(machine_peers.SOFT)} | {_list(b.mujoco)} | "
                    f"{b.mujoco_limit:.0e} |")
    if machine.mjcf:
        s = machine_peers.from_file(machine)
        soft = _list(machine_peers.SOFT)
        rows.append(f"| {machine.name} | MuJoCo's reader, at rest | 1 - d = {soft} | {_list(s.rest)} | "
                    f"{s.rest_limit:.0e} |")
        rows.append(f"| | moving | 1 - d = {soft} | {_list(s.moving)} | {s.moving_limit:.0e} |")
        if s.paths:
            rows.append(f"| | path, after 0.5 s | solref = {_list(machine_peers.TIMES)} s | {_list(s.paths)} | |")
    return rows


def _list(values: Sequence[float]) -> str:
    return ", ".join(f"{v:.2g}" if v >= 1e-3 else f"{v:.0e}" for v in values)


def notes(results: list[dict[str, Any]]) -> list[str]:
    """Below the table: mobility, methods that do not apply, the reader's warnings."""
    out = ["\nMobility as stated by the makers:"]
    out += [f"- {r['name']}: {r['stated']}" for r in results]
    reasons: Counter[tuple[str, str]] = Counter()
    for r in results:
        reasons.update((method, why.partition(". ")[0][:160]) for method, why in r["refused"].items())
    out += ["\nMethods that do not apply (machines):"] if reasons else []
    out += [f"- {method} ({n}): {why}" for (method, why), n in reasons.most_common()]
    out += ["\nWarnings of the readers:"]
    out += [f"- {r['name']}: {text[:200]}" for r in results for text in r["warnings"]]
    return out


def main(arguments: Sequence[str]) -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Real machines from published files.")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="part of a machine's name")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--json", type=Path, metavar="FILE")
    parser.add_argument("--no-peers", action="store_true", help="without MuJoCo and Pinocchio")
    options = parser.parse_args(arguments)
    chosen = [m for m in MACHINES.values() if not options.only or any(part in m.name for part in options.only)]
    if not chosen:
        parser.error(f"no machine has that in its name; there are {', '.join(MACHINES)}")
    print(HEAD)
    results: list[dict[str, Any]] = []
    for machine in chosen:
        try:
            results.append(measure(machine, options.seconds))
            print(line(results[-1]), flush=True)
        except MissingError as error:
            print(f"| {machine.name} | {error} |", flush=True)
    print("\n".join(notes(results)))
    rows = [] if options.no_peers else _peer_rows([m for m in chosen if m.name in {r["name"] for r in results}])
    if options.json:
        options.json.write_text(json.dumps({"machines": results, "peers": rows}, indent=1))
    return 0 if all(sound(r) for r in results) else 1


def _peer_rows(machines: list[Machine]) -> list[str]:
    print("\n| machine | peer | setting | differences of accelerations (paths: of coordinates) | limit |\n"
          "|---|---|---|---|---|")
    out: list[str] = []
    for machine in machines:
        try:
            out += (rows := peers(machine))
        except ImportError as error:
            rows = [f"| {machine.name} | {error} | | | |"]
        print("\n".join(rows) + ("\n" if rows else ""), end="", flush=True)
    return out


def sound(found: dict[str, Any]) -> bool:
    """Whether a machine shows what it must: mobility, loops closed within 1e-10, the run finished."""
    run = found["run"]
    closed = max(found["assembled"], run["position"], run["rate"], run["acceleration"]) < 1e-10
    return bool(found["dof"] == found["expected"] and closed and run["status"] == "finished")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
