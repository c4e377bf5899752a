"""One study: the machine, what varies, what is run and what is kept. The same in every process."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank import __version__
from bellcrank.arrays import Floats, one_time
from bellcrank.compiled.compile import compile
from bellcrank.compiled.system import System
from bellcrank.errors import AssemblyError, BellcrankError, ModelError, hint
from bellcrank.loops.tolerances import ROUNDING
from bellcrank.mechanism.fingerprint import fingerprint_of
from bellcrank.mechanism.mechanism import Mechanism
from bellcrank.simulate.setup import Setup
from bellcrank.studies.sample_table import SampleTable, VariedColumn, columns_of
from bellcrank.system.assembly_speeds import initial_speeds
from bellcrank.system.loop_errors import open_shares
from bellcrank.system.state import State
from bellcrank.target.backend import BACKENDS

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["DEVICE_LANES", "LANES", "REDUCTIONS", "ChunkResult", "FirstStates", "MisuseError", "RunValues", "Study",
           "as_variables", "candidates", "error_text", "fill_of", "joined", "machine_of", "merged", "simulated_values",
           "study_of", "with_rows"]

# -- the states in which the runs of a block begin --------------------------------------------------
_OTHER_BRANCH = "the branch of the guess ends on the way: it begins at the nearest position on another branch"


#: a state of its own, or why there is none; and what is to be said of it
Assembled = tuple[State | str, str]
#: beginnings that are kept for later blocks
_REMEMBERED = 4096


@dataclass(frozen=True)
class FirstStates:
    """States of some rows, (rows, nq) and (rows, nu); why rows have none, and what is to be said of others."""

    q: Floats
    u: Floats
    t: float
    failed: dict[int, str]
    remarks: dict[int, str]

    def picked(self, rows: Sequence[int]) -> FirstStates:
        """The states of other rows, or of the same several times."""
        return replace(self, q=self.q[list(rows)], u=self.u[list(rows)])


def with_rows(system: System, columns: tuple[VariedColumn, ...], rows: Floats) -> System:
    """The machine with the parameters of rows (rows, columns) as a batch."""
    values = {c.key: rows[:, k].copy() for k, c in enumerate(columns) if c.kind == "p"}
    return system.with_parameters(**values) if values else system


def with_row(system: System, columns: tuple[VariedColumn, ...], row: Floats) -> System:
    """The machine with the parameters of one row."""
    values = {c.key: float(row[k]) for k, c in enumerate(columns) if c.kind == "p"}
    return system.with_parameters(**values) if values else system


def first_states(first: System, columns: tuple[VariedColumn, ...], rows: Floats, given: Mapping[str, Any],
                 shaping: tuple[int, ...], known: dict[bytes, Assembled]) -> FirstStates:
    """A state for every row: what `assemble` makes of `given` (q, u, guess, weights, t) and of what the row says.
    `first` is the machine with the parameters of the first row, `shaping` are the columns of those that beginnings
    depend on (see `shaping_columns`).

    Every row is put together by itself, so that it does not depend on the others; rows that say the same of the
    beginning and of the loops share it, and what is `known` of earlier ones. Cost: one call of `assemble` per different
    beginning.
    """
    count, system = len(rows), first
    found = FirstStates(np.zeros((count, system.nq)), np.zeros((count, system.nu)), float(given.get("t", 0.0)), {}, {})
    starting = [k for k, c in enumerate(columns) if c.kind != "p"]
    for i, row in enumerate(rows):
        key = row[[*starting, *shaping]].tobytes()
        if key not in known:
            own = first.with_parameters(**{columns[k].key: float(row[k]) for k in shaping}) if shaping else first
            if len(known) >= _REMEMBERED:
                known.clear()
            made = known[key] = _assembled(own, columns, row, given)
        else:
            made = known[key]
        _put(found, i, *made)
    if system.model.tree.looped and any(c.kind == "p" for c in columns):
        for i in _open(with_rows(system, columns, rows), found):
            found.remarks.pop(i, None)
            _put(found, i, *_assembled(with_row(system, columns, rows[i]), columns, rows[i], given))
    return found


def shaping_columns(first: System, columns: tuple[VariedColumn, ...], state: State, rows: Floats) -> tuple[int, ...]:
    """Columns of parameters on which beginnings depend: with other values of rows, a closed state is open, or states of
    elements begin elsewhere."""
    found = []
    for k, column in enumerate(columns):
        if column.kind == "p":
            other = first.with_parameters(**{column.key: rows[:, k].copy()})
            q = np.broadcast_to(state.q, (len(rows), first.nq))
            gap = np.abs(other.plans.closer.residual(q, state.t)).max(initial=0.0) if first.model.tree.looped else 0.0
            if not gap <= ROUNDING or initial_speeds(other.plans).ndim > 1:
                found.append(k)
    return tuple(found)


def _put(found: FirstStates, i: int, state: State | str, remark: str) -> None:
    if isinstance(state, str):
        found.failed[i] = state
        return
    found.q[i], found.u[i] = state.q, state.u
    if remark:
        found.remarks[i] = remark


def _assembled(system: System, columns: tuple[VariedColumn, ...], row: Floats, given: Mapping[str, Any]) -> Assembled:
    """The state of one row, or why there is none; and what is to be said of it."""
    held: dict[str, Any] = {}
    for kind in ("q", "u"):
        own = {c.key: float(row[k]) for k, c in enumerate(columns) if c.kind == kind}
        held[kind] = {**(given.get(kind) or {}), **own} if own else given.get(kind)
    rest = {name: given[name] for name in ("guess", "weights", "t") if name in given}
    try:
        state = system.assemble(**held, **rest)
    except (BellcrankError, ArithmeticError, np.linalg.LinAlgError) as error:
        return str(error), ""
    return state, _OTHER_BRANCH if state.branch_changed else ""


def _open(system: System, found: FirstStates) -> list[int]:
    """Rows whose loops are open with all of their own parameters."""
    gap, rate = open_shares(system.plans, found.q, found.u, found.t)
    bad = ~((gap <= ROUNDING) & (rate <= ROUNDING))
    bad[list(found.failed)] = bad[0] = False  # without a state; put together with all of its own
    return np.flatnonzero(bad).tolist()


#: runs side by side in one block, always, whatever the chunks: numbers may depend on how many states share a call
LANES = 128
#: runs in a block on a device, where numbers do not depend on that: at most, and at least (few are the CPU's)
DEVICE_LANES, LEAST_LANES = 1 << 15, 64
#: rows that are tried as the first lane of all blocks: the first ones, and some of all
_FIRST, _SPREAD = 4, 60
#: what `reduce` may be by name: what is made of each variable over time
REDUCTIONS: dict[str, Callable[[Any], Any]] = {
    "first": lambda x: x.isel(time=0), "last": lambda x: x.isel(time=-1),
    "min": lambda x: x.min("time", skipna=False), "max": lambda x: x.max("time", skipna=False),
    "mean": lambda x: x.mean("time", skipna=False), "std": lambda x: x.std("time", skipna=False)}
#: options of `run` that say how runs begin; the others are those of `simulate`
_BEGIN = ("q", "u", "guess", "weights", "t")
#: options of `simulate` that the sweep itself decides on, or that belong to single runs
_OWN = {"state": "give q and u, which assemble() takes", "file": "the results go to out", "progress": "sweep has one",
        "threads": "chunks are shared between workers", "sensitivities": "they are of one state"}


@dataclass(frozen=True)
class Study:
    """What workers need to know; made by `study_of`."""

    system: System
    columns: tuple[VariedColumn, ...]
    run: Mapping[str, Any] | Callable[..., Any]
    reduce: Callable[..., Any] | tuple[str, ...] | None = None
    #: values of the run in the first lane of every block: plans for loops are made for that, wherever a run is computed
    reference: tuple[float, ...] = ()
    shaping: tuple[int, ...] = ()  #: columns of the parameters that beginnings depend on
    times: tuple[float, ...] = field(default=(), repr=False)  #: of the samples, if runs are simulated
    backend: str | None = None  #: what runs are computed by where that is to be had; else by that of the system

    @cached_property
    def machine(self) -> System:
        """The machine as this process computes it."""
        try:
            return self.device if self.backend else self.system
        except ModelError:  # no such device here
            return self.system

    @cached_property
    def device(self) -> System:
        """The machine for the `backend`; an error that says what is missing."""
        assert self.backend is not None
        return System(self.system.kernels.for_backend(self.backend))

    def lanes_of(self, runs: int) -> int:
        """Lanes of a block of so many runs, the first one included."""
        return LANES if self.machine is self.system else max(LEAST_LANES, runs + 1)

    @property
    def runs_per_block(self) -> int:
        """Runs of a full block: the first lane is that of the reference."""
        return (LANES if self.machine is self.system else DEVICE_LANES) - 1

    @property
    def simulated(self) -> bool:
        """Whether runs are simulations, not a function of the user."""
        return isinstance(self.run, Mapping)

    @cached_property
    def first(self) -> System:
        """The machine of the first lane."""
        return with_row(self.system, self.columns, np.array(self.reference))

    @cached_property
    def _beginnings(self) -> dict[bytes, Assembled]:
        """States in which runs of this process have begun."""
        return {}

    @property
    def options(self) -> dict[str, Any]:
        """What `simulate` is told."""
        assert isinstance(self.run, Mapping)
        return {name: value for name, value in self.run.items() if name not in _BEGIN}

    def begin(self, rows: Floats) -> FirstStates:
        """The states in which runs begin, the first row that of the reference."""
        assert isinstance(self.run, Mapping)
        return first_states(self.first, self.columns, rows, self.run, self.shaping, self._beginnings)

    def simulate(self, system: System, states: FirstStates, progress: Callable[[float, float], object]) -> Result:
        """Runs from these states, on one thread."""
        begun = system.state(states.q, states.u, t=states.t)
        return system.simulate(begun, **self.options, threads=1, progress=progress)

    def fingerprints(self, table: SampleTable) -> dict[str, str]:
        """What makes this study this one, part by part."""
        return {"machine": fingerprint_of((self.system.model.digest, self.backend or self.system.kernels.backend)),
                "samples": fingerprint_of(table.identity()), "run": fingerprint_of(self.run),
                "reduce": fingerprint_of(self.reduce), "version": __version__}

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


def machine_of(machine: Any) -> System:
    """The machine of a sweep: compiled, described, or by the name that `load` knows."""
    from bellcrank.io.load import load

    if isinstance(machine, System):
        batched = [name for name, value in machine.model.values.items() if np.ndim(value)]
        if batched:
            raise ModelError(f"sweep: the machine has arrays of the parameters {', '.join(batched)}; give one value "
                             "each, and what varies as parameters or samples")
        return machine
    if isinstance(machine, Mechanism):
        return compile(machine)
    try:
        return compile(load(machine))
    except TypeError:
        raise ModelError(f"sweep: the machine is a Mechanism, a System, or what load() takes, got "
                         f"{type(machine).__name__}") from None


def study_of(system: System, table: SampleTable, run: Any, reduce: Any, backend: str | None = None) -> Study:
    """Check what a sweep was asked for, and find the run that stands in the first lane of all blocks."""
    columns = columns_of(system, table.names)
    if not isinstance(run, Mapping) and not callable(run):
        raise ModelError("sweep: run is a mapping of what simulate() takes, such as {'duration': 10.0}, or a function "
                         f"of (system, samples); got {run!r}")
    if isinstance(run, Mapping):
        _check_run(system, run, columns)
    study = Study(system, columns, dict(run) if isinstance(run, Mapping) else run, _reduction(reduce, callable(run)),
                  tuple(table.rows(0, 1)[0].tolist()), backend=_backend(backend))
    return _with_reference(study, table) if study.simulated else study


def _backend(backend: Any) -> str | None:
    if backend is not None and backend not in BACKENDS:
        raise ModelError(f"sweep: no backend {backend!r}; there are {', '.join(map(repr, BACKENDS))}")
    return backend  # type: ignore[no-any-return]


def _check_run(system: System, run: Mapping[str, Any], columns: tuple[VariedColumn, ...]) -> None:
    known = [n for n in inspect.signature(System.simulate).parameters if n not in ("self", *_OWN)]
    for name in run:
        if name in _OWN:
            raise ModelError(f"sweep: run: {name!r} is not for sweeps: {_OWN[name]}")
        if name not in (*known, *_BEGIN):
            raise ModelError(f"sweep: run has no option {name!r}{hint(name, (*known, *_BEGIN))}; there are "
                             f"{', '.join((*_BEGIN, *known))}")
    if "duration" not in run:
        raise ModelError("sweep: run needs a duration [s], such as run={'duration': 10.0}")
    one_time(run.get("t", 0.0))
    for kind in ("q", "u"):
        varied = [c.name for c in columns if c.kind == kind]
        if varied and not isinstance(run.get(kind) or {}, Mapping):
            raise ModelError(f"sweep: run: {kind} must be a mapping {{joint: value}} where {', '.join(varied)} varies")
        for name in run.get(kind) or () if isinstance(run.get(kind), Mapping) else ():
            system.model.configuration.split(name)  # says what is wrong with it


def _reduction(reduce: Any, function: bool) -> Callable[..., Any] | tuple[str, ...] | None:
    if reduce is None:
        return None
    if function:
        raise ModelError("sweep: reduce is for simulated runs; a function as run returns what shall be kept itself")
    if callable(reduce):
        return reduce  # type: ignore[no-any-return]
    names = (reduce,) if isinstance(reduce, str) else tuple(reduce) if isinstance(reduce, Sequence) else (reduce,)
    for name in names:
        if name not in REDUCTIONS:
            raise ModelError(f"sweep: reduce: {name!r} is neither a function of the result nor one of "
                             f"{', '.join(REDUCTIONS)}")
    return names


def _with_reference(study: Study, table: SampleTable) -> Study:
    """The first row that can be put together as the reference; with the times at which its run is sampled."""
    reason, tried = "", candidates(table)
    for i in tried:
        row = table.rows(i, i + 1)
        made = replace(study, reference=tuple(row[0].tolist()))
        states = made.begin(row)
        if not states.failed:
            o, begun = made.options, made.first.state(states.q[0], states.u[0], t=states.t)
            setup = Setup.of(made.first, begun, o["duration"], o.get("step"),
                             o.get("stepper", "rk4"), o.get("output"), o.get("tau"), o.get("wrenches"),
                             o.get("control"), o.get("events", ()), o.get("rtol", 1e-9), o.get("atol", 1e-12), 1, None,
                             o.get("closing", "position"))
            some = np.unique(np.linspace(0, table.runs - 1, LANES).astype(np.int64)).tolist()
            rows = np.concatenate([table.rows(k, k + 1) for k in some])
            return replace(made, times=tuple(setup.sample_times.tolist()),
                           shaping=shaping_columns(made.first, made.columns, begun, rows))
        reason = reason or states.failed[0]
    raise AssemblyError(f"sweep: none of {len(tried)} samples that were tried can be put together; the first: {reason}")


def candidates(table: SampleTable) -> list[int]:
    """Rows that may stand in the first lane of all blocks, in the order in which they are tried."""
    spread = np.linspace(0, table.runs - 1, _SPREAD).astype(np.int64).tolist()
    return list(dict.fromkeys([*range(min(_FIRST, table.runs)), *spread]))


def error_text(error: BaseException) -> str:
    """An error in one line: its text alone if it is one of ours."""
    text = " ".join(str(error).split())
    return text if isinstance(error, BellcrankError) else f"{type(error).__name__}: {text}"


# -- what is kept of runs: named values along ``run``, from results of simulations or from functions of the user ---
#: how the dimension of the runs may be called
_RUNS = ("run", "sample")
#: names that sweeps use themselves
_TAKEN = ("run", "status", "reason", "chunk_done")
#: what values may be made of
_KINDS = "fiubU"


class MisuseError(ModelError):
    """A function of the user returns something that no run can be kept of: the sweep ends."""


@dataclass(frozen=True)
class RunValues:
    """Values along dimensions; those of runs have ``run`` first."""

    dims: tuple[str, ...]
    values: npt.NDArray[Any]
    attrs: dict[str, Any]

    def without(self, rows: Sequence[int]) -> RunValues:
        """The same without results in some rows."""
        if not len(rows):
            return self
        values = self.values.copy()
        values[list(rows)] = fill_of(values.dtype)
        return self.having(values)

    def having(self, values: npt.NDArray[Any]) -> RunValues:
        """The same with other values."""
        return replace(self, values=values)


class ChunkResult(NamedTuple):
    """Results of some runs, coordinates of the other dimensions, and how each run ended and why."""

    variables: dict[str, RunValues]
    coords: dict[str, RunValues]
    status: list[str]
    reason: list[str]


def fill_of(dtype: np.dtype[Any]) -> Any:
    """What stands where there is no result."""
    return {"f": np.nan, "i": -1, "u": 0, "b": False}.get(dtype.kind, "")


def merged(halves: Sequence[Mapping[str, RunValues]], rows: Sequence[Sequence[int]], count: int
           ) -> dict[str, RunValues]:
    """Values of `count` rows, those of each half taken from it."""
    out: dict[str, RunValues] = {}
    for name in dict.fromkeys(name for half in halves for name in half):
        like = next(half[name] for half in halves if name in half)
        values = np.full((count, *like.values.shape[1:]), fill_of(like.values.dtype), dtype=like.values.dtype)
        for half, own in zip(halves, rows, strict=True):
            if name in half:
                _check_like(name, like, half[name])
                values[own] = half[name].values[own]
        out[name] = like.having(values)
    return out


def joined(parts: Sequence[ChunkResult]) -> ChunkResult:
    """Results of blocks one after the other; blank where a block has none."""
    counts = [len(part.status) for part in parts]
    variables: dict[str, RunValues] = {}
    for name in dict.fromkeys(name for part in parts for name in part.variables):
        like = next(part.variables[name] for part in parts if name in part.variables)
        pieces = []
        for part, n in zip(parts, counts, strict=True):
            if name in part.variables:
                _check_like(name, like, part.variables[name])
                pieces.append(part.variables[name].values)
            else:
                pieces.append(np.full((n, *like.values.shape[1:]), fill_of(like.values.dtype), like.values.dtype))
        variables[name] = like.having(np.concatenate(pieces))
    return ChunkResult(variables, next((p.coords for p in parts if p.coords), {}), [s for p in parts for s in p.status],
                [r for p in parts for r in p.reason])


def _check_like(name: str, one: RunValues, other: RunValues) -> None:
    if one.dims != other.dims or one.values.shape[1:] != other.values.shape[1:]:
        raise MisuseError(f"sweep: {name!r} has the shape {other.values.shape[1:]} in some runs and "
                          f"{one.values.shape[1:]} in others; all runs must keep as much")


# -- simulations ----------------------------------------------------------------------------------------
def simulated_values(result: Result, study: Study) -> tuple[dict[str, RunValues], dict[str, RunValues]]:
    """All that there is of runs at every time, or what is made of it over time by name; and coordinates."""
    result = _on_grid(result, study)
    kept = {str(name): v for name, v in result.data_vars.items() if {"time", "sample"} <= set(v.dims)
            and v.dtype.kind in _KINDS}
    if study.reduce is not None:
        assert not callable(study.reduce)
        kept = {f"{name}_{how}": REDUCTIONS[how](v).assign_attrs(v.attrs) for how in study.reduce
                for name, v in kept.items() if v.dtype.kind == "f"}
    coords = {str(n): RunValues(tuple(map(str, c.dims)), np.asarray(c.values), dict(c.attrs))
              for n, c in result.coords.items() if "sample" not in c.dims
              and any(set(c.dims) <= set(v.dims) for v in kept.values())}
    return {name: _variable(name, v, v.sizes["sample"], "simulate") for name, v in kept.items()}, coords


def _on_grid(result: Result, study: Study) -> Result:
    """A result at the times of the study: a run of which no lane reached its end is shorter."""
    times = np.array(study.times)
    if result.sizes["time"] == len(times):
        return result
    near = 1e-9 * max(1.0, float(np.abs(times).max()))
    return result.reindex(time=times, method="nearest", tolerance=near)


# -- what users return ------------------------------------------------------------------------------------
def as_variables(what: str, got: Any, runs: int, study: Study) -> tuple[dict[str, RunValues], dict[str, RunValues]]:
    """What a function of the user returned, values along ``run``, and the coordinates of their other dimensions."""
    import xarray

    if isinstance(got, xarray.DataArray):
        got = {str(got.name or "value"): got}
    if isinstance(got, xarray.Dataset):
        got = {str(name): v for name, v in got.data_vars.items()}
    if not isinstance(got, Mapping):
        raise MisuseError(f"sweep: {what} must return a mapping {{name: values of all runs}} or a Dataset, got "
                          f"{type(got).__name__}")
    coords: dict[str, RunValues] = {}
    values: dict[str, RunValues] = {}
    for name, value in got.items():
        if name in (*_TAKEN, *(c.name for c in study.columns)):
            raise MisuseError(f"sweep: {what}: {name!r} is what sweeps call something else; take another name")
        values[str(name)] = _variable(str(name), value, runs, what)
        if isinstance(value, xarray.DataArray):
            coords |= {str(n): RunValues(tuple(map(str, c.dims)), np.asarray(c.values), dict(c.attrs))
                       for n, c in value.coords.items() if c.dims and not set(_RUNS) & set(c.dims)}
    return values, coords


def _variable(name: str, value: Any, runs: int, what: str) -> RunValues:
    import xarray

    attrs: dict[str, Any] = {}
    dims: tuple[str, ...] | None = None
    if isinstance(value, xarray.DataArray):
        axis = next((d for d in _RUNS if d in value.dims), None)
        if axis is None:
            raise MisuseError(f"sweep: {what}: {name!r} has the dimensions {value.dims}; it needs one value per run, "
                              "along 'run' (or 'sample', as results of simulate have)")
        value = value.transpose(axis, ...)
        dims, attrs = ("run", *map(str, value.dims[1:])), {k: v for k, v in value.attrs.items() if isinstance(v, str)}
        value = value.values
    array = np.ascontiguousarray(value)
    if array.dtype.kind not in _KINDS:
        raise MisuseError(f"sweep: {what}: {name!r} holds {array.dtype}; numbers or texts can be kept")
    if array.ndim == 0 or len(array) != runs:
        raise MisuseError(f"sweep: {what}: {name!r} has the shape {array.shape}; it needs one value per run, {runs} "
                          "along its first axis")
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
    return RunValues(dims or ("run", *(f"{name}_{k}" for k in range(1, array.ndim))), array, attrs)
