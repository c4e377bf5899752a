"""What each kind of item computes in which sweep of a rolled program, and what it must remember in between.

Kinds of many items compute *ahead* of all sweeps what depends on nothing that travels, and *behind* them what no sweep
waits for (the derivatives of what is computed ahead, mostly): several items side by side. Where sweeps look at results
that others have summed up, these are complete before: a new *phase* begins, and what is behind the one before is
computed between them.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
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
    phase: int = 0  #: at whose end it must have been written

    def in_phase(self, phase: int) -> Written:
        return Written(*self[:-1], phase)


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
    #: what no sweep of a phase waits for, if it is computed after them, side by side; then every item writes it
    behind: list[SweepCode] = field(default_factory=list)
    #: place of nodes that are saved side by side: by what is computed ahead and behind, and in sweeps for the latter
    beside: dict[Scalar, int] = field(default_factory=dict)

    @property
    def beside_statics(self) -> list[Scalar]:
        """Those of the `statics` that are needed ahead or behind."""
        needed = set(self._body_beside)
        return [node for node in self.statics if node in needed]

    @property
    def beside_inputs(self) -> list[str]:
        """Inputs of which the item's part is needed ahead or behind."""
        return list(dict.fromkeys(n.args[0][1] for n in self._body_beside
                                  if n.op is LEAF and n.args[0][0] in ("in", "out")))

    @property
    def _body_beside(self) -> list[Scalar]:
        return [x for code in (self.ahead, *self.behind) if code is not None for x in code.body]


@dataclass
class Plan:
    """A rolled kernel before code generation."""

    codes: list[KindCode]
    directions: list[str]
    widths: list[int]
    persistent: list[bool]  #: sweeps whose travelling values are looked at again: they live in the records
    edge_slot: list[int]  #: for these, where they start in a record; for others, in a buffer
    record: int  #: scalars per record
    buffer: int  #: scalars per shared buffer
    epilogue: list[Number]
    root_graph: Graph
    #: at the root, to entries of the result
    added: Sequence[tuple[int, Number]] = ()
    zeroed: bool = False  #: whether the result begins with zeros, because not every entry is written, or some are added
    phases: Sequence[int] = ()  #: the sweeps before which results are complete that later ones look at
    joined: Sequence[int] = ()  #: sweeps that are done in one loop with the one before
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
    def loops(self) -> list[list[int]]:
        """The sweeps of every loop over all items."""
        out: list[list[int]] = []
        for k in range(len(self.directions)):
            out[-1].append(k) if k in self.joined else out.append([k])
        return out

    @property
    def at_root(self) -> list[Number]:
        """All that is computed at the root."""
        return [*self.epilogue, *(x for _, x in self.added)]

    @property
    def block_row(self) -> int:
        """Integers per block of items side by side (see `lowering.ahead`)."""
        return 2 + self.lanes * max((len(code.beside_inputs) for code in self.codes), default=0)


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
    edge_slot, at, buffer, start = [], 0, 0, 0
    for k, sweep in enumerate(rolled.sweeps):
        start = start if k in rolled.joined else 0
        edge_slot.append(at if sweep.to_root else start)
        at, start = (at + sweep.width, start) if sweep.to_root else (at, start + sweep.width)
        buffer = max(buffer, start, sweep.width)
    codes, record = [], max([1, at, *(s.width for s in rolled.sweeps if s.direction == PATHS)])  # paths use the root's
    for kind in rolled.kinds:
        own = written[kind.index] if written else ()
        code = _side_by_side(rolled, kind, result, own, at) if kind.index in ahead else None
        if code is None:
            code = _Planning(rolled, kind, result, own).made(at) if known is None else known.codes[kind.index]
        record = max(record, at + len(code.slot))
        codes.append(code)
    return Plan(codes, [s.direction for s in rolled.sweeps], [s.width for s in rolled.sweeps],
                [s.to_root for s in rolled.sweeps], edge_slot, record, buffer,
                list(epilogue), rolled.root_graph, added or (), added is not None, rolled.phases,
                rolled.joined)


