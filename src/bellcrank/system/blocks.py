"""Functions of a tree to be called by compiled code: states in lanes side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bellcrank.lowering.choose import kernel_source, trace_together
from bellcrank.lowering.function import Function
from bellcrank.target.kernel_source import GraphKernel

if TYPE_CHECKING:
    from bellcrank.system.evaluator import CompiledEvaluator
    from bellcrank.target.kernel_source import KernelSource

__all__ = ["block_sources"]


def block_sources(run: CompiledEvaluator, functions: Sequence[Function], wrenches: bool
                  ) -> list[tuple[KernelSource, tuple[str, ...]]]:
    """The functions as one kernel if they can be one graph, so that they share what is common, else one each; each
    with the names of the functions it computes."""
    traced = [run.trace(f, wrenches) for f in functions]
    if len(functions) > 1 and all(isinstance(t, list) for t in traced):
        inputs: dict[str, int] = {}
        for f in functions:
            inputs |= run.inputs(f, wrenches)
        return [(GraphKernel(trace_together(run.tree, functions, wrenches), inputs), tuple(f.name for f in functions))]
    return [(kernel_source(run.tree, f, run.inputs(f, wrenches), t), (f.name,))
            for f, t in zip(functions, traced, strict=True)]
