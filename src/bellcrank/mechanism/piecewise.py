"""Piecewise polynomials through the points of a table: slopes by the usual rules, and what lies beyond the ends.

Every kind is a cubic on each interval given by values and slopes at its ends (Hermite): the linear one has the slope of
the chord. Slopes of the others: the cubic spline without a knot beside the ends, or the periodic one; H. Akima, "A new
method of interpolation and smooth curve fitting based on local procedures", J. ACM 17 (1970); F. N. Fritsch and J.
Butland, "A method for constructing local monotone piecewise cubic interpolants", SIAM J. Sci. Stat. Comput. 5 (1984).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["BEYOND", "KINDS", "pieces", "surface_pieces"]

Floats = npt.NDArray[np.float64]

#: kinds of interpolation with the fewest points each needs
KINDS = {"linear": 2, "cubic": 4, "akima": 3, "monotone": 3}
#: what may be beyond the ends
BEYOND = ("hold", "linear", "error", "periodic")
#: how many points to each side a slope may depend on by the local rules
_NEIGHBORS = 3


def slopes(kind: str, x: Floats, y: Floats, periodic: bool = False) -> Floats:
    """Slopes at all points, along the first axis of y; the same at both ends of what repeats."""
    from scipy.interpolate import Akima1DInterpolator, CubicSpline, PchipInterpolator

    if periodic:
        y = np.concatenate([y[:-1], y[:1]])  # the same to the last bit
        if kind == "cubic":
            return np.array(CubicSpline(x, y, axis=0, bc_type="periodic")(x, 1), dtype=np.float64)
        more, period = min(_NEIGHBORS, len(x) - 1), x[-1] - x[0]
        wide = np.concatenate([x[-1 - more:-1] - period, x, x[1:1 + more] + period])
        return slopes(kind, wide, np.concatenate([y[-1 - more:-1], y, y[1:1 + more]]))[more:-more]
    make: Callable[..., Any] = {"cubic": CubicSpline, "akima": Akima1DInterpolator, "monotone": PchipInterpolator
                                   }[kind]
    return np.array(make(x, y, axis=0)(x, 1), dtype=np.float64)


def pieces(kind: str, beyond: str, x: Floats, y: Floats) -> Floats:
    """Coefficients (len(x) + 1, ..., 4) of powers of the distance from `origins`: the pieces below, between and above
    the points; y is (len(x), ...)."""
    h = np.diff(x).reshape(-1, *(1,) * (y.ndim - 1))
    rise = np.diff(y, axis=0) / h
    if kind == "linear":
        inner = np.stack([y[:-1], rise, 0.0 * rise, 0.0 * rise], axis=-1)
    else:
        s = slopes(kind, x, y, beyond == "periodic")
        inner = np.stack([y[:-1], s[:-1], (3.0 * rise - 2.0 * s[:-1] - s[1:]) / h,
                          (s[:-1] + s[1:] - 2.0 * rise) / h**2], axis=-1)
    return np.concatenate([_beyond(beyond, inner[:1], 0.0), inner, _beyond(beyond, inner[-1:], float(x[-1] - x[-2]))])


def _beyond(beyond: str, piece: Floats, at: float) -> Floats:
    """The polynomial that goes on from a piece at a place of it."""
    a, b, c, d = (piece[..., k] for k in range(4))
    value, slope = a + at * (b + at * (c + at * d)), b + at * (2.0 * c + at * 3.0 * d)
    none = 0.0 * value
    first = np.full_like(value, np.nan) if beyond == "error" else value
    return np.stack([first, slope if beyond == "linear" else none, none, none], axis=-1)


def surface_pieces(kind: str, beyond: str, x: Floats, y: Floats, z: Floats) -> Floats:
    """Coefficients (len(x) + 1, len(y) + 1, 4, 4) of powers of both distances, z is (len(x), len(y)): the rule along x,
    and then along y of what came out."""
    inner = "hold" if beyond == "error" else beyond
    along_x = pieces(kind, inner, x, z)  # (nx + 1, ny, 4)
    both = np.moveaxis(pieces(kind, inner, y, np.moveaxis(along_x, 1, 0)), 0, 1)  # (nx + 1, ny + 1, 4 of x, 4 of y)
    if beyond == "error":  # last, as splines cannot be made of NaN
        both[[0, -1], :, 0, 0] = both[:, [0, -1], 0, 0] = np.nan
    return both
