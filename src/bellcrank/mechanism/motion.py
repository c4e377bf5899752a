"""Prescribed (rheonomic) motion: joint coordinates given as functions of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bellcrank.errors import ModelError
from bellcrank.mechanism.forces.element import Element
from bellcrank.scalar.graph import Number
from bellcrank.scalar.jet import Jet, as_jet
from bellcrank.spatial import Vector

__all__ = ["STILL", "Entry", "Fixed", "Law", "Prescribed"]

#: A motion law: time in, one coordinate (or a sequence of all the joint's coordinates) out.
Law = Callable[[Number], Number]


def STILL(value: Number) -> Number:
    """Stands in place of a law for a coordinate that is locked: it stays where it is, wherever that is."""
    return value


@dataclass(frozen=True)
class Fixed(Element):
    """The law of a coordinate that has one value at all times."""

    value: Number

    def __call__(self, t: Number) -> Number:
        return self.value


@dataclass(frozen=True)
class Entry:
    """One coordinate of a law that returns several."""

    law: Callable[[Number], Sequence[Number]]
    index: int

    def __call__(self, t: Number) -> Number:
        return self.law(t)[self.index]


@dataclass(frozen=True)
class Prescribed(Element):
    """Which speeds of a joint follow laws of time, and the laws.

    `laws[i]` drives coordinate i, None leaves it free. Joints whose q are quaternions are prescribed
    whole, by one law that returns all of q. `STILL` locks a coordinate, or a whole joint, where it is.
    """

    laws: tuple[Law | None, ...]
    whole: Callable[[Number], Sequence[Number]] | None = None

    def mask(self, nu: int) -> tuple[bool, ...]:
        """For each speed, whether it is prescribed."""
        return (True,) * nu if self.whole is not None else tuple(law is not None for law in self.laws)

    def values(self, t: Number, q: Sequence[Number], u: Sequence[Number], udot: Sequence[Number]
               ) -> tuple[list[Number], list[Number], list[Number]]:
        """q, u and udot with the prescribed ones replaced by what the laws say at time t."""
        clock = Jet(t, 1.0, 0.0)
        if self.whole is STILL:
            return list(q), [0.0] * len(u), [0.0] * len(udot)
        if self.whole is not None:
            return _whole([as_jet(x) for x in self.whole(clock)], len(q))
        q, u, udot = list(q), list(u), list(udot)
        for i, law in enumerate(self.laws):
            if law is STILL:
                u[i], udot[i] = 0.0, 0.0
            elif law is not None:
                q[i], u[i], udot[i] = as_jet(law(clock))
        return q, u, udot


def _whole(jets: list[Jet], nq: int) -> tuple[list[Number], list[Number], list[Number]]:
    """Speeds and accelerations in child axes from the jets of (quaternion[, position])."""
    if len(jets) != nq:
        raise ModelError(f"a motion law for a joint with {nq} coordinates returned {len(jets)} values")
    w, x, y, z = jets[:4]
    rate = [Jet(j.rate, j.acceleration, 0.0) for j in jets]  # omega needs q and qdot, omegadot one more
    dw, dx, dy, dz = rate[:4]
    scale = 2.0 / (w * w + x * x + y * y + z * z)
    omega = [scale * (w * dx - x * dw - y * dz + z * dy), scale * (w * dy - y * dw - z * dx + x * dz),
             scale * (w * dz - z * dw - x * dy + y * dx)]
    speeds = omega
    if nq == 7:
        # child-axes velocity v = R^T pdot; its own rate follows from the jets of R
        k = scale
        rows = [[1.0 - k * (y * y + z * z), k * (x * y + w * z), k * (x * z - w * y)],
                [k * (x * y - w * z), 1.0 - k * (x * x + z * z), k * (y * z + w * x)],
                [k * (x * z + w * y), k * (y * z - w * x), 1.0 - k * (x * x + y * y)]]
        pdot = Vector(*rate[4:])
        speeds = omega + [Vector(*row).dot(pdot) for row in rows]
    return [j.value for j in jets], [s.value for s in speeds], [s.rate for s in speeds]
