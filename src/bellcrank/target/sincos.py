"""Sine and cosine together, in any number of lanes, to about one unit in the last place of a double.

Reduction: x = k pi/2 + y with pi/2 split so that the three leading products are exact for |k| < 2^20; the
rounding error of y is carried along. Beyond 2^19 rad the C library takes over, lane by lane: full accuracy
for any angle at no cost for the usual ones. The polynomials interpolate sin and cos on |y| <= pi/4 at
Chebyshev nodes in y^2 (error 1.4e-17).
"""

from __future__ import annotations

from bellcrank.target.program import Bits, Builder, Real

__all__ = ["sincos"]

_LIMIT = 2.0**19
_MAGIC = 1.5 * 2.0**52  # adding it rounds to a whole number, kept in the low bits
_TWO_OVER_PI = 0.6366197723675814
_PIO2 = tuple(float.fromhex(x) for x in (
    "0x1.921fb54400000p+0", "0x1.0b4611a600000p-34", "0x1.3198a2e000000p-69", "0x1.b839a252049c1p-104"))
_MINUS_SIN = (0.16666666666666666, -0.008333333333330918, 0.00019841269836712495, -2.755731607868067e-06,
              2.5051126876085338e-08, -1.5917771759341917e-10)
_COS = (0.041666666666666664, -0.0013888888888887378, 2.4801587298736863e-05, -2.755731725679604e-07,
        2.087614315990944e-09, -1.1382408754153254e-11)


def sincos(b: Builder, angle: Real) -> tuple[Real, Real]:
    """(sin, cos) of an angle."""
    x = angle.exact()
    large = x.abs() > _LIMIT
    some = large.any()
    fast = _usual(b, x)

    def slow() -> list[Real]:  # only in the lanes that need it: what others get must not depend on their neighbours
        return [large.pick(Real(b, b.library(name, x.operand)), f)
                for name, f in zip(("sin", "cos"), fast, strict=True)]

    s, c = b.choose_rarely(some, fast, slow)
    return s, c


def _usual(b: Builder, x: Real) -> tuple[Real, Real]:
    shifted = x * _TWO_OVER_PI + _MAGIC
    k = shifted - _MAGIC
    bits = shifted.bits()
    p1, p2, p3, p4 = _PIO2
    first = x - k * p1  # exact
    part, small_part = k * p2, k * p3  # exact
    middle = first - part
    high = middle - small_part
    lost = part - (first - middle)  # what rounding took from the two differences
    lost = lost + (small_part - (middle - high))
    lost = lost + k * p4
    y = high - lost  # subtracting +0 keeps the sign of a zero
    low = (high - y) - lost
    z = y * y
    half = z * 0.5
    # sin(y + low) = y - (y z (-S(z)) - low (1 - z/2))
    tail = half * low - low
    s = y - (y * z).fused(_polynomial(b, _MINUS_SIN, z), tail)
    # cos(y + low) = (1 - z/2) + (its rounding error + z^2 C(z) - y low)
    w = 1.0 - half
    small = ((1.0 - w) - half) - y * low
    c = w + (z * z).fused(_polynomial(b, _COS, z), small)
    return _quadrant(bits, s, c)


def _polynomial(b: Builder, coefficients: tuple[float, ...], z: Real) -> Real:
    """Estrin's scheme: three short chains instead of one long one."""
    a0, a1, a2, a3, a4, a5 = (b.constant(v) for v in coefficients)
    z2 = z * z
    low, middle, high = a1.fused(z, a0), a3.fused(z, a2), a5.fused(z, a4)
    return high.fused(z2, middle).fused(z2, low)


def _quadrant(bits: Bits, s: Real, c: Real) -> tuple[Real, Real]:
    odd = bits.odd()
    sine, cosine = odd.pick(c, s), odd.pick(s, c)
    following = bits + 1
    return _signed(sine, bits), _signed(cosine, following)


def _signed(value: Real, bits: Bits) -> Real:
    """Change the sign where the second bit is set."""
    sign = (bits << 62) & -(2**63)
    return (value.bits() ^ sign).real()
