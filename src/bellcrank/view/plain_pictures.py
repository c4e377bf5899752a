"""Pictures by matplotlib, where there is no browser: simpler, but the same machine."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from itertools import groupby

import numpy as np

from bellcrank.view.flat_drawing import FlatView, flat_pieces, flat_view
from bellcrank.view.scene import Scene

__all__ = ["draw_pictures"]

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
