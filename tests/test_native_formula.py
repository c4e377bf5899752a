"""The language of formulas in model files."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import bellcrank as bc
from bellcrank import math as bm
from bellcrank.io.native.formula import Formula, parse, written
from bellcrank.io.native.trace import from_scalar, run, trace
from bellcrank.scalar.jet import Jet
from mechanisms import examples
from properties import leave

NAMES = ("x", "rate")
numbers = st.floats(allow_nan=False, allow_infinity=False)


def _grow(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Laws made of laws."""
    two = st.tuples(inner, inner)
    return st.one_of(
        two.map(lambda p: lambda x, r: p[0](x, r) + p[1](x, r)),
        two.map(lambda p: lambda x, r: p[0](x, r) - p[1](x, r)),
        two.map(lambda p: lambda x, r: p[0](x, r) * p[1](x, r)), inner.map(lambda f: lambda x, r: -f(x, r)),
        inner.map(lambda f: lambda x, r: bm.tanh(f(x, r))), inner.map(lambda f: lambda x, r: bm.sin(f(x, r))),
        st.tuples(inner, st.integers(-3, 5)).map(lambda p: lambda x, r: (x + p[0](x, r)) ** p[1]),
        st.tuples(inner, inner).map(lambda p: lambda x, r: p[0](x, r) / (2 + r - p[1](x, r))),
        st.tuples(inner, inner, inner).map(
            lambda p: lambda x, r: bm.select_less(x, p[0](x, r), p[1](x, r), bm.atan2(r, p[2](x, r)))))


laws = st.recursive(st.one_of(numbers.map(lambda c: lambda x, r: c), st.sampled_from([
    lambda x, r: x, lambda x, r: r])), _grow, max_leaves=12)


@pytest.mark.reaches(0.9)
@given(laws)
@examples(200)
def test_text_and_program_are_the_same(law: Any) -> None:
    try:
        program = trace(law, NAMES, "law")
    except bc.ModelError:  # a number that is not finite
        leave()
    text = written(program, NAMES)
    assert parse(text, (), NAMES) == program
    assert written(parse(text, (), NAMES), NAMES) == text


@pytest.mark.reaches(0.9)
@given(laws, st.floats(-10, 10), st.floats(-10, 10))
@examples(200)
def test_formulas_compute_what_laws_compute(law: Any, x: float, rate: float) -> None:
    try:
        formula = Formula(written(trace(law, NAMES, "law"), NAMES), NAMES)
        wanted = law(x, rate), law(Jet(x, 1.0, 0.0), rate)
    except (bc.ModelError, ArithmeticError, ValueError):
        leave()
    got = formula(x, rate), formula(Jet(x, 1.0, 0.0), rate)
    assert repr(got) == repr(tuple(float(w) if isinstance(w, int) else w for w in wanted))


@pytest.mark.reaches(0.6)  # many are plain numbers
@given(st.recursive(st.sampled_from(["a", "b b", "t", 2.0, -0.5]), lambda inner: st.tuples(
    st.sampled_from("+-*/"), inner, inner), max_leaves=12))
@example(("-", ("-", "a", "a"), ("-", 2.0, "a")))  # the negative of a number less a parameter
@examples(200)
def test_expressions_of_parameters_come_back(tree: Any) -> None:
    m = bc.Mechanism()
    values = {name: m.parameter(name, 2.0) for name in ("a", "b b", "t")}

    def made(tree: Any) -> Any:
        if not isinstance(tree, tuple):
            return values.get(tree, tree)
        one, other = made(tree[1]), made(tree[2])
        return {"+": lambda: one + other, "-": lambda: one - other, "*": lambda: one * other,
                "/": lambda: one / other}[tree[0]]()

    try:
        found = made(tree)
    except ZeroDivisionError:
        leave()
    if isinstance(found, float):
        leave()
    program = from_scalar(found, tuple(values))
    text = written(program)
    assert parse(text, tuple(values)) == program
    back = run(parse(text, tuple(values)), tuple(values.values()))
    assert from_scalar(back, tuple(values)) == program


