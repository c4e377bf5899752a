"""What each kind of item computes in which sweep of a rolled program, and what it must remember in between."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from bellcrank.scalar.graph import ADD, COS, DIV, LEAF, MUL, NEG, SIN, SQRT, SUB, Graph, Number, Scalar, reachable
from bellcrank.schedule.rolled import INWARD, OUTWARD, PATHS, Kind, Rolled
from bellcrank.schedule.sweeps import Field, flatten

__all__ = ["KindCode", "Plan", "SweepCode", "Written", "plan"]


class Written(NamedTuple):
    """An entry of the result that an item writes as soon as it knows it."""

    column: str  #: of the table, that tells where the item's part begins; "": the result's own beginning
    offset: int
    value: Number
    adds: bool = False  #: to what others have written there


@dataclass
class SweepCode:
    """What one kind does in one sweep."""

    body: list[Scalar] = field(default_factory=list)  #: nodes to compute, arguments first
    loads: list[Scalar] = field(default_factory=list)  #: nodes an earlier sweep left in the record
    saves: list[Scalar] = field(default_factory=list)  #: nodes to leave in the record
    sent: list[Number] = field(default_factory=list)
    outputs: list[tuple[int, Number]] = field(default_factory=list)  #: (entry of the item's own result, value)
    written: list[Written] = field(default_factory=list)
    starts: list[list[Number]] = field(default_factory=list)
    adds_to_parent: bool = False  #: inward: whether `sent` is added to what siblings sent


@dataclass
class KindCode:
    """What one kind does, and the numbers it needs."""

    kind: Kind
    sweeps: list[SweepCode]
    walks: dict[int, SweepCode]  #: paths: what is done when a path passes
    statics: list[Scalar]  #: expressions of the item's numbers, evaluated when the kernel is made
    slot: dict[Scalar, int]  #: place of saved nodes in the record
    #: what depends on nothing that travels, if it is computed before all sweeps, for several items side by side
    ahead: SweepCode | None = None

    @property
    def ahead_statics(self) -> list[Scalar]:
        """Those of the `statics` that are needed ahead."""
        needed = set(self.ahead.body) if self.ahead is not None else set()
        return [node for node in self.statics if node in needed]

    @property
    def ahead_inputs(self) -> list[str]:
        """Inputs of which the item's part is needed ahead."""
        body = self.ahead.body if self.ahead is not None else []
        return list(dict.fromkeys(n.args[0][1] for n in body if n.op is LEAF and n.args[0][0] == "in"))


@dataclass
class Plan:
    """A rolled kernel before code generation."""

    codes: list[KindCode]
    directions: list[str]
    widths: list[int]
    persistent: list[bool]  #: sweeps whose travelling values are looked at again: they live in the records
    edge_slot: list[int]  #: for these, where they start in a record
    record: int  #: scalars per record
    buffer: int  #: scalars per shared buffer
    epilogue: list[Number]
    root_graph: Graph
    #: at the root, to entries of the result
    added: Sequence[tuple[int, Number]] = ()
    zeroed: bool = False  #: whether the result begins with zeros, because not every entry is written, or some are added
    #: items side by side in what is computed ahead
    lanes: int = 1

    @cached_property
    def read(self) -> list[set[int]]:
        """For every sweep, the entries of what travels that somebody looks at."""
        out: list[set[int]] = [set() for _ in self.directions]
        bodies = [sweep.body for code in self.codes for sweep in (*code.sweeps, *code.walks.values())]
        for node in itertools.chain(*bodies, reachable(self.at_root)):
            if node.op is LEAF and node.args[0][0] in ("parent", "sum", "root"):
                out[node.args[0][1]].add(node.args[0][2])
        return out

    @property
    def at_root(self) -> list[Number]:
        """All that is computed at the root."""
        return [*self.epilogue, *(x for _, x in self.added)]

    @property
    def block_row(self) -> int:
        """Integers per block of items side by side (see `lowering.ahead`)."""
        return 2 + self.lanes * max((len(code.ahead_inputs) for code in self.codes), default=0)


