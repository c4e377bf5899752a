"""A function of many states on the device: of NumPy's arrays by copies, of arrays of the device as they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.target.backend import BatchKernel, DoorForm, Instead
from bellcrank.target.cuda.device import MOST_BLOCKS, Device, DeviceFunction
from bellcrank.target.cuda.device_text import WARP, DeviceText, batch_text
from bellcrank.target.cuda.parking_ways import THREADS
from bellcrank.target.kernel_source import KernelSource

__all__ = ["DeviceKernel"]

Ints = npt.NDArray[np.int64]

#: part of the free memory that one launch on arrays of NumPy may take
_SHARE = 0.5


class DeviceKernel:
    """See `target.backend.BatchKernel`. Few states, which are not worth a launch, are computed by the `host`."""

    def __init__(self, source: KernelSource, width: int, device: Device, real: str, host: Callable[[], BatchKernel]
                 ) -> None:
        self.source, self.width, self.device, self.real = source, width, device, real
        self.kind = np.float64 if real == "double" else np.float32
        self.inputs, self.out_size = dict(source.inputs), source.size
        self.rolled, self.scratch = source.data, 0
        self._host = host

    @cached_property
    def packed_strides(self) -> Ints:
        return self.strides(list(self.inputs.values()))

    @cached_property
    def host(self) -> BatchKernel:
        """The same for the CPU, one state after the other."""
        return self._host()

    @cached_property
    def text(self) -> DeviceText:
        return batch_text(self.source, self.real, self.device.shared_memory())

    @cached_property
    def function(self) -> DeviceFunction:
        return self.device.function(self.text)

    def strides(self, of_inputs: Sequence[int]) -> Ints:
        return self.host.strides(of_inputs) if self.width == 1 else np.array(of_inputs, dtype=np.int64)

    def workspace(self) -> Floats:
        return self.host.workspace() if self.width == 1 else np.zeros(0)

    def run(self, inputs: Sequence[Any], strides: Ints, out: Any, begin: int, end: int,
            work: Floats | None = None) -> bool:
        if self.width == 1:
            return self.host.run(inputs, strides, out, begin, end, work)
        numbers = sum(self.inputs.values()) + self.out_size
        most = max(WARP, int(_SHARE * self.device.room() / (np.dtype(self.kind).itemsize * numbers)))
        good = True
        for first in range(begin, end, most):
            last = min(end, first + most)
            rows = [self.device.upload(np.ascontiguousarray(a if step == 0 else a[first:last], dtype=self.kind))
                    for a, step in zip(inputs, strides.tolist(), strict=True)]
            made = self.device.empty((last - first, self.out_size), self.kind)
            good &= self.launch(rows, made, last - first)
            out[first:last] = self.device.download(made)
        return good

    def launch(self, arrays: Sequence[Any], out: Any, states: int) -> bool:
        """Compute so many states of arrays on the device, (states, size); (1, size) or (size,) where all have the same.
        False if something was not finite."""
        flag = self.start(arrays, out, states)
        return int(self.device.download(flag)[0]) == 0

    def start(self, arrays: Sequence[Any], out: Any, states: int) -> Any:
        """The same, but the answer is a flag on the device, which is not waited for."""
        device, size = self.device, np.dtype(self.kind).itemsize
        flag, arguments = device.zeros(1, np.int32), []
        for array in (*arrays, out):
            one = array.ndim == 1 or (len(array) == 1 and states > 1)
            arguments += [array, np.int64(0 if one else array.strides[0] // size), np.int64(array.strides[-1] // size)]
        blocks = min(-(-states * self.text.split // THREADS), MOST_BLOCKS)
        if self.rolled is not None:
            blocks = min(blocks, self._resident)
            arguments += [device.empty((blocks * THREADS * self.rolled.work_size,), self.kind), *self._tables]
        self.function(blocks, THREADS, [*arguments, flag, np.int32(0), np.int64(states)])
        return flag

    @cached_property
    def _resident(self) -> int:
        """Blocks whose workspaces take a part of the memory."""
        assert self.rolled is not None
        block = np.dtype(self.kind).itemsize * THREADS * self.rolled.work_size
        return max(1, min(int(_SHARE * self.device.room()) // block, 132 * 4))

    @cached_property
    def _tables(self) -> list[Any]:
        assert self.rolled is not None
        r = self.rolled
        return [self.device.upload(r.numbers.astype(self.kind).ravel()),
                *(self.device.upload(x.astype(np.int32).ravel()) for x in (r.table, r.runs))]

    # -- arrays of the device -----------------------------------------------------------------------
    def answer(self, form: DoorForm, arguments: Sequence[Any], instead: Instead | None = None) -> Any:
        """The result for arrays of the device, one of the same library; None if they do not fit, or something is not
        finite, by what there is `instead` either."""
        given = [a for i, a in enumerate(arguments) if i != form.skipped]
        given += [None] * (len(self.inputs) - len(given))
        if len(given) != len(self.inputs):
            return None
        for i, default in enumerate(form.defaults, len(self.inputs) - len(form.defaults)):
            if given[i] is None:
                given[i] = default
        example = next((a for a in given if self.device.holds(a)), None)
        if example is None or not all(
                self.device.holds(a) or isinstance(a, np.ndarray) for a in given):
            return None
        with self.device.stream_of(example):
            arrays = [self.device.view(a, self.kind) if self.device.holds(a) else
                      self.device.upload(a.astype(self.kind)) for a in given]
            leads = {a.shape[:-1] for a in arrays if a.ndim > 1}
            if len(leads) > 1 or any(a.ndim not in (1, 2) or a.shape[-1] != size
                                     for a, size in zip(arrays, self.inputs.values(), strict=True)):
                return None
            states = next(iter(leads))[0] if leads else 1
            columns = next((a.strides[0] < a.strides[1] for a in arrays if a.ndim == 2), False)
            out = self.device.empty((states, self.out_size), self.kind, columns)
            if states and not self.launch(arrays, out, states) and not (
                    instead is not None and self._mended(arrays, out, states, instead)):
                return None
            return self._shaped(out if leads else out[0], form, example)

    def _mended(self, arrays: Sequence[Any], out: Any, states: int, instead: Instead) -> bool:
        """Compute the states without a finite result by other kernels, each made for one of them and tried for all."""
        device = self.device
        several = [a.ndim > 1 and len(a) == states for a in arrays]
        bad = np.flatnonzero(~self._finite(out))
        while len(bad):
            first = [device.download(a[int(bad[0])] if many else a).astype(float).reshape(-1)
                     for a, many in zip(arrays, several, strict=True)]
            other = instead(*first) if all(np.isfinite(x).all() for x in first) else None
            if not isinstance(other, DeviceKernel):
                return False
            rows = device.upload(bad)
            again = device.empty((len(bad), self.out_size), self.kind)
            other.start([a[rows] if many else a for a, many in zip(arrays, several, strict=True)], again, len(bad))
            good = self._finite(again)
            if not good[0]:
                return False
            out[device.upload(bad[good])] = again[device.upload(np.flatnonzero(good))]
            bad = bad[~good]
        return True

    def _finite(self, rows: Any) -> npt.NDArray[np.bool_]:
        return self.device.download((rows * 0.0 == 0.0).all(axis=-1))

    def _shaped(self, out: Any, form: DoorForm, example: Any) -> Any:
        lead = out.shape[:-1]
        if form.parts:
            return tuple(self.device.like(self._part(out, *part), example) for part in form.parts)
        if form.shape is not None:
            out = out.reshape(*lead, *form.shape)
        return self.device.like(out, example)

    def _part(self, out: Any, first: int, shape: tuple[int, ...], steps: tuple[int, ...]) -> Any:
        index = first + sum(np.arange(n).reshape(-1, *(1,) * (len(shape) - 1 - i)) * step
                            for i, (n, step) in enumerate(zip(shape, steps, strict=True)))
        return out[..., index]
