"""Simple shapes, each in a frame of its own whose origin is its center (a cone's: the center of its height)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked, checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.table import Table
from bellcrank.scalar.graph import Scalar

__all__ = ["Box", "Capsule", "Cone", "Cylinder", "Ellipsoid", "HeightField", "Plane", "Sphere"]

Bounds = tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]


@dataclass(frozen=True, slots=True)
class Box:
    """A box with edges of the given lengths [m] along x, y and z.

    >>> Box((0.4, 0.1, 0.1)).bounds()[1]
    array([0.2 , 0.05, 0.05])
    """

    size: tuple[float, float, float]

    @checked
    def __init__(self, size: Sequence[float]) -> None:
        object.__setattr__(self, "size", _lengths("Box", "size", size, 3))

    def bounds(self) -> Bounds:
        """The lowest and the highest corner, (3,) each [m]."""
        return _half(*self.size)


@dataclass(frozen=True, slots=True)
class Sphere:
    """A sphere of the given radius [m]."""

    radius: float

    @checked
    def __init__(self, radius: float) -> None:
        object.__setattr__(self, "radius", _length("Sphere", "radius", radius))

    def bounds(self) -> Bounds:
        """The lowest and the highest corner, (3,) each [m]."""
        return _half(2.0 * self.radius, 2.0 * self.radius, 2.0 * self.radius)


@dataclass(frozen=True, slots=True)
class Ellipsoid:
    """An ellipsoid with the given half axes [m] along x, y and z."""

    radii: tuple[float, float, float]

    @checked
    def __init__(self, radii: Sequence[float]) -> None:
        object.__setattr__(self, "radii", _lengths("Ellipsoid", "radii", radii, 3))

    def bounds(self) -> Bounds:
        """The lowest and the highest corner, (3,) each [m]."""
        return _half(*(2.0 * r for r in self.radii))


@dataclass(frozen=True, slots=True)
class _Round:
    """A radius [m], and a length [m] along z."""

    radius: float
    length: float

    @checked
    def __init__(self, radius: float, length: float) -> None:
        what = type(self).__name__
        object.__setattr__(self, "radius", _length(what, "radius", radius))
        object.__setattr__(self, "length", _length(what, "length", length))

    def bounds(self) -> Bounds:
        """The lowest and the highest corner, (3,) each [m]."""
        return _half(2.0 * self.radius, 2.0 * self.radius, self.length)


class Cylinder(_Round):
    """A cylinder of the given radius and length [m] along z."""

    __slots__ = ()


class Cone(_Round):
    """A cone along z: base of the given radius at ``z = -length / 2``, tip at ``z = +length / 2`` [m]."""

    __slots__ = ()


class Capsule(_Round):
    """A cylinder of the given radius and length [m] along z with a half sphere at each end: from tip to tip it is
    ``length + 2 * radius`` long.

    >>> Capsule(0.1, 1.0).bounds()[1]
    array([0.1, 0.1, 0.6])
    """

    __slots__ = ()

    def bounds(self) -> Bounds:
        """The lowest and the highest corner, (3,) each [m]."""
        return _half(2.0 * self.radius, 2.0 * self.radius, self.length + 2.0 * self.radius)


@dataclass(frozen=True, slots=True)
class Plane:
    """A rectangle in the plane z = 0 with edges of the given lengths [m] along x and y, its outside where z is
    positive; without a size it has no end (pictures draw it as large as the machine needs)."""

    size: tuple[float, float] | None = None

    @checked
    def __init__(self, size: Sequence[float] | None = None) -> None:
        object.__setattr__(self, "size", None if size is None else _lengths("Plane", "size", size, 2))

    def bounds(self) -> Bounds:
        """The lowest and the highest corner, (3,) each [m]; infinite where the plane is."""
        x, y = self.size or (float("inf"), float("inf"))
        return _half(x, y, 0.0)


def _half(x: float, y: float, z: float) -> Bounds:
    corner = 0.5 * np.array([x, y, z])
    return -corner, corner


def _length(what: str, label: str, value: float) -> float:
    if isinstance(value, Scalar):
        raise ModelError(f"{what}: {label} takes a number, not a parameter: where shapes can touch, and within what "
                         "tolerance, is found when they are made")
    try:
        length = float(value)
    except (TypeError, ValueError):
        raise ModelError(f"{what}: {label} {value!r} is not a number") from None
    if not 0.0 < length < float("inf"):
        raise ModelError(f"{what}: {label} must be a positive, finite length [m], got {length:g}")
    return length


def _lengths(what: str, label: str, values: Sequence[float], n: int) -> tuple[float, ...]:
    try:
        entries = tuple(values)
    except TypeError:
        raise ModelError(f"{what}: {label} needs {n} lengths [m], got {values!r}") from None
    if len(entries) != n:
        raise ModelError(f"{what}: {label} needs {n} lengths [m], got {len(entries)}")
    return tuple(_length(what, label, v) for v in entries)


# -- ground that is not flat: heights over a grid ---------------------------------------------------
@checked_methods
@dataclass(frozen=True, init=False)
class HeightField:
    """Ground of the heights `heights[i][j]` [m] along z at the places ``x[i]``, ``y[j]`` [m] of its frame, solid below.

    `kind` says what is between the points: see `bellcrank.Table`. Beyond its edges the ground goes on as high as it is
    there.

    >>> bump = HeightField([0, 1, 2], [0, 4, 8], [[0, 0, 0], [0, 0.1, 0], [0, 0, 0]])
    >>> bump.height(1.0, 4.0), bump.bounds()[1].tolist()
    (0.1, [2.0, 8.0, 0.1])
    """

    x: tuple[float, ...]  #: places of the grid [m]
    y: tuple[float, ...]
    values: tuple[float, ...]  #: heights [m], one row for every x after another
    kind: str  #: what is between the points

    def __init__(self, x: npt.ArrayLike, y: npt.ArrayLike, heights: npt.ArrayLike, *, kind: str = "monotone") -> None:
        if np.ndim(heights) != 2:
            raise ModelError("HeightField: heights need two axes, one for x and one for y")
        try:
            made = Table((x, y), heights, kind=kind, extrapolate="hold")
        except ModelError as error:
            raise ModelError(f"HeightField: {error}") from None
        for label, value in (("x", made.points[0]), ("y", made.points[1]), ("values", made.values), ("kind", kind)):
            object.__setattr__(self, label, value)

    @property
    def heights(self) -> npt.NDArray[np.float64]:
        """Heights (len(x), len(y)) [m]."""
        return np.array(self.values).reshape(len(self.x), len(self.y))

    @cached_property
    def table(self) -> Table:
        """The height as a function of x and y."""
        return Table((self.x, self.y), self.heights, kind=self.kind, extrapolate="hold")

    def height(self, x: float, y: float) -> float:
        """How high the ground is [m]."""
        return float(self.table(float(x), float(y)))

    def bounds(self) -> Bounds:
        """The lowest and the highest corner of the points, (3,) each [m]."""
        z = self.heights
        return (np.array([self.x[0], self.y[0], z.min()]), np.array([self.x[-1], self.y[-1], z.max()]))
