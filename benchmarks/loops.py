"""Closed loops beside Pinocchio and MuJoCo, in one run: ``python benchmarks/loops.py [--quick]``.

One line per machine, size and method: time of one forward dynamics from Python (a bound call), time per state in a
batch on one thread, error, growth exponent of the single time from 64 cells on, and the memory the process took. The
error of the ladder is against the closed form of the equivalent pendulum, of the four-bar against planar equations, of
other machines against the dense oracle up to 400 speeds; beyond (marked r) it is the largest residual of the equations
of motion and of the loops, relative to the largest force and acceleration. Every line is measured in a process of its
own; peers are skipped where their data would not fit into 10 GB.
"""

from __future__ import annotations

import multiprocessing
import resource
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import loop_peers
import numpy as np
from timing import best, time_text

import bellcrank as bc
from bellcrank.system.tree_dynamics import tree_forces

MEMORY = 10e9
SIZES = {"ladder": "cells", "rope_ladder": "rungs", "four_bar_chain": "cells"}
PEERS = ("Pinocchio lcaba, mu 1e-6", "Pinocchio lcaba, mu 1e-3", "Pinocchio constraintDynamics, mu 1e-3", "MuJoCo",
         "MuJoCo, hard")


class Line(NamedTuple):
    """One measurement."""

    single: float
    batch: float | None
    error: float
    residual: bool
    memory: float


class Case(NamedTuple):
    """A machine in a state: values of every joint's coordinates, speeds and, where known, accelerations."""

    machine: bc.Mechanism
    q: dict[str, Any]
    u: dict[str, Any]
    truth: dict[str, Any] | None
    cuts: list[str]


def machine_of(name: str, size: int) -> bc.Mechanism:
    machine = bc.load(name, **({SIZES[name]: size} if name in SIZES else {}))
    machine._springs.clear()  # the peers have none: the quarter car falls freely
    return machine


def case_of(name: str, size: int) -> Case:
    """A moving state. Cuts are those the peers like best: points that are exact for the machine."""
    machine = machine_of(name, size)
    if name == "ladder":
        joints = loop_peers.ladder_joints
        return Case(machine, joints(size, loop_peers.LADDER_Q), joints(size, loop_peers.LADDER_U),
                    joints(size, loop_peers.ladder_truth(size)), loop_peers.ladder_cuts(size, "chain"))
    if name == "four_bar":
        truth = loop_peers.four_bar_truth()
        q, u, a = ({joint: x[i] for joint, x in truth.items()} for i in range(3))
        return Case(machine, q, u, a, ["D"])
    system = bc.compile(machine)
    rng = np.random.default_rng(0)
    start = system.assemble()
    drift = system.assemble(q=start.q, u=rng.normal(size=system.nu)).u
    state = system.assemble(q=system.integrate(start.q, 0.1 * drift), u=rng.normal(size=system.nu))
    q, u = by_joint(system, state)
    cuts = [f"ball{i + 1}" for i in range(size)] if name == "rope_ladder" else list(system.model.tree.cut_names)
    return Case(machine, q, u, None, cuts)


