"""Kernels that are straight lines of operations: the whole computation, or that of each entry, is one graph, and
constants are literals."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bellcrank.scalar.graph import LEAF, Scalar, nearest_first, reachable
from bellcrank.target.array_loops import each
from bellcrank.target.calling import Body, LaneStates, finite_array, finite_sum
from bellcrank.target.cut_code import Pieces
from bellcrank.target.operation_code import NOTHING, compute, value_of
from bellcrank.target.program import Builder, Int, Memory, Real

__all__ = ["entry_by_entry", "many_at_once", "order_of", "scratch", "unrolled"]

#: results from which on they pass through scratch memory
_MANY = 64

def scratch(outputs: int, width: int) -> int:
    """Reals per lane that a kernel of batches needs to work in: results that are many are left with their lanes side by
    side first, because storing them lane by lane takes as many instructions as there are lanes."""
    return outputs if width > 1 and outputs >= _MANY else 0


def stores(b: Builder, outputs: Sequence[Any], place: Memory, apart: int = 1) -> dict[Any, Callable[[str], None]]:
    """What puts results of operations where they belong (`apart` entries from each other) as soon as they are known:
    they need not be kept then."""
    at: dict[Any, list[int]] = {}
    for i, out in enumerate(outputs):
        if type(out) is Scalar and out.op is not LEAF:
            at.setdefault(out, []).append(i)

    def store(places: list[int], operand: str) -> None:
        for i in places:
            place[i * apart] = Real(b, operand)

    return {out: partial(store, places) for out, places in at.items()}


def order_of(outputs: Sequence[Any]) -> list[Scalar]:
    """The operations of a graph in the order in which kernels make them."""
    return (nearest_first if len(outputs) >= _MANY else reachable)(outputs)


def unrolled(b: Builder, outputs: Sequence[Any], inputs: Mapping[str, int], pieces: Pieces | None = None) -> Body:
    """The body of a kernel (see `target.calling`); leaves of the graph are keys (name, index) of the inputs. With
    `pieces` of it, those are functions of their own where the target can have such."""

    def body(states: LaneStates) -> Real | None:
        nodes = order_of(outputs)
        if states.checked:
            loaded = {(name, i): x for name, size in inputs.items()
                      for i, x in enumerate(b.row_entries(states.inputs[name], size))}
        else:
            used = {node.args[0] for node in nodes if node.op is LEAF}
            loaded = {(name, i): states.inputs[name][i] for name, size in inputs.items() for i in range(size)
                      if (name, i) in used}
        check = finite_sum(b, loaded.values(), b.constant(0.0)) if states.checked else None
        target = states.target(len(outputs))
        through = states.spread and scratch(len(outputs), b.width)
        place = b.memory("work") if through else target
        if pieces is not None and b.cuts and (through or not states.spread):
            _in_pieces(b, outputs, loaded, pieces, b.memory("work").at(len(outputs) if through else 0), place)
            check = None if check is None else finite_array(b, place, Int(b, str(len(outputs))), check)
        else:
            check = _in_one(b, outputs, nodes, loaded, place, check)
        if through:
            b.unpack(place, target, len(outputs))
        return check

    return body


def _in_one(b: Builder, outputs: Sequence[Any], nodes: Sequence[Scalar], loaded: Mapping[Any, Real], place: Memory,
            check: Real | None) -> Real | None:
    value: dict[Any, str] = {}
    done = stores(b, outputs, place) if len(outputs) >= _MANY else NOTHING
    compute(b, nodes, value, lambda key: loaded[key].operand, done)
    results = [value_of(b, out, value) for out in outputs]
    if not done:
        b.put_row_entries(place, [x.operand for x in results])
    for i, (out, result) in enumerate(zip(outputs, results, strict=True)):
        if done and out not in done:
            place[i] = result
    return None if check is None else finite_sum(b, results, check)


def _in_pieces(b: Builder, outputs: Sequence[Any], loaded: Mapping[Any, Real], pieces: Pieces, between: Memory,
               place: Memory) -> None:
    for i, out in enumerate(outputs):
        if type(out) is not Scalar or out.op is LEAF:
            place[i] = loaded[out.args[0]] if type(out) is Scalar else b.constant(float(out))
    pieces.write(b, loaded.__getitem__, between, place, done=stores(b, outputs, place))


def entry_by_entry(b: Builder, entry: Any, inputs: Mapping[str, int], size: int) -> Body:
    """The body of a kernel whose entries are all the same expression of the inputs' entries, keys (name,)."""

    def body(states: LaneStates) -> Real | None:
        target, count = states.target(size), Int(b, str(size))

        def one(j: Int) -> None:
            value: dict[Any, str] = {}
            compute(b, reachable([entry]), value, lambda key: states.inputs[key[0]][j].operand)
            target[j] = value_of(b, entry, value)

        each(b, count, one)
        if not states.checked:
            return None
        check = finite_array(b, target, count, b.constant(0.0))
        for name, length in inputs.items():
            check = finite_array(b, states.inputs[name], Int(b, str(length)), check)
        return check

    return body


def many_at_once(b: Builder, outputs: Sequence[Any], many: Sequence[str], count: int) -> Body:
    """The body of a kernel for so many values of the inputs `many`, in lanes that are free."""

    def body(states: LaneStates) -> Real | None:
        target, value = states.target(len(outputs)), dict[Any, str]()
        with b.side_by_side(count) as lanes:
            def leaf(key: tuple[str, int]) -> str:
                name, i = key
                memory = states.inputs[name]
                return (memory[i * lanes] if name in many else memory.everywhere(i)).operand

            done = stores(b, outputs, target, lanes)
            compute(b, order_of(outputs), value, leaf, done)
            for i, out in enumerate(outputs):
                if out not in done:
                    target[i * lanes] = value_of(b, out, value)
        return None

    return body
