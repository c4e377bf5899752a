"""Traced scalars: normal forms, counts, fingerprints, evaluation, compiled expressions, jets."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bellcrank.math
import children
from assembly_text import unrolled_text
from bellcrank.scalar import functions as fn
from bellcrank.scalar.count import OperationCount, count, count_nodes
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, Scalar, digest, reachable
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.target.llvm import jit
from bellcrank.target.llvm.kernel import Kernel
from properties import leave

EPS = float(np.finfo(float).eps)
ROUND = EPS / 2  # the largest relative error of one operation
Unary = Callable[[Any], Any]
Binary = Callable[[Any, Any], Any]


def leaves(n: int, graph: Graph | None = None) -> list[Scalar]:
    graph = graph or Graph()
    return [graph.leaf(("x", i)) for i in range(n)]


def kernel_of(outputs: Sequence[Any], inputs: dict[str, int], width: int) -> Kernel:
    return Kernel(jit.load(unrolled_text(outputs, inputs, width)), inputs, len(outputs), width)


def run_kernel(kernel: Kernel, states: np.ndarray) -> tuple[np.ndarray, bool]:
    """Results of shape (n, outputs) for one packed input, and whether all is finite."""
    out = np.full((len(states), kernel.out_size), 777.0)
    return out, kernel.run([np.ascontiguousarray(states)], kernel.packed_strides, out, 0, len(states))


# -- what vanishes while an expression is built -----------------------------------------------
FOLDS: dict[str, tuple[Binary, Binary]] = {
    "x + 0": (lambda x, y: x + 0.0, lambda x, y: x),
    "0 + x": (lambda x, y: 0 + x, lambda x, y: x),
    "x + -0": (lambda x, y: x + -0.0, lambda x, y: x),
    "x - 0": (lambda x, y: x - 0, lambda x, y: x),
    "0 - x": (lambda x, y: 0.0 - x, lambda x, y: -x),
    "x - x": (lambda x, y: x - x, lambda x, y: 0.0),
    "x * 0": (lambda x, y: x * 0.0, lambda x, y: 0.0),
    "0 * x": (lambda x, y: 0 * x, lambda x, y: 0.0),
    "x * 1": (lambda x, y: x * 1, lambda x, y: x),
    "1 * x": (lambda x, y: 1.0 * x, lambda x, y: x),
    "x * -1": (lambda x, y: x * -1.0, lambda x, y: -x),
    "-1 * x": (lambda x, y: -1 * x, lambda x, y: -x),
    "0 - (0 - x)": (lambda x, y: 0 - (0 - x), lambda x, y: x),
    "x / x": (lambda x, y: x / x, lambda x, y: 1.0),
    "0 / x": (lambda x, y: 0.0 / x, lambda x, y: 0.0),
    "x / 1": (lambda x, y: x / 1.0, lambda x, y: x),
    "x / -1": (lambda x, y: x / -1, lambda x, y: -x),
    "x / 4": (lambda x, y: x / 4.0, lambda x, y: 0.25 * x),
    "2 (3 x)": (lambda x, y: 2.0 * (3.0 * x), lambda x, y: x * 6.0),
    "(2 x) / 4": (lambda x, y: (2.0 * x) / 4.0, lambda x, y: 0.5 * x),
    "(2 x) / 2": (lambda x, y: (2.0 * x) / 2.0, lambda x, y: x),
    "-(2 x)": (lambda x, y: -(2.0 * x), lambda x, y: -2.0 * x),
    "3 (-x)": (lambda x, y: 3.0 * -x, lambda x, y: x * -3.0),
    "x * -y": (lambda x, y: x * -y, lambda x, y: -(x * y)),
    "-x * y": (lambda x, y: -x * y, lambda x, y: -(x * y)),
    "-x * -y": (lambda x, y: -x * -y, lambda x, y: x * y),
    "x / -y": (lambda x, y: x / -y, lambda x, y: -(x / y)),
    "-x / y": (lambda x, y: -x / y, lambda x, y: -(x / y)),
    "-x / -y": (lambda x, y: -x / -y, lambda x, y: x / y),
    "3 / -x": (lambda x, y: 3.0 / -x, lambda x, y: -(3.0 / x)),
    "x + -y": (lambda x, y: x + -y, lambda x, y: x - y),
    "-x + y": (lambda x, y: -x + y, lambda x, y: y - x),
    "-x + -y": (lambda x, y: -x + -y, lambda x, y: -(x + y)),
    "x - -y": (lambda x, y: x - -y, lambda x, y: x + y),
    "-x - y": (lambda x, y: -x - y, lambda x, y: -(x + y)),
    "-x - -y": (lambda x, y: -x - -y, lambda x, y: y - x),
    "-(x - y)": (lambda x, y: -(x - y), lambda x, y: y - x),
    "5 - -x": (lambda x, y: 5.0 - -x, lambda x, y: x + 5.0),
    "x - 5": (lambda x, y: x - 5.0, lambda x, y: x + -5.0),
    "x + y": (lambda x, y: x + y, lambda x, y: y + x),
    "x y": (lambda x, y: x * y, lambda x, y: y * x),
    "3 + x": (lambda x, y: 3.0 + x, lambda x, y: x + 3.0),
    "3 x": (lambda x, y: 3.0 * x, lambda x, y: x * 3.0),
    "x**0": (lambda x, y: x**0, lambda x, y: 1.0),
    "x**1": (lambda x, y: x**1, lambda x, y: x),
    "x**2": (lambda x, y: x**2, lambda x, y: x * x),
    "x**3": (lambda x, y: x**3, lambda x, y: x * x * x),
    "x**4": (lambda x, y: x**4, lambda x, y: (x * x) * (x * x)),
    "x**-1": (lambda x, y: x**-1, lambda x, y: 1.0 / x),
    "x**-2": (lambda x, y: x**-2, lambda x, y: 1.0 / (x * x)),
    "x**0.5": (lambda x, y: x**0.5, lambda x, y: fn.sqrt(x)),
}


@pytest.mark.parametrize("name", FOLDS)
def test_normal_form(name: str) -> None:
    x, y = leaves(2)
    left, right = FOLDS[name]
    a, b = left(x, y), right(x, y)
    assert a is b or (type(a) is float and a == b)


@pytest.mark.parametrize("name", FOLDS)
def test_normal_form_keeps_the_value(name: str) -> None:
    left, _ = FOLDS[name]
    for values in ((0.7, -1.3), (2.5, 0.4)):
        traced = evaluate([left(*leaves(2))], {("x", 0): values[0], ("x", 1): values[1]})[0]
        assert traced == pytest.approx(left(*values), rel=4 * EPS, abs=0.0)


def test_signs_make_no_nodes() -> None:
    graph = Graph()
    a, b = leaves(2, graph)
    opposite = -(a * b)
    size = len(graph.nodes)
    assert -a * b is opposite and a * -b is opposite and -(-a * -b) is opposite
    assert len(graph.nodes) == size + 2  # -a and -b themselves


def test_equal_subexpressions_meet() -> None:
    graph = Graph()
    a, b = leaves(2, graph)
    assert graph.leaf(("x", 0)) is a
    first = fn.sin(a * b + 2.0) / fn.cos(b * a + 2.0)
    size = len(graph.nodes)
    assert fn.sin(2.0 + b * a) / fn.cos(a * b + 2.0) is first
    assert len(graph.nodes) == size
    for f in (fn.sin, fn.cos, fn.sqrt, fn.exp, fn.log, fn.tan, fn.tanh):
        assert f(a) is f(a)
        assert f(a) is not f(b)
    assert fn.select_less(a, b, 1.0, 2) is fn.select_less(a, b, 1, 2.0)
    assert fn.select_less(a, b, 1.0, 2.0) is not fn.select_less(b, a, 1.0, 2.0)


def test_what_does_not_commute_stays_apart() -> None:
    a, b = leaves(2)
    assert a - b is not b - a
    assert a / b is not b / a
    assert a + 2.0 is not a + 3.0
    assert fn.sin(a) is not fn.cos(a)


@pytest.mark.parametrize("power", range(-6, 10))
def test_powers(power: int) -> None:
    (x,) = leaves(1)
    traced = x**power
    for value in (0.3, -1.7, 2.0):
        got = evaluate([traced], {("x", 0): value})[0]
        assert got == pytest.approx(value**power, rel=10 * EPS)  # at most ten roundings
    if power > 0:
        assert count([traced]).muls <= 2 * math.log2(power) and count([traced]).divs == 0
    assert count([traced]).divs == (1 if power < 0 else 0)


@pytest.mark.parametrize("power", [1.5, "2", None, 2j])
def test_other_powers_say_what_to_write(power: Any) -> None:
    (x,) = leaves(1)
    with pytest.raises(TypeError, match=r"whole powers and to 0\.5 only.*exp\(p \* log\(x\)\)"):
        x**power
    with pytest.raises(TypeError, match="whole powers"):
        x**x


def test_no_truth_value() -> None:
    (x,) = leaves(1)
    with pytest.raises(TypeError, match=r"no truth value.*select_less") as caught:
        bool(x)
    named = re.findall(r"bellcrank\.math\.(\w+)", str(caught.value))
    assert all(hasattr(bellcrank.math, name) for name in named), f"{named} is not in bellcrank.math"


@pytest.mark.parametrize("use", [float, math.sin, math.sqrt, lambda x: np.array([x], dtype=float)])
def test_no_value_yet(use: Unary) -> None:
    (x,) = leaves(1)
    with pytest.raises(TypeError, match=r"no value while it is being traced.*bellcrank\.math"):
        use(x)


@pytest.mark.parametrize("other", ["1", None, [1.0], (1.0, 2.0), np.ones(3), object()])
def test_other_operands_are_refused(other: Any) -> None:
    (x,) = leaves(1)
    for use in (lambda: x + other, lambda: other - x, lambda: x * other, lambda: x / other, lambda: other / x):
        with pytest.raises(TypeError):
            use()


@pytest.mark.parametrize("number", [np.float64(2.5), np.float32(2.5), np.array(2.5)])
def test_numpy_numbers_on_both_sides(number: Any) -> None:
    (x,) = leaves(1)
    assert number * x is x * 2.5 and x * number is x * 2.5
    assert number + x is x + 2.5 and x + number is x + 2.5
    assert number - x is 2.5 - x and x - number is x - 2.5
    assert number / x is 2.5 / x and x / number is x / 2.5


def test_numpy_integers_and_booleans() -> None:
    (x,) = leaves(1)
    assert np.int64(3) * x is 3.0 * x
    assert x * True is x
    assert x + np.int32(0) is x


def test_division_by_the_constant_zero_is_an_error_at_once() -> None:
    (x,) = leaves(1)
    with pytest.raises(ZeroDivisionError):
        x / 0.0


def test_graph_order_is_topological() -> None:
    graph = Graph()
    a, b = leaves(2, graph)
    root = fn.sqrt(a * a + b * b) / (a - b)
    unused = fn.sin(a)
    nodes = reachable([root, 3.0])
    assert unused not in nodes
    place = {node: i for i, node in enumerate(nodes)}
    for node in nodes:
        if node.op != "leaf":
            assert all(place[arg] < place[node] for arg in node.args if type(arg) is Scalar)
    assert [n.index for n in graph.nodes] == list(range(len(graph.nodes)))


def test_deep_graphs_need_no_recursion() -> None:
    x, y = leaves(2)
    total: Any = x
    for _ in range(20_000):
        total = total * y + x
    assert count([total]) == OperationCount(adds=20_000, muls=20_000)
    assert math.isfinite(evaluate([total], {("x", 0): 1.0, ("x", 1): 0.5})[0])
    assert len(digest([total])) == 64


# -- counts -----------------------------------------------------------------------------------
def test_counts_of_examples_by_hand() -> None:
    a, b, c = leaves(3)
    assert count([]) == count([1.0, a]) == OperationCount()
    assert count([a * b + a * b]) == OperationCount(adds=1, muls=1)  # one product
    assert count([a * b + c, b * a - c]) == OperationCount(adds=2, muls=1)
    assert count([-(a + b)]) == OperationCount(adds=1, negations=1)
    assert count([a * -b + c]) == OperationCount(adds=1, muls=1)  # c - a b
    assert count([fn.sin(a) * fn.sin(a) + fn.cos(a) * fn.cos(a)]) == OperationCount(adds=1, muls=2, trigs=2)
    assert count([fn.tan(a)]) == OperationCount(divs=1, trigs=2)
    assert count([fn.sqrt(a * a + b * b + c * c)]) == OperationCount(adds=2, muls=3, roots=1)
    assert count([fn.exp(a), fn.log(b), fn.select_less(a, b, c, 0.0)]) == OperationCount(others=3)
    assert count([a / 2.0, 1.0 / b, b / c]) == OperationCount(muls=1, divs=2)
    assert count([0.0 * a + b * 1.0 - (c - c)]) == OperationCount()


def test_counts_add_up() -> None:
    one, other = OperationCount(1, 2, 3, 4, 5, 6, 7), OperationCount(10, 20, 30, 40, 50, 60, 70)
    assert one.plus(other, 2) == OperationCount(21, 42, 63, 84, 105, 126, 147)
    assert one.total == 1 + 2 + 3 + 4
    assert str(one) == "1 adds, 2 muls, 3 divs, 4 roots, 5 sines and cosines"
    a, b = leaves(2)
    product = a * b
    assert count_nodes([a, product, product + a]) == OperationCount(adds=1, muls=1)


# -- fingerprints -----------------------------------------------------------------------------
def example(graph: Graph, factor: float = 1.5, between: Callable[[], object] = lambda: None) -> list[Any]:
    a = graph.leaf(("q", 0))
    between()
    b = graph.leaf(("q", 1))
    between()
    product = a * b
    between()
    return [fn.sin(product * factor) + b, fn.select_less(a, b, product, 0.25) / b, 2.0]


def test_digest_forgets_unrelated_nodes() -> None:
    clean, busy = Graph(), Graph()
    extra = iter(range(100))

    def unrelated() -> None:
        x, y = busy.leaf(("u", next(extra))), busy.leaf(("u", next(extra)))
        fn.cos(x * y - 3.0)

    roots, others = example(clean), example(busy, between=unrelated)
    assert len(busy.nodes) > len(clean.nodes)
    assert digest(roots) == digest(others) == digest(example(clean))


def test_digest_tells_computations_apart() -> None:
    graph = Graph()
    a, b = graph.leaf(("q", 0)), graph.leaf(("q", 1))
    roots = example(graph)
    different = [roots, roots[::-1], roots[:2], [*roots, 2.0], [*roots[:2], 2.0 + 4 * EPS],
                 example(graph, 1.5 + EPS), [a], [b], [graph.leaf(("u", 0))], [graph.leaf(("q", 10))],
                 [a + b], [a - b], [b - a], [a * b], [a / b], [b / a], [-a], [fn.sin(a)], [fn.cos(a)], [fn.exp(a)],
                 [fn.log(a)], [fn.sqrt(a)], [a + 1.0], [a + 2.0], [a * 2.0], [2.0 / a], [a / 3.0], [2.0 - a],
                 [fn.select_less(a, b, a, b)], [fn.select_less(a, b, b, a)], [fn.select_less(b, a, a, b)],
                 [a, b], [b, a], [a, a], [], [0.0], [0.0, 0.0], [1.0], [math.pi], [math.nextafter(math.pi, 4.0)]]
    found = [digest(d) for d in different]
    assert len(set(found)) == len(found)


def test_digest_is_the_same_in_every_process() -> None:
    """Python's own hashes change from run to run; a cache key must not."""
    text = ("from bellcrank.scalar.graph import *\nfrom bellcrank.scalar.functions import *\ng = Graph()\n"
            "print(digest([sin(g.leaf(('q', 0)) * g.leaf(('u', 1)) + 0.1), 2.0]))")
    prints = [children.run_code(text, env={"PYTHONHASHSEED": seed}).stdout.strip() for seed in ("1", "2")]
    graph = Graph()
    here = digest([fn.sin(graph.leaf(("q", 0)) * graph.leaf(("u", 1)) + 0.1), 2.0])
    assert prints == [here, here]


