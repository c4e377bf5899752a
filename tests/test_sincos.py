"""Compiled sine and cosine: within one unit in the last place for every angle, in any number of lanes."""

from __future__ import annotations

import functools
import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest

from assembly_text import unrolled_text
from bellcrank.scalar import functions as fn
from bellcrank.scalar.graph import Graph
from bellcrank.target.llvm import jit
from bellcrank.target.llvm.kernel import Kernel

Floats = npt.NDArray[np.float64]
WIDTHS = (1, 2, 4, 8)
LIMIT = 2.0**19  # the largest angle that must not need the C library's help to be right
CLOSEST = 5.319372648326541e255  # of all doubles the closest to a multiple of pi/2
extended = pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is double here")


@functools.cache
def kernel(width: int, which: str = "both") -> Kernel:
    x = Graph().leaf(("x", 0))
    outputs = {"both": [fn.sin(x), fn.cos(x)], "sin": [fn.sin(x)], "cos": [fn.cos(x)]}[which]
    return Kernel(jit.load(unrolled_text(outputs, {"x": 1}, width)), {"x": 1}, len(outputs), width)


def compute(x: npt.ArrayLike, width: int, which: str = "both") -> tuple[Floats, bool]:
    """Sine and cosine, shape (n, 2), and whether the kernel calls everything finite."""
    k = kernel(width, which)
    angles = np.ascontiguousarray(x, dtype=float)
    out = np.full((len(angles), k.out_size), 777.0)
    finite = k.run([angles], k.packed_strides, out, 0, len(angles))
    return out, finite


def wide_values(x: Floats) -> npt.NDArray[np.longdouble]:
    """Sine and cosine with mantissas of 64 bits; their own error is 2^-11 units of the last place of doubles."""
    wide = x.astype(np.longdouble)
    return np.stack([np.sin(wide), np.cos(wide)], axis=-1)


def ulps(got: Floats, wanted: npt.NDArray[np.longdouble]) -> float:
    """The largest error in units of the last place."""
    return float((np.abs(got - wanted) / np.spacing(np.abs(wanted.astype(float)))).max())


def near_quarter_turns(quarters: npt.ArrayLike) -> Floats:
    """The doubles next to k pi/2, three on each side: where a reduction loses digits."""
    half_pi = np.longdouble("1.57079632679489661923132169163975144")
    middle = (np.asarray(quarters).astype(np.longdouble) * half_pi).astype(float)
    found = [middle]
    for direction in (math.inf, -math.inf):
        x = middle
        for _ in range(3):
            x = np.nextafter(x, direction)
            found.append(x)
    return np.concatenate(found)


# -- exact values with whole numbers ----------------------------------------------------------
BITS = 1500


@functools.cache
def quarter_turn() -> int:
    """pi/2 times 2^BITS, by Machin's formula."""
    scale = 1 << (BITS + 20)

    def arctan_of_inverse(n: int) -> int:
        total, term, k = 0, scale // n, 1
        while term:
            total += term // k if k % 4 == 1 else -(term // k)
            term //= n * n
            k += 2
        return total

    return (2 * (4 * arctan_of_inverse(5) - arctan_of_inverse(239))) >> 20


def exact(x: float) -> tuple[Fraction, Fraction]:
    """Sine and cosine of a double, right to hundreds of bits."""
    numerator, denominator = x.as_integer_ratio()
    turn, one = quarter_turn(), 1 << BITS
    scaled = (numerator << BITS) // denominator
    k = (2 * scaled + turn) // (2 * turn)
    y = scaled - k * turn
    if k == 0 and abs(x) < 1e-200:
        return Fraction(x), Fraction(1)
    sine, cosine, term, n = 0, 0, one, 0
    while term:  # the series of exp(i y)
        part = term if n % 4 < 2 else -term
        if n % 2:
            sine += part
        else:
            cosine += part
        n += 1
        term = term * y // (n << BITS) if abs(term * y) >= n << BITS else 0
    quadrant = ((sine, cosine), (cosine, -sine), (-sine, -cosine), (-cosine, sine))[k % 4]
    return Fraction(quadrant[0], one), Fraction(quadrant[1], one)


