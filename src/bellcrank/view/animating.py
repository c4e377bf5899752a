"""Films and pictures of machines and runs as files: HTML, GIF, MP4, PNG, SVG."""

from __future__ import annotations

import base64
import html
import io
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.errors import BellcrankError, FileError, ModelError
from bellcrank.files.model_files import write_bytes
from bellcrank.system.kernels import Wrenches
from bellcrank.view.flat_drawing import draw_pictures, svg_of
from bellcrank.view.scene import Scene
from bellcrank.view.scenes import TracePoint, scene_of
from bellcrank.view.standalone_page import page_of

__all__ = ["ENDINGS", "SHOWN", "Animation", "BrowserError", "animate", "browser_program", "opened_page",
           "take_pictures", "wait_until_shown", "why_not"]


# -- pictures taken by a browser that shows the page without a window: stills and films as the page looks ---
_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
#: software rendering, the same on every machine
ARGUMENTS = ("--use-angle=swiftshader", "--enable-unsafe-swiftshader", "--hide-scrollbars")
#: seconds until a page must be there
_PATIENCE = 60.0


class BrowserError(BellcrankError):
    """A browser did not do what it was asked for."""


def browser_program() -> str | None:
    """The browser to use: the one that the environment variable BELLCRANK_BROWSER names, or one of Chromium's kin."""
    named = os.environ.get("BELLCRANK_BROWSER")
    if named:
        return shutil.which(named)
    return next((found for name in _NAMES if (found := shutil.which(name))), None)


