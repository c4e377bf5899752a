"""A block that copies every n-th value of a buffer."""

from __future__ import annotations

from bellcrank.target.llvm.calling import OneBlock
from bellcrank.target.llvm.emit import Emitter

__all__ = ["copying_ir"]


def copying_ir(width: int) -> str:
    """``out[i] = from[i * strides[1] + strides[2]]`` for i below ``strides[0]`` (see `OneBlock`)."""
    e = Emitter(width)
    frame = OneBlock(e, ["from"])
    count, stride, offset = (e.load_integer("%strides", i) for i in range(3))
    e.goto("head")
    e.start("head")
    e.put("%i = phi i64 [ 0, %entry ], [ %next, %body ]")
    e.put(f"%go = icmp slt i64 %i, {count}")
    e.put("br i1 %go, label %body, label %after")
    e.start("body")
    at = e.do(f"add i64 {e.do(f'mul i64 %i, {stride}')}, {offset}")
    e.store_lanes(["%out"], "%i", e.load_lanes(frame.pointers["from"], at))
    e.put("%next = add i64 %i, 1")
    e.goto("head")
    e.start("after")
    return frame.close(None)
