"""``bellcrank animate`` and ``bellcrank show``: machines and results as pages, films and stills, and in the browser."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.cli.models import assemble, read_model, settings_of, warn_of, with_settings
from bellcrank.cli.output import FINE, Output, UsageError
from bellcrank.errors import BellcrankError, FileError, ModelError, StateError

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["FilmRequest", "ShowRequest", "animate", "show"]


# -- ``bellcrank animate``: machines and results as pages, films and stills -------------------------
@dataclass(frozen=True)
class FilmRequest:
    """What is to be shown, and how."""

    what: str
    out: Path
    model: str | None
    duration: float
    settings: Sequence[str]
    stepper: str
    step: float | None
    traces: Sequence[str]
    show: Sequence[str]
    options: Sequence[str]
    floating_base: bool
    look: dict[str, Any]  #: fps, speed, size, time, theme, view, renderer


def animate(request: FilmRequest, output: Output) -> int:
    """Read or compute the motion, and write it."""
    from bellcrank.view.animating import ENDINGS
    from bellcrank.view.animating import animate as write

    if request.out.suffix.lower() not in ENDINGS:
        raise UsageError(f"{request.out}: the name says what is written; it ends in {', '.join(ENDINGS)}")
    if not request.out.parent.is_dir():
        raise FileError(f"{request.out}: the folder {str(request.out.parent)!r} does not exist; make it first")
    look = {**request.look, "size": _size(request.look["size"])}
    with output.bar("reading") as bar:
        thing = _thing(request, output, bar)
        bar.stage("drawing")
        try:
            made = write(thing, file=request.out, traces=[_trace(t) for t in request.traces], show=request.show, **look)
        except FileError:
            raise
        except ModelError as error:
            raise UsageError(str(error)) from error
    scene = made.scene
    frames = max(len(t.times) for t in scene.tracks)
    size = request.out.stat().st_size
    for note in scene.notes:
        output.warn(note)
    still = request.out.suffix.lower() in (".png", ".svg") or frames == 1
    more = () if still else (f"{frames} pictures", *scene.about)
    output.text(f"{request.out} ({'; '.join([_bytes(size), *more])})")
    output.data({"command": "animate", "status": "finished", "model": scene.title, "pictures": frames,
                 "tracks": len(scene.tracks), "bytes": size, "notes": [*scene.notes, *scene.about],
                 "files": [str(request.out)]})
    return FINE


def _thing(request: FilmRequest, output: Output, bar: Any) -> Any:
    """A result from a file with its machine, a run of a machine, or the machine as it stands."""
    from bellcrank.compiled.compile import compile

    if Path(request.what).suffix.lower() == ".nc":
        return _run_for_film(request, output)
    machine, report = read_model(request.what, request.options, request.floating_base)
    warn_of(report, output)
    if request.duration <= 0.0 and not request.settings:
        return machine
    bar.stage("compiling")
    system = compile(machine)
    settings = settings_of(system, request.settings)
    system = with_settings(system, settings)
    state = assemble(system, settings)
    if request.duration <= 0.0:
        return system, state
    bar.stage("simulating")
    base = request.step or 1e-3
    every = max(1, int(min(1.0 / 60.0, request.duration / 240.0) / base)) * base  # about 60 samples a second
    with warnings.catch_warnings():
        from bellcrank.simulate.run import SimulationWarning

        warnings.simplefilter("ignore", SimulationWarning)
        try:
            result = system.simulate(state, request.duration, step=request.step, stepper=request.stepper,
                                     output=every, progress=bar.update)
        except (ModelError, StateError) as error:
            raise UsageError(str(error)) from error
    if result.attrs.get("status") not in (None, "finished"):
        output.warn(f"the run ended early: {result.attrs.get('reason') or result.attrs['status']}")
    if result.attrs.get("warnings"):
        output.warn(result.attrs["warnings"])
    return result


def _run_for_film(request: FilmRequest, output: Output) -> Result:
    from bellcrank.compiled.compile import compile
    from bellcrank.simulate.netcdf import open_result

    result = open_result(request.what)
    if request.model is None:
        try:
            return result.rebuild()
        except BellcrankError as error:
            raise UsageError(f"{request.what}: {error}; or say which machine it is of: --model MODEL") from error
    machine, report = read_model(request.model, request.options, request.floating_base)
    warn_of(report, output)
    system = compile(machine)
    settings = settings_of(system, request.settings)
    try:
        return result.attach(with_settings(system, settings))
    except BellcrankError as error:
        raise UsageError(str(error)) from error


def _trace(text: str) -> Any:
    """BODY, or BODY:X,Y,Z."""
    body, colon, point = text.rpartition(":")
    if not colon:
        return text
    try:
        x, y, z = (float(p) for p in point.split(","))
    except ValueError:
        raise UsageError(f"--trace {text}: write BODY, or BODY:X,Y,Z with a point in the body's frame [m]") from None
    return body, (x, y, z)


def _size(text: str) -> tuple[int, int]:
    try:
        wide, tall = (int(n) for n in text.lower().split("x"))
    except ValueError:
        wide = tall = 0
    if not (16 <= wide <= 8192 and 16 <= tall <= 8192):
        raise UsageError(f"--size {text}: write WIDTHxHEIGHT in pixels, such as 960x600")
    return wide, tall


def _bytes(size: int) -> str:
    return f"{size / 1e6:.2f} MB" if size >= 1e6 else f"{size / 1e3:.0f} kB"


# -- ``bellcrank show``: machines and results in the browser, with a program behind the page --------
@dataclass(frozen=True)
class ShowRequest:
    """What is to be shown, and to whom."""

    what: Sequence[str]
    model: str | None
    settings: Sequence[str]
    side_by_side: bool
    options: Sequence[str]
    floating_base: bool
    host: str
    port: int
    browser: bool


def show(request: ShowRequest, output: Output) -> int:
    """Serve the page until Ctrl-C."""
    from bellcrank.view.showing import show as serve

    with output.bar("reading") as bar:
        results = [Path(name).suffix.lower() == ".nc" for name in request.what]
        if len(request.what) > 1 and not all(results):
            raise UsageError("several things are compared if all of them are results (.nc)")
        machine = _machine(request, output) if not all(results) or request.model is not None else None
        bar.stage("compiling")
        things = [machine] if machine is not None and not all(results) else [
            _run_to_show(name, None if machine is None else machine[0]) for name in request.what]
        bar.stage("drawing")
        try:
            view = serve(*things, labels=[Path(name).stem for name in request.what],
                         side_by_side=request.side_by_side or None, host=request.host, port=request.port,
                         browser=request.browser, block=False)
        except (ModelError, StateError) as error:
            raise UsageError(str(error)) from error
    for note in view.scene.notes:
        output.warn(note)
    for text in view.scene.about:
        output.text(text)
    output.text(f"{view.scene.title} is shown at {view.url} (Ctrl-C ends it)")
    output.data({"command": "show", "status": "shown", "model": view.scene.title, "url": view.url,
                 "tracks": len(view.scene.tracks), "notes": [*view.scene.notes, *view.scene.about]})
    view.wait()
    return FINE


def _machine(request: ShowRequest, output: Output) -> tuple[Any, Any]:
    """The system, and the state that settings ask for."""
    from bellcrank.compiled.compile import compile

    name = request.model if request.model is not None else request.what[0]
    mechanism, report = read_model(name, request.options, request.floating_base)
    warn_of(report, output)
    system = compile(mechanism, lock="massless")
    settings = settings_of(system, request.settings)
    system = with_settings(system, settings)
    return system, assemble(system, settings) if request.settings else None


def _run_to_show(name: str, system: Any) -> Any:
    """A result with the machine it is said to be of, or with that in its file."""
    from bellcrank.simulate.netcdf import open_result

    result = open_result(name)
    try:
        return result.rebuild() if system is None else result.attach(system)
    except BellcrankError as error:
        more = "; or say which machine it is of: --model MODEL" if system is None else ""
        raise UsageError(f"{name}: {error}{more}") from error
