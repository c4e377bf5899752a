"""The three kinds of compiled functions, by their arguments: kernels of batches, blocks, and drivers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bellcrank.target.llvm.llvm_printer import LlvmPrinter
from bellcrank.target.program import DriverLayout, Int, Program, Real, Table
from bellcrank.target.values import int_operand

__all__ = ["FRAME_TAIL", "BatchPrinter", "BlockPrinter", "DriverPrinter", "print_program"]

#: what follows the inputs in the frame of a block
FRAME_TAIL = ("out", "strides", "work", "numbers", "table", "runs", "n_runs")


class BatchPrinter(LlvmPrinter):
    """``i32 kernel(inputs..., out, strides, begin, end, work, numbers, table, runs, n_runs)``."""

    def __init__(self, width: int, inputs: Sequence[str]) -> None:
        super().__init__(width)
        self.inputs = list(inputs)

    def pointer(self, name: str) -> str:
        return f"%{name}"

    def count(self, name: str) -> Int:
        return Int(self, f"%{name}")

    def finish(self, result: Int | int = 0) -> None:
        self._result = self.do(f"trunc i64 {int_operand(result)} to i32")

    @property
    def text(self) -> str:
        arguments = ", ".join([f"ptr noalias readonly %{n}" for n in self.inputs] + [
            "ptr noalias %out", "ptr readonly %strides", "i64 %begin", "i64 %end", "ptr %work",
            "ptr noalias readonly %numbers", "ptr noalias readonly %table", "ptr noalias readonly %runs",
            "i64 %n_runs"])
        return self.module(f"i32 @kernel({arguments})", f"i32 {self._result}")


class BlockPrinter(LlvmPrinter):
    """``i32 kernel(frame)``: one register's width of states whose lanes lie side by side, for calls from other
    compiled code. `frame` holds the addresses of the inputs, then `FRAME_TAIL`. Nothing is checked."""

    def __init__(self, width: int, inputs: Sequence[str]) -> None:
        super().__init__(width)
        self._entries = [*inputs, *FRAME_TAIL]

    def _entry(self, name: str, kind: str) -> str:
        at = self.do(f"getelementptr inbounds ptr, ptr %frame, i64 {self._entries.index(name)}")
        return self.do(f"load {kind}, ptr {at}, align 8")

    def pointer(self, name: str) -> str:
        return self._entry(name, "ptr")

    def count(self, name: str) -> Int:
        return Int(self, self._entry(name, "i64"))

    def finish(self, result: Int | int = 0) -> None:
        """Blocks answer nothing."""

    @property
    def text(self) -> str:
        return self.module("i32 @kernel(ptr %frame)", "i32 0")


class DriverPrinter(LlvmPrinter):
    """``i64 kernel(integers, reals, pointers)``, whose arguments are arrays (see `DriverLayout`)."""

    def __init__(self, width: int, layout: DriverLayout, known: Mapping[str, int] | None = None) -> None:
        """`known`: integers of the caller that are constants here, so that loops over them unroll."""
        super().__init__(width)
        self.layout, self.known = layout, dict(known or {})

    def count(self, name: str) -> Int:
        if name in self.known:
            return Int(self, str(self.known[name]))
        return Int(self, self.integer_load("%integers", str(self.layout.integers.index(name))))

    def set_count(self, name: str, value: Int | int) -> None:
        self.integer_store("%integers", str(self.layout.integers.index(name)), int_operand(value))

    def real(self, name: str) -> Real:
        return Table(self, "%reals")[self.layout.reals.index(name)]

    def set_real(self, name: str, value: Real) -> None:
        at = self.offset("%reals", str(self.layout.reals.index(name)))
        self.put(f"store double {value.operand}, ptr {at}, align 8")

    def pointer(self, name: str) -> str:
        at = self.do(f"getelementptr inbounds ptr, ptr %pointers, i64 {self.layout.pointers.index(name)}")
        return self.do(f"load ptr, ptr {at}, align 8")

    def finish(self, result: Int | int = 0) -> None:
        self._result = int_operand(result)

    @property
    def text(self) -> str:
        return self.module("i64 @kernel(ptr %integers, ptr %reals, ptr %pointers)", f"i64 {self._result}")


def print_program(printer: LlvmPrinter, program: Program) -> str:
    """The module of a program."""
    program(printer)
    return printer.text
