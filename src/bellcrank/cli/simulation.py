"""``bellcrank simulate``, ``bellcrank plot`` and ``bellcrank sweep``."""

from __future__ import annotations

import contextlib
import os
import re
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.cli.models import (
    assemble,
    check_method,
    keyframe_of,
    pair,
    read_model,
    settings_of,
    warn_of,
    with_settings,
)
from bellcrank.cli.output import FAILED, FILE, FINE, INTERRUPTED, Bar, Output, UsageError, complain
from bellcrank.errors import AssemblyError, BellcrankError, FileError, ModelError, StateError

if TYPE_CHECKING:
    import xarray

    from bellcrank.compiled.system import System
    from bellcrank.simulate.result import Result
    from bellcrank.studies.sample_table import DrawnSamples
    from bellcrank.system.state import State

__all__ = ["PlotRequest", "Request", "StudyRequest", "plot", "simulate", "sweep"]


# -- results of runs on the command line: names of their files, and energy that went away -----------
#: samples that are enough to estimate an integral over the run
_ENOUGH = 2000


def check_ending(path: Path) -> None:
    """The name of a result says its format."""
    if path.suffix.lower() not in (".nc", ".csv"):
        raise UsageError(f"{path}: the name says the format; results end in .nc (NetCDF) or .csv")


def dissipated(system: System, result: Result) -> float:
    """About how much energy [J] dampers, friction and drag took in a run, from its samples."""
    from bellcrank.analyze import dissipated_power

    samples = int(result.sizes["time"])
    if samples < 2:
        return 0.0
    some = result.isel(time=np.unique(np.linspace(0, samples - 1, _ENOUGH).astype(int)))
    t, q, u = (some[name].values for name in ("time", "q", "u"))
    good = np.isfinite(q).all(axis=1) & np.isfinite(u).all(axis=1)
    try:
        power = dissipated_power(system, q[good], u[good], t=t[good])
    except BellcrankError:  # states of a run that failed may lie outside all laws
        return 0.0
    found = float(0.5 * ((power[1:] + power[:-1]) * np.diff(t[good])).sum())
    return found if np.isfinite(found) else 0.0


#: errors of loops [m] that are rounding
_CLOSED = 1e-9

_CODES = {"finished": FINE, "stopped": FINE, "failed": FAILED, "diverged": FAILED, "interrupted": INTERRUPTED}


@dataclass(frozen=True)
class Request:
    """What a simulation is asked for."""

    model: str
    duration: float
    step: float | None
    stepper: str
    method: str
    interval: float | None
    settings: Sequence[str]
    keyframe: str | None
    options: Sequence[str]
    floating_base: bool
    file: Path | None
    picture: Path | None
    rtol: float
    atol: float
    closing: str = "position"


def simulate(request: Request, output: Output) -> int:
    """Run, write, report; returns the exit code."""
    from bellcrank.compiled.compile import compile

    _check_request(request)
    with output.bar("reading the machine") as bar:
        machine, report = read_model(request.model, request.options, request.floating_base)
        warn_of(report, output)
        keyframe = keyframe_of(report, request.keyframe)
        bar.stage("compiling")
        system = compile(machine, check_method(request.method, "auto"))
        settings = settings_of(system, request.settings)
        system = with_settings(system, settings, keyframe)
        state = assemble(system, settings, keyframe)
        result = _run_machine(system, state, request, bar)
        files, problem = _kept(result, request.file)
        if request.picture is not None and result.sizes["time"]:
            bar.stage("drawing")
            try:
                result.plot(_shown(result), file=request.picture)
                files.append(str(request.picture))
            except FileError as error:
                problem = problem or str(error)
    facts = _facts(result, request, files) | {"dissipated_energy": dissipated(system, result)}
    if problem:
        facts["problem"] = problem
    result.close()
    output.table(_rows(facts))
    output.data(facts)
    code = _CODES[facts["status"]]
    if code:
        after = "" if facts["time"] is None else f" (samples end at t = {facts['time']:.6g} s)"
        complain(f"{facts['model']}: {_ending(facts)}{after}")
    if problem:
        complain(problem)
    return FILE if problem and code != INTERRUPTED else code


def _check_request(request: Request) -> None:
    """What can be known to be wrong before anything is computed."""
    for name, value in (("duration", request.duration), ("step", request.step), ("output", request.interval),
                        ("rtol", request.rtol), ("atol", request.atol)):
        if value is not None and not 0.0 < value < float("inf"):
            raise UsageError(f"--{name} must be positive and finite, got {value:g}")
    if request.file is not None:
        _check_folder(request.file)
        check_ending(request.file)
    if request.picture is not None:
        _check_picture(request.picture)


