"""What a sweep varies, as one table: a grid of values, samples row by row, or every sample at every point of a grid."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bellcrank.arrays import Floats, check_unmasked
from bellcrank.errors import ModelError, hint
from bellcrank.studies.drawn_samples import DrawnSamples

if TYPE_CHECKING:
    import xarray

    from bellcrank.compiled.system import System

__all__ = ["SampleTable", "VariedColumn", "as_coordinates", "columns_of", "table_of"]


@dataclass(frozen=True)
class SampleTable:
    """Values of every run: one column per name. Of a grid, only its values are kept and rows are made when asked for;
    of samples that are drawn nothing is kept.

    Rows run through the samples first, then through the grid, its last name quickest.
    """

    grid: tuple[tuple[str, Floats], ...]
    samples: tuple[tuple[str, Floats], ...]
    drawn: DrawnSamples | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns."""
        return (*(name for name, _ in (*self.grid, *self.samples)), *(self.drawn.names if self.drawn else ()))

    @property
    def _each(self) -> int:
        """Rows at a point of the grid."""
        return self.drawn.runs if self.drawn else len(self.samples[0][1]) if self.samples else 1

    @property
    def _shape(self) -> tuple[int, ...]:
        return (*(len(values) for _, values in self.grid), self._each)

    @property
    def runs(self) -> int:
        """How many rows there are."""
        return math.prod(self._shape) if self.names else 0

    def identity(self) -> tuple[Any, ...]:
        """What tells this table from others."""
        return (self.grid, self.samples, *((self.drawn.identity(),) if self.drawn else ()))

    def rows(self, first: int, last: int) -> Floats:
        """Rows first to last - 1, (rows, columns)."""
        at = np.unravel_index(np.arange(first, last), self._shape)
        columns = [values[at[k]] for k, (_, values) in enumerate(self.grid)]
        columns += [values[at[-1]] for _, values in self.samples]
        if self.drawn is None:
            return np.stack(columns, axis=-1)
        return np.concatenate([*(c[:, None] for c in columns), self._drawn_rows(first, last)], axis=-1)

    def _drawn_rows(self, first: int, last: int) -> Floats:
        """Drawn values of rows: the same samples again at every point of the grid."""
        assert self.drawn is not None
        parts, each = [], self._each
        while first < last:
            begin = first % each
            end = min(each, begin + last - first)
            parts.append(self.drawn.rows(begin, end))
            first += end - begin
        return np.concatenate(parts) if parts else np.zeros((0, len(self.drawn.names)))


def table_of(parameters: Any, samples: Any) -> SampleTable:
    """Read what `sweep` was given."""
    import xarray

    if isinstance(parameters, xarray.Dataset):
        if samples is not None:
            raise ModelError("sweep: parameters and samples are both samples; give one of them, or a mapping "
                             "{name: values} as parameters, which is a grid")
        parameters, samples = None, parameters
    if isinstance(parameters, DrawnSamples) and samples is None:
        parameters, samples = None, parameters
    grid = [] if parameters is None else _grid(parameters)
    drawn = samples if isinstance(samples, DrawnSamples) else None
    rows = [] if samples is None or drawn is not None else _samples(samples)
    if not grid and not rows and drawn is None:
        raise ModelError("sweep: nothing varies; give parameters={name: values} or samples, such as "
                         "bc.latin_hypercube({...}, runs) makes")
    twice = {name for name, _ in grid} & {*(name for name, _ in rows), *(drawn.names if drawn else ())}
    if twice:
        raise ModelError(f"sweep: {', '.join(sorted(twice))} is in parameters and in samples; once is enough")
    return SampleTable(tuple(grid), tuple(rows), drawn)


def _grid(parameters: Any) -> list[tuple[str, Floats]]:
    if not isinstance(parameters, Mapping):
        raise ModelError(f"sweep: parameters is a mapping {{name: values}} or samples, got "
                         f"{type(parameters).__name__}")
    return [(str(name), _values("parameters", str(name), values)) for name, values in parameters.items()]


