"""The backend: programs are printed as CUDA, compiled by NVRTC through CuPy, and run on the device.

Kernels of one state, and blocks and drivers of one lane, are the host's: a launch takes longer than a few states do on
the CPU, and plans, closings and events are made of such.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

from bellcrank.target.backend import (
    BACKENDS,
    Backend,
    Block,
    CallLists,
    Door,
    DoorForm,
    Driver,
    DriverBuffers,
    Instead,
    backend_named,
)
from bellcrank.target.cuda.device import Device, current
from bellcrank.target.cuda.device_driver import DeviceDriver, DeviceMemory
from bellcrank.target.cuda.device_kernel import DeviceKernel
from bellcrank.target.cuda.device_text import WARP, DeviceBlock
from bellcrank.target.kernel_source import ColumnKernel, KernelSource
from bellcrank.target.program import DriverLayout, Program

__all__ = ["CudaBackend", "backend", "made"]


class CudaBackend:
    """See `target.backend.Backend`."""

    name = "cuda"
    own_ways = True

    def __init__(self, device: Device, real: str = "double") -> None:
        self.device, self.real = device, real
        self.host = backend_named(BACKENDS[0])

    def lanes(self) -> int:
        return WARP

    def beside(self) -> int:
        return self.host.beside()

    def threads(self) -> int:
        return 1

    def in_doubles(self) -> Backend:
        return self if self.real == "double" else made("double")

    def foreign(self) -> Device:
        return self.device

    def kernel(self, source: KernelSource, width: int) -> DeviceKernel:
        whole = source.flat() if isinstance(source, ColumnKernel) else source  # threads have no lanes for columns
        return DeviceKernel(whole, width, self.device, self.real, lambda: self.host.kernel(source, 1))

    def block(self, source: KernelSource, names: tuple[str, ...], width: int) -> Block:
        return self.host.block(source, names, 1) if width == 1 else DeviceBlock(source, names)

    def copying(self, count: int, stride: int, offset: int, width: int) -> Block:
        return self.host.copying(count, stride, offset, 1) if width == 1 else \
            DeviceBlock((count, stride, offset), ("copy",))

    def driver(self, program: Program, layout: DriverLayout, width: int, known: tuple[tuple[str, int], ...] = (),
               loops: bool = False) -> Driver:
        if width == 1:
            return self.host.driver(program, layout, 1, known, loops)
        real = "double" if layout.returned else self.real  # what controls errors, or iterates, needs all digits
        return DeviceDriver(program, layout, self.device, real)

    def memory(self, calls: CallLists, layout: DriverLayout, extra: Mapping[str, int]) -> DriverBuffers:
        return self.host.memory(calls, layout, extra) if calls.width == 1 else DeviceMemory(calls, layout, extra)

    def door(self, kernel: DeviceKernel, form: DoorForm, instead: Instead | None = None) -> Door | None:
        return DeviceDoor(self, kernel, form, instead)

    def batch_door(self, kernel: DeviceKernel, form: DoorForm, least: int, most: int) -> Door | None:
        return self.host.batch_door(kernel.host, form, least, most) if kernel.width == 1 else None

    def bound(self, kernel: DeviceKernel, arrays: Sequence[Any], out: Any, exception: type[Exception], message: str
              ) -> Callable[[], Any]:
        return self.host.bound(kernel.host, arrays, out, exception, message)


class DeviceDoor:
    """Arrays of the device are answered by the device, one state of NumPy by the host."""

    def __init__(self, backend: CudaBackend, kernel: DeviceKernel, form: DoorForm, instead: Instead | None) -> None:
        self._backend, self._kernel, self._form, self._instead = backend, kernel, form, instead
        self._one: Door | None = None
        self._asked = False

    def __call__(self, *arguments: Any) -> Any:
        if any(self._kernel.device.holds(a) for a in arguments):
            return self._kernel.answer(self._form, arguments, self._instead)
        if not self._asked:
            self._one, self._asked = self._backend.host.door(self._kernel.host, self._form), True
        return None if self._one is None else self._one(*arguments)


@cache
def made(real: str) -> Backend:
    """The backend of a type of numbers, made once."""
    return CudaBackend(current(), real)


def backend(precision: str = "double") -> Backend:
    """The one for doubles, or for floats ("single")."""
    return made("double" if precision == "double" else "float")
