"""The part of a result that knows the machine it came from: at hand, or described in the file it was read from."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import xarray

from bellcrank.arguments import checked_methods, must_be
from bellcrank.errors import BellcrankError, FileError, ModelError, StateError
from bellcrank.mechanism.fingerprint import fingerprint
from bellcrank.mechanism.pickling import check_picklable
from bellcrank.simulate.kept_model import KeptModel, model_text
from bellcrank.simulate.probe import trust
from bellcrank.simulate.sizes import disk_trouble

if TYPE_CHECKING:
    from bellcrank.system.machine_functions import Machine

__all__ = ["MachineRecord"]


@checked_methods
class MachineRecord(xarray.Dataset):  # type: ignore[no-untyped-call]  # of its __init_subclass__
    """Numbers over time with the machine that they are of."""

    __slots__ = ("_system",)

    def __init__(self, data_vars: Any = None, coords: Any = None, attrs: Any = None) -> None:
        try:
            super().__init__(data_vars, coords, attrs)
        except Exception as error:
            raise StateError(f"Result: {error}; runs and open_result make results, and these arguments are those of "
                             "xarray.Dataset") from error

    @property
    def system(self) -> Machine | None:
        """The machine this result came from, if it is known."""
        known = self.origin
        return None if isinstance(known, KeptModel) else known

    @property
    def origin(self) -> Machine | KeptModel | None:
        """The machine, or its description in the file that this was read from."""
        try:
            found: Machine | KeptModel | None = self._system
        except AttributeError:  # xarray makes objects without calling __init__
            return None
        return found

    def with_system(self, system: Machine | KeptModel | None) -> Self:
        """The same numbers with this machine, unchecked (`attach` checks): a new result that shares them."""
        return self.copy().noting(system)

    def noting(self, system: Machine | KeptModel | None) -> Self:
        """Note the machine in this very result, which nobody else holds yet. Returns it."""
        must_be("a result: system", "Machine | KeptModel | None", system)
        self._system = system
        return self

    def attach(self, system: Machine) -> Self:
        """Say which machine this came from; it must be described by the same mechanism. Returns this result."""
        name, known = self.attrs.get("mechanism", "?"), self.attrs.get("mechanism_hash")
        if known is None:
            raise StateError("attach: the attributes of this result were lost, so its mechanism is not known; attach "
                             "before operations that drop attributes")
        if fingerprint(system.model.mechanism, fixed=True) != known:
            raise ModelError(f"attach: this result is of another mechanism (called {name!r}) than system "
                             f"{system.model.name!r}: names, numbers or laws of the two differ")
        self._check_names(system)
        for key, value in json.loads(self.attrs.get("parameters", "{}")).items():
            ours = system.parameters.get(key)
            if isinstance(value, (int, float)) and np.ndim(ours) == 0 and ours != value:  # type: ignore[arg-type]
                raise ModelError(f"attach: parameter {key!r} was {value} in this run and is {ours} in system "
                                 f"{system.model.name!r}; attach system.with_parameters({key}={value})")
        return self.noting(system)

    def _check_names(self, system: Machine) -> None:
        for label, names in (("coordinate", system.coordinate_names), ("speed", system.speed_names)):
            if label in self.dims and not set(self[label].values.tolist()) <= set(names):
                raise ModelError(f"attach: system {system.model.name!r} has other {label}s than this result; "
                                 "attach the system of the run")

    def rebuild(self) -> Self:
        """Compile the machine that the file of this result describes, unless it is at hand already, and attach it.
        Files hold it if all its laws can be written as formulas and it is not too large; otherwise a `StateError` says
        to `attach` it. Returns this result.

        >>> import bellcrank as bc, os, tempfile
        >>> file = os.path.join(tempfile.mkdtemp(), "run.nc")
        >>> _ = bc.compile(bc.load("pendulum")).simulate(([0.5], [0.0]), 0.1, file=file)
        >>> bc.open_result(file).rebuild().reactions("hinge").shape
        (101, 6)
        """
        known = self.origin
        if known is None or isinstance(known, KeptModel):
            names = self["coordinate"].values.reshape(-1).tolist() if "coordinate" in self.coords else ()
            found = None if known is None else known.system(self.attrs, names)
            if found is None:
                raise StateError("the machine of this result is not known: its file does not hold it (a law of it "
                                 "is no formula, or it is large), or an operation forgot it; call attach(system)")
            self._check_names(found)  # laws are formulas now: `attach` would take it for another machine
            return self.noting(found)
        return self

    def _machine(self, what: str) -> Machine:
        if self.system is None:
            try:
                self.rebuild()
            except BellcrankError:
                raise StateError(f"{what}: the machine is not known (the result was read from a file, or made by an "
                                 "operation that forgot it); call attach(system) first") from None
        assert self.system is not None
        return self.system

    # xarray makes most new objects through these two
    def _replace(self, *args: Any, **kwargs: Any) -> Any:
        made = super()._replace(*args, **kwargs)
        return made if made is self else made.noting(self.origin)

    def isel(self, *args: Any, **kwargs: Any) -> Any:
        """Select by position; see `xarray.Dataset.isel`. Of runs with different parameters the machine goes along with
        those of the runs that are left."""
        made = super().isel(*args, **kwargs).noting(self.origin)
        given = {**((args[0] if args else kwargs.get("indexers")) or {}),
                 **{k: v for k, v in kwargs.items() if k not in ("indexers", "drop", "missing_dims")}}
        samples = [d for d in self["q"].dims if d not in ("time", "coordinate")] if "q" in self else []
        chosen = {d: v for d, v in given.items() if d in samples}
        if not chosen:
            return made
        pick = partial(_picked, samples=samples, sizes=[self.sizes[d] for d in samples], chosen=chosen)
        return made.assign_attrs(_attributes_of_some(self.attrs, pick)).noting(_of_some(self.origin, pick))

    def _with_model(self) -> Self:
        """The same with the text of its machine among the attributes, if that is at hand."""
        known = self.origin
        if known is None or "mechanism_hash" not in self.attrs:
            return self
        made: Self = self.assign_attrs(model=known.text if isinstance(known, KeptModel) else model_text(known))
        return made

    def to_netcdf(self, path: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Write to a NetCDF file, all arguments as `xarray.Dataset.to_netcdf` has them; what the disk refuses is a
        `FileError`."""
        named = isinstance(path, (str, os.PathLike))
        if not named and path is not None and not hasattr(path, "write"):
            raise FileError(f"to_netcdf: path must be a path, an open file or None, got {path!r}")
        new = named and not os.path.exists(path)
        try:
            made = xarray.Dataset.to_netcdf(self._with_model(), path, *args, **kwargs)
        except Exception as error:  # of the disk, or of arguments and attributes that NetCDF does not take
            if new:  # half a file is of no use
                with suppress(OSError, ValueError):
                    Path(path).unlink(missing_ok=True)
            said = disk_trouble(Path(path), error) if named else error
            raise FileError(f"{path}: cannot be written ({said})") from error
        if named and os.path.isfile(path):
            trust(Path(path))
        return made

    def __getstate__(self) -> tuple[None, dict[str, Any]]:
        """The machine goes along unless it holds laws that cannot be pickled: then the copy has to `attach` it."""
        slots = [name for cls in type(self).__mro__ for name in cls.__dict__.get("__slots__", ())]
        state = {name: getattr(self, name) for name in slots
                 if name not in ("_system", "__weakref__", "_cache") and hasattr(self, name)}
        if isinstance(self.origin, KeptModel):
            state["_system"] = self.origin
        elif self.system is not None:
            with suppress(ModelError):
                check_picklable(self.system.model.name, vars(self.system.model.mechanism))
                state["_system"] = self.system
        return None, state


def _of_some(known: Machine | KeptModel | None, pick: Callable[[Any], Any]) -> Machine | KeptModel | None:
    """The machine with the parameters of some runs."""
    if known is None or isinstance(known, KeptModel) or not known.model.batched:
        return known
    values = {name: pick(v) for name, v in known.model.values.items() if np.ndim(v)}
    return known.with_parameters(**values) if all(v is not None for v in values.values()) else known


def _attributes_of_some(attrs: Any, pick: Callable[[Any], Any]) -> dict[str, str]:
    """The attribute that says what parameters were, of some runs: files are read with it."""
    values = json.loads(attrs.get("parameters", "{}"))
    found = {name: pick(value) for name, value in values.items() if isinstance(value, list)}
    some = {name: value.tolist() for name, value in found.items() if value is not None}
    return {"parameters": json.dumps(values | some)} if some else {}


def _picked(value: Any, samples: list[Any], sizes: list[int], chosen: dict[Any, Any]) -> Any:
    """Values of some runs; None if there is not one for every run."""
    try:
        every = np.broadcast_to(np.asarray(value, dtype=float), sizes)
    except (TypeError, ValueError):
        return None
    return xarray.DataArray(every, dims=samples).isel(chosen).values
