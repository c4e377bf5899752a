"""Results as files: a NetCDF file that grows while a run goes on, and reading it back.

The growing file is of the classic kind (64-bit offsets), whose records are plain appends: the header says how many
there are and is updated after them, so that a process killed at any moment leaves a file that opens. Nothing that
comes late may change the header's length, because everything behind it would have to move: late attributes get their
room when the file is made (numbers, and texts padded with blanks), and so do the events.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.errors import FileError
from bellcrank.simulate.classic import append_records, check_classic, is_classic
from bellcrank.simulate.fields import PER_EVENT, STATE, TOPOLOGY, Layout
from bellcrank.simulate.interrupt import uninterrupted
from bellcrank.simulate.kept_model import KeptModel
from bellcrank.simulate.probe import check_hdf5, trust, trusted
from bellcrank.simulate.sizes import disk_trouble

if TYPE_CHECKING:
    from bellcrank.simulate.result import Result

__all__ = ["EVENT_ROOM", "EventRecord", "GrowingFile", "open_result", "per_event", "tidy"]

#: how many events a file has room for
EVENT_ROOM = 1024
_EVENT_NAME = 64  # bytes
#: late attributes that are numbers, and their type
_NUMBERS: dict[str, Callable[[Any], int | float]] = {
    "steps": int, "switches": int, "crossings": int, "wall_time": float, "largest_loop_error": float,
    "energy_drift": float, "events_left_out": int}
#: late attributes that are texts, and their room in bytes; other notes share one
_TEXTS = {"status": 16, "reason": 1000, "notes": 8000}


class EventRecord(NamedTuple):
    """Something that happened at a time [s], to one sample of a batch (-1: not said)."""

    time: float
    name: str
    sample: int = -1
    #: what a change of the topology did: energy lost in impulses and added otherwise [J], impulses {closure: (6,)}
    lost: float = 0.0
    added: float = 0.0
    impulses: Mapping[str, Floats] = MappingProxyType({})
    stopped: float = math.nan  #: impulse of a rigid stop along its coordinate [N s or N m s]

    def told(self, lost: float, added: float, impulses: Mapping[str, Floats]) -> EventRecord:
        """The same, with what it did."""
        return self._replace(lost=self.lost + lost, added=self.added + added, impulses=dict(impulses))

    def by_stop(self, impulse: float) -> EventRecord:
        """The same, with the impulse of a rigid stop."""
        return self._replace(stopped=impulse)

    def value(self, name: str, closures: Sequence[str]) -> Any:
        """What the variable `name` of `PER_EVENT` says of it."""
        if name == "event_impulse":
            return [self.impulses[c] if c in self.impulses else np.full(6, np.nan) for c in closures]
        return {"event_energy_lost": self.lost, "event_energy_added": self.added,
                "event_stop_impulse": self.stopped}[name]


def per_event(layout: Layout) -> list[str]:
    """The variables of `PER_EVENT` that a result has."""
    return [name for name, (dims, _, _) in PER_EVENT.items() if layout.changing and (layout.closures or not dims)]


class GrowingFile:
    """A classic NetCDF file that samples are appended to. What was there under its name is overwritten."""

    def __init__(self, path: Path, layout: Layout, attrs: Mapping[str, Any]) -> None:
        self.path, self._layout, self._early = path, layout, dict(attrs)
        self.count = 0  #: samples written
        self._safe = 0  # of them, those that surely reached the file
        self._unsafe: list[tuple[int, Mapping[str, Floats]]] = []  # and the others: the first one's number, values
        self._events = 0
        self._broken = False
        self._file: Any = None
        try:
            with _library(path) as netcdf:
                path.unlink(missing_ok=True)
                self._file = netcdf.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET")
                self._file.set_fill_off()
                self._define()
                self._file.sync()
        except FileError:
            if self._file is not None:
                self._abandon()
            with suppress(OSError):  # half a header is of no use
                path.unlink()
            raise

    # -- the header ---------------------------------------------------------------------------------
    def _define(self) -> None:
        layout, file = self._layout, self._file
        file.createDimension("time", None)
        for name, size in (*zip(layout.samples, layout.batch, strict=True), ("coordinate", len(layout.coordinates)),
                           ("speed", len(layout.speeds)), ("event", EVENT_ROOM), ("event_length", _EVENT_NAME),
                           *(("contact_component", len(layout.contact_components)),) * bool(layout.contact_components),
                           *(("wrench_component", len(layout.wrench_components)),) * bool(layout.wrench_components),
                           *(("closure", len(layout.closures)), ("impulse_component", 6)) * bool(layout.closures)):
            file.createDimension(name, size)
        for name, value in self._early.items():
            file.setncattr(name, value)
        for name in _NUMBERS:
            file.setncattr(name, math.nan)
        for name, room in _TEXTS.items():
            file.setncattr(name, _padded("running" if name == "status" else "", room))
        self._variable("time", ("time",), {"units": "s", "long_name": "time"})
        for field in (f for f in layout.fields if f not in STATE[2:]):
            self._variable(field.name, layout.dims(field), layout.attrs(field))
        if layout.changing:
            self._variable(TOPOLOGY.name, ("time",), layout.attrs(TOPOLOGY))
        for name, (dim, values, long_name) in layout.labels().items():
            width = max(len(v.encode()) for v in values)
            if f"{dim}_length_{width}" not in file.dimensions:
                file.createDimension(f"{dim}_length_{width}", width)
            text = self._variable(name, (dim, f"{dim}_length_{width}"), {"long_name": long_name}, "S1")
            text[:] = _characters(values, width)
        when = self._variable("event_time", ("event",), {"units": "s", "long_name": "time of the event"})
        when[:] = np.full(EVENT_ROOM, np.nan)
        names = self._variable("event_name", ("event", "event_length"), {"long_name": "what happened"}, "S1")
        names[:] = _characters([""] * EVENT_ROOM, _EVENT_NAME)
        which = self._variable("event_sample", ("event",), {"long_name": "flat index of the sample, -1 if not said"},
                               "i4")
        which[:] = np.full(EVENT_ROOM, -1)
        for name in per_event(layout):
            dims, units, long_name = PER_EVENT[name]
            made = self._variable(name, ("event", *dims), {"units": units, "long_name": long_name})
            made[:] = np.full(made.shape, np.nan)

    def _variable(self, name: str, dims: tuple[str, ...], attrs: Mapping[str, str], kind: str = "f8") -> Any:
        made = self._file.createVariable(name, kind, dims)
        made.setncatts({**attrs, **({"_Encoding": "utf-8"} if kind == "S1" else {})})
        if kind == "S1":
            made.set_auto_chartostring(False)
        return made

    def add_forces(self) -> None:
        """Make room for joint forces; only before the first sample."""
        assert self.count == 0
        with _library(self.path):
            for field in STATE[2:]:
                self._variable(field.name, self._layout.dims(field), self._layout.attrs(field))

    # -- growing ------------------------------------------------------------------------------------
    def write(self, at: int, block: Mapping[str, Floats]) -> None:
        """Write samples {variable: (k, ...)}, all variables, from sample `at` on: the next one, or, after an interrupt,
        one that may have been written before."""
        end = at + len(block["time"])
        if not self._broken:
            self._unsafe.append((at, block))
        with self._guarded():
            for name, values in block.items():
                self._file.variables[name][at:end] = values
        self.count = end

    def sync(self, events: Sequence[EventRecord] = ()) -> None:
        """Hand all that was written to the operating system: it survives the end of this process."""
        with self._guarded():
            known, room = self._events, min(len(events), EVENT_ROOM)
            if room > known:
                new = events[known:room]
                self._file.variables["event_name"][known:room] = _characters([e.name for e in new], _EVENT_NAME)
                self._file.variables["event_sample"][known:room] = [e.sample for e in new]
                for name in per_event(self._layout):
                    self._file.variables[name][known:room] = [e.value(name, self._layout.closures) for e in new]
                self._file.variables["event_time"][known:room] = [e.time for e in new]
                self._events = room
            self._file.sync()
        self._safe = self.count
        self._unsafe.clear()

    @contextmanager
    def _guarded(self) -> Iterator[None]:
        """Errors of the disk leave a file that holds what was complete before."""
        if self._broken:
            raise FileError(f"{self.path}: an earlier write failed")
        try:
            with _library(self.path):
                yield
        except FileError as error:
            self._broken, self.count = True, self._safe  # the library may have kept later ones to itself
            self._repair()
            raise FileError(f"{error}; the first {self.count} samples are kept there") from error.__cause__

    def _repair(self) -> None:
        """Let go of the file, add by hand what still fits, and let its header count what is there."""
        self._abandon()
        waiting, self._unsafe = self._unsafe, []
        with suppress(OSError, ValueError), open(self.path, "r+b", buffering=0) as file:
            for at, block in waiting:
                if at <= self.count:
                    new = {name: x[self.count - at:] for name, x in block.items()}
                    self.count += append_records(self.path, file, self.count, new)
            file.seek(4)
            file.write(struct.pack(">I", self.count))

    def _abandon(self) -> None:
        """Never touch the library's handle again: closing it would write the rest, or fail once more, which it does
        not survive. Costs one file descriptor until the process ends."""
        type(self._file)._isopen.__set__(self._file, 0)  # plain assignment would make a NetCDF attribute

    def finish(self, late: Mapping[str, Any], events: Sequence[EventRecord]) -> None:
        """Write the late attributes, close, and make sure that it is on the disk."""
        with _library(self.path) as netcdf:
            if self._broken:
                self._file = netcdf.Dataset(self.path, "a")
        left_out = max(0, len(events) - EVENT_ROOM)
        self._broken = False
        self.sync(events)
        late = {**late, **({"events_left_out": left_out} if left_out else {})}
        with _library(self.path):
            try:
                for name, value in _late(late).items():
                    self._file.setncattr(name, value)
                self._file.close()
            except (OSError, RuntimeError):
                self._abandon()
                raise
            with open(self.path, "r+b") as file:
                os.fsync(file.fileno())


def _late(late: Mapping[str, Any]) -> dict[str, Any]:
    """Late attributes in the shape that was reserved for them."""
    out: dict[str, Any] = {name: float(late[name]) for name in _NUMBERS if name in late}
    notes = {name: value for name, value in late.items() if name not in (*_NUMBERS, *_TEXTS)}
    texts = {**late, "notes": json.dumps(notes) if notes else ""}
    # Notes that need more room lengthen the header, and the library moves everything behind it once.
    return out | {name: _padded(texts[name], room, cut=name != "notes") for name, room in _TEXTS.items()}


def _padded(text: str, room: int, cut: bool = True) -> str:
    """`text` with blanks to fill `room` bytes."""
    data = text.encode()
    if cut and len(data) > room:
        text = data[:room - 3].decode(errors="ignore") + "..."
        data = text.encode()
    return text + " " * (room - len(data))


def _characters(values: Sequence[str], width: int) -> npt.NDArray[np.bytes_]:
    """Texts as an array of single bytes, (n, width)."""
    data = b"".join(v.encode()[:width].decode(errors="ignore").encode().ljust(width, b"\0") for v in values)
    return np.frombuffer(data, dtype="S1").reshape(len(values), width)


@contextmanager
def _library(path: Path) -> Iterator[Any]:
    """The NetCDF library, which only one thread may be in; its errors name the file."""
    import netCDF4
    from xarray.backends.locks import NETCDFC_LOCK

    try:
        with uninterrupted(), NETCDFC_LOCK:
            yield netCDF4
    except UnicodeError as error:
        raise FileError(f"{path}: the NetCDF library cannot use this name in the present locale ({error}); set "
                        "PYTHONUTF8=1, or give a name of ASCII letters") from error
    except (OSError, RuntimeError) as error:
        raise FileError(f"{path}: cannot be written ({disk_trouble(path, error)})") from error


# -- reading ------------------------------------------------------------------------------------------
#: attributes that hold JSON: what it is
_JSON = {"parameters": dict, "settings": dict, "versions": dict, "cut": list}
#: others that are texts
_WORDS = ("formulation", "mechanism", "mechanism_hash", "model")


def tidy(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as plain Python values: padding, unused room and the types of files taken away."""
    out: dict[str, Any] = {}
    for key, value in attrs.items():
        name = str(key)
        plain = value.item() if isinstance(value, np.generic) else value
        if name in (*_TEXTS, *_JSON, *_WORDS) and not isinstance(plain, str):
            raise ValueError(f"the attribute {name!r} is no text")
        if name in _NUMBERS:
            if plain == plain:
                out[name] = _NUMBERS[name](plain)
        elif name == "notes":
            with suppress(ValueError):  # a run killed while it wrote them
                out.update(json.loads(plain) if plain.strip() else {})
        else:
            if name in _JSON and not isinstance(json.loads(plain), _JSON[name]):
                raise ValueError(f"the attribute {name!r} is damaged")
            out[name] = plain.rstrip(" ") if name in _TEXTS else plain
    if out.get("energy_exchange", "none") != "none":
        out["energy_drift"] = math.nan
    return out


