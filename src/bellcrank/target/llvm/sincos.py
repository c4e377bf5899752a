"""Sine and cosine together, in any number of lanes, to about one unit in the last place.

Reduction: x = k pi/2 + y with pi/2 split so that the three leading products are exact for |k| < 2^20; the
rounding error of y is carried along. Beyond 2^19 rad the C library takes over, lane by lane: full accuracy
for any angle at no cost for the usual ones. The polynomials interpolate sin and cos on |y| <= pi/4 at
Chebyshev nodes in y^2 (error 1.4e-17).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bellcrank.target.llvm.emit import Emitter

__all__ = ["emit_sincos"]

_LIMIT = 2.0**19
_MAGIC = 1.5 * 2.0**52  # adding it rounds to a whole number, kept in the low bits
_TWO_OVER_PI = 0.6366197723675814
_PIO2 = tuple(float.fromhex(x) for x in (
    "0x1.921fb54400000p+0", "0x1.0b4611a600000p-34", "0x1.3198a2e000000p-69", "0x1.b839a252049c1p-104"))
_MINUS_SIN = (0.16666666666666666, -0.008333333333330918, 0.00019841269836712495, -2.755731607868067e-06,
              2.5051126876085338e-08, -1.5917771759341917e-10)
_COS = (0.041666666666666664, -0.0013888888888887378, 2.4801587298736863e-05, -2.755731725679604e-07,
        2.087614315990944e-09, -1.1382408754153254e-11)


def emit_sincos(e: Emitter, x: str) -> tuple[str, str]:
    """Instructions for (sin x, cos x)."""
    e.declare(f"declare {e.type} @llvm.fabs.{e.suffix}({e.type})")
    size = e.do(f"call {e.type} @llvm.fabs.{e.suffix}({e.type} {x})")
    large = some = e.do(f"fcmp ogt {e.type} {size}, {e.const(_LIMIT)}")
    if e.width > 1:
        mask = e.do(f"bitcast <{e.width} x i1> {large} to i{e.width}")
        some = e.do(f"icmp ne i{e.width} {mask}, 0")
    usual, rare, done = e.label(), e.label(), e.label()
    fast = _usual(e, x)
    e.goto(usual)
    e.start(usual)
    e.put(f"br i1 {some}, label %{rare}, label %{done}, !prof !0")
    e.start(rare)  # only in the lanes that need it: what others get must not depend on their neighbours
    condition = "i1" if e.width == 1 else f"<{e.width} x i1>"
    slow = [e.do(f"select {condition} {large}, {e.type} {e.by_lane(name, x)}, {e.type} {f}")
            for name, f in zip(("sin", "cos"), fast, strict=True)]
    e.goto(done)
    e.start(done)
    s, c = (e.do(f"phi {e.type} [ {f}, %{usual} ], [ {g}, %{rare} ]") for f, g in zip(fast, slow, strict=True))
    return s, c


def _usual(e: Emitter, x: str) -> tuple[str, str]:
    def op(name: str, a: str, b: str) -> str:
        return e.arith(name, a, b, "")

    shifted = op("fadd", op("fmul", x, e.const(_TWO_OVER_PI)), e.const(_MAGIC))
    k = op("fsub", shifted, e.const(_MAGIC))
    bits = e.do(f"bitcast {e.type} {shifted} to {e.integer}")
    p1, p2, p3, p4 = (e.const(p) for p in _PIO2)
    first = op("fsub", x, op("fmul", k, p1))  # exact
    part, small_part = op("fmul", k, p2), op("fmul", k, p3)  # exact
    middle = op("fsub", first, part)
    high = op("fsub", middle, small_part)
    lost = op("fsub", part, op("fsub", first, middle))  # what rounding took from the two differences
    lost = op("fadd", lost, op("fsub", small_part, op("fsub", middle, high)))
    lost = op("fadd", lost, op("fmul", k, p4))
    y = op("fsub", high, lost)  # subtracting +0 keeps the sign of a zero
    low = op("fsub", op("fsub", high, y), lost)
    z = op("fmul", y, y)
    half = op("fmul", z, e.const(0.5))
    # sin(y + low) = y - (y z (-S(z)) - low (1 - z/2))
    tail = op("fsub", op("fmul", half, low), low)
    s = op("fsub", y, _fma(e, op("fmul", y, z), _polynomial(e, _MINUS_SIN, z), tail))
    # cos(y + low) = (1 - z/2) + (its rounding error + z^2 C(z) - y low)
    one = e.const(1.0)
    w = op("fsub", one, half)
    small = op("fsub", op("fsub", op("fsub", one, w), half), op("fmul", y, low))
    c = op("fadd", w, _fma(e, op("fmul", z, z), _polynomial(e, _COS, z), small))
    return _quadrant(e, bits, s, c)


def _fma(e: Emitter, a: str, b: str, c: str) -> str:
    return e.arith("fadd", e.arith("fmul", a, b), c)


def _polynomial(e: Emitter, coefficients: tuple[float, ...], z: str) -> str:
    """Estrin's scheme: three short chains instead of one long one."""
    a, b, c, d, f, g = (e.const(v) for v in coefficients)
    z2 = e.arith("fmul", z, z, "")
    low, middle, high = _fma(e, b, z, a), _fma(e, d, z, c), _fma(e, g, z, f)
    return _fma(e, _fma(e, high, z2, middle), z2, low)


def _quadrant(e: Emitter, bits: str, s: str, c: str) -> tuple[str, str]:
    condition = "i1" if e.width == 1 else f"<{e.width} x i1>"
    odd = e.do(f"trunc {e.integer} {bits} to {condition}")
    sine = e.do(f"select {condition} {odd}, {e.type} {c}, {e.type} {s}")
    cosine = e.do(f"select {condition} {odd}, {e.type} {s}, {e.type} {c}")
    following = e.do(f"add {e.integer} {bits}, {e.integers(1)}")
    return _signed(e, sine, bits), _signed(e, cosine, following)


def _signed(e: Emitter, value: str, bits: str) -> str:
    """Change the sign where the second bit is set."""
    shifted = e.do(f"shl {e.integer} {bits}, {e.integers(62)}")
    sign = e.do(f"and {e.integer} {shifted}, {e.integers(-(2**63))}")
    raw = e.do(f"bitcast {e.type} {value} to {e.integer}")
    changed = e.do(f"xor {e.integer} {raw}, {sign}")
    return e.do(f"bitcast {e.integer} {changed} to {e.type}")
