"""``bellcrank sweep``."""

from __future__ import annotations

import contextlib
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.cli.models import check_method, pair, read_model, settings_of, warn_of, with_settings
from bellcrank.cli.output import FAILED, FINE, Output, UsageError, complain
from bellcrank.errors import AssemblyError, FileError, ModelError, StateError

if TYPE_CHECKING:
    import xarray

    from bellcrank.compiled.system import System
    from bellcrank.studies.sample_table import DrawnSamples

__all__ = ["StudyRequest", "sweep"]

#: ways to draw samples
METHODS = ("lhs", "sobol", "random")
_EXECUTORS = ("threads", "processes", "dask")
#: samples of which those of a chunk alone are made
_MANY = 1 << 20


@dataclass(frozen=True)
class StudyRequest:
    """What a sweep is asked for."""

    model: str
    vary: Sequence[str]
    sample: Sequence[str]
    runs: int | None
    method: str
    seed: int
    duration: float
    step: float | None
    stepper: str
    interval: float | None
    settings: Sequence[str]
    reduce: Sequence[str]
    out: Path | None
    resume: bool
    chunk: int | None
    executor: str
    address: str | None
    formulation: str
    options: Sequence[str]
    floating_base: bool
    backend: str | None = None


def sweep(request: StudyRequest, output: Output) -> int:
    """Compute, write, report; returns the exit code."""
    from bellcrank.compiled.compile import compile
    from bellcrank.simulate.run import SimulationWarning
    from bellcrank.studies.sweeping import sweep as run

    grid = dict(_varied(text) for text in request.vary)
    _check(request, grid)
    machine, report = read_model(request.model, request.options, request.floating_base)
    warn_of(report, output)
    system = compile(machine, check_method(request.formulation, "auto"))
    begun = time.perf_counter()
    with _executor(request) as executor, warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # the table says the same
        try:
            settings = settings_of(system, [_colon(text) for text in request.settings])
            found = run(with_settings(system, settings), grid or None, samples=_samples(request, grid),
                        run=_run(request, settings), reduce=_reduction(request), executor=executor,
                        resume=request.resume, out=request.out if _is_store(request.out) else None, chunk=request.chunk,
                        backend=request.backend,
                        progress=None if output.progress and not output.quiet and not output.json else False)
        except (AssemblyError, FileError):
            raise
        except (ModelError, StateError) as error:
            raise UsageError(str(error)) from error
        if request.out is not None and not _is_store(request.out):
            found.to_netcdf(request.out)
    return _report(found, system, request, time.perf_counter() - begun, output)


# -- what was asked for ---------------------------------------------------------------------------------
def _check(request: StudyRequest, grid: dict[str, Any]) -> None:
    """What can be known to be wrong before anything is computed."""
    if len(grid) < len(request.vary):
        raise UsageError("--vary: a name is given twice")
    if request.method not in METHODS:
        raise UsageError(f"--method {request.method}: there are {', '.join(METHODS)}")
    if request.executor not in _EXECUTORS:
        raise UsageError(f"--executor {request.executor}: there are {', '.join(_EXECUTORS)}")
    if request.address is not None and request.executor != "dask":
        raise UsageError("--address: is that of a Dask scheduler; add --executor dask")
    if not request.vary and not request.sample:
        raise UsageError("nothing varies; give --vary NAME=FIRST:LAST:COUNT or --sample NAME~DISTRIBUTION")
    if bool(request.sample) != (request.runs is not None):
        raise UsageError("--runs: says how many runs there are of what --sample names; give both" if request.sample
                         else "--runs: without --sample, what --vary names says how many runs there are")
    if request.out is not None and request.out.suffix.lower() not in (".zarr", ".nc"):
        raise UsageError(f"--out {request.out}: the name ends in .zarr, or .nc for a file at the end")
    if request.resume and not _is_store(request.out):
        raise UsageError("--resume: goes on with a store; give --out NAME.zarr")


def _is_store(out: Path | None) -> bool:
    return out is not None and out.suffix.lower() == ".zarr"


def _colon(text: str) -> str:
    """``q.A=1`` as ``q:A=1``, which --set takes."""
    return re.sub(r"^([qu])\.", r"\1:", text)


def _name(text: str) -> str:
    """``q:A`` as ``q.A``, which sweeps take."""
    return re.sub(r"^([qu]):", r"\1.", text.strip()).removeprefix("p:")


def _varied(text: str) -> tuple[str, Any]:
    """Name and values of ``NAME=FIRST:LAST:COUNT`` or ``NAME=VALUE,VALUE,...``."""
    name, values = pair(text)
    try:
        if ":" in values:
            first, last, count = values.split(":")
            if int(count) < 1:
                raise ValueError
            return _name(name), np.linspace(float(first), float(last), int(count))
        return _name(name), np.array([float(x) for x in values.split(",")])
    except ValueError:
        raise UsageError(f"--vary {text}: write NAME=FIRST:LAST:COUNT, or NAME=VALUE,VALUE,...") from None


