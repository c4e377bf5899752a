"""Films and pictures of machines and runs as files: HTML, GIF, MP4, PNG, SVG.

A scene drawn flat: polygons and lines, sorted from far to near. For stills and films where no browser is.

Shapes become a few shaded polygons (balls are discs, meshes their convex hulls), seen from afar without perspective;
what is nearer is painted later. It is meant for small pictures, not for many triangles.
"""

from __future__ import annotations

import base64
import html
import io
import itertools
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import BellcrankError, FileError, ModelError
from bellcrank.files.model_files import write_bytes
from bellcrank.system.kernels import Wrenches
from bellcrank.view.scene import DrawnShape, Extension, Scene, SceneModel, Track, matrices, turned
from bellcrank.view.scenes import TracePoint, scene_of
from bellcrank.view.standalone_page import page_of

__all__ = ["ENDINGS", "SHOWN", "Animation", "BrowserError", "animate", "browser_program", "opened_page", "svg_of",
           "take_pictures", "wait_until_shown", "why_not"]


# -- A scene drawn flat -----------------------------------------------------------------------------
#: sides of what is round
_SIDES = 14
#: pieces that long rods are cut into, so that what is behind them can be sorted
_CUTS = 4
_SPRING = (0.42, 0.50, 0.58)


@dataclass(frozen=True)
class FlatPiece:
    """A polygon, or a line if it has a width [m]: points (n, 2) to the right and up, and a color with opacity."""

    points: Floats
    color: tuple[float, float, float, float]
    depth: float
    width: float = 0.0


@dataclass(frozen=True)
class FlatView:
    """From where a scene is seen, and what part of the plane it fills."""

    axes: Floats  #: right, up, towards the viewer, by rows
    low: Floats
    high: Floats


def flat_view(scene: Scene, tracks: tuple[Track, ...] | None = None) -> FlatView:
    """The view that holds all that moves, over all frames."""
    toward = np.array(scene.view) / np.linalg.norm(scene.view)
    right = np.cross(scene.up, toward)
    right = right / np.linalg.norm(right)
    axes = np.stack([right, np.cross(toward, right), toward])
    low, high = np.full(2, np.inf), np.full(2, -np.inf)
    for track in tracks or scene.tracks:
        frames = np.unique(np.linspace(0, len(track.times) - 1, 16).astype(int))
        for frame in frames.tolist():
            for piece in _track_pieces(scene, track, frame, axes):
                low = np.minimum(low, piece.points.min(axis=0))
                high = np.maximum(high, piece.points.max(axis=0))
    if not np.isfinite(low).all():
        low, high = -np.ones(2), np.ones(2)
    pad = 0.06 * max(float((high - low).max()), 1e-9)
    return FlatView(axes, low - pad, high + pad)


def flat_pieces(scene: Scene, time: float | None, view: FlatView) -> list[FlatPiece]:
    """What is seen at a time (None: the beginning), far pieces first."""
    found: list[FlatPiece] = []
    for track in scene.tracks:
        frame = 0 if time is None else int(np.abs(track.times - time).argmin())
        found += _track_pieces(scene, track, frame, view.axes)
        found += _traces(scene, track, view.axes)
    return sorted(found, key=lambda piece: piece.depth)


def _traces(scene: Scene, track: Track, axes: Floats) -> Iterator[FlatPiece]:
    for trace in scene.traces:
        path = track.positions[:, trace.body] + turned(track.turns[:, trace.body], np.array(trace.point))
        flat = path @ axes.T
        yield FlatPiece(flat[:, :2], (0.82, 0.29, 0.36, 0.8), float(flat[:, 2].min()),
                        0.15 * scene.models[track.model].thickness)


def _track_pieces(scene: Scene, track: Track, frame: int, axes: Floats) -> Iterator[FlatPiece]:
    model = scene.models[track.model]
    turns = matrices(track.turns[frame])
    for b, body in enumerate(model.bodies):
        place, rotation = track.positions[frame, b], turns[b]
        for shape in body.shapes:
            symbol = shape.role in ("joint", "ground")
            color = shape.color or (*body.color, 1.0)
            if track.color is not None and not symbol:
                color = (*track.color, color[3])
            yield from _shape_pieces(shape, color, axes @ rotation, axes @ place)
    for e in model.extensions:
        yield from _extension(e, track, frame, turns, axes)
    yield from _soft(model, track, frame, turns, axes)