def open_result(path: str | os.PathLike[str]) -> Result:
    """Open a result that was written by `simulate(..., file=...)` or by ``result.to_netcdf``.

    Values are read when they are first used: call ``close()`` (or use ``with``) when done, ``load()`` to read all. A
    run that was killed leaves ``<stem>.partial.nc``, which opens, too; its status is "running". Methods that compute
    with the machine compile it from its description in the file; where that has none (a law is no formula, or the
    machine is large) they need ``result.attach(system)`` first.

    A file that is damaged is a `FileError`, found in a bounded time: headers of classic files are checked against the
    file's size, and HDF5 files that were not written by this process are opened by another one first (0.3 s).
    """
    import xarray

    try:
        place = Path(path)
    except TypeError:
        raise FileError(f"open_result needs the name of a file, got {type(path).__name__}") from None
    try:
        if not place.is_file():
            raise FileError(f"{place}: there is no such file")
        _check(place)
        with uninterrupted():
            raw = xarray.open_dataset(place, engine="netcdf4", decode_times=False, decode_timedelta=False)
    except FileError:
        raise
    except Exception as error:  # libraries fail in many ways on what is damaged
        raise FileError(f"{place}: cannot be read as NetCDF ({error})") from error
    try:
        return _result(place, raw)
    except FileError:
        raw.close()
        raise
    except Exception as error:
        raw.close()
        raise FileError(f"{place}: cannot be read as a result; it is damaged ({error})") from error


