"""`bellcrank.sweep`: many runs of one machine, wherever they are computed."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, wait
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank import __version__
from bellcrank.errors import ModelError, outside
from bellcrank.simulate.run import SimulationWarning
from bellcrank.studies.executors import Workers, is_lost, workers_of
from bellcrank.studies.lane_blocks import quiet, with_tried_reference
from bellcrank.studies.result_sinks import MemorySink, Sink
from bellcrank.studies.sample_table import SampleTable, table_of
from bellcrank.studies.study import DEVICE_LANES, LANES, ChunkResult, Study, machine_of, study_of
from bellcrank.studies.zarr_store import ZarrSink, check_out

if TYPE_CHECKING:
    import xarray

    from bellcrank.compiled.system import System
    from bellcrank.mechanism.mechanism import Mechanism
    from bellcrank.studies.sample_table import DrawnSamples

__all__ = ["sweep"]


# -- what a sweep shows on the terminal: runs done, rate, time left, failures -----------------------
class SweepProgress:
    """A line on stderr that shows how far a sweep is; or a function that is told."""

    def __init__(self, wanted: bool | Callable[[int, int], object] | None, name: str, total: int, done: int) -> None:
        if wanted is not None and not isinstance(wanted, bool) and not callable(wanted):
            raise ModelError(f"sweep: progress must be True, False or a function of (runs done, runs), got {wanted!r}")
        self._tell = wanted if callable(wanted) else None
        self._total, self._begun, self._before, self.done, self.failed = total, time.monotonic(), done, done, 0
        self._bar: Any = None
        if wanted is True or (wanted is None and sys.stderr.isatty()):
            self._bar = _bar()
            self._task = self._bar.add_task(f"sweep {name}", total=total, completed=done, rate="")

    @property
    def rate(self) -> float:
        """Runs per second so far."""
        return (self.done - self._before) / max(time.monotonic() - self._begun, 1e-9)

    def begin(self) -> None:
        """Show it."""
        if self._bar is not None:
            self._bar.start()

    def add(self, runs: int, failed: int) -> None:
        """Some runs more are done."""
        self.done, self.failed = self.done + runs, self.failed + failed
        if self._tell is not None:
            self._tell(self.done, self._total)
        if self._bar is not None:
            text = f"{self.rate:.3g} runs/s" + (f", {self.failed} failed" if self.failed else "")
            self._bar.update(self._task, completed=self.done, rate=text)

    def end(self) -> None:
        """The last line stays."""
        if self._bar is not None:
            self._bar.stop()


def _bar() -> Any:
    from rich import progress
    from rich.console import Console

    return progress.Progress(progress.TextColumn("{task.description}", markup=False), progress.BarColumn(),
                             progress.MofNCompleteColumn(), progress.TextColumn("{task.fields[rate]}", markup=False),
                             progress.TimeElapsedColumn(), progress.TimeRemainingColumn(),
                             console=Console(stderr=True, markup=False))


#: blocks in a chunk at most, and bytes of what a chunk keeps, about; that on a device, which computes many runs at once
_BLOCKS, _BYTES, _BYTES_THERE = 8, 1 << 26, 1 << 30
#: chunks in flight for every worker
_AHEAD = 2
#: how often a chunk may lose its worker
_LOSSES = 4
#: runs that are looked at together
_LOOK = 1 << 20
#: how runs end that did not fail
_GOOD = ("finished", "stopped")


def sweep(machine: Mechanism | System | str | os.PathLike[str],
          parameters: Mapping[str, Any] | xarray.Dataset | DrawnSamples | None = None, *,
          run: Mapping[str, Any] | Callable[..., Any],
          samples: Mapping[str, Any] | xarray.Dataset | DrawnSamples | None = None,
          reduce: Callable[..., Any] | str | Sequence[str] | None = None, executor: Any = None,
          out: str | os.PathLike[str] | None = None, resume: bool = False, chunk: int | None = None,
          progress: bool | Callable[[int, int], object] | None = None, backend: str | None = None) -> xarray.Dataset:
    """Run a machine many times with other parameters and beginnings; results along ``run``, as an `xarray.Dataset`.

    `machine` is a `Mechanism`, a `System`, or what `load` takes. `parameters` {name: values} is a grid: every value
    with every other. `samples` (also in the place of `parameters`) are rows: a mapping or Dataset of equally long
    arrays, such as `latin_hypercube`, `sobol` and `random_samples` make, or `drawn_samples`, of which only those of the
    chunks at work are in memory. With both, all samples are run at every point
    of the grid. Names are those of parameters of the machine; "q.JOINT" and "u.JOINT" ("q.JOINT.COORDINATE") are
    coordinates [rad, m] and speeds at the beginning.

    `run` is what `System.simulate` takes (``duration`` [s], ``step``, ``stepper``, ``output``, ``tau``, ``control``,
    ``events``, ...), and how runs begin: ``q``, ``u``, ``guess``, ``weights``, ``t`` as `System.assemble` takes them.
    Or it is a function of (system, samples): a `System` whose parameters are a batch of lanes, and a Dataset of the
    values of these lanes along ``run``; it returns {name: array with the lanes first, or DataArray along "run"}. Some
    of the lanes may be copies.

    `reduce` says what is kept: a function of the `Result` of some runs (along ``sample``) that returns {name: array
    with the runs first, or DataArray along "sample"}, or names of what is made of every variable over time: "first",
    "last", "min", "max", "mean", "std" (``q_last``, ...). Without it all samples of all variables are.

    `executor`: "threads" (the default, all cores of this machine), "processes" (workers that die are replaced), any
    `concurrent.futures` executor, a `dask.distributed.Client`, or the module ``ray`` after ``ray.init()``. `chunk` runs
    (about a thousand unless given) are one task. The numbers are the same to the last bit, whatever the executor, the
    chunks and the order (on one kind of processor).

    With ``backend="cuda"`` workers that have a GPU compute on it, ten thousands of runs at a time, and the others on
    their CPU: the numbers then agree to rounding, and to the last bit on one kind of processor.

    `out` is a Zarr store, written chunk by chunk; the result then reads from it when it is used, through Dask where
    that is installed. A sweep that was killed goes on with ``resume=True`` and the same arguments (which may be given
    from the beginning); a store of another study is refused. `progress` shows a bar (on terminals unless it is
    False), or is a function of (runs done, runs).

    ``status`` of every run is "finished", "stopped" (by an event), "diverged" or "failed", and ``reason`` says why: a
    run that cannot be put together, or on which `reduce` fails, keeps no other from being computed. Cost: that of the
    runs, on one thread per chunk; memory of O(chunk) with `out` and of all results without.

    >>> import bellcrank as bc
    >>> m = bc.load("pendulum")
    >>> damping = m.add_joint_spring("damper", "hinge", damping=m.parameter("damping", 0.1))
    >>> study = bc.sweep(m, {"damping": [0.1, 0.2], "q.hinge": [0.5, 1.0, 1.5]},
    ...                  run={"duration": 1.0, "step": 0.01, "output": 0.5}, reduce="last")
    >>> study.q_last.dims, study.status.values.tolist() == ["finished"] * 6
    (('run', 'coordinate'), True)
    >>> grid = study.set_index(run=["damping", "q.hinge"]).unstack("run")
    >>> grid.energy_last.sizes["damping"]
    2
    """
    with warnings.catch_warnings():
        quiet()
        if resume and out is None:
            raise ModelError("sweep: resume=True needs out, the store to go on with")
        place = None if out is None else check_out(out, resume)
        if chunk is not None and (isinstance(chunk, bool) or not isinstance(chunk, (int, np.integer)) or chunk < 1):
            raise ModelError(f"sweep: chunk must be a positive number of runs, got {chunk!r}")
        table, system = table_of(parameters, samples), machine_of(machine)
        study = study_of(system, table, run, reduce, backend)
        if not study.simulated:
            study = with_tried_reference(study, table)
        attrs = {"machine": system.model.name, "version": __version__,
                 "varied": [c.name for c in study.columns]}
        workers = workers_of(executor, study)
        try:
            size = min(chunk or _chunk_of(study, table.runs, workers.count), table.runs)
            sink: Sink = MemorySink(table, attrs, size) if place is None else ZarrSink(
                place, table, attrs, study.fingerprints(table), size)
            try:
                _compute(workers, table, sink, progress, system.model.name)
            finally:
                sink.close()
        finally:
            workers.close()
        found = sink.dataset()
    _warn(found, system.model.name)
    return found


def _chunk_of(study: Study, runs: int, workers: int) -> int:
    """Runs in a chunk: whole blocks, not too few for the work to be shared, not too many for memory."""
    samples = len(study.times) if study.reduce is None else 1
    bytes_per_run = 8.0 * max(1, samples) * (study.system.nq + 2 * study.system.nu + 6)
    if study.backend:
        return int(min(DEVICE_LANES - 1, max(LANES - 1, _BYTES_THERE / bytes_per_run)))
    blocks = min(_BLOCKS, runs // ((LANES - 1) * 4 * workers), int(_BYTES / bytes_per_run / (LANES - 1)))
    return (LANES - 1) * max(1, blocks)


def _compute(workers: Workers, table: SampleTable, sink: Sink, progress: Any, name: str) -> None:
    """Have all missing chunks computed; those of lost workers again, by others."""
    waiting = deque(sink.missing())
    runs = sum(_span(table, sink.chunk, k)[1] - _span(table, sink.chunk, k)[0] for k in waiting)
    bar = SweepProgress(progress, name, table.runs, table.runs - runs)
    flying: dict[Future[ChunkResult], int] = {}
    losses: Counter[int] = Counter()
    bar.begin()
    try:
        while waiting or flying:
            while waiting and len(flying) < _AHEAD * workers.count:
                number = waiting.popleft()
                flying[workers.submit(table.rows(*_span(table, sink.chunk, number)))] = number
            for future in wait(flying, return_when=FIRST_COMPLETED).done:
                number = flying.pop(future)
                part = _result(future)
                if part is None:
                    losses[number] += 1
                    if losses[number] < _LOSSES:
                        waiting.appendleft(number)
                        continue
                    first, last = _span(table, sink.chunk, number)
                    why = f"its worker died, {_LOSSES} times over: a run of this chunk, or too little memory, ends it"
                    part = ChunkResult({}, {}, ["failed"] * (last - first), [why] * (last - first))
                sink.put(number, part)
                bar.add(len(part.status), sum(s not in _GOOD for s in part.status))
    finally:
        bar.end()


def _result(future: Future[ChunkResult]) -> ChunkResult | None:
    """What a future holds; None if its worker was lost."""
    try:
        return future.result()
    except (Exception, CancelledError) as error:
        if is_lost(error):
            return None
        raise


def _span(table: SampleTable, chunk: int, number: int) -> tuple[int, int]:
    return number * chunk, min((number + 1) * chunk, table.runs)


def _warn(found: xarray.Dataset, name: str) -> None:
    """Say that some runs did not finish."""
    runs, first, count = found.sizes["run"], -1, 0
    for begin in range(0, runs, _LOOK):
        status = np.asarray(found["status"][begin:begin + _LOOK].values).astype(object)
        bad = np.flatnonzero(~np.isin(status, _GOOD))
        first, count = begin + int(bad[0]) if first < 0 and len(bad) else first, count + len(bad)
    if count:
        why = str(found["reason"][first].values)
        warnings.warn(f"sweep {name!r}: {count} of {runs} runs did not finish, see status and reason; run {first}: "
                      f"{why}", SimulationWarning, stacklevel=outside())
