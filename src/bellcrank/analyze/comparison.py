"""All formulations side by side on one machine: operations, times, disagreement with the oracle."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bellcrank.arrays import Floats, how_many, random_source
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.errors import AssemblyError, ModelError
from bellcrank.formulations import method_names
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.scalar.count import OperationCount
from bellcrank.system.forward_dynamics import evaluator_of

__all__ = ["Comparison", "ComparisonRow", "compare"]


@dataclass(frozen=True)
class ComparisonRow:
    """One formulation on one machine."""

    method: str
    what: str  #: what was evaluated: accelerations, or Hamilton's pair (u, dp/dt)
    operations: OperationCount | None  #: None where the whole is not one compiled kernel
    bodies: int
    single: float | None  #: seconds for one state, bound call from Python
    batch: float  #: seconds per state in a batch, one thread
    disagreement: float  #: largest difference to `dense`, relative to its largest acceleration


@dataclass(frozen=True)
class Comparison:
    """Rows for every method that is valid for the machine; prints as a table."""

    name: str
    states: int
    rows: tuple[ComparisonRow, ...]
    skipped: tuple[tuple[str, str], ...] = ()  #: methods that do not apply, and why

    def __str__(self) -> str:
        head = ("method", "adds", "muls", "divs", "trigs", "per body", "one state", f"in {self.states}", "vs dense")
        lines = [head]
        for r in self.rows:
            c = r.operations
            counts = ("-",) * 5 if c is None else (str(c.adds), str(c.muls), str(c.divs), str(c.trigs),
                                                   f"{c.total / r.bodies:.1f}")
            label = r.method if r.what == "udot" else f"{r.method} (q, p)"
            lines.append((label, *counts, _time(r.single), _time(r.batch), f"{r.disagreement:.0e}"))
        widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
        text = ["  ".join(x.ljust(w) if i == 0 else x.rjust(w)
                          for i, (x, w) in enumerate(zip(line, widths, strict=True))) for line in lines]
        text += [f"{method}: {why}" for method, why in self.skipped]
        return "\n".join([f"{self.name}: forward dynamics, {len(self.rows)} formulations", *text])


def compare(mechanism: Mechanism, methods: Sequence[str] | None = None, *, states: int = 1024, seed: int = 0,
            progress: Callable[[int, int], None] | None = None) -> Comparison:
    """Evaluate forward dynamics by every formulation and measure it.

    Operation counts are exact; "per body" is their total over the moving links. Times are the best of several
    rounds on one thread. The disagreement is that with the `dense` oracle over all states. `progress` is called with
    how many formulations are done, and of how many.

    >>> import bellcrank as bc
    >>> [row.method for row in bc.compare(bc.load("pendulum"), ["recursive", "kane"], states=4).rows]
    ['recursive', 'kane']
    """
    oracle = compile(mechanism, "dense", threads=1)
    rng, states = random_source(seed), how_many("compare: states", states)
    q, u = closed_states(oracle, rng, states) if oracle.model.tree.looped else oracle.random_state(rng, states)
    tau = rng.normal(size=u.shape)
    expected = oracle.forward_dynamics(q, u, tau)
    scale = float(np.abs(expected).max()) or 1.0
    rows: list[ComparisonRow] = []
    skipped: list[tuple[str, str]] = []
    wanted = method_names() if methods is None or not len(methods) else list(methods)
    for done, method in enumerate(wanted):
        if progress is not None:
            progress(done, len(wanted))
        try:
            system = oracle if method == "dense" else compile(mechanism, method, threads=1)
            found = system.forward_dynamics(q, u, tau)
        except ModelError as refusal:
            if methods is not None:
                raise
            skipped.append((method, str(refusal)))
            continue
        error = float(np.abs(found - expected).max()) / scale
        rows.append(_row(system, "udot", "forward_dynamics", (q, u, tau), error))
        if method == "momenta":
            p = system.momenta(q, u, speeds="tree")
            speeds, _ = system.hamilton(q, p, tau)
            error = float(np.abs(speeds - u)[..., _free(system)].max(initial=0.0))
            if not system.model.tree.looped:
                rows.append(_row(system, "(u, dp/dt)", "hamilton", (q, p, tau), error))
    return Comparison(mechanism.name, states, tuple(rows), tuple(skipped))


def closed_states(system: System, rng: np.random.Generator, states: int) -> tuple[Floats, Floats]:
    """States of a machine with loops: a few closed positions near the neutral one, repeated, with consistent speeds."""
    start = system.assemble()
    q, u = [], []
    for _ in range(20):
        drift = system.assemble(q=start.q, u=rng.normal(size=system.nu)).u
        try:
            state = system.assemble(q=system.integrate(start.q, 0.2 * drift), u=rng.normal(size=system.nu))
        except AssemblyError:
            continue
        q.append(state.q)
        u.append(state.u)
        if len(q) == min(states, 8):
            break
    which = np.arange(states) % max(len(q), 1)
    if not q:
        return np.tile(start.q, (states, 1)), np.tile(start.u, (states, 1))
    return np.array(q)[which], np.array(u)[which]


def _free(system: System) -> list[int]:
    return system.model.tree.free_speeds()


def _row(system: System, what: str, function: str, arrays: tuple[Any, ...], error: float) -> ComparisonRow:
    run = evaluator_of(system.plans, function)
    one_kernel = not system.model.dense_loops and system.kernels.compiled(function, run) is not None
    batch = _best(lambda: getattr(system, function)(*arrays)) / len(arrays[0])
    single = None
    if one_kernel and "t" not in run.inputs(system.kernels.functions[function], False):
        single = _best(system.bind(function, *(np.ascontiguousarray(a[0]) for a in arrays)))
    count = system.operation_count(function) if one_kernel and not system.kernels.springs_outside else None
    return ComparisonRow(system.model.method, what, count, system.model.tree.n, single, batch, error)


def _best(call: Callable[[], Any], budget: float = 0.05) -> float:
    call()
    start = time.perf_counter()
    call()
    n = max(1, int(budget / 5 / max(time.perf_counter() - start, 1e-7)))
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(n):
            call()
        best = min(best, (time.perf_counter() - start) / n)
    return best


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "-"
    return f"{seconds * 1e9:.0f} ns" if seconds < 1e-6 else f"{seconds * 1e6:.3g} µs"
