"""Steps and samples of a run: where they fall, how many and how large they will be, asked before anything is made."""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.arrays import Floats, check_unmasked
from bellcrank.errors import StateError

__all__ = ["MOST_SAMPLES", "MOST_STEPS", "MOST_TIME", "available_memory", "check_count", "check_room", "check_samples",
           "disk_trouble", "grid", "positive"]

#: numbers of steps and of samples, and a time [s], that are beyond anything meant: clocks of 53 bits cannot tell steps
#: apart any more, files count samples with 31 bits
MOST_STEPS, MOST_SAMPLES, MOST_TIME = 1e15, 2**31 - 4, 1e12
#: runs up to this many bytes are not worth asking
_SMALL = 64 << 20
#: samples in memory are there twice when the result is put together
_COPIES = 2
#: variables derived from each sample
_DERIVED = 6
#: samples of a run if nothing is said
_SAMPLES = 1000


def check_count(length: float, start: float, step: float | None, interval: float | None) -> None:
    """Refuse times that numbers cannot resolve, and numbers of steps and samples that no run will see the end of."""
    if abs(start) + length > MOST_TIME:
        raise StateError(f"simulate: a run of {length:g} s from t = {start:g} s is longer than {MOST_TIME:g} s, beyond "
                         "which steps cannot be told apart")
    if step is not None and length / step > MOST_STEPS:
        raise StateError(f"simulate: {length:g} s in steps of {step:g} s are {length / step:.3g} steps, more than "
                         f"{MOST_STEPS:g}; take longer steps or a shorter duration")
    if interval is not None and length / interval > MOST_SAMPLES:
        raise StateError(f"simulate: output every {interval:g} s for {length:g} s are {length / interval:.3g} samples, "
                         f"more than {MOST_SAMPLES:,}; sample less often")


def check_room(samples: float, states: int, numbers: int, times: int, file: str | os.PathLike[str] | None) -> None:
    """Refuse a run whose samples do not fit into memory, or onto the disk if they are streamed.

    `numbers` are those of one state (q, u, forces), `times` those of the sample times that are kept.
    """
    whole = 8.0 * samples * (1 + states * (numbers + _DERIVED))
    needed = 8.0 * times + (0.0 if file is not None else _COPIES * whole)
    told = f"simulate: {int(samples):,} samples of {states:,} state{'s' * (states != 1)}"
    if needed > _SMALL and needed > (room := available_memory()):
        raise StateError(f"{told} need about {_size(needed)} of memory, and {_size(room)} are free; sample less often "
                         "(output=), run fewer states at a time, or stream to a file (file=)")
    if file is not None and whole > _SMALL:
        with suppress(OSError):
            room = float(shutil.disk_usage(Path(file).absolute().parent).free)
            if whole > room:
                raise StateError(f"{told} need about {_size(whole)} on the disk of {os.fspath(file)}, and "
                                 f"{_size(room)} are free; sample less often (output=) or run fewer states at a time")


def available_memory() -> float:
    """Bytes that this process can still get: of the machine, of its container, of its own limit; infinite if nothing is
    known."""
    rooms = [float("inf")]
    with suppress(OSError, ValueError, StopIteration):
        rows = Path("/proc/meminfo").read_text().splitlines()
        rooms.append(1024.0 * next(float(row.split()[1]) for row in rows if row.startswith("MemAvailable:")))
    with suppress(OSError, ValueError):  # a container's limit; the files it has cached can be dropped
        group = Path("/sys/fs/cgroup")
        limit = float((group / "memory.max").read_text())
        stat = dict(row.split() for row in (group / "memory.stat").read_text().splitlines())
        used = float((group / "memory.current").read_text()) - float(stat.get("inactive_file", 0))
        rooms.append(max(limit - used, 0.0))
    with suppress(ImportError, OSError, ValueError):
        import resource

        soft, _ = resource.getrlimit(resource.RLIMIT_AS)
        if soft != resource.RLIM_INFINITY:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            rooms.append(max(float(soft) - pages * os.sysconf("SC_PAGE_SIZE"), 0.0))
    return min(rooms)