def plan(rolled: Rolled, result: Field, epilogue: Sequence[Number], ahead: Sequence[int] = (),
         known: Plan | None = None, written: Sequence[Sequence[Written]] = (),
         added: Sequence[tuple[int, Number]] | None = None) -> Plan:
    """Decide what each kind computes in which sweep and what it must remember in between.

    `result` is the field to be written out (None if the result is the `epilogue`, computed at the root); what else is
    `written`, kind by kind, or `added` at the root (not None: to zeros). The kinds `ahead` compute before all sweeps
    what depends on nothing that travels, if that is worth it; the others do what they do in the plan that is `known`.
    """
    at_root = [*epilogue, *(x for _, x in added or ())]
    looked_at = {node.args[0][1] for node in reachable(at_root) if node.op is LEAF and node.args[0][0] == "root"}
    for k in looked_at:
        rolled.sweeps[k].to_root = True
    edge_slot, at = [], 0
    for sweep in rolled.sweeps:
        edge_slot.append(at)
        at += sweep.width if sweep.to_root else 0
    codes, record = [], max([1, at, *(s.width for s in rolled.sweeps if s.direction == PATHS)])  # paths use the root's
    for kind in rolled.kinds:
        code = _plan_kind(rolled, kind, result, at, True, written) if kind.index in ahead else None
        if code is None or not _worth(code):
            code = _plan_kind(rolled, kind, result, at, False, written) if known is None else known.codes[kind.index]
        record = max(record, at + len(code.slot))
        codes.append(code)
    return Plan(codes, [s.direction for s in rolled.sweeps], [s.width for s in rolled.sweeps],
                [s.to_root for s in rolled.sweeps], edge_slot, record, max([0, *(s.width for s in rolled.sweeps)]),
                list(epilogue), rolled.root_graph, added or (), added is not None)


#: operations that count for several
_WORK = {SIN: 20, COS: 20, DIV: 5, SQRT: 5}


def _worth(code: KindCode) -> bool:
    """Whether what is computed ahead saves more than it costs to store it, and to fetch what it is computed from."""
    if code.ahead is None:
        return False
    numbers = set(code.statics)
    rest = [node for node in code.ahead.body if node not in numbers]
    fetched = sum(1 for node in rest if node.op is LEAF)
    work = sum(_WORK.get(node.op, 1) for node in rest) - fetched
    return work > 4 * len(code.ahead.saves) + 2 * fetched


def _plan_kind(rolled: Rolled, kind: Kind, result: Field, first_slot: int, ahead: bool,
               written: Sequence[Sequence[Written]]) -> KindCode:
    """Plan until nothing is left to be done in a sweep that comes too late for what travelled in another."""
    stage, static = _stages(kind.graph), _static_nodes(kind.graph)
    local = {node for node, last in stage.items() if last == -1 and node.op is not LEAF and node not in static}
    known: dict[int, list[Written]] = {}  # when entries that are written are known
    for w in written[kind.index] if written else ():
        known.setdefault(max(stage[w.value], 0) if type(w.value) is Scalar else 0, []).append(w)
    due: dict[int, dict[Scalar, None]] = {k: {} for k in range(len(rolled.sweeps))}
    while True:
        late: dict[Scalar, None] = {}
        code = _try_plan(rolled, kind, result, first_slot, stage, static, due, late, local if ahead else set(), known)
        if not late:
            return code
        for node in late:
            due[stage[node]][node] = None


def _stages(graph: Graph) -> dict[Scalar, int]:
    """The last sweep whose travelling values each node depends on, -1 if none."""
    stage: dict[Scalar, int] = {}
    for node in graph.nodes:
        if node.op is LEAF:
            key = node.args[0]
            stage[node] = key[1] if key[0] in ("parent", "sum", "carry") else key[1] + 1 if key[0] == "root" else -1
        else:
            last = -1
            for a in node.args:
                if type(a) is Scalar and stage[a] > last:
                    last = stage[a]
            stage[node] = last
    return stage


