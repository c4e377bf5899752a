"""Functions of closed machines beside their forward dynamics, in one run: one call (plain and bound), and a batch.

    python benchmarks/loop_functions.py [MACHINE ...]

For the four-bar, the quarter car, the Stewart platform and a floating Cassie. Batches are 256 states, per state. States
to be projected are off by 1e-8, guesses for `assemble` by 0.01 in every coordinate. Times are the best of several
rounds in which all take turns; ratios are to `forward_dynamics` in the same column.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from timing import interleaved, time_text

import bellcrank as bc

BATCH = 256
CALLS = 300  # of one state, in each of
ROUNDS = 15


def cassie() -> bc.System:
    """The robot on its floating base, cut at its spherical joints."""
    from cassie import model

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = model()
    return bc.compile(machine, cut=[r.name for r in machine.joints if isinstance(r.joint, bc.Spherical)])


def states(system: bc.System) -> tuple[Any, Any]:
    """Closed states of a batch, around a general position: others may need plans of their own."""
    rng = np.random.default_rng(1)
    guesses = system.integrate(system.plans.reference().q, 0.05 * rng.normal(size=(BATCH, system.nu)))
    found = system.assemble(q=guesses, u=rng.normal(size=(BATCH, system.nu)))
    return found.q, found.u


def repeated(call: Callable[[], Any], times: int) -> Callable[[], None]:
    def run() -> None:
        for _ in range(times):
            call()

    return run


def in_turn(call: Callable[[Any], Any], times: int) -> None:
    """A call with one state after another."""
    for i in range(times):
        call(i % BATCH)


def measure(name: str, system: bc.System) -> None:
    """Print the rows of one machine."""
    q, u = states(system)
    tau = np.where(system.model.tree.loop_speeds(), 0.0, np.random.default_rng(2).normal(size=u.shape))
    udot = system.forward_dynamics(q, u, tau)
    rng = np.random.default_rng(3)
    nearly = system.integrate(q, 1e-8 * rng.normal(size=u.shape))
    guesses = system.integrate(q, 0.01 * rng.normal(size=u.shape))
    plain: dict[str, Callable[[Any], Any]] = {
        "forward_dynamics": lambda i: system.forward_dynamics(q[i], u[i], tau[i]),
        "inverse_dynamics": lambda i: system.inverse_dynamics(q[i], u[i], udot[i]),
        "reactions": lambda i: system.reactions(q[i], u[i], tau[i]),
        "project, nearly closed": lambda i: system.project(nearly[i], u[i]),
        "assemble, near guess": lambda i: system.assemble(q=guesses[i]),
        "reduced": lambda i: system.reduced(q[i], u[i]),
        "consistent_acceleration": lambda i: system.consistent_acceleration(q[i], u[i], udot[i])}
    bound = {"forward_dynamics": system.bind("forward_dynamics", q[0].copy(), u[0].copy(), tau[0].copy()),
             "inverse_dynamics": system.bind("inverse_dynamics", q[0].copy(), u[0].copy(), udot[0].copy())}
    slow = ("assemble", "reduced", "consistent")
    few = {what: 20 if what.startswith(slow) else CALLS for what in plain}
    times = {what: 1 if what.startswith(slow) else 20 for what in plain}
    calls: dict[str, Callable[[], Any]] = {}
    for what, call in plain.items():
        calls[f"{what}/one"] = partial(in_turn, call, few[what])
        calls[f"{what}/batch"] = repeated(partial(call, slice(None)), times[what])
    calls |= {f"{what}/bound": repeated(call, CALLS) for what, call in bound.items()}
    for warm in calls.values():
        warm()
    took = interleaved(calls, ROUNDS, 4.0)
    counts = {column: {what: of[what] for what in plain} for column, of in (
        ("one", few), ("bound", dict.fromkeys(plain, CALLS)), ("batch", {w: BATCH * n for w, n in times.items()}))}
    for what in plain:
        cells = []
        for column, of in counts.items():
            if f"{what}/{column}" not in took:
                cells.append("-")
                continue
            usual = took[f"forward_dynamics/{column}"] / of["forward_dynamics"]
            seconds = took[f"{what}/{column}"] / of[what]
            cells.append(f"{time_text(seconds)} ({seconds / usual:.1f} x)")
        print(f"| {name} | {what} | {' | '.join(cells)} |", flush=True)


MACHINES: dict[str, Callable[[], bc.System]] = {
    "four-bar": lambda: bc.compile(bc.load("four_bar")), "quarter car": lambda: bc.compile(bc.load("quarter_car")),
    "Stewart": lambda: bc.compile(bc.load("stewart")), "Cassie": cassie}


if __name__ == "__main__":
    print("| machine | function | one call | bound call | state of a batch |\n|---|---|---|---|---|")
    for chosen in sys.argv[1:] or MACHINES:
        measure(chosen, MACHINES[chosen]())
