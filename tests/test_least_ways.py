"""Directions in which round shapes overlap least: Newton's method finds those that are known by construction, it is not
only never worse than its guess."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bellcrank.mechanism.contact.touch import (
    AxisReach,
    farthest_of_cylinder,
    rounded_way,
    settled_across,
    settled_way,
)
from bellcrank.spatial import Vector


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


def vector(x: np.ndarray) -> Vector:
    return Vector(*x.tolist())


class RimOnRim:
    """Two cylinders with a point of each rim so far in the other that they overlap by 0.02 m along `best`, and by more
    in all directions near it."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.best = unit(rng.normal(size=3))
        side = unit(np.cross(self.best, rng.normal(size=3)))
        other, turn = np.cross(self.best, side), rng.uniform(1.0, 2.0)  # rims that cross, so that it bends both ways
        self.axes = [0.6 * self.best + 0.8 * e for e in (side, np.cos(turn) * side + np.sin(turn) * other)]
        self.radii, self.halves = rng.uniform(0.3, 0.6, size=2), rng.uniform(0.1, 0.5, size=2)
        self.apart = np.zeros(3)
        reached = np.array(tuple(self.spread(vector(self.best))[0]))
        self.apart, self.rng = reached - 0.02 * self.best, rng

    def spread(self, n: Vector) -> Any:
        mine, one = farthest_of_cylinder(Vector.zero(), vector(self.axes[0]), self.radii[0], self.halves[0], n)
        theirs, two = farthest_of_cylinder(vector(self.apart), vector(self.axes[1]), self.radii[1], self.halves[1], -n)
        return mine - theirs, (one, two)

    def overlap(self, n: np.ndarray) -> float:
        """In closed form."""
        along = [float(n @ a) for a in self.axes]
        return float(-n @ self.apart) + sum(r * np.sqrt(1.0 - x * x) + half * abs(x) for r, half, x in zip(
            self.radii, self.halves, along, strict=True))


@pytest.mark.parametrize("seed", range(4))
def test_slopes_and_curvatures_are_those_of_the_overlap(seed: int) -> None:
    bodies, h = RimOnRim(seed), 1e-4
    n = unit(bodies.best + 0.1 * bodies.rng.normal(size=3))
    apart, bends = bodies.spread(vector(n))
    side = unit(np.cross(n, bodies.rng.normal(size=3)))
    after, now, before = (bodies.overlap(np.cos(x) * n + np.sin(x) * side) for x in (h, 0.0, -h))
    assert vector(n).dot(apart) == pytest.approx(now, abs=1e-12)
    assert vector(side).dot(apart) == pytest.approx((after - before) / (2.0 * h), abs=1e-6)
    bend = sum(b.size * vector(side).dot(b.tangent) ** 2 for b in bends) - now
    assert bend == pytest.approx((after - 2.0 * now + before) / h**2, abs=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_the_least_overlap_is_found(seed: int) -> None:
    bodies = RimOnRim(seed)
    side = unit(np.cross(bodies.best, bodies.rng.normal(size=3)))
    start = vector(np.cos(0.1) * bodies.best + np.sin(0.1) * side)
    axis = vector(np.cross(bodies.best, side))
    for n in (settled_way(start, bodies.spread), settled_across(axis, start, bodies.spread)):
        np.testing.assert_allclose(tuple(n), bodies.best, atol=1e-6)


def test_rounded_ways_lead_near_the_least_overlap() -> None:
    """Of two boxes, which have no curvature at all."""
    rng = np.random.default_rng(3)
    for _ in range(10):
        axes, halves = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.uniform(0.1, 0.5, size=6)
        reaches = list(zip((*np.eye(3), *axes), halves.tolist(), strict=True))
        apart = unit(rng.normal(size=3)) * 2.0
        found = rounded_way(vector(apart), vector(unit(apart)), [AxisReach(vector(a), h) for a, h in reaches])
        ways = rng.normal(size=(4000, 3))
        ways = np.concatenate([[tuple(found)], ways / np.linalg.norm(ways, axis=1)[:, None]])
        overlaps = sum((h * np.abs(ways @ a) for a, h in reaches), -ways @ apart)
        assert overlaps[0] < overlaps.min() + 0.02
