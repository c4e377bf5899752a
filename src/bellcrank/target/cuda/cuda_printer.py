"""Prints programs as CUDA C++, for the state of one thread: as C, but that arrays have a distance between the entries
of one state, and that what must not be fused says so."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from bellcrank.target.c.c_printer import CPrinter
from bellcrank.target.c.c_text import Arguments, Pointer, known
from bellcrank.target.program import Int, Real
from bellcrank.target.values import int_operand

__all__ = ["HALF_WARP", "IN_FLIGHT", "PRELUDE", "UNROLLED", "CudaPrinter"]

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

static __device__ __forceinline__ double quotient(double a, double b)
{
#ifdef __CUDA_ARCH__
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(b));
    r = fma(r, fma(-b, r, 1.0), r);
    r = fma(r, fma(-b, r, 1.0), r);
    const double q = a * r;
    return fma(fma(-b, q, a), r, q);
#else
    return a / b;
#endif
}
"""
#: doubles in constant memory, of which there are 64 kB
MOST_CONSTANTS = 6000
#: loops of known length up to this many rounds are unrolled, so that arrays can be registers
UNROLLED = 256
#: entries of arrays in the memory of the device that are on their way at the same time
IN_FLIGHT = 8
#: states of a warp whose states have two threads: the first ones, then the second ones
HALF_WARP = 16


