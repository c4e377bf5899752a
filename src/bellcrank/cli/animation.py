"""``bellcrank animate``: machines and results as pages, films and stills."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bellcrank.cli.application import FINE
from bellcrank.cli.models import assemble, read_model, settings_of, warn_of, with_settings
from bellcrank.cli.output import Output, UsageError
from bellcrank.errors import BellcrankError, FileError, ModelError, StateError

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["FilmRequest", "animate"]


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
        return _result(request, output)
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


def _result(request: FilmRequest, output: Output) -> Result:
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
