"""The texts of kernels: a function of many states, or a driver with all the blocks it calls; one thread per state.

Arrays of drivers have the states of a warp side by side, entry by entry: neighbouring threads read neighbouring words,
and the distance between entries is a number of the code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bellcrank.target.backend import Call, CallLists
from bellcrank.target.c.c_text import Arguments, Pointer
from bellcrank.target.calling import LaneStates, copying, one_block
from bellcrank.target.cuda.cuda_printer import IN_FLIGHT, PRELUDE, UNROLLED, CudaPrinter
from bellcrank.target.cuda.half_code import HalfProgram, half_numbers, half_program, own_state
from bellcrank.target.cuda.parking_ways import (
    SHARED,
    THREADS,
    ParkingWay,
    half_way,
    keeping,
    kept,
    parking_way,
    stretch_of,
    too_much,
)
from bellcrank.target.kernel_source import KernelSource, RolledData
from bellcrank.target.program import DriverLayout, Program

__all__ = ["CHANGING", "THREADS", "WARP", "WRITTEN", "DeviceBlock", "DeviceText", "DriverText", "batch_text",
           "driver_text"]

#: threads that execute together, and states side by side in the arrays of drivers
WARP = 32
#: integers of drivers that differ from call to call; the others are numbers of the code
CHANGING = ("steps", "first", "every", "hold", "samples", "limit", "shrink", "pause", "forces_out")
#: arrays of drivers that these only write
WRITTEN = ("all_done", "out", "open", "out_forces")
#: operations of all calls of a driver up to which these are copies of what they call
INLINED = 20_000
#: reals of a state in the buffers of a driver up to which these are arrays of the thread: registers, if all goes well
OWN_BUFFERS = 1024
_STATE = "(long long)blockIdx.x * blockDim.x + threadIdx.x"


class DeviceText(NamedTuple):
    """A source with one function, ``kernel``."""

    text: str
    parameters: tuple[tuple[str, str], ...]  #: types and names
    shared: int = 0  #: bytes of shared memory of a block that it asks for
    split: int = 1  #: threads of a state


class DriverText(NamedTuple):
    """A driver with its blocks."""

    source: DeviceText
    rolled: list[RolledData]  #: of its rolled blocks
    work: int  #: reals of workspace that a thread needs in the device's memory
    buffers: int  #: reals of buffers that a thread needs there


@dataclass(frozen=True, eq=False)
class DeviceBlock:
    """What is called by drivers: a source of a kernel, or (count, stride, offset) of entries to be copied."""

    source: KernelSource | tuple[int, int, int]
    outputs: tuple[str, ...]

    @property
    def inputs(self) -> tuple[str, ...]:
        return ("from",) if isinstance(self.source, tuple) else tuple(self.source.inputs)

    @property
    def data(self) -> RolledData | None:
        return None if isinstance(self.source, tuple) else self.source.data


def batch_text(source: KernelSource, real: str, room: int = SHARED) -> DeviceText:
    """A kernel for the states of a batch; each input and the result have a distance between states and one between
    entries; `room`: bytes of shared memory of a multiprocessor."""
    made, lines, _ = _batch_text(source, real, "plain", room)
    how = keeping(lines, driver=False)
    if how == "plain":
        return made
    made, _, way = _batch_text(source, real, how, room)
    halved = half_program(source) if too_much(way) else None
    return made if halved is None else _batch_text(source, real, "halved", room, halved)[0]


def _batch_text(source: KernelSource, real: str, how: str, room: int, halved: HalfProgram | None = None
                ) -> tuple[DeviceText, int, ParkingWay | None]:
    """The same, the length of what a thread does, and how values are parked; `how`: see `keeping`."""
    given: list[tuple[str, str]] = []
    for name in source.inputs:
        given += [(f"const {real} *__restrict__", f"in_{name}"), ("long long", f"{name}_state"),
                  ("long long", f"{name}_entry")]
    given += [(f"{real} *__restrict__", "results"), ("long long", "out_state"), ("long long", "out_entry")]
    if source.data is not None:
        given += [(f"{real} *__restrict__", "work_of_all"), *_tables(real, "")]
    given += [("int *", "flag"), ("int", "never"), ("long long", "states")]
    pointers = {name: Pointer(name, True, f"{name}_entry") for name in source.inputs}
    pointers |= {"out": Pointer("out", False, "out_entry")}
    constants: dict[str, str] = {}
    printer = CudaPrinter(Arguments(*_rolled_arguments(source, pointers, "")), real, constants, stretch_of(how),
                          unrolled=_unrolled(source))
    names = list(source.inputs)
    inputs, out = {name: printer.memory(name) for name in names}, printer.memory("out")
    check = (source.body(printer) if halved is None else halved.body(printer, False))(
        LaneStates(inputs, lambda size: out, True, False))
    assert check is not None
    bad = check.is_nan().any().integer()
    printer.result = bad.operand
    body = [*printer.lines, f"    bad |= {printer.result};"]
    way = parking_way([body], real, room) if how == "parked" else None if halved is None else \
        half_way(False, printer.half_numbers, real, room)
    body, shared = kept(body, real, way)
    work = [] if source.data is None else [_own("work", "work_of_all", source.data.work_size, real)]
    starts = [f"        const {real} *const {name} = in_{name} + state * {name}_state;" for name in names]
    split = 1 if halved is None else 2
    lines = [_head(given, how, way), *_threads(split, printer.half_numbers, real), *work, "    int bad = 0;",
             f"    const long long states_at_once = (long long)gridDim.x * {THREADS // split};",
             "    for (long long state = own_state; state < states; state += states_at_once) {",
             *starts, f"        {real} *const out = results + state * out_state;",
             *(f"    {line}" for line in body), "    }",
             "    if (bad) atomicOr(flag, 1);", "}"]
    parts = [PRELUDE, *_constants(constants), *half_numbers(printer.half_numbers, real), *lines, ""]
    return DeviceText("\n".join(parts), tuple(given), shared, split), len(body), way


def _unrolled(source: KernelSource) -> int:
    """Rounds of the longest loop that is unrolled: none over records, whose bodies are long."""
    return UNROLLED if source.data is None else 0


def _threads(split: int, numbers: Mapping[tuple[float, float], int], real: str) -> list[str]:
    """Statements that find a thread's state."""
    return [f"    const long long thread = {_STATE};",
            *(["    const long long own_state = thread;"] if split == 1 else own_state(numbers, real))]


