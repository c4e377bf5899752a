"""Products of derivatives with vectors of one function, every coordinate and speed by itself: one graph for small
machines, sweeps for large ones (`lowering.product_columns`). What is closed, or made of several functions, is put
together from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bellcrank.derivatives.derived import Space, product_backward, product_forward
from bellcrank.derivatives.directions import Variable, directions
from bellcrank.derivatives.quantities import plain
from bellcrank.lowering.function import Function, Product, Tracer, input_sizes
from bellcrank.scalar.derivative import adjoints, combined
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.topology.tree import Tree

__all__ = ["closed_product", "open_product", "product_widths"]


def open_product(function: Function, by: Sequence[str], backward: bool, tree: Tree) -> Function:
    """The entries of a function, then their rates along one direction, given as inputs "along0" and so on, one for each
    input of `by`; or if `backward` the derivatives by each of their sum with the input "weights". Cost: a few times
    that of the function."""
    widths = product_widths(function, by, tree)
    space = _space(by, widths)
    name = f"{function.name} {'backward' if backward else 'forward'} by {', '.join(by)}"
    made = (product_backward if backward else product_forward)(name, plain(function, tree), space, tree)
    product = Product(function, tuple(by), widths, backward) if function.made is None else None
    return replace(made, sizes=(*function.sizes, *made.sizes), product=product)


def closed_product(function: Function, closing: Function, by: Sequence[str], tree: Tree) -> Function:
    """The same backward, and after it the derivatives along the closed machine by q and by u, one entry for every speed
    and zero at dependent ones. `closing`: all speeds S(q, v) from the independent ones v. With N its derivative by v,
    and q̄, ū the derivatives by q and u, every one by itself:

        q̄ += S_qᵀ ū,    then Nᵀ q̄ and Nᵀ ū    (1)

    q̄ and what is by parameters and time contain (1), too. Cost: little more than that of the product.
    """
    widths = product_widths(function, by, tree)
    space, size = _space(by, widths), function.size(tree)

    def made(tracer: Tracer) -> list[Number]:
        values, speeds = tracer(function), tracer(closing)
        seeds = directions(tracer, space.by, {}, False, ())
        weights: list[Number] = [tracer.graph.leaf(("weights", i)) for i in range(size)]
        total = combined(adjoints(values, weights, seeds), seeds)

        def pulled(x: str) -> dict[Any, Number]:
            return combined(adjoints(speeds, [total.get((x, v), 0.0) for v in range(tree.nu)], seeds), seeds)

        first = pulled("u")
        for d, more in first.items():
            if d[0] != "u":
                total[d] = total[d] + more if d in total else more
        second = pulled("q")
        rows = [*(total.get((x, j), 0.0) for x, n in zip(by, widths, strict=True) for j in range(n)),
                *(part.get(("u", v), 0.0) for part in (second, first) for v in range(tree.nu))]
        return [x if type(x) is Scalar else float(x) for x in (*values, *rows)]

    name = f"{function.name} backward along the loops by {', '.join(by)}"
    return Function(name, function.text, (*function.inputs, "weights"), "totals", size + sum(widths) + 2 * tree.nu,
                    made=made, sizes=(("weights", size),),
                    product=Product(function, tuple(by), widths, True, closing))


def product_widths(function: Function, by: Sequence[str], tree: Tree) -> tuple[int, ...]:
    """The number of directions of each input."""
    sizes = {**input_sizes(tree), **dict(function.sizes), "q": tree.nu}
    return tuple(sizes[x] for x in by)


def _space(by: Sequence[str], widths: Sequence[int]) -> Space:
    return Space(tuple(Variable(x, x, tuple(range(n))) for x, n in zip(by, widths, strict=True)), False, {})
