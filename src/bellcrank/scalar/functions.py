"""Elementary functions of floats, NumPy arrays, traced scalars and jets (public as `bellcrank.math`).

Motion laws and force laws written with these run unchanged on numbers and inside compiled code. A few are operations
of the graph; the others are written with those, alike for all kinds of numbers, so that what is compiled, or written
to a file, gives what the law itself gives.

Arguments that are not numbers, and numbers for which a function has no value, raise a `ModelError` that names the
function; elements of arrays without a value become nan or infinite, with the warning of NumPy. Each function catches
for itself: a wrapper around all would cost a call more for every operation that is traced.
"""

from __future__ import annotations

import math
from typing import Any

from bellcrank.arguments import must_be
from bellcrank.errors import ModelError
from bellcrank.scalar.branches import note_branch
from bellcrank.scalar.graph import ATAN2, COS, EXP, LESS, LOG, SIN, SQRT, TANH, Number, Scalar

__all__ = ["abs", "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "hypot", "log", "maximum", "minimum", "pi",
           "select_less", "sign", "sin", "sinh", "sqrt", "tan", "tanh"]

pi = math.pi
#: constants; a number of type `numpy.float64` is the value of one state, and follows NumPy's rules (1 / 0 is infinite)
_PLAIN = frozenset((float, int))


def _refusal(name: str, error: Exception, *operands: Any) -> ModelError:
    """The error of a function that failed; of those that call each other, the outermost is named."""
    while isinstance(error, ModelError) and isinstance(error.__cause__, Exception):
        error = error.__cause__
    try:
        for x in operands:
            must_be(f"bellcrank.math.{name}: an argument", "Number | ArrayLike", x)
    except ModelError as unfit:
        return unfit
    shown = ", ".join(f"array of shape {x.shape}" if getattr(x, "shape", ()) else f"{x}" for x in operands)
    return ModelError(f"bellcrank.math.{name}({shown}) has no value: {error}")


def _apply(op: str, real: Any, x: Number) -> Number:
    if type(x) is Scalar:
        return x.graph.node(op, x)
    try:
        if type(x) in _PLAIN:
            return real(x)
        method = getattr(x, op, None)  # a Jet knows its own rules
        if method is not None:
            return method()
        import numpy as np

        return getattr(np, op)(x)
    except Exception as error:
        raise _refusal(op, error, x) from error


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
    try:
        return sin(x) / cos(x)
    except Exception as error:
        raise _refusal("tan", error, x) from error


def tanh(x: Number) -> Number:
    """Hyperbolic tangent, the usual smooth sign function of friction laws."""
    return _apply(TANH, math.tanh, x)


def atan2(y: Number, x: Number) -> Number:
    """The angle of the direction (x, y) [rad], between -pi and pi."""
    try:
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
    except Exception as error:
        raise _refusal("atan2", error, y, x) from error


def select_less(a: Number, b: Number, if_less: Number, otherwise: Number) -> Number:
    """``if_less if a < b else otherwise``, also where `a` and `b` are not known yet."""
    try:
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
    except Exception as error:
        raise _refusal("select_less", error, a, b, if_less, otherwise) from error


# -- written with the others ------------------------------------------------------------------------
def abs(x: Number) -> Number:
    """Absolute value. Its rate jumps at zero."""
    try:
        return select_less(x, 0.0, -x, x)
    except Exception as error:
        raise _refusal("abs", error, x) from error


def sign(x: Number) -> Number:
    """-1, 0 or 1. It jumps at zero: `tanh(x / width)` is the smooth one."""
    try:
        return select_less(x, 0.0, -1.0, select_less(0.0, x, 1.0, 0.0))
    except Exception as error:
        raise _refusal("sign", error, x) from error


def minimum(a: Number, b: Number) -> Number:
    """The smaller of two numbers."""
    try:
        return select_less(b, a, b, a)
    except Exception as error:
        raise _refusal("minimum", error, a, b) from error


def maximum(a: Number, b: Number) -> Number:
    """The larger of two numbers."""
    try:
        return select_less(a, b, b, a)
    except Exception as error:
        raise _refusal("maximum", error, a, b) from error


def asin(x: Number) -> Number:
    """The angle [rad] between -pi/2 and pi/2 whose sine is x."""
    try:
        return atan2(x, sqrt((1.0 - x) * (1.0 + x)))
    except Exception as error:
        raise _refusal("asin", error, x) from error


def acos(x: Number) -> Number:
    """The angle [rad] between 0 and pi whose cosine is x."""
    try:
        return atan2(sqrt((1.0 - x) * (1.0 + x)), x)
    except Exception as error:
        raise _refusal("acos", error, x) from error


def atan(x: Number) -> Number:
    """The angle [rad] between -pi/2 and pi/2 whose tangent is x."""
    try:
        return atan2(x, 1.0)
    except Exception as error:
        raise _refusal("atan", error, x) from error


def cosh(x: Number) -> Number:
    """Hyperbolic cosine."""
    try:
        return 0.5 * (exp(x) + exp(-x))
    except Exception as error:
        raise _refusal("cosh", error, x) from error


def sinh(x: Number) -> Number:
    """Hyperbolic sine, accurate near zero, too."""
    try:
        return tanh(x) * cosh(x)
    except Exception as error:
        raise _refusal("sinh", error, x) from error


def hypot(x: Number, y: Number) -> Number:
    """The length sqrt(x^2 + y^2)."""
    try:
        return sqrt(x * x + y * y)
    except Exception as error:
        raise _refusal("hypot", error, x, y) from error