def _samples(samples: Any) -> list[tuple[str, Floats]]:
    import xarray

    given: Mapping[Any, Any]
    if isinstance(samples, xarray.Dataset):
        given = {name: samples[name].values for name in samples.data_vars}
    elif isinstance(samples, Mapping):
        given = samples
    else:
        raise ModelError(f"sweep: samples is a mapping {{name: values}} or a Dataset, got {type(samples).__name__}")
    found = [(str(name), _values("samples", str(name), values)) for name, values in given.items()]
    lengths = {name: len(values) for name, values in found}
    if len(set(lengths.values())) > 1:
        raise ModelError("sweep: samples must have one value per run, and all names equally many; got "
                         + ", ".join(f"{n} of {name}" for name, n in lengths.items()))
    return found


def _values(what: str, name: str, values: Any) -> Floats:
    check_unmasked(f"{what} {name!r}", values)
    try:
        array = np.atleast_1d(np.asarray(values, dtype=float))
    except (TypeError, ValueError):
        raise ModelError(f"sweep: {what}: {name}: {values!r} are no numbers") from None
    if array.ndim != 1 or not array.size:
        raise ModelError(f"sweep: {what}: {name} needs a list of numbers, got the shape {array.shape}")
    if not np.isfinite(array).all():
        raise ModelError(f"sweep: {what}: {name}: values must be finite, number {int(np.argmin(np.isfinite(array)))} "
                         "is not")
    return array


@dataclass(frozen=True)
class VariedColumn:
    """What a column of the table is: a parameter ("p"), or a coordinate ("q") or speed ("u") at the beginning."""

    name: str
    kind: str
    key: str  #: the parameter, or the joint or "joint.coordinate"


def columns_of(system: System, names: tuple[str, ...], whose: str = "sweep") -> tuple[VariedColumn, ...]:
    """What names mean for a machine; those of parameters come first."""
    return tuple(_column(system, name, whose) for name in names)


def _column(system: System, name: str, whose: str) -> VariedColumn:
    if name in system.parameters:
        return VariedColumn(name, "p", name)
    kind, dot, key = name.partition(".")
    if not dot or kind not in ("q", "u"):
        known = ", ".join(system.parameters) or "none: make some with Mechanism.parameter"
        raise ModelError(f"{whose}: no parameter {name!r} in {system.model.name!r}{hint(name, system.parameters)}; its "
                         f"parameters are {known}. 'q.JOINT' and 'u.JOINT' vary the beginning of the runs")
    joints = {r.name: r.joint for r in system.model.mechanism.joints}
    whole, coordinate = (key, None) if key in joints else (key.rpartition(".")[0], key.rpartition(".")[2])
    if whole not in joints:
        raise ModelError(f"{whose}: {name}: no joint {whole or key!r} in {system.model.name!r}"
                         f"{hint(whole or key, joints)}; there are {', '.join(joints)}")
    there = tuple(joints[whole].coordinate_names() if kind == "q" else joints[whole].speed_names)
    if coordinate is None and len(there) != 1:
        raise ModelError(f"{whose}: {name}: joint {whole!r} has {len(there)} of them; vary single ones: "
                         f"{', '.join(f'{kind}.{whole}.{n}' for n in there) or 'none'}")
    if coordinate is not None and coordinate not in there:
        raise ModelError(f"{whose}: {name}: joint {whole!r} has {', '.join(there)}")
    return VariedColumn(name, kind, key)


def as_coordinates(table: SampleTable) -> dict[str, xarray.Variable]:
    """The columns as variables along ``run``. Cost: O(runs) numbers per column."""
    import xarray

    rows = table.rows(0, table.runs)
    return {name: xarray.Variable("run", rows[:, k].copy()) for k, name in enumerate(table.names)}
