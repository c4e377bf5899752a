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
        found, good = self._each(start[None], held)
        return np.asarray(found[0]), bool(good[0])

    def _each(self, starts: Floats, held: npt.NDArray[np.bool_]) -> tuple[Floats, list[bool]]:
        """The same for several (n, nq)."""
        close, t = self.close, self.t
        found, left = close.close(starts, Target(held, 1.0 / self.usual), t)
        return found, [bool(size < CLOSED or off(close, q, t) <= self.tolerance) and not close.flipped(q, t)
                       for q, size in zip(found, left, strict=True)]

    def around(self, start: Floats, held: npt.NDArray[np.bool_]) -> Floats | None:
        """Closed from around a start: small steps away first, then any; and from where axes point the right way."""
        nu, target = len(self.usual), Target(held, 1.0 / self.usual)
        which = np.arange(_STARTS_LARGE if nu > _FEW else _STARTS)
        sizes = np.where(which == 0, 0.0, np.minimum(0.05 * 2.0**which, 2.5))
        shakes = np.random.default_rng(1).normal(size=(len(which), nu)) * self.usual * sizes[:, None]
        begins = self.close.integrate(start, np.where(held, 0.0, shakes))
        for some in np.split(begins, which[1:] if nu > _FEW else [1]):
            found, good = self._each(some, held)
            for begin, q, closed in zip(some, found, good, strict=True):
                turned = turned_towards(self.close, begin, target, self.t) if not closed and nu <= _FEW else None
                if turned is not None:
                    q, closed = self.once(turned, held)
                if closed:
                    return np.asarray(q)
        return None