def _constants(texts: Mapping[str, str]) -> list[str]:
    """The table of literals: the constants of all functions."""
    return [f"static __constant__ double constants[{len(texts)}] = {{\n    {', '.join(texts)}}};"] if texts else []


def _tables(real: str, which: str) -> list[tuple[str, str]]:
    return [(f"const {real} *__restrict__", f"numbers{which}"), ("const int *__restrict__", f"table{which}"),
            ("const int *__restrict__", f"runs{which}")]


def _own(name: str, of_all: str, size: int, real: str) -> str:
    """A thread's part of memory whose lanes lie side by side."""
    return (f"    {real} *const {name} = {of_all} + (thread / {WARP}) * {size * WARP}LL + thread % {WARP};")


def _rolled_arguments(source: KernelSource, pointers: dict[str, Pointer], which: str
                      ) -> tuple[dict[str, Pointer], dict[str, int | str]]:
    """What names stand for in a kernel that may loop over records: pointers, and integers that are known."""
    data = source.data
    if data is None:
        return pointers, {}
    pointers = pointers | {name: Pointer(f"{name}{which}") for name in ("numbers", "table", "runs", "strides")}
    pointers["work"] = Pointer("work", False, str(WARP))
    sizes = list(source.inputs.values())
    listed = [*sizes, *sizes, source.size, source.side]
    last = f"runs{which}[{3 * len(data.runs) - 1}]"
    integers: dict[str, int | str] = {f"strides{which}[{i}]": v for i, v in enumerate(listed)}
    return pointers, integers | {"n_runs": len(data.runs), last: int(np.ravel(data.runs)[-1])}


def _head(parameters: Sequence[tuple[str, str]], how: str, way: ParkingWay | None) -> str:
    """The head of a kernel."""
    listed = ",\n".join(f"    {kind} {name}" for kind, name in parameters)
    bounds = THREADS if way is None else f"{THREADS}, {way.blocks}"
    return (f'extern "C" __global__ void __launch_bounds__({bounds}) kernel(\n{listed})\n{{' + (
        '\n#if __CUDACC_VER_MAJOR__ >= 13\n    asm volatile(".pragma \\"enable_smem_spilling\\";");\n#endif'
        if how == "spilling" else ""))