def _check(place: Path) -> None:
    """Refuse what the library should not see."""
    if is_classic(place):
        check_classic(place)
    elif not trusted(place):
        check_hdf5(place)
        trust(place)


def _result(place: Path, raw: Any) -> Result:
    from bellcrank.simulate.result import Result

    if "bellcrank_result" not in raw.attrs:
        raise FileError(f"{place}: this is no result of Bellcrank; open it with xarray.open_dataset")
    data = raw
    if "event_time" in data:
        data = data.isel(event=slice(int(np.isfinite(data["event_time"].values).sum())))
        unused = [n for n in ("event_time", "event_name", "event_sample", *PER_EVENT, "closure", "impulse_component",
                              "impulse_units") if n in data.variables and not data.sizes["event"]]
        if "event_sample" in data and not any(d.startswith("sample") for d in map(str, data["q"].dims)):
            unused.append("event_sample")
        data = data.drop_vars(dict.fromkeys(unused))
    texts = {name: (v.dims, np.asarray(v.values, dtype=str), v.attrs) for name, v in data.variables.items()
             if v.dtype.kind in "OTS"}
    coords = {**data.coords, **{n: v for n, v in texts.items() if n in data.coords}}
    labels = {n: v for n, v in texts.items() if str(n).endswith("_units")}
    variables = {n: texts.get(n, v) for n, v in data.data_vars.items() if n not in labels}
    if "topology" in variables:
        variables["topology"] = variables["topology"].astype(np.int32, keep_attrs=True)
    attrs = tidy(raw.attrs)
    text = attrs.pop("model", "")
    result = Result(variables, coords={**coords, **labels}, attrs=attrs)
    result.set_close(raw.close)
    return result.noting(KeptModel(text)) if text else result
