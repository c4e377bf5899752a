"""Ground that is not flat: heights over a grid."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from bellcrank.arguments import checked_methods
from bellcrank.errors import ModelError
from bellcrank.mechanism.geometry.solids import Bounds
from bellcrank.mechanism.table import Table

__all__ = ["HeightField"]


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