def _try_plan(rolled: Rolled, kind: Kind, result: Field, first_slot: int, stage: dict[Scalar, int], static: set[Scalar],
              due: dict[int, dict[Scalar, None]], late: dict[Scalar, None], ahead: set[Scalar],
              known: dict[int, list[Written]]) -> KindCode:
    travelled = [(node, stage[node]) for node in kind.graph.nodes if node.op is LEAF and stage[node] > -1]
    sweeps: list[SweepCode] = []
    walks: dict[int, SweepCode] = {}
    computed = set(ahead)
    saves: dict[Scalar, int] = {}  # node -> sweep that computes it, -1: ahead of all
    origin = dict.fromkeys(ahead, -1)
    statics: dict[Scalar, None] = {}
    for k, sweep in enumerate(rolled.sweeps):
        code = SweepCode()
        if sweep.direction == OUTWARD and not kind.is_tip:
            code.sent = sweep.sent[kind.index]
        elif sweep.direction == INWARD and (not kind.is_base or sweep.to_root):
            code.sent = sweep.sent[kind.index]
            code.adds_to_parent = not kind.is_first
        elif sweep.direction == PATHS:
            code.starts = sweep.starts[kind.index]
        if result is not None and result.sweep == k and sweep.direction != PATHS:
            code.outputs = list(enumerate(flatten(result[kind.index])))
        code.written = known.get(k, [])
        roots = [*code.sent, *(v for _, v in code.outputs), *(w.value for w in code.written),
                 *(v for s in code.starts for v in s), *due[k]]
        gone = {node for node, when in travelled if when < k}
        _schedule(code, roots, computed, static, statics, gone)
        late.update((node, None) for node in code.body if -1 < stage[node] < k and node not in computed)
        for node in code.loads:
            saves[node] = origin[node]
        for node in code.body:
            if node not in computed:
                computed.add(node)
                origin[node] = k
        sweeps.append(code)
        if sweep.direction == PATHS:
            walk = SweepCode(sent=sweep.sent[kind.index])
            walk.outputs = list(enumerate(flatten(result[kind.index])))
            _schedule(walk, [*walk.sent, *(v for _, v in walk.outputs)], computed, static, statics, gone)
            late.update((node, None) for node in walk.body if -1 < stage[node] < k and node not in computed)
            for node in walk.loads:
                saves[node] = origin[node]
            walks[k] = walk
    before = SweepCode(saves=[node for node, k in saves.items() if k < 0])
    _schedule(before, before.saves, set(), static, statics, set())
    slot: dict[Scalar, int] = {}
    for node, k in saves.items():
        if k >= 0:
            slot[node] = first_slot + len(slot)
            sweeps[k].saves.append(node)
    return KindCode(kind, sweeps, walks, list(statics), slot, before if ahead else None)


def _static_nodes(graph: Graph) -> set[Scalar]:
    """Nodes that depend on nothing but the item's numbers."""
    static: set[Scalar] = set()
    for node in graph.nodes:
        if node.op is LEAF:
            if node.args[0][0] == "const":
                static.add(node)
        else:
            for a in node.args:
                if type(a) is Scalar and a not in static:
                    break
            else:
                static.add(node)
    return static


_CHEAP = (ADD, SUB, MUL, NEG)


def _schedule(code: SweepCode, roots: Sequence[Number], computed: set[Scalar], static: set[Scalar],
              statics: dict[Scalar, None], gone: set[Scalar]) -> None:
    """Fill in body and loads: compute what is new, fetch what an earlier sweep computed, or compute it
    again where that takes one cheap operation on values that are at hand anyway. `gone` are the values that
    travelled in earlier sweeps: they can no longer be read."""
    body: set[Scalar] = set()
    leaves: set[Scalar] = set()
    wanted: set[Scalar] = set()
    stack = [r for r in roots if type(r) is Scalar]
    while stack:
        node = stack.pop()
        if node in body or node in wanted or node in leaves:
            continue
        if node in static:
            statics[node] = None
            leaves.add(node)
        elif node.op is LEAF and node not in gone:
            leaves.add(node)
        elif node in computed:
            wanted.add(node)
        elif node.op is LEAF:  # travelled by before anybody looked: the plan is tried again
            leaves.add(node)
        else:
            body.add(node)
            for a in node.args:
                if type(a) is Scalar and a not in body:
                    stack.append(a)
    at_hand = body | leaves
    for node in sorted(wanted, key=lambda n: n.index):
        cheap = node.op in _CHEAP and all(type(a) is not Scalar or a in at_hand for a in node.args)
        (body.add if cheap else code.loads.append)(node)
        at_hand.add(node)
    code.body = sorted(body | leaves, key=lambda n: n.index)