# -- drivers ----------------------------------------------------------------------------------------
class _Functions:
    """Collects the functions of a driver."""

    def __init__(self, calls: CallLists, sizes: Mapping[str, int], real: str, how: str, room: int) -> None:
        self.calls, self.sizes, self.real, self.how, self.room = calls, sizes, real, how, room
        self.split = 1
        self.half_numbers: dict[tuple[float, float], int] = {}
        self.stretch, self.shared = stretch_of(how), 0
        self.own = sum(sizes.values()) <= OWN_BUFFERS
        self.step = "1" if self.own else str(WARP)
        self._functions: list[tuple[str, list[str]]] = []  #: heads and statements
        self._lines: dict[str, int] = {}
        self.constants: dict[str, str] = {}
        self.rolled: list[tuple[str, RolledData]] = []  #: with what their tables are called
        self._made: dict[int, tuple[str, list[str]]] = {}

    def function(self, block: DeviceBlock) -> tuple[str, list[str]]:
        """The name of a block's function, and what it takes."""
        if id(block) in self._made:
            return self._made[id(block)]
        number = len(self._made)
        title, which, source = f"block{number}", str(number), block.source
        pointers = {name: Pointer(name, True, self.step) for name in block.inputs}
        pointers["out"] = Pointer("out", False, self.step)
        if isinstance(source, tuple):
            pointers["strides"] = Pointer("strides")
            printer = CudaPrinter(Arguments(pointers, {f"strides[{i}]": v for i, v in enumerate(source)}), self.real,
                                  self.constants, self.stretch)
            copying(printer)
        else:
            printer = CudaPrinter(Arguments(*_rolled_arguments(source, pointers, which)), self.real, self.constants,
                                  self.stretch, unrolled=_unrolled(source), half_numbers=self.half_numbers)
            halved = half_program(source) if self.how == "halved" else None
            one_block(printer, list(source.inputs), source.body(printer) if halved is None else
                      halved.body(printer, True))
            self.split = self.split if halved is None else 2
        used = printer.used()
        parameters = [(f"const {self.real} *", n) for n in block.inputs if n in used]
        parameters += [(f"{self.real} *", n) for n in ("out", "work") if n in used]
        if block.data is not None:
            parameters += [(kind, n) for kind, n in _tables(self.real, which) if n in used]
            self.rolled.append((which, block.data))
        parameters += [(kind, n) for kind, n in (("int", "never"), ("int", "half"), ("unsigned", "both"),
                                                 (f"const {self.real} *", "own_numbers")) if n in used]
        lines = printer.lines
        self._functions.append((f"void {title}({', '.join(f'{k} {n}' for k, n in parameters)})", lines))
        self._lines[title] = len(lines)
        self._made[id(block)] = title, [n for _, n in parameters]
        return self._made[id(block)]

    def statement(self, call: Call) -> str:
        block = call.block
        assert isinstance(block, DeviceBlock)
        title, takes = self.function(block)
        where = {**self.calls.places, **call.inputs}
        places = {n: self._at(*where[n]) for n in block.inputs} | {"out": self._at(call.buffer, call.start)}
        return f"{title}({', '.join(places.get(n, n) for n in takes)});"

    def _at(self, buffer: str, entry: int) -> str:
        return f"{buffer} + {entry * int(self.step)}" if entry else buffer

    def length(self, lines: Sequence[str]) -> int:
        """Statements of these lines and of all they call."""
        return len(lines) + sum(self._lines.get(line.strip().partition("(")[0], 0) for line in lines)

    def functions(self, lines: Sequence[str]) -> list[str]:
        """The texts of functions that these lines call: copied there, unless that would be too much."""
        copied = "__forceinline__" if self.own and self.length(lines) <= INLINED else "__noinline__"
        out = []
        for head, body in self._functions:
            lines_kept, shared = kept(body, self.real, self.way)
            self.shared = max(self.shared, shared)
            out.append("\n".join([f"static __device__ {copied} {head}", "{", *lines_kept, "}"]))
        return out

    @cached_property
    def way(self) -> ParkingWay | None:
        """How values are parked, if they are."""
        if self.how == "halved":
            return half_way(True, self.half_numbers, self.real, self.room)
        return None if self.how != "parked" else parking_way([body for _, body in self._functions], self.real,
                                                             self.room, far=not self.own)

    def buffers(self) -> list[str]:
        """Statements that make the buffers."""
        if self.own:
            return [f"    {self.real} {name}[{size}] = {{}};" for name, size in self.sizes.items() if size]
        out, at = [_own("buffers", "buffers_of_all", sum(self.sizes.values()), self.real)], 0
        for name, size in self.sizes.items():
            out.append(f"    {self.real} *const {name} = buffers + {at * WARP};")
            at += size
        return out