def _samples(request: StudyRequest, grid: dict[str, Any]) -> xarray.Dataset | DrawnSamples | None:
    """What is drawn, as many at each point of the grid as make `runs` in all; of very many, chunk by chunk."""
    from bellcrank.studies.random_samples import latin_hypercube, random_samples, sobol
    from bellcrank.studies.sample_table import drawn_samples

    if not request.sample or request.runs is None:
        return None
    distributions: dict[str, str] = {}
    for text in request.sample:
        name, tilde, distribution = text.partition("~")
        if not tilde or not name.strip() or not distribution.strip():
            raise UsageError(f"--sample {text}: write NAME~DISTRIBUTION, such as mass~normal(2,0.1)")
        if _name(name) in distributions:
            raise UsageError(f"--sample {text}: {name.strip()!r} is given twice")
        distributions[_name(name)] = distribution
    points = int(np.prod([len(values) for values in grid.values()])) if grid else 1
    if request.runs < 1 or request.runs % points:
        raise UsageError(f"--runs {request.runs}: must be a positive multiple of the {points} points that --vary makes"
                         if points > 1 else f"--runs {request.runs}: must be positive")
    make = {"lhs": latin_hypercube, "sobol": sobol, "random": random_samples}[request.method]
    try:
        if request.runs // points > _MANY:
            return drawn_samples(distributions, request.runs // points, seed=request.seed,
                                 method={"lhs": "latin_hypercube"}.get(request.method, request.method))
        return make(distributions, request.runs // points, seed=request.seed)
    except ModelError as error:
        raise UsageError(f"--sample: {error}") from error


def _run(request: StudyRequest, settings: Any) -> dict[str, Any]:
    run: dict[str, Any] = {"duration": request.duration, "stepper": request.stepper, "q": settings.q, "u": settings.u}
    return run | {name: value for name, value in (("step", request.step), ("output", request.interval))
                  if value is not None}


def _reduction(request: StudyRequest) -> list[str] | None:
    """What is kept: all of it in files unless it is said, the last values otherwise."""
    names = [name.strip() for text in request.reduce for name in text.split(",") if name.strip()]
    return names or (None if request.out is not None else ["last"])


@contextlib.contextmanager
def _executor(request: StudyRequest) -> Iterator[Any]:
    if request.executor != "dask":
        yield request.executor
        return
    try:
        from distributed import Client
    except ImportError:
        raise UsageError("--executor dask: needs the package distributed: pip install 'bellcrank[sweep]'") from None
    try:
        client = Client(request.address) if request.address else Client(dashboard_address=":0")
    except (OSError, ValueError) as error:
        raise UsageError(f"--address {request.address}: {error}") from error
    with client:
        yield client


# -- what came out --------------------------------------------------------------------------------------
def _report(found: xarray.Dataset, system: System, request: StudyRequest, wall: float, output: Output) -> int:
    status = Counter(np.asarray(found["status"].values).astype(object).tolist())
    runs = sum(status.values())
    bad = np.flatnonzero(~np.isin(np.asarray(found["status"].values).astype(object), ("finished", "stopped")))
    first = "" if not len(bad) else f"run {int(bad[0])}: {found['reason'].values[int(bad[0])]}"
    numbers = _statistics(found)
    varied, files = list(found.attrs["varied"]), [] if request.out is None else [str(request.out)]
    facts = {"command": "sweep", "model": system.model.name, "status": "failed" if len(bad) == runs else "finished",
             "reason": first, "runs": runs, "ended": dict(status), "varied": varied, "wall_time": wall,
             "rate": runs / wall, "results": numbers, "files": files}
    output.table([("model", system.model.name), ("varied", ", ".join(varied)), ("runs", str(runs)),
                  ("status", ", ".join(f"{n} {name}" for name, n in status.items())),
                  ("wall time", f"{wall:.3g} s ({runs / wall:.3g} runs/s)"),
                  *[("file", name) for name in files]])
    if numbers:
        output.text("")
        output.table([(name, *(f"{n[k]:.6g}" for k in ("mean", "std", "min", "max"))) for name, n in numbers.items()],
                     ("over all runs", "mean", "deviation", "least", "largest"))
    output.data(facts)
    if len(bad):
        complain(f"{system.model.name}: {len(bad)} of {runs} runs did not finish; {first}")
    return FAILED if len(bad) == runs else FINE


def _statistics(found: xarray.Dataset) -> dict[str, dict[str, float]]:
    """Of what was kept over time: mean, deviation and extremes over all runs that have it."""
    out: dict[str, dict[str, float]] = {}
    for name, variable in found.data_vars.items():
        if variable.dtype.kind != "f" or "time" in variable.dims or variable.ndim > 2:
            continue
        values = variable.values.reshape(len(variable), -1)
        labels = [""] if variable.ndim == 1 else [f"[{x}]" for x in found[variable.dims[1]].values.tolist()]
        for k, label in enumerate(labels):
            column = values[np.isfinite(values[:, k]), k]
            if len(column) and not str(name).startswith("loop_"):
                out[f"{name}{label}"] = {"mean": float(column.mean()), "std": float(column.std()),
                                         "min": float(column.min()), "max": float(column.max())}
    return out
