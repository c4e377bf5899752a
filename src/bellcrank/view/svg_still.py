"""One picture of a scene as SVG, without a browser: for notebooks and pages of documentation."""

from __future__ import annotations

import html

from bellcrank.view.flat_drawing import flat_pieces, flat_view
from bellcrank.view.scene import Scene

__all__ = ["svg_of"]

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
