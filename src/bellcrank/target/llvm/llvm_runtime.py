"""The backend: programs are printed as LLVM assembly, compiled in memory, kept on disk, and run by the CPU."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from bellcrank.errors import ModelError
from bellcrank.target.backend import Backend, CallLists, Door, DoorForm, Driver, Instead
from bellcrank.target.calling import copying, one_block, over_states
from bellcrank.target.kernel_source import KernelSource
from bellcrank.target.llvm import door, jit
from bellcrank.target.llvm.block import CompiledBlock, DriverMemory
from bellcrank.target.llvm.compiling import Effort
from bellcrank.target.llvm.kernel import Kernel
from bellcrank.target.llvm.llvm_printer import BatchPrinter, BlockPrinter, DriverPrinter, print_program
from bellcrank.target.program import DriverLayout, Program

__all__ = ["LlvmBackend", "backend", "batch_text"]


class LlvmBackend:
    """See `target.backend.Backend`."""

    name, real, own_ways = "llvm", "double", False

    def lanes(self) -> int:
        return jit.vector_width()

    def beside(self) -> int:
        return jit.vector_width()

    def threads(self) -> int:
        return os.cpu_count() or 1

    def in_doubles(self) -> LlvmBackend:
        return self

    def foreign(self) -> None:
        return None

    def kernel(self, source: KernelSource, width: int) -> Kernel:
        source = source.side_by_side(jit.vector_width() if width == 1 else 1)
        text = batch_text(source, width)
        library = jit.begin(text(), effort=_effort(source)) if source.key is None else \
            jit.begin(f"{source.key} {width}", text)
        return Kernel(library, source.inputs, source.size, width, source.data, source.side, source.scratch(width))

    def block(self, source: KernelSource, names: tuple[str, ...], width: int) -> CompiledBlock:
        source = source.side_by_side(jit.vector_width() if width == 1 else 1)
        text = _block_text(source, width)
        library = jit.begin(text(), effort=_effort(source)) if source.key is None else \
            jit.begin(f"block {source.key} {width}", text)
        sizes = list(source.inputs.values())  # rolled kernels read their sizes from what others use as strides
        strides = np.array([*sizes, *sizes, source.size, source.side], dtype=np.int64)
        return CompiledBlock(library, tuple(source.inputs), names, width, source.data, strides, source.scratch(width))

    def copying(self, count: int, stride: int, offset: int, width: int) -> CompiledBlock:
        library = jit.begin(print_program(BlockPrinter(width, ["from"]), copying))
        return CompiledBlock(library, ("from",), ("copy",), width, None,
                             np.array([count, stride, offset], dtype=np.int64))

    def driver(self, program: Program, layout: DriverLayout, width: int, known: tuple[tuple[str, int], ...] = (),
               loops: bool = False) -> Driver:
        return _driver(program, layout, width, known, loops)

    def memory(self, calls: CallLists, layout: DriverLayout, extra: Mapping[str, int]) -> DriverMemory:
        return DriverMemory(calls, layout, extra)

    def door(self, kernel: Kernel, form: DoorForm, instead: Instead | None = None) -> Door | None:
        return door.make_door(kernel, form) if door.available() else None

    def batch_door(self, kernel: Kernel, form: DoorForm, least: int, most: int) -> Door | None:
        return door.make_batch_door(kernel, form, least, most) if door.available() else None

    def bound(self, kernel: Kernel, arrays: Sequence[Any], out: Any, exception: type[Exception], message: str
              ) -> Callable[[], Any]:
        if door.available():
            return door.make_bound(kernel, arrays, out, exception, message)

        def call() -> Any:
            if not kernel.run(arrays, kernel.packed_strides, out, 0, 1):
                raise exception(message)
            return out

        return call


_BACKEND: Backend = LlvmBackend()


def backend(precision: str = "double") -> Backend:
    """The one there is: it holds nothing."""
    if precision != "double":
        raise ModelError(f"precision={precision!r}: code for the CPU computes with doubles; take backend='cuda'")
    return _BACKEND


def _effort(source: KernelSource) -> Effort:
    return Effort.SCHEDULED if source.lanes > 1 else Effort.AS_TRACED


def batch_text(source: KernelSource, width: int) -> Callable[[], str]:
    """The assembly of a kernel, when it is asked for."""
    names = list(source.inputs)
    return lambda: print_program(BatchPrinter(width, names), lambda b: over_states(b, names, source.body(b)))


def _block_text(source: KernelSource, width: int) -> Callable[[], str]:
    names = list(source.inputs)
    return lambda: print_program(BlockPrinter(width, names), lambda b: one_block(b, names, source.body(b)))


@cache
def _driver(program: Program, layout: DriverLayout, width: int, known: tuple[tuple[str, int], ...], loops: bool
            ) -> Driver:
    library = jit.begin(print_program(DriverPrinter(width, layout, dict(known)), program),
                        effort=Effort.LOOPS if loops else Effort.STRAIGHT)

    @cache
    def function() -> Any:
        pointer = ctypes.c_void_p
        return ctypes.CFUNCTYPE(ctypes.c_int64, pointer, pointer, pointer)(library.address)

    def run(memory: DriverMemory) -> None:
        function()(*memory.arguments)

    run.library = library  # type: ignore[attr-defined]
    return run