def exact_ulps(got: Floats, x: float) -> float:
    """The larger error of a sine and a cosine."""
    return max(float(abs(Fraction(float(g)) - w) / Fraction(float(np.spacing(abs(float(w))))))
               for g, w in zip(got, exact(x), strict=True))


def test_the_exact_values_themselves() -> None:
    for x in (0.0, 0.5, -1.25, 3.0, 100.0, -1e5):
        sine, cosine = exact(x)
        assert abs(sine * sine + cosine * cosine - 1) < Fraction(1, 2**1000)
        assert float(sine) == pytest.approx(math.sin(x), rel=2e-16, abs=0.0)
        assert float(cosine) == pytest.approx(math.cos(x), rel=2e-16, abs=0.0)
    assert float(exact(1e22)[0]) == -0.8522008497671888  # a classic (K. C. Ng)


@extended
def test_the_extended_values_themselves() -> None:
    for x in (413441.44719405076, 229174.47169039503, 1.5707963267948966, 0.7, 1e-5, 1e22):
        wide = np.longdouble(x)
        for got, wanted in zip((np.sin(wide), np.cos(wide)), exact(x), strict=True):
            high = float(got)
            off = abs(Fraction(high) + Fraction(float(got - high)) - wanted)
            assert off <= abs(wanted) / 2**62


# -- accuracy ---------------------------------------------------------------------------------
@extended
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [1e-8, 1e-3, math.pi / 4, math.pi, 100.0, 1e4, LIMIT])
def test_random_angles(size: float, width: int, rng: np.random.Generator) -> None:
    x = np.concatenate([rng.uniform(-size, size, 40_000), np.linspace(-size, size, 10_001)])
    got, finite = compute(x, width)
    assert finite
    assert ulps(got, wide_values(x)) <= 1.0


@functools.cache
def all_quarter_turns() -> tuple[Floats, npt.NDArray[np.longdouble]]:
    x = near_quarter_turns(np.arange(1, 333_773))
    x = x[x <= LIMIT]
    return x, wide_values(x)


@extended
@pytest.mark.parametrize("width", WIDTHS)
def test_near_all_quarter_turns(width: int) -> None:
    x, wanted = all_quarter_turns()
    got, finite = compute(x, width)
    assert finite
    assert ulps(got, wanted) <= 1.0
    back, finite = compute(-x, width)
    assert finite
    assert ulps(back * [-1.0, 1.0], wanted) <= 1.0


@extended
@pytest.mark.parametrize("width", WIDTHS)
def test_near_eighths_of_a_turn(width: int) -> None:
    """Where the next quarter turn becomes the nearer one."""
    x = near_quarter_turns(np.arange(-20_001, 20_001, 2) / 2)
    got, finite = compute(x, width)
    assert finite
    assert ulps(got, wide_values(x)) <= 1.0


@pytest.mark.parametrize("width", WIDTHS)
def test_worst_cases_against_exact_values(width: int) -> None:
    rng = np.random.default_rng(5)
    hard = [math.pi / 2, math.pi, 1.5 * math.pi, 2 * math.pi, 22.0, 355.0, 103993.0,
            138200.2316277418, 229174.47169039503, 276400.4632554836, 413441.44719405076, 458348.94338079006,
            LIMIT, math.nextafter(LIMIT, 0), math.nextafter(LIMIT, 1e9), LIMIT / 2, math.nextafter(LIMIT / 2, 1e9),
            *rng.uniform(0.0, LIMIT, 100).tolist(), *rng.uniform(0.0, 4.0, 100).tolist()]
    x = [s * v for v in hard for s in (1.0, -1.0)]
    got, finite = compute(x, width)
    assert finite
    worst = max(zip((exact_ulps(g, v) for g, v in zip(got, x, strict=True)), x, strict=True))
    assert worst[0] <= 1.0, worst


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("x", [1e10, 1e15, 1e22, 2.0**60, 1e100, 1e300, 1.7976931348623157e308, CLOSEST])
def test_huge_angles(x: float, width: int) -> None:
    for angle in (x, -x, math.nextafter(x, 0.0)):
        got, finite = compute([angle] * (width + 1), width)
        assert finite
        assert (got == got[0]).all()
        for g, library in zip(got[0], (math.sin(angle), math.cos(angle)), strict=True):
            assert abs(g - library) <= np.spacing(abs(library))
        if abs(angle) != CLOSEST:  # there glibc 2.36 itself is 8 units off
            assert exact_ulps(got[0], angle) <= 1.0


