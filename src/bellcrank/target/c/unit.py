"""A C source with its header, and the backend that puts blocks into it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from bellcrank.target.c.c_printer import CPrinter
from bellcrank.target.c.c_text import Arguments, Pointer, literal
from bellcrank.target.calling import copying, one_block
from bellcrank.target.kernel_source import KernelSource, RolledData
from bellcrank.target.program import Program, Real
from bellcrank.target.sincos import sincos

__all__ = ["CBackend", "CBlock", "CUnit", "filled", "wrapped"]

_LINE = 110


@dataclass(frozen=True)
class CBlock:
    """A function of the unit: ``static void name(inputs..., out, work)``, without what it has no use for."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    takes: tuple[str, ...]  #: of inputs, "out" and "work", those it has
    work: int  #: reals of workspace

    def call(self, places: Mapping[str, str]) -> str:
        """The statement that calls it; `places` are expressions for inputs, "out" and "work"."""
        return f"{self.name}({', '.join(places[n] for n in self.takes)});"


@dataclass
class CUnit:
    """What a source holds so far."""

    name: str  #: prefix of all names
    real: str  #: "double" or "float"
    functions: list[str] = field(default_factory=list)
    tables: list[str] = field(default_factory=list)
    needs: set[str] = field(default_factory=set)
    plan: str = ""  #: what tells the functions of several plans apart
    _made: dict[Any, CBlock] = field(default_factory=dict)
    _keep: list[Any] = field(default_factory=list)

    @property
    def prefix(self) -> str:
        return self.name + "_"

    def printer(self, arguments: Arguments) -> CPrinter:
        return CPrinter(arguments, self.real, self.prefix)

    def function(self, head: str, parameters: Sequence[str], printer: CPrinter, answers: bool) -> None:
        """Add a function whose body is printed; parameters that are not used are said to be so."""
        self.needs |= printer.needs
        used = printer.used()
        unused = [f"    (void){n};" for p in parameters if (n := _parameter(p)) not in used]
        result = [f"    return {printer.result};"] if answers else []
        self.functions.append("\n".join([wrapped(head, parameters), "{", *unused, *printer.lines, *result, "}"]))

    def table(self, name: str, kind: str, values: Sequence[Any]) -> None:
        """Add constants."""
        texts = [literal(float(v), self.real) for v in values] if kind == self.real else [str(int(v)) for v in values]
        self.tables.append(f"static const {kind} {name}[{max(len(texts), 1)}] = {{\n"
                           + "\n".join(f"    {line}" for line in filled([f"{t}," for t in texts or ["0"]])) + "\n};")

    def block(self, source: KernelSource, names: tuple[str, ...], title: str) -> CBlock:
        """A kernel as a static function."""
        key = source.key if source.data is None else id(source.data.table)
        if (key, names) in self._made:
            return self._made[key, names]
        title = self._title(f"{title}_core{self.plan}")
        pointers = {n: Pointer(n) for n in source.inputs}
        pointers |= {"out": Pointer("out", False), "work": Pointer("work", False)}
        integers: dict[str, int] = {}
        if source.data is not None:
            self._keep.append(source.data)  # its id must remain its own
            integers = self._sizes(source, title, pointers)
        printer = self.printer(Arguments(pointers, integers))
        one_block(printer, list(source.inputs), source.body(printer))
        if source.data is not None:
            self._tables(source.data, pointers, printer.used())
        made = self._static(title, [*source.inputs, "out", "work"], pointers, printer, names,
                            source.data.work_size if source.data else 0)
        self._made[key, names] = made
        return made

    def _title(self, wanted: str) -> str:
        """A name that no other function has."""
        names, title = {b.name for b in self._made.values()}, wanted
        for i in count(2):
            if self.prefix + title not in names:
                break
            title = f"{wanted}_{i}"
        return title

    def _tables(self, data: RolledData, pointers: Mapping[str, Pointer], used: set[str]) -> None:
        """The tables of a rolled kernel."""
        for what, kind, values in (("numbers", self.real, data.numbers), ("table", "int32_t", data.table),
                                   ("runs", "int32_t", data.runs)):
            if pointers[what].text in used:
                self.table(pointers[what].text, kind, np.ravel(values).tolist())

    def _sizes(self, source: KernelSource, title: str, pointers: dict[str, Pointer]) -> dict[str, int]:
        """The integers of a rolled kernel that are known here, where it looks for them."""
        data = source.data
        assert data is not None
        for what in ("numbers", "table", "runs"):
            pointers[what] = Pointer(f"{self.prefix}{title}_{what}")
        pointers["strides"] = Pointer("strides")
        sizes = list(source.inputs.values())
        known = [*sizes, *sizes, source.size, source.side]
        last = f"{pointers['runs'].text}[{3 * len(data.runs) - 1}]"
        return {f"strides[{i}]": v for i, v in enumerate(known)} | {
            "n_runs": len(data.runs), last: int(np.ravel(data.runs)[-1])}

    def copying(self, entries: int, stride: int, offset: int, title: str) -> CBlock:
        key = ("copy", entries, stride, offset)
        if key not in self._made:
            pointers = {"from": Pointer("from"), "out": Pointer("out", False), "strides": Pointer("strides")}
            printer = self.printer(Arguments(pointers, {"strides[0]": entries, "strides[1]": stride,
                                                        "strides[2]": offset}))
            copying(printer)
            self._made[key] = self._static(self._title(title), ["from", "out"], pointers, printer, ("copy",), 0)
        return self._made[key]

    def _static(self, title: str, arguments: Sequence[str], pointers: Mapping[str, Pointer], printer: CPrinter,
                names: tuple[str, ...], work: int) -> CBlock:
        used = printer.used()
        takes = tuple(n for n in arguments if n in used)
        parameters = [f"{'const ' if pointers[n].const else ''}{self.real} *{n}" for n in takes]
        self.function(f"static void {self.prefix}{title}", parameters, printer, False)
        return CBlock(f"{self.prefix}{title}", tuple(n for n in arguments if n not in ("out", "work")), names, takes,
                      work)

    def program(self, head: str, parameters: Sequence[str], arguments: Arguments, program: Program) -> None:
        """Add a function that answers the integer a program finishes with."""
        printer = self.printer(arguments)
        program(printer)
        self.function(head, parameters, printer, True)

    def source(self, header: str) -> str:
        """The text of the source."""
        return "\n\n".join([f'#include "{header}"', "\n".join(f"#include <{n}.h>" for n in (
            "float", "math", "stdint", "string")), *self.tables, *self._helpers(), *self.functions]) + "\n"

    def _helpers(self) -> Iterable[str]:
        needs, p = set(self.needs), self.prefix
        text = ""
        if "sincos" in needs:
            printer = CPrinter(Arguments({}, {}, {"x": "x"}), self.real, p)
            _sincos_function(printer)
            needs |= printer.needs
            text = "\n".join([f"static void {p}sincos(double x, double *s, double *c)", "{", *printer.lines, "}"])
        if "bits" in needs:
            yield (f"static uint64_t {p}bits(double x)\n{{\n    uint64_t b;\n    memcpy(&b, &x, sizeof b);\n"
                   "    return b;\n}")
        if "from_bits" in needs:
            yield (f"static double {p}from_bits(uint64_t b)\n{{\n    double x;\n    memcpy(&x, &b, sizeof x);\n"
                   "    return x;\n}")
        if text:
            yield text


