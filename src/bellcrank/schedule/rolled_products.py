"""Rolled sweeps differentiated: sweeps again, with one graph per kind.

Forward, along a direction: beside every value that travels goes its rate, in the same sweep; nothing else changes.

Backward, from weights of the results to the derivatives by all variables: after the sweeps come their mirror images, in
reverse order and direction. If x is what items receive in a sweep and y what they send,

    outward: x = y of the parent           mirrored, inward:  the adjoint of y is the sum of the children's of x
    inward:  x = sum of y of the children  mirrored, outward: the adjoint of y is the parent's of x

and an item computes the adjoints of what it received, and of its variables, from those of what it sent: one backward
pass through its graph (`scalar.derivative`). Which values an item must remember until then, `rolled.plan` finds.

What does not depend on the variables, or on which no result depends, does not travel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bellcrank.scalar.derivative import adjoints, tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import LEAF, Graph, Number, Scalar, is_zero
from bellcrank.schedule.rolled import INWARD, OUTWARD, PATHS, Kind, Rolled, SweepTrace
from bellcrank.schedule.rolled_plan import Plan, Written, plan
from bellcrank.schedule.sweeps import Field, flatten

__all__ = ["TracedSweeps", "Variables", "as_traced", "backward", "closed_backward", "forward"]


class TracedSweeps(NamedTuple):
    """Sweeps and what is made of them."""

    sweeps: Rolled
    result: Field  #: written by all items, at the places of their kinds
    epilogue: list[Number]
    written: list[list[Written]]  #: by kind, besides
    #: at the root, to entries of the result, which begins with zeros then; None: every entry is written
    added: Sequence[tuple[int, Number]] | None = None

    def planned(self, ahead: Sequence[int], known: Plan | None) -> Plan:
        """See `rolled.plan`."""
        return plan(self.sweeps, self.result, self.epilogue, ahead, known, self.written, self.added)


class Variables(NamedTuple):
    """By what is differentiated: of a kind's graph, or of the root's."""

    #: forward: how fast leaves change
    rates: Mapping[Scalar, Number]
    #: backward: where adjoints go, for adjoints of leaves; {input: column} to other columns than "by_<input>"
    places: Callable[[Mapping[Scalar, Number], Mapping[str, str] | None], Iterable[Written]]


def as_traced(sweeps: Rolled, result: Any, totals: bool, partly: bool = False) -> TracedSweeps:
    """What a text has made: a field, or totals; `partly`: some entries of the result are no item's, and zero."""
    return TracedSweeps(sweeps, None, list(result), []) if totals else TracedSweeps(
        sweeps, result, [], [], () if partly else None)


Seeded = Callable[[Kind | None], Variables]


def value_places(kind: Kind, entries: Sequence[Number]) -> list[tuple[str, int]]:
    """Columns and offsets of a kind's entries of the result."""
    return [("result", j) for j in range(len(entries))] if kind.places is None else kind.places


def forward(traced: TracedSweeps, variables: Seeded) -> TracedSweeps:
    """The results, and after them their rates: in columns "rate@..." of the table, or at the end of the epilogue."""
    rolled, result, epilogue = traced[:3]
    _refuse_paths(rolled)
    every = [dict(variables(kind).rates) for kind in rolled.kinds]
    root = dict(variables(None).rates)
    moving = _moving(rolled, every)
    slots = [{i: s.width + n for n, i in enumerate(sorted(m))} for s, m in zip(rolled.sweeps, moving, strict=True)]
    out = [SweepTrace(s.direction, s.width + len(m)) for s, m in zip(rolled.sweeps, slots, strict=True)]
    written: list[list[Written]] = []
    for kind, rates in zip(rolled.kinds, every, strict=True):
        sent = [s.sent[kind.index] for s in rolled.sweeps]
        values = [] if result is None else list(flatten(result[kind.index]))
        seeds = {leaf: {(): rate} for leaf, rate in rates.items()}
        for leaf, (name, k, i) in _received(kind.graph):
            if i in slots[k]:
                seeds[leaf] = {(): kind.graph.leaf((name, k, slots[k][i]))}
        found = _in_turn(tangents([x for part in (*sent, values) for x in part], seeds), (*sent, values))
        for k, sweep in enumerate(out):
            rate = next(found)
            sweep.sent.append([*sent[k], *(rate[i].get((), 0.0) for i in slots[k])])
        changes = [row.get((), 0.0) for row in next(found)]
        places = value_places(kind, values)
        written.append([Written(column, j, x) for (column, j), x in zip(places, values, strict=True)]
                       + [Written(f"rate@{column}", j, x) for (column, j), x in zip(places, changes, strict=True)])
    seeds = {leaf: {(): rate} for leaf, rate in root.items()}
    for leaf, (_, k, i) in _received(rolled.root_graph):
        if i in slots[k]:
            seeds[leaf] = {(): rolled.root_graph.leaf(("root", k, slots[k][i]))}
    changes = [row.get((), 0.0) for row in tangents(epilogue, seeds)]
    return TracedSweeps(_again(rolled, out), None, [*epilogue, *changes], written, traced.added)


