"""Closing loops: assembling from near guesses, projecting, batches; for the four-bar and a floating Cassie, in one run.

    python benchmarks/closing.py

Guesses are closed states with every coordinate moved by 0.01 (near) or 0.1 (away) times a normal variate; states to be
projected are off by 1e-8. Times of one call are medians over different guesses, with what takes the careful way in.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable

import numpy as np
from cassie import model
from timing import best, time_text

import bellcrank as bc


def median(call: Callable[[np.ndarray], object], given: Iterable[np.ndarray]) -> float:
    """Median seconds of calls with different arguments."""
    times = []
    for x in given:
        begin = time.perf_counter()
        call(x)
        times.append(time.perf_counter() - begin)
    return float(np.median(times))


def measure(name: str, system: bc.System, state: bc.State) -> None:
    """Print the rows of one machine."""
    rng = np.random.default_rng(1)

    def around(n: int, size: float) -> np.ndarray:
        return system.integrate(state.q, size * rng.normal(size=(n, system.nu)))

    speeds = rng.normal(size=(1000, system.nu))
    forward = best(lambda: system.forward_dynamics(state.q, state.u))
    for q in around(4, 0.1):
        system.assemble(q=q, u=speeds[0])
    system.assemble(q=around(64, 0.1), u=speeds[:64])
    near = median(lambda q: system.assemble(q=q), around(300, 0.01))
    held = median(lambda x: system.assemble(q={system.speed_names[-1].rpartition(".")[0]: float(x)}, guess=state),
                  state.q[-1] + 0.02 * rng.normal(size=100))
    nearly = around(300, 1e-8)
    project = median(lambda q: system.project(q, state.u), nearly)
    rows = [("forward_dynamics", time_text(forward)), ("assemble, near guess", time_text(near)),
            ("assemble, one coordinate held", time_text(held)),
            ("project, nearly closed", f"{time_text(project)} ({project / forward:.1f} x forward_dynamics)")]
    for size in (0.01, 0.1):
        guesses = around(1000, size)
        begin = time.perf_counter()
        found = system.assemble(q=guesses, u=speeds)
        seconds = time.perf_counter() - begin
        left = float(np.abs(system.loop_error(found.q)).max())
        rate = float(np.abs(system.loop_rate_error(found.q, found.u)).max())
        rows.append((f"assemble, 1000 states {size:g} away", f"{time_text(seconds)} (open by {left:.0e}, {rate:.0e})"))
    motion = system.forward_dynamics(found.q, found.u)
    wanted = motion + rng.normal(size=motion.shape)
    system.consistent_acceleration(found.q[:64], found.u[:64], wanted[:64])
    begin = time.perf_counter()
    system.consistent_acceleration(found.q, found.u, wanted)
    rows.append(("consistent_acceleration, 1000 states", time_text(time.perf_counter() - begin)))
    for what, value in rows:
        print(f"| {name} | {what} | {value} |")


def main() -> None:
    """Print the table."""
    print("| machine | what | time |\n|---|---|---|")
    four_bar = bc.compile(bc.load("four_bar"))
    measure("four-bar", four_bar, four_bar.assemble(q={"A": 0.5}, u={"A": 1.0}))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        machine = model()
    cassie = bc.compile(machine, cut=[r.name for r in machine.joints if isinstance(r.joint, bc.Spherical)])
    measure("Cassie", cassie, cassie.assemble())


if __name__ == "__main__":
    main()