def _sincos_function(printer: CPrinter) -> None:
    s, c = sincos(printer, Real(printer, "x"))
    printer.put(f"*s = {s.operand};")
    printer.put(f"*c = {c.operand};")


class CBackend:
    """The part of a backend that programs of a machine ask for: blocks, here functions of a unit."""

    name = "c"

    def __init__(self, unit: CUnit) -> None:
        self.unit = unit

    def threads(self) -> int:
        return 1

    def block(self, source: KernelSource, names: tuple[str, ...], width: int) -> CBlock:
        assert width == 1
        return self.unit.block(source, names, "_and_".join(names))

    def copying(self, count: int, stride: int, offset: int, width: int) -> CBlock:
        return self.unit.copying(count, stride, offset, f"copy_{stride}_{offset}")


def _parameter(text: str) -> str:
    """The name of a parameter."""
    return text.partition("[")[0].split()[-1].lstrip("*")


def wrapped(head: str, parameters: Sequence[str]) -> str:
    """The head of a function, broken into lines."""
    one = f"{head}({', '.join(parameters) or 'void'})"
    if len(one) <= _LINE:
        return one
    return f"{head}(\n" + "\n".join(
        f"    {line}" for line in filled([f"{p}," for p in parameters[:-1]] + [f"{parameters[-1]})"]))


def filled(words: Sequence[str]) -> list[str]:
    """Words in lines that are not too long."""
    lines, line = [], ""
    for word in words:
        if line and len(line) + 1 + len(word) > _LINE:
            lines.append(line)
            line = ""
        line = f"{line} {word}" if line else word
    return [*lines, line] if line else lines