def backward(traced: TracedSweeps, variables: Seeded) -> TracedSweeps:
    """The results, and the derivatives of their sum with weights: the leaves ("in", "weights@...") of their columns, or
    ("global", "weights") for the epilogue."""
    rolled, result, epilogue = traced[:3]
    _refuse_paths(rolled)
    every, root = [variables(kind) for kind in rolled.kinds], variables(None)
    at_root = _at_root(rolled, epilogue, root)
    values = _entries(rolled, result)
    back = _mirrored(rolled, values, _given_weights(rolled, values), [v.rates for v in every], epilogue, at_root,
                     len(rolled.sweeps))
    written = [[*_results(kind, entries), *own.places(adjoint, None)]
               for kind, entries, own, adjoint in zip(rolled.kinds, values, every, back.found, strict=True)]
    added = [(w.offset, w.value) for w in root.places(at_root, None)]
    return TracedSweeps(_again(rolled, [*rolled.sweeps, *back.sweeps]), None, list(epilogue), written, added)


def closed_backward(traced: TracedSweeps, closing: Field, variables: Seeded) -> TracedSweeps:
    """The same along a closed machine, in three phases, of which each looks at what the one before has summed up.

    With the field `closing`, all speeds S(q, v) from the independent ones v, whose derivative by these is N: first the
    derivatives ū by u, every one by itself; then those by q, to which S_qᵀ ū belongs, and Nᵀ ū, which goes to the
    columns "closed_u"; then Nᵀ q̄ to "closed_q".
    """
    rolled, result = traced[:2]
    every = [variables(kind) for kind in rolled.kinds]
    values, speeds = _entries(rolled, result), _entries(rolled, closing)
    everything = [list(own.rates) for own in every]
    first = _mirrored(rolled, values, _given_weights(rolled, values), everything, [], {}, len(rolled.sweeps))
    second = _mirrored(rolled, speeds, _summed(rolled, speeds, "by_u", first.end), everything, [], {}, first.end)
    third = _mirrored(rolled, speeds, _summed(rolled, speeds, "by_q", second.end),
                      [[x for x in own if _of_speeds(x)] for own in everything], [], {}, second.end)
    written = []
    for n, (kind, own) in enumerate(zip(rolled.kinds, every, strict=True)):
        late = [x for x in own.rates if not _of_speeds(x) and _with_speeds(x)]
        both = adjoints([*first.roots[n], *second.roots[n]], [*first.factors[n], *second.factors[n]], late)
        alone = {x: a for x, a in first.found[n].items() if x not in set(late)}
        written.append([
            *_results(kind, values[n]), *own.places(alone, None),
            *(w.in_phase(1) for w in own.places(both, None)),
            *(w.in_phase(1) for w in own.places(_speeds_of(second.found[n]), {"u": "closed_u"})),
            *(w.in_phase(2) for w in own.places(_speeds_of(third.found[n]), {"u": "closed_q"}))])
    made = _again(rolled, [*rolled.sweeps, *first.sweeps, *second.sweeps, *third.sweeps])
    made.phases = [first.end, second.end]
    ways = [sweep.direction for sweep in rolled.sweeps]
    made.joined = [k for k in range(1, len(ways)) if ways[k] == ways[k - 1]]
    return TracedSweeps(made, None, [], written, ())


def _of_speeds(leaf: Scalar) -> bool:
    return bool(leaf.args[0][1].startswith("u@"))