def driver_text(program: Program, layout: DriverLayout, calls: CallLists, extra: Mapping[str, int],
                integers: Mapping[str, int], real: str, whole: Mapping[str, int] | None = None, room: int = SHARED
                ) -> DriverText:
    """A driver with its blocks; `whole` are lengths of arrays of integers: each thread has its own, but of tables;
    `room`: bytes of shared memory of a multiprocessor."""
    shape = _DriverShape(program, layout, calls, {**calls.sizes, **extra}, integers, real, whole or {}, room)
    made, lines, _ = shape.text("plain")
    how = keeping(lines, driver=True)
    if how == "plain":
        return made
    made, _, way = shape.text(how)
    if too_much(way):
        halved, _, _ = shape.text("halved")
        made = halved if halved.source.split > 1 else made
    return made


class _DriverShape(NamedTuple):
    """What a driver's text is made of."""

    program: Program
    layout: DriverLayout
    calls: CallLists
    sizes: Mapping[str, int]
    integers: Mapping[str, int]
    real: str
    whole: Mapping[str, int]
    room: int

    def text(self, how: str) -> tuple[DriverText, int, ParkingWay | None]:
        """The text, the length of what a thread does, and how values are parked."""
        real, layout = self.real, self.layout
        made = _Functions(self.calls, self.sizes, real, how, self.room)
        printer, outer, tables = self._printed(made)
        work = max([0, *(data.work_size for _, data in made.rolled)])
        buffers = 0 if made.own else sum(self.sizes.values())
        given = [p for n in outer for p in ((f"{real} *", f"{n}_of_all"), ("long long", f"{n}_block"))]
        given += [(f"const {'int' if n in self.whole else real} *__restrict__", n) for n in tables]
        given += [(f"{self._kind(n)} *", f"{n}_of_each") for n in layout.returned]
        given += [(f"{real} *", "work_of_all"), (f"{real} *", "buffers_of_all")]
        given += [p for which, _ in made.rolled for p in _tables(real, which)]
        given += [("int", n) for n in CHANGING if n in layout.integers and n not in layout.returned]
        given += [(real, n) for n in layout.reals if n not in layout.returned]
        given += [("int", "never"), ("long long", "states")]
        starts = [f"    {real} *const {n} = {n}_of_all + (own_state / {WARP}) * {n}_block + own_state % {WARP};"
                  for n in outer]
        starts += [f"    {self._kind(n)} {n} = {n}_of_each[own_state];" for n in layout.returned]
        starts += [f"    int32_t {n}[{size}];" for n, size in self.whole.items() if n not in layout.tables]
        ends = [f"    {n}_of_each[own_state] = {n};" for n in layout.returned]
        lines = [_head(given, how, made.way), *_threads(made.split, made.half_numbers, real),
                 "    if (own_state >= states) return;", *starts,
                 *([_own("work", "work_of_all", work, real)] if work else []), *made.buffers(), *printer.lines, *ends,
                 "}"]
        parts = [PRELUDE, *_constants(made.constants), *half_numbers(made.half_numbers, real),
                 *made.functions(printer.lines), *lines, ""]
        text = DeviceText("\n".join(parts), tuple(given), made.shared, made.split)
        found = DriverText(text, [data for _, data in made.rolled], work, buffers)
        return found, made.length(printer.lines), made.way

    def _printed(self, made: _Functions) -> tuple[CudaPrinter, list[str], list[str]]:
        """The statements of the driver itself, arrays of all states, and arrays that are the same for all."""
        layout, sizes = self.layout, self.sizes
        lists = {name: [made.statement(call) for call in listed] for name, listed in self.calls.lists.items()}
        outer = [n for n in layout.pointers if not (n in sizes or n in lists or n in layout.tables or n in self.whole)]
        pointers = {name: Pointer(name, False, made.step) for name in sizes}
        pointers |= {name: Pointer(name, False, str(WARP)) for name in outer}
        pointers |= {name: Pointer(name, False) for name in self.whole}
        pointers |= {name: Pointer(name) for name in layout.tables}
        known: dict[str, int | str] = {n: n if n in CHANGING else self.integers[n] for n in layout.integers
                                       if n not in layout.returned} | {"blocks": 1}
        # arrays that are registers are reached by loops that are unrolled; those over matrices are not to be
        unrolled = UNROLLED if made.own and "n_derivatives" not in layout.integers else 0
        printer = CudaPrinter(Arguments(pointers, known, {n: n for n in layout.reals}, lists), self.real,
                              made.constants, variables=frozenset(layout.returned), unrolled=unrolled,
                              in_flight=1 if made.own else IN_FLIGHT)
        self.program(printer)
        used = printer.used()
        return printer, [n for n in outer if n in used], [n for n in layout.tables if n in used]

    def _kind(self, name: str) -> str:
        return "int" if name in self.layout.integers else self.real
