"""Batches with events: every state changes at times of its own, so that each is a run of its own; one result of all."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import ModelError
from bellcrank.simulate.fields import PER_EVENT, sample_dims
from bellcrank.simulate.outside_forces import wrench_names
from bellcrank.simulate.result import Result
from bellcrank.simulate.store import Writer

if TYPE_CHECKING:
    from bellcrank.simulate.setup import Setup
    from bellcrank.system.machine_functions import Machine

__all__ = ["one_by_one"]


#: attributes that are added up, and those of which the largest counts
_SUMS = ("steps", "switches", "crossings", "rejected", "wall_time", "energy_lost_in_events", "energy_added_in_events")
_LARGEST = ("energy_drift", "largest_loop_error", "largest_drawing_error")


def one_by_one(setup: Setup, run: Callable[..., Result], options: Mapping[str, Any]) -> Result:
    """Run the states of a batch with events one after another, by `run(machine, state, **options)`, and join them at
    the samples that all have in common; those at events, which differ, are left out."""
    if options.get("file") is not None:
        raise ModelError("simulate: a batch with events cannot be streamed to a file; save its result with to_netcdf")
    system, batch, count, results = setup.system, setup.batch, setup.count, []
    progress = options.get("progress")
    for index in range(count):
        place = np.unravel_index(index, batch)
        own = {**options, "tau": _own(options.get("tau"), batch, place, 1),
               "wrenches": _own(options.get("wrenches"), batch, place, 2)}
        if progress is not None:
            own["progress"] = lambda done, whole, k=index: progress((k * whole + done) / count, whole)
        y = setup.y0[index]
        state = (y[:system.nq], y[system.nq:], setup.start)
        results.append(run(_single(system, batch, place), state, happened=setup.happened[index], **own))
    return _joined(setup, results)


def _single(system: Machine, batch: tuple[int, ...], place: Any) -> Machine:
    """The machine of one state, with its own parameters."""
    if not system.model.batched:
        return system
    return system.with_parameters(**{name: float(np.broadcast_to(v, batch)[place])
                                     for name, v in system.model.values.items()})


def _own(value: Any, batch: tuple[int, ...], place: Any, axes: int) -> Any:
    """What of forces with batch axes belongs to one state; `axes` are those that forces have besides."""
    if value is None or callable(value) or hasattr(value, "function"):
        return value
    if isinstance(value, Mapping):
        return {name: _own(x, batch, place, 1 if axes == 2 else 0 if np.shape(x) == batch else 1)
                for name, x in value.items()}
    array = np.asarray(value, dtype=float)
    lead = array.ndim - axes
    return array if lead <= 0 else np.broadcast_to(array, (*batch, *array.shape[lead:]))[place]


def _joined(setup: Setup, results: list[Result]) -> Result:
    """All results at common times, time first."""
    batch, times = setup.batch, setup.sample_times
    rows = [_rows(r, times) for r in results]
    known: list[Any] = []
    numbers = [_numbered(r, known) for r in results]
    samples = sample_dims(batch)
    pushed = wrench_names(setup.system, setup.pushed)
    made = Writer(setup.system, batch=batch, settings=setup.settings(), wrenches=pushed).finish(
        "finished")
    variables: dict[str, Any] = {}
    for name, first in results[0].data_vars.items():
        if "time" not in first.dims or name == "wrench":
            continue
        parts = [_at(numbers[k][r["topology"].values] if name == "topology" else r[name].values, rows[k])
                 for k, r in enumerate(results)]
        rest = first.dims[1:]
        values = np.stack(parts, axis=1).reshape(len(times), *batch, *(first.sizes[d] for d in rest))
        variables[str(name)] = (("time", *samples, *rest), values, first.attrs)
    if pushed:
        values = np.stack([_at(_wrenches(r, pushed), rows[k]) for k, r in enumerate(results)], axis=1)
        variables["wrench"] = (("time", *samples, "wrench_component"), values.reshape(len(times), *batch, len(pushed)),
                               made["wrench"].attrs)
    variables |= _events(results)
    coords = {name: c for r in (*results, made) for name, c in r.coords.items() if name != "time"}
    attrs = {**made.attrs, **_account(results)}
    if len(known) > 1:
        attrs["topologies"] = json.dumps(known)
    return Result(variables, coords={**coords, "time": ("time", times, results[0]["time"].attrs)},
                  attrs=attrs).noting(setup.system)


def _wrenches(result: Result, names: tuple[str, ...]) -> Floats:
    """Components of external wrenches (time, components) by name; zeros of bodies on which nothing acts here."""
    out = np.zeros((result.sizes["time"], len(names)))
    for k, part in enumerate(result["wrench_component"].values.tolist() if "wrench" in result else ()):
        out[:, names.index(part)] = result["wrench"].values[:, k]
    return out


def _rows(result: Result, times: Floats) -> npt.NDArray[np.int64]:
    """The last samples at given times; -1 where a run had ended."""
    own = result["time"].values
    tolerance = 1e-12 * np.maximum(1.0, np.abs(times))
    found = np.searchsorted(own, times + tolerance, side="right") - 1
    near = np.abs(own[np.maximum(found, 0)] - times) <= tolerance
    return np.where((found >= 0) & near, found, -1)


def _at(values: npt.NDArray[Any], rows: npt.NDArray[np.int64]) -> npt.NDArray[Any]:
    """Samples by number; -1 for topologies and NaN for numbers that there are not."""
    out = values[rows].copy()
    out[rows < 0] = -1 if values.dtype.kind == "i" else np.nan
    return out


def _numbered(result: Result, known: list[Any]) -> npt.NDArray[np.int32]:
    """The numbers of a run's topologies among those of all runs, which grow."""
    own = json.loads(result.attrs["topologies"]) if "topologies" in result.attrs else [None]
    out = []
    for one in own:
        if one is None:  # that of the start, which all have
            out.append(0)
            continue
        if one not in known:
            known.append(one)
        out.append(known.index(one))
    return np.array(out, dtype=np.int32)