def _with_speeds(leaf: Scalar) -> bool:
    """Whether speeds that keep a machine closed depend on it: on coordinates, parameters and time."""
    return bool(leaf.args[0][0] == "global" or leaf.args[0][1].startswith("q@"))


def _speeds_of(found: Mapping[Scalar, Number]) -> dict[Scalar, Number]:
    return {x: a for x, a in found.items() if x.op is LEAF and x.args[0][0] == "in" and _of_speeds(x)}


def _summed(rolled: Rolled, values: Sequence[Sequence[Number]], name: str, sweep: int) -> list[list[Number]]:
    """As weights, what the phases before a sweep have summed up in the columns of a name."""
    return [[kind.graph.leaf(("out", f"{name}@{column.partition('@')[2]}", j, sweep))
             for column, j in value_places(kind, entries)]
            for kind, entries in zip(rolled.kinds, values, strict=True)]


def _entries(rolled: Rolled, result: Field) -> list[list[Number]]:
    return [[] if result is None else list(flatten(result[kind.index])) for kind in rolled.kinds]


def _results(kind: Kind, entries: Sequence[Number]) -> list[Written]:
    return [Written(column, j, x) for (column, j), x in zip(value_places(kind, entries), entries, strict=True)]


def _given_weights(rolled: Rolled, values: Sequence[Sequence[Number]]) -> list[list[Number]]:
    return [[kind.graph.leaf(("in", f"weights@{column}", j)) for column, j in value_places(kind, entries)]
            for kind, entries in zip(rolled.kinds, values, strict=True)]


class Mirrored(NamedTuple):
    """The mirror images of sweeps, and by kind what is differentiated with which weights, and the adjoints."""

    sweeps: list[SweepTrace]
    end: int  #: the number of the sweep after them
    roots: list[list[Number]]
    factors: list[list[Number]]
    found: list[dict[Scalar, Number]]


def _mirrored(rolled: Rolled, values: Sequence[Sequence[Number]], weights: Sequence[Sequence[Number]],
              variables: Sequence[Iterable[Scalar]], epilogue: Sequence[Number], at_root: Mapping[Scalar, Number],
              first: int) -> Mirrored:
    """Sweeps numbered from `first` on, at least one, and the adjoints of all variables."""
    moving, asked = _moving(rolled, variables), _asked(rolled, values, epilogue)
    slots = [{i: n for n, i in enumerate(sorted(m & a))} for m, a in zip(moving, asked, strict=True)]
    mirrored = [k for k in reversed(range(len(slots))) if slots[k]]
    place = {k: first + n for n, k in enumerate(mirrored)}
    out = {k: SweepTrace(INWARD if rolled.sweeps[k].direction == OUTWARD else OUTWARD, len(slots[k])) for k in mirrored}
    made = Mirrored([out[k] for k in mirrored] or [SweepTrace(OUTWARD, 0, [[] for _ in rolled.kinds])],
                    first + max(len(mirrored), 1), [], [], [])
    for kind, own, entries, given in zip(rolled.kinds, variables, values, weights, strict=True):
        received = {(k, i): leaf for leaf, (_, k, i) in _received(kind.graph) if k < len(slots) and i in slots[k]}
        roots, factors = list(entries), list(given)
        for k in mirrored:
            for i, weight in _weights(rolled, kind, k, slots[k], place[k], at_root):
                roots.append(rolled.sweeps[k].sent[kind.index][i])
                factors.append(weight)
        found = adjoints(roots, factors, [*own, *received.values()])
        for k in mirrored:
            out[k].sent.append([found.get(received[k, i], 0.0) if (k, i) in received else 0.0 for i in slots[k]])
        for part, item in ((made.roots, roots), (made.factors, factors), (made.found, found)):
            part.append(item)  # type: ignore[arg-type]
    return made


