"""What the benchmarks share: the best of several rounds, times as text, memory."""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any


def best(call: Callable[[], Any], budget: float = 0.4) -> float:
    """Seconds per call: the best of seven rounds, as many calls a round as fit the budget."""
    call()
    start = time.perf_counter()
    call()
    once = max(time.perf_counter() - start, 1e-7)
    n = max(1, int(budget / 7 / once))
    times = []
    for _ in range(7):
        start = time.perf_counter()
        for _ in range(n):
            call()
        times.append((time.perf_counter() - start) / n)
    return min(times)


def interleaved(calls: Mapping[str, Callable[[], Any]], rounds: int, budget: float = 20.0) -> dict[str, float]:
    """Seconds of each call: the best of some rounds in which all take turns, so that a busy moment of the machine
    favours none. Calls are warm already; whoever has had `budget` seconds stops after two rounds."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(rounds):
        for name, call in calls.items():
            if turn >= 2 and sum(times[name]) > budget:
                continue
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return {name: min(taken) for name, taken in times.items()}


def time_text(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return "-"
    for unit, scale in (("s", 1.0), ("ms", 1e3), ("µs", 1e6)):
        if seconds * scale >= 1.0:
            return f"{seconds * scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"


def resident() -> int:
    """Bytes of memory this process occupies now."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()
    except OSError:  # not Linux: the peak must do
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
