"""Straight-line kernels: the whole computation as one expression graph, every constant a literal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.scalar.graph import LEAF, reachable
from bellcrank.target.llvm.calling import OneBlock, StateLoop, finite_sum
from bellcrank.target.llvm.emit import Emitter

__all__ = ["scratch", "unrolled_ir"]

#: results from which on they pass through scratch memory
_MANY = 64


def unrolled_ir(outputs: Sequence[Any], inputs: Mapping[str, int], width: int, packed: bool = False) -> str:
    """LLVM assembly of a kernel (see `StateLoop`, or `OneBlock` if `packed`); leaves of the graph are keys
    (name, index) of the inputs."""
    e = Emitter(width)
    loop = OneBlock(e, list(inputs)) if packed else StateLoop(e, list(inputs))
    loop.open()
    value: dict[Any, str] = {}
    nodes = reachable(outputs)
    pairs = [(name, i) for name, size in inputs.items() for i in range(size)]
    if packed:
        used = {node.args[0] for node in nodes if node.op is LEAF}
        pairs = [pair for pair in pairs if pair in used]
    loaded = {(name, i): e.load_lanes(loop.pointers[name], i) for name, i in pairs}
    check = None if packed else finite_sum(e, list(loaded.values()), e.const(0.0))
    e.nodes(nodes, value, loaded.__getitem__)
    targets = loop.targets(len(outputs))
    results = [e.operand(out if not isinstance(out, (int, float)) else float(out), value) for out in outputs]
    through = 0 if packed else scratch(len(outputs), width)
    for i, result in enumerate(results):
        e.store_lanes(["%work"] if through else targets, i, result)
    if through:
        _transpose(e, len(outputs), targets)
    return loop.close(None if check is None else finite_sum(e, results, check))


def scratch(outputs: int, width: int) -> int:
    """Doubles per lane that a kernel needs to work in: results that are many are left with their lanes side by side
    first, because storing them lane by lane takes as many instructions as there are lanes."""
    return outputs if width > 1 and outputs >= _MANY else 0


def _transpose(e: Emitter, size: int, targets: Sequence[str]) -> None:
    """Copy `size` results, lanes side by side, from the scratch memory to where each lane's belong: squares of as many
    results as there are lanes, the last one overlapping the one before it."""
    width, body, after = e.width, e.label(), e.label()
    entry, step, following = e.block, e.name(), e.name()
    e.goto(body)
    e.start(body)
    e.put(f"{step} = phi i64 [ 0, %{entry} ], [ {following}, %{body} ]")
    e.declare("declare i64 @llvm.smin.i64(i64, i64)")
    first = e.do(f"call i64 @llvm.smin.i64(i64 {step}, i64 {size - width})")
    rows = [e.load_lanes(["%work"], e.do(f"add i64 {first}, {k}")) for k in range(width)]
    for lane, row in enumerate(_turned(e, rows)):
        e.put(f"store {e.type} {row}, ptr {e.offset(targets[lane], first)}, align 8")
    e.put(f"{following} = add i64 {step}, {width}")
    more = e.do(f"icmp slt i64 {following}, {size}")
    e.put(f"br i1 {more}, label %{body}, label %{after}")
    e.start(after)


def _turned(e: Emitter, rows: list[str]) -> list[str]:
    """The transpose of a square: blocks off the diagonal change places, of half the size, a quarter, and so on."""
    width, half = e.width, e.width // 2
    while half:
        low = ", ".join(f"i32 {j if not j & half else j - half + width}" for j in range(width))
        high = ", ".join(f"i32 {j + half if not j & half else j + width}" for j in range(width))
        for i in (i for i in range(width) if not i & half):
            a, b = rows[i], rows[i + half]
            rows[i], rows[i + half] = (
                e.do(f"shufflevector {e.type} {a}, {e.type} {b}, <{width} x i32> <{mask}>") for mask in (low, high))
        half //= 2
    return rows
