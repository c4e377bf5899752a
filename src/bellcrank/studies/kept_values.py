"""What is kept of runs: named values along ``run``, from results of simulations or from functions of the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.studies.study import REDUCTIONS, Study

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["ChunkResult", "MisuseError", "RunValues", "as_variables", "fill_of", "joined", "merged", "simulated_values"]

#: how the dimension of the runs may be called
_RUNS = ("run", "sample")
#: names that sweeps use themselves
_TAKEN = ("run", "status", "reason", "chunk_done")
#: what values may be made of
_KINDS = "fiubU"


class MisuseError(ModelError):
    """A function of the user returns something that no run can be kept of: the sweep ends."""


@dataclass(frozen=True)
class RunValues:
    """Values along dimensions; those of runs have ``run`` first."""

    dims: tuple[str, ...]
    values: npt.NDArray[Any]
    attrs: dict[str, Any]

    def without(self, rows: Sequence[int]) -> RunValues:
        """The same without results in some rows."""
        if not len(rows):
            return self
        values = self.values.copy()
        values[list(rows)] = fill_of(values.dtype)
        return self.having(values)

    def having(self, values: npt.NDArray[Any]) -> RunValues:
        """The same with other values."""
        return replace(self, values=values)


class ChunkResult(NamedTuple):
    """Results of some runs, coordinates of the other dimensions, and how each run ended and why."""

    variables: dict[str, RunValues]
    coords: dict[str, RunValues]
    status: list[str]
    reason: list[str]


def fill_of(dtype: np.dtype[Any]) -> Any:
    """What stands where there is no result."""
    return {"f": np.nan, "i": -1, "u": 0, "b": False}.get(dtype.kind, "")


def merged(halves: Sequence[Mapping[str, RunValues]], rows: Sequence[Sequence[int]], count: int
           ) -> dict[str, RunValues]:
    """Values of `count` rows, those of each half taken from it."""
    out: dict[str, RunValues] = {}
    for name in dict.fromkeys(name for half in halves for name in half):
        like = next(half[name] for half in halves if name in half)
        values = np.full((count, *like.values.shape[1:]), fill_of(like.values.dtype), dtype=like.values.dtype)
        for half, own in zip(halves, rows, strict=True):
            if name in half:
                _check_like(name, like, half[name])
                values[own] = half[name].values[own]
        out[name] = like.having(values)
    return out


def joined(parts: Sequence[ChunkResult]) -> ChunkResult:
    """Results of blocks one after the other; blank where a block has none."""
    counts = [len(part.status) for part in parts]
    variables: dict[str, RunValues] = {}
    for name in dict.fromkeys(name for part in parts for name in part.variables):
        like = next(part.variables[name] for part in parts if name in part.variables)
        pieces = []
        for part, n in zip(parts, counts, strict=True):
            if name in part.variables:
                _check_like(name, like, part.variables[name])
                pieces.append(part.variables[name].values)
            else:
                pieces.append(np.full((n, *like.values.shape[1:]), fill_of(like.values.dtype), like.values.dtype))
        variables[name] = like.having(np.concatenate(pieces))
    return ChunkResult(variables, next((p.coords for p in parts if p.coords), {}), [s for p in parts for s in p.status],
                [r for p in parts for r in p.reason])


def _check_like(name: str, one: RunValues, other: RunValues) -> None:
    if one.dims != other.dims or one.values.shape[1:] != other.values.shape[1:]:
        raise MisuseError(f"sweep: {name!r} has the shape {other.values.shape[1:]} in some runs and "
                          f"{one.values.shape[1:]} in others; all runs must keep as much")


# -- simulations ----------------------------------------------------------------------------------------
def simulated_values(result: Result, study: Study) -> tuple[dict[str, RunValues], dict[str, RunValues]]:
    """All that there is of runs at every time, or what is made of it over time by name; and coordinates."""
    result = _on_grid(result, study)
    kept = {str(name): v for name, v in result.data_vars.items() if {"time", "sample"} <= set(v.dims)
            and v.dtype.kind in _KINDS}
    if study.reduce is not None:
        assert not callable(study.reduce)
        kept = {f"{name}_{how}": REDUCTIONS[how](v).assign_attrs(v.attrs) for how in study.reduce
                for name, v in kept.items() if v.dtype.kind == "f"}
    coords = {str(n): RunValues(tuple(map(str, c.dims)), np.asarray(c.values), dict(c.attrs))
              for n, c in result.coords.items() if "sample" not in c.dims
              and any(set(c.dims) <= set(v.dims) for v in kept.values())}
    return {name: _variable(name, v, v.sizes["sample"], "simulate") for name, v in kept.items()}, coords


def _on_grid(result: Result, study: Study) -> Result:
    """A result at the times of the study: a run of which no lane reached its end is shorter."""
    times = np.array(study.times)
    if result.sizes["time"] == len(times):
        return result
    near = 1e-9 * max(1.0, float(np.abs(times).max()))
    return result.reindex(time=times, method="nearest", tolerance=near)


# -- what users return ------------------------------------------------------------------------------------
def as_variables(what: str, got: Any, runs: int, study: Study) -> tuple[dict[str, RunValues], dict[str, RunValues]]:
    """What a function of the user returned, values along ``run``, and the coordinates of their other dimensions."""
    import xarray

    if isinstance(got, xarray.DataArray):
        got = {str(got.name or "value"): got}
    if isinstance(got, xarray.Dataset):
        got = {str(name): v for name, v in got.data_vars.items()}
    if not isinstance(got, Mapping):
        raise MisuseError(f"sweep: {what} must return a mapping {{name: values of all runs}} or a Dataset, got "
                          f"{type(got).__name__}")
    coords: dict[str, RunValues] = {}
    values: dict[str, RunValues] = {}
    for name, value in got.items():
        if name in (*_TAKEN, *(c.name for c in study.columns)):
            raise MisuseError(f"sweep: {what}: {name!r} is what sweeps call something else; take another name")
        values[str(name)] = _variable(str(name), value, runs, what)
        if isinstance(value, xarray.DataArray):
            coords |= {str(n): RunValues(tuple(map(str, c.dims)), np.asarray(c.values), dict(c.attrs))
                       for n, c in value.coords.items() if c.dims and not set(_RUNS) & set(c.dims)}
    return values, coords


def _variable(name: str, value: Any, runs: int, what: str) -> RunValues:
    import xarray

    attrs: dict[str, Any] = {}
    dims: tuple[str, ...] | None = None
    if isinstance(value, xarray.DataArray):
        axis = next((d for d in _RUNS if d in value.dims), None)
        if axis is None:
            raise MisuseError(f"sweep: {what}: {name!r} has the dimensions {value.dims}; it needs one value per run, "
                              "along 'run' (or 'sample', as results of simulate have)")
        value = value.transpose(axis, ...)
        dims, attrs = ("run", *map(str, value.dims[1:])), {k: v for k, v in value.attrs.items() if isinstance(v, str)}
        value = value.values
    array = np.ascontiguousarray(value)
    if array.dtype.kind not in _KINDS:
        raise MisuseError(f"sweep: {what}: {name!r} holds {array.dtype}; numbers or texts can be kept")
    if array.ndim == 0 or len(array) != runs:
        raise MisuseError(f"sweep: {what}: {name!r} has the shape {array.shape}; it needs one value per run, {runs} "
                          "along its first axis")
    if array.dtype.kind == "f":
        array = array.astype(np.float64, copy=False)
    return RunValues(dims or ("run", *(f"{name}_{k}" for k in range(1, array.ndim))), array, attrs)
