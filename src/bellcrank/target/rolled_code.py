"""Kernels of the rolled schedule: loops over records, one block of code per kind and sweep."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar.graph import Scalar, reachable
from bellcrank.schedule.rolled import INWARD, OUTWARD, PATHS
from bellcrank.schedule.rolled_plan import KindCode, Plan, SweepCode, Written
from bellcrank.target.calling import Body, LaneStates, finite_array
from bellcrank.target.operation_code import compute, value_of
from bellcrank.target.program import Builder, Int, Integers, Memory, Real, SharedReals

__all__ = ["COLUMNS", "rolled"]

#: columns of the integer table, one row per item: parent, kind, start of its numbers, start of its results,
#: the buffers through which values travel to its children (own_out), from its parent, from its children
#: (own_sum) and to its parent; then the starts of its parts of the inputs
COLUMNS = ("parent", "kind", "numbers", "result", "own_out", "parent_out", "own_sum", "parent_sum")
#: operations of all kinds from which on each kind becomes a function of its own
_LARGE = 20_000


@dataclass
class _Context:
    b: Builder
    plan: Plan
    local: list[str]
    inputs: Mapping[str, Memory]
    target: Memory
    work: Memory
    buffers: Memory
    numbers: SharedReals
    table: Integers
    runs: Integers
    n_runs: Int
    row: int  #: integers per table row
    numbers_ahead: Memory  #: the same numbers, read side by side
    blocks: Int  #: where the rows of blocks of items begin in the table
    side: Int  #: side of the result matrix (paths)
    mirrored: bool  #: whether it is symmetric
    large: bool  #: whether the code of kinds is better compiled one by one

    def array(self, name: str) -> Memory:
        """The input that a column belongs to, or the result."""
        return self.inputs.get(name.split("@")[0], self.target)

    def piece(self, item: Int) -> AbstractContextManager[None]:
        """The code of one kind for an item."""
        if not self.large:
            return nullcontext()
        return self.b.piece(*self.inputs.values(), self.target, self.work, self.buffers, self.numbers, self.table,
                            self.numbers_ahead, self.blocks, self.side, item)


def rolled(b: Builder, plan: Plan, inputs: Sequence[str], local: list[str], mirrored: bool = True) -> Body:
    """The body of a kernel (see `target.calling`) that loops over records.

    `local` names the inputs of which every item has its own part. `runs` holds (kind, first item, end) for
    stretches of items of the same kind. All sizes are read from `strides`: the stride of each input, then the length
    of each, of the result, and of a side of it if it is a matrix; so the code is the same for any number of items.
    """
    n = len(inputs)
    runs, n_runs, work = b.integers_at("runs"), b.count("n_runs"), b.memory("work", aligned=True)
    rows = runs[(n_runs - 1) * 3 + 2]  # where the last run ends: records before buffers
    buffers = work.at(rows, plan.record)
    strides, numbers, table = b.integers_at("strides"), b.table("numbers"), b.integers_at("table")
    sizes = {name: strides[n + i] for i, name in enumerate(inputs)}
    out_size, side = strides[2 * n], strides[2 * n + 1]

    def body(states: LaneStates) -> Real | None:
        target = states.target(out_size)
        row = len(COLUMNS) + len(local) + (1 if _ahead(plan) else 0)
        c = _Context(b, plan, local, states.inputs, target, work, buffers, numbers, table, runs, n_runs, row,
                     b.memory("numbers"), rows * row, side, mirrored, _operations(plan) > _LARGE)
        check = b.constant(0.0)
        for name, size in sizes.items() if states.checked else ():
            check = finite_array(b, states.inputs[name], size, check)
        if PATHS in plan.directions or plan.zeroed:
            with b.loop(out_size) as i:
                target[i] = 0.0
        for position, code in enumerate(_ahead(plan)):
            assert code.ahead is not None
            _compute_beside(c, code, position, code.ahead)
        for sweeps in plan.loops:
            for phase, first in enumerate(plan.phases):
                if first == sweeps[0]:
                    _finish_phase(c, phase)
            if any(_has_work(plan, code, k) for code in plan.codes for k in sweeps):
                _sweep(c, sweeps)
        _finish_phase(c, len(plan.phases))
        _epilogue(c)
        return finite_array(b, target, out_size, check) if states.checked else None

    return body


def _operations(plan: Plan) -> int:
    return sum(len(sweep.body) for code in plan.codes
               for sweep in (*code.sweeps, *code.walks.values(), *code.behind, *((code.ahead,) if code.ahead else ())))


def _ahead(plan: Plan) -> list[KindCode]:
    """Kinds that compute something ahead of the sweeps, in the order of their rows in front of the runs."""
    return [code for code in plan.codes if code.ahead is not None]


def _compute_beside(c: _Context, kind: KindCode, position: int, code: SweepCode) -> None:
    """What items of one kind compute ahead of all sweeps, or behind them, side by side (see `lowering.ahead`)."""
    if not code.saves:
        return
    b, first = c.b, position * 3
    with b.loop(c.runs[first + 2], c.runs[first + 1]) as block, c.piece(block), b.side_by_side() as lanes:
        assert lanes == c.plan.lanes
        row = c.blocks + block * c.plan.block_row
        numbers, target = c.numbers_ahead.at(c.table[row]), c.work.at(c.table[row + 1])
        parts = {name: c.array(name).gathered([c.table[row + (2 + i * lanes + j)] for j in range(lanes)])
                 for i, name in enumerate(kind.beside_inputs)}

        def leaf(key: Any) -> str:
            match key:
                case ("in", name, j) | ("out", name, j, _):
                    return parts[name][j].operand
                case ("global", name, j):
                    return c.inputs[name].everywhere(j).operand
            raise AssertionError(key)

        value: dict[Any, str] = {node: target[kind.beside[node] * lanes].operand for node in code.loads}
        needed = set(code.body)
        value |= {node: numbers[i * lanes].operand for i, node in enumerate(kind.beside_statics) if node in needed}

        def store(i: int) -> Callable[[str], None]:  # at once: registers are few
            return lambda operand: target.__setitem__(i * lanes, Real(b, operand))

        known = [node for node in code.saves if node in value]
        for node in known:
            store(kind.beside[node])(value[node])
        compute(b, code.body, value, leaf, {node: store(kind.beside[node]) for node in code.saves if node not in value})


def _finish_phase(c: _Context, phase: int) -> None:
    """What is computed behind the sweeps of a phase. Items write it one after another: some add to the same entries."""
    for position, code in enumerate(_ahead(c.plan)):
        for behind in code.behind[phase:phase + 1]:
            _compute_beside(c, code, position, behind)
    codes = [code for code in c.plan.codes if code.behind and code.behind[phase].written]
    if not codes:
        return
    b = c.b
    with b.loop(c.n_runs, len(_ahead(c.plan))) as run:
        kind, first, end = (c.runs[run * 3 + i] for i in range(3))

        def items(code: KindCode) -> Callable[[], None]:
            def emit() -> None:
                with b.loop(end, first) as item, c.piece(item):
                    at = _Item(c, code, item)
                    index = {node: i for i, node in enumerate(code.statics)}
                    written = code.behind[phase].written
                    _write(c, at, written, {
                        w.value: (at.number(index[w.value]) if w.value in index else at.kept(w.value)).operand
                        for w in written})

            return emit

        b.switch(kind, [(code.kind.index, items(code)) for code in codes])


def _write(c: _Context, at: _Item, written: Sequence[Written], value: dict[Any, str]) -> None:
    for w in written:
        entry = value_of(c.b, w.value, value)
        here: Int | int = at.start(w.column) + w.offset if w.column else w.offset
        c.target[here] = c.target[here] + entry if w.adds else entry


def _has_work(plan: Plan, code: KindCode, k: int) -> bool:
    sweep = code.sweeps[k]
    return bool((sweep.sent and plan.read[k]) or sweep.outputs or sweep.written or sweep.saves or sweep.starts)


def _sweep(c: _Context, sweeps: Sequence[int]) -> None:
    """Loop over the runs of items of one kind, outward or inward."""
    b, back = c.b, c.plan.directions[sweeps[0]] == INWARD
    with b.loop(c.n_runs, len(_ahead(c.plan)), back=back) as run:
        base = run * 3
        kind, first, end = (c.runs[base + i] for i in range(3))

        def items(code: KindCode) -> Callable[[], None]:
            def emit() -> None:
                with b.loop(end, first, back=back) as item, c.piece(item):
                    for k in sweeps:
                        if _has_work(c.plan, code, k):
                            _item(c, code, k, item)

            return emit

        b.switch(kind, [(code.kind.index, items(code)) for code in c.plan.codes
                        if any(_has_work(c.plan, code, k) for k in sweeps)])


class _Item:
    """One item's record, numbers and parts of the arrays."""

    def __init__(self, c: _Context, code: KindCode, item: Int) -> None:
        self.c, self.code, self.item = c, code, item
        self.row = item * c.row
        self.record = self.record_of(item)
        self._edges: dict[tuple[str, bool], Memory] = {}
        self._numbers: SharedReals | None = None
        self._starts: dict[str, Int] = {}
        self._beside: Memory | None = None

    def record_of(self, item: Int | int) -> Memory:
        return self.c.work.at(item, self.c.plan.record)

    def edge(self, column: str, k: int) -> tuple[Memory, int]:
        """Where values travel in sweep k: a memory and the first slot there."""
        plan = self.c.plan
        key = (column, plan.persistent[k])
        if key not in self._edges:
            if plan.persistent[k]:
                self._edges[key] = self.record if column.startswith("own") else self.record_of(self.start("parent"))
            else:
                self._edges[key] = self.c.buffers.at(self.start(column), plan.buffer)
        return self._edges[key], plan.edge_slot[k]

    def start(self, name: str) -> Int:
        if name not in self._starts:
            column = COLUMNS.index(name) if name in COLUMNS else len(COLUMNS) + self.c.local.index(name)
            self._starts[name] = self.c.table[self.row + column]
        return self._starts[name]

    def number(self, index: int) -> Real:
        if self._numbers is None:
            self._numbers = self.c.numbers.at(self.start("numbers"))
        return self._numbers[index]

    def _place(self, node: Scalar) -> tuple[Memory, int]:
        """Where a node is kept: beside other items' values, or in the record."""
        if node not in self.code.beside:
            return self.record, self.code.slot[node]
        if self._beside is None:
            self._beside = self.c.work.at(self.c.table[self.row + (self.c.row - 1)])
        return self._beside, self.code.beside[node] * self.c.plan.lanes

    def kept(self, node: Scalar) -> Real:
        """A value that was computed earlier."""
        place, index = self._place(node)
        return place[index]

    def keep(self, node: Scalar, value: Real) -> None:
        place, index = self._place(node)
        place[index] = value

    def leaf(self, key: Any) -> str:
        return self._leaf(key).operand

    def _leaf(self, key: Any) -> Real:
        match key:
            case ("in", name, j):  # "q@2": of the item's member 2
                return self.c.array(name)[self.start(name) + j]
            case ("out", name, j, _):
                return self.c.target[self.start(name) + j]
            case ("global", name, j):
                return self.c.inputs[name][j]
            case ("parent", k, i):
                place, slot = self.edge("parent_out", k)
                return place[slot + i]
            case ("sum", k, i):
                place, slot = self.edge("own_sum", k)
                return place[slot + i]
            case ("carry", _, i):
                return self.record_of(0)[i]
            case ("root", k, i):
                return self.c.work[self.c.plan.edge_slot[k] + i]
        raise AssertionError(key)

    def compute(self, code: SweepCode) -> dict[Any, str]:
        """Values of all nodes of a piece of code."""
        index = {node: i for i, node in enumerate(self.code.statics)}
        value: dict[Any, str] = {node: self.kept(node).operand for node in code.loads}
        for node in code.body:
            if node in index:
                value[node] = self.number(index[node]).operand
        compute(self.c.b, code.body, value, self.leaf)
        return value


