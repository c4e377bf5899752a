"""Computing the runs of a chunk: blocks of always as many lanes, from which runs that fail are taken out.

A block is one call of compiled code. Its first lane is the reference of the study, for which plans are made; the
others are runs, and copies of one of them where there are fewer. So the numbers of a run do not depend on where, when
and beside which others it is computed. Where a whole block fails, its halves are tried, until the runs are found that
cannot be computed.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import threading
import warnings
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, BranchWarning, ModelError, NotYetError
from bellcrank.simulate.run import SimulationWarning
from bellcrank.studies.sample_table import SampleTable
from bellcrank.studies.study import (
    ChunkResult,
    FirstStates,
    MisuseError,
    RunValues,
    Study,
    as_variables,
    candidates,
    error_text,
    joined,
    merged,
    simulated_values,
    with_rows,
)

if TYPE_CHECKING:
    from bellcrank.compiled.system import System
    from bellcrank.simulate.result import Result

__all__ = ["chunk_task", "compute_chunk", "packed", "quiet", "with_tried_reference"]


@dataclass(frozen=True)
class _Lanes:
    """Results of lanes: values whose row k is that of lane k + 1; how lanes ended that did not just finish, and why."""

    values: dict[str, RunValues]
    coords: dict[str, RunValues]
    notes: dict[int, tuple[str, str]]


def compute_chunk(study: Study, rows: Floats, stop: threading.Event | None = None) -> ChunkResult:
    """Results of rows (runs, columns); `stop` ends it early with a `CancelledError`."""
    stop = stop or threading.Event()
    size = study.runs_per_block
    return joined([_block(study, rows[k:k + size], stop) for k in range(0, len(rows), size)])


def _block(study: Study, rows: Floats, stop: threading.Event) -> ChunkResult:
    """Results of the rows of one block."""
    count = len(rows)
    table = np.concatenate([np.array([study.reference]), rows,
                            np.repeat(rows[:1], study.lanes_of(count) - 1 - count, axis=0)])
    lanes = list(range(1, count + 1))
    if study.simulated:
        found = _simulated(study, table, lanes, stop)
    else:
        found = _isolated(lambda picked: _called(study, table[picked]), lanes, len(table), stop)
    said = [found.notes.get(i, ("finished", "")) for i in lanes]
    return ChunkResult({name: v.having(v.values[:count]) for name, v in found.values.items()}, found.coords,
                [status for status, _ in said], [reason for _, reason in said])


# -- runs that fail -------------------------------------------------------------------------------------
def _isolated(attempt: Callable[[list[int]], _Lanes], active: Sequence[int], lanes: int, stop: threading.Event
              ) -> _Lanes:
    """What `attempt` makes of the active ones of all lanes; of those alone that it can compute, where it fails on some.

    It is given a lane for every place, copies of an active one in those of the others.
    """
    if not active:
        return _Lanes({}, {}, {})
    try:
        chosen = set(active)
        return attempt([0, *(i if i in chosen else active[0] for i in range(1, lanes))])
    except (MisuseError, CancelledError):
        raise
    except Exception as error:
        if stop.is_set():
            raise CancelledError from None
        if len(active) == 1:
            return _Lanes({}, {}, {active[0]: ("failed", error_text(error))})
    half = len(active) // 2
    first, second = (_isolated(attempt, some, lanes, stop) for some in (active[:half], active[half:]))
    rows = [[i - 1 for i in some] for some in (active[:half], active[half:])]
    return _Lanes(merged([first.values, second.values], rows, lanes - 1), first.coords or second.coords,
                  {**first.notes, **second.notes})


# -- simulations ----------------------------------------------------------------------------------------
def _simulated(study: Study, table: Floats, lanes: Sequence[int], stop: threading.Event) -> _Lanes:
    """Runs of lanes of a table (lanes, columns), simulated and reduced."""
    states = study.begin(table[:len(lanes) + 1])
    active = [i for i in lanes if i not in states.failed]

    def attempt(picked: list[int]) -> _Lanes:
        system = with_rows(study.machine, study.columns, table[picked])
        result = _run(study, system, states.picked(picked), stop)
        notes = {i: (status, reason) for i, status, reason in json.loads(result.attrs.get("remarks", "[]"))
                 if i and picked[i] == i}
        some = [i for i in active if picked[i] == i]
        found = _isolated(lambda again: _reduced(study, result, table[picked], again[1:]), some, len(table), stop)
        return replace(found, notes={**notes, **found.notes})

    try:
        found = _isolated(_checked(attempt, study, states, len(table), stop), active, len(table), stop)
    except _EverywhereError as error:
        found = _Lanes({}, {}, dict.fromkeys(active, ("failed", error_text(error.reason))))
    notes = {i: ("finished", text) for i, text in states.remarks.items() if i in active}
    notes |= {i: ("failed", reason) for i, reason in states.failed.items() if i}
    lost = [i - 1 for i in states.failed if i]
    return _Lanes({name: v.without(lost) for name, v in found.values.items()}, found.coords, {**notes, **found.notes})


class _EverywhereError(MisuseError):
    """Not even the reference can be run: neither can the others of the block, which need not be tried."""

    def __init__(self, reason: Exception) -> None:
        super().__init__(str(reason))
        self.reason = reason


def _checked(attempt: Callable[[list[int]], _Lanes], study: Study, states: FirstStates, lanes: int,
             stop: threading.Event) -> Callable[[list[int]], _Lanes]:
    """An attempt after whose first failure it is seen whether the reference alone would do."""
    tried: list[bool] = []

    def checked(picked: list[int]) -> _Lanes:
        try:
            return attempt(picked)
        except BellcrankError:
            if not tried and not stop.is_set():
                tried.append(True)
                alone = states.picked([0] * lanes)
                system = with_rows(study.machine, study.columns, np.array([study.reference] * lanes))
                try:
                    _run(study, system, alone, stop)
                except (ModelError, NotYetError) as error:  # not of the sample, but of what is asked for
                    raise MisuseError(f"sweep: run: {error}") from error
                except BellcrankError as error:
                    raise _EverywhereError(error) from None
            raise

    return checked


class _WholeError(BellcrankError):
    """A run of all lanes that failed as a whole: in a controller, for one."""


def _run(study: Study, system: System, states: FirstStates, stop: threading.Event) -> Result:
    """Simulate; an error if not single lanes failed but all of it."""
    def look(done: float, duration: float) -> None:
        if stop.is_set():
            raise CancelledError

    result = study.simulate(system, states, look)
    if stop.is_set():
        raise CancelledError
    if result.attrs["status"] == "interrupted":
        raise KeyboardInterrupt
    if result.attrs["status"] == "failed" and "remarks" not in result.attrs:
        raise _WholeError(result.attrs["reason"])
    return result


def _reduced(study: Study, result: Result, rows: Floats, places: list[int]) -> _Lanes:
    """What is kept of the runs at these places of a result."""
    chosen = result.isel(sample=places).with_system(with_rows(study.system, study.columns, rows[places]))
    if callable(study.reduce):
        return _Lanes(*as_variables("reduce", study.reduce(chosen), len(places), study), {})
    return _Lanes(*simulated_values(chosen, study), {})


# -- functions ------------------------------------------------------------------------------------------
def _called(study: Study, rows: Floats) -> _Lanes:
    """What the user's function makes of rows."""
    import xarray

    samples = xarray.Dataset({c.name: ("run", rows[:, k].copy()) for k, c in enumerate(study.columns)})
    assert callable(study.run)
    got = study.run(with_rows(study.machine, study.columns, rows), samples)
    values, coords = as_variables("run", got, len(rows), study)
    return _Lanes({name: v.having(v.values[1:]) for name, v in values.items()}, coords, {})


