"""A machine's equations of motion as a program of compiled blocks, and the memory they run on.

The state is y = (q, u), or (q, p) for Hamilton's equations. Blocks read the state from `stage` and write its rate to
`rate`; corrections put `stage` back onto the loops and make quaternions unit. See `integrate.fixed_step`.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.lowering.function import Function
from bellcrank.system.blocks import Block, aligned, compile_blocks, copying_block
from bellcrank.system.evaluator import LlvmEvaluator
from bellcrank.target.llvm import jit
from bellcrank.target.llvm.flow import Layout

__all__ = ["Code", "Memory", "driver", "make_code", "packed", "unpacked"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Call:
    """A block, the buffer and entry its result goes to, and inputs that are not where they usually are."""

    block: Block
    buffer: str
    start: int
    inputs: Mapping[str, tuple[str, int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Code:
    """Everything compiled for one machine, plan and width."""

    nq: int
    nu: int
    width: int
    sizes: dict[str, int]  #: of the buffers, in values
    places: Mapping[str, tuple[str, int]]  #: of inputs: buffer and entry
    rates: tuple[Call, ...]
    forces: tuple[Call, ...]
    corrections: tuple[Call, ...]
    shift: int  #: entries of `shift` that tell how far a correction moved
    holds: tuple[Call, ...]
    inputs: Mapping[str, int]  #: where tau, wrenches and parameters begin among the inputs

    @property
    def size(self) -> int:
        """Numbers in a state."""
        return self.nq + self.nu


class Compiler:
    """Puts the program of one machine together."""

    def __init__(self, run: LlvmEvaluator, functions: Mapping[str, Function], width: int, wrenches: bool) -> None:
        self.run, self.functions, self.width, self.wrenches = run, functions, width, wrenches
        self.nq, self.nu = run.tree.nq, run.tree.nu

    def calls(self, names: Sequence[str], buffer: str, start: int, external: bool = False,
              inputs: Mapping[str, tuple[str, int]] | None = None) -> list[Call]:
        """Calls that compute functions, their results one after another."""
        out = []
        for block in compile_blocks(self.run, [self.functions[n] for n in names], external, self.width):
            out.append(Call(block, buffer, start, inputs or {}))
            start += sum(self.functions[n].size(self.run.tree) for n in block.outputs)
        return out

    def copy(self, source: str, stride: int, offset: int, buffer: str, start: int) -> Call:
        block = copying_block(self.nu, stride, offset, self.width)
        return Call(block, buffer, start, {"from": (source, 0)})

    def corrections(self, momenta: bool, plain: bool) -> list[Call]:
        """Loops closed, quaternions unit, prescribed joints where they should be; `plain` leaves momenta alone."""
        tree = self.run.tree
        out: list[Call] = []
        speeds = [] if momenta else ["speed_changes"]
        if tree.looped:
            out += self.calls(["displacements", *speeds], "shift", 0)
        if tree.looped or self.nq != self.nu or any(p is not None for p in tree.prescribed):
            out += self.calls(["displaced"] if momenta else ["displaced", "sped"], "stage", 0)
        if momenta and tree.looped and not plain:  # of consistent speeds: impulses of the loops are of no interest
            out += self.hamilton()
            out += self.calls(["momenta"], "stage", self.nq, inputs={"u": ("speed", 0)})
        return out

    def hamilton(self) -> list[Call]:
        """From (q, p): speeds in `speed`, rates of p in every second entry of `pairs`."""
        name = "constrained_hamilton" if self.run.tree.looped else "hamilton"
        return [*self.calls([name], "pairs", 0, self.wrenches), self.copy("pairs", 2, 0, "speed", 0)]


def make_code(run: LlvmEvaluator, functions: Mapping[str, Function], width: int, *, wrenches: bool = False,
              momenta: bool = False, drives: Sequence[tuple[Block, str]] = (), held: bool = False,
              separate: bool = False, plain: bool = False, springs: Block | None = None,
              spread: tuple[Block, int] | None = None) -> Code:
    """Compile the program of a machine.

    `drives` compute tau or wrenches from the state, in every evaluation or `held` over several steps. `separate`: the
    forces are wanted without the rates (semi-implicit methods). `plain`: corrections leave momenta alone, whose part
    along the loops' impulses means nothing, but whose jumps would spoil an interpolant. `springs` computes the wrenches
    of elements between links of large machines, the given ones included. `spread` computes the joint forces of the
    tree from the input tau, which then holds those of closing joints, too, and has the length given with it.
    """
    tree = run.tree
    nq, nu = tree.nq, tree.nu
    c = Compiler(run, functions, width, wrenches)
    outside = 6 * (len(tree.body_names) - 1) if wrenches else 0
    given = nu if spread is None else spread[1]
    inputs = {"tau": 0, "wrench": given, "parameters": given + outside}
    sizes = {"y": nq + nu, "stage": nq + nu, "rate": nq + nu, "clock": 1, "shift": 2 * nu, "pairs": 2 * nu,
             "speed": nu, "springs": 6 * (len(tree.body_names) - 1), "spread": 0 if spread is None else nu,
             "inputs": given + outside + len(tree.parameters)}
    places = {"q": ("stage", 0), "u": ("stage", nq), "p": ("stage", nq), "t": ("clock", 0), "dq": ("shift", 0),
              "du": ("shift", nu), **{name: ("inputs", at) for name, at in inputs.items()}}
    where = {"u": ("speed", 0)} if momenta else {}
    tell = [Call(block, "inputs", inputs[name], where) for block, name in drives]
    now = [] if held else tell
    if spread is not None:
        now = [*now, Call(spread[0], "spread", 0, {"tau": ("inputs", 0)})]
        places["tau"] = ("spread", 0)
    if momenta:
        found = c.hamilton()  # the result depends on drives, which depend on speeds: with drives twice
        rates = [*found, *c.calls(["coordinate_rates"], "rate", 0, inputs=where)]
        forces = [*(found if separate else ()), *now, *(found[:-1] if now else ()), c.copy("pairs", 2, 1, "rate", nq)]
        tell = [*found, *tell]
    elif not (now or tell or separate or springs):
        rates, forces = [], c.calls(["coordinate_rates", "forward_dynamics"], "rate", 0, wrenches)
    else:
        rates = c.calls(["coordinate_rates"], "rate", 0)
        act = [] if springs is None else [Call(springs, "springs", 0, {"outside": ("inputs", inputs["wrench"])})]
        forces = [*now, *act, *c.calls(["forward_dynamics"], "rate", nq, wrenches or springs is not None,
                                       {} if springs is None else {"wrench": ("springs", 0)})]
    return Code(nq, nu, width, sizes, places, tuple(rates), tuple(forces), tuple(c.corrections(momenta, plain)),
                nu if tree.looped else 0, tuple(tell) if held else (), inputs)


class Memory:
    """Buffers, frames and call lists of a program: one thread's copy."""

    def __init__(self, code: Code, layout: Layout, extra: Mapping[str, int]) -> None:
        self.code, self.layout = code, layout
        self.buffers: dict[str, Floats] = {name: aligned(size * code.width)
                                           for name, size in {**code.sizes, **extra}.items()}
        self._keep: list[Any] = []
        self.lists = {name: self._list(getattr(code, name)) for name in ("rates", "forces", "corrections", "holds")}
        self.integers = np.zeros(len(layout.integers), dtype=np.int64)
        self.reals = np.zeros(len(layout.reals))
        self.pointers = np.zeros(len(layout.pointers), dtype=np.int64)
        for name, buffer in self.buffers.items():
            if name in layout.pointers:
                self.point(name, buffer)
        for name, calls in self.lists.items():
            self.point(name, calls)
            self.set(**{f"n_{name}": len(getattr(code, name))})
        self.set(n_inputs=code.sizes["inputs"])

    def _address(self, buffer: str, entry: int) -> int:
        return int(self.buffers[buffer].ctypes.data) + 8 * entry * self.code.width

    def _list(self, calls: Sequence[Call]) -> Ints:
        rows = []
        for call in calls:
            places = {name: self._address(*place) for name, place in {**self.code.places, **call.inputs}.items()}
            frame, work = call.block.frame(places, self._address(call.buffer, call.start))
            self._keep += [frame, work]
            rows += [call.block.library.address, frame.ctypes.data]
        return np.array(rows or [0], dtype=np.int64)

    def point(self, name: str, array: npt.NDArray[Any]) -> None:
        """Let a driver's pointer refer to an array, and keep that alive."""
        self._keep.append(array)
        self.address(name, array)

    def point_all(self, **tables: Floats) -> None:
        for name, table in tables.items():
            self.point(name, np.ascontiguousarray(table, dtype=float))

    def address(self, name: str, array: npt.NDArray[Any]) -> None:
        """Let a driver's pointer refer to an array that the caller keeps alive."""
        self.pointers[self.layout.pointers.index(name)] = array.ctypes.data

    def set(self, **values: int) -> None:
        for name, value in values.items():
            self.integers[self.layout.integers.index(name)] = value

    def set_real(self, **values: float) -> None:
        for name, value in values.items():
            self.reals[self.layout.reals.index(name)] = value

    def get(self, name: str) -> int:
        return int(self.integers[self.layout.integers.index(name)])

    def get_real(self, name: str) -> float:
        return float(self.reals[self.layout.reals.index(name)])

    def fill(self, name: str, values: Floats) -> None:
        """Put the values of one state, shape (1, entries), into a buffer (width 1)."""
        buffer, start = (("inputs", self.code.inputs[name]) if name in self.code.inputs else (name, 0))
        self.buffers[buffer][start:start + values.shape[1]] = values[0]

    def read(self, name: str, entries: int) -> Floats:
        """The values of a buffer, shape (entries,) (width 1)."""
        return self.buffers[name][:entries]