# -- evaluation -------------------------------------------------------------------------------
def test_evaluate_takes_mappings_functions_arrays_and_graphs() -> None:
    roots = example(Graph())
    values = {("q", 0): 0.3, ("q", 1): -0.8}
    by_map = evaluate(roots, values)
    assert evaluate(roots, values.__getitem__) == by_map
    assert by_map[2] == 2.0  # floats pass through
    arrays = evaluate(roots, {key: np.array([value, 1.0]) for key, value in values.items()})
    assert arrays[0].shape == (2,) and arrays[0][0] == by_map[0] and arrays[1][0] == by_map[1]
    other = Graph()
    assert digest(evaluate(roots, other.leaf)) == digest(roots)
    swapped = evaluate(roots, lambda key: other.leaf(("q", 1 - key[1])))
    assert evaluate(swapped, {("q", 1): 0.3, ("q", 0): -0.8}) == by_map


def test_evaluate_with_other_functions() -> None:
    (x,) = leaves(1)
    assert evaluate([fn.sin(x)], {("x", 0): 3.0}, {"sin": lambda v: v + 100.0}) == [103.0]


def test_functions_of_numbers_and_arrays() -> None:
    grid = np.array([0.25, 1.0, 2.5])
    for name in ("sin", "cos", "tan", "exp", "log", "sqrt", "tanh"):
        f, real = getattr(fn, name), getattr(np, name)
        np.testing.assert_allclose(f(grid), real(grid), rtol=8 * EPS)
        for x in grid:
            assert f(float(x)) == pytest.approx(float(real(x)), rel=8 * EPS)
    assert fn.sqrt(4) == 2.0 and fn.cos(0) == 1.0
    assert fn.select_less(1.0, 2.0, 3.0, 4.0) == 3.0 and fn.select_less(2.0, 2.0, 3.0, 4.0) == 4.0
    np.testing.assert_array_equal(fn.select_less(grid, 1.0, -grid, 7.0), [-0.25, 7.0, 7.0])
    assert fn.pi == math.pi


