"""Prints programs as CUDA C++, for the state of one thread: as C, but that arrays have a distance between the entries
of one state, and that what must not be fused says so."""

from __future__ import annotations

from bellcrank.target.c.c_printer import Arguments, CPrinter, Pointer, known

__all__ = ["PRELUDE", "CudaPrinter"]

#: what NVRTC, which has no headers of the C library, does not know
PRELUDE = """\
#ifdef __CUDACC_RTC__
typedef int int32_t;
typedef unsigned long long uint64_t;
#define NAN __longlong_as_double(0x7ff8000000000000LL)
#define INFINITY __longlong_as_double(0x7ff0000000000000LL)
#define FLT_MAX 3.402823466e+38f
#else
#include <float.h>
#include <math.h>
#include <stdint.h>
#endif
static __device__ __noinline__ void unreached() { __threadfence(); }
"""
#: operations between two calls that never happen
STRETCH = 200
#: loops of known length up to this many rounds are unrolled, so that arrays can be registers
UNROLLED = 256


class CudaPrinter(CPrinter):
    """The statements of one function; `real` is "double" or "float"."""

    inlines_calls = True

    def __init__(self, arguments: Arguments, real: str = "double") -> None:
        super().__init__(arguments, real)
        self._since, self._breaks = 0, 0
        self._exact = ("__d{}_rn" if real == "double" else "__f{}_rn").format

    # -- reals --------------------------------------------------------------------------------------
    def real_do(self, text: str) -> str:
        """A constant. Long stretches are divided by calls that never happen: the compiler orders the operations of a
        stretch as it likes, and of a long one so that many more values are kept than registers hold."""
        self._since += 1
        if self._since > STRETCH:
            self._since, self._breaks = 0, self._breaks + 1
            self.put(f"if (never == {self._breaks}) unreached();")
        return super().real_do(text)

    def add(self, a: str, b: str, fuse: bool = True) -> str:
        return super().add(a, b) if fuse else self.real_do(f"{self._exact('add')}({a}, {b})")

    def sub(self, a: str, b: str, fuse: bool = True) -> str:
        return super().sub(a, b) if fuse else self.real_do(f"{self._exact('add')}({a}, -{b})")

    def mul(self, a: str, b: str, fuse: bool = True) -> str:
        return super().mul(a, b) if fuse else self.real_do(f"{self._exact('mul')}({a}, {b})")

    def sincos(self, a: str) -> tuple[str, str]:
        """The device's own: one or two units in the last place, at any angle."""
        s, c = self.name("s"), self.name("c")
        self.put(f"{self.real_type} {s}, {c};")
        self.put(f"sincos{'f' if self.real_type == 'float' else ''}({a}, &{s}, &{c});")
        return s, c

    # -- memory -------------------------------------------------------------------------------------
    def load(self, place: Pointer, index: str, aligned: bool) -> str:
        return self.real_do(f"{place.text}[{self._entry(place, index)}]")

    def store(self, place: Pointer, index: str, value: str, aligned: bool) -> None:
        assert not place.const, place
        self.put(f"{place.text}[{self._entry(place, index)}] = {value};")

    def _entry(self, place: Pointer, index: str) -> str:
        if place.step == "1" or index == "0":
            return index
        return str(int(index) * int(place.step)) if known(index) and known(place.step) else f"{index} * {place.step}"

    def move(self, place: Pointer, index: str, times: int) -> Pointer:
        offset = self.int_op("*", index, str(times))
        if offset == "0":
            return place
        name, const = self.name("p"), "const " if place.const else ""
        self.define(name, f"{const}{self.real_type} *const {name} = {place.text} + {self._entry(place, offset)};")
        return Pointer(name, place.const, place.step)

    # -- control ------------------------------------------------------------------------------------
    def before_loop(self, first: str, last: str) -> None:
        if known(first) and known(last) and int(last) - int(first) <= UNROLLED:
            self.put("#pragma unroll")