def _shape_pieces(shape: DrawnShape, color: tuple[float, float, float, float], turn: Floats, place: Floats
                  ) -> Iterator[FlatPiece]:
    """`turn` and `place` lead from the body to the axes of the picture."""
    own = turn @ matrices(shape.turn)
    at = place + turn @ np.array(shape.position)
    size = shape.size
    if shape.kind == "sphere":
        yield _disc(at, float(np.mean(size)), color)
    elif shape.kind == "capsule":
        yield from _prism(own, at, size[0], size[1], color, cuts=_CUTS)
        for end in (-0.5, 0.5):
            yield _disc(at + own[:, 2] * end * size[1], size[0], color)
    elif shape.kind == "cylinder":
        yield from _prism(own, at, size[0], size[1], color)
    elif shape.kind == "cone":
        yield from _prism(own, at, size[0], size[1], color, tip=0.0)
    elif shape.kind in ("box", "plane"):
        half = 0.5 * np.array([*size[:2], size[2] if shape.kind == "box" else 0.0])
        for axis in range(3):
            for sign in (-1.0, 1.0):
                u, v = np.zeros(3), np.zeros(3)
                u[(axis + 1) % 3], v[(axis + 2) % 3] = half[(axis + 1) % 3], half[(axis + 2) % 3]
                middle = np.zeros(3)
                middle[axis] = sign * half[axis]
                corners = np.stack([middle - u - v, middle + u - v, middle + u + v, middle - u + v])
                yield from _face(at + corners @ own.T, sign * own[:, axis], color)
    elif shape.kind == "mesh" and shape.vertices is not None:
        yield from _hull(shape.vertices @ own.T + at, color)


def _shaded(color: tuple[float, float, float, float], normal: Floats) -> tuple[float, float, float, float]:
    light = max(0.0, float(normal @ np.array([0.35, 0.62, 0.70])))
    r, g, b, a = color
    return tuple(min(1.0, c * (0.62 + 0.48 * light)) for c in (r, g, b)) + (a,)  # type: ignore[return-value]


def _face(corners: Floats, normal: Floats, color: tuple[float, float, float, float]) -> Iterator[FlatPiece]:
    """A flat face, if it is seen from its outside; corners (n, 3) in the picture's axes."""
    if normal[2] > 1e-9:
        yield FlatPiece(corners[:, :2], _shaded(color, normal), float(corners[:, 2].mean()))


def _disc(at: Floats, radius: float, color: tuple[float, float, float, float]) -> FlatPiece:
    angle = np.linspace(0.0, 2.0 * np.pi, 2 * _SIDES, endpoint=False)
    points = at[:2] + radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return FlatPiece(points, _shaded(color, np.array([0.2, 0.4, 0.89])), float(at[2]) + 0.3 * radius)


def _prism(own: Floats, at: Floats, radius: float, length: float, color: tuple[float, float, float, float],
           tip: float = 1.0, cuts: int = 1) -> Iterator[FlatPiece]:
    """A cylinder, or a cone with the radius `tip` times that of its base at the end."""
    angle = np.linspace(0.0, 2.0 * np.pi, _SIDES + 1)
    ring = np.stack([np.cos(angle), np.sin(angle), np.zeros(_SIDES + 1)], axis=1) * radius
    heights = np.linspace(-0.5, 0.5, cuts + 1) * length
    slope = radius * (1.0 - tip) / max(length, 1e-12)
    for low, high in itertools.pairwise(heights):
        wide = [1.0 - (1.0 - tip) * (h / length + 0.5) for h in (low, high)]
        lower, upper = (at + (ring * w + [0.0, 0.0, h]) @ own.T for w, h in zip(wide, (low, high), strict=True))
        for k in range(_SIDES):
            middle = 0.5 * (angle[k] + angle[k + 1])
            normal = own @ np.array([np.cos(middle), np.sin(middle), slope])
            yield from _face(np.stack([lower[k], lower[k + 1], upper[k + 1], upper[k]]),
                             normal / np.linalg.norm(normal), color)
    for sign, part in ((-1.0, 1.0), (1.0, tip)):
        if part > 0.0:
            yield from _face(at + (ring[:-1] * part + [0.0, 0.0, sign * 0.5 * length]) @ own.T, sign * own[:, 2], color)


def _hull(points: Floats, color: tuple[float, float, float, float]) -> Iterator[FlatPiece]:
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except QhullError:  # flat
        return
    for corners, equation in zip(hull.simplices, hull.equations, strict=True):
        yield from _face(points[corners], equation[:3], color)


def _extension(e: Extension, track: Track, frame: int, turns: Floats, axes: Floats) -> Iterator[FlatPiece]:
    """Springs as waves, others as lines."""
    first, second = (axes @ (track.positions[frame, b] + turns[b] @ np.array(p))
                     for b, p in ((e.first, e.first_point), (e.second, e.second_point)))
    along = second - first
    s = np.linspace(0.0, 1.0, 97 if e.kind == "spring" else 2)
    points = first + s[:, None] * along
    flat = np.hypot(along[0], along[1])
    if e.kind == "spring" and flat > 0.0:
        across = np.array([-along[1], along[0]]) / flat
        swing = e.radius * np.sin(16.0 * np.pi * s) * np.minimum(1.0, np.minimum(s, 1.0 - s) / 0.1)
        points[:, :2] += swing[:, None] * across
    color = _SPRING if track.color is None else track.color
    width = {"spring": 0.35, "damper": 1.4, "rod": 1.6}[e.kind] * e.radius
    yield FlatPiece(points[:, :2], (*color, 1.0), float(points[:, 2].mean()), width)


