"""Products of derivatives with vectors, on rolled sweeps: variables of a kind, and columns of the table for them.

Coordinates change in the tangent space, dq = Q(q) times a number for every speed. Of what each item has its own part of
(coordinates, speeds, forces, wrenches) the direction lies in inputs "along0", "along1" and so on, in the order of the
variables, and the derivatives in columns "by_q", "by_u" and so on; parameters and time are shared, and all items add to
them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bellcrank.lowering.flexible_link import NodeLink
from bellcrank.lowering.function import Function, Product, part_starts
from bellcrank.lowering.link import Link
from bellcrank.scalar.graph import LEAF, Graph, Number, Scalar, is_zero
from bellcrank.schedule.rolled import Kind
from bellcrank.schedule.rolled_plan import Written
from bellcrank.schedule.rolled_products import TracedSweeps, Variables, backward, closed_backward, forward
from bellcrank.schedule.sweeps import Field
from bellcrank.topology.tree import Tree

__all__ = ["PartColumn", "differentiated", "product_columns"]

#: inputs that all items share
SHARED_INPUTS = ("t", "parameters")


class PartColumn(NamedTuple):
    """A column of the table that begins where another does, or so many entries later."""

    name: str
    like: str  #: an input, or "result"
    shift: int


def product_columns(tree: Tree, product: Product) -> list[PartColumn]:
    """The columns of a product, besides those of its inputs."""
    size = product.function.size(tree)
    if not product.backward:
        return [PartColumn("rate", "result", size)]
    out = [PartColumn("weights", "result", 0)]
    out += [PartColumn(f"by_{x}", "wrench" if x == "wrench" else "u", start)
            for x, start in zip(product.by, _offsets(tree, product), strict=True) if x not in SHARED_INPUTS]
    if product.closing is not None:
        end = size + sum(product.widths)
        out += [PartColumn("closed_q", "u", end), PartColumn("closed_u", "u", end + tree.nu)]
    return out


def differentiated(tree: Tree, product: Product, traced: TracedSweeps,
                   members: Callable[[Kind], Sequence[tuple[str, Link]]], adds: bool, closing: Field = None
                   ) -> TracedSweeps:
    """The sweeps of a product from those of its function. `members`: links of a kind, with what is added to names of
    inputs to tell them apart; `adds`: whether several items read the same entries; `closing`: what the function that
    keeps the machine closed has made, traced before."""
    offsets = _offsets(tree, product)

    def of(kind: Kind | None) -> Variables:
        graph = traced.sweeps.root_graph if kind is None else kind.graph
        return _Sought(product.by, offsets, graph, [] if kind is None else members(kind), adds).variables()

    if product.closing is not None:
        return closed_backward(traced, closing, of)
    return (backward if product.backward else forward)(traced, of)


def local_inputs(function: Function, wrenches: bool) -> list[str]:
    """The inputs of which every link has its own part."""
    shared: set[str] = set()
    if function.product is not None:
        shared = {"weights", *(f"along{i}" for i, x in enumerate(function.product.by) if x in SHARED_INPUTS)}
    return [x for x in (*function.inputs, *(("wrench",) if wrenches else ())) if x not in shared]


def name_of_part(function: Function, name: str) -> str:
    """The input whose parts begin where those of an input of this name do: directions go with speeds, or wrenches."""
    by = function.product.by if function.product is not None else ()
    return "wrench" if "wrench" in by and name == f"along{by.index('wrench')}" else name


def part_columns(tree: Tree, columns: Iterable[PartColumn], results: Mapping[str, npt.NDArray[np.int64]]
                 ) -> Iterator[tuple[str, npt.NDArray[np.int64]]]:
    """Names and starts of columns, by link: of all results, "weights@result" and so on, and of parts of inputs."""
    for name, like, shift in columns:
        if like == "result":
            yield from ((f"{name}@{result}", start + shift) for result, start in results.items())
        else:
            yield name, part_starts(tree, like) + shift


def _offsets(tree: Tree, product: Product) -> list[int]:
    """Where the derivatives by each variable begin, after the function's own entries."""
    out, at = [], product.function.size(tree)
    for n in product.widths:
        out.append(at)
        at += n
    return out


class _Sought:
    """The variables in one graph."""

    def __init__(self, by: Sequence[str], offsets: Sequence[int], graph: Graph,
                 members: Sequence[tuple[str, Link]], adds: bool) -> None:
        self.by, self.offsets, self.graph, self.members, self.adds = by, offsets, graph, members, adds

    def variables(self) -> Variables:
        rates: dict[Scalar, Number] = {}
        for node in list(self.graph.nodes):
            kind, name, j = node.args[0] if node.op is LEAF and len(node.args[0]) == 3 else ("", "", 0)
            if kind not in ("in", "global"):
                continue
            own, at, rest = name.partition("@")
            if own in self.by and own != "q":
                rates[node] = self.graph.leaf((kind, f"along{self.by.index(own)}{at}{rest}", j))
        for suffix, link in self._frames() if "q" in self.by else ():
            way = [self.graph.leaf(("in", f"along{self.by.index('q')}{suffix}", v)) for v in range(link.joint.nu)]
            for j, rate in enumerate(self._moved(link, way)):
                if not is_zero(rate):
                    rates[self.graph.leaf(("in", f"q{suffix}", j))] = rate
        return Variables(rates, self._places)

    def _frames(self) -> list[tuple[str, Link]]:
        """The links whose parts of the inputs the members read: of nodes of flexible bodies, those that carry them."""
        return [(suffix, link.carrier if isinstance(link, NodeLink) else link) for suffix, link in self.members]

    def _moved(self, link: Link, way: Sequence[Number]) -> list[Number]:
        """Rates of a joint's coordinates; those that are prescribed do not move."""
        free = [0.0 if driven else x for x, driven in zip(way, link.mask, strict=True)]
        return list(link.joint.rates(link.q, free))

    def _places(self, found: Mapping[Scalar, Number], columns: Mapping[str, str] | None) -> Iterator[Written]:
        for i, x in enumerate(self.by):
            if x in SHARED_INPUTS:
                for leaf, value in found.items():
                    if leaf.args[0][:2] == ("global", x):
                        yield Written("", self.offsets[i] + leaf.args[0][2], value, True)
                continue
            for suffix, link in self.members if x == "wrench" else self._frames():
                for j, value in enumerate(self._derivatives(x, suffix, link, found)):
                    if not is_zero(value):
                        yield Written(f"{(columns or {}).get(x, f'by_{x}')}{suffix}", j, value, self.adds)

    def _derivatives(self, x: str, suffix: str, link: Link, found: Mapping[Scalar, Number]) -> list[Number]:
        nu, nq = link.joint.nu, link.joint.nq
        count = nq if x == "q" else nu if x != "wrench" else 6 * len(link.numbers.origins) if link.with_wrenches else 0
        own = [found.get(self.graph.leaf(("in", f"{x}{suffix}", j)), 0.0) for j in range(count)]
        if x != "q":
            return own
        out = []
        for v in range(nu):
            total: Number = 0.0
            for rate, weight in zip(self._moved(link, [1.0 if w == v else 0.0 for w in range(nu)]), own, strict=True):
                total = total + rate * weight
            out.append(total)
        return out
