"""Compiled functions to be called by compiled code: states in lanes side by side, arguments in a frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from bellcrank.lowering.function import Function, direct, place
from bellcrank.scalar.graph import Graph, Number, Scalar, digest
from bellcrank.system.evaluator import LlvmEvaluator
from bellcrank.target.llvm.calling import FRAME_TAIL
from bellcrank.target.llvm.jit import Library
from bellcrank.target.llvm.kernel import RolledData

__all__ = ["Block", "aligned", "compile_blocks", "copying_block", "graph_block"]

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def aligned(size: int) -> Floats:
    """Zeros whose address suits the widest registers."""
    raw = np.zeros(size + 8)
    skip = (-raw.ctypes.data % 64) // 8
    return raw[skip:skip + max(size, 1)]


@dataclass(frozen=True)
class Block:
    """A compiled function of one block of states. Results of several functions follow each other."""

    library: Library
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]  #: names of the functions
    width: int
    rolled: RolledData | None
    strides: Ints

    def frame(self, places: Mapping[str, int], out: int) -> tuple[Ints, Floats]:
        """What its function gets: addresses of inputs and result, and its data. Keep both arrays alive."""
        work = aligned(self.rolled.work_size * self.width if self.rolled else 0)
        tail = dict.fromkeys(FRAME_TAIL, 0) | {"out": out, "strides": self.strides.ctypes.data}
        if self.rolled is not None:
            r = self.rolled
            tail |= {"work": work.ctypes.data, "numbers": r.numbers.ctypes.data, "table": r.table.ctypes.data,
                     "runs": r.runs.ctypes.data, "n_runs": len(r.runs)}
        return np.array([*(places[n] for n in self.inputs), *tail.values()], dtype=np.int64), work


def compile_blocks(run: LlvmEvaluator, functions: Sequence[Function], wrenches: bool, width: int) -> list[Block]:
    """The functions as one block if they can be one graph, so that they share what is common, else one each."""
    from bellcrank.target.llvm import jit
    from bellcrank.target.llvm.rolled_code import rolled_ir

    traced = [run.trace(f, wrenches) for f in functions]
    if all(isinstance(t, list) for t in traced):
        inputs: dict[str, int] = {}
        for f in functions:
            inputs |= run.inputs(f, wrenches)
        outputs = _together(run, functions, wrenches) if len(functions) > 1 else traced[0]
        assert isinstance(outputs, list)
        return [graph_block(outputs, inputs, tuple(f.name for f in functions), width)]
    blocks = []
    for f, t in zip(functions, traced, strict=True):
        inputs, size = run.inputs(f, wrenches), f.size(run.tree)
        if isinstance(t, list):
            blocks.append(graph_block(t, inputs, (f.name,), width))
            continue
        text = rolled_ir(t.plan, list(inputs), t.local, width, f.layout == "matrix", packed=True)
        data = RolledData(t.numbers, t.table, t.runs, t.work)
        strides = _strides(inputs, size, run.tree.nu)
        blocks.append(Block(jit.begin(text), tuple(inputs), (f.name,), width, data, strides))
    return blocks


def graph_block(outputs: Sequence[Number], inputs: Mapping[str, int], names: tuple[str, ...], width: int) -> Block:
    """A block from the graph of its results; leaves are (input, index)."""
    from bellcrank.target.llvm import jit
    from bellcrank.target.llvm.unrolled import unrolled_ir

    entries = [x if type(x) is Scalar else float(x) for x in outputs]
    key = f"block {digest(entries)} {dict(inputs)} {width}"
    library = jit.begin(key, lambda: unrolled_ir(entries, inputs, width, packed=True))
    return Block(library, tuple(inputs), names, width, None, _strides(inputs, len(entries), 0))


def copying_block(count: int, stride: int, offset: int, width: int) -> Block:
    """``out[i] = from[i * stride + offset]``."""
    from bellcrank.target.llvm import jit
    from bellcrank.target.llvm.copying import copying_ir

    return Block(jit.begin(copying_ir(width)), ("from",), ("copy",), width, None,
                 np.array([count, stride, offset], dtype=np.int64))


def _strides(inputs: Mapping[str, int], size: int, side: int) -> Ints:
    """What rolled kernels read their sizes from; see `Kernel.strides`."""
    return np.array([*inputs.values(), *inputs.values(), size, side], dtype=np.int64)


def _together(run: LlvmEvaluator, functions: Sequence[Function], wrenches: bool) -> list[Number]:
    """Several functions in one graph."""
    from bellcrank.lowering.group import direct_groups, place_groups

    graph, out = Graph(), []
    tree = run.tree
    for f in functions:
        if f.groups:
            groups = direct_groups(tree, f.inputs, lambda name, i: graph.leaf((name, i)), wrenches)
            out += place_groups(tree, f.text(groups))
        else:
            sweeps = direct(tree, f.inputs, lambda name, i: graph.leaf((name, i)), wrenches)
            out += place(f, tree, sweeps, f.text(sweeps))
    return out