def _events(results: list[Result]) -> dict[str, Any]:
    """Events of all states, state by state, with the state that each happened to."""
    some = [(k, r) for k, r in enumerate(results) if "event_time" in r]
    if not some:
        return {}
    out: dict[str, Any] = {}
    for name in ("event_time", "event_name", *PER_EVENT):
        if name in some[0][1]:
            first = some[0][1][name]
            out[name] = (first.dims, np.concatenate([r[name].values for _, r in some]), first.attrs)
    which = np.concatenate([np.full(r.sizes["event"], k, dtype=np.int32) for k, r in some])
    out["event_sample"] = ("event", which, {"long_name": "flat index of the sample, -1 if not said"})
    return out


def _account(results: list[Result]) -> dict[str, Any]:
    """Attributes of all runs together."""
    attrs = [r.attrs for r in results]
    out: dict[str, Any] = {name: sum(a[name] for a in attrs if name in a) for name in _SUMS
                           if any(name in a for a in attrs)}
    out |= {name: float(np.max([a[name] for a in attrs])) for name in _LARGEST if all(name in a for a in attrs)}
    exchange = {a.get("energy_exchange", "none") for a in attrs}
    out["energy_exchange"] = next(x for x in ("work", "losses", "none") if x in exchange)
    remarks = [(k, a["status"], a["reason"] or a["warnings"]) for k, a in enumerate(attrs)
               if a["status"] != "finished" or a.get("warnings")]
    if remarks:
        out["remarks"] = json.dumps(remarks)
    told = [a["warnings"] for a in attrs if a.get("warnings")]
    if told:
        out["warnings"] = told[0]
    for status in ("interrupted", "failed", "diverged", "stopped"):
        found = [k for k, a in enumerate(attrs) if a["status"] == status]
        if found:
            what = "stopped" if status == "stopped" else "could not finish"
            return {**out, "status": status, "reason": f"{len(found)} of {len(attrs)} states {what}; state {found[0]}: "
                                                       f"{attrs[found[0]]['reason']}"}
    return {**out, "status": "finished", "reason": ""}