def _check_folder(path: Path) -> None:
    if path.is_dir():
        raise FileError(f"{path}: this is a folder; give the name of a file")
    if path.exists() and not path.is_file():  # a finished file takes the place of what is there: never of a device
        raise FileError(f"{path}: this is a device or a pipe; give the name of a file")
    if not path.parent.is_dir():
        raise FileError(f"{path}: the folder {str(path.parent)!r} does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise FileError(f"{path}: the folder {str(path.parent)!r} cannot be written to")


def _check_picture(path: Path) -> None:
    from matplotlib.backend_bases import FigureCanvasBase

    _check_folder(path)
    kinds = FigureCanvasBase.get_supported_filetypes()
    if path.suffix[1:].lower() not in kinds:
        raise UsageError(f"{path}: pictures end in one of {', '.join(f'.{k}' for k in sorted(kinds))}")


def _run_machine(system: System, state: State, request: Request, bar: Bar) -> Result:
    """The run; what it refuses to begin with is wrong usage."""
    from bellcrank.simulate.run import SimulationWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # the status says the same
        try:
            if "/" not in request.stepper:  # native code is made by a first short run, so that times are of steps only
                first = system.simulate(state, min(request.duration, 8.0 * (request.step or 1e-3)), step=request.step,
                                        stepper=request.stepper, rtol=request.rtol, atol=request.atol,
                                        closing=request.closing)
                if first.attrs["status"] == "interrupted":
                    raise KeyboardInterrupt
            bar.stage("simulating")
            return system.simulate(state, request.duration, step=request.step, stepper=request.stepper,
                                   output=request.interval, rtol=request.rtol, atol=request.atol,
                                   closing=request.closing,
                                   file=None if _is_csv(request.file) else request.file, progress=bar.update)
        except (ModelError, StateError) as error:
            raise UsageError(str(error)) from error


def _is_csv(file: Path | None) -> bool:
    return file is not None and file.suffix.lower() == ".csv"


def _kept(result: Result, file: Path | None) -> tuple[list[str], str]:
    """Where the result is: in its place, or where it stayed if that could not be written."""
    from bellcrank.simulate.result_place import partial_path

    if file is None:
        return [], ""
    if _is_csv(file):
        try:
            result.to_csv(file)
        except FileError as error:
            return [], str(error)
        return [str(file)], ""
    partial = partial_path(file)
    if partial.exists():
        return [str(partial)], f"{file}: could not be completed; what there is stays in {partial}"
    return [str(file)], ""


def _shown(result: Result) -> list[str]:
    """What is drawn if nothing is said: loops are worth a look where they are not closed to rounding."""
    return ["q", "energy", *["loop_error"] * (float(result["loop_error"].max()) > _CLOSED)]


def _facts(result: Result, request: Request, files: list[str]) -> dict[str, Any]:
    """All that is known of the run, for machines."""
    attrs, samples = result.attrs, int(result.sizes["time"])
    last: dict[str, Any] = {"time": None, "q": None, "u": None}
    done = 0.0
    if samples:
        end = result.isel(time=-1)
        done = float(end["time"]) - float(result["time"][0])
        last = {"time": float(end["time"]),
                "q": dict(zip(result["coordinate"].values.tolist(), end["q"].values.tolist(), strict=True)),
                "u": dict(zip(result["speed"].values.tolist(), end["u"].values.tolist(), strict=True))}
    wall = float(attrs["wall_time"])
    return {"command": "simulate", "model": attrs["mechanism"], "method": attrs["formulation"],
            "stepper": attrs["stepper"], "status": attrs["status"], "reason": attrs["reason"],
            "duration": request.duration, "steps": attrs.get("steps"), "samples": samples, "wall_time": wall,
            "speed": done / wall if wall > 0.0 else None, "largest_loop_error": attrs["largest_loop_error"],
            "energy_drift": None if np.isnan(attrs["energy_drift"]) else attrs["energy_drift"],
            "energy_exchange": attrs.get("energy_exchange", "none"),
            "energy_change": _change(result), "warnings": attrs.get("warnings", ""), **last, "files": files}


def _change(result: Result) -> float:
    """Energy at the end less that at the beginning [J]."""
    energy = result["energy"].values
    return float(energy[-1] - energy[0]) if len(energy) else 0.0


def _rows(facts: dict[str, Any]) -> list[tuple[str, str]]:
    """The facts in a short table, for people."""
    speed = facts["speed"] or 0.0
    rows = [("model", facts["model"]), ("stepper", f"{facts['stepper']} ({facts['method']})"),
            ("steps", f"{facts['steps']}"), ("wall time", _time(facts["wall_time"]))]
    if speed:
        rows.append(("speed", f"{speed:.3g} times real time" if speed < 1000.0 else f"{speed:.0f} times real time"))
    rows += [("samples", f"{facts['samples']}"), ("loop error", f"{facts['largest_loop_error']:.1e}"),
             ("energy drift", _drift(facts)), *[("warning", facts["warnings"])] * bool(facts["warnings"]),
             ("status", _ending(facts))]
    return rows + [("file" if i == 0 else "", name) for i, name in enumerate(facts["files"])]


def _drift(facts: dict[str, Any]) -> str:
    """How well energy was kept, or what took it away."""
    lost, gained = facts["dissipated_energy"], facts["energy_change"]
    if facts["energy_exchange"] == "work":
        return f"driven: the energy changed by {gained:+.3g} J"
    if facts["energy_exchange"] == "losses":
        return f"damped: about {lost:.3g} J dissipated" if lost else f"{-gained:.3g} J lost"
    return f"{facts['energy_drift']:.1e} of the energy there was"


def _ending(facts: dict[str, Any]) -> str:
    status, reason = str(facts["status"]), str(facts["reason"])
    return status if not reason else reason if reason.startswith(status) else f"{status}: {reason}"


def _time(seconds: float) -> str:
    return f"{seconds:.3g} s" if seconds >= 1.0 else f"{seconds * 1e3:.3g} ms"


@dataclass(frozen=True)
class PlotRequest:
    """What ``bellcrank plot`` was asked for."""

    file: Path
    what: Sequence[str]
    against: str = "time"
    picture: Path | None = None
    phase: Sequence[str] = ()
    size: str | None = None
    every: bool = False
    model: str | None = None
    options: Sequence[str] = ()
    floating_base: bool = False


def plot(request: PlotRequest, output: Output) -> int:
    """Draw a result that was written to a file."""
    from bellcrank.compiled.compile import compile
    from bellcrank.simulate.netcdf import open_result

    file, against = request.file, request.against
    if not file.is_file():
        raise FileError(f"{file}: there is no such file")
    target = request.picture or file.with_suffix(".png")
    if _is_csv(target):
        _check_folder(target)
    else:
        _check_picture(target)
    size = _size(request.size)
    with output.bar("drawing"), open_result(file) as result:
        if request.model is not None:
            machine, _ = read_model(request.model, request.options, request.floating_base)
            result = result.attach(compile(machine))
        names = list(request.what) or _shown(result)
        try:
            if _is_csv(target):
                result.to_csv(target, names if request.what else ())
            else:
                result.plot(names, against=against, file=target, phase=list(request.phase) or None, size=size,
                            every=request.every)
        except FileError:
            raise
        except BellcrankError as error:
            if result.system is None and "attach(system)" in str(error):
                raise UsageError("forces, reactions and accelerations are computed from the machine: say which by "
                                 "--model MODEL") from error
            raise UsageError(f"{error}. Variables are q, u, tau, energy, loop_error, outputs by name; and udot, "
                             "reactions, reaction.JOINT, forces, force.ELEMENT, torque.JOINT; joints are "
                             f"{', '.join(_joints(result))}") from error
        facts = {"command": "plot", "status": "finished", "model": result.attrs.get("mechanism"), "what": names,
                 "against": against, "samples": int(result.sizes["time"]), "files": [str(target)]}
    output.text(str(target))
    output.data(facts)
    return FINE


def _size(text: str | None) -> str | tuple[float, ...] | None:
    """The size of a picture: a word, or millimeters as 120x80."""
    if text is None or text in ("column", "page"):
        return text
    try:
        width, height = (float(x) for x in text.lower().removesuffix("mm").split("x"))
    except ValueError:
        raise UsageError(f"--size {text}: column, page, or millimeters as 120x80") from None
    return width, height


def _joints(result: Result) -> list[str]:
    names = [str(n).rpartition(".")[0] for n in np.atleast_1d(result["coordinate"].values)]
    return list(dict.fromkeys(names))[:24]


# -- ``bellcrank sweep`` ----------------------------------------------------------------------------
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
    _check_sweep(request, grid)
    machine, report = read_model(request.model, request.options, request.floating_base)
    warn_of(report, output)
    system = compile(machine, check_method(request.formulation, "auto"))
    begun = time.perf_counter()
    with _executor(request) as executor, warnings.catch_warnings():
        warnings.simplefilter("ignore", SimulationWarning)  # the table says the same
        try:
            settings = settings_of(system, [_colon(text) for text in request.settings])
            found = run(with_settings(system, settings), grid or None, samples=_samples(request, grid),
                        run=_run_sweep(request, settings), reduce=_reduction(request), executor=executor,
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
def _check_sweep(request: StudyRequest, grid: dict[str, Any]) -> None:
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
    from bellcrank.studies.sample_table import drawn_samples, latin_hypercube, random_samples, sobol

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


def _run_sweep(request: StudyRequest, settings: Any) -> dict[str, Any]:
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