def _weights(rolled: Rolled, kind: Kind, k: int, slots: Mapping[int, int], mirrored: int,
             at_root: Mapping[Scalar, Number]) -> Iterator[tuple[int, Number]]:
    """The adjoints of what a kind sends in sweep k, as its mirror image brings them: (entry, adjoint)."""
    direction = rolled.sweeps[k].direction
    for i, slot in slots.items():
        if direction == OUTWARD and not kind.is_tip:
            yield i, kind.graph.leaf(("sum", mirrored, slot))
        elif direction == INWARD and not kind.is_base:
            yield i, kind.graph.leaf(("parent", mirrored, slot))
        elif direction == INWARD:
            weight = at_root.get(rolled.root_graph.leaf(("root", k, i)), 0.0)
            if not is_zero(weight):
                yield i, evaluate([weight], kind.graph.leaf)[0]


def _at_root(rolled: Rolled, epilogue: Sequence[Number], root: Variables) -> dict[Scalar, Number]:
    """Adjoints of what reached the root, and of variables there."""
    weights = [rolled.root_graph.leaf(("global", "weights", j)) for j in range(len(epilogue))]
    return adjoints(epilogue, weights, [*root.rates, *(leaf for leaf, _ in _received(rolled.root_graph))])


def _again(rolled: Rolled, sweeps: Sequence[SweepTrace]) -> Rolled:
    out = Rolled(rolled.kinds, rolled.world, rolled.root_graph)
    out.sweeps = list(sweeps)
    return out


def _refuse_paths(rolled: Rolled) -> None:
    if any(s.direction == PATHS for s in rolled.sweeps):
        raise NotImplementedError("paths are not differentiated")


def _in_turn(rows: list[dict[object, Number]], parts: Iterable[Sequence[Number]]
             ) -> Iterator[list[dict[object, Number]]]:
    """Rows cut into pieces as long as the parts."""
    at = 0
    for part in parts:
        yield rows[at:at + len(part)]
        at += len(part)


def _received(graph: Graph) -> list[tuple[Scalar, tuple[str, int, int]]]:
    """The leaves of what travels, with their keys."""
    return [(node, node.args[0]) for node in list(graph.nodes)
            if node.op is LEAF and node.args[0][0] in ("parent", "sum", "root")]


def _moving(rolled: Rolled, variables: Sequence[Iterable[Scalar]]) -> list[set[int]]:
    """For every sweep the entries of what travels that depend on the variables of any kind."""
    out: list[set[int]] = [set() for _ in rolled.sweeps]
    nodes = [list(kind.graph.nodes) for kind in rolled.kinds]
    while True:
        before = sum(map(len, out))
        for kind, own, every in zip(rolled.kinds, variables, nodes, strict=True):
            active = {*own, *(leaf for leaf, (_, k, i) in _received(kind.graph) if k < len(out) and i in out[k])}
            for node in every:
                if node.op is not LEAF and any(type(a) is Scalar and a in active for a in node.args):
                    active.add(node)
            for k, sweep in enumerate(rolled.sweeps):
                if not (sweep.direction == OUTWARD and kind.is_tip):
                    out[k] |= {i for i, x in enumerate(sweep.sent[kind.index]) if type(x) is Scalar and x in active}
        if sum(map(len, out)) == before:
            return out


def _asked(rolled: Rolled, values: Sequence[Sequence[Number]], epilogue: Sequence[Number]) -> list[set[int]]:
    """For every sweep the entries of what travels on which a result of any kind depends."""
    out: list[set[int]] = [set() for _ in rolled.sweeps]
    for key in _behind([x for x in epilogue if type(x) is Scalar], list(rolled.root_graph.nodes)):
        out[key[1]].add(key[2])
    nodes = [list(kind.graph.nodes) for kind in rolled.kinds]
    while True:
        before = sum(map(len, out))
        for kind, own, every in zip(rolled.kinds, values, nodes, strict=True):
            ends = [*own, *(s.sent[kind.index][i] for s, some in zip(rolled.sweeps, out, strict=True) for i in some)]
            for key in _behind(ends, every):
                out[key[1]].add(key[2])
        if sum(map(len, out)) == before:
            return out


def _behind(ends: Iterable[Number], nodes: Sequence[Scalar]) -> list[tuple[str, int, int]]:
    """Keys of what travels that is behind some results."""
    used = {x for x in ends if type(x) is Scalar}
    out = []
    for node in reversed(nodes):
        if node in used:
            if node.op is not LEAF:
                used.update(a for a in node.args if type(a) is Scalar)
            elif node.args[0][0] in ("parent", "sum", "root"):
                out.append(node.args[0])
    return out
