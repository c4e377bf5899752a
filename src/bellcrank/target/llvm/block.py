"""Compiled functions to be called by compiled code, and the memory they run on: addresses in frames and lists."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.target.backend import Call, CallLists, PythonBlock
from bellcrank.target.kernel_source import RolledData
from bellcrank.target.llvm.jit import Library
from bellcrank.target.llvm.kernel import aligned
from bellcrank.target.llvm.llvm_printer import FRAME_TAIL
from bellcrank.target.program import DriverLayout

__all__ = ["CompiledBlock", "DriverMemory"]

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class CompiledBlock:
    """See `target.backend.Block`."""

    library: Library
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    width: int
    rolled: RolledData | None
    strides: Ints
    scratch: int = 0  #: reals of memory per lane to work in

    def frame(self, places: Mapping[str, int], out: int) -> tuple[Ints, Floats]:
        """What its function gets: addresses of inputs and result, and its data. Keep both arrays alive."""
        work = aligned((self.rolled.work_size if self.rolled else self.scratch) * self.width)
        tail = dict.fromkeys(FRAME_TAIL, 0) | {"out": out, "strides": self.strides.ctypes.data,
                                               "work": work.ctypes.data}
        if self.rolled is not None:
            r = self.rolled
            tail |= {"numbers": r.numbers.ctypes.data, "table": r.table.ctypes.data,
                     "runs": r.runs.ctypes.data, "n_runs": len(r.runs)}
        return np.array([*(places[n] for n in self.inputs), *tail.values()], dtype=np.int64), work


class DriverMemory:
    """See `target.backend.DriverBuffers`."""

    def __init__(self, calls: CallLists, layout: DriverLayout, extra: Mapping[str, int]) -> None:
        self.calls, self.layout = calls, layout
        self.buffers: dict[str, Floats] = {name: aligned(size * calls.width)
                                           for name, size in {**calls.sizes, **extra}.items()}
        self._keep: list[Any] = []
        self.integers = np.zeros(len(layout.integers), dtype=np.int64)
        self.reals = np.zeros(len(layout.reals))
        self.pointers = np.zeros(len(layout.pointers), dtype=np.int64)
        #: where they are, as drivers are called with them
        self.arguments = tuple(x.ctypes.data for x in (self.integers, self.reals, self.pointers))
        for name, buffer in self.buffers.items():
            if name in layout.pointers:
                self.point(name, buffer)
        for name, listed in calls.lists.items():
            self.point(name, self._list(listed))
            self.set(**{f"n_{name}": len(listed)})

    def _address(self, buffer: str, entry: int) -> int:
        return int(self.buffers[buffer].ctypes.data) + 8 * entry * self.calls.width

    def _list(self, calls: Sequence[Call]) -> Ints:
        rows = []
        for call in calls:
            if isinstance(call.block, PythonBlock):
                rows += [self._thunk(call.block, call), 0]
                continue
            places = {name: self._address(*place) for name, place in {**self.calls.places, **call.inputs}.items()}
            block = call.block
            assert isinstance(block, CompiledBlock)
            frame, work = block.frame(places, self._address(call.buffer, call.start))
            self._keep += [frame, work]
            rows += [block.library.address, frame.ctypes.data]
        return np.array(rows or [0], dtype=np.int64)

    def _thunk(self, block: PythonBlock, call: Call) -> int:
        """The address of a function in Python."""
        lanes = self.calls.width
        shown = {name: x.reshape(-1, lanes) for name, x in self.buffers.items() if len(x) % lanes == 0}
        target = shown[call.buffer][call.start:]

        def run(frame: int) -> int:
            found = block.compute(shown)
            target[:len(found)] = found
            return 0

        thunk = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(run)
        self._keep.append(thunk)
        return int(ctypes.cast(thunk, ctypes.c_void_p).value or 0)

    def point(self, name: str, array: npt.NDArray[Any]) -> None:
        self._keep.append(array)
        self.address(name, array)

    def address(self, name: str, array: npt.NDArray[Any]) -> None:
        self.pointers[self.layout.pointers.index(name)] = array.__array_interface__["data"][0]  # sooner than `ctypes`

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self.integers[self.layout.integers.index(name)] = value

    def set_real(self, **values: float) -> None:
        for name, value in values.items():
            self.reals[self.layout.reals.index(name)] = value

    def get(self, name: str) -> int:
        return int(self.integers[self.layout.integers.index(name)])

    def get_real(self, name: str) -> float:
        return float(self.reals[self.layout.reals.index(name)])
