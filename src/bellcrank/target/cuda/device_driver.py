"""Drivers on the device: one kernel of the program and all it calls, a thread for every state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.target.backend import CallLists
from bellcrank.target.cuda.device import Device, DeviceFunction
from bellcrank.target.cuda.device_text import CHANGING, THREADS, WARP, WRITTEN, DeviceText, driver_text
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
    tables: list[Any]
    work: int  #: reals of a thread
    buffers: int
    device: Device
    kind: Any

    def __call__(self, arrays: Mapping[str, Any], memory: DeviceMemory, states: int) -> None:
        """Run it on arrays of the device, shape (blocks, ..., lanes)."""
        arguments: list[Any] = []
        for name in self.outer:
            array = arrays[name]
            arguments += [array, np.int64(array.size // len(array))]
        blocks = -(-states // THREADS)
        for size in (self.work, self.buffers):
            arguments.append(self.device.empty((blocks * THREADS * size or 1,), self.kind))
        arguments += self.tables
        arguments += [np.int32(memory.integers[n]) for n in CHANGING if n in memory.layout.integers]
        arguments += [self.kind(memory.reals[n]) for n in memory.layout.reals]
        self.function(blocks, THREADS, [*arguments, np.int32(0), np.int64(states)])


class DeviceDriver:
    """See `target.backend.Driver`."""

    def __init__(self, program: Program, layout: DriverLayout, device: Device, real: str) -> None:
        self.program, self.layout, self.device, self.real = program, layout, device, real
        self.kind = np.float64 if real == "double" else np.float32

    def compiled(self, memory: DeviceMemory) -> Launch:
        """The kernel for what this memory's lists call."""
        if memory.launch is None:
            known = {n: v for n, v in memory.integers.items() if n not in CHANGING}
            text, rolled, work, buffers = driver_text(self.program, self.layout, memory.calls, memory.extra, known,
                                                      self.real)
            outer = tuple(name.removesuffix("_of_all") for _, name in text.parameters if name.endswith("_of_all")
                          and name not in ("work_of_all", "buffers_of_all"))
            memory.launch = Launch(self.device.function(text), text, outer, self._tables(rolled), work, buffers,
                                   self.device, self.kind)
        return memory.launch

    def _tables(self, rolled: list[RolledData]) -> list[Any]:
        return [x for r in rolled for x in (
            self.device.upload(r.numbers.astype(self.kind).ravel()),
            *(self.device.upload(x.astype(np.int32).ravel()) for x in (r.table, r.runs)))]

    def __call__(self, memory: DeviceMemory) -> None:
        launch = self.compiled(memory)
        there = {name: self._there(name, memory.arrays[name]) for name in launch.outer}
        launch(there, memory, memory.integers["blocks"] * WARP)
        for name, array in there.items():
            if array is not memory.arrays[name]:
                memory.arrays[name][...] = self.device.download(array)

    def _there(self, name: str, array: Any) -> Any:
        """An array on the device: as it is if it is there already."""
        if self.device.holds(array):
            assert array.dtype == self.kind and array.flags.c_contiguous, name
            return array
        return self.device.empty(array.shape, self.kind) if name in WRITTEN else \
            self.device.upload(np.ascontiguousarray(array, dtype=self.kind))
