"""Drawing results, without a display and without matplotlib's global state."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import FileError, ModelError, StateError
from bellcrank.simulate.fields import DERIVED

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from bellcrank.simulate.result import Result

__all__ = ["draw"]

#: samples of a batch that are drawn, and lines that a legend still names
_SAMPLES, _NAMED = 20, 12
_ENERGIES = ("kinetic_energy", "potential_energy", "stored_energy", "energy")
_STATES = {"q": ("coordinate", "coordinate_units"), "u": ("speed", "speed_units"), "tau": ("speed", "force_units")}


class _Line(NamedTuple):
    """Something to draw: values (time, samples)."""

    label: str
    quantity: str
    units: str
    values: Floats


def draw(result: Result, what: tuple[str, ...], against: str, file: str | os.PathLike[str] | None) -> Figure:
    """See `Result.plot`."""
    from matplotlib.figure import Figure

    if "time" not in result["q"].dims:
        raise StateError("plot: this selection has no time left to draw along")
    lines = [line for name in what for line in _lines(result, name)]
    if not lines:
        raise ModelError("plot: nothing to draw; name a variable or a joint")
    along = _abscissa(result, against)
    groups: dict[tuple[str, str], list[_Line]] = {}
    for line in lines:
        groups.setdefault((line.quantity, line.units), []).append(line)
    figure = Figure(figsize=(7.0, 1.2 + 2.6 * len(groups)), layout="constrained")
    axes = figure.subplots(len(groups), 1, sharex=True, squeeze=False)[:, 0]
    for axis, ((quantity, units), members) in zip(axes, groups.items(), strict=True):
        colours: list[str | None] = [f"C{i % 10}" for i in range(len(members))]
        for colour, line in zip(colours, members, strict=True):
            shown = line.values[:, :_SAMPLES]
            x = np.broadcast_to(along.values[:, :_SAMPLES], shown.shape)
            drawn = axis.plot(x, shown, color=colour, linewidth=1.2, alpha=1.0 if shown.shape[1] == 1 else 0.6)
            if drawn:
                drawn[0].set_label(line.label)
        axis.set_ylabel(f"{quantity} [{units}]")
        axis.grid(True, alpha=0.3)
        if 1 < len(members) <= _NAMED:
            axis.legend(fontsize="small")
        elif len(members) == 1 and members[0].label != quantity:
            axis.set_title(members[0].label, fontsize="medium")
    axes[-1].set_xlabel(f"{along.label} [{along.units}]")
    figure.suptitle(_title(result, lines[0].values.shape[1]))
    if file is not None:
        try:
            figure.savefig(file, dpi=150)
        except (OSError, ValueError) as error:
            raise FileError(f"{os.fspath(file)}: the picture cannot be written ({error})") from error
    return figure


def _title(result: Result, samples: int) -> str:
    name = str(result.attrs.get("mechanism", ""))
    return name if samples <= _SAMPLES else f"{name} ({_SAMPLES} of {samples} samples)"


def _flat(values: Floats) -> Floats:
    """(time, ...) as (time, samples)."""
    return np.asarray(values, dtype=float).reshape(len(values), int(np.prod(values.shape[1:], dtype=np.int64)))


def _abscissa(result: Result, against: str) -> _Line:
    if against == "time":
        return _Line("time", "time", "s", _flat(result["time"].values))
    found = _lines(result, against)
    if len(found) != 1:
        raise ModelError(f"plot: {against!r} is not one quantity to draw against but "
                         f"{len(found)}: {', '.join(line.label for line in found[:8])}")
    return found[0]


def _lines(result: Result, name: str) -> list[_Line]:
    """What a name stands for: a variable, or the coordinates, speeds or forces of a joint."""
    if name == "energy":
        return [_variable(result, n, "energy") for n in _ENERGIES if n in result]
    if name in _STATES:
        return _entries(result, name, None)
    labels = {"kinetic_energy": "energy", **dict.fromkeys(_ENERGIES, "energy")}
    if name in {f.name for f in DERIVED} or (name in result.data_vars and result[name].dims[:1] == ("time",)):
        return [_variable(result, name, labels.get(name, name.replace("_", " ")))]
    head, _, rest = name.partition(".")
    names = {str(n).rpartition(".")[0] for n in np.atleast_1d(result["coordinate"].values)}
    if head in _STATES and rest and head not in names:
        return _entries(result, head, rest)
    return _entries(result, "q", name)


def _variable(result: Result, name: str, quantity: str) -> _Line:
    if name not in result:
        raise ModelError(f"plot: this result has no {name!r}")
    array = result[name].transpose("time", ...)
    return _Line(name.replace("_", " "), quantity, str(array.attrs.get("units", "1")), _flat(array.values))


def _entries(result: Result, variable: str, joint: str | None) -> list[_Line]:
    if variable not in result:
        raise ModelError(f"plot: this result has no {variable!r}" + (
            "; joint forces are recorded if any act" if variable == "tau" else ""))
    label, units = _STATES[variable]
    if label not in result.dims:
        result = result.expand_dims(label)
    array = result[variable].transpose("time", ..., label)
    places = range(array.sizes[label]) if joint is None else result.entries(joint, label)
    names, each = result[label].values, np.atleast_1d(result[units].values)
    quantity = {"q": "coordinate", "u": "speed", "tau": "force"}[variable]
    return [_Line(str(names[i]), quantity, str(each[i if len(each) > 1 else 0]), _flat(array.values[..., i]))
            for i in places]