def _item(c: _Context, kind: KindCode, k: int, item: Int) -> None:
    """What one item does in sweep k."""
    b, code = c.b, kind.sweeps[k]
    at = _Item(c, kind, item)
    value = at.compute(code)
    for node in code.saves:
        at.keep(node, Real(b, value[node]))
    if c.plan.directions[k] == PATHS:
        for column, start in enumerate(code.starts):
            for i, entry in enumerate(start):
                at.record_of(0)[i] = value_of(b, entry, value)
            _walk(c, k, item, at.start("result") + column)
        return
    place, slot = at.edge("own_out" if c.plan.directions[k] == OUTWARD else "parent_sum", k)
    for i, entry in enumerate(code.sent):
        if i not in c.plan.read[k]:
            continue
        total = value_of(b, entry, value)
        if code.adds_to_parent and type(entry) is float and entry == 0.0:
            continue
        if code.adds_to_parent:
            total = place[slot + i] + total
        place[slot + i] = total
    places = kind.kind.places
    for j, entry in code.outputs:
        target, offset = ("result", j) if places is None else places[j]
        c.target[at.start(target) + offset] = value_of(b, entry, value)
    _write(c, at, code.written, value)


def _walk(c: _Context, k: int, item: Int, column: Int) -> None:
    """From an item to the root: entries of one column of a symmetric matrix, and its row."""
    b = c.b

    def passed(here: Int) -> Int:
        row = here * c.row
        kind, parent = c.table[row + COLUMNS.index("kind")], c.table[row]

        def visit(code: KindCode) -> Callable[[], None]:
            def emit() -> None:
                at = _Item(c, code, here)
                value = at.compute(code.walks[k])
                for i, entry in enumerate(code.walks[k].sent):
                    at.record_of(0)[i] = value_of(b, entry, value)
                for j, entry in code.walks[k].outputs:
                    a = at.start("result") + j
                    for x, y in ((a, column), (column, a)) if c.mirrored else ((a, column),):
                        c.target[x * c.side + y] = value_of(b, entry, value)

            return emit

        b.switch(kind, [(code.kind.index, visit(code)) for code in c.plan.codes])
        return parent

    b.chase(item, passed)


def _epilogue(c: _Context) -> None:
    """Results computed from what reached the root."""
    b, plan = c.b, c.plan

    def leaf(key: Any) -> str:
        match key:
            case ("root", k, i):
                return c.work[plan.edge_slot[k] + i].operand
            case ("global", name, j):
                return c.inputs[name][j].operand
        raise AssertionError(key)

    value: dict[Any, str] = {}
    compute(b, reachable(plan.at_root), value, leaf)
    for i, entry in enumerate(plan.epilogue):
        c.target[i] = value_of(b, entry if type(entry) is Scalar else float(entry), value)
    for i, entry in plan.added:
        c.target[i] = c.target[i] + value_of(b, entry if type(entry) is Scalar else float(entry), value)
