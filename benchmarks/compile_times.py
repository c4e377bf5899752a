"""How long first calls take: cold (nothing compiled before), and from the cache; each in a process of its own.

    python benchmarks/compile_times.py [NAME ...]

Times are of the one call, after the machine was compiled by `bellcrank.compile` and, with loops, assembled; they hold
tracing, printing, LLVM and the call itself, and the first ones loading the library (which takes a few times longer
where Python may not keep what it compiled of its modules, PYTHONDONTWRITEBYTECODE). "one" is a single state, "batch"
1000 of them. The rows of closed machines begin with the assembly. "CPU" is the time of all threads, which says more
where others work on the machine, too. `NAME` chooses machines.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np

import bellcrank as bc

MODELS = {"panda": "panda.urdf", "go2": "go2.urdf", "talos": "talos_reduced.urdf", "cassie": "cassie_v2.sdf"}
EXAMPLES = ("four_bar", "stewart", "linkage_quadruped", "net of 200")
BATCH = 1000


def machine(name: str, **how: str) -> bc.Mechanism:
    """One of the machines, by name, files read as `how` says; SystemExit if its file is not installed."""
    if name == "net of 200":
        return net(200)
    if name not in MODELS:
        return bc.load(name)
    try:
        listed = files("example-robot-data") or []
    except PackageNotFoundError:
        raise SystemExit("this row needs the package example-robot-data") from None
    place = next((f for f in listed if f.name == MODELS[name]), None)
    if place is None:
        raise SystemExit(f"{MODELS[name]} is not in the installed example-robot-data")
    more = {"parallel": 1e-5} if name == "cassie" else {} if name == "panda" else {"floating_base": True}
    return bc.load(Path(str(place.locate())), **more, **how)


def net(n: int, seed: int = 0) -> bc.Mechanism:
    """Bodies on hinges, universal and ball joints at random, every fourth one tied by a rod to one further in."""
    rng, m = np.random.default_rng(seed), bc.Mechanism(f"net of {n}")
    bodies, places, parents = [m.ground], [np.zeros(3)], [0]
    joints = (bc.Revolute("x"), bc.Revolute("y"), bc.Revolute("z"), bc.Universal(), bc.Spherical())
    for i in range(1, n + 1):
        parent, offset = int(rng.integers(max(0, i - 6), i)), rng.uniform(-0.5, 0.5, 3)
        body = m.add_body(f"b{i}", bc.Inertia.box(float(rng.uniform(0.5, 2.0)), rng.uniform(0.1, 0.4, 3).tolist(),
                                                  rng.uniform(-0.1, 0.1, 3).tolist()))
        m.add_joint(f"j{i}", joints[int(rng.integers(5))], bodies[parent], body, parent_pose=bc.Pose(offset))
        bodies.append(body)
        places.append(places[parent] + offset)
        parents.append(parent)
    for i in range(4, n + 1, 4):
        inward = [i]
        while inward[-1]:
            inward.append(parents[inward[-1]])
        j = int(rng.choice(inward[2:6] or [0]))
        ends = rng.uniform(-0.3, 0.3, (2, 3))
        length = float(np.linalg.norm(places[i] + ends[0] - places[j] - ends[1]))
        m.add_constraint(f"rod{i}", bc.Distance(length), bodies[j], bodies[i], parent_pose=bc.Pose(ends[1]),
                         child_pose=bc.Pose(ends[0]))
    return m


def calls(system: bc.System, q: Any, u: Any) -> Iterator[tuple[str, Callable[[], Any]]]:
    """First calls, in the order in which somebody might make them."""
    body = system.body_names[-1]
    many = np.repeat(q[None], BATCH, axis=0), np.repeat(u[None], BATCH, axis=0)
    functions: dict[str, Callable[[Any, Any], Any]] = {
        "forward_dynamics": lambda x, v: system.forward_dynamics(x, v),
        "inverse_dynamics": lambda x, v: system.inverse_dynamics(x, v, 0.0 * v),
        "mass_matrix": lambda x, v: system.mass_matrix(x), "bias": lambda x, v: system.bias(x, v),
        "pose": lambda x, v: system.pose(x, body), "jacobian": lambda x, v: system.jacobian(x, body),
        "jacobian_rate": lambda x, v: system.jacobian_rate(x, v, body),
        "center_of_mass": lambda x, v: system.center_of_mass(x), "energy": lambda x, v: system.energy(x, v),
        "reactions": lambda x, v: system.reactions(x, v)}
    large = system.nu > 100
    for name in ("forward_dynamics", "pose", "energy") if large else functions:
        yield f"{name}, one", lambda name=name: functions[name](q, u)  # type: ignore[misc]
        if not large:
            yield f"{name}, batch", lambda name=name: functions[name](*many)  # type: ignore[misc]
    yield "simulate 0.01 s", lambda: system.simulate((q, u), 0.01, step=1e-3)


def measured(name: str) -> dict[str, tuple[float, float]]:
    """Seconds of each first call, by the clock and of all threads; run in a process of its own."""
    warnings.simplefilter("ignore")
    mechanism = machine(name)
    out: dict[str, tuple[float, float]] = {}

    def timed(what: str, call: Callable[[], Any]) -> Any:
        start = time.perf_counter(), time.process_time()
        result = call()
        out[what] = time.perf_counter() - start[0], time.process_time() - start[1]
        return result

    system = timed("compile", lambda: bc.compile(mechanism))
    if system.loops:
        state = timed("assemble", system.assemble)
        q, u = state.q, state.u
    else:
        q, u = system.random_state(np.random.default_rng(0))
    for what, call in calls(system, q, u):
        timed(what, call)
    return out


def rows(name: str) -> list[tuple[str, float, float, float]]:
    """(call, seconds cold, of all threads, seconds from the cache)."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "BELLCRANK_CACHE": folder}
        runs = []
        for _ in range(2):
            done = subprocess.run([sys.executable, __file__, "--measure", name], env=environment, check=False,
                                  capture_output=True, text=True)
            if done.returncode:
                print(f"{name}: {done.stderr.strip().splitlines()[-1]}")
                return []
            runs.append(json.loads(done.stdout))
    return [(what, *runs[0][what], runs[1][what][0]) for what in runs[0]]


def main(names: list[str]) -> None:
    """Print the table."""
    print(f"{'':34} {'cold':>9} {'CPU':>9} {'cached':>9}")
    for name in names or [*MODELS, *EXAMPLES]:
        print(name)
        for what, cold, spent, cached in rows(name):
            print(f"  {what:32} {cold:7.2f} s {spent:7.2f} s {cached:7.3f} s", flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        print(json.dumps(measured(sys.argv[2])))
    else:
        main(sys.argv[1:])