@pytest.mark.parametrize("x", [0.0, 1e-300, 1e-20, 1e-8, 1e-3, 0.1, 0.5, 1.0, 3.0, 19.0, 25.0, 400.0, 1e200])
def test_tanh_is_accurate_for_small_and_large_arguments(x: float) -> None:
    for value in (x, -x):
        assert fn.tanh(value) == pytest.approx(math.tanh(value), rel=8 * EPS, abs=0.0)


# -- random expressions -----------------------------------------------------------------------
class UnsureError(Exception):
    """Rounding decides a comparison, or a value leaves the range where errors can be bounded."""


class Bounded:
    """A float with a bound for the rounding errors it carries (running error analysis).

    It knows its own sine and so on, as jets do, and so passes through `bellcrank.math`. Any order of the same
    operations, fused or not, with a quotient by a constant perhaps computed as a product with its reciprocal,
    stays within `error` of the exact value; so two ways differ by at most 2 `error`.
    """

    def __init__(self, value: float, error: float = 0.0) -> None:
        if not (abs(value) < 1e60 and error < 1e40):
            raise UnsureError
        self.value, self.error = value, error

    @staticmethod
    def of(x: Any) -> Bounded:
        return x if isinstance(x, Bounded) else Bounded(float(x))

    @staticmethod
    def rounded(value: float, error: float, roundings: int = 2) -> Bounded:
        return Bounded(value, error + roundings * ROUND * abs(value) + 1e-300)

    def __add__(self, other: Any) -> Bounded:
        o = self.of(other)
        return self.rounded(self.value + o.value, self.error + o.error)

    __radd__ = __add__

    def __neg__(self) -> Bounded:
        return Bounded(-self.value, self.error)

    def __sub__(self, other: Any) -> Bounded:
        return self + -self.of(other)

    def __rsub__(self, other: Any) -> Bounded:
        return self.of(other) + -self

    def __mul__(self, other: Any) -> Bounded:
        o = self.of(other)
        error = abs(self.value) * o.error + abs(o.value) * self.error + self.error * o.error
        return self.rounded(self.value * o.value, error)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Bounded:
        o = self.of(other)
        if abs(o.value) < 4.0 * o.error + 1e-30:
            raise UnsureError
        value = self.value / o.value
        return self.rounded(value, (self.error + abs(value) * o.error) / (abs(o.value) - o.error), 4)

    def __rtruediv__(self, other: Any) -> Bounded:
        return self.of(other) / self

    def __pow__(self, power: int) -> Bounded:
        if power < 0:
            return 1.0 / self**-power
        result = Bounded(1.0)
        for _ in range(power):
            result = result * self
        return result

    def sin(self) -> Bounded:
        return self.rounded(math.sin(self.value), self.error, 4)

    def cos(self) -> Bounded:
        return self.rounded(math.cos(self.value), self.error, 4)

    def exp(self) -> Bounded:
        if self.value > 100.0 or self.error > 1.0:
            raise UnsureError
        value = math.exp(self.value)
        return self.rounded(value, value * math.expm1(self.error), 4)

    def log(self) -> Bounded:
        if self.value <= 4.0 * self.error:
            raise UnsureError
        return self.rounded(math.log(self.value), self.error / (self.value - self.error), 4)

    def sqrt(self) -> Bounded:
        if self.value <= 4.0 * self.error:
            raise UnsureError
        return self.rounded(math.sqrt(self.value), self.error / math.sqrt(self.value))

    def tanh(self) -> Bounded:
        return self.rounded(math.tanh(self.value), self.error, 8)

    @staticmethod
    def select_less(a: Any, b: Any, if_less: Any, otherwise: Any) -> Bounded:
        x, y = Bounded.of(a), Bounded.of(b)
        if x.error + y.error > 0.0 and abs(x.value - y.value) <= 2.0 * (x.error + y.error):
            raise UnsureError
        return Bounded.of(if_less if x.value < y.value else otherwise)


