"""A scene drawn flat: polygons and lines, sorted from far to near. For stills and films where no browser is.

Shapes become a few shaded polygons (balls are discs, meshes their convex hulls), seen from afar without perspective;
what is nearer is painted later. It is meant for small pictures, not for many triangles.
"""

from __future__ import annotations

import html
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.view.scene import DrawnShape, Extension, Scene, SceneModel, Track, matrices, turned

__all__ = ["FlatPiece", "FlatView", "draw_pictures", "flat_pieces", "flat_view", "svg_of"]

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
    for time in times:
        yield _picture(scene, time, view, size, theme)


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
