"""A device that is none: CUDA texts compiled by the C++ compiler of this machine, one thread run after the other. Its
arrays are those of NumPy, of a class of their own."""

from __future__ import annotations

import ctypes
import getpass
import hashlib
import os
import shutil
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import children
from bellcrank.target.cuda.device_text import DeviceText

__all__ = ["COMPILER", "HostArray", "HostDevice"]

COMPILER = next((found for name in ("c++", "g++", "clang++") if (found := shutil.which(name))), None)
_SHIM = """\
struct Three { unsigned x; };
static thread_local Three threadIdx, blockIdx, blockDim, gridDim;
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
#define __restrict__
#define __constant__ const
#define __shared__
#define __CUDACC_VER_MAJOR__ 0
static inline double __dmul_rn(double a, double b) { return a * b; }
static inline double __dadd_rn(double a, double b) { return a + b; }
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fadd_rn(float a, float b) { return a + b; }
static inline void __threadfence() {}
static inline void __syncwarp() {}
static inline void atomicOr(int *flag, int bit) { *flag |= bit; }
"""


#: two threads of a state take turns: each goes on where the other has given what it asks for
_TURNS = """\
#include <ucontext.h>
static ucontext_t turn[2], home;
static double given[2][2];
static unsigned asked[2], first_thread;
static int now, ended[2];
static inline double __shfl_sync(unsigned, double x, int lane)
{
    const int me = now, place = asked[me]++ & 1;
    given[me][place] = x;
    if (!ended[1 - me]) { now = 1 - me; threadIdx.x = first_thread + 16 * now; swapcontext(&turn[me], &turn[now]); }
    return given[lane / 16][place];
}
static void (*kernel_of_pair)();
static void play() { kernel_of_pair(); ended[now] = 1; swapcontext(&turn[now], &home); }
static void pair(unsigned thread)
{
    static char stacks[2][1 << 20];
    first_thread = thread;
    for (int i = 0; i < 2; ++i) {
        asked[i] = ended[i] = 0;
        getcontext(&turn[i]);
        turn[i].uc_stack.ss_sp = stacks[i];
        turn[i].uc_stack.ss_size = sizeof stacks[i];
        turn[i].uc_link = &home;
        makecontext(&turn[i], play, 0);
    }
    for (int i = 0; i < 2; ++i) if (!ended[i]) {
        now = i; threadIdx.x = first_thread + 16 * i; swapcontext(&home, &turn[i]);
    }
}
"""


class HostArray(np.ndarray):
    """An array of the device that is none."""


class HostFunction:
    """See `target.cuda.device.DeviceFunction`."""

    def __init__(self, text: DeviceText) -> None:
        assert COMPILER is not None
        self.text = text
        casts = ", ".join(f"*({kind.replace('__restrict__', '')} *)given[{i}]"
                          for i, (kind, _) in enumerate(text.parameters))
        pairs = text.split == 2
        run = "if (t % 32 < 16) pair(t);" if pairs else f"kernel({casts});"
        start = ('extern "C" void start(unsigned blocks, unsigned threads, void **given)\n{\n'
                 "    gridDim.x = blocks;\n    blockDim.x = threads;\n"
                 f"{'    arguments = given; kernel_of_pair = kernel_of_these;' if pairs else ''}\n"
                 "    for (unsigned b = 0; b < blocks; ++b) for (unsigned t = 0; t < threads; ++t) {\n"
                 f"        blockIdx.x = b;\n        threadIdx.x = t;\n        {run}\n    }}\n}}\n")
        if pairs:
            start = ("static void **arguments;\nstatic void kernel_of_these()\n{\n"
                     f"    void **const given = arguments;\n    kernel({casts});\n}}\n{start}")
        real = "float" if "extern __shared__ float" in text.text else "double"
        shared = f"{real} shared_of_block[{text.shared // (4 if real == 'float' else 8) + 1}];\n"
        body = _SHIM + _TURNS * pairs + text.text + shared + start
        folder = Path(tempfile.gettempdir()) / f"bellcrank-host-device-{getpass.getuser()}"
        folder.mkdir(exist_ok=True)
        library = folder / f"{hashlib.sha256(body.encode()).hexdigest()[:24]}.so"
        if not library.exists():
            source, made = (folder / f"{library.stem}-{os.getpid()}{end}" for end in (".cpp", ".so"))
            source.write_text(body, encoding="utf-8")
            done = children.run([COMPILER, "-O0", "-ffp-contract=off", "-w", "-shared", "-fPIC", source, "-o", made])
            assert done.returncode == 0, done.stderr[:4000]
            source.unlink()
            os.replace(made, library)  # other processes may be making it, too
        self._start = ctypes.CDLL(str(library)).start

    def __call__(self, blocks: int, threads: int, arguments: Sequence[Any]) -> None:
        assert len(arguments) == len(self.text.parameters)
        cells = []
        for value, (kind, _) in zip(arguments, self.text.parameters, strict=True):
            if isinstance(value, HostArray):
                assert "*" in kind
                cells.append(ctypes.c_void_p(value.ctypes.data))
            else:
                assert "*" not in kind
                wanted = {"long long": np.int64, "int": np.int32, "double": np.float64, "float": np.float32}[kind]
                assert type(value) is wanted, (kind, value)
                cells.append(np.ctypeslib.as_ctypes_type(wanted)(value))
        pointers = (ctypes.c_void_p * len(cells))(*[ctypes.addressof(c) for c in cells])
        self._start(ctypes.c_uint(blocks), ctypes.c_uint(threads), pointers)

    def resources(self, threads: int) -> dict[str, float]:
        return {"registers": 0, "local_bytes": 0, "shared_bytes": 0, "occupancy": 1.0}


class HostDevice:
    """See `target.cuda.device.Device`."""

    def __init__(self) -> None:
        self.functions: dict[str, HostFunction] = {}
        self.shared = 233_472  #: bytes of shared memory of a multiprocessor
        self.downloads = self.uploads = 0  #: numbers that came back, and that went there

    def function(self, text: DeviceText) -> HostFunction:
        if text.text not in self.functions:
            self.functions[text.text] = HostFunction(text)
        return self.functions[text.text]

    def upload(self, array: Any) -> HostArray:
        self.uploads += np.size(array)
        return np.array(array).view(HostArray)

    def download(self, array: HostArray) -> Any:
        self.downloads += array.size if array.dtype != bool else 0
        return np.array(array).view(np.ndarray)

    def empty(self, shape: tuple[int, ...], kind: type, columns: bool = False) -> HostArray:
        return np.full(shape, np.nan, kind, order="F" if columns else "C").view(HostArray)  # means nothing

    def zeros(self, count: int, kind: type) -> HostArray:
        return np.zeros(count, kind).view(HostArray)

    def holds(self, value: Any) -> bool:
        return isinstance(value, HostArray)

    def view(self, value: HostArray, kind: type | None) -> Any:
        return value if kind is None or value.dtype == kind else value.astype(kind)

    def like(self, array: HostArray, example: Any) -> Any:
        return array

    def to_numpy(self, value: HostArray) -> Any:
        return self.download(value)

    def from_numpy(self, array: Any, example: HostArray) -> HostArray:
        return self.upload(array.astype(example.dtype))

    def stream_of(self, value: Any) -> AbstractContextManager[Any]:
        return nullcontext()

    def room(self) -> int:
        return 1 << 30

    def shared_memory(self) -> int:
        return self.shared