INPUTS = 4
UNARY: dict[str, Unary] = {
    "neg": lambda a: -a, "sin": fn.sin, "cos": fn.cos, "tan": fn.tan, "tanh": fn.tanh,
    "root": lambda a: fn.sqrt(a * a + 0.25), "power of a half": lambda a: fn.sqrt(a * a + 2.0),
    "log": lambda a: fn.log(a * a + 0.25), "bell": lambda a: fn.exp(-(a * a)), "wave": lambda a: fn.exp(fn.sin(a)),
    "square": lambda a: a**2, "cube": lambda a: a**3, "inverse": lambda a: (a * a + 0.5)**-1,
    "third": lambda a: a / 3.0, "seven": lambda a: 7.0 * a, "offset": lambda a: 1.25 - a,
}
BINARY: dict[str, Binary] = {
    "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
    "div": lambda a, b: a / (b * b + 0.5), "less": lambda a, b: fn.select_less(a, b, b + 1.0, a * 2.0),
    "step": lambda a, b: fn.select_less(a, 0.5, -1.0, b), "minus product": lambda a, b: a * -b + a,
}
Tree = tuple[Any, ...]
constants = st.sampled_from([0.0, 1.0, -1.0, 2.0, -0.5, 3.0]) | st.floats(-4.0, 4.0, allow_subnormal=False)
trees: st.SearchStrategy[Tree] = st.recursive(
    st.tuples(st.just("x"), st.integers(0, INPUTS - 1)) | st.tuples(st.just("x"), st.integers(0, INPUTS - 1))
    | st.tuples(st.just("c"), constants),
    lambda part: (st.tuples(st.sampled_from(sorted(UNARY)), part)
                  | st.tuples(st.sampled_from(sorted(BINARY)), part, part)),
    max_leaves=12)


