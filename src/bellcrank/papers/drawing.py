"""Pictures of items by matplotlib, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np

from bellcrank.errors import FileError
from bellcrank.papers.item import ItemResult, PaperItem, PlotLine

__all__ = ["draw", "missing"]

#: points of a line that are drawn: more are not seen
_POINTS = 120


def missing() -> str:
    """What is to be installed before pictures can be drawn; empty if nothing is."""
    return "" if find_spec("matplotlib") is not None else "matplotlib"


def draw(item: PaperItem, result: ItemResult, path: Path) -> None:
    """Draw the plot of an item into a file (.svg, .png, .pdf)."""
    if missing():
        raise FileError(f"{path}: pictures are drawn by {missing()}, which is not installed")
    import matplotlib
    from matplotlib.figure import Figure

    plot = result.plot
    with matplotlib.rc_context({"svg.hashsalt": item.name, "svg.fonttype": "none", "path.simplify": True}):
        figure = Figure(figsize=(6.4, 3.8), layout="constrained")
        axis = figure.subplots()
        for line in plot.lines:
            x, y = _thinned(line)
            axis.plot(x, y, line.style, label=line.label, linewidth=1.2, markersize=3.5)
        axis.set(xlabel=plot.x, ylabel=plot.y, xscale="log" if plot.log_x else "linear",
                 yscale="log" if plot.log_y else "linear")
        axis.grid(True, alpha=0.3)
        axis.legend(fontsize="small")
        axis.set_title(item.name, fontsize="medium")
        try:
            figure.savefig(path, dpi=150, metadata={"Date": None} if path.suffix == ".svg" else None)
        except (OSError, ValueError) as error:
            raise FileError(f"{path}: cannot be written ({error})") from error


def _thinned(line: PlotLine) -> tuple[np.ndarray, np.ndarray]:
    x, y = np.asarray(line.x, dtype=float), np.asarray(line.y, dtype=float)
    if len(x) <= _POINTS:
        return x, y
    kept = np.unique(np.linspace(0, len(x) - 1, _POINTS).round().astype(int))
    return x[kept], y[kept]
