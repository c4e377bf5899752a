"""Straight-line kernels: the whole computation as one expression graph, every constant a literal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bellcrank.engine.llvm.emit import Emitter
from bellcrank.engine.scalar import reachable

__all__ = ["unrolled_ir"]


def unrolled_ir(outputs: Sequence[Any], inputs: Mapping[str, int], width: int) -> str:
    """LLVM assembly of ``i32 kernel(inputs..., out, strides, begin, end)``.

    Leaves of the graph are keys (name, index) of the input arrays. States `begin` to `end` are computed,
    `width` at a time; state i of input k starts at ``i * strides[k]``, results are packed. Lanes beyond the
    end repeat the last state. The result is non-zero if any input or output is NaN or infinite.
    """
    e = Emitter(width)
    names = list(inputs)
    e.put("%some = icmp slt i64 %begin, %end")
    e.put("br i1 %some, label %setup, label %nothing")
    e.start("nothing")
    e.put("ret i32 0")
    e.start("setup")
    strides = [e.load_integer("%strides", i) for i in range(len(names))]
    last = e.do("sub i64 %end, 1")
    head, tail = e.label(), e.label()
    e.goto(head)
    e.lines.append(f"{head}:")
    e.lines.append("  %state = phi i64 [ %begin, %setup ], [ %next, %latch ]")
    e.lines.append("  %bad = phi i32 [ 0, %setup ], [ %bad.next, %latch ]")
    e.block = head
    lanes = lane_indices(e, "%state", last)
    pointers = {name: [e.offset(f"%{name}", e.do(f"mul i64 {lane}, {stride}")) for lane in lanes]
                for name, stride in zip(names, strides, strict=True)}
    value: dict[Any, str] = {}
    loaded: dict[tuple[str, int], str] = {}
    for name, size in inputs.items():
        for i in range(size):
            loaded[name, i] = e.load_lanes(pointers[name], i)
    check = finite_sum(e, list(loaded.values()), e.const(0.0))
    e.nodes(reachable(outputs), value, loaded.__getitem__)
    size = len(outputs)
    targets = [e.offset("%out", e.do(f"mul i64 {lane}, {size}")) for lane in lanes]
    results = [e.operand(out if not isinstance(out, (int, float)) else float(out), value) for out in outputs]
    for i, result in enumerate(results):
        e.store_lanes(targets, i, result)
    check = finite_sum(e, results, check)
    flag = any_nan(e, check)
    e.goto("latch")
    e.start("latch")
    e.put(f"%bad.next = or i32 %bad, {flag}")
    e.put(f"%next = add i64 %state, {width}")
    more = e.do("icmp slt i64 %next, %end")
    e.put(f"br i1 {more}, label %{head}, label %{tail}")
    e.start(tail)
    e.put("ret i32 %bad.next")
    arguments = ", ".join([f"ptr noalias readonly %{n}" for n in names]
                          + ["ptr noalias %out", "ptr readonly %strides", "i64 %begin", "i64 %end", "ptr %work",
                             "ptr %numbers", "ptr %table", "ptr %runs", "i64 %n_runs"])  # as in rolled kernels
    return module_text(e, f"define i32 @kernel({arguments}) nounwind")


def lane_indices(e: Emitter, state: str, last: str) -> list[str]:
    """The state of each lane, the last one repeated past the end."""
    e.declare("declare i64 @llvm.smin.i64(i64, i64)")
    ahead = [e.do(f"add i64 {state}, {lane}") for lane in range(1, e.width)]
    return [state] + [e.do(f"call i64 @llvm.smin.i64(i64 {index}, i64 {last})") for index in ahead]


def finite_sum(e: Emitter, values: Sequence[str], start: str) -> str:
    """0 if all values are finite, else NaN: the sum of 0 * value in four chains."""
    chains = [start] + [e.const(0.0)] * 3
    for i, value in enumerate(values):
        term = e.arith("fmul", value, e.const(0.0))
        chains[i % 4] = e.arith("fadd", chains[i % 4], term)
    a, b = e.arith("fadd", chains[0], chains[1]), e.arith("fadd", chains[2], chains[3])
    return e.arith("fadd", a, b)


def any_nan(e: Emitter, value: str) -> str:
    """1 (i32) if any lane is NaN."""
    test = e.do(f"fcmp uno {e.type} {value}, {value}")
    if e.width > 1:
        mask = e.do(f"bitcast <{e.width} x i1> {test} to i{e.width}")
        test = e.do(f"icmp ne i{e.width} {mask}, 0")
    return e.do(f"zext i1 {test} to i32")


def module_text(e: Emitter, header: str) -> str:
    """The module around one function."""
    return "\n".join([header + " {", "entry:", *e.lines, "}", "", *sorted(e.declared),
                      '!0 = !{!"branch_weights", i32 1, i32 100000}', ""])
