"""The device: compiles texts, holds arrays, starts kernels. All there is of CuPy stands here."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from bellcrank.errors import ModelError
from bellcrank.target.backend import BACKENDS
from bellcrank.target.cuda.device_text import DeviceText

__all__ = ["CupyDevice", "Device", "DeviceFunction", "current"]

#: blocks of threads that one launch has at most; threads then take several states
MOST_BLOCKS = 1 << 20


class DeviceFunction(Protocol):
    """A compiled kernel."""

    def __call__(self, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        """Start it on the present stream; arguments are arrays of the device and NumPy scalars."""

    def resources(self, threads: int) -> dict[str, float]:
        """Registers, bytes of local and of shared memory of a thread, and the part of all threads that run at once."""


class Device(Protocol):
    """What the backend asks for."""

    def function(self, text: DeviceText) -> DeviceFunction: ...

    def upload(self, array: npt.NDArray[Any]) -> Any:
        """A copy on the device."""

    def download(self, array: Any) -> npt.NDArray[Any]:
        """A copy of an array of the device; waits for it."""

    def empty(self, shape: tuple[int, ...], kind: type, columns: bool = False) -> Any:
        """A new array; `columns`: entries of neighbouring states lie side by side."""

    def zeros(self, count: int, kind: type) -> Any: ...

    def holds(self, value: Any) -> bool:
        """Whether it is an array on the device, of whatever library."""

    def view(self, value: Any, kind: type | None) -> Any:
        """An array of whatever library as one of ours; no copy if its numbers are of this kind, or any will do."""

    def like(self, array: Any, example: Any) -> Any:
        """An array of ours as one of the library that the example is from."""

    def to_numpy(self, value: Any) -> npt.NDArray[Any]:
        """A copy of an array of whatever library."""

    def from_numpy(self, array: npt.NDArray[Any], example: Any) -> Any:
        """A copy on the device, of the library and the kind of numbers of the example."""

    def stream_of(self, value: Any) -> AbstractContextManager[Any]:
        """Within, kernels are started on the stream that the library of this array works on."""

    def room(self) -> int:
        """Bytes that are free."""

    def shared_memory(self) -> int:
        """Bytes of shared memory of a multiprocessor."""


@cache
def current() -> Device:
    """The device of this process; an error that says what to do if there is none."""
    try:
        import cupy
    except ImportError:
        raise ModelError("backend='cuda' needs CuPy, which is not installed: pip install bellcrank[cuda] (or the "
                         f"cupy-cudaNNx that suits your driver); backend={BACKENDS[0]!r} needs no GPU") from None
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise _no_gpu(f" ({error})") from None
    if not count:
        raise _no_gpu()
    return CupyDevice(cupy)


def _no_gpu(why: str = "") -> ModelError:
    return ModelError(f"backend='cuda' finds no NVIDIA GPU{why}: look at nvidia-smi, or take backend={BACKENDS[0]!r}, "
                      "which needs none")


class CupyFunction:
    """See `DeviceFunction`."""

    def __init__(self, cupy: Any, text: DeviceText) -> None:
        self._cupy = cupy
        self._module = cupy.RawModule(code=text.text, options=("--std=c++11",))
        self._kernel, self._shared = self._module.get_function("kernel"), text.shared
        if text.shared:
            self._kernel.max_dynamic_shared_size_bytes = text.shared

    def __call__(self, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        self._kernel((blocks,), (threads,), tuple(arguments), shared_mem=self._shared)

    def resources(self, threads: int) -> dict[str, float]:
        kernel, cupy = self._kernel, self._cupy
        active = cupy.cuda.driver.occupancyMaxActiveBlocksPerMultiprocessor(kernel.kernel.ptr, threads, self._shared)
        most = cupy.cuda.runtime.getDeviceProperties(0)["maxThreadsPerMultiProcessor"]
        return {"registers": kernel.num_regs, "local_bytes": kernel.local_size_bytes,
                "shared_bytes": (kernel.shared_size_bytes + self._shared) / threads,
                "occupancy": active * threads / most}


class CupyDevice:
    """See `Device`."""

    def __init__(self, cupy: Any) -> None:
        self._cupy = cupy
        self._functions: dict[str, CupyFunction] = {}

    def function(self, text: DeviceText) -> CupyFunction:
        if text.text not in self._functions:
            self._functions[text.text] = CupyFunction(self._cupy, text)
        return self._functions[text.text]

    def upload(self, array: npt.NDArray[Any]) -> Any:
        return self._cupy.asarray(array)

    def download(self, array: Any) -> npt.NDArray[Any]:
        return np.asarray(array.get())

    def empty(self, shape: tuple[int, ...], kind: type, columns: bool = False) -> Any:
        return self._cupy.empty(shape, kind, order="F" if columns else "C")

    def zeros(self, count: int, kind: type) -> Any:
        return self._cupy.zeros(count, kind)

    def holds(self, value: Any) -> bool:
        if isinstance(value, (np.ndarray, float, int, list, tuple, str)) or value is None:
            return False
        if hasattr(type(value), "__cuda_array_interface__"):
            try:
                return value.__cuda_array_interface__ is not None
            except (AttributeError, RuntimeError):  # a tensor of the CPU
                return False
        dlpack: Callable[[], tuple[int, int]] | None = getattr(value, "__dlpack_device__", None)
        return dlpack is not None and dlpack()[0] == 2  # kDLCUDA

    def view(self, value: Any, kind: type | None) -> Any:
        cupy = self._cupy
        if not isinstance(value, cupy.ndarray):
            if hasattr(value, "detach"):
                value = value.detach()
            value = cupy.from_dlpack(value) if hasattr(value, "__dlpack__") else cupy.asarray(value)
        return value if kind is None or value.dtype == kind else value.astype(kind)

    def like(self, array: Any, example: Any) -> Any:
        if isinstance(example, self._cupy.ndarray):
            return array
        library = sys.modules[type(example).__module__.partition(".")[0]]
        if library.__name__ != "torch" and hasattr(example, "__array_namespace__"):
            library = example.__array_namespace__()
        return library.from_dlpack(array) if hasattr(library, "from_dlpack") else array

    def to_numpy(self, value: Any) -> npt.NDArray[Any]:
        with self.stream_of(value):
            return self.download(self.view(value, None))

    def from_numpy(self, array: npt.NDArray[Any], example: Any) -> Any:
        with self.stream_of(example):
            return self.like(self.upload(array.astype(self.view(example, None).dtype)), example)

    def stream_of(self, value: Any) -> AbstractContextManager[Any]:
        if type(value).__module__.partition(".")[0] != "torch":
            return nullcontext()
        import torch

        stream: AbstractContextManager[Any] = self._cupy.cuda.ExternalStream(
            torch.cuda.current_stream(value.device).cuda_stream)
        return stream

    def room(self) -> int:
        free: int = self._cupy.cuda.runtime.memGetInfo()[0]
        return free + int(self._cupy.get_default_memory_pool().free_bytes())

    def shared_memory(self) -> int:
        runtime = self._cupy.cuda.runtime
        return int(runtime.getDeviceProperties(runtime.getDevice())["sharedMemPerMultiprocessor"])
