"""Elementary functions of floats, NumPy arrays, traced scalars and jets (public as `bellcrank.math`).

Motion laws and force laws written with these run unchanged on numbers and inside compiled code. A few are operations
of the graph; the others are written with those, alike for all kinds of numbers, so that what is compiled, or written
to a file, gives what the law itself gives.
"""

from __future__ import annotations

import math
from typing import Any

from bellcrank.scalar.branches import note_branch
from bellcrank.scalar.graph import ATAN2, COS, EXP, LESS, LOG, SIN, SQRT, TANH, Number, Scalar

__all__ = ["abs", "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "hypot", "log", "maximum", "minimum", "pi",
           "select_less", "sign", "sin", "sinh", "sqrt", "tan", "tanh"]

pi = math.pi
#: constants; a number of type `numpy.float64` is the value of one state, and follows NumPy's rules (1 / 0 is infinite)
_PLAIN = frozenset((float, int))


def _apply(op: str, real: Any, x: Number) -> Number:
    if type(x) is Scalar:
        return x.graph.node(op, x)
    if type(x) in _PLAIN:
        return real(x)
    method = getattr(x, op, None)  # a Jet knows its own rules
    if method is not None:
        return method()
    import numpy as np

    return getattr(np, op)(x)


def sin(x: Number) -> Number:
    """Sine of an angle in radians."""
    return _apply(SIN, math.sin, x)


def cos(x: Number) -> Number:
    """Cosine of an angle in radians."""
    return _apply(COS, math.cos, x)


def sqrt(x: Number) -> Number:
    """Non-negative square root."""
    return _apply(SQRT, math.sqrt, x)


def exp(x: Number) -> Number:
    """Exponential function."""
    return _apply(EXP, math.exp, x)


def log(x: Number) -> Number:
    """Natural logarithm."""
    return _apply(LOG, math.log, x)


def tan(x: Number) -> Number:
    """Tangent of an angle in radians."""
    return sin(x) / cos(x)


def tanh(x: Number) -> Number:
    """Hyperbolic tangent, the usual smooth sign function of friction laws."""
    return _apply(TANH, math.tanh, x)


def atan2(y: Number, x: Number) -> Number:
    """The angle of the direction (x, y) [rad], between -pi and pi."""
    scalar = next((v for v in (y, x) if type(v) is Scalar), None)
    if scalar is not None:
        return scalar.graph.node(ATAN2, *(v if type(v) is Scalar else float(v) for v in (y, x)))
    jet = next((v for v in (y, x) if hasattr(v, "atan2")), None)
    if jet is not None:
        return jet.atan2(y, x)
    if type(y) in _PLAIN and type(x) in _PLAIN:
        return math.atan2(y, x)
    import numpy as np

    return np.arctan2(y, x)


def select_less(a: Number, b: Number, if_less: Number, otherwise: Number) -> Number:
    """``if_less if a < b else otherwise``, also where `a` and `b` are not known yet."""
    operands = (a, b, if_less, otherwise)
    scalar = next((x for x in operands if type(x) is Scalar), None)
    if scalar is not None:
        return scalar.graph.node(LESS, *(x if type(x) is Scalar else float(x) for x in operands))
    jet = next((x for x in operands if hasattr(x, "select_less")), None)
    if jet is not None:
        return jet.select_less(*operands)
    if all(type(x) in _PLAIN for x in operands):
        return if_less if a < b else otherwise
    import numpy as np

    if all(isinstance(x, (int, float)) for x in operands):  # one state: as fast as numbers, and never a constant
        return np.float64(if_less if a < b else otherwise)
    note_branch(a, b)
    return np.where(np.asarray(a) < np.asarray(b), if_less, otherwise)


# -- written with the others ------------------------------------------------------------------------
def abs(x: Number) -> Number:
    """Absolute value. Its rate jumps at zero."""
    return select_less(x, 0.0, -x, x)


def sign(x: Number) -> Number:
    """-1, 0 or 1. It jumps at zero: `tanh(x / width)` is the smooth one."""
    return select_less(x, 0.0, -1.0, select_less(0.0, x, 1.0, 0.0))


def minimum(a: Number, b: Number) -> Number:
    """The smaller of two numbers."""
    return select_less(b, a, b, a)


def maximum(a: Number, b: Number) -> Number:
    """The larger of two numbers."""
    return select_less(a, b, b, a)


def asin(x: Number) -> Number:
    """The angle [rad] between -pi/2 and pi/2 whose sine is x."""
    return atan2(x, sqrt((1.0 - x) * (1.0 + x)))


def acos(x: Number) -> Number:
    """The angle [rad] between 0 and pi whose cosine is x."""
    return atan2(sqrt((1.0 - x) * (1.0 + x)), x)


def atan(x: Number) -> Number:
    """The angle [rad] between -pi/2 and pi/2 whose tangent is x."""
    return atan2(x, 1.0)


def cosh(x: Number) -> Number:
    """Hyperbolic cosine."""
    return 0.5 * (exp(x) + exp(-x))


def sinh(x: Number) -> Number:
    """Hyperbolic sine, accurate near zero, too."""
    return tanh(x) * cosh(x)


def hypot(x: Number, y: Number) -> Number:
    """The length sqrt(x^2 + y^2)."""
    return sqrt(x * x + y * y)
