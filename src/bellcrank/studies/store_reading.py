"""Reading the Zarr store of a sweep: arrays that are read when they are used, as a Dataset."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from bellcrank.errors import FileError
from bellcrank.studies.store_description import StoredArray, StoreDescription, check_texts, describe_store

__all__ = ["read_store"]


class _StoredValues(BackendArray):
    """The values of one array; what is damaged is a `FileError`, whenever it is read."""

    def __init__(self, path: Path, name: str, described: StoredArray) -> None:
        self._path, self._name, self._described = path, name, described
        self.shape, self.dtype = described.shape, described.dtype

    @cached_property
    def _array(self) -> Any:
        import zarr

        check_texts(self._path, self._name, self._described)
        return zarr.open_array(str(self._path / self._name), mode="r", zarr_format=3)

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.OUTER, self._read)

    def _read(self, key: tuple[Any, ...]) -> Any:
        try:
            return np.asarray(self._array.oindex[key]).astype(self.dtype)
        except Exception as error:  # libraries fail in many ways on what is damaged
            raise FileError(f"{self._path}: the array {self._name!r} cannot be read; it is damaged ({error})") from None


class _SweepStores(BackendEntrypoint):
    """Stores of sweeps for xarray."""

    def open_dataset(self, filename_or_obj: Any, *, drop_variables: Any = None) -> xarray.Dataset:
        path = Path(filename_or_obj)
        store = describe_store(path)
        arrays = {name: _variable(path, name, store) for name in store.arrays}
        coords = store.coords
        return xarray.Dataset({name: v for name, v in arrays.items() if name not in coords},
                              coords={name: arrays[name] for name in coords}, attrs=store.attrs)


def _variable(path: Path, name: str, store: StoreDescription) -> xarray.Variable:
    array = store.arrays[name]
    values = _StoredValues(path, name, array)
    if not store.of_runs(name):  # coordinates of results, which are small
        read = np.asarray(values[indexing.BasicIndexer((slice(None),) * len(array.shape))])
        return xarray.Variable(array.dims, read.astype(str) if read.dtype == object else read, array.attrs)
    chunks = dict(zip(array.dims, array.chunks, strict=True))
    return xarray.Variable(array.dims, indexing.LazilyIndexedArray(values), array.attrs, {"preferred_chunks": chunks})


def read_store(path: str | os.PathLike[str]) -> xarray.Dataset:
    """The Dataset of a store, through Dask where that is installed."""
    try:
        import dask.array  # noqa: F401

        chunks: Any = {}
    except ImportError:
        chunks = None
    return xarray.open_dataset(os.fspath(path), engine=_SweepStores, chunks=chunks)
