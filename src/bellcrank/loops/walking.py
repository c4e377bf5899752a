"""Walking a closed machine along one parameter, on one branch: what `drive`, `coupler_curve` and `assemble` share.

From a closed position the last step is prolonged, the driven coordinates are put where the parameter wants them, and
Newton's method closes the loops. A step is accepted only if Newton's own steps shrink at once (contraction below 1/4)
and, unless they do so very well, if the tangent at the new position leads back to the old one, so that neighbouring
branches are not mistaken for each other; otherwise the way is halved. Where branches cross, the machine goes straight
on. Where no way is short enough it is at a dead point, the end of its branch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from bellcrank.arrays import Floats
from bellcrank.loops.tolerances import BENT, CLOSED, CONTRACTION, LONGEST, STRAIGHT, WALKED

__all__ = ["DeadPointError", "Walker"]

_MOST = 20_000  # steps, also failing ones


class DeadPointError(Exception):
    """The machine cannot go on: the parameter reached, the position there, and the joint that moves most."""

    def __init__(self, reached: float, q: Floats, joint: str) -> None:
        super().__init__(f"dead point at {reached}")
        self.reached, self.q, self.joint = float(reached), q, joint


class Walker(ABC):
    """Follows closed positions, good to about 1e-8; who walks says what is driven and how loops close."""

    def __init__(self, integrate: Callable[[Any, Any], Floats], normalize: Callable[[Any], Floats],
                 difference: Callable[[Any, Any], Floats], *, resolution: float, lengths: Floats, unit: float = 1.0
                 ) -> None:
        self.integrate, self.normalize, self.difference = integrate, normalize, difference
        self.resolution, self.unit = resolution, unit  #: of the parameter, and what is an ordinary change of it
        self.lengths = lengths  #: what is a long step for each speed: 1 rad, or a length
        self._stride, self._grow = np.inf, 1.0
        self._last: tuple[Floats, float] | None = None  #: position and parameter before the last step

    @abstractmethod
    def put(self, q: Floats, at: float) -> Floats:
        """q with the driven coordinates as the parameter wants them."""

    @abstractmethod
    def newton(self, q: Floats, at: float) -> tuple[float, Floats]:
        """What is left open, and the plain Newton step of all speeds that would close it."""

    @abstractmethod
    def loosest(self, q: Floats, at: float) -> str:
        """The joint that moves most along the direction the drives lose."""

    def leave(self, q: Floats, here: float, end: float) -> tuple[Floats, float] | None:
        """The first step of a walk that begins at a dead point, if there is one; the parameter it leads to."""
        return None

    def to(self, q: Floats, start: float, end: float) -> Floats:
        """The position at parameter `end`, from q at `start`. Raises `DeadPointError`."""
        here, way = start, abs(end - start)
        for _ in range(_MOST):
            if here == end:
                return q
            least = self.resolution * max(way, abs(here), self.unit)
            stride = min(self._stride, abs(end - here))
            there = end if stride >= abs(end - here) else here + float(np.copysign(stride, end - here))
            found = self._step(q, here, there)
            if found is not None:
                if stride >= self._stride or there != end:
                    self._stride = max(stride * self._grow, 2.0 * least)
                self._last, q, here = (q, here), found, there
                continue
            self._stride = 0.5 * stride
            if self._stride < least:
                left = self.leave(q, here, end) if self._last is None else None
                if left is None:
                    break
                self._last, (q, here) = (q, here), left
                self._stride = abs(here - start)
        raise DeadPointError(here, q, self.loosest(q, here))

    def _step(self, q: Floats, here: float, there: float) -> Floats | None:
        """Close at a new parameter; None if the way was too long."""
        found = self.put(self._ahead(q, here, there), there)
        if self.length(self.difference(q, found)) > LONGEST:
            return None
        before, first, worst = np.inf, 0.0, 0.0
        for iteration in range(12):
            size, step = self.newton(found, there)
            length = self.length(step)
            if not np.isfinite(length) or (iteration == 0 and length > LONGEST):
                return None
            first = length if iteration == 0 else first
            if np.isfinite(before) and before > 1e-7:
                worst = max(worst, length / before)
                if worst > CONTRACTION:
                    return None
            left = length * min(1.0, length / before) if np.isfinite(before) else length  # what the next would be
            found = self.normalize(self.integrate(found, step))
            if left < WALKED:
                if size > CLOSED + 1e4 * length:  # a gap that no step closes
                    return None
                break
            before = length
        else:
            return None
        way = self.length(self.difference(q, found))
        if (worst > STRAIGHT or first > 0.2 * way) and not self._leads_back(q, found, here, way):
            return None
        self._grow = min(2.0, 0.7 * CONTRACTION / max(worst, 1e-3), (BENT / max(first, 1e-9)) ** 0.5,
                         0.9 * LONGEST / max(way, 1e-9))
        return found

    def _ahead(self, q: Floats, here: float, there: float) -> Floats:
        """Straight on by the last step, prolonged or shortened."""
        if self._last is None or here == self._last[1]:
            return q
        part = (there - here) / (here - self._last[1])
        return self.normalize(self.integrate(q, part * self.difference(self._last[0], q))) if abs(part) < 1e3 else q

    def length(self, change: Floats) -> float:
        """The largest of all changes, each by what is small for it."""
        return float(np.abs(change / self.lengths).max(initial=0.0))

    def _leads_back(self, q: Floats, found: Floats, here: float, way: float) -> bool:
        """Whether the tangent at a new position leads back to q: if not, it lies on a neighbouring branch."""
        back = self.put(found, here)
        step = self.newton(back, here)[1]
        if not np.isfinite(step).all():
            return False
        return self.length(self.difference(q, self.integrate(back, step))) <= max(0.5 * way, WALKED)
