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
    return _hermite(beyond, x, y, None if kind == "linear" else slopes(kind, x, y, beyond == "periodic"))


def _hermite(beyond: str, x: Floats, y: Floats, s: Floats | None) -> Floats:
    """The pieces with the values y and the slopes s at the points, or straight ones."""
    h = np.diff(x).reshape(-1, *(1,) * (y.ndim - 1))
    rise = np.diff(y, axis=0) / h
    if s is None:
        inner = np.stack([y[:-1], rise, 0.0 * rise, 0.0 * rise], axis=-1)
    else:
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
    """Coefficients (len(x) + 1, len(y) + 1, 4, 4) of powers of both distances, z is (len(x), len(y)).

    Each piece is a bicubic given by values, slopes along both axes and twists at its corners, so that neighbours have
    the same values and slopes all along the line between them. The rule makes the slopes along each line of the grid.
    """
    inner = "hold" if beyond == "error" else beyond
    if kind == "linear":
        along_x, rates = _hermite(inner, x, z, None), None  # (nx + 1, ny, 4)
    else:
        periodic = beyond == "periodic"
        over_x, over_y = slopes(kind, x, z, periodic), slopes(kind, y, z.T, periodic).T
        twists = _twists(kind, slopes(kind, y, over_x.T, periodic).T, slopes(kind, x, over_y, periodic))
        along_x, rates = _hermite(inner, x, z, over_x), _hermite(inner, x, over_y, twists)
    both = _hermite(inner, y, np.moveaxis(along_x, 1, 0), None if rates is None else np.moveaxis(rates, 1, 0))
    both = np.moveaxis(both, 0, 1)  # (nx + 1, ny + 1, 4 of x, 4 of y)
    if beyond == "error":  # last, as splines cannot be made of NaN
        both[[0, -1], :, 0, 0] = both[:, [0, -1], 0, 0] = np.nan
    return both


def _twists(kind: str, first: Floats, second: Floats) -> Floats:
    """The mixed derivative at the points, from the rule along one axis for slopes along the other, both ways: these
    are the same for splines. Of the monotone kind the smaller one if both have one sign, else none, so that the slope
    across every line of the grid lies between those at its points."""
    if kind != "monotone":
        return 0.5 * (first + second)
    return np.where(first * second > 0.0, np.where(np.abs(first) < np.abs(second), first, second), 0.0)
