"""Pictures of bodies that deform: deformed beside undeformed, without a display."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import FileError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bellcrank.mechanism.flexible.flexible_body import FlexibleBody

__all__ = ["Panel", "draw_panels"]

#: displacements are drawn as this part of the body's extent if no scale is given
_SHOWN = 0.12
#: what is drawn over the length of a beam: entry of a displacement, and its units
_ENTRIES = {"y": (1, "m"), "z": (2, "m"), "stretch": (0, "m"), "twist": (3, "rad")}


class Panel(NamedTuple):
    """One picture."""

    title: str
    moved: Floats  #: (n, 6): displacements and rotations of the nodes in the body frame
    values: Floats | None = None  #: (n,), what colors mean; without, the distance that nodes move
    label: str = "moved [m]"


def draw_panels(body: FlexibleBody, panels: Sequence[Panel], scale: float | None,
                file: str | os.PathLike[str] | None) -> Figure:
    """Pictures beside each other. `scale`: how much larger displacements are drawn than they are."""
    from matplotlib.figure import Figure

    line = np.linalg.matrix_rank(body.nodes - body.nodes[0], tol=1e-9 * _extent(body)) <= 1 and body.edges is not None
    figure = Figure(figsize=(max(4.2, 3.4 * len(panels)), 2.6 if line else 3.2), layout="constrained")
    for i, panel in enumerate(panels):
        axes: Any = figure.add_subplot(1, len(panels), i + 1, **({} if line else {"projection": "3d"}))
        axes.set_title(panel.title, fontsize=9)
        (_draw_beam if line else _draw_solid)(figure, axes, body, panel, scale)
    if file is not None:
        try:
            figure.savefig(file, dpi=110)
        except (OSError, ValueError) as error:
            raise FileError(f"{os.fspath(file)}: the picture cannot be written ({error})") from error
    return figure


def _extent(body: FlexibleBody) -> float:
    return float(np.ptp(body.nodes, axis=0).max()) or 1.0


def _draw_beam(figure: Figure, axes: Any, body: FlexibleBody, panel: Panel, scale: float | None) -> None:
    """What moves most, over the length; deflections as the cubics between nodes that they are."""
    from scipy.interpolate import CubicHermiteSpline

    x, moved = body.nodes[:, 0], panel.moved * (1.0 if scale is None else scale)
    size = {name: float(np.abs(moved[:, i]).max()) * (_extent(body) if name == "twist" else 1.0)
            for name, (i, _) in _ENTRIES.items()}
    across = max(size["y"], size["z"])
    kind = max(("y", "z") if across > 1e-6 * max(size.values()) else size, key=lambda name: size[name])
    entry, units = _ENTRIES[kind]
    fine = np.linspace(x[0], x[-1], 20 * len(x))
    shown = moved[:, entry]
    curve = np.interp(fine, x, shown)
    if entry in (1, 2):
        curve = CubicHermiteSpline(x, shown, moved[:, 5] if entry == 1 else -moved[:, 4])(fine)
    axes.plot(x, 0.0 * x, color="0.7", linewidth=1.0, marker=".", markersize=3)
    axes.plot(fine, curve, color="C0", linewidth=1.5)
    axes.plot(x, shown, "o", color="C0", markersize=3)
    axes.set_xlabel("x [m]")
    axes.set_ylabel(f"{kind} [{units}]" + ("" if scale in (None, 1.0) else f", {scale:g} times"))
    axes.grid(True, alpha=0.3)


def _draw_solid(figure: Figure, axes: Any, body: FlexibleBody, panel: Panel, scale: float | None) -> None:
    """The edges of the surface, or the nodes alone; colors by values."""
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from mpl_toolkits.mplot3d.art3d import Line3DCollection  # type: ignore[import-untyped]

    far = np.linalg.norm(panel.moved[:, :3], axis=1)
    values = far if panel.values is None else panel.values
    factor = scale if scale is not None else _SHOWN * _extent(body) / max(float(far.max()), 1e-300)
    places = body.nodes + factor * panel.moved[:, :3]
    colors = ScalarMappable(Normalize(float(np.nanmin(values)), float(np.nanmax(values))), "viridis")
    if body.edges is None or not len(body.edges):
        axes.scatter(*body.nodes.T, s=1, color="0.8")
        axes.scatter(*places.T, s=3, c=values, cmap="viridis")
    else:
        axes.add_collection3d(Line3DCollection(body.nodes[body.edges], colors="0.8", linewidths=0.4))
        axes.add_collection3d(Line3DCollection(places[body.edges], colors=colors.to_rgba(values[body.edges].mean(1)),
                                               linewidths=0.9))
    both = np.concatenate([body.nodes, places])
    low, high = both.min(axis=0), both.max(axis=0)
    axes.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
    axes.set_box_aspect(np.maximum(high - low, 1e-3 * _extent(body)))
    axes.set_axis_off()
    if panel.values is not None:
        figure.colorbar(colors, ax=axes, shrink=0.7, label=panel.label)
