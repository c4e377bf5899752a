"""``bellcrank show``: machines and results in the browser, with a program behind the page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bellcrank.cli.application import FINE
from bellcrank.cli.models import assemble, read_model, settings_of, warn_of, with_settings
from bellcrank.cli.output import Output, UsageError
from bellcrank.errors import BellcrankError, ModelError, StateError

__all__ = ["ShowRequest", "show"]


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
            _result(name, None if machine is None else machine[0]) for name in request.what]
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


def _result(name: str, system: Any) -> Any:
    """A result with the machine it is said to be of, or with that in its file."""
    from bellcrank.simulate.netcdf import open_result

    result = open_result(name)
    try:
        return result.rebuild() if system is None else result.attach(system)
    except BellcrankError as error:
        more = "; or say which machine it is of: --model MODEL" if system is None else ""
        raise UsageError(f"{name}: {error}{more}") from error
