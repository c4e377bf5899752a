"""Tables: functions given by points, for laws, motions, cams and controllers.

Piecewise polynomials through the points of a table: slopes by the usual rules, and what lies beyond the ends.

Every kind is a cubic on each interval given by values and slopes at its ends (Hermite): the linear one has the slope of
the chord. Slopes of the others: the cubic spline without a knot beside the ends, or the periodic one; H. Akima, "A new
method of interpolation and smooth curve fitting based on local procedures", J. ACM 17 (1970); F. N. Fritsch and J.
Butland, "A method for constructing local monotone piecewise cubic interpolants", SIAM J. Sci. Stat. Comput. 5 (1984).
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.errors import FileError, ModelError, StateError, hint
from bellcrank.files.model_files import text_contents
from bellcrank.scalar.graph import Number, Scalar
from bellcrank.scalar.jet import Jet
from bellcrank.scalar.lookup import Constants, entry, floor, locate

__all__ = ["Table"]


# -- piecewise polynomials through the points of a table --------------------------------------------
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


# -- tables: functions given by points, for laws, motions, cams and controllers ---------------------
@checked_methods
@dataclass(frozen=True, init=False)
class Table:
    """A function of one or two numbers through given points, for floats, arrays, and inside compiled code.

    `points` are the arguments, rising, and `values` what the function is there; of two arguments, `points` is the pair
    of their lists and `values` has the shape (len(first), len(second)). `kind` says what is between the points:

    - "linear": straight lines;
    - "cubic": the smooth cubic spline (twice differentiable; it may overshoot);
    - "akima": piecewise cubic after Akima (once differentiable; little overshoot);
    - "monotone": piecewise cubic (PCHIP) that rises where the points rise and never overshoots; of two arguments along
      the lines of the grid, and by at most some per cent between them.

    Surfaces of the last three are bicubic pieces that meet with the same values and slopes.

    `extrapolate` says what is beyond the ends, and must be given: "hold" (the value at the end), "linear" (straight on
    with the slope at the end), "error" (an error that names the table) or "periodic" (it repeats; the first and the
    last value must be the same). `name` is what errors and files call it.

    Compiled code finds the piece by bisection among constants; derivatives are those of the pieces, exactly. Cost: some
    20 operations and a search, O(log points).

    >>> damper = Table([-1.0, 0.0, 0.5], [-900.0, 0.0, 700.0], extrapolate="linear", name="damper")
    >>> damper(0.25), damper(-2.0)
    (350.0, -1800.0)
    >>> round(Table([0, 1, 2, 3], [0, 1, 8, 27], kind="cubic", extrapolate="error")(1.5), 12)
    3.375
    """

    points: tuple[tuple[float, ...], ...]
    values: tuple[float, ...]
    kind: str
    extrapolate: str
    name: str = field(default="")

    def __init__(self, points: npt.ArrayLike | Sequence[npt.ArrayLike], values: npt.ArrayLike, *,
                 extrapolate: str | None = None, kind: str = "linear", name: str = "") -> None:
        if not isinstance(name, str):
            raise ModelError(f"a table: its name is a text, got {name!r}")
        what = f"table {name!r}" if name else "a table"
        if extrapolate is None:
            raise ModelError(f"{what}: say what is beyond its points: extrapolate='hold' (the value at the end), "
                             "'linear' (straight on), 'periodic' (it repeats) or 'error'")
        if not isinstance(kind, str) or kind not in KINDS:
            raise ModelError(f"{what}: kind must be one of {', '.join(KINDS)}, got {kind!r}")
        if extrapolate not in BEYOND:
            raise ModelError(f"{what}: extrapolate must be one of {', '.join(BEYOND)}, got {extrapolate!r}")
        table = _numbers(what, "values", values)
        if table.ndim not in (1, 2):
            raise ModelError(f"{what}: values must have one axis or two, got the shape {table.shape}")
        given: Any = (points,) if table.ndim == 1 else points
        if table.ndim == 2 and len(given) != 2:
            raise ModelError(f"{what}: values with two axes need a pair of lists as points, got {len(given)}")
        axes = [_numbers(what, label, axis) for label, axis in zip(_labels(table.ndim), given, strict=True)]
        for label, axis, size in zip(_labels(table.ndim), axes, table.shape, strict=True):
            _check_axis(what, label, axis, size, kind)
        _check_missing(what, table, axes)
        if extrapolate == "periodic":
            _check_period(what, table)
        for key, value in (("points", tuple(tuple(a.tolist()) for a in axes)),
                           ("values", tuple(table.ravel().tolist())), ("kind", kind),
                           ("extrapolate", extrapolate), ("name", name)):
            object.__setattr__(self, key, value)
        _check_slopes(what, self._pieces)

    @classmethod
    def from_csv(cls, path: str | Path, *, x: str | int = 0, y: str | int = 1, grid: bool = False, delimiter: str = ",",
                 decimal: str = ".", extrapolate: str | None = None, kind: str = "linear", name: str | None = None
                 ) -> Table:
        """A table from a file of numbers in columns: `x` and `y` are names of columns (of the first line) or their
        places. With `grid`, the file is a table of two arguments: its first line has the second argument, the first
        column the first one. Columns end at the `delimiter`, one character, of which " " stands for any white space;
        `decimal` is "," in numbers such as 0,5. A first line without numbers has names. The name is that of the file
        unless one is given.
        """
        path = Path(path)
        label = path.stem if name is None else name
        rows = _rows(path, delimiter, decimal, f"table {label!r}")
        if grid:
            head, body = rows[0], rows[1:]
            _check_widths(path, rows)
            points: Any = [_cells(path, body, 0), [_cell(path, head, k) for k in range(1, len(head[1]))]]
            values: Any = [[_cell(path, row, k) for k in range(1, len(head[1]))] for row in body]
            _check_lines(path, body, points[0])
            return cls(points, values, extrapolate=extrapolate, kind=kind, name=label)
        named = not any(_is_number(cell) for cell in rows[0][1])
        columns = [_column(path, rows[0][1], key, named) for key in (x, y)]
        body = rows[1:] if named else rows
        points, values = (_cells(path, body, k) for k in columns)
        _check_lines(path, body, points)
        return cls(points, values, extrapolate=extrapolate, kind=kind, name=label)

    @property
    def arguments(self) -> int:
        """How many numbers it is a function of: 1 or 2."""
        return len(self.points)

    @property
    def shape(self) -> tuple[int, ...]:
        """How many points there are along each argument."""
        return tuple(len(p) for p in self.points)

    def __call__(self, *arguments: Number) -> Number:
        """The function at its arguments: floats, arrays, traced scalars or jets."""
        if len(arguments) != len(self.points):
            raise ModelError(f"{self._what}: it is a function of {len(self.points)} numbers, got {len(arguments)}")
        for x in arguments:
            if hasattr(x, "look_up"):  # what writes laws into files notes the table itself
                return x.look_up(self, *arguments)
        if self.extrapolate == "error":
            self._refuse_outside(arguments)
        index: Number = 0.0
        distances = []
        for x, points, knots, origins in zip(arguments, self.points, self._knots, self._origins, strict=True):
            if self.extrapolate == "periodic":
                period = points[-1] - points[0]
                x = x - period * floor((x - points[0]) * (1.0 / period))
            place = locate(x, knots)
            distances.append(x - entry(place, origins))
            index = index * float(len(knots) + 1) + place
        return _polynomial(self._coefficients, index, distances)

    @property
    def _what(self) -> str:
        return f"table {self.name!r}" if self.name else f"a table of {'x'.join(map(str, self.shape))} points"

    def _refuse_outside(self, arguments: Sequence[Number]) -> None:
        """Of numbers: compiled code cannot say so, it gives NaN."""
        for label, x, points in zip(_labels(len(arguments)), arguments, self.points, strict=True):
            x = x.value if isinstance(x, Jet) else x
            if isinstance(x, Scalar):
                continue
            values = np.asarray(x, dtype=float)
            outside = (values < points[0]) | (values > points[-1])
            if outside.any():
                at = float(values[outside].ravel()[0]) if values.ndim else float(values)
                raise StateError(f"{self._what}: {label} = {at:.6g} is outside of its points, {points[0]:g} to "
                                 f"{points[-1]:g}; give more points, or say what is there with "
                                 "extrapolate='hold' or 'linear'")

    @cached_property
    def _knots(self) -> tuple[Constants, ...]:
        """Where pieces begin; the last point belongs to the last piece where there is nothing beyond it."""
        closed = self.extrapolate == "error"
        return tuple(Constants((*p[:-1], np.nextafter(p[-1], math.inf) if closed else p[-1])) for p in self.points)

    @cached_property
    def _origins(self) -> tuple[Constants, ...]:
        return tuple(Constants((p[0], *p)) for p in self.points)

    @cached_property
    def _pieces(self) -> npt.NDArray[np.float64]:
        """Coefficients by piece; those beyond the ends come first and last."""
        axes, table = [np.array(p) for p in self.points], np.array(self.values).reshape(self.shape)
        try:
            with np.errstate(all="ignore"):
                return pieces(self.kind, self.extrapolate, axes[0], table) if len(axes) == 1 else surface_pieces(
                    self.kind, self.extrapolate, axes[0], axes[1], table)
        except ValueError:  # what splines say of numbers that are not finite
            return np.full((3,) * len(axes) + (4,) * len(axes), np.nan)

    @cached_property
    def _coefficients(self) -> Any:
        """Of powers of the distances, nested: constants by piece, or a number where all pieces have the same."""
        both = self._pieces
        if both.ndim == 2:
            return _seen([_constants(both[:, k]) for k in range(4)], len(both))
        nested: Any = [[_constants(both[:, :, i, j].ravel()) for j in range(4)] for i in range(4)]
        nested[0] = nested[0] if any(row[1:] != _NONE for row in nested) else _seen(nested[0], both[..., 0, 0].size)
        if nested[1:] == [[0.0, *_NONE]] * 3:
            nested[1][0] = Constants([0.0] * both[..., 0, 0].size)
        return nested


_NONE = [0.0] * 3


def _seen(coefficients: list[Any], size: int) -> list[Any]:
    """Coefficients of which one at least is multiplied by the distance, if only by zeros: NaN must not be lost, nor the
    shape of an array."""
    return [coefficients[0], Constants([0.0] * size), 0.0, 0.0] if coefficients[1:] == _NONE else coefficients


def _constants(values: npt.NDArray[np.float64]) -> Constants | float:
    first = float(values[0])
    return first if (values == first).all() else Constants(values.tolist())


def _polynomial(coefficients: Any, index: Number, distances: Sequence[Number]) -> Number:
    """By Horner's rule; leading coefficients that are zero on all pieces are left out. One that is looked up and zero
    here is not: the distance may be NaN."""
    total: Number | None = None
    for part in reversed(coefficients):
        if total is None and part in (0.0, [0.0] * 4):
            continue
        inner = _polynomial(part, index, distances[1:]) if isinstance(part, list) else (
            part if isinstance(part, float) else entry(index, part))
        total = inner if total is None else total * distances[0] + inner
    return 0.0 if total is None else total


def _labels(count: int) -> tuple[str, ...]:
    return ("x",) if count == 1 else ("the first argument", "the second argument")


# -- what is given ----------------------------------------------------------------------------------------------------
def _numbers(what: str, label: str, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    try:
        if np.ma.is_masked(values):
            values = np.ma.filled(np.ma.asarray(values).astype(float), np.nan)  # what is masked is missing
        return np.array(values, dtype=float)
    except (TypeError, ValueError) as error:
        rows: Any = values
        for k, row in enumerate(rows if hasattr(rows, "__len__") and not isinstance(rows, str) else ()):
            if hasattr(row, "__len__") and not isinstance(row, str) and len(row) != len(rows[0]):
                raise ModelError(f"{what}: row {k} of {label} has {len(row)} entries, the first {len(rows[0])}; none "
                                 "may be missing") from None
            if isinstance(row, str) and not _is_number(row):
                raise ModelError(f"{what}: {label}[{k}], {row!r}, is no number") from None
        raise ModelError(f"{what}: {label} must be an array of numbers ({error})") from None


def _check_axis(what: str, label: str, axis: npt.NDArray[np.float64], size: int, kind: str) -> None:
    if axis.ndim != 1 or len(axis) != size:
        raise ModelError(f"{what}: there are {size} values along {label}, but points of shape {axis.shape}")
    if len(axis) < KINDS[kind]:
        raise ModelError(f"{what}: {kind} interpolation needs at least {KINDS[kind]} points along {label}, got "
                         f"{len(axis)}")
    bad = np.flatnonzero(~np.isfinite(axis))
    if len(bad):
        raise ModelError(f"{what}: {label}[{bad[0]}] is {axis[bad[0]]}: an entry is missing or not finite")
    fall = np.flatnonzero(np.diff(axis) <= 0.0)
    if len(fall):
        k = int(fall[0])
        raise ModelError(f"{what}: the points along {label} must rise, but entry {k + 1}, {axis[k + 1]:g}, is not "
                         f"above entry {k}, {axis[k]:g}; sort them, and keep one of each")


def _check_missing(what: str, table: npt.NDArray[np.float64], axes: Sequence[npt.NDArray[np.float64]]) -> None:
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        at = tuple(int(i) for i in bad[0])
        where = ", ".join(f"{axis[i]:g}" for axis, i in zip(axes, at, strict=True))
        raise ModelError(f"{what}: the value at ({where}), entry {at if len(at) > 1 else at[0]}, is {table[at]}: it is "
                         "missing or not finite")


def _check_slopes(what: str, found: npt.NDArray[np.float64]) -> None:
    """Refuse points so near to each other, or values so large, that there is nothing between them."""
    inside = found[1:-1] if found.ndim == 2 else found[1:-1, 1:-1]
    if not np.isfinite(inside).all():
        raise ModelError(f"{what}: its slopes are no finite numbers; points are too near to each other, or values too "
                         "large")


def _check_period(what: str, table: npt.NDArray[np.float64]) -> None:
    size = float(np.abs(table).max(initial=0.0))
    for axis in range(table.ndim):
        gap = float(np.abs(table.take(0, axis) - table.take(-1, axis)).max())
        if gap > 1e-9 * size:
            raise ModelError(f"{what}: a periodic table must have the same value at its first and last point; they "
                             f"differ by {gap:g}; end it a period behind its first point, with the value there again")


# -- files ------------------------------------------------------------------------------------------------------------
_Row = tuple[int, list[str]]
#: larger files are refused
_MOST_BYTES = 100_000_000


def _rows(path: Path, delimiter: str, decimal: str, what: str) -> list[_Row]:
    """Lines that hold something, with their numbers; decimal commas are points from here on."""
    if not isinstance(delimiter, str) or len(delimiter) != 1 or decimal not in (".", ",") or decimal == delimiter:
        raise ModelError(f"{what}: delimiter is one character, and decimal another, '.' or ',', got {delimiter!r} and "
                         f"{decimal!r}")
    text = text_contents(str(path), _MOST_BYTES)
    try:
        lines = io.StringIO(text, newline="")
        read = [line.split() for line in lines] if delimiter == " " else list(csv.reader(lines, delimiter=delimiter))
    except csv.Error as error:
        raise FileError(f"{what}: {path} is no text with columns ({error})") from None
    rows = [(i, [_pointed(cell.strip(), decimal) for cell in row]) for i, row in enumerate(read, 1)
            if any(cell.strip() for cell in row) and not row[0].lstrip().startswith("#")]
    if not rows:
        raise ModelError(f"{what}: {path} is empty")
    other = next((c for c in ";\t|, " if len(rows[0][1]) == 1 and c in rows[0][1][0]), "")
    if other:
        raise ModelError(f"{what}: {path} has one column by the delimiter {delimiter!r}; read it with delimiter="
                         f"{other!r}")
    return rows


def _pointed(cell: str, decimal: str) -> str:
    plain = cell.replace(",", ".", 1)
    return plain if decimal == "," and _is_number(plain) else cell


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return "_" not in text  # which Python takes between digits


def _column(path: Path, head: list[str], key: str | int, named: bool) -> int:
    if isinstance(key, str):
        if not named or key not in head:
            raise ModelError(f"{path}: no column called {key!r}; " + (
                f"there are {', '.join(head)}{hint(key, head)}" if named else "the first line has no names"))
        if head.count(key) > 1:
            raise ModelError(f"{path}: {head.count(key)} columns are called {key!r}; say which by its place, from 0")
        return head.index(key)
    if not isinstance(key, int) or not 0 <= key < len(head):
        raise ModelError(f"{path}: no column {key}; there are {len(head)}, counted from 0")
    return key


def _check_widths(path: Path, rows: Sequence[_Row]) -> None:
    """Refuse lines of a grid with more entries than there are arguments; those that miss some are found one by one."""
    for line, cells in rows:
        if len(cells) > len(rows[0][1]):
            raise ModelError(f"{path}:{line}: it has {len(cells)} entries, the first line {len(rows[0][1])}")


def _check_lines(path: Path, rows: Sequence[_Row], points: Sequence[float]) -> None:
    """Refuse lines in which the argument does not rise."""
    for k in range(1, len(points)):
        if not points[k] > points[k - 1]:
            raise ModelError(f"{path}:{rows[k][0]}: {points[k]:g} is not above {points[k - 1]:g} of the line before; "
                             "sort the lines by this column, and keep one of each")


def _cells(path: Path, rows: Sequence[_Row], column: int) -> list[float]:
    return [_cell(path, row, column) for row in rows]


def _cell(path: Path, row: _Row, column: int) -> float:
    line, cells = row
    text = cells[column] if column < len(cells) else ""
    if not _is_number(text):
        what = f"{text!r} is no number" if text else "an entry is missing"
        if _is_number(text.replace(",", ".", 1)):
            what += "; read it with decimal=','"
        raise ModelError(f"{path}:{line}: column {column}: {what}")
    return float(text)