def _soft(model: SceneModel, track: Track, frame: int, turns: Floats, axes: Floats) -> Iterator[FlatPiece]:
    for soft, amplitude in zip(model.soft, track.amplitudes, strict=True):
        nodes = soft.nodes + soft.shapes @ amplitude[frame]
        points = (track.positions[frame, soft.body] + nodes @ turns[soft.body].T) @ axes.T
        color = (*(track.color or model.bodies[soft.body].color), 1.0)
        if soft.faces is None:
            yield FlatPiece(points[:, :2], color, float(points[:, 2].mean()), 2.0 * soft.radius)
            continue
        corners = points[soft.faces]
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        normals = normals / np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-300)
        for three, normal in zip(corners, normals, strict=True):
            yield from _face(three, normal, color)


# -- one picture of a scene as SVG, without a browser: for notebooks and pages of documentation -----
#: pieces of a still at most; machines with more are better shown by a browser
_MOST = 6000


def svg_of(scene: Scene, time: float | None = None, *, width: int = 420, height: int = 300) -> str:
    """A still of a scene as an SVG element, at a time (the beginning if None).

    >>> import bellcrank as bc
    >>> from bellcrank.view.scenes import scene_of
    >>> svg_of(scene_of(bc.load("four_bar"))).startswith("<svg")
    True
    """
    view = flat_view(scene)
    pieces = flat_pieces(scene, time, view)[-_MOST:]
    wide, tall = (view.high - view.low).tolist()
    scale = min(width / wide, height / tall)
    left, top = 0.5 * (width - scale * wide), 0.5 * (height - scale * tall)
    lines = []
    for piece in pieces:
        points = " ".join(f"{left + (x - view.low[0]) * scale:.1f},{top + (view.high[1] - y) * scale:.1f}"
                          for x, y in piece.points.tolist())
        r, g, b, a = piece.color
        color = f"#{round(255 * r):02x}{round(255 * g):02x}{round(255 * b):02x}"
        clear = "" if a >= 1.0 else f' opacity="{a:.2f}"'
        if piece.width:
            lines.append(f'<polyline points="{points}" fill="none" stroke="{color}" stroke-linejoin="round" '
                         f'stroke-linecap="round" stroke-width="{max(1.0, piece.width * scale):.1f}"{clear}/>')
        else:
            lines.append(f'<polygon points="{points}" fill="{color}" stroke="{color}" stroke-width="0.4"{clear}/>')
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{html.escape(scene.title, quote=True)}">{"".join(lines)}</svg>')


# -- pictures by matplotlib, where there is no browser: simpler, but the same machine ---------------
_BACKGROUND = {"light": "#f3f5f8", "dark": "#161a20"}


def draw_pictures(scene: Scene, times: Sequence[float], *, size: tuple[int, int], theme: str = "light"
                  ) -> Iterator[bytes]:
    """PNG pictures of a scene at the given times."""
    view = flat_view(scene)
    for moment in times:
        yield _picture(scene, moment, view, size, theme)


def _picture(scene: Scene, time: float, view: FlatView, size: tuple[int, int], theme: str) -> bytes:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.collections import LineCollection, PolyCollection
    from matplotlib.figure import Figure

    figure = Figure(figsize=(size[0] / 100.0, size[1] / 100.0), dpi=100, facecolor=_BACKGROUND[theme])
    FigureCanvasAgg(figure)
    axes = figure.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.axis("off")
    wide, tall = (view.high - view.low).tolist()
    scale = min(size[0] / wide, size[1] / tall)  # pixels a meter
    middle = 0.5 * (view.low + view.high)
    axes.set_xlim(middle[0] - 0.5 * size[0] / scale, middle[0] + 0.5 * size[0] / scale)
    axes.set_ylim(middle[1] - 0.5 * size[1] / scale, middle[1] + 0.5 * size[1] / scale)
    pieces = flat_pieces(scene, time, view)
    for order, (lines, some) in enumerate(groupby(pieces, key=lambda piece: piece.width > 0.0)):
        members = list(some)  # one after the other of one kind: a collection draws them in their order
        points, colors = [p.points for p in members], [p.color for p in members]
        if lines:
            widths = [max(0.8, 0.72 * p.width * scale) for p in members]
            axes.add_collection(LineCollection(points, colors=colors, zorder=order, capstyle="round",
                                               linewidths=widths), autolim=False)
        else:
            axes.add_collection(PolyCollection(points, facecolors=colors, edgecolors=colors, linewidths=0.3,
                                               zorder=order), autolim=False)
    ink = "#3a4757" if theme == "light" else "#cfd8e3"
    label = scene.title if not np.isfinite(time) or len(scene.tracks[0].times) < 2 else f"{scene.title}   {time:.2f} s"
    figure.text(0.02, 0.96, label, color=ink, va="top", fontsize=10, parse_math=False)
    out = io.BytesIO()
    figure.savefig(out, format="png", facecolor=figure.get_facecolor())
    return out.getvalue()


# -- films and pictures of machines and runs as files: HTML, GIF, MP4, PNG, SVG ---------------------
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
