"""Straight-line kernels: the whole computation as one expression graph, every constant a literal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.scalar.graph import LEAF, reachable
from bellcrank.target.llvm.calling import OneBlock, StateLoop, finite_sum
from bellcrank.target.llvm.emit import Emitter

__all__ = ["unrolled_ir"]


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
    for i, result in enumerate(results):
        e.store_lanes(targets, i, result)
    return loop.close(None if check is None else finite_sum(e, results, check))