#: operations that count for several
_WORK = {SIN: 20, COS: 20, DIV: 5, SQRT: 5}


def _worth(code: KindCode, part: SweepCode, kept: int) -> bool:
    """Whether computing a part side by side saves more than it costs to keep so many values there, and to fetch what it
    is computed from."""
    numbers = set(code.statics)
    rest = [node for node in part.body if node not in numbers]
    fetched = sum(1 for node in rest if node.op is LEAF)
    work = sum(_WORK.get(node.op, 1) for node in rest) - fetched
    return work > 4 * kept + 2 * fetched


def _side_by_side(rolled: Rolled, kind: Kind, result: Field, written: Sequence[Written], first_slot: int
                  ) -> KindCode | None:
    """What a kind does ahead and behind, or ahead alone, as far as that is worth it."""
    phases = range(len(rolled.phases) + 1) if written else ()
    code = _Planning(rolled, kind, result, written, True, phases).made(first_slot)
    some = [p for p in phases if _worth(code, code.behind[p], len(code.behind[p].loads) + len(code.behind[p].saves))]
    if len(some) < len(phases):
        code = _Planning(rolled, kind, result, written, True, some).made(first_slot)
    assert code.ahead is not None
    late = {x for part in code.behind for x in (*part.loads, *part.saves)}
    return code if _worth(code, code.ahead, len([x for x in code.beside if x not in late])) else None


