"""What all kernels share: the loop over the states of a batch, lanes, and the checks for finite numbers."""

from __future__ import annotations

from collections.abc import Sequence

from bellcrank.target.llvm.emit import Emitter

__all__ = ["FRAME_TAIL", "OneBlock", "StateLoop", "finite_sum"]

#: what follows the inputs in the frame of a `OneBlock` kernel
FRAME_TAIL = ("out", "strides", "work", "numbers", "table", "runs", "n_runs")

_UNLIKELY = '!0 = !{!"branch_weights", i32 1, i32 100000}'


class StateLoop:
    """``i32 kernel(inputs..., out, strides, begin, end, work, numbers, table, runs, n_runs)``, its body left open.

    States `begin` to `end` are computed, a register's width at a time; state i of input k starts at
    ``i * strides[k]``, results are packed. Lanes beyond the end repeat the last state. The result is non-zero if
    the sums handed to `close` say that something was not finite.
    """

    def __init__(self, e: Emitter, names: Sequence[str]) -> None:
        self.e, self.names = e, list(names)
        e.put("%some = icmp slt i64 %begin, %end")
        e.put("br i1 %some, label %setup, label %nothing")
        e.start("nothing")
        e.put("ret i32 0")
        e.start("setup")
        self.strides = [e.load_integer("%strides", i) for i in range(len(self.names))]
        self.last = e.do("sub i64 %end, 1")

    def open(self) -> None:
        """Begin the loop; afterwards `lanes` are the states in work and `pointers` their inputs."""
        e = self.e
        e.goto("states")
        e.start("states")
        e.put("%state = phi i64 [ %begin, %setup ], [ %next, %latch ]")
        e.put("%bad = phi i32 [ 0, %setup ], [ %bad.next, %latch ]")
        e.declare("declare i64 @llvm.smin.i64(i64, i64)")
        ahead = [e.do(f"add i64 %state, {lane}") for lane in range(1, e.width)]
        self.lanes = ["%state", *(e.do(f"call i64 @llvm.smin.i64(i64 {i}, i64 {self.last})") for i in ahead)]
        self.pointers = {name: [e.offset(f"%{name}", e.do(f"mul i64 {lane}, {stride}")) for lane in self.lanes]
                         for name, stride in zip(self.names, self.strides, strict=True)}

    def targets(self, size: int | str) -> list[str]:
        """Where each lane's results of `size` entries begin."""
        return [self.e.offset("%out", self.e.do(f"mul i64 {lane}, {size}")) for lane in self.lanes]

    def close(self, check: str | None) -> str:
        """End the loop and the function; `check` is NaN where something was not finite. Returns the module."""
        e = self.e
        assert check is not None
        flag = _any_nan(e, check)
        e.goto("latch")
        e.start("latch")
        e.put(f"%bad.next = or i32 %bad, {flag}")
        e.put(f"%next = add i64 %state, {e.width}")
        more = e.do("icmp slt i64 %next, %end")
        e.put(f"br i1 {more}, label %states, label %finish")
        e.start("finish")
        e.put("ret i32 %bad.next")
        arguments = ", ".join([f"ptr noalias readonly %{n}" for n in self.names] + [
            "ptr noalias %out", "ptr readonly %strides", "i64 %begin", "i64 %end", "ptr %work",
            "ptr noalias readonly %numbers", "ptr noalias readonly %table", "ptr noalias readonly %runs",
            "i64 %n_runs"])
        return "\n".join([f"define i32 @kernel({arguments}) nounwind {{", "entry:", *e.lines, "}", "",
                          *sorted(e.declared), _UNLIKELY, ""])


class OneBlock:
    """``i32 kernel(frame)``: one register's width of states whose lanes lie side by side, for calls from other
    compiled code. `frame` holds the addresses of the inputs, then `FRAME_TAIL`. Nothing is checked.
    """

    def __init__(self, e: Emitter, names: Sequence[str]) -> None:
        self.e = e
        self.pointers = {}
        for i, name in enumerate([*names, *FRAME_TAIL]):
            at = e.do(f"getelementptr inbounds ptr, ptr %frame, i64 {i}")
            kind = "i64" if name == "n_runs" else "ptr"
            register = f"%{name}" if name in FRAME_TAIL else f"%in.{name}"
            e.put(f"{register} = load {kind}, ptr {at}, align 8")
            if name not in FRAME_TAIL:
                self.pointers[name] = [register]

    def open(self) -> None:
        """Nothing to repeat."""

    def targets(self, size: int | str) -> list[str]:
        """Where results begin."""
        return ["%out"]

    def close(self, check: str | None) -> str:
        """End the function; returns the module."""
        e = self.e
        return "\n".join(["define i32 @kernel(ptr %frame) nounwind {", "entry:", *e.lines, "  ret i32 0", "}", "",
                          *sorted(e.declared), _UNLIKELY, ""])


def finite_sum(e: Emitter, values: Sequence[str], start: str) -> str:
    """0 if all values are finite, else NaN: the sum of 0 * value in four chains."""
    chains = [start] + [e.const(0.0)] * 3
    for i, value in enumerate(values):
        term = e.arith("fmul", value, e.const(0.0))
        chains[i % 4] = e.arith("fadd", chains[i % 4], term)
    a, b = e.arith("fadd", chains[0], chains[1]), e.arith("fadd", chains[2], chains[3])
    return e.arith("fadd", a, b)


def _any_nan(e: Emitter, value: str) -> str:
    """1 (i32) if any lane is NaN."""
    test = e.do(f"fcmp uno {e.type} {value}, {value}")
    if e.width > 1:
        mask = e.do(f"bitcast <{e.width} x i1> {test} to i{e.width}")
        test = e.do(f"icmp ne i{e.width} {mask}, 0")
    return e.do(f"zext i1 {test} to i32")
