"""A result as a table of comma-separated values, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.errors import StateError
from bellcrank.simulate.fields import DERIVED, STATE, TOPOLOGY, WRENCHES
from bellcrank.simulate.plot_lines import lines_of

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["table_text"]

#: machines with more joints that close loops leave these out
_MOST = 64
_UNITS = {"q": "coordinate_units", "u": "speed_units", "tau": "force_units",
          "wrench": "wrench_units"}


def table_text(result: Result, what: Sequence[str] = ()) -> str:
    """One row per sample, the time first; numbers are written to the last bit. See `Result.to_csv`."""
    if result["q"].dims[:-1] != ("time",):
        batch = [str(d) for d in result["q"].dims if d not in ("time", "coordinate")]
        raise StateError(f"to_csv: a table holds one run; choose one of the batch, such as result.isel({batch[0]}=0)"
                         if batch else "to_csv: a table has a row per time, and this result has no times")
    columns = [("time [s]", result["time"].values), *(_named(result, what) if what else _recorded(result))]
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([head for head, _ in columns])
    writer.writerows(zip(*(values.tolist() for _, values in columns), strict=True))  # as short as they read back
    return text.getvalue()


def _recorded(result: Result) -> list[tuple[str, Floats]]:
    """Coordinates, speeds, forces if they were recorded, energies, loop errors; outputs, and what elements did."""
    found: list[tuple[str, Floats]] = []
    for field in (*STATE, *DERIVED, WRENCHES):
        if field.name not in result:
            continue
        values = result[field.name].values
        if not field.along:
            found.append((f"{field.name} [{field.units}]", values))
            continue
        for i, (name, unit) in enumerate(zip(result[field.along].values, result[_UNITS[field.name]].values,
                                             strict=True)):
            found.append((f"{field.name}.{name} [{unit}]", values[:, i]))
    return [*found, *_computed(result)]


def _computed(result: Result) -> list[tuple[str, Floats]]:
    """Other numbers over time: one column each, or one for every entry along what else they have."""
    known = {field.name for field in (*STATE, *DERIVED, WRENCHES, TOPOLOGY)}
    found = []
    for key, array in result.data_vars.items():
        if key in known or array.dims[:1] != ("time",) or array.dtype.kind != "f":
            continue
        labels = [[str(x) for x in (array[d].values if d in array.coords else range(array.sizes[d]))]
                  for d in array.dims[1:]]
        units = str(array.attrs.get("units", "1"))
        for index in np.ndindex(*array.shape[1:]):
            name = ".".join([str(key), *(own[i] for own, i in zip(labels, index, strict=True))])
            found.append((f"{name} [{units}]", array.values[(slice(None), *index)]))
    return found


def _named(result: Result, what: Sequence[str]) -> list[tuple[str, Floats]]:
    """What `Result.plot` draws by these names; where two lines have one label, with what they are."""
    lines = [line for name in what for line in lines_of(result, name)]
    labels = [line.label for line in lines]
    return [(f"{line.label if labels.count(line.label) == 1 else f'{line.quantity} {line.label}'} [{line.units}]",
             line.values[:, 0]) for line in lines]
