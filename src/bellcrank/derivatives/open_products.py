"""Products of derivatives with vectors of one function, every coordinate and speed by itself: one graph for small
machines, sweeps for large ones (`lowering.product_columns`). What is closed, or made of several functions, is put
together from these."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bellcrank.derivatives.derived import Space, product_backward, product_forward
from bellcrank.derivatives.directions import Variable
from bellcrank.derivatives.quantities import plain
from bellcrank.lowering.function import Function, Product, input_sizes
from bellcrank.topology.tree import Tree

__all__ = ["open_product"]


def open_product(function: Function, by: Sequence[str], backward: bool, tree: Tree) -> Function:
    """The entries of a function, then their rates along one direction, given as inputs "along0" and so on, one for each
    input of `by`; or if `backward` the derivatives by each of their sum with the input "weights". Cost: a few times
    that of the function."""
    widths = tuple(tree.nu if x == "q" else input_sizes(tree)[x] for x in by)
    space = Space(tuple(Variable(x, x, tuple(range(n))) for x, n in zip(by, widths, strict=True)), False, {})
    name = f"{function.name} {'backward' if backward else 'forward'} by {', '.join(by)}"
    made = (product_backward if backward else product_forward)(name, plain(function, tree), space, tree)
    return replace(made, product=Product(function, tuple(by), widths, backward))
