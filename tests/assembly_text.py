"""The text that a graph becomes, for tests of what is made of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.target.kernel_source import GraphKernel
from bellcrank.target.llvm.llvm_runtime import batch_text


def unrolled_text(outputs: Sequence[Any], inputs: Mapping[str, int], width: int) -> str:
    """The assembly of a kernel from the graph of its results."""
    return batch_text(GraphKernel(outputs, inputs), width)()