def why_not() -> str:
    """What is missing for pictures by a browser; nothing if they can be taken."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "the Python package playwright (pip install 'bellcrank[view]')"
    return "" if browser_program() else "a browser (Chromium or Chrome; or name one in BELLCRANK_BROWSER)"


@contextmanager
def opened_page(width: int, height: int, scale: float = 1.0) -> Iterator[Any]:
    """An empty page of a browser that has no network."""
    from playwright.sync_api import Error, sync_playwright

    root = hasattr(os, "geteuid") and os.geteuid() == 0  # where Chromium's own sandbox does not start
    arguments = [*ARGUMENTS, *(["--no-sandbox"] if root else [])]
    try:
        with sync_playwright() as play:
            browser = play.chromium.launch(executable_path=browser_program(), args=arguments)
            try:
                context = browser.new_context(offline=True, viewport={"width": width, "height": height},
                                              device_scale_factor=scale)
                yield context.new_page()
            finally:
                browser.close()
    except Error as error:
        raise BrowserError(f"the browser failed: {str(error).splitlines()[0]}") from error


def wait_until_shown(page: Any) -> None:
    """Wait until the page has drawn its first picture, or say what it says instead."""
    begin = time.monotonic()  # asked again and again from here: the page's policy forbids to evaluate text in it
    while not page.evaluate("Boolean(window.bellcrank && window.bellcrank.ready)"):
        if time.monotonic() - begin > _PATIENCE:
            said = page.evaluate("document.getElementById('app')?.textContent ?? ''")
            raise BrowserError(f"the page showed nothing within {_PATIENCE} s: {said[:300]}")
        page.wait_for_timeout(20)


def take_pictures(scene: Scene, times: Sequence[float], *, size: tuple[int, int], theme: str = "light",
                  show: Mapping[str, bool] | None = None, view: str | None = None) -> list[bytes]:
    """PNG pictures of a scene at the given times, without buttons and plots around them. Cost: about a tenth of a
    second each."""
    with ThreadPoolExecutor(1) as thread:  # notebooks have a loop of events in theirs, which playwright refuses
        return thread.submit(_taken, scene, times, size, theme, show or {}, view).result()


def _taken(scene: Scene, times: Sequence[float], size: tuple[int, int], theme: str, show: Mapping[str, bool],
           view: str | None) -> list[bytes]:
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder, opened_page(*size) as page:
        file = Path(folder) / "scene.html"
        file.write_text(page_of(scene), encoding="utf-8")
        page.goto(file.as_uri())
        wait_until_shown(page)
        page.evaluate("bellcrank.film(true)")
        page.evaluate("theme => bellcrank.view.setTheme(theme)", theme)
        for name, on in show.items():
            page.evaluate("([name, on]) => bellcrank.show(name, on)", [name, on])
        if view is not None:
            page.evaluate("name => bellcrank.from(name)", view)
        found = []
        for when in times:
            text = page.evaluate("t => { bellcrank.view.seek(t); return bellcrank.snapshot(); }", float(when))
            found.append(base64.b64decode(text.partition(",")[2]))
        return found


ENDINGS = (".html", ".gif", ".mp4", ".png", ".svg")
#: what can be shown at first, as the page's keys have it
SHOWN = ("symbols", "axes", "names", "bodyNames", "frames", "forces", "masses", "traces", "ghosts", "floor")
#: pictures of a film at most
_MOST_PICTURES = 1800


def animate(*things: Any, file: str | os.PathLike[str] | None = None, labels: Sequence[str] | None = None,
            traces: Sequence[TracePoint] = (), show: Sequence[str] = (), forces: bool | None = None,
            wrenches: Wrenches = None, frames: int | None = None, side_by_side: bool | None = None,
            title: str | None = None, size: tuple[int, int] = (960, 600), fps: float = 25.0, speed: float = 1.0,
            time: float | None = None, theme: str = "light", view: str | None = None, renderer: str = "auto"
            ) -> Animation:
    """Show machines and runs: mechanisms, systems, (system, state) pairs, results; several over each other.

    `file` says by its ending what is written: ``.html``, one page with all controls that opens from disk, offline, in
    any browser (about 250 kB plus 10 to 25 bytes for each body and picture); ``.gif`` and ``.mp4``, films; ``.png``
    and ``.svg``, stills at `time` (the beginning if None). It is put in place when it is complete. Without a file,
    notebooks show the page.

    `labels` name what is compared, `traces` are bodies or (body, point) whose paths are drawn, `show` is what is seen
    at first, some of "symbols", "axes", "names", "bodyNames", "frames", "forces", "masses", "traces", "ghosts",
    "floor". `forces` are arrows of reactions, springs and wrenches (None: computed unless the machine is large),
    `wrenches` external ones that acted. `frames` is how many samples of a run become frames (None: 60 a second, more
    where bodies turn fast, 3000 at most); curves show all samples. Batches lie `side_by_side`.

    Films and stills have `size` pixels, `fps` pictures a second, `speed` 1 in real time; `theme` is "light" or
    "dark", `view` "front", "side", "top" or "corner". They are taken by Chromium where it and playwright are
    installed, else drawn by matplotlib, simpler; `renderer` "browser" or "matplotlib" insists on one. MP4 needs
    ffmpeg.

    >>> import bellcrank as bc
    >>> film = bc.animate(bc.load("four_bar"), title="linkage")
    >>> film.scene.title, len(film.page()) < 400_000
    ('linkage', True)
    """
    for name in show:
        if name not in SHOWN:
            raise ModelError(f"animate: show={name!r} is not one of {', '.join(SHOWN)}")
    if theme not in ("light", "dark"):
        raise ModelError(f"animate: theme must be 'light' or 'dark', got {theme!r}")
    if renderer not in ("auto", "browser", "matplotlib"):
        raise ModelError(f"animate: renderer must be 'auto', 'browser' or 'matplotlib', got {renderer!r}")
    target = None if file is None else _target(file)
    scene = scene_of(*things, labels=labels, traces=traces, forces=True if "forces" in show and forces is None
                     and any(hasattr(x, "dims") for x in things) else forces, wrenches=wrenches, frames=frames,
                     side_by_side=side_by_side, title=title)
    made = Animation(replace(scene, shown=dict.fromkeys(show, True)))
    if target is not None:
        made.save(target, size=size, fps=fps, speed=speed, time=time, theme=theme, view=view, renderer=renderer)
    return made


def _target(file: str | os.PathLike[str]) -> Path:
    path = Path(os.fsdecode(file))
    if path.suffix.lower() not in ENDINGS:
        raise FileError(f"{path}: the name says what is written; it must end in {', '.join(ENDINGS)}")
    return path


class Animation:
    """A scene that can be saved; in notebooks the page itself, in a frame of its own."""

    def __init__(self, scene: Scene) -> None:
        self.scene = scene

    def page(self) -> str:
        """The page, as text: one file that opens offline."""
        return page_of(self.scene)

    def save(self, file: str | os.PathLike[str], *, size: tuple[int, int] = (960, 600), fps: float = 25.0,
             speed: float = 1.0, time: float | None = None, theme: str = "light", view: str | None = None,
             renderer: str = "auto") -> Path:
        """Write it; see `animate`. Returns where it is."""
        target = _target(file)
        ending = target.suffix.lower()
        if ending == ".html":
            content = self.page().encode("utf-8")
        elif ending == ".svg":
            content = svg_of(self.scene, time, width=size[0], height=size[1]).encode("utf-8")
        elif ending == ".png":
            content = next(iter(self._pictures([self._start if time is None else time], size, theme, view, renderer)))
        else:
            if not (fps > 0.0 and speed > 0.0):
                raise ModelError(f"animate: fps and speed must be positive, got {fps} and {speed}")
            if ending == ".mp4":
                _ffmpeg(target)
            pictures = self._pictures(self._times(fps, speed), _even(size), theme, view, renderer)
            content = _gif(pictures, fps) if ending == ".gif" else _mp4(pictures, fps, target)
        write_bytes(target, content)
        return target

    @property
    def _start(self) -> float:
        return float(min(t.times[0] for t in self.scene.tracks))

    def _times(self, fps: float, speed: float) -> list[float]:
        end = float(max(t.times[-1] for t in self.scene.tracks))
        count = round((end - self._start) / speed * fps) + 1
        if count > _MOST_PICTURES:
            raise ModelError(f"animate: a film of {count} pictures is too long (at most {_MOST_PICTURES}); show it "
                             "faster (speed), with fewer pictures a second (fps), or write an .html file")
        return [float(t) for t in np.linspace(self._start, end, max(count, 1))]

    def _pictures(self, times: Sequence[float], size: tuple[int, int], theme: str, view: str | None, renderer: str
                  ) -> Iterable[bytes]:
        missing = why_not() if renderer != "matplotlib" else "wanted otherwise"
        if not missing:
            return take_pictures(self.scene, times, size=size, theme=theme, view=view)
        if renderer == "browser":
            raise ModelError(f"animate: pictures by a browser need {missing}; renderer='matplotlib' draws simpler ones")
        return draw_pictures(self.scene, times, size=size, theme=theme)

    def _repr_html_(self) -> str:
        page = html.escape(self.page(), quote=True)
        return (f'<iframe srcdoc="{page}" sandbox="allow-scripts allow-downloads" style="width:100%;height:480px;'
                'border:0;border-radius:8px" loading="lazy">The moving picture is not shown here: save it by '
                '<code>.save("run.html")</code>.</iframe>')

    def __repr__(self) -> str:
        frames = max(len(t.times) for t in self.scene.tracks)
        return f"<Animation {self.scene.title!r}: {len(self.scene.tracks)} tracks, {frames} pictures>"


def _even(size: tuple[int, int]) -> tuple[int, int]:
    """Films want even sizes."""
    return size[0] + size[0] % 2, size[1] + size[1] % 2


def _gif(pictures: Iterable[bytes], fps: float) -> bytes:
    from PIL import Image

    images = [Image.open(io.BytesIO(p)).convert("RGB").quantize(128, dither=Image.Dither.NONE) for p in pictures]
    out = io.BytesIO()
    images[0].save(out, format="GIF", save_all=True, append_images=images[1:], duration=max(20, round(1000.0 / fps)),
                   loop=0, optimize=False)
    return out.getvalue()


def _ffmpeg(target: Path) -> str:
    program = shutil.which("ffmpeg")
    if program is None:
        raise ModelError(f"{target}: MP4 films need ffmpeg (apt install ffmpeg, brew install ffmpeg); .gif and .html "
                          "do not")
    return program


def _mp4(pictures: Iterable[bytes], fps: float, target: Path) -> bytes:
    with tempfile.TemporaryDirectory(prefix="bellcrank-") as folder:
        film = Path(folder) / "film.mp4"
        command = [_ffmpeg(target), "-loglevel", "error", "-y", "-f", "image2pipe", "-framerate", f"{fps:g}", "-i", "-",
                   "-c:v", "libx264", "-pix_fmt", "yuv420p", "-crf", "20", "-movflags", "+faststart", str(film)]
        done = subprocess.run(command, input=b"".join(pictures), capture_output=True, check=False)
        if done.returncode or not film.exists():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise FileError(f"{target}: ffmpeg failed: {said[-1] if said else done.returncode}")
        return film.read_bytes()
