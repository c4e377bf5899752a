"""A compiled kernel with everything it runs on."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.target.kernel_source import RolledData
from bellcrank.target.llvm.jit import Library

__all__ = ["Kernel", "aligned"]

Ints = npt.NDArray[np.int64]


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
        self._strides: dict[tuple[int, ...], Ints] = {}
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
        key = tuple(of_inputs)
        if key not in self._strides:
            self._strides[key] = np.array([*of_inputs, *self._sizes], dtype=np.int64)
        return self._strides[key]

    @cached_property
    def batch_work(self) -> Floats:
        """Scratch memory of `run`, which does not hold the interpreter's lock: callers take turns."""
        return self.workspace()

    def workspace(self) -> Floats:
        """Scratch memory for one thread, aligned for the widest registers."""
        return aligned(self.scratch * self.width)

    def data_addresses(self) -> list[int]:
        """Workspace and tables, in the order of the kernel's arguments."""
        return [_address(self.work), *self._tables]

    @cached_property
    def _tables(self) -> tuple[int, int, int, int]:
        if self.rolled is None:
            return 0, 0, 0, 0
        r = self.rolled
        return _address(r.numbers), _address(r.table), _address(r.runs), len(r.runs)

    def run(self, inputs: Sequence[Any], strides: Ints, out: Any, begin: int, end: int,
            work: Floats | None = None) -> bool:
        """Compute states `begin` to `end`; False if something was not finite. Releases the interpreter lock."""
        work = self.batch_work if work is None else work
        status = self._call(*[_address(a) for a in (*inputs, out, strides)], begin, end, _address(work), *self._tables)
        return bool(status == 0)


def _address(array: Any) -> int:
    """Where an array's numbers are; `array.ctypes` takes thrice as long to say so."""
    found: int = array.__array_interface__["data"][0]
    return found
