"""Straight-line kernels: the whole computation as one expression graph, every constant a literal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.engine.llvm.emit import Emitter
from bellcrank.engine.llvm.frame import StateLoop, finite_sum
from bellcrank.engine.scalar import reachable

__all__ = ["unrolled_ir"]


def unrolled_ir(outputs: Sequence[Any], inputs: Mapping[str, int], width: int) -> str:
    """LLVM assembly of a kernel (see `StateLoop`); leaves of the graph are keys (name, index) of the inputs."""
    e = Emitter(width)
    loop = StateLoop(e, list(inputs))
    loop.open()
    loaded = {(name, i): e.load_lanes(loop.pointers[name], i) for name, size in inputs.items() for i in range(size)}
    check = finite_sum(e, list(loaded.values()), e.const(0.0))
    value: dict[Any, str] = {}
    e.nodes(reachable(outputs), value, loaded.__getitem__)
    targets = loop.targets(len(outputs))
    results = [e.operand(out if not isinstance(out, (int, float)) else float(out), value) for out in outputs]
    for i, result in enumerate(results):
        e.store_lanes(targets, i, result)
    return loop.close(finite_sum(e, results, check))
