"""Many machines with rigid contacts at once on a GPU: ``python benchmarks/contact.py --gpu 4096 16384 65536``.

Each falls from another height with another speed, `SECONDS` long. Steps in a second by `rollout`, whose states stay on
the device, and by `simulate`, with energies and samples every `EVERY` seconds; the second of two runs each, so that
nothing is compiled in it. Some of them are computed by the CPU as well: the largest differences of coordinates and
speeds at the end, and the largest residual of the conditions of contact in all runs.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import bellcrank as bc

Made = Callable[[], tuple[bc.Mechanism, Callable[[bc.System], Any]]]

SECONDS, EVERY = 0.4, 0.1
#: machines that the CPU computes as well
BESIDE = 64


def states(system: bc.System, first: Any, many: int) -> tuple[np.ndarray, np.ndarray]:
    """What is free in space is higher by up to 1 cm and falls by up to 0.3 m/s: loops do not notice. The first states
    are the same however many there are."""
    rng = np.random.default_rng(0)
    q, u = (np.repeat(x[None], many, axis=0) for x in (first[0], first[1]))
    floating = next(j.name for j in system.model.mechanism.joints if isinstance(j.joint, bc.Free))
    height, speed = rng.uniform(size=(many, 2)).T
    q[:, system.coordinate_names.index(f"{floating}.z")] += 0.01 * height
    u[:, system.speed_names.index(f"{floating}.vz")] -= 0.3 * speed
    return q, u


def rolled_out(system: bc.System, state: Any, step: float) -> tuple[float, np.ndarray, np.ndarray]:
    """Seconds, and where a rollout ends."""
    import cupy

    motion = bc.rollout(system, state, step, stepper="moreau")
    for again in (True, False):
        cupy.cuda.Device().synchronize()
        begun = time.perf_counter()
        motion.step(steps=round(SECONDS / step))
        cupy.cuda.Device().synchronize()
        seconds = time.perf_counter() - begun
        if again:
            motion.reset(np.arange(motion.count), state)
    return seconds, cupy.asnumpy(motion.q), cupy.asnumpy(motion.u)


def simulated(system: bc.System, state: Any, step: float) -> tuple[float, Any]:
    """Seconds, and the result of a run."""
    for _ in range(2):
        begun = time.perf_counter()
        result = system.simulate(state, SECONDS, stepper="moreau", step=step, output=EVERY)
        seconds = time.perf_counter() - begun
    return seconds, result


def on_gpu(machines: Mapping[str, Made], counts: Sequence[int], step: float) -> None:
    """A row for every machine and number of them."""
    print(f"{'':8} {'at once':>8} {'rollout/s':>10} {'simulate/s':>10} {'q':>8} {'u':>8} {'residual':>9}")
    for name, made in machines.items():
        mechanism, start = made()
        cpu, gpu = (bc.compile(mechanism, backend=backend) for backend in ("llvm", "cuda"))
        first = start(cpu)
        _, wanted = simulated(cpu, states(cpu, first, BESIDE), step)
        for many in counts:
            state = states(cpu, first, many)
            spent, *end = rolled_out(gpu, state, step)
            whole, found = simulated(gpu, state, step)
            steps = many * round(SECONDS / step)
            apart = [np.abs(mine[:BESIDE] - wanted[key].values[-1]).max() for mine, key in zip(end, "qu", strict=True)]
            worst = max(result.attrs["contact_residual"] for result in (wanted, found))
            print(f"{name:8} {many:8} {steps / spent:10.2e} {steps / whole:10.2e} {apart[0]:8.0e} {apart[1]:8.0e} "
                  f"{worst:9.0e}   {found.attrs['status']}", flush=True)