class _Planning:
    """Plans what one kind does, until nothing is left to be done in a sweep that comes too late for what travelled in
    another."""

    def __init__(self, rolled: Rolled, kind: Kind, result: Field, written: Sequence[Written], ahead: bool = False,
                 behind: Sequence[int] = ()) -> None:
        self.rolled, self.kind, self.result, self.written = rolled, kind, result, written
        self.ahead, self.behind = ahead, behind
        self.stage, self.static = _stages(kind.graph), _static_nodes(kind.graph)
        self.travelled = {node: k for node, k in self.stage.items()
                          if node.op is LEAF and k > -1 and node.args[0][0] != "out"}
        #: what is computed in a sweep although only later ones look at it
        self.due: dict[int, dict[Scalar, None]] = {k: {} for k in range(len(rolled.sweeps))}

    def made(self, first_slot: int) -> KindCode:
        while True:
            code = self._try(first_slot)
            if not self.late:
                return code
            for node in self.late:
                self.due[self.stage[node]][node] = None

    def _try(self, first_slot: int) -> KindCode:
        self.late: dict[Scalar, None] = {}
        self.statics: dict[Scalar, None] = {}
        self.loaded: dict[Scalar, None] = {}  # by sweeps
        #: the sweep that computes a node, -1: ahead of all
        self.origin = {node: -1 for node, last in self.stage.items()
                       if last == -1 and node.op is not LEAF and node not in self.static} if self.ahead else {}
        sweeps: list[SweepCode] = []
        walks: dict[int, SweepCode] = {}
        behind: list[SweepCode] = []
        for k, sweep in enumerate(self.rolled.sweeps):
            behind += [self._put_behind(sweeps, phase, k) for phase, first in enumerate(self.rolled.phases)
                       if first == k]
            code = self._sweep(k)
            sweeps.append(code)
            for node in code.body:
                self.origin.setdefault(node, k)
            if sweep.direction == PATHS:
                walks[k] = SweepCode(sent=sweep.sent[self.kind.index])
                walks[k].outputs = list(enumerate(flatten(self.result[self.kind.index])))
                self._fill(walks[k], [*walks[k].sent, *(v for _, v in walks[k].outputs)], k)
        behind.append(self._put_behind(sweeps, len(behind), len(sweeps)))
        return self._placed(sweeps, walks, behind, first_slot)

    def _sweep(self, k: int) -> SweepCode:
        kind, sweep, code = self.kind, self.rolled.sweeps[k], SweepCode()
        if sweep.direction == OUTWARD and not kind.is_tip:
            code.sent = sweep.sent[kind.index]
        elif sweep.direction == INWARD and (not kind.is_base or sweep.to_root):
            code.sent = sweep.sent[kind.index]
            code.adds_to_parent = not kind.is_first
        elif sweep.direction == PATHS:
            code.starts = sweep.starts[kind.index]
        if self.result is not None and self.result.sweep == k and sweep.direction != PATHS:
            code.outputs = list(enumerate(flatten(self.result[kind.index])))
        code.written = [w for w in self.written if w.phase not in self.behind and k == (
            max(self.stage[w.value], 0) if type(w.value) is Scalar else 0)]  # as soon as they are known
        self._fill(code, [*code.sent, *(v for _, v in code.outputs), *(w.value for w in code.written),
                          *(v for s in code.starts for v in s), *self.due[k]], k)
        return code

    def _fill(self, code: SweepCode, roots: Sequence[Number], k: int) -> None:
        """What code of sweep k computes, and fetches."""
        gone = {node for node, when in self.travelled.items() if when < k}
        _schedule(code, roots, self.origin, self.static, self.statics, gone)
        self.late.update((x, None) for x in code.body if -1 < self.stage[x] < k and x not in self.origin)
        self.loaded.update(dict.fromkeys(code.loads))

    def _put_behind(self, sweeps: list[SweepCode], phase: int, end: int) -> SweepCode:
        """What is written in a phase, of sweeps up to `end`, and not computed in one of them anyway."""
        behind, every = SweepCode(), len(self.rolled.sweeps)
        for w in self.written:
            if w.phase == phase and phase in self.behind:
                k = self.origin.get(w.value, -1) if type(w.value) is Scalar else 0
                (sweeps[k] if 0 <= k < every else behind).written.append(w)
        behind.saves = list(dict.fromkeys(w.value for w in behind.written if w.value not in self.static))
        gone = {node for node, when in self.travelled.items() if when < end}
        _schedule(behind, [w.value for w in behind.written], self.origin, self.static, self.statics, gone)
        self.late.update((x, None) for x in behind.body if x in gone)
        for node in behind.body:
            self.origin.setdefault(node, every + phase)
        return behind

    def _placed(self, sweeps: list[SweepCode], walks: dict[int, SweepCode], behind: list[SweepCode], first_slot: int
                ) -> KindCode:
        """Where values are kept."""
        kept = dict.fromkeys((*self.loaded, *(x for code in behind for x in code.loads)))
        before = SweepCode(saves=[node for node in kept if self.origin[node] < 0])
        _schedule(before, before.saves, {}, self.static, self.statics, set())
        codes = [*sweeps, *behind]
        for node in kept:
            if self.origin[node] >= 0 and node not in codes[self.origin[node]].saves:
                codes[self.origin[node]].saves.append(node)
        every = dict.fromkeys((*before.saves, *(x for code in behind for x in (*code.loads, *code.saves))))
        beside = {node: i for i, node in enumerate(every)}
        own = [node for node in kept if self.origin[node] >= 0 and node not in beside]
        slot = {node: first_slot + i for i, node in enumerate(own)}
        return KindCode(self.kind, sweeps, walks, list(self.statics), slot, before if self.ahead else None, behind,
                        beside)


#: leaves that are known from some sweep on (sums at the root after it): where their keys tell which
_KNOWN_FROM = {"parent": 1, "sum": 1, "carry": 1, "root": 1, "out": 3}


def _stages(graph: Graph) -> dict[Scalar, int]:
    """The last sweep whose travelling values each node depends on, -1 if none."""
    stage: dict[Scalar, int] = {}
    for node in graph.nodes:
        if node.op is LEAF:
            key = node.args[0]
            stage[node] = key[_KNOWN_FROM[key[0]]] + (key[0] == "root") if key[0] in _KNOWN_FROM else -1
        else:
            last = -1
            for a in node.args:
                if type(a) is Scalar and stage[a] > last:
                    last = stage[a]
            stage[node] = last
    return stage


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


def _schedule(code: SweepCode, roots: Sequence[Number], computed: Container[Scalar], static: set[Scalar],
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