@pytest.mark.parametrize("width", [2, 4, 8])
def test_huge_and_usual_angles_side_by_side(width: int) -> None:
    x = [0.5, 1e22, -2.0, 3.0, 1e300, 4.0, 1e-9, -1e10, 6.0, 5e5, 6e5][:width + 3]
    got, finite = compute(x, width)
    assert finite
    for g, v in zip(got, x, strict=True):
        assert exact_ulps(g, v) <= 1.0


@pytest.mark.parametrize("width", WIDTHS)
def test_tiny_angles(width: int) -> None:
    """sin x rounds to x and cos x to 1, down to the smallest double."""
    tiny = [5e-324, 1e-323, 1e-310, 2.2250738585072014e-308, 2.225073858507201e-308, 1e-300, 1e-160, 1e-100, 1e-20,
            1e-9, 1.4e-8 / 2]
    x = np.array([*tiny, *(-v for v in tiny)])
    got, finite = compute(x, width)
    assert finite
    np.testing.assert_array_equal(got[:, 0], x)
    np.testing.assert_array_equal(got[:, 1], 1.0)


@pytest.mark.parametrize("width", WIDTHS)
def test_zero_keeps_its_sign(width: int) -> None:
    x = np.array([0.0, -0.0] * 5)
    got, finite = compute(x, width)
    assert finite
    np.testing.assert_array_equal(got, [[0.0, 1.0]] * 10)
    np.testing.assert_array_equal(np.signbit(got[:, 0]), np.signbit(x))


@pytest.mark.parametrize("width", WIDTHS)
def test_odd_and_even(width: int, rng: np.random.Generator) -> None:
    x = np.concatenate([rng.uniform(0.0, 10.0, 1000), rng.uniform(0.0, LIMIT, 1000), [1e9, 1e20]])
    (there, _), (back, _) = compute(x, width), compute(-x, width)
    np.testing.assert_array_equal(back, there * [-1.0, 1.0])


# -- what is not finite -----------------------------------------------------------------------
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_nan_and_infinity(bad: float, width: int) -> None:
    n = 2 * width + 1
    for place in range(n):
        x = np.linspace(0.1, 3.0, n)
        x[place] = bad
        got, finite = compute(x, width)
        assert not finite
        assert np.isnan(got[place]).all()
        others = np.arange(n) != place
        assert all(exact_ulps(g, float(v)) <= 1.0 for g, v in zip(got[others], x[others], strict=True))


@pytest.mark.parametrize("width", WIDTHS)
def test_one_alone_is_the_same_as_both(width: int, rng: np.random.Generator) -> None:
    x = rng.uniform(-20.0, 20.0, 101)
    both, _ = compute(x, width)
    np.testing.assert_array_equal(compute(x, width, "sin")[0][:, 0], both[:, 0])
    np.testing.assert_array_equal(compute(x, width, "cos")[0][:, 0], both[:, 1])


def test_lanes_agree_with_one_another(rng: np.random.Generator) -> None:
    x = rng.uniform(-200_000.0, 200_000.0, 1001)
    reference, _ = compute(x, 1)
    for width in WIDTHS[1:]:
        np.testing.assert_array_equal(compute(x, width)[0], reference)