def build(tree: Tree, x: Sequence[Any]) -> Any:
    """The expression of a tree on any kind of number."""
    if tree[0] == "x":
        return x[tree[1]]
    if tree[0] == "c":
        return tree[1]
    args = [build(part, x) for part in tree[1:]]
    return UNARY[tree[0]](*args) if len(args) == 1 else BINARY[tree[0]](*args)


def bounded(forest: Sequence[Tree], state: Sequence[float]) -> tuple[list[float], list[float]]:
    """Values and error bounds; NaN where nothing can be said."""
    values, errors = [], []
    for tree in forest:
        try:
            result = Bounded.of(build(tree, [Bounded(v) for v in state]))
            values.append(result.value)
            errors.append(result.error)
        except UnsureError:
            values.append(math.nan)
            errors.append(math.nan)
    return values, errors


@settings(max_examples=60)
@given(st.lists(trees, min_size=3, max_size=8), st.integers(0, 2**32 - 1))
def test_random_expressions_mean_the_same_everywhere(forest: list[Tree], seed: int) -> None:
    rng = np.random.default_rng(seed)
    states = rng.uniform(-2.0, 2.0, (9, INPUTS))  # more than one block of lanes, and a tail
    states[rng.random(states.shape) < 0.15] = 0.0
    states[rng.random(states.shape) < 0.1] = 1.0
    both = [bounded(forest, state) for state in states.tolist()]
    value, error = np.array([b[0] for b in both]), np.array([b[1] for b in both])
    known = ~np.isnan(value)
    graph = Graph()
    outputs = [build(tree, leaves(INPUTS, graph)) for tree in forest]

    def agree(got: np.ndarray) -> None:
        off, bound = np.abs(got - value)[known], 2.0 * error[known]
        assert (off <= bound).all(), f"{(off / bound).max()} times the rounding errors"

    one_by_one = np.full(value.shape, np.nan)
    for i, j in np.argwhere(known):
        one_by_one[i, j] = evaluate([outputs[j]], lambda key, i=i: float(states[i, key[1]]))[0]
    agree(one_by_one)
    with np.errstate(all="ignore"):
        columns = evaluate(outputs, lambda key: states[:, key[1]])
    agree(np.stack([np.broadcast_to(c, len(states)) for c in columns], axis=-1))
    for width in (1, 2, 4):
        got, finite = run_kernel(kernel_of(outputs, {"x": INPUTS}, width), states)
        assert finite == bool(np.isfinite(got).all())
        agree(got)


