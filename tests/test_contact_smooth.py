"""Forces of contact where rounding could decide, and their derivatives beside finite differences."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import bellcrank as bc
from bellcrank.mechanism.contact.narrow_phase import seen_by_contact, touches
from bellcrank.mechanism.contact.touch import TIE, ShapeFrame, held
from bellcrank.scalar.derivative import tangents
from bellcrank.scalar.evaluation import evaluate
from bellcrank.scalar.functions import maximum
from bellcrank.scalar.graph import Graph, Number
from bellcrank.spatial import Vector

OCTAHEDRON = bc.Mesh(0.3 * np.array([(1, 0, 0), (-1, 0, 0), (0, 1, 0), (0, -1, 0), (0, 0, 1), (0, 0, -1.5)]),
                     [(0, 1, 2)])
SHAPES: dict[str, Any] = {"box": bc.Box((0.5, 0.3, 0.4)), "capsule": bc.Capsule(0.15, 0.5),
                          "cylinder": bc.Cylinder(0.25, 0.4), "mesh": seen_by_contact(OCTAHEDRON, "mesh")}
#: pairs of a round shape and one with edges, and how deep the tests go
PAIRS = [("cylinder", "box", 0.1), ("cylinder", "cylinder", 0.01), ("cylinder", "mesh", 0.01),
         ("capsule", "cylinder", 0.14)]
MOVING = ("at", "x", "y", "z")  # the second shape's frame


def loads(one: str, other: str, first: ShapeFrame, second: ShapeFrame) -> list[Number]:
    """Force and moment on the second shape, with 1 N/m at every place; the energy, how much is shared between places,
    and the largest depth."""
    force = moment = Vector.zero()
    energy: Number = 0.0
    shared: Number = 0.0
    deepest: Number = -1.0
    for place in touches(SHAPES[one], first, SHAPES[other], second):
        depth = maximum(place.depth, 0.0)
        push = place.normal * (depth * place.share)
        force, moment = force + push, moment + (place.point - second.origin).cross(push)
        energy, shared = energy + 0.5 * depth * depth * place.share, shared + depth * place.share * (1.0 - place.share)
        deepest = maximum(deepest, place.depth)
    return [*force, *moment, energy, shared, deepest]


@cache
def traced(one: str, other: str) -> tuple[list[Number], list[Number], list[Number]]:
    """Loads of the second shape in the frame of the first, their rates, and the rates of these at constant ones."""
    graph = Graph()
    rows = {k: Vector(*(graph.leaf((k, i)) for i in range(3))) for k in MOVING}
    unit = [Vector(*row) for row in np.eye(3).tolist()]
    out = loads(one, other, ShapeFrame(Vector.zero(), *unit), ShapeFrame(*(rows[k] for k in MOVING)))
    seeds = {graph.leaf((k, i)): {0: graph.leaf(("rate", k, i))} for k in MOVING for i in range(3)}
    first = [rates.get(0, 0.0) for rates in tangents(out, seeds)]
    return out, first, [rates.get(0, 0.0) for rates in tangents(first[:7], seeds)]


def at(one: str, other: str, origin: np.ndarray, turn: np.ndarray, rates: tuple[np.ndarray, np.ndarray] | None = None,
       order: int = 1) -> np.ndarray:
    """Loads (or their rates), one row for each pose."""
    leaves: dict[Any, np.ndarray] = {}
    for kind, (shift, axes) in (("", (origin, turn)), ("rate", rates or (origin, turn))):
        for k, column in zip(MOVING, (shift, *axes.transpose(2, 0, 1)), strict=True):
            leaves |= {((kind, k, i) if kind else (k, i)): column[:, i] for i in range(3)}
    found = evaluate(traced(one, other)[order if rates else 0], leaves)
    return np.stack([np.broadcast_to(np.asarray(x, dtype=float), (len(origin),)) for x in found], axis=-1)


@cache
def poses(one: str, other: str, depth: float) -> tuple[np.ndarray, np.ndarray]:
    """Poses of the second shape, turned anyhow, in which the two overlap by no more than a depth."""
    rng, n = np.random.default_rng(1), 60000 if one == "capsule" else 12000
    turn, way = Rotation.random(n, random_state=rng).as_matrix(), rng.normal(size=(n, 3))
    origin = way * (rng.uniform(0.35, 0.6, n) / np.linalg.norm(way, axis=1))[:, None]
    deepest = at(one, other, origin, turn)[:, -1]
    chosen = (deepest > 0.0) & (deepest < depth)
    assert chosen.sum() > 200
    return origin[chosen], turn[chosen]


@pytest.mark.parametrize(("one", "other", "depth"), PAIRS)
def test_rounding_decides_nothing(one: str, other: str, depth: float) -> None:
    """A line of a cylinder's side that is as far as all of it, an edge across the direction: no end of these is taken
    because rounding has it farther. Forces of poses that differ by rounding do so by no more."""
    rng, (origin, turn) = np.random.default_rng(3), poses(one, other, depth)
    here = at(one, other, origin, turn)
    for _ in range(3):
        near = [x * (1.0 + 2e-16 * rng.integers(-2, 3, size=x.shape)) for x in (origin, turn)]
        apart = np.abs(at(one, other, *near) - here).max(axis=1)
        assert apart.max() < 1e-8 * depth, np.flatnonzero(apart > 1e-8 * depth)


@pytest.mark.parametrize(("one", "other", "depth"), PAIRS)
def test_derivatives_beside_finite_differences(one: str, other: str, depth: float) -> None:
    """Along random motions, everywhere but at kinks: differences to both sides tell these."""
    rng, (origin, turn), h = np.random.default_rng(4), poses(one, other, depth), 1e-7
    velocity, omega = rng.normal(size=(2, *origin.shape))
    exact = at(one, other, origin, turn, (velocity, np.cross(omega[:, :, None], turn, axis=1)))[:, :7]
    before, here, after = (at(one, other, origin + t * velocity, Rotation.from_rotvec(t * omega).as_matrix() @ turn
                              )[:, :7] for t in (-h, 0.0, h))
    size = 1.0 + np.abs(exact).max(axis=1)
    wrong = np.abs((after - before) / (2 * h) - exact).max(axis=1) > 1e-4 * size
    kink = np.abs(after + before - 2 * here).max(axis=1) > 1e-4 * size * h
    assert not (wrong & ~kink).any(), np.flatnonzero(wrong & ~kink)
    assert kink.mean() < 2e-3


@pytest.mark.parametrize(("one", "other"), [("cylinder", "box"), ("cylinder", "mesh"), ("capsule", "cylinder")])
def test_power_is_what_is_stored(one: str, other: str, depth: float = 0.05) -> None:
    """Also deep inside each other, wherever no place takes over from another: points of rims count where they are
    nearest to an edge, not where the search for that was given up."""
    rng, (origin, turn) = np.random.default_rng(6), poses(one, other, depth)
    velocity, omega = rng.normal(size=(2, *origin.shape))
    here = at(one, other, origin, turn)
    rates = at(one, other, origin, turn, (velocity, np.cross(omega[:, :, None], turn, axis=1)))
    power = (here[:, :3] * velocity + here[:, 3:6] * omega).sum(axis=1)
    alone = here[:, 7] < 1e-12
    assert alone.mean() > 0.9
    np.testing.assert_allclose(rates[alone, 6], -power[alone], atol=1e-5 * depth)


@pytest.mark.parametrize("other", ["box", "cylinder", "mesh"])
def test_second_derivatives(other: str) -> None:
    """Of what Newton's method finds, too, although where it begins has no derivatives."""
    rng, (origin, turn), h = np.random.default_rng(7), poses("cylinder", other, 0.01), 1e-6
    velocity, still = rng.normal(size=origin.shape), np.zeros_like(turn)
    exact = at("cylinder", other, origin, turn, (velocity, still), 2)
    before, after = (at("cylinder", other, origin + t * velocity, turn, (velocity, still))[:, :7] for t in (-h, h))
    wrong = np.abs((after - before) / (2 * h) - exact).max(axis=1) > 1e-3 * (1.0 + np.abs(exact).max(axis=1))
    assert wrong.mean() < 5e-3 and len(wrong) > 300  # but where places change within h


def test_what_is_held_ties_as_before() -> None:
    """A direction across an edge stays so to less than what decides between the edge's ends."""
    numbers = np.append(np.random.default_rng(0).uniform(-1.0, 1.0, 1000), [0.0, 1e-17, -1e-17, 1.0, 1.0 - 1e-16])
    found = np.asarray(held(Vector(numbers, numbers, numbers)).x)
    assert np.abs(found - numbers).max() < 0.1 * TIE
    np.testing.assert_array_equal(found[1000:], [0.0, 0.0, 0.0, 1.0, 1.0])
