"""Functions for motion and force laws; they work on numbers, arrays, and inside compiled code.

`select_less(a, b, x, y)` is the branch ``x if a < b else y``; Python's own ``abs`` works in laws, too.
"""

from bellcrank.scalar.functions import (
    abs,
    acos,
    asin,
    atan,
    atan2,
    cos,
    cosh,
    exp,
    hypot,
    log,
    maximum,
    minimum,
    pi,
    select_less,
    sign,
    sin,
    sinh,
    sqrt,
    tan,
    tanh,
)

__all__ = ["abs", "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "hypot", "log", "maximum", "minimum", "pi",
           "select_less", "sign", "sin", "sinh", "sqrt", "tan", "tanh"]