@pytest.mark.reaches(0.9)
@settings(max_examples=60)
@given(trees, st.integers(0, 2**32 - 1))
def test_random_expressions_by_jets_over_scalars(tree: Tree, seed: int) -> None:
    """Tracing a jet and taking the jet of numbers are the same thing."""
    rng = np.random.default_rng(seed)
    numbers = rng.uniform(0.25, 1.5, (INPUTS, 3))
    graph = Graph()
    traced = as_jet(build(tree, [Jet(*(graph.leaf((i, j)) for j in range(3))) for i in range(INPUTS)]))
    try:
        careful = as_jet(build(tree, [Jet(*map(Bounded, row)) for row in numbers.tolist()]))
    except UnsureError:
        leave()
    direct = as_jet(build(tree, [Jet(*row) for row in numbers.tolist()]))
    got = evaluate(list(traced), lambda key: float(numbers[key[0], key[1]]))
    for a, b, c in zip(got, direct, careful, strict=True):
        assert abs(a - b) <= 2.0 * Bounded.of(c).error


@pytest.mark.parametrize("width", [1, 2, 4, 8])
def test_graphs_of_many_blocks(width: int, rng: np.random.Generator) -> None:
    """Longer than one basic block, with branches (sine) in between, and values used far away."""
    x = leaves(INPUTS)
    terms: list[Any] = list(x)
    for i in range(3000):
        a, b = terms[rng.integers(len(terms))], terms[-1 - i % 3]
        terms.append(0.5 * fn.sin(a + b) if i % 100 == 0 else 0.5 * a - 0.25 * b + 0.125 * x[i % INPUTS])
    outputs = [*terms[::97], terms[-1], 3.0]
    states = rng.normal(size=(5, INPUTS))
    got, finite = run_kernel(kernel_of(outputs, {"x": INPUTS}, width), states)
    wanted = evaluate(outputs, lambda key: states[:, key[1]])
    assert finite
    # every value is below 4 in size and inherits at most 0.75 of its arguments' errors
    assert np.abs(wanted[-2]).max() < 4.0
    np.testing.assert_allclose(got, np.stack(np.broadcast_arrays(*wanted), axis=-1), rtol=0.0, atol=100 * EPS)