@pytest.mark.parametrize(("text", "value"), [
    ("2+3*4", 14.0), ("-2**2", -4.0), ("(2)**-1", 0.5), ("2 - -3", 5.0), ("--3", 3.0), ("+3", 3.0), ("8/2/2", 2.0),
    ("pi", math.pi), ("a = 2; b = a*a; b + a", 6.0), ("1e3 + .5", 1000.5), ("4**0.5", 2.0), ("1 - 2 - 3", -4.0),
    ("select_less(1, 2, 3, 4)", 3.0), ("atan2(1, 1)", math.pi / 4), ("tan(0.5)", math.sin(0.5) / math.cos(0.5)),
    ("x*2", 14.0), ("-x", -7.0), ("`a``b`", 5.0), ("exp(0) + log(1) + sqrt(4) + tanh(0)", 3.0)])
def test_what_formulas_mean(text: str, value: float) -> None:
    assert run(parse(text, ("a`b",), ("x",)), (7.0, 5.0)) == value


@pytest.mark.parametrize("name", sorted(set(bm.__all__) - {"pi"}))
def test_formulas_know_all_functions_of_laws(name: str) -> None:
    """What a law in Python does, step by step, also those functions that are written with others."""
    function = getattr(bm, name)
    count = {"atan2": 2, "hypot": 2, "maximum": 2, "minimum": 2, "select_less": 4}.get(name, 1)
    law = {1: lambda x, r: function(0.1 * x), 2: lambda x, r: function(x, r - 1.0),
           4: lambda x, r: function(x, r, 2.0, x)}[count]
    text = {1: f"{name}(0.1*x)", 2: f"{name}(x, rate - 1)", 4: f"{name}(x, rate, 2, x)"}[count]
    assert parse(text, (), NAMES) == trace(law, NAMES, "law")
    assert run(parse(f"{name}(0.5{', 0.25' * (count - 1)})", (), NAMES), (0.0, 0.0)) == \
        function(0.5, *[0.25] * (count - 1))


def test_names_of_functions_may_be_names_of_parameters() -> None:
    assert run(parse("abs*2 + abs(-abs)", ("abs",)), (3.0,)) == 9.0
    with pytest.raises(bc.ModelError, match="hypot takes 2 arguments, got 1"):
        parse("hypot(1)", ())


@pytest.mark.parametrize("text", [
    "", " ", "2 +", "2 3", "(2", "2)", "sin 2", "sin(2, 3)", "sin()", "y", "x.real", "x[0]", "lambda: 0", "'x'",
    "__import__('os')", "x = 2; x", "pi = 3; pi", "a = 2", "a = ; 2", "x**x", "x**2000", "x**1.5", "x**nan", "1e999",
    "2**", "`b`", "`", "``", "x if x else 2", "x and x", "1_000", "0x10", "2..3", "é", "x;", ";", "x == 2", "a = x, x",
    "(" * 100 + "x" + ")" * 100, "sin(" * 100 + "x" + ")" * 100, "x // 2", "x % 2", "x ** -", "\0", "x" * 10**6])
def test_what_is_no_formula_is_refused(text: str) -> None:
    with pytest.raises(bc.ModelError, match="formula"):
        parse(text, (), ("x",))


def test_long_and_deep_laws() -> None:
    def law(x: Any, rate: Any) -> Any:
        y = x
        for i in range(3000):
            y = bm.sin(y) + y * 0.5 + i
        return y

    program = trace(law, NAMES, "law")
    text = written(program, NAMES)
    assert parse(text, (), NAMES) == program
    assert run(program, (0.1, 0.2)) == law(0.1, 0.2)
    assert parse("-" * 10_000 + "x", (), NAMES).result == 0
    assert len(parse("+".join(["x"] * 10_000), (), NAMES).steps) == 9_999
    with pytest.raises(bc.ModelError, match="operations"):
        parse("+".join(["x"] * 60_000), (), NAMES)


def test_mistakes_get_a_hint() -> None:
    with pytest.raises(bc.ModelError, match="did you mean 'stiffness'"):
        parse("2 * stifness", ("stiffness",))
    with pytest.raises(bc.ModelError, match="did you mean 'sin'"):
        parse("sn(t)", (), ("t",))
