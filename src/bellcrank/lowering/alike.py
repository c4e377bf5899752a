"""Machines of two halves that are alike, such as robots with two legs: which links correspond, and the same functions
with the numbers in which the halves differ as leaves of the graph.

Nothing depends on the halves being the same: numbers may differ, and where the structure does, what is computed from
the graph is as right as ever, only longer (see `target.cuda.half_code`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from bellcrank.lowering.choose import together, trace
from bellcrank.lowering.function import Function, input_sizes
from bellcrank.scalar.graph import Graph, Number, Scalar
from bellcrank.schedule.sweeps import flatten, rebuild
from bellcrank.target.kernel_source import Halves
from bellcrank.topology.tree import Closure, LoopJoint, Tree

__all__ = ["AlikeLinks", "alike_links", "halves_of"]

#: inputs with a number for every speed
_PER_SPEED = ("u", "tau", "udot", "p", "dq", "du", "scale")


class AlikeLinks(NamedTuple):
    """Links and closures of the first half, with those of the second that correspond."""

    links: tuple[tuple[int, int], ...]
    closures: tuple[tuple[int, int], ...]


def halves_of(tree: Tree, functions: Sequence[Function], wrenches: bool) -> Halves | None:
    """Functions of a machine of two halves, traced together; None if it has none."""
    alike = alike_links(tree)
    if alike is None:
        return None
    numbers = _NumbersOfHalves()
    other = _with_leaves(tree, alike, numbers)
    traced = [trace(other, f, wrenches, "unrolled") for f in functions]
    graphs = [t for t in traced if isinstance(t, list)]
    first = len(tree.parameters)
    leaves = {("parameters", first + i): x for i, x in enumerate(numbers.values)}
    swapped = {("parameters", first + i): ("parameters", first + i + 1) for i in range(0, len(numbers.values), 2)}
    return Halves(graphs[0] if len(graphs) == 1 else together(graphs), swapped | _inputs(tree, alike), leaves)


# -- which links ------------------------------------------------------------------------------------
def alike_links(tree: Tree) -> AlikeLinks | None:
    """Branches of equal structure that hang from the same link, in pairs; of the links that have such, the one with the
    largest."""
    children = tree.children()
    shape: dict[int, Any] = {}
    for link in range(tree.n, 0, -1):
        shape[link] = (type(tree.joints[link]).__name__, int(tree.placement_kind[link]),
                       tuple(sorted((shape[c] for c in children[link]), key=repr)))
    pairs: list[tuple[int, int]] = []
    for link in range(tree.n + 1):
        found = [p for some in _by_shape(children[link], shape).values()
                 for first, second in zip(some[::2], some[1::2], strict=False)
                 for p in _corresponding(first, second, children, shape)]
        pairs = max(pairs, found, key=len)
    if 4 * len(pairs) < tree.n:
        return None
    place = dict(pairs)
    ends = {(c.first, c.second, type(c.kind)): i for i, c in enumerate(tree.closures)}
    closures = ((i, ends.get((place.get(c.first, c.first), place.get(c.second, c.second), type(c.kind)), i))
                for i, c in enumerate(tree.closures))
    return AlikeLinks(tuple(pairs), tuple((i, j) for i, j in closures if i != j))


def _by_shape(links: Sequence[int], shape: dict[int, Any]) -> dict[Any, list[int]]:
    out: dict[Any, list[int]] = defaultdict(list)
    for link in links:
        out[shape[link]].append(link)
    return out


def _corresponding(first: int, second: int, children: list[list[int]], shape: dict[int, Any]
                   ) -> list[tuple[int, int]]:
    """All links of two branches of the same shape."""
    out = [(first, second)]
    mine, others = (_by_shape(children[link], shape) for link in (first, second))
    for key, some in mine.items():
        for a, b in zip(some, others[key], strict=True):
            out += _corresponding(a, b, children, shape)
    return out


# -- numbers as leaves ------------------------------------------------------------------------------
class _NumbersOfHalves:
    """Numbers in which the halves differ: parameters with values, those of both halves side by side."""

    def __init__(self) -> None:
        self.graph, self.values = Graph(), list[float]()

    @property
    def names(self) -> list[str]:
        return [_title(i) for i in range(len(self.values))]

    def pairs(self, first: Sequence[Any], second: Sequence[Any]) -> tuple[tuple[Number, ...], tuple[Number, ...]]:
        """Both with leaves where they differ."""
        made = [self._pair(x, y) for x, y in zip(first, second, strict=True)]
        return tuple(x for x, _ in made), tuple(y for _, y in made)

    def _pair(self, x: Any, y: Any) -> tuple[Any, Any]:
        if any(type(v) is Scalar or callable(v) for v in (x, y)) or x == y:
            return x, y
        self.values += [float(x), float(y)]
        n = len(self.values)
        return self.graph.leaf(("parameter", _title(n - 2))), self.graph.leaf(("parameter", _title(n - 1)))


def _title(i: int) -> str:
    return f"number of a half {i}"


def _with_leaves(tree: Tree, alike: AlikeLinks, numbers: _NumbersOfHalves) -> Tree:
    symbolic, closures = dict(tree.symbolic), list(tree.closures)
    for a, b in alike.links:
        mine, others = tree.numbers(a), tree.numbers(b)
        first, second = list(flatten(mine)), list(flatten(others))
        if len(first) == len(second) and a not in tree.symbolic and b not in tree.symbolic:
            x, y = numbers.pairs(first, second)
            symbolic[a], symbolic[b] = rebuild(mine, iter(x)), rebuild(others, iter(y))
    for i, j in alike.closures:
        closures[i], closures[j] = _closures_with_leaves(closures[i], closures[j], numbers)
    more = dict(zip(numbers.names, numbers.values, strict=True))
    known = {c.name: c for c in closures}
    joints = tuple(LoopJoint(known.get(own.name, own.closure), *own[1:]) for own in tree.loop_joints)
    return replace(tree, symbolic=symbolic, closures=tuple(closures), loop_joints=joints,
                   parameters={**tree.parameters, **more})


def _closures_with_leaves(first: Closure, second: Closure, numbers: _NumbersOfHalves) -> tuple[Closure, Closure]:
    changes: tuple[dict[str, Any], dict[str, Any]] = {}, {}
    for side, (mine, others) in zip(("first", "second"), zip(first.turns, second.turns, strict=True), strict=True):
        kinds = [(f"{side}_shift", getattr(first, f"{side}_shift"), getattr(second, f"{side}_shift"))]
        if mine != others:
            kinds.append((f"{side}_axes", mine, others))
        for name, x, y in kinds:
            changes[0][name], changes[1][name] = numbers.pairs(x, y)
    return first.with_numbers(**changes[0]), second.with_numbers(**changes[1])


def _inputs(tree: Tree, alike: AlikeLinks) -> dict[tuple[str, int], tuple[str, int]]:
    """Entries of inputs that correspond."""
    sizes, out = input_sizes(tree), dict[tuple[str, int], tuple[str, int]]()
    for a, b in alike.links:
        joint = tree.joints[a]
        assert joint is not None
        starts = [("q", tree.q_start, joint.nq), *((name, tree.u_start, joint.nu) for name in _PER_SPEED)]
        for name, start, count in starts:
            assert name in sizes
            out |= {(name, int(start[a]) + i): (name, int(start[b]) + i) for i in range(count)}
        out |= {("load", 6 * (a - 1) + i): ("load", 6 * (b - 1) + i) for i in range(6)}
    joints = {own.name: own for own in tree.loop_joints}
    for i, j in alike.closures:
        mine, other = (joints.get(tree.closures[k].name) for k in (i, j))
        if mine is not None and other is not None:
            kind = mine.closure.kind
            out |= {("q", mine.q_start + k): ("q", other.q_start + k) for k in range(kind.nq)}
            out |= {(name, mine.u_start + k): (name, other.u_start + k) for name in _PER_SPEED for k in range(kind.nu)}
    return out