@pytest.mark.parametrize("width", [1, 4])
def test_kernels_of_constants_and_copies(width: int) -> None:
    a, b = leaves(2)
    states = np.array([[1.0, 2.0], [3.0, -4.0], [5.0, 6.0]])
    got, finite = run_kernel(kernel_of([1, 2.5, a, a, -b, np.float64(0.1)], {"x": 2}, width), states)
    assert finite
    np.testing.assert_array_equal(got, [[1.0, 2.5, p, p, -q, 0.1] for p, q in states])
    nothing = kernel_of([7.0], {}, width)
    out = np.zeros((3, 1))
    assert nothing.run([], nothing.packed_strides, out, 0, 3)
    np.testing.assert_array_equal(out, 7.0)


# -- jets -------------------------------------------------------------------------------------
Derivatives = Callable[[float], tuple[float, float, float]]
FUNCTIONS: dict[str, tuple[Unary, Derivatives, list[float]]] = {
    "sin": (fn.sin, lambda x: (math.sin(x), math.cos(x), -math.sin(x)), [-2.0, 0.0, 0.3, 1.5]),
    "cos": (fn.cos, lambda x: (math.cos(x), -math.sin(x), -math.cos(x)), [-2.0, 0.0, 0.3, 1.5]),
    "exp": (fn.exp, lambda x: (math.exp(x),) * 3, [-2.0, 0.0, 0.3, 1.5]),
    "log": (fn.log, lambda x: (math.log(x), 1 / x, -1 / x**2), [0.01, 0.3, 1.0, 50.0]),
    "sqrt": (fn.sqrt, lambda x: (math.sqrt(x), 0.5 / math.sqrt(x), -0.25 / (x * math.sqrt(x))), [0.01, 0.3, 4.0]),
    "power 0.5": (lambda x: x**0.5, lambda x: (math.sqrt(x), 0.5 / math.sqrt(x), -0.25 / (x * math.sqrt(x))), [0.3]),
    "tan": (fn.tan, lambda x: (math.tan(x), 1 / math.cos(x)**2, 2 * math.tan(x) / math.cos(x)**2), [-0.7, 0.2, 1.2]),
    "neg": (lambda x: -x, lambda x: (-x, -1.0, 0.0), [0.4]),
    "plus": (lambda x: x + 2, lambda x: (x + 2, 1.0, 0.0), [0.4]),
    "plus on the left": (lambda x: 2.0 + x, lambda x: (x + 2, 1.0, 0.0), [0.4]),
    "minus": (lambda x: x - 3.0, lambda x: (x - 3.0, 1.0, 0.0), [0.4]),
    "minus on the left": (lambda x: 3 - x, lambda x: (3.0 - x, -1.0, 0.0), [0.4]),
    "times": (lambda x: x * 2.5, lambda x: (2.5 * x, 2.5, 0.0), [0.4]),
    "times on the left": (lambda x: np.float64(2.5) * x, lambda x: (2.5 * x, 2.5, 0.0), [0.4]),
    "over": (lambda x: x / 4, lambda x: (x / 4.0, 0.25, 0.0), [0.4]),
    "over on the left": (lambda x: 3.0 / x, lambda x: (3 / x, -3 / x**2, 6 / x**3), [0.4, -2.0]),
    "product": (lambda x: x * fn.sin(x), lambda x: (x * math.sin(x), math.sin(x) + x * math.cos(x),
                                                    2 * math.cos(x) - x * math.sin(x)), [0.4, -2.0]),
    "quotient": (lambda x: fn.exp(x) / x, lambda x: (math.exp(x) / x, math.exp(x) * (x - 1) / x**2,
                                                     math.exp(x) * (x * x - 2 * x + 2) / x**3), [0.4, -2.0, 3.0]),
    "difference": (lambda x: fn.exp(x) - x, lambda x: (math.exp(x) - x, math.exp(x) - 1.0, math.exp(x)), [0.4]),
    **{f"power {n}": (lambda x, n=n: x**n,
                      lambda x, n=n: (x**n, n * x**(n - 1), n * (n - 1) * x**(n - 2)), [0.4, -2.0])
       for n in (-3, -1, 0, 1, 2, 3, 6)},
    "less": (lambda x: fn.select_less(x, 1.0, x * x, fn.exp(x)),
             lambda x: (x * x, 2 * x, 2.0) if x < 1.0 else (math.exp(x),) * 3, [0.4, 1.0, 1.7]),
    "less of constants": (lambda x: fn.select_less(0.0, x, 5.0, x),
                          lambda x: (5.0, 0.0, 0.0) if x > 0.0 else (x, 1.0, 0.0), [0.4, -0.4, 0.0]),
    "tanh": (fn.tanh, lambda x: (math.tanh(x), 1 - math.tanh(x)**2, -2 * math.tanh(x) * (1 - math.tanh(x)**2)),
             [-3.0, -0.5, 0.5, 1.0, 10.0, 30.0]),
}