class CudaPrinter(CPrinter):
    """The statements of one function; `real` is "double" or "float"."""

    inlines_calls = True

    def __init__(self, arguments: Arguments, real: str = "double", constants: dict[str, str] | None = None,
                 stretch: int = 0, variables: frozenset[str] = frozenset(), unrolled: int = UNROLLED,
                 half_numbers: dict[tuple[float, float], int] | None = None, in_flight: int = 1) -> None:
        super().__init__(arguments, real)
        self.in_flight = in_flight  #: entries of arrays that are read before the first of them is written
        #: values to be written, by place and index, and how deep in loops that is
        self._waiting: dict[tuple[Pointer, str], str] | None = None
        self._level = 0
        self.stretch = stretch  #: operations between two calls that never happen, if there are such calls
        self.unrolled = unrolled  #: rounds of the longest loop that is unrolled
        self._variables = variables  #: integers and reals of the thread that the program gives back
        self._constants = constants  #: literals by their text: what stands for them
        self._since, self._breaks = 0, 0
        #: numbers in which the two threads of a state differ, and their places
        self.half_numbers = {} if half_numbers is None else half_numbers
        self._exact = ("__d{}_rn" if real == "double" else "__f{}_rn").format
        self.compensates = real == "float"

    # -- reals --------------------------------------------------------------------------------------
    def real_do(self, text: str) -> str:
        """A constant. Of a large program long stretches are divided by calls that never happen: the compiler orders the
        operations of a stretch as it likes, and of a long one so that many more values are kept than registers hold."""
        self._since += 1
        if self.stretch and self._since > self.stretch:
            self._since, self._breaks = 0, self._breaks + 1
            self.put(f"if (never == {self._breaks}) unreached();")
        return super().real_do(text)

    def add(self, a: str, b: str, fuse: bool = True) -> str:
        return super().add(a, b) if fuse else self.real_do(f"{self._exact('add')}({a}, {b})")

    def sub(self, a: str, b: str, fuse: bool = True) -> str:
        return super().sub(a, b) if fuse else self.real_do(f"{self._exact('add')}({a}, -{b})")

    def mul(self, a: str, b: str, fuse: bool = True) -> str:
        return super().mul(a, b) if fuse else self.real_do(f"{self._exact('mul')}({a}, {b})")

    def div(self, a: str, b: str) -> str:
        """Doubles: to a unit in the last place, without the branches of the device's own for numbers near the limits
        of their range, where the result is not finite."""
        return self.real_do(f"quotient({a}, {b})") if self.real_type == "double" else super().div(a, b)

    def number(self, value: float) -> str:
        """Doubles that do not fit into an instruction lie in constant memory, which instructions can name."""
        text = super().number(abs(value))
        if self._constants is None or self.real_type == "float" or not math.isfinite(value) or not (
                struct.unpack("<Q", struct.pack("<d", value))[0] & 0xffffffff) or (
                text not in self._constants and len(self._constants) >= MOST_CONSTANTS):
            return super().number(value)
        place = self._constants.setdefault(text, f"constants[{len(self._constants)}]")
        return place if value > 0.0 else f"(-{place})"  # a sign costs nothing, a place does

    def sincos(self, a: str) -> tuple[str, str]:
        """The device's own: one or two units in the last place, at any angle."""
        s, c = self.name("s"), self.name("c")
        self.put(f"{self.real_type} {s}, {c};")
        self.put(f"sincos{'f' if self.real_type == 'float' else ''}({a}, &{s}, &{c});")
        return s, c

    # -- two threads for a state --------------------------------------------------------------------
    def of_half(self, half: int, operand: str) -> str:
        """A value of the first (0) or the second thread (1), for both."""
        return self.real_do(f"__shfl_sync(both, {operand}, {half * HALF_WARP} + threadIdx.x % {HALF_WARP})")

    def number_of_half(self, numbers: tuple[float, float]) -> str:
        """One number for the first thread, another for the second."""
        place = self.half_numbers.setdefault(numbers, len(self.half_numbers))
        return self.real_do(f"own_numbers[{2 * place}]")

    def own_load(self, place: Pointer, first: int, second: int) -> str:
        """An entry for the first thread, another for the second."""
        if place.step == "1":  # registers, we hope: these have no addresses
            return self.real_do(f"half ? {place.text}[{second}] : {place.text}[{first}]")
        return self.real_do(f"{place.text}[(half ? {second} : {first}) * {place.step}]")

    def own_store(self, place: Pointer, first: int, second: int, value: str) -> None:
        self.put(f"{place.text}[(half ? {second} : {first}) * {place.step}] = {value};")

    # -- memory -------------------------------------------------------------------------------------
    def load(self, place: Pointer, index: str, aligned: bool) -> str:
        waiting = self._waiting and self._waiting.get((place, index))
        return waiting or self.real_do(f"{place.text}[{self._entry(place, index)}]")

    def store(self, place: Pointer, index: str, value: str, aligned: bool) -> None:
        assert not place.const, place
        if self._waiting is not None:
            assert self.depth == self._level, "entries are written where their body begins"
            self._waiting[place, index] = value
            return
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

    # -- arguments ----------------------------------------------------------------------------------
    def count(self, name: str) -> Int:
        return Int(self, self.do("int32_t", name)) if name in self._variables else super().count(name)

    def set_count(self, name: str, value: Int | int) -> None:
        self.put(f"{name} = {int_operand(value)};")

    def real(self, name: str) -> Real:
        return Real(self, self.real_do(name)) if name in self._variables else super().real(name)

    def set_real(self, name: str, value: Real) -> None:
        self.put(f"{name} = {value.operand};")

    # -- control ------------------------------------------------------------------------------------
    def before_loop(self, first: str, last: str) -> None:
        if known(first) and known(last) and int(last) - int(first) <= self.unrolled:
            self.put("#pragma unroll")

    def together(self) -> None:
        """Threads that have ended are not waited for."""
        self.put("__syncwarp();")

    def entries(self, end: Int | int, start: Int | int, body: Callable[[Int], None]) -> None:
        """Memory of the device takes hundreds of cycles to answer, and the compiler does not read ahead of what is
        written, as it may be the same: several entries are read before the first of them is written. Where the number
        of entries is not known, up to `IN_FLIGHT` are read behind the last."""
        first, last, many = int_operand(start), int_operand(end), self.in_flight
        if many == 1 or self._waiting is not None:
            super().entries(end, start, body)
            return
        left = (int(last) - int(first)) % many if known(last) and known(first) else 0
        with self.loop(end - left, start, step=many) as j:
            self._together([j + k for k in range(many)], body, "" if known(last) and known(first) else last)
        if left:
            self._together([Int(self, str(int(last) - k)) for k in range(left, 0, -1)], body, "")

    def _together(self, entries: list[Int], body: Callable[[Int], None], end: str) -> None:
        """Some entries, as far as they are below `end`, which is not asked for the first."""
        groups: list[dict[tuple[Pointer, str], str]] = []
        for j in entries:
            self._level, self._waiting = self.depth, {}
            body(j)
            groups.append(self._waiting)
        self._waiting = None
        for k, (j, group) in enumerate(zip(entries, groups, strict=True)):
            within = f"if ({j.operand} < {end}) " if k and end else ""
            for (place, index), value in group.items():
                self.put(f"{within}{place.text}[{self._entry(place, index)}] = {value};")