def with_tried_reference(study: Study, table: SampleTable) -> Study:
    """A study of a function whose first lane is one that the function can compute."""
    reason: Exception | None = None
    tried = candidates(table)
    for i in tried:
        made = replace(study, reference=tuple(table.rows(i, i + 1)[0].tolist()))
        try:
            _called(made, np.array([made.reference] * made.lanes_of(1)))
            return made
        except MisuseError:
            raise
        except Exception as error:
            reason = reason or error
    assert reason is not None
    raise ModelError(f"sweep: run fails for all of {len(tried)} samples that were tried; for the first: "
                     f"{error_text(reason)}") from reason


# -- what a worker is sent, and what it does: a study as bytes, kept for its next chunks, and rows of the table ---
#: studies that this process has computed chunks of, the last ones
_known: dict[str, Study] = {}
_lock = threading.Lock()
_MOST = 4


def packed(study: Study) -> tuple[bytes, str]:
    """A study for other processes, and its digest. Functions travel by value where cloudpickle is installed."""
    try:
        import cloudpickle as pickler
    except ImportError:
        pickler = pickle
    try:
        data = pickler.dumps(study, protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise ModelError(f"sweep: {_culprit(study, pickler)} cannot be sent to other processes: {error}. Define "
                         "functions at the top level of a module, install cloudpickle, or take executor='threads'"
                         ) from error
    return data, hashlib.sha256(data).hexdigest()


def _culprit(study: Study, pickler: Any) -> str:
    """The part of a study that cannot be pickled."""
    parts: dict[str, Any] = {"the machine": study.system, "reduce": study.reduce}
    parts |= {f"run[{name!r}]": value for name, value in study.run.items()} if isinstance(study.run, Mapping) else {
        "run": study.run}
    for name, value in parts.items():
        try:
            pickler.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception:
            return name
    return "the study"


def quiet() -> None:
    """What warnings would say of runs is in their status and reason."""
    for category in (BranchWarning, SimulationWarning):
        warnings.simplefilter("ignore", category)


def chunk_task(data: bytes, digest: str, rows: Floats) -> ChunkResult:
    """A chunk in another process."""
    with _lock:
        study = _known.get(digest)
        if study is None:
            quiet()
            while len(_known) >= _MOST:
                _known.pop(next(iter(_known)))
            study = _known[digest] = pickle.loads(data)
    return compute_chunk(study, rows)
