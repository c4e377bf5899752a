"""Kernels of the rolled schedule: loops over records, one block of code per kind and sweep."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar.graph import Scalar, reachable
from bellcrank.schedule.rolled import INWARD, OUTWARD, PATHS, KindCode, Plan, SweepCode
from bellcrank.target.llvm.calling import OneBlock, StateLoop
from bellcrank.target.llvm.emit import Emitter

__all__ = ["COLUMNS", "rolled_ir"]

#: columns of the integer table, one row per item: parent, kind, start of its numbers, start of its results,
#: the buffers through which values travel to its children (own_out), from its parent, from its children
#: (own_sum) and to its parent; then the starts of its parts of the inputs
COLUMNS = ("parent", "kind", "numbers", "result", "own_out", "parent_out", "own_sum", "parent_sum")


@dataclass
class _Context:
    e: Emitter
    plan: Plan
    inputs: list[str]
    pointers: dict[str, list[str]]
    targets: list[str]
    row: int  #: integers per table row
    size: str  #: side of the result matrix (paths)
    mirrored: bool  #: whether it is symmetric


def rolled_ir(plan: Plan, inputs: Sequence[str], local: list[str], width: int, mirrored: bool = True,
              packed: bool = False) -> str:
    """LLVM assembly of a kernel (see `StateLoop`, or `OneBlock` if `packed`) that loops over records.

    `local` names the inputs of which every item has its own part. `runs` holds (kind, first item, end) for
    stretches of items of the same kind. All sizes are read from `strides` (see `Kernel`), so the code is the same
    for any number of items.
    """
    e = Emitter(width)
    n = len(inputs)
    loop = OneBlock(e, inputs) if packed else StateLoop(e, inputs)
    last_run = e.do(f"mul i64 {e.do('sub i64 %n_runs, 1')}, 3")
    rows = e.load_integer("%runs", e.do(f"add i64 {last_run}, 2"))  # where the last run ends: records before buffers
    rows = e.do(f"mul i64 {rows}, {plan.record * width}")
    e.put(f"%buffers = getelementptr inbounds double, ptr %work, i64 {rows}")
    sizes = {name: e.load_integer("%strides", n + i) for i, name in enumerate(inputs)}
    out_size, side = e.load_integer("%strides", 2 * n), e.load_integer("%strides", 2 * n + 1)
    loop.open()
    targets = loop.targets(out_size)
    c = _Context(e, plan, local, loop.pointers, targets, len(COLUMNS) + len(local), side, mirrored)
    check = e.const(0.0)
    for name, size in {} if packed else sizes.items():
        check = _check_array(e, loop.pointers[name], size, check)
    if PATHS in plan.directions:
        _zero_array(e, targets, out_size)
    for k, direction in enumerate(plan.directions):
        if any(_has_work(code.sweeps[k]) for code in plan.codes):
            _sweep(c, k, direction)
    _epilogue(c)
    return loop.close(None if packed else _check_array(e, targets, out_size, check))


def _has_work(code: SweepCode) -> bool:
    return bool(code.sent or code.outputs or code.saves or code.starts)


class _Loop:
    """``for (i = start; i test bound; i += step)``; `counter` is i, `close` ends it."""

    def __init__(self, e: Emitter, start: str, test: str, step: int, bound: str) -> None:
        self.e, self.step = e, step
        self.head, self.after = e.label(), e.label()
        self.counter, self.following = e.name(), e.name()
        self.entry = f"[ {start}, %{e.block} ]"
        e.goto(self.head)
        e.start(self.head)
        self.place = len(e.lines)
        e.lines.append("")  # the phi, known when the loop is closed
        body = e.label()
        go = e.do(f"icmp {test} i64 {self.counter}, {bound}")
        e.put(f"br i1 {go}, label %{body}, label %{self.after}")
        e.start(body)

    def close(self) -> None:
        e = self.e
        e.put(f"{self.following} = add i64 {self.counter}, {self.step}")
        e.lines[self.place] = f"  {self.counter} = phi i64 {self.entry}, [ {self.following}, %{e.block} ]"
        e.goto(self.head)
        e.start(self.after)


def _items(e: Emitter, first: str, end: str, back: bool) -> _Loop:
    """A loop from `first` to before `end`, or the other way."""
    if back:
        return _Loop(e, e.do(f"sub i64 {end}, 1"), "sge", -1, first)
    return _Loop(e, first, "slt", 1, end)


def _check_array(e: Emitter, pointers: list[str], size: str, check: str) -> str:
    """Add 0 * entry for all entries of an array: NaN if one is not finite."""
    before, head, body, after = e.block, e.label(), e.label(), e.label()
    counter, following, total, sum_ = e.name(), e.name(), e.name(), e.name()
    e.goto(head)
    e.start(head)
    e.put(f"{counter} = phi i64 [ 0, %{before} ], [ {following}, %{body} ]")
    e.put(f"{total} = phi {e.type} [ {check}, %{before} ], [ {sum_}, %{body} ]")
    more = e.do(f"icmp slt i64 {counter}, {size}")
    e.put(f"br i1 {more}, label %{body}, label %{after}")
    e.start(body)
    value = e.load_lanes(pointers, counter)
    term = e.arith("fmul", value, e.const(0.0))
    e.put(f"{sum_} = fadd contract {e.type} {total}, {term}")
    e.put(f"{following} = add i64 {counter}, 1")
    e.goto(head)
    e.start(after)
    return total


def _zero_array(e: Emitter, pointers: list[str], size: str) -> None:
    loop = _items(e, "0", size, False)
    e.store_lanes(pointers, loop.counter, e.const(0.0))
    loop.close()


def _sweep(c: _Context, k: int, direction: str) -> None:
    """Loop over the runs of items of one kind, outward or inward."""
    e = c.e
    back = direction == INWARD
    loop = _items(e, "0", "%n_runs", back)
    base = e.do(f"mul i64 {loop.counter}, 3")
    kind, first, end = (e.load_integer("%runs", e.do(f"add i64 {base}, {i}")) for i in range(3))
    done = e.label()
    labels = {code.kind.index: e.label() for code in c.plan.codes if _has_work(code.sweeps[k])}
    e.put(f"switch i64 {kind}, label %{done} [ " + " ".join(f"i64 {i}, label %{x}" for i, x in labels.items()) + " ]")
    for code in c.plan.codes:
        if code.kind.index not in labels:
            continue
        e.start(labels[code.kind.index])
        items = _items(e, first, end, back)
        _item(c, code, k, items.counter)
        items.close()
        e.goto(done)
    e.start(done)
    loop.close()


class _Item:
    """Addresses of one item's record, numbers and parts of the arrays."""

    def __init__(self, c: _Context, code: KindCode, item: str) -> None:
        self.c, self.code, self.item = c, code, item
        e = c.e
        self.row = e.do(f"mul i64 {item}, {c.row}")
        self.record = self.record_of(item)
        self._edges: dict[tuple[str, bool], str] = {}
        self._numbers: str | None = None
        self._starts: dict[str, str] = {}

    def record_of(self, item: str) -> str:
        e = self.c.e
        return e.offset("%work", e.do(f"mul i64 {item}, {self.c.plan.record * e.width}"))

    def table(self, column: int) -> str:
        e = self.c.e
        return e.load_integer("%table", e.do(f"add i64 {self.row}, {column}"))

    def edge(self, column: str, k: int) -> tuple[str, int]:
        """Where values travel in sweep k: an address and the first slot there."""
        e, plan = self.c.e, self.c.plan
        key = (column, plan.persistent[k])
        if key not in self._edges:
            if plan.persistent[k]:
                self._edges[key] = self.record if column.startswith("own") else self.record_of(self.start("parent"))
            else:
                at = e.do(f"mul i64 {self.start(column)}, {plan.buffer * e.width}")
                self._edges[key] = e.offset("%buffers", at)
        return self._edges[key], plan.edge_slot[k] if plan.persistent[k] else 0

    def start(self, name: str) -> str:
        if name not in self._starts:
            column = COLUMNS.index(name) if name in COLUMNS else len(COLUMNS) + self.c.inputs.index(name)
            self._starts[name] = self.table(column)
        return self._starts[name]

    def slot(self, record: str, slot: int) -> str:
        return self.c.e.offset(record, slot * self.c.e.width)

    def load(self, record: str, slot: int) -> str:
        e = self.c.e
        return e.do(f"load {e.type}, ptr {self.slot(record, slot)}, align {8 * e.width}")

    def store(self, record: str, slot: int, value: str) -> None:
        e = self.c.e
        e.put(f"store {e.type} {value}, ptr {self.slot(record, slot)}, align {8 * e.width}")

    def number(self, index: int) -> str:
        e = self.c.e
        if self._numbers is None:
            self._numbers = e.offset("%numbers", self.start("numbers"))
        return e.splat(e.do(f"load double, ptr {e.offset(self._numbers, index)}, align 8"))

    def leaf(self, key: Any) -> str:
        e = self.c.e
        match key:
            case ("in", name, j):  # "q@2": of the item's member 2
                return e.load_lanes(self.c.pointers[name.split("@")[0]], e.do(f"add i64 {self.start(name)}, {j}"))
            case ("global", name, j):
                return e.load_lanes(self.c.pointers[name], j)
            case ("parent", k, i):
                place, slot = self.edge("parent_out", k)
                return self.load(place, slot + i)
            case ("sum", k, i):
                place, slot = self.edge("own_sum", k)
                return self.load(place, slot + i)
            case ("carry", _, i):
                return self.load(self.record_of("0"), i)
        raise AssertionError(key)

    def compute(self, code: SweepCode) -> dict[Any, str]:
        """Values of all nodes of a piece of code."""
        index = {node: i for i, node in enumerate(self.code.statics)}
        value: dict[Any, str] = {node: self.load(self.record, self.code.slot[node]) for node in code.loads}
        for node in code.body:
            if node in index:
                value[node] = self.number(index[node])
        self.c.e.nodes(code.body, value, self.leaf)
        return value


