"""`bellcrank.math`: one text for floats, arrays, traced scalars, compiled code and jets."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bellcrank as bc
from bellcrank import math as fn
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.graph import Graph, is_zero
from bellcrank.scalar.jet import Jet

#: a function of `bellcrank.math`, the standard library's, and where to compare them
ONE: dict[str, tuple[Callable[[float], float], tuple[float, ...]]] = {
    "abs": (abs, (-3.0, -1e-300, 0.0, 2.5)),
    "sign": (lambda x: float(np.sign(x)), (-3.0, -1e-300, 0.0, 2.5)),
    "asin": (math.asin, (-1.0, -0.999999999, -0.3, 0.0, 1e-20, 0.7, 1.0)),
    "acos": (math.acos, (-1.0, -0.3, 0.0, 0.7, 0.999999999, 1.0)),
    "atan": (math.atan, (-1e200, -2.0, 0.0, 1e-20, 0.4, 1e18)),
    "sinh": (math.sinh, (-700.0, -2.0, -1e-9, 0.0, 1e-20, 0.4, 30.0)),
    "cosh": (math.cosh, (-700.0, -2.0, -1e-9, 0.0, 0.4, 30.0)),
}
TWO: dict[str, Callable[[float, float], float]] = {"minimum": min, "maximum": max, "hypot": math.hypot}
PAIRS = ((1.0, 2.0), (2.0, 1.0), (-3.0, -3.0), (0.0, -1e-9), (3e5, -4e5))


def close(got: Any, wanted: float) -> bool:
    return abs(float(got) - wanted) <= 8e-16 * abs(wanted)


@pytest.mark.parametrize("name", ONE)
def test_functions_of_one_number(name: str) -> None:
    ours: Callable[[Any], Any] = getattr(fn, name)
    real, places = ONE[name]
    graph = Graph()
    traced = ours(graph.leaf("x"))
    array = ours(np.array(places))
    for i, x in enumerate(places):
        assert close(ours(x), real(x)), x
        assert close(array[i], real(x)), x
        assert close(evaluate([traced], {"x": x})[0], real(x)), x


@pytest.mark.parametrize("name", TWO)
def test_functions_of_two_numbers(name: str) -> None:
    ours: Callable[[Any, Any], Any] = getattr(fn, name)
    graph = Graph()
    traced = ours(graph.leaf("x"), graph.leaf("y"))
    half = ours(graph.leaf("x"), 1.5)
    a, b = np.array(PAIRS).T
    array = ours(a, b)
    for i, (x, y) in enumerate(PAIRS):
        wanted = TWO[name](x, y)
        assert close(ours(x, y), wanted) and close(array[i], wanted)
        assert close(evaluate([traced], {"x": x, "y": y})[0], wanted)
        assert close(evaluate([half], {"x": x})[0], TWO[name](x, 1.5))


@pytest.mark.parametrize("name", (*ONE, *TWO))
def test_derivatives(name: str) -> None:
    """Rate and acceleration along a curve, against differences of the values."""
    ours: Callable[..., Any] = getattr(fn, name)
    more = (0.31,) if name in TWO else ()

    def value(t: float) -> float:
        x = 0.4 + 0.3 * t - 0.7 * t * t
        return float(ours(x, *more))

    for t in (0.2, 1.4):  # positive and negative x
        jet = ours(0.4 + 0.3 * Jet(t, 1.0, 0.0) - 0.7 * Jet(t, 1.0, 0.0) ** 2, *more)
        h = 1e-4
        assert abs(jet.value - value(t)) < 1e-15
        assert abs(jet.rate - (value(t + h) - value(t - h)) / (2 * h)) < 1e-6
        assert abs(jet.acceleration - (value(t + h) - 2 * value(t) + value(t - h)) / h**2) < 1e-5


def test_pythons_own_abs_works_in_laws() -> None:
    graph = Graph()
    assert evaluate([abs(graph.leaf("x"))], {"x": -2.0}) == [2.0]
    assert abs(Jet(-2.0, 3.0, 5.0)) == Jet(2.0, -3.0, -5.0)


def law(q: Any, u: Any) -> Any:
    part = fn.minimum(fn.abs(q), 0.5) + fn.maximum(q, u) * fn.sign(u) + fn.asin(0.3 * fn.sin(q)) + fn.atan(u)
    return part + fn.acos(0.5 * fn.cos(q)) + fn.sinh(0.1 * u) + fn.cosh(q) + fn.hypot(q, 1.0) + abs(u)


def plain(q: float, u: float) -> float:
    part = min(abs(q), 0.5) + max(q, u) * float(np.sign(u)) + math.asin(0.3 * math.sin(q)) + math.atan(u)
    return part + math.acos(0.5 * math.cos(q)) + math.sinh(0.1 * u) + math.cosh(q) + math.hypot(q, 1.0) + abs(u)


def pendulum() -> bc.Mechanism:
    m = bc.Mechanism("swing")
    rod = m.add_body("rod", bc.Inertia(1.0, (0.0, 0.0, -0.5), 0.1))
    m.add_joint("hinge", bc.Revolute("y"), "ground", rod)
    m.add_joint_force("push", "hinge", law)
    return m


def test_in_compiled_laws_and_files(tmp_path: Any) -> None:
    """A law that uses them compiles, is written to a model file and read back with the same numbers."""
    m = pendulum()
    bc.save(m, tmp_path / "swing.yaml")
    for machine in (m, bc.load(tmp_path / "swing.yaml")):
        system = bc.compile(machine)
        for q, u in ((0.3, 0.2), (-0.9, -1.1), (0.1, 0.4)):
            inertia = 0.1 + 0.25
            wanted = (plain(q, u) - 9.81 * 0.5 * math.sin(q)) / inertia
            assert abs(system.forward_dynamics([q], [u])[0] - wanted) < 1e-13 * abs(wanted) + 1e-13


@pytest.mark.parametrize("name", [name for name in fn.__all__ if name != "pi"])
@pytest.mark.parametrize("nonsense", [None, {"A": 1.0}, object(), [None, 1.0]])
def test_arguments_that_are_not_numbers(name: str, nonsense: Any) -> None:
    function = getattr(fn, name)
    count = function.__code__.co_argcount
    with pytest.raises(bc.ModelError, match=rf"bellcrank\.math\.{name}: an argument must be .*, got "):
        function(*[nonsense] * count)


@pytest.mark.parametrize(("call", "said"), [
    (lambda: fn.sqrt(-1.0), r"sqrt\(-1.0\) has no value"), (lambda: fn.log(0), r"log\(0\) has no value"),
    (lambda: fn.acos(2.0), r"acos\(2.0\) has no value"), (lambda: fn.exp(1e3), r"exp\(1000.0\) has no value"),
    (lambda: fn.hypot(np.ones(3), np.ones(4)), r"hypot\(array of shape \(3,\), array of shape \(4,\)\) has no value"),
])
def test_numbers_without_a_value(call: Callable[[], Any], said: str) -> None:
    with pytest.raises(bc.ModelError, match=rf"bellcrank\.math\.{said}"):
        call()


def test_the_value_of_one_state_is_no_constant() -> None:
    """A zero of type float64 belongs to a state: nothing may be left out for it, and it follows NumPy's rules."""
    zero = np.float64(0.0)
    found = [fn.sin(zero), fn.sqrt(zero), fn.atan2(zero, np.float64(1.0)), fn.select_less(zero, 1.0, 0.0, 2.0),
             fn.maximum(zero, -1.0), fn.abs(zero), zero * 3.0, 0.0 * zero]
    assert all(type(x) is np.float64 and x == 0.0 and not is_zero(x) for x in found)
    with np.errstate(all="ignore"):
        assert np.isnan(fn.sqrt(np.float64(-1.0))) and fn.log(zero) == -np.inf and 1.0 / zero == np.inf
    several = np.array([0.3, 0.3])
    for function in (fn.sin, fn.cos, fn.exp, fn.tanh, fn.log, fn.sqrt):  # as in a batch, to the bit
        assert function(np.float64(0.3)) == function(several)[1]