def by_joint(system: bc.System, state: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Coordinates and speeds of all joints."""
    q, u = {}, {}
    for joint, (i, j) in system.model.configuration.starts.items():
        kind = system.model.mechanism.joint(joint).joint
        q[joint], u[joint] = state.q[i:i + kind.nq], state.u[j:j + kind.nu]
    return q, u


def flat(system: bc.System, values: dict[str, Any]) -> np.ndarray:
    return np.concatenate([np.atleast_1d(values[joint]) for joint in system.joint_names]).astype(float)


def ours(name: str, size: int, method: str) -> Line:
    case = case_of(name, size)
    system = bc.compile(case.machine, method, threads=1)
    q, u, tau = flat(system, case.q), flat(system, case.u), np.zeros(system.nu)
    udot = system.forward_dynamics(q, u, tau)
    single = best(system.bind("forward_dynamics", q, u, tau))
    n = 256 if system.nu < 400 else 32
    many = [np.repeat(x[None], n, axis=0) for x in (q, u, tau)]
    batch = best(lambda: system.forward_dynamics(*many)) / n
    error, residual = _error(case, system, q, u, udot)
    return Line(single, batch, error, residual, _memory())


def _error(case: Case, system: bc.System, q: np.ndarray, u: np.ndarray, udot: np.ndarray) -> tuple[float, bool]:
    if case.truth is not None:
        expected = flat(system, case.truth)
    elif system.nu <= 400:
        expected = bc.compile(case.machine, "dense").forward_dynamics(q, u)
    else:
        needed = tree_forces(system.plans, q, u, udot, None, 0.0)
        loads = bc.analyze.loop_loads(system, q, u, np.zeros(system.nu), udot)
        loops = system.plans.loops
        entries = loops.entries(q, loops.rows(q))
        held = np.bincount(loops.all_vars, entries * loads[loops.all_rows], minlength=system.nu)
        opening = bc.analyze.loop_acceleration_error(system, q, u, udot)
        return max(float(np.abs(needed - held).max() / np.abs(held).max()),
                   float(np.abs(opening).max() / np.abs(udot).max())), True
    return float(np.abs(udot - expected).max() / np.abs(expected).max()), False


def peer(name: str, size: int, which: str) -> Line | str:
    case = case_of(name, size)
    speeds = sum(r.joint.nu for r in case.machine.joints if r.name not in case.cuts)
    if "Pin" in which and 34.0 * speeds**3 > MEMORY:
        return f"needs {34.0 * speeds**3 / 1e9:.0f} GB"
    if "MuJoCo" in which and len(case.machine.bodies) > 600:
        return "deeper than it allows"
    resource.setrlimit(resource.RLIMIT_AS, (int(MEMORY + 4e9),) * 2)
    model = loop_peers.MAKERS[which](case.machine, case.cuts)
    model.set(case.q, case.u)
    found = model.udot_by_joint()
    if case.truth is None:
        system = bc.compile(case.machine)
        udot = system.forward_dynamics(flat(system, case.q), flat(system, case.u))
        truth = {joint: udot[j:j + len(np.atleast_1d(case.u[joint]))]
                 for joint, (_, j) in system.model.configuration.starts.items()}
    else:
        truth = case.truth
    scale = max(float(np.abs(x).max()) for x in truth.values())
    error = max(float(np.abs(x - truth[joint]).max()) for joint, x in found.items() if joint in truth) / scale
    return Line(best(model.call), None, error, False, _memory())


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


def _apart(function: Callable[..., Any], *arguments: Any) -> Any:
    """A call in a fresh process."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        try:
            return pool.apply(function, arguments)
        except Exception as error:  # a peer that cannot do it says why
            return f"{type(error).__name__}: {error}"[:60]


def table(name: str, sizes: Sequence[int], methods: Sequence[str], peers: Sequence[str], peer_limit: int) -> None:
    first: dict[str, tuple[int, float]] = {}
    for size in sizes:
        reference = None
        for method in (*peers, *methods):
            if method in peers and size > peer_limit:
                continue
            line = _apart(peer if method in peers else ours, name, size, method)
            if isinstance(line, str):
                print(f"| {name} | {size} | {method} | {line} | | | | | |", flush=True)
                continue
            growth = ""
            if method in first and size >= 1000:
                n, t = first[method]
                growth = f"{np.log(line.single / t) / np.log(size / n):.2f}"
            if size == 64:
                first[method] = (size, line.single)
            if method == PEERS[1]:
                reference = line.single
            ratio = ""
            if method in methods and reference:
                ratio = f"{reference / line.single:.1f}x / {reference / (line.batch or line.single):.1f}x"
            mark = "r" if line.residual else ""
            print(f"| {name} | {size} | {method} | {time_text(line.single)} | {time_text(line.batch)} | "
                  f"{line.error:.0e}{mark} | {ratio} | {growth} | {line.memory:.0f} MB |", flush=True)


def operations() -> None:
    """Multiplications per body of every loop method: the currency of the papers."""
    from bellcrank.formulations import method_names

    print("\nmultiplications per body, forward dynamics with loops (m conditions that count)\n")
    print("| method | ladder, 4 cells | quarter car |\n|---|---|---|")
    for method in method_names():
        cells = []
        for machine in (machine_of("ladder", 4), bc.load("quarter_car")):
            try:
                system = bc.compile(machine, method, schedule="unrolled")
                if method == "dense":
                    raise bc.ModelError("solved by LAPACK")
                cells.append(f"{system.operation_count().muls / system.model.tree.n:.0f}")
            except bc.BellcrankError:
                cells.append("-")
        print(f"| {method} | {' | '.join(cells)} |")
    print("\nThe paper's claim: 6 m fewer per body with the reference point at the origin than at the centroid.")


def main(quick: bool) -> None:
    sizes = (1, 4, 16, 64) if quick else (1, 4, 16, 64, 256, 1024, 10_000)
    print("| machine | size | method | one state | per state in a batch | error | faster than lcaba (mu 1e-3), one / "
          "batch | growth | memory |\n|---|---|---|---|---|---|---|---|---|")
    table("four_bar", (1,), ("elimination", "reduction"), PEERS, 1)
    table("stewart", (1,), ("elimination", "reduction"), PEERS, 1)
    table("quarter_car", (1,), ("elimination",), PEERS, 1)
    table("ladder", sizes, ("elimination", "reduction"), PEERS, 256)
    table("rope_ladder", sizes, ("elimination",), PEERS[:3], 64)
    table("four_bar_chain", sizes, ("elimination", "reduction"), PEERS[:3], 64)
    operations()


if __name__ == "__main__":
    main("--quick" in sys.argv[1:])
