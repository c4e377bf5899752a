"""The neutral language: small programs mean the same to every printer, in any number of lanes."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import children
from bellcrank.target.array_loops import copy, each, largest_of, sum_of
from bellcrank.target.backend import CallLists, backend_named
from bellcrank.target.c.c_text import Arguments, Pointer
from bellcrank.target.c.unit import CUnit
from bellcrank.target.calling import finite_array
from bellcrank.target.program import Builder, DriverLayout, Int, Program, Real
from bellcrank.target.sincos import sincos
from bellcrank.target.switching import switching
from c_library import COMPILER, FLAGS

LAYOUT = DriverLayout(("n",), ("a",), ("x", "out", "whole"))
N, A, WHOLE = 5, 0.75, [3, 0, 2, 1, 4, 9]
X = np.array([0.5, -1.25, 3.0, 0.0, 2.0**-40, 7.5, -0.3, 1e6])

Numbers = list[float]
PROGRAMS: dict[str, tuple[Program, Callable[[Numbers], Numbers]]] = {}


def means(expected: Callable[[Numbers], Numbers]) -> Callable[[Program], Program]:
    """A program that leaves in `out` what a function makes of the numbers in `x`."""
    def keep(program: Program) -> Program:
        PROGRAMS[program.__name__] = program, expected
        return program

    return keep


@means(lambda x: [x[0] + x[1], x[0] - x[1], x[0] * x[1], x[0] / x[1], -x[0], 1.0 / x[1], 2.0 - x[1], abs(x[1]),
                  math.sqrt(x[2]), max(x[0], x[1]), min(x[0], 0.25), x[2] ** A, A])
def arithmetic(b: Builder) -> None:
    x, out = b.memory("x"), b.memory("out")
    p, q = x[0], x[1]
    for i, value in enumerate((p + q, p - q, p * q, p / q, -p, 1.0 / q, 2.0 - q, q.abs(), x[2].sqrt(), p.max(q),
                               p.min(0.25), x[2].power(b.real("a")), b.real("a"))):
        out[i] = value
    b.finish()


@means(lambda x: [float(x[0] < x[1]), float(x[0] <= x[0]), float(x[0] > x[1]), float(x[1] >= x[0]), float(x[0] == x[0]),
                  0.0, 1.0, 0.0])
def comparisons(b: Builder) -> None:
    x, out = b.memory("x"), b.memory("out")
    p, q, nan = x[0], x[1], b.constant(math.nan)
    for i, mask in enumerate((p < q, p <= p, p > q, q >= p, p == p, nan == nan, nan.is_nan(), p.is_nan())):
        out[i] = mask.pick(1.0, 0.0)
    b.finish()


@means(lambda x: [0.0, 2.0, 4.0, 6.0, 8.0, 4.0, 3.0, 2.0, 7.0, 13.0, 1.0, 1.0])
def integers(b: Builder) -> None:
    out, n, whole = b.memory("out"), b.count("n"), b.integers_at("whole")
    with b.loop(n) as i:
        out[i] = (i * 2).real()
    at = b.counter(5)
    with b.loop(5, 2, back=True) as i:  # 4, 3, 2
        out[at.value] = i.real()
        at.set(at.value + 1)
    out[8] = (whole[5] - 2).real()
    out[9] = ((n * 7) % 11 + (whole[0] | 8) - 0).real()
    out[10] = (whole[0] > 2).integer().real()
    out[11] = ((n == 5) & ~(n != 5) & ((n < 0) | (whole[4] >= n - 1)) & (whole[2].min(n) <= 2)).integer().real()
    b.finish()


@means(lambda x: [sum(x[:5]), 3.0 + 1.0, 3.0, 1.0, 7.0, 0.0])
def carrying(b: Builder) -> None:
    """Loops that carry a value, follow a chain, and end when they are told to."""
    x, out, whole = b.memory("x"), b.memory("out"), b.integers_at("whole")
    out[0] = b.fold(b.count("n"), b.constant(0.0), lambda i, total: total + x[i])
    total = b.counter(0)

    def passed(i: Int) -> Int:
        total.set(total.value + i)
        return whole[i]

    b.chase(Int(b, "3"), passed)  # 3, 1, then 0
    out[1] = total.value.real()
    rounds = b.counter(0)
    with b.forever() as leave:
        rounds.set(rounds.value + 1)
        leave(rounds.value >= 3)
    out[2] = rounds.value.real()
    changes = b.variable(5.0)
    with b.when(b.count("n") > 4):
        changes.set(changes.value - 4.0)
    with b.when(b.count("n") > 5):
        changes.set(100.0)
    out[3] = changes.value
    out[4], out[5] = 0.0, 0.0
    with b.loop(3) as i:
        b.switch(i, [(0, lambda: _add(b, 4, 3.0)), (2, lambda: _add(b, 4, 4.0))])
    b.finish()


def _add(b: Builder, entry: int, value: float) -> None:
    out = b.memory("out")
    out[entry] = out[entry] + value


@means(lambda x: [f(v) for v in (*x, 2.0**20) for f in (math.sin, math.cos)])
def angles(b: Builder) -> None:
    out, x = b.memory("out"), b.memory("x")
    for i in range(len(X) + 1):
        out[2 * i], out[2 * i + 1] = sincos(b, x[i] if i < len(X) else b.constant(2.0**20))
    b.finish()


@means(lambda x: [x[3], x[4], 0.0, 1.0])
def places(b: Builder) -> None:
    x, out, n = b.memory("x"), b.memory("out"), b.count("n")
    out[0] = x.at(n - 4, 3)[0]
    out[1] = x.at(2, 2)[n - 5]
    good, bad = finite_array(b, x, n, b.constant(0.0)), finite_array(b, x, n, b.constant(math.inf))
    out[2], out[3] = good.is_nan().pick(1.0, 0.0), (bad - bad).is_nan().pick(1.0, 0.0)
    b.finish()


@means(lambda x: [*(2.0 * v + x[0] for v in x), sum(x[:7]), max(map(abs, x)), 7.5, *x, *x[::-1], x[2], *[x[3]] * 8])
def entries(b: Builder) -> None:
    """Loops over the entries of arrays, several at a time where there is one state in a register."""
    x, out, n = b.memory("x"), b.memory("out"), b.count("n")
    first = x[0]

    def double(j: Int, given: Real) -> None:
        out[j] = x[j] * 2.0 + given

    each(b, n + 3, double, first)
    out[8] = sum_of(b, n + 2, lambda j: x[j])
    out[9] = largest_of(b, n + 3, lambda j: x[j].abs())
    out[10] = largest_of(b, Int(b, "3"), lambda j, y: y, b.constant(7.5))
    copy(b, x, out.at(11), n + 3)
    with b.side_by_side() as lanes:
        for k in range(0, 8, lanes):
            out[19 + k] = x.gathered([Int(b, str(7 - k - j)) for j in range(lanes)])[0]
            out[28 + k] = x.everywhere(3)
    out[27] = x[2]
    b.finish()


def expected_of(name: str, x: np.ndarray) -> np.ndarray:
    return np.array(PROGRAMS[name][1](x.tolist()))


def by_llvm(program: Program, x: np.ndarray, entries: int, width: int) -> np.ndarray:
    """Results of shape (entries, width) for numbers of shape (entries, width)."""
    backend = backend_named("llvm")
    memory = backend.memory(CallLists(width, {"x": len(x), "out": entries}, {}, {}), LAYOUT, {})
    memory.point("whole", np.array(WHOLE, dtype=np.int64))
    memory.set(n=N)
    memory.set_real(a=A)
    memory.buffers["x"][:x.size] = x.ravel()
    backend.driver(program, LAYOUT, width)(memory)
    return memory.buffers["out"][:entries * width].reshape(entries, width).copy()


@pytest.mark.parametrize("width", (1, 2, 4, 8))
@pytest.mark.parametrize("name", PROGRAMS)
def test_in_lanes(name: str, width: int) -> None:
    lanes = X[:, None] * (1.0 + 0.125 * np.arange(width))
    want = np.array([expected_of(name, lane) for lane in lanes.T]).T
    got = by_llvm(PROGRAMS[name][0], lanes, len(want), width)
    np.testing.assert_allclose(got, want, rtol=4e-16, atol=2e-16)


def by_c(program: Program, x: np.ndarray, entries: int, folder: Path, real: str) -> np.ndarray:
    unit = CUnit("program", real)
    pointers = {"x": Pointer("x"), "out": Pointer("out", False), "whole": Pointer("whole")}
    unit.program("int run", [f"const {real} x[]", f"{real} out[]", "const int whole[]", f"{real} a"],
                 Arguments(pointers, {"n": N}, {"a": "a"}), program)
    (folder / "run.h").write_text(f"int run(const {real} x[], {real} out[], const int whole[], {real} a);\n")
    (folder / "run.c").write_text(unit.source("run.h"))
    done = children.run([str(COMPILER), *FLAGS, "-shared", "-fPIC", folder / "run.c", "-o", folder / "run.so", "-lm"])
    assert done.returncode == 0, done.stderr[:4000]
    kind = np.float64 if real == "double" else np.float32
    given, out, whole = x.astype(kind), np.full(entries, np.nan, kind), np.array(WHOLE, dtype=np.int32)
    a = ctypes.c_double(A) if real == "double" else ctypes.c_float(A)
    status = ctypes.CDLL(str(folder / "run.so")).run(*(ctypes.c_void_p(v.ctypes.data) for v in (given, out, whole)), a)
    assert status == 0
    return out


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
@pytest.mark.parametrize("real", ("double", "float"))
@pytest.mark.parametrize("name", PROGRAMS)
def test_in_c(name: str, real: str, tmp_path: Path) -> None:
    want = expected_of(name, X)
    if name == "angles" and real == "float":
        pytest.skip("the sine written here is for doubles; floats have that of the C library")
    got = by_c(PROGRAMS[name][0], X, len(want), tmp_path, real)
    exact = real == "double"
    np.testing.assert_allclose(got, want, rtol=4e-16 if exact else 2e-7, atol=2e-16 if exact else 1e-7)


def test_the_same_sine_to_the_last_bit(tmp_path: Path) -> None:
    """Its polynomials are written once; only fused operations may differ, by one unit in the last place."""
    if COMPILER is None:
        pytest.skip("there is no C compiler")
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.uniform(-30, 30, 7), [1e5]])
    ours, c = by_llvm(angles, x[:, None], 18, 1)[:, 0], by_c(angles, x, 18, tmp_path, "double")
    assert np.abs(ours - c).max() <= 2.3e-16


def test_what_is_known_is_not_printed() -> None:
    """Integers that are known are computed while C is printed, and code that nothing needs is left out."""
    unit = CUnit("program", "double")
    arguments = Arguments({"x": Pointer("x"), "out": Pointer("out", False)}, {"n": N})

    def program(b: Builder) -> None:
        x, out, n = b.memory("x"), b.memory("out"), b.count("n")
        x[7] * 2.0  # nobody wants it
        with b.when(n < 3):
            out[0] = x[0]
        with b.loop(n - 5) as i:
            out[i] = x[i]
        out[n - 4] = x[n * 2 - 9] + 1.0
        b.finish()

    unit.program("int run", ["const double *x", "double *out"], arguments, program)
    first, second, *rest = (line.strip() for line in unit.functions[0].splitlines()[2:])
    assert first.endswith("= x[1];") and second.endswith("+ 1.0;")
    assert rest == [f"out[1] = {second.split()[2]};", "return 0;", "}"]


def test_switching_refuses_nothing_but_bad_numbers() -> None:
    """Which variant served is for the caller to remember: the program writes it back, and keeps nothing."""
    unit = CUnit("program", "double")
    pointers = {"x": Pointer("x"), "out": Pointer("out", False), "plan": Pointer("plan", False)}
    arguments = Arguments(pointers, {"n_one": 1, "n_two": 1}, {}, {"one": ["one(x, out);"], "two": ["two(x, out);"]})
    unit.program("int run", ["const double *x", "double *out", "int *plan"], arguments, lambda b: switching(
        b, [(b.memory("x"), 3)], [Real(b, "1.0")], ["one", "two"], (b.memory("out"), 2), b.integers_at("plan")))
    text = unit.functions[0]
    assert text.index("x[") < text.index("one(x, out);") < text.index("two(x, out);") < text.index("plan[0] =")
    assert "static" not in text
