"""Drawing results, without a display and without matplotlib's global state."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bellcrank.errors import FileError, ModelError, StateError
from bellcrank.simulate.plot_lines import NamedLine, abscissa, lines_of, phases_of, worth_drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from bellcrank.simulate.result import Result

__all__ = ["Size", "draw"]

#: width of a picture: of a column or a page of a journal, or width and height [mm]
Size = str | Sequence[float] | None
#: samples of a batch that are drawn, those of them and lines that a legend names
_SAMPLES, _SOME, _NAMED = 20, 10, 32
_MILLIMETER = 1.0 / 25.4


class _Layout(NamedTuple):
    """Sizes: of the figure [inch], of text and lines [points]; where legends stand; dots an inch."""

    width: float
    panel: float
    whole: float | None
    text: float
    line: float
    beside: bool
    dots: int


def draw(result: Result, what: tuple[str, ...], against: str, file: str | os.PathLike[str] | None, *,
         phase: str | Sequence[str] | None = None, size: Size = None, every: bool = False) -> Figure:
    """See `Result.plot`."""
    if "time" not in result["q"].dims:
        raise StateError("plot: this selection has no time left to draw along")
    layout = _sizes(size)
    names = _samples(result)
    if phase is not None:
        joints = (phase,) if isinstance(phase, str) else tuple(phase)
        panels = [(x, [y]) for joint in joints for x, y in phases_of(result, joint)]
    else:
        lines = [line for name in what for line in lines_of(result, name)]
        if not lines:
            raise ModelError("plot: nothing to draw; name a variable or a joint")
        along = abscissa(result, against)
        groups: dict[tuple[str, str], list[NamedLine]] = {}
        for line in lines if every else worth_drawing(lines):
            groups.setdefault((line.quantity, line.units), []).append(line)
        panels = [(along, members) for members in groups.values()]
    figure = _figure(panels, layout, names, str(result.attrs.get("mechanism", "")), phase is not None)
    if file is not None:
        try:
            figure.savefig(file, dpi=layout.dots)
        except (OSError, ValueError) as error:
            raise FileError(f"{os.fspath(file)}: the picture cannot be written ({error})") from error
    return figure


def _sizes(size: Size) -> _Layout:
    if size is None:
        return _Layout(8.0, 2.4, None, 10.0, 1.3, True, 150)
    if isinstance(size, str):
        if size not in ("column", "page"):
            raise ModelError(f"plot: size is 'column' (85 mm), 'page' (170 mm) or (width, height) in mm, got {size!r}")
        column = size == "column"
        return _Layout((85.0 if column else 170.0) * _MILLIMETER, (45.0 if column else 50.0) * _MILLIMETER, None, 8.0,
                       1.0, not column, 300)
    try:
        width, height = (float(x) * _MILLIMETER for x in size)
    except (TypeError, ValueError):
        raise ModelError(f"plot: size is 'column', 'page' or (width, height) in mm, got {size!r}") from None
    if not 0.4 <= width <= 100.0 or not 0.4 <= height <= 100.0:
        raise ModelError(f"plot: a picture is between 10 and 2540 mm wide and high, got {size!r}")
    return _Layout(width, height, height, 8.0, 1.0, width > 4.5, 300)


def _samples(result: Result) -> list[str]:
    """What the samples of a batch are called: by what differs between them, if that is known."""
    dims = [str(d) for d in result["q"].dims if d not in ("time", "coordinate")]
    shape = tuple(result.sizes[d] for d in dims)
    if not dims:
        return []
    parameters = {} if result.system is None else result.system.model.values
    differing = {name: value for name, value in parameters.items() if np.shape(value) == shape}
    for d in dims:
        if d in result.coords and result[d].dims == (d,) and result[d].dtype.kind in "fiu":
            differing[d] = np.broadcast_to(np.expand_dims(result[d].values, list(range(1, len(dims) - dims.index(d)))),
                                           shape)
    if not 0 < len(differing) <= 2:
        return [f"sample {', '.join(map(str, index))}" for index in np.ndindex(*shape)]
    return [", ".join(f"{name} = {float(np.asarray(value)[index]):.4g}" for name, value in differing.items())
            for index in np.ndindex(*shape)]


def _figure(panels: list[tuple[NamedLine, list[NamedLine]]], layout: _Layout, names: list[str], title: str, phase: bool
            ) -> Figure:
    from matplotlib.figure import Figure

    rows = len(panels)
    if not rows:
        raise ModelError("plot: there is nothing to plot; name at least one quantity, such as a joint")
    room = sum(_above([line.label for line in members], layout) for _, members in panels)
    height = layout.whole or (0.5 * layout.text / 10.0 + layout.panel * rows + room)
    figure = Figure(figsize=(layout.width, height), layout="constrained")
    axes = figure.subplots(rows, 1, sharex=not phase, squeeze=False)[:, 0]
    for axis, (along, members) in zip(axes, panels, strict=True):
        _panel(axis, along, members, layout, names, phase)
        if phase or axis is axes[-1]:
            axis.set_xlabel(f"{along.label} [{_units(along.units)}]", fontsize=layout.text)
    figure.align_ylabels()
    samples = max(line.values.shape[1] for _, members in panels for line in members)
    more = f" ({_SAMPLES} of {samples} samples)" if samples > _SAMPLES else ""
    only = panels[0][1][0].label if rows == 1 and len(panels[0][1]) == 1 and not phase else ""
    figure.suptitle(": ".join(x for x in (title + more, only) if x), fontsize=1.1 * layout.text)
    return figure


def _panel(axis: Axes, along: NamedLine, members: list[NamedLine], layout: _Layout, names: list[str], phase: bool
           ) -> None:
    """One set of axes. Several samples of one line have colors and names of their own; of several lines one for each
    line."""
    drawn: list[Any] = []
    labels: list[str] = []
    shown = min(members[0].values.shape[1], _SAMPLES)
    apart = len(members) == 1 and shown > 1
    for k, line in enumerate(members):
        x = np.broadcast_to(along.values[:, :_SAMPLES], line.values[:, :_SAMPLES].shape)
        for j in range(shown):
            color = _shade(j, shown) if apart else f"C{k % 10}"
            style = ("-", "--", ":", "-.")[k // 10 % 4]
            curve, = axis.plot(x[:, j], line.values[:, j], style, color=color, linewidth=layout.line,
                               alpha=1.0 if apart or shown == 1 else 0.5)
            if phase:
                axis.plot(x[:1, j], line.values[:1, j], "o", color=color, markersize=3.0 * layout.line)
            if apart or j == 0:
                drawn.append(curve)
                labels.append(names[j] if apart else line.label)
    quantity = members[0].quantity
    told = f"{quantity} of {members[0].label}" if phase else members[0].label if apart else quantity
    axis.set_ylabel(f"{told} [{_units(members[0].units)}]", fontsize=layout.text)
    axis.tick_params(labelsize=0.9 * layout.text)
    axis.xaxis.get_offset_text().set_fontsize(0.9 * layout.text)
    axis.yaxis.get_offset_text().set_fontsize(0.9 * layout.text)
    axis.grid(True, alpha=0.3)
    axis.margins(x=0.05 if phase else 0.0)
    if len(drawn) > 1 or (not phase and members[0].label != quantity):
        if apart and len(drawn) > _SOME:  # a row of colors: every so many are enough
            step = -(-len(drawn) // _SOME)
            drawn, labels = drawn[::step], labels[::step]
        if len(drawn) <= _NAMED:
            _legend(axis, drawn, labels, layout)


def _legend(axis: Axes, drawn: list[Any], labels: list[str], layout: _Layout) -> None:
    """Beside the axes or above them: never over curves."""
    text = (0.9 if len(drawn) <= 8 else 0.7) * layout.text
    rows = max(1.0, 0.8 * 72.0 * layout.panel / (1.5 * text))  # that fit beside the axes
    place: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0), "ncols": -(-len(drawn) // int(rows))}
    if not layout.beside:
        place = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.01), "ncols": _columns(labels, text, layout)}
    axis.legend(drawn, labels, borderaxespad=0.0, fontsize=text, frameon=False, **place)


def _columns(labels: Sequence[str], text: float, layout: _Layout) -> int:
    """Those of a legend that fit above the axes."""
    return max(1, min(5, int(0.7 * 72.0 * layout.width / (text * (3.5 + 0.55 * max(map(len, labels)))))))


def _above(labels: Sequence[str], layout: _Layout) -> float:
    """How much room legends above axes take [inch]."""
    if layout.beside or not 1 < len(labels) <= _NAMED:
        return 0.0
    text = (0.9 if len(labels) <= 8 else 0.7) * layout.text
    return 1.5 * text / 72.0 * -(-len(labels) // _columns(labels, text, layout))


def _shade(j: int, n: int) -> Any:
    """A color of a row of n."""
    import matplotlib

    return f"C{j % 10}" if n <= 10 else matplotlib.colormaps["viridis"](j / (n - 1))


def _units(units: str) -> str:
    return units.replace("^2", "\N{SUPERSCRIPT TWO}").replace("N m", "N\N{NO-BREAK SPACE}m")