def check_jet(f: Unary, exact: Derivatives, x: float, tolerance: float) -> None:
    value, slope, bend = exact(x)
    for rate, acceleration in ((1.0, 0.0), (0.7, -1.9), (0.0, 2.0)):
        wanted = Jet(value, slope * rate, slope * acceleration + bend * rate**2)
        scale = abs(value) + abs(slope) * (abs(rate) + abs(acceleration)) + abs(bend) * rate**2
        jet = f(Jet(x, rate, acceleration))
        (leaf,) = leaves(1)
        traced = f(Jet(leaf, rate, acceleration))
        compiled = [float(v) for v in evaluate(list(traced), {("x", 0): x})]
        for got in (jet, compiled):
            for a, b in zip(got, wanted, strict=True):
                assert abs(a - b) <= tolerance * scale + 1e-300, (x, rate, acceleration)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_jets_against_closed_forms(name: str) -> None:
    f, exact, points = FUNCTIONS[name]
    for x in points:
        check_jet(f, exact, x, 32 * EPS)


@pytest.mark.parametrize("x", [0.0, 1e-200, 1e-100, 1e-30, 1e-8, 1e-4, 1e-2])
def test_jets_of_tanh_through_zero(x: float) -> None:
    f, exact, _ = FUNCTIONS["tanh"]
    check_jet(f, exact, x, 32 * EPS)
    check_jet(f, exact, -x, 32 * EPS)


def test_jets_against_differences() -> None:
    def law(t: Any) -> Any:
        return fn.select_less(t, 0.0, t, fn.exp(-t) * fn.sin(3.0 * t) / (1.0 + t * t)) + fn.sqrt(t + 2.0) ** 3

    h = 1e-3
    for t in (-0.5, 0.3, 1.1):
        jet = law(Jet(t, 1.0, 0.0))
        far2, far, near, near2 = law(t + 2 * h), law(t + h), law(t - h), law(t - 2 * h)
        # fourth order: truncation below |f^(6)| h^4 / 30 with |f^(6)| < 2000, rounding below 4 eps |f| / h^2
        assert jet.value == pytest.approx(law(t), rel=4 * EPS)
        assert jet.rate == pytest.approx((8 * (far - near) - (far2 - near2)) / (12 * h), abs=1e-10)
        assert jet.acceleration == pytest.approx(
            (16 * (far + near) - (far2 + near2) - 30 * law(t)) / (12 * h * h), abs=1e-8)


def test_jets_of_arrays() -> None:
    t = np.linspace(0.1, 2.0, 7)
    jet = fn.sin(Jet(t, 1.0, 0.0)) * t
    np.testing.assert_allclose(jet.value, np.sin(t) * t, rtol=4 * EPS)
    np.testing.assert_allclose(jet.rate, np.cos(t) * t, rtol=4 * EPS)
    np.testing.assert_allclose(jet.acceleration, -np.sin(t) * t, rtol=4 * EPS)


def test_jet_powers_say_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"whole powers and 0\.5 only"):
        Jet(1.0, 0.0, 0.0) ** 1.5
    assert as_jet(2.0) == Jet(2.0, 0.0, 0.0)
    assert as_jet(Jet(1.0, 2.0, 3.0)) == Jet(1.0, 2.0, 3.0)
