"""What results compute with the machine, topology by topology: the machine of every sample is the one it had then."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import xarray

from bellcrank.errors import AssemblyError, BellcrankError
from bellcrank.loops.plan import LoopPlan
from bellcrank.system.arrangements import Arrangement, arranged

__all__ = ["by_topology"]

Method = TypeVar("Method", bound=Callable[..., Any])


def by_topology(method: Method) -> Method:
    """A method of `Result` that is called once for every topology of a run, on its samples, and joined again."""

    @wraps(method)
    def called(self: Any, *args: Any, **kwargs: Any) -> Any:
        if "topology" not in self or "topologies" not in self.attrs:
            return method(self, *args, **kwargs)
        if self.system is None:  # read from a file, which may hold it
            with suppress(BellcrankError):
                self.rebuild()
        if self.system is None:
            return method(self, *args, **kwargs)
        if any(dim != "time" for dim in self["topology"].dims):
            return _by_sample(self, lambda one: called(one, *args, **kwargs))
        numbers = np.atleast_1d(self["topology"].values)
        plans: dict[Any, list[LoopPlan]] = {}
        if self["topology"].ndim == 0 or len(set(numbers.tolist())) == 1:
            return method(_part(self, self, int(numbers[0]), plans), *args, **kwargs)
        parts, places = [], []
        for number in dict.fromkeys(numbers.tolist()):
            some = np.flatnonzero(numbers == number)
            given = {name: _chosen(value, some, len(numbers)) if name == "wrenches" else value
                     for name, value in kwargs.items()}
            parts.append(method(_part(self, self.isel(time=some), int(number), plans), *args, **given))
            places.append(some)
        joined = xarray.concat(parts, dim="time", join="exact", coords="minimal", compat="override")
        return joined.isel(time=np.argsort(np.concatenate(places))).assign_attrs(parts[0].attrs)

    return called  # type: ignore[return-value]


def _by_sample(result: Any, method: Callable[[Any], Any]) -> Any:
    """A batch, of which every sample has topologies of its own."""
    dim = next(d for d in result["topology"].dims if d != "time")
    system, parts = result.system, []
    for index in range(result.sizes[dim]):
        values = {name: np.asarray(v)[index] for name, v in system.model.values.items() if np.ndim(v)}
        one = system.with_parameters(**values) if values else system
        parts.append(method(result.isel({dim: index}).with_system(one)))
    joined = xarray.concat(parts, dim=dim, join="exact", coords="minimal", compat="override")
    first = parts[0][next(iter(parts[0].data_vars))] if isinstance(parts[0], xarray.Dataset) else parts[0]
    at = list(first.dims).index("time") + 1 if "time" in first.dims else 0
    return joined.transpose(*first.dims[:at], dim, ..., missing_dims="ignore").assign_attrs(parts[0].attrs)


def _part(whole: Any, some: Any, number: int, plans: dict[Any, list[LoopPlan]]) -> Any:
    """Samples of one topology, with its machine; `plans` are those of topologies seen before, with code."""
    wanted = Arrangement.of_plain(json.loads(whole.attrs["topologies"])[number])
    q = np.asarray(some["q"].values, dtype=float).reshape(-1, some.sizes["coordinate"])
    near = q[np.isfinite(q).all(axis=1)][:1]
    known = plans.setdefault(wanted.key, [])
    machine = arranged(whole.system, wanted, near[0] if len(near) else None, known)
    if machine.model.tree.looped:
        with suppress(AssemblyError):
            known.append(machine.plans.reference().plan)
    return some.drop_vars("topology").with_system(machine)


def _chosen(wrenches: Any, some: Any, samples: int) -> Any:
    """The wrenches of some samples, where they differ from sample to sample."""
    if isinstance(wrenches, Mapping):
        return {body: _rows(value, some, samples, 2) for body, value in wrenches.items()}
    return None if wrenches is None else _rows(wrenches, some, samples, 3)


def _rows(value: Any, some: Any, samples: int, ndim: int) -> Any:
    array = np.asarray(value, dtype=float)
    return array[some] if array.ndim >= ndim and len(array) == samples else array