def _size(count: float) -> str:
    """Bytes for people."""
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if count < 1000.0:
            return f"{count:.3g} {unit}"
        count /= 1000.0
    return f"{count:.3g} PB"


def positive(name: str, value: Any) -> float:
    """An argument of `simulate` that must be a positive number."""
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise StateError(f"simulate: {name} {value!r} is not a number") from None
    if not 0.0 < number < float("inf"):
        raise StateError(f"simulate: {name} must be positive and finite, got {value!r}")
    return number


def check_samples(states: int, numbers: int, length: float, step: float | None, output: Any, interval: float | None,
                fixed: bool, file: str | os.PathLike[str] | None) -> None:
    """Refuse a run whose samples, of so many numbers a state, have no room."""
    if output is not None and interval is None:
        samples = float(np.size(output))
    else:
        samples = length / interval if interval is not None else float(_SAMPLES)
        if fixed and step is not None:
            samples = min(samples, length / step)
    check_room(samples + 2.0, states, numbers, 0 if fixed else int(samples), file)


def grid(length: float, step: float | None, output: Any, fixed: bool, start: float) -> tuple[int, int, Floats]:
    """Number of steps, steps per sample, and sample times after the start."""
    steps = max(1, int(np.ceil(length / step - 1e-6))) if step is not None else 1
    if output is not None and np.ndim(output):
        check_unmasked("simulate: output", output)
        try:
            listed = np.asarray(output, dtype=float)
        except (TypeError, ValueError):
            raise StateError(f"simulate: output {output!r} is neither an interval nor a list of times") from None
        return _listed(listed, length, steps, fixed, start)
    if fixed:
        h = length / steps
        if output is None:
            every = -(-steps // _SAMPLES)
        else:
            every = round(positive("output", output) / h)
            if every < 1 or abs(every * h - float(output)) > 1e-6 * h * every:
                shorter = "" if step is None or abs(h - step) < 1e-9 * h else (
                    f" (the step {step:g} s, shortened so that the duration {length:g} s is a multiple of it; let it "
                    "be one of both)")
                raise StateError(f"simulate: output every {output:g} s needs a multiple of the step {h:g} s{shorter}")
        return steps, every, np.zeros(0)
    interval = length / _SAMPLES if output is None else positive("output", output)
    n = max(1, int(np.floor(length / interval + 1e-9)))
    times: Floats = np.asarray(start + interval * np.arange(1, n + 1), dtype=float)
    if times[-1] < start + length * (1.0 - 1e-12):
        times = np.append(times, start + length)
    times[-1] = start + length
    return steps, 1, times


def _listed(times: Floats, length: float, steps: int, fixed: bool, start: float) -> tuple[int, int, Floats]:
    """Sample times given one by one."""
    end = start + length
    if times.ndim != 1 or not len(times) or not np.isfinite(times).all() or (np.diff(times) <= 0.0).any() \
            or times[0] < start or times[-1] > end + 1e-9 * length:
        raise StateError(f"simulate: output times must increase within {start:g} s and {end:g} s")
    if fixed:
        raise StateError("simulate: methods with fixed steps sample at intervals: give output=seconds, or use an "
                         "adaptive stepper for a list of times")
    later = times[times > start]
    tiny = 1e-12 * max(1.0, abs(end))
    return steps, 1, later if len(later) and later[-1] >= end - tiny else np.append(later, end)


def disk_trouble(path: Path, error: Exception) -> str:
    """What an error of the NetCDF library is about: it does not always say that the disk is full."""
    with suppress(OSError):
        disk = shutil.disk_usage(path.parent)
        if disk.total and disk.free < 1 << 17 and "space" not in str(error):
            return f"no space left on the disk; {error}"
    return str(error)
