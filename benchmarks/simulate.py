"""Simulation beside MuJoCo, Exudyn and SciPy, in one run: 10 s at steps of 1 ms, sampled every 10 ms.

    python benchmarks/simulate.py [--peers-only] [--quick] [--only MACHINE] [--json FILE]

How to read it. **wall**: best of several rounds in which all tools take turns, in one process, on one thread except
in the table of the batch; building and compiling are not in it, sampling is. **x Bellcrank**: wall over that of
Bellcrank's rk4; above 1 Bellcrank is the quicker. **loop error**: the largest gap in any loop at any sample;
Bellcrank's counts the cosines of angles that should be right as well. **energy drift**: change from start to end over
the largest kinetic energy (in the batch: that of all members); all machines here keep their energy. Look at wall and
errors together: MuJoCo's Euler steps are cheap, and wrong by percents.

Every tool gets the same machine, gravity and closed first state. The quarter car stands on its spring without the
damper (in MuJoCo a tendon), released 50 mm above its design position, so that its energy can be judged; the Panda
falls freely, without friction, stops and drives; MuJoCo's ladder is cut at the rails, which is the quickest there.
Exudyn has the four-bar only. SciPy drives Bellcrank's forward dynamics at tolerances that come near rk4's accuracy.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import os
import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import loop_peers
import numpy as np
import simulate_peers as peers
from loops import by_joint
from simulate_peers import Array, Check, Runner, Task
from timing import interleaved, time_text
from trees import mujoco_urdf, robots_folder, welded

import bellcrank as bc
from bellcrank.system.state import State

RK4 = "Bellcrank rk4"
STEPPERS = ("rk4", "rk8", "semi_implicit", "dop853")
TOLERANCES = {"RK45": 1e-10, "DOP853": 1e-10}
PANDA = "panda_description/urdf/panda.urdf"
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
BENT = (0.3, -0.6, 0.2, -1.8, 0.1, 1.5, 0.4)
BUMP = -0.12930036652171667  # the wheel 50 mm above its design position
MEMBERS = 4096


class Row(NamedTuple):
    """One line of a table; `note` says why numbers are missing."""

    machine: str
    tool: str
    wall: float | None = None
    loop: float | None = None
    drift: float | None = None
    steps: int = 0  #: of all members together
    note: str = ""


class Bellcrank:
    """``System.simulate``, for one state or a batch."""

    def __init__(self, task: Task, system: bc.System, state: State, stepper: str) -> None:
        self.task, self.system, self.state, self.stepper = task, system, state, stepper
        self.result: Any = None

    def run(self) -> None:
        self.result = self.system.simulate(self.state, self.task.duration, step=self.task.step, stepper=self.stepper,
                                           output=self.task.output)

    def check(self) -> Check:
        q, u = (np.asarray(self.result[name]) for name in ("q", "u"))
        if q.ndim > 2:
            q, u = np.ascontiguousarray(q[:, ::peers.JUDGED]), np.ascontiguousarray(u[:, ::peers.JUDGED])
        return peers.judge(self.system, q, u)


# -- machines -------------------------------------------------------------------------------------
class Machine(NamedTuple):
    """A machine ready to go: our system in its first state and what the peers get."""

    name: str
    task: Task
    system: bc.System
    state: State
    urdf: str = ""  #: file MuJoCo reads instead of the description


def undamped(machine: bc.Mechanism) -> bc.Mechanism:
    """The same with the springs alone."""
    bodies = (machine.ground, *machine.bodies)
    springs = machine.springs
    machine._springs.clear()
    for s in springs:
        machine.add_spring(s.name, bodies[s.first], bodies[s.second], s.first_point, s.second_point,
                           stiffness=s.along.stiffness, length=s.along.rest)
    return machine


def prepared(name: str, machine: bc.Mechanism, cuts: Sequence[str] | None = None, duration: float = 10.0,
             q: Any = None, u: Any = None, urdf: str = "") -> Machine:
    """Closed at the joint coordinates and speeds given; cut where we cut, or as told."""
    system = bc.compile(machine, threads=1)
    state = system.assemble(q=q, u=u)
    cut = list(system.model.tree.cut_names) if cuts is None else cuts
    task = Task(machine, cut, *by_joint(system, state), duration)
    return Machine(name, task, system, state, urdf)


def panda(duration: float) -> Machine:
    from bellcrank.io import read_urdf

    folder = robots_folder()
    if folder is None:
        raise ModuleNotFoundError("example-robot-data is not installed")
    file = str(folder / PANDA)
    machine = welded(read_urdf(file, mimic="free")[0], FINGERS)
    hinges = [r.name for r in machine.joints if r.joint.nu]
    return prepared("Panda", machine, (), duration, dict(zip(hinges, BENT, strict=True)), urdf=file)


def ladder(cells: int, duration: float) -> Machine:
    joints = loop_peers.ladder_joints
    machine = bc.load("ladder", cells=cells)
    system = bc.compile(machine, threads=1)
    q, u = (joints(cells, values) for values in (loop_peers.LADDER_Q, loop_peers.LADDER_U))
    flat = [np.concatenate([x[name] for name in system.joint_names]) for x in (q, u)]
    task = Task(machine, loop_peers.ladder_cuts(cells, "rail"), q, u, duration)
    return Machine(f"ladder of {cells}", task, system, State(*flat))


MACHINES: dict[str, Callable[[float], Machine]] = {
    "four-bar": lambda t: prepared("four-bar", bc.load("four_bar"), ["D"], t, {"A": np.pi / 2}),
    "quarter car": lambda t: prepared("quarter car, no damper", undamped(bc.load("quarter_car")), None, t,
                                      {"arm": BUMP}),
    "Panda": panda,
    "ladder": lambda t: ladder(64, t),
}


# -- rows -----------------------------------------------------------------------------------------
def mujoco_runners(machine: Machine) -> dict[str, Callable[[], Runner]]:
    task = machine.task
    models: dict[str, Callable[[], peers.MuJoCoModel]]
    if machine.urdf:
        models = {"": lambda: peers.MuJoCoModel(task, model=mujoco_urdf(machine.urdf, False, FINGERS))}
    else:
        models = {", default softness": lambda: peers.MuJoCoModel(task),
                  ", hardest": lambda: peers.MuJoCoModel(task, hard=True)}
    out: dict[str, Callable[[], Runner]] = {}
    for label, model in models.items():
        for name in ("Euler", "RK4"):
            out[f"MuJoCo {name}{label}"] = lambda m=model, i=name: peers.MuJoCoLoop(task, m(), i)
    label, model = list(models.items())[-1]
    for name in ("Euler", "RK4"):
        out[f"MuJoCo {name}{label}, rollout (loop in C)"] = lambda i=name: peers.MuJoCoRollout(task, model(), i)
    return out


def contenders(machine: Machine, ours: bool) -> dict[str, Callable[[], Runner] | str]:
    """Makers of everything that runs on a machine, or why it does not."""
    task, system, (q, u, *_) = machine.task, machine.system, machine.state
    out: dict[str, Callable[[], Runner] | str] = {}
    for stepper in STEPPERS if ours else ():
        out[f"Bellcrank {stepper}"] = lambda s=stepper: Bellcrank(task, system, machine.state, s)
    if peers.installed("mujoco"):
        out.update(mujoco_runners(machine))
    else:
        out["MuJoCo"] = "not installed"
    if machine.name == "four-bar":
        out["Exudyn 2D, generalized-alpha"] = (lambda: peers.ExudynFourBar(task)) if peers.installed("exudyn") \
            else "not installed"
    for method, rtol in TOLERANCES.items():
        out[f"SciPy {method}, rtol {rtol:.0e}"] = lambda m=method, r=rtol: peers.SciPy(task, system, q, u, m, r)
    return out


def measure(name: str, makers: dict[str, Callable[[], Runner] | str], rounds: int, steps: int) -> list[Row]:
    """All rows of a machine. Whatever fails says so in its row and does not stop the others."""
    runners: dict[str, Runner] = {}
    failed: dict[str, str] = {}
    for tool, make in makers.items():
        if isinstance(make, str):
            failed[tool] = make
            continue
        try:
            runner = make()
            runner.run()
            runners[tool] = runner
        except Exception as error:
            failed[tool] = f"{type(error).__name__}: {error}".splitlines()[0][:80]
    times = interleaved({tool: runner.run for tool, runner in runners.items()}, rounds)
    rows = []
    for tool in makers:
        if tool in failed:
            rows.append(Row(name, tool, note=failed[tool]))
        else:
            quality = runners[tool].check()
            rows.append(Row(name, tool, times[tool], quality.loop, quality.drift, steps, quality.note))
    return rows


def batch_rows(ours: bool, rounds: int, duration: float) -> list[Row]:
    """Many four-bars from one position with crank speeds of their own, on all cores."""
    machine = MACHINES["four-bar"](duration)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    speeds = np.random.default_rng(0).uniform(-3.0, 3.0, MEMBERS)
    unit = machine.system.assemble(q=machine.state.q, u={"A": 1.0})  # one freedom: all speeds go with the crank's
    u: Array = speeds[:, None] * unit.u
    task = machine.task
    makers: dict[str, Callable[[], Runner] | str] = {}
    if ours:
        system = bc.compile(task.machine)
        state = State(np.repeat(machine.state.q[None], MEMBERS, axis=0), u)
        makers[RK4] = lambda: Bellcrank(task, system, state, "rk4")
        makers["Bellcrank rk4, every step kept"] = \
            lambda: Bellcrank(replace(task, output=task.step), system, state, "rk4")
    if not peers.installed("mujoco"):
        makers["MuJoCo rollout"] = "not installed"
    for label, hard in (("default softness", False), ("hardest", True)) if peers.installed("mujoco") else ():
        model = peers.MuJoCoModel(replace(task, u=by_joint(machine.system, unit)[1]), hard)
        v = speeds[:, None] * model.v
        for name in ("Euler", "RK4"):
            makers[f"MuJoCo {name}, {label}, rollout, every step kept"] = \
                lambda m=model, x=v, i=name: peers.MuJoCoRollout(task, m, i, x, cores)
    return measure(f"{MEMBERS} four-bars", makers, rounds, task.steps * MEMBERS)


# -- output ---------------------------------------------------------------------------------------
def print_table(rows: list[Row], title: str) -> None:
    """Plain Markdown."""
    print(f"\n{title}\n\n| machine | tool | wall | x Bellcrank | steps/s | loop error [m] | energy drift |")
    print("|---|---|---|---|---|---|---|")
    ours = {row.machine: row.wall for row in rows if row.tool == RK4}
    for row in rows:
        if row.wall is None:
            print(f"| {row.machine} | {row.tool} | {row.note} | | | | |")
            continue
        reference = ours.get(row.machine)
        ratio = f"{row.wall / reference:.2f}" if reference else "-"
        loop = "-" if row.loop is None else f"{row.loop:.1e}"
        drift = row.note if row.drift is None else f"{row.drift:.1e}"
        rate = "-" if "SciPy" in row.tool or "dop853" in row.tool else f"{row.steps / row.wall:.3g}"
        cells = (row.machine, row.tool, time_text(row.wall), ratio, rate, loop, drift)
        print(f"| {' | '.join(cells)} |", flush=True)


def heading() -> str:
    versions = [f"bellcrank {bc.__version__}"]
    for package in ("numpy", "scipy", "mujoco", "exudyn"):
        try:
            versions.append(f"{package} {importlib.metadata.version(package)}")
        except importlib.metadata.PackageNotFoundError:
            versions.append(f"{package} not installed")
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    return f"{platform.machine()}, {os.cpu_count()} cores{load}, Python {platform.python_version()}, " + \
        ", ".join(versions)


def tables(ours: bool, quick: bool, only: str | None) -> list[Row]:
    """Measure and print, machine after machine."""
    rounds, duration, span = (2, 1.0, 0.05) if quick else (5, 10.0, 0.25)
    rows: list[Row] = []
    for name, make in MACHINES.items():
        if only not in (None, name):
            continue
        try:
            machine = make(duration)
        except ModuleNotFoundError as error:
            found = [Row(name, "all", note=str(error))]
        else:
            found = measure(machine.name, contenders(machine, ours), rounds, machine.task.steps)
        print_table(found, f"{name}: {duration:g} s, steps of 1 ms, one thread")
        rows += found
    if only in (None, "batch"):
        found = batch_rows(ours, rounds, span)
        print_table(found, f"{MEMBERS} four-bars: {span:g} s, steps of 1 ms, all cores")
        rows += found
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-only", action="store_true", help="leave out Bellcrank's own simulation")
    parser.add_argument("--quick", action="store_true", help="1 s instead of 10 s, two rounds")
    parser.add_argument("--only", choices=[*MACHINES, "batch"], help="one machine, or the batch")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the measurements to a file")
    options = parser.parse_args()
    file = options.json.absolute() if options.json else None
    title = heading()
    print(title)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # peers leave log files behind
        rows = tables(not options.peers_only, options.quick, options.only)
    if file:
        file.write_text(json.dumps({"run": title, "rows": [row._asdict() for row in rows]}, indent=1))


if __name__ == "__main__":
    main()