def packed(rows: Floats, width: int) -> Floats:
    """States (count, entries) as blocks with their lanes side by side, (blocks, entries, width); the last fills up."""
    blocks = -(-len(rows) // width)
    if blocks * width != len(rows):
        rows = rows[np.minimum(np.arange(blocks * width), len(rows) - 1)]
    # a copy: drivers write into it
    return np.array(rows.reshape(blocks, width, rows.shape[1]).transpose(0, 2, 1), dtype=float, order="C")


def unpacked(blocks: Floats, count: int) -> Floats:
    """The inverse of `packed`."""
    return np.ascontiguousarray(blocks.transpose(0, 2, 1)).reshape(-1, blocks.shape[1])[:count]


@cache
def driver(make: Callable[..., str], width: int, known: tuple[tuple[str, int], ...] = ()
           ) -> Callable[[int, int, int], int]:
    """A compiled driver: called with the addresses of integers, reals and pointers. Releases the interpreter lock.

    `known` integers become constants of the code.
    """
    library = jit.load(make(width, dict(known)) if known else make(width), optimise=True)
    pointer = ctypes.c_void_p
    function = ctypes.CFUNCTYPE(ctypes.c_int64, pointer, pointer, pointer)(library.address)
    function.library = library  # type: ignore[attr-defined]
    return function
