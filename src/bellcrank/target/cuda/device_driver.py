"""Drivers on the device: one kernel of the program and all it calls, a thread for every state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.target.backend import CallLists
from bellcrank.target.cuda.cuda_printer import IN_FLIGHT
from bellcrank.target.cuda.device import Device, DeviceFunction
from bellcrank.target.cuda.device_text import CHANGING, WARP, WRITTEN, DeviceText, driver_text
from bellcrank.target.cuda.parking_ways import THREADS
from bellcrank.target.kernel_source import RolledData
from bellcrank.target.program import DriverLayout, Program

__all__ = ["DeviceDriver", "DeviceMemory", "Launch"]


class DeviceMemory:
    """See `target.backend.DriverBuffers`; arrays that are pointed at are taken to the device for a run, and back."""

    def __init__(self, calls: CallLists, layout: DriverLayout, extra: Mapping[str, int]) -> None:
        self.calls, self.layout, self.extra = calls, layout, dict(extra)
        self.buffers: dict[str, npt.NDArray[np.float64]] = {}
        self.integers = dict.fromkeys(layout.integers, 0)
        self.reals = dict.fromkeys(layout.reals, 0.0)
        self.arrays: dict[str, npt.NDArray[Any]] = {}
        self.launch: Launch | None = None
        self.set(**{f"n_{name}": len(listed) for name, listed in calls.lists.items()})

    def point(self, name: str, array: npt.NDArray[Any]) -> None:
        self.arrays[name] = array

    def address(self, name: str, array: npt.NDArray[Any]) -> None:
        self.arrays[name] = array

    def set(self, **values: int) -> None:
        self.integers.update(values)

    def set_real(self, **values: float) -> None:
        self.reals.update(values)

    def get(self, name: str) -> int:
        return self.integers[name]

    def get_real(self, name: str) -> float:
        return self.reals[name]


class Launch(NamedTuple):
    """A compiled driver with what its blocks need."""

    function: DeviceFunction
    text: DeviceText
    outer: tuple[str, ...]  #: arrays of all states
    common: tuple[str, ...]  #: arrays that are the same for all states
    tables: list[Any]
    work: int  #: reals of a thread
    buffers: int
    device: Device
    kind: Any

    def __call__(self, arrays: Mapping[str, Any], memory: DeviceMemory, states: int) -> None:
        """Run it on arrays of the device, shape (blocks, ..., lanes)."""
        layout, arguments = memory.layout, []
        for name in self.outer:
            array = arrays[name]
            arguments += [array, np.int64(array.size // len(array))]
        arguments += [arrays[name] for name in (*self.common, *layout.returned)]
        blocks = -(-states * self.text.split // THREADS)
        arguments.append(self.device.empty((blocks * THREADS * self.work or 1,), self.kind))
        # as registers begin; some are read behind the end
        arguments.append(self.device.zeros(blocks * THREADS * self.buffers + IN_FLIGHT * WARP, self.kind))
        arguments += self.tables
        arguments += [np.int32(memory.integers[n]) for n in CHANGING if n in layout.integers
                      and n not in layout.returned]
        arguments += [self.kind(memory.reals[n]) for n in layout.reals if n not in layout.returned]
        self.function(blocks, THREADS, [*arguments, np.int32(0), np.int64(states)])


class DeviceDriver:
    """See `target.backend.Driver`."""

    def __init__(self, program: Program, layout: DriverLayout, device: Device, real: str) -> None:
        self.program, self.layout, self.device, self.real = program, layout, device, real
        self.kind = np.float64 if real == "double" else np.float32

    def compiled(self, memory: DeviceMemory) -> Launch:
        """The kernel for what this memory's lists call; made once for each size of its arrays."""
        if memory.launch is None:
            known = {n: v for n, v in memory.integers.items() if n not in CHANGING} | {"blocks": 1}  # each its own
            whole = {n: memory.arrays[n].size for n in self.layout.pointers
                     if n in memory.arrays and memory.arrays[n].dtype.kind == "i"}
            key = (self.program, self.real, *(tuple(x.items()) for x in (memory.extra, known, whole)))
            if key not in memory.calls.made:
                memory.calls.made[key] = self._launch(memory, known, whole)
            memory.launch = memory.calls.made[key]
        return memory.launch

    def _launch(self, memory: DeviceMemory, known: Mapping[str, int], whole: Mapping[str, int]) -> Launch:
        layout = self.layout
        text, rolled, work, buffers = driver_text(self.program, layout, memory.calls, memory.extra, known,
                                                  self.real, whole, self.device.shared_memory())
        names = [name for _, name in text.parameters]
        outer = tuple(n for n in layout.pointers if f"{n}_of_all" in names)
        return Launch(self.device.function(text), text, outer, tuple(n for n in layout.tables if n in names),
                      self._tables(rolled), work, buffers, self.device, self.kind)

    def _tables(self, rolled: list[RolledData]) -> list[Any]:
        return [x for r in rolled for x in (
            self.device.upload(r.numbers.astype(self.kind).ravel()),
            *(self.device.upload(x.astype(np.int32).ravel()) for x in (r.table, r.runs)))]

    def __call__(self, memory: DeviceMemory) -> None:
        launch = self.compiled(memory)
        there = {name: self._there(name, memory.arrays[name])
                 for name in (*launch.outer, *launch.common, *self.layout.returned)}
        launch(there, memory, memory.integers["blocks"] * WARP)
        for name, array in there.items():
            if array is not memory.arrays[name] and name not in launch.common:
                memory.arrays[name][...] = self.device.download(array)

    def _there(self, name: str, array: Any) -> Any:
        """An array on the device: as it is if it is there already."""
        kind = np.int32 if name in self.layout.integers or array.dtype.kind == "i" else self.kind
        if self.device.holds(array):
            assert array.dtype == kind and array.flags.c_contiguous, name
            return array
        return self.device.empty(array.shape, kind) if name in WRITTEN else \
            self.device.upload(np.ascontiguousarray(array, dtype=kind))
