"""A kernel that copies every n-th value of a buffer."""

from __future__ import annotations

from bellcrank.target.calling import one_block
from bellcrank.target.program import Builder, Real

__all__ = ["copying"]


def copying(b: Builder) -> None:
    """``out[i] = from[i * strides[1] + strides[2]]`` for i below ``strides[0]``."""

    def body(states: object) -> Real | None:
        strides, source, out = b.integers_at("strides"), b.memory("from"), b.memory("out")
        count, stride, offset = (strides[i] for i in range(3))
        with b.loop(count) as i:
            out[i] = source[i * stride + offset]
        return None

    one_block(b, [], body)
