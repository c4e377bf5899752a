"""Some closed position near a start, the first that is found: from the start, then from around it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from bellcrank.arrays import Floats
from bellcrank.loops.closer import Closer, Target
from bellcrank.loops.drawing_tolerance import off
from bellcrank.loops.tolerances import CLOSED
from bellcrank.loops.turning_errors import turned_towards

__all__ = ["first_closed"]

#: machines with more speeds are tried from fewer starts, and as a whole
_FEW = 300
_STARTS, _STARTS_LARGE = 24, 12


def first_closed(close: Closer, start: Floats, t: float, held: npt.NDArray[np.bool_], usual: Floats, name: str,
                 tolerance: float = 0.0) -> Floats:
    """A closed position near a start, to within the tolerance of a drawing; `usual` are ordinary changes of all
    speeds. Loops that share nothing are closed one after another if they do not close together. AssemblyError, with the
    machine's name, if none is found."""
    search, clusters = _Starts(close, t, usual, tolerance), close.loops.clusters
    found, closed = search.once(start, held)
    if closed:
        return found
    if close.contradiction(found, t):
        raise close.failure(found, t, f"assemble {name!r}")
    if len(clusters) == 1 or len(usual) > _FEW:
        around = search.around(start, held)
    else:
        around = start
        for rows, speeds in clusters:
            around = None if around is None else _Starts(close.of_cluster(rows), t, usual, tolerance).around(
                around, held | ~speeds)
    if around is None:
        raise close.failure(found, t, f"assemble {name!r}")
    return around


class _Starts:
    """Tries starts; see `first_closed`."""

    def __init__(self, close: Closer, t: float, usual: Floats, tolerance: float) -> None:
        self.close, self.t, self.usual, self.tolerance = close, t, usual, tolerance

    def once(self, start: Floats, held: npt.NDArray[np.bool_]) -> tuple[Floats, bool]:
        """Closed from a start, with which it succeeded or not."""
        close, t = self.close, self.t
        found, size = close.close(start, Target(held, 1.0 / self.usual), t)
        good = (size < CLOSED or off(close, found, t) <= self.tolerance) and not close.flipped(found, t)
        return found, bool(good)

    def around(self, start: Floats, held: npt.NDArray[np.bool_]) -> Floats | None:
        """Closed from around a start: small steps away first, then any; and from where axes point the right way."""
        rng, nu, target = np.random.default_rng(1), len(self.usual), Target(held, 1.0 / self.usual)
        for attempt in range(_STARTS_LARGE if nu > _FEW else _STARTS):
            size = 0.0 if attempt == 0 else min(0.05 * 2.0**attempt, 2.5)
            shake = np.where(held, 0.0, rng.normal(size=nu) * self.usual * size)
            begin = self.close.integrate(start, shake)
            found, closed = self.once(begin, held)
            turned = turned_towards(self.close, begin, target, self.t) if not closed and nu <= _FEW else None
            if turned is not None:
                found, closed = self.once(turned, held)
            if closed:
                return found
        return None