def _item(c: _Context, kind: KindCode, k: int, item: str) -> None:
    """What one item does in sweep k."""
    e, code = c.e, kind.sweeps[k]
    at = _Item(c, kind, item)
    value = at.compute(code)
    for node in code.saves:
        at.store(at.record, kind.slot[node], value[node])
    if c.plan.directions[k] == PATHS:
        for column, start in enumerate(code.starts):
            for i, entry in enumerate(start):
                at.store(at.record_of("0"), i, e.operand(entry, value))
            _walk(c, k, item, e.do(f"add i64 {at.start('result')}, {column}"))
        return
    place, slot = at.edge("own_out" if c.plan.directions[k] == OUTWARD else "parent_sum", k)
    for i, entry in enumerate(code.sent):
        total = e.operand(entry, value)
        if code.adds_to_parent and type(entry) is float and entry == 0.0:
            continue
        if code.adds_to_parent:
            total = e.arith("fadd", at.load(place, slot + i), total)
        at.store(place, slot + i, total)
    places = kind.kind.places
    for j, entry in code.outputs:
        target, offset = ("result", j) if places is None else places[j]
        e.store_lanes(c.targets, e.do(f"add i64 {at.start(target)}, {offset}"), e.operand(entry, value))


def _walk(c: _Context, k: int, item: str, column: str) -> None:
    """From an item to the root: entries of one column of a symmetric matrix, and its row."""
    e = c.e
    before, head, body, done = e.block, e.label(), e.label(), e.label()
    here, following, latch = e.name(), e.name(), e.label()
    e.goto(head)
    e.start(head)
    e.put(f"{here} = phi i64 [ {item}, %{before} ], [ {following}, %{latch} ]")
    go = e.do(f"icmp ne i64 {here}, 0")
    e.put(f"br i1 {go}, label %{body}, label %{done}")
    e.start(body)
    row = e.do(f"mul i64 {here}, {c.row}")
    kind, parent = e.load_integer("%table", e.do(f"add i64 {row}, 1")), e.load_integer("%table", row)
    labels = {code.kind.index: e.label() for code in c.plan.codes}
    e.put(f"switch i64 {kind}, label %{latch} [ " + " ".join(f"i64 {i}, label %{x}" for i, x in labels.items()) + " ]")
    for code in c.plan.codes:
        e.start(labels[code.kind.index])
        at = _Item(c, code, here)
        value = at.compute(code.walks[k])
        for i, entry in enumerate(code.walks[k].sent):
            at.store(at.record_of("0"), i, e.operand(entry, value))
        for j, entry in code.walks[k].outputs:
            a = e.do(f"add i64 {at.start('result')}, {j}")
            for x, y in ((a, column), (column, a)) if c.mirrored else ((a, column),):
                whole = e.do(f"mul i64 {x}, {c.size}")
                flat = e.do(f"add i64 {whole}, {y}")
                e.store_lanes(c.targets, flat, e.operand(entry, value))
        e.goto(latch)
    e.start(latch)
    e.put(f"{following} = add i64 {parent}, 0")
    e.goto(head)
    e.start(done)


def _epilogue(c: _Context) -> None:
    """Results computed from what reached the root."""
    e, plan = c.e, c.plan

    def leaf(key: Any) -> str:
        match key:
            case ("root", k, i):
                slot = e.offset("%work", (plan.edge_slot[k] + i) * e.width)
                return e.do(f"load {e.type}, ptr {slot}, align {8 * e.width}")
            case ("global", name, j):
                return e.load_lanes(c.pointers[name], j)
        raise AssertionError(key)

    value: dict[Any, str] = {}
    e.nodes(reachable(plan.epilogue), value, leaf)
    for i, entry in enumerate(plan.epilogue):
        e.store_lanes(c.targets, i, e.operand(entry if type(entry) is Scalar else float(entry), value))


