"""100 000 quarter cars with random springs, 10 s each at steps of 1 ms, through `bc.sweep`.

    python benchmarks/sweep.py [--runs 100000] [--executor threads|processes|dask|gpu ...] [--out FOLDER]

How to read it. **wall**: from the call to the results, compiling and the start of workers included. **CPU**: seconds of
processors, of this process and all that it started (of Dask only after its workers have ended). **runs/s**: runs over
wall. Springs have a random stiffness, dampers a random damping; cars are released 50 mm above their design position and
reduced on the workers to where they end and how far they travelled. All executors must give the same numbers, which is
checked to the last bit, but for **gpu** (``backend="cuda"``, threads), which must agree to rounding; it and Dask are
left out where they are not to be had. With --out the results go through a Zarr store. Measure on a machine that does
nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import resource
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc

BUMP = -0.12930036652171667  # the wheel 50 mm above its design position
RUN = {"duration": 10.0, "step": 1e-3, "output": 0.1, "q": {"arm": BUMP}}
EXECUTORS = ("threads", "processes", "dask", "gpu")
USUAL = ("threads", "dask", "gpu")


def kept(result: Any) -> dict[str, Any]:
    """Where the arm ends, and how far it travelled."""
    arm = result.q.sel(coordinate="arm.angle")
    return {"end": arm.isel(time=-1), "travel": arm.max("time") - arm.min("time"),
            "loop_error": result.loop_error.max("time")}


@contextlib.contextmanager
def executor_of(name: str) -> Iterator[Any]:
    if name != "dask":
        yield "threads" if name == "gpu" else name
        return
    from distributed import Client

    with Client(n_workers=os.cpu_count(), threads_per_worker=1, dashboard_address=":0") as client:
        yield client


def without(name: str) -> str:
    """Why there is no such row, if there is none."""
    try:
        if name == "dask":
            import distributed  # noqa: F401
        elif name == "gpu":
            bc.compile(bc.load("pendulum"), backend="cuda")
    except (ImportError, bc.ModelError) as error:
        return str(error)
    return ""


def cpu() -> float:
    """Seconds of this process, and of those that it started and that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in used)


def main() -> None:
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--executor", action="append", choices=EXECUTORS)
    parser.add_argument("--out", type=Path, help="a folder for stores")
    arguments = parser.parse_args()
    car = bc.load("quarter_car", parameters=True)
    samples = bc.random_samples({"stiffness": "normal(25000, 2500)", "damping": "uniform(800, 1200)"}, arguments.runs,
                                seed=1)
    print(f"{arguments.runs} quarter cars of {RUN['duration']} s, {os.cpu_count()} cores\n")
    print(f"{'executor':<12}{'wall [s]':>10}{'CPU [s]':>10}{'runs/s':>10}{'steps/s':>11}{'finished':>11}"
          f"{'loop error':>12}")
    first = None
    for name in arguments.executor or USUAL:
        missing = without(name)
        if missing:
            print(f"{name:<12}{missing}", flush=True)
            continue
        with tempfile.TemporaryDirectory(dir=arguments.out) as folder:
            out = None if arguments.out is None else Path(folder) / "study.zarr"
            used = cpu()
            with executor_of(name) as executor:
                begun = time.perf_counter()
                found = bc.sweep(car, samples, run=RUN, reduce=kept, executor=executor, out=out,
                                 backend="cuda" if name == "gpu" else None).load()
                wall = time.perf_counter() - begun
            used = cpu() - used
        finished = int((found.status == "finished").sum())
        rate = arguments.runs / wall
        print(f"{name:<12}{wall:>10.1f}{used:>10.1f}{rate:>10.0f}{rate * 1e4:>11.3g}{finished:>11}"
              f"{float(found.loop_error.max()):>12.1e}", flush=True)
        if first is None:
            first = found
        elif name == "gpu":
            gaps = [float(abs(first[n] - found[n]).max() / abs(first[n]).max()) for n in ("end", "travel")]
            print(f"{'':<12}against the CPU: {max(gaps):.1e}")
            if not max(gaps) < 1e-9:
                raise SystemExit("gpu: other numbers than before")
        elif not all(np.array_equal(first[n].values, found[n].values) for n in ("end", "travel", "loop_error")):
            raise SystemExit(f"{name}: other numbers than before")
    assert first is not None
    print(f"\narm at the end: {float(first.end.mean()):.6f} rad, deviation {float(first.end.std()):.6f}; all of CPUs "
          "the same to the last bit")


if __name__ == "__main__":
    main()
