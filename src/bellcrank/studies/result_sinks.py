"""Where the results of chunks go: into memory, or into a Zarr store (`zarr_store`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.simulate.sizes import available_memory
from bellcrank.studies.sample_table import SampleTable, as_coordinates
from bellcrank.studies.study import ChunkResult, MisuseError, RunValues, fill_of

if TYPE_CHECKING:
    import xarray

__all__ = ["MemorySink", "Sink", "check_names"]


class Sink(Protocol):
    """Takes results chunk by chunk."""

    chunk: int  #: runs in a chunk

    def missing(self) -> list[int]:
        """Numbers of the chunks that have not come."""

    def put(self, number: int, part: ChunkResult) -> None:
        """Keep the results of a chunk."""

    def dataset(self) -> xarray.Dataset:
        """All of them."""

    def close(self) -> None:
        """Nothing more comes."""


def check_names(known: Mapping[str, Any], part: ChunkResult) -> None:
    """Refuse results of other names than those that came first."""
    if part.variables and set(part.variables) != set(known):
        raise MisuseError(f"sweep: some runs return {', '.join(sorted(part.variables))}, others "
                          f"{', '.join(sorted(known))}; all must return the same")


def _check_room(part: ChunkResult, runs: int) -> None:
    """Refuse results that do not fit into memory."""
    needed = sum(v.values[:1].nbytes for v in part.variables.values()) * float(runs)
    room = available_memory()
    if needed > room:
        raise ModelError(f"sweep: the results of {runs:,} runs need {needed / 1e9:.3g} GB of memory, and "
                         f"{room / 1e9:.3g} GB are free; write them to a store (out=...), keep less (reduce=...), or "
                         "sample less often")


class MemorySink:
    """Arrays of this process."""

    def __init__(self, table: SampleTable, attrs: Mapping[str, Any], chunk: int) -> None:
        self._table, self._attrs, self.chunk = table, dict(attrs), chunk
        self._variables: dict[str, RunValues] = {}
        self._coords: dict[str, RunValues] = {}
        self._status = np.full(table.runs, "pending", dtype=object)
        self._reason = np.full(table.runs, "", dtype=object)

    def missing(self) -> list[int]:
        return list(range(-(-self._table.runs // self.chunk)))

    def put(self, number: int, part: ChunkResult) -> None:
        rows = slice(number * self.chunk, number * self.chunk + len(part.status))
        if part.variables and not self._variables:
            _check_room(part, self._table.runs)
            self._coords = part.coords
            self._variables = {name: v.having(np.full(
                (self._table.runs, *v.values.shape[1:]), fill_of(v.values.dtype),
                dtype=object if v.values.dtype.kind == "U" else v.values.dtype)) for name, v in part.variables.items()}
        check_names(self._variables, part)
        for name, v in part.variables.items():
            into = self._variables[name].values
            if into.shape[1:] != v.values.shape[1:]:
                raise MisuseError(f"sweep: {name!r} has the shape {v.values.shape[1:]} in some runs and "
                                  f"{into.shape[1:]} in others; all runs must keep as much")
            into[rows] = v.values
        self._status[rows], self._reason[rows] = part.status, part.reason

    def dataset(self) -> xarray.Dataset:
        import xarray

        data: dict[str, Any] = {name: (v.dims, v.values.astype(str) if v.values.dtype == object else v.values, v.attrs)
                                for name, v in self._variables.items()}
        data |= {"status": ("run", self._status.astype(str)), "reason": ("run", self._reason.astype(str))}
        coords: dict[str, Any] = {name: (v.dims, v.values, v.attrs) for name, v in self._coords.items()}
        return xarray.Dataset(data, coords={**as_coordinates(self._table), **coords}, attrs=self._attrs)

    def close(self) -> None:
        pass
