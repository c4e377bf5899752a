"""Two threads for a machine of two halves that are alike: each computes its own half, by the same text.

The graph of a function is looked through once: an operation of the first half and the one of the second half that does
the same with what corresponds are one statement, which each thread executes on its own values; what belongs to neither
is computed by both, and where it takes values of a half these are passed on between the two threads. Whatever finds no
partner is such a thing, too: the result is right in any case, and half as long if the halves are alike.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import ADD, LEAF, MUL, Graph, Number, Scalar, reachable
from bellcrank.target.c.c_text import literal
from bellcrank.target.calling import Body, LaneStates, finite_sum
from bellcrank.target.cuda.cuda_printer import HALF_WARP, CudaPrinter
from bellcrank.target.kernel_source import GraphKernel, Halves, KernelSource
from bellcrank.target.operation_code import compute, value_of
from bellcrank.target.program import Real

__all__ = ["HalfProgram", "half_numbers", "half_program", "own_state"]

#: the part of all operations that a thread may be left with, for two to be worth their while
_WORTH = 0.75

Key = tuple[str, int]


@dataclass(frozen=True)
class HalfProgram:
    """What one thread does. Leaves of its operations are ("same", name, i): an entry of an input; ("own", name, i, j):
    entry i for the first thread, j for the second; ("number", k); ("of", half, operation): a value of that thread."""

    nodes: Sequence[Scalar]  #: in order
    #: entries of the result that the value of the first thread, of the second, or of both goes to
    outputs: Sequence[tuple[int | None, int | None, Number]]
    numbers: Sequence[tuple[float, float]]  #: in which the halves differ
    size: int

    def body(self, b: CudaPrinter, whole: bool) -> Body:
        """The body of a kernel (see `target.calling`); `whole`: each thread has a result of its own, and wants all."""

        def body(states: LaneStates) -> Real | None:
            value: dict[Any, str] = {}

            def leaf(key: tuple[Any, ...]) -> str:
                kind, *rest = key
                if kind == "of":
                    return b.of_half(rest[0], value[rest[1]])
                if kind == "number":
                    return b.number_of_half(self.numbers[rest[0]])
                place = states.inputs[rest[0]].place
                return b.load(place, str(rest[1]), False) if kind == "same" else b.own_load(place, rest[1], rest[2])

            compute(b, self.nodes, value, leaf)
            self._store(b, states.target(self.size).place, value, whole)
            if not states.checked:
                return None
            read = [Real(b, value[n]) for n in self.nodes if n.op is LEAF and n.args[0][0] in ("same", "own")]
            return finite_sum(b, [*read, *(value_of(b, out, value) for *_, out in self.outputs)], b.constant(0.0))

        return body

    def _store(self, b: CudaPrinter, place: Any, value: dict[Any, str], whole: bool) -> None:
        for first, second, out in self.outputs:
            made = value_of(b, out, value).operand
            if first is not None and first == second:
                b.store(place, str(first), made, False)
            elif first is not None and second is not None and not whole:
                b.own_store(place, first, second, made)
            else:
                for half, entry in enumerate((first, second)):
                    if entry is not None:
                        b.store(place, str(entry), b.of_half(half, made), False)


def half_program(source: KernelSource) -> HalfProgram | None:
    """The program of each thread, or None if the machine has no halves or it would not be much shorter than the whole.
    Cost: that of tracing the function."""
    halves = source.halves() if isinstance(source, GraphKernel) else None
    made = None if halves is None else _Halving(halves)
    return made.program() if made is not None and made.worth() else None


def own_state(numbers: Mapping[tuple[float, float], int], real: str) -> list[str]:
    """Statements that find the state of a thread, which of its two threads it is, and the numbers of that half."""
    out = [f"    const long long own_state = thread / {2 * HALF_WARP} * {HALF_WARP} + thread % {HALF_WARP};",
           f"    const int half = threadIdx.x / {HALF_WARP} % 2;",
           f"    const unsigned both = 0x10001u << threadIdx.x % {HALF_WARP};"]
    count = 2 * len(numbers)
    return out if not numbers else [
        *out, "#ifdef __CUDA_ARCH__", f"    __shared__ {real} half_numbers[{count}];",
        f"    for (int i = threadIdx.x; i < {count}; i += blockDim.x) half_numbers[i] = numbers_of_halves[i];",
        "    __syncthreads();", f"    const {real} *const own_numbers = half_numbers + half;", "#else",
        f"    const {real} *const own_numbers = numbers_of_halves + half;", "#endif"]


def half_numbers(numbers: Mapping[tuple[float, float], int], real: str) -> list[str]:
    """The table of numbers in which the halves differ."""
    listed = [literal(x, real) for pair in numbers for x in pair]
    return [f"static __device__ const {real} numbers_of_halves[{len(listed)}] = {{\n    {', '.join(listed)}}};"
            ] if listed else []


class _Halving:
    def __init__(self, halves: Halves) -> None:
        self.outputs, self.numbers = halves.outputs, halves.numbers
        self.nodes = reachable(halves.outputs)
        #: operations on numbers alone, and their values
        self.known: dict[Scalar, float] = {}
        self.image: dict[Scalar, Scalar] = {}  #: of operations of the first half
        self.origin: dict[Scalar, Scalar] = {}  #: of those of the second
        self._evaluate()
        self._match(dict(halves.swapped))
        #: operations of the threads by those of the whole
        self.own: dict[Scalar, Scalar] = {}
        self.graph, self.pairs = Graph(), dict[tuple[float, float], int]()

    def _evaluate(self) -> None:
        fixed: set[Scalar] = set()
        for n in self.nodes:
            if n.args[0] in self.numbers if n.op is LEAF else all(a in fixed for a in n.args if type(a) is Scalar):
                fixed.add(n)
        listed = [n for n in self.nodes if n in fixed]
        self.known = dict(zip(listed, (float(x) for x in evaluate(listed, self.numbers)), strict=True))

    # -- partners -----------------------------------------------------------------------------------
    def _match(self, swapped: Mapping[Key, Key]) -> None:
        """Find the partners, inputs first."""
        leaves = {n.args[0]: n for n in self.nodes if n.op is LEAF}
        by_key: dict[Any, list[Scalar]] = defaultdict(list)
        for n in self.nodes:
            if n.op is not LEAF:
                by_key[_key(n.op, map(_name, n.args))].append(n)
        for n in self.nodes:
            if n.op is LEAF:
                other = leaves.get(swapped.get(n.args[0], ("", 0)))
                if other is not None:
                    self._pair(n, other)
            elif n not in self.origin and any(a in self.image for a in n.args if type(a) is Scalar):
                wanted = _key(n.op, (_name(self.image.get(a, a) if type(a) is Scalar else a) for a in n.args))
                some = [m for m in by_key.get(wanted, ()) if m is not n and m not in self.origin
                        and m not in self.image]
                if some:
                    self._pair(n, min(some, key=lambda m: (_apart(n, m), m.index)))

    def _pair(self, first: Scalar, second: Scalar) -> None:
        self.image[first], self.origin[second] = second, first

    def worth(self) -> bool:
        """Whether a thread has much less to do than the whole."""
        count = len(self.nodes) - len(self.known)
        return count - sum(n not in self.known for n in self.origin) < _WORTH * count

    # -- the program of a thread --------------------------------------------------------------------
    def program(self) -> HalfProgram:
        """The operations in their order, each with what it needs before it."""
        for node in self.nodes:
            if node not in self.origin and node not in self.known:
                self._make(node)
        return HalfProgram(self.graph.nodes, self._results(), list(self.pairs), len(self.outputs))

    def _make(self, last: Scalar) -> None:
        stack = [last]
        while stack:
            node = stack[-1]
            waiting = [] if node.op is LEAF else [
                x for x in (self.origin.get(a, a) for a in node.args if type(a) is Scalar and a not in self.known)
                if x not in self.own]
            if waiting:
                stack.extend(waiting)
                continue
            stack.pop()
            if node not in self.own:
                self.own[node] = self._made(node)

    def _made(self, node: Scalar) -> Scalar:
        other = self.image.get(node)
        if node.op is LEAF:
            name, entry = node.args[0]
            return self.graph.leaf(("same", name, entry) if other is None else ("own", name, entry, other.args[0][1]))
        if other is None:
            return self.graph.node(node.op, *(self.shared(a) for a in node.args))
        return self.graph.node(node.op, *(self._argument(a, b) for a, b in self._aligned(node, other)))

    def shared(self, x: Any) -> Any:
        """An argument of what both compute."""
        if type(x) is not Scalar:
            return x
        if x in self.known:
            return self.known[x]
        if x in self.image:
            return self.graph.leaf(("of", 0, self.own[x]))
        return self.graph.leaf(("of", 1, self.own[self.origin[x]])) if x in self.origin else self.own[x]

    def _argument(self, first: Any, second: Any) -> Any:
        """An argument of what each computes of its own."""
        if type(first) is Scalar and first not in self.known:
            return self.own[first] if first in self.image else self.shared(first)
        if type(first) is not Scalar and type(first) is not float:
            return first  # a table
        a, b = (float(self.known[x] if type(x) is Scalar else x) for x in (first, second))
        if a == b or (a != a and b != b):
            return a
        return self.graph.leaf(("number", self.pairs.setdefault((a, b), len(self.pairs))))

    def _aligned(self, node: Scalar, other: Scalar) -> list[tuple[Any, Any]]:
        """Arguments that correspond: sums and products may have theirs the other way round."""
        a, b = list(node.args), list(other.args)
        if node.op in (ADD, MUL) and not all(self._correspond(x, y) for x, y in zip(a, b, strict=True)):
            b.reverse()
        return list(zip(a, b, strict=True))

    def _correspond(self, a: Any, b: Any) -> bool:
        return (self.image.get(a, a) is b) if type(a) is Scalar else type(b) is not Scalar

    def _results(self) -> list[tuple[int | None, int | None, Number]]:
        places: dict[Scalar, list[int]] = defaultdict(list)
        for i, out in enumerate(self.outputs):
            if type(out) is Scalar and out in self.origin and out not in self.known:
                places[out].append(i)
        results: list[tuple[int | None, int | None, Number]] = []
        for i, out in enumerate(self.outputs):
            if type(out) is not Scalar or out in self.known:
                x = float(self.known[out] if type(out) is Scalar else out)
                results.append((i, i, x))
            elif out in self.image:
                others = places[self.image[out]]
                results.append((i, others.pop(0) if others else None, self.own[out]))
            elif out not in self.origin:
                results.append((i, i, self.own[out]))
        results += [(None, i, self.own[self.origin[out]]) for out, left in places.items() for i in left]
        return results


def _name(argument: Any) -> Any:
    """What tells arguments apart; numbers are alike."""
    return argument.index if type(argument) is Scalar else -1 if type(argument) is float else id(argument)


def _key(op: str, arguments: Iterable[Any]) -> Any:
    return op, tuple(sorted(arguments) if op in (ADD, MUL) else arguments)


def _apart(n: Scalar, m: Scalar) -> float:
    """How different the numbers of two operations are, but for their signs."""
    return sum(abs(abs(x) - abs(y)) for x, y in zip(n.args, m.args, strict=True)
               if type(x) is float and type(y) is float)
