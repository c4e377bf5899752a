"""A compiled kernel with everything it runs on."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.target.kernel_source import RolledData
from bellcrank.target.llvm.jit import Library

__all__ = ["Kernel", "aligned"]

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]


def aligned(size: int) -> Floats:
    """Zeros whose address suits the widest registers."""
    raw = np.zeros(size + 8)
    skip = (-raw.ctypes.data % 64) // 8
    return raw[skip:skip + max(size, 1)]


class Kernel:
    """``run(addresses of inputs, strides, out, begin, end)`` on the states of a batch."""

    def __init__(self, library: Library, inputs: Mapping[str, int], out_size: int, width: int,
                 rolled: RolledData | None = None, side: int = 0, scratch: int = 0) -> None:
        self.library = library
        self.inputs, self.out_size, self.width = dict(inputs), out_size, width
        self.rolled = rolled
        #: doubles of scratch memory per lane
        self.scratch = rolled.work_size if rolled else scratch
        self._sizes = [*inputs.values(), out_size, side]
        #: what kernels get as `strides`: the stride of each input, then the length of each, of the output, and of
        #: a side of the output if that is a matrix
        self.packed_strides: Ints = self.strides(list(inputs.values()))
        #: scratch memory of the native doors, which run under the interpreter's lock
        self.work = self.workspace()

    @property
    def address(self) -> int:
        """Where its code begins; waits until that is made."""
        return self.library.address

    @cached_property
    def _call(self) -> Any:
        pointer, integer = ctypes.c_void_p, ctypes.c_int64
        return ctypes.CFUNCTYPE(ctypes.c_int32, *[pointer] * (len(self.inputs) + 2), integer, integer,
                                *[pointer] * 4, integer)(self.address)

    def strides(self, of_inputs: Sequence[int]) -> Ints:
        """The kernel's `strides` for given distances between the states of each input."""
        return np.array([*of_inputs, *self._sizes], dtype=np.int64)

    @cached_property
    def batch_work(self) -> Floats:
        """Scratch memory of `run`, which does not hold the interpreter's lock: callers take turns."""
        return self.workspace()

    def workspace(self) -> Floats:
        """Scratch memory for one thread, aligned for the widest registers."""
        return aligned(self.scratch * self.width)

    def data_addresses(self) -> list[int]:
        """Workspace and tables, in the order of the kernel's arguments."""
        return self._addresses(self.work)

    def _addresses(self, work: Floats) -> list[int]:
        if self.rolled is None:
            return [work.ctypes.data, 0, 0, 0, 0]
        r = self.rolled
        return [work.ctypes.data, r.numbers.ctypes.data, r.table.ctypes.data, r.runs.ctypes.data, len(r.runs)]

    def run(self, inputs: Sequence[Any], strides: Ints, out: Any, begin: int, end: int,
            work: Floats | None = None) -> bool:
        """Compute states `begin` to `end`; False if something was not finite. Releases the interpreter lock."""
        rest = self._addresses(self.batch_work if work is None else work)
        status = self._call(*(a.ctypes.data for a in inputs), out.ctypes.data, strides.ctypes.data, begin, end, *rest)
        return bool(status == 0)
