"""Flat faces of hulls on each other: a plank of six sides across another one, along it, flush, tilted."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull, HalfspaceIntersection
from scipy.spatial.transform import Rotation

import bellcrank as bc
from bellcrank.mechanism.contact.hull_contacts import _edges_toward
from bellcrank.mechanism.contact.narrow_phase import MOST_CORNERS, seen_by_contact, touches
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch
from bellcrank.spatial import Vector

G = 9.81
RADIUS, LENGTH = 0.05, 0.6
HEIGHT = np.sqrt(3) * RADIUS  # between opposite sides


def prism(standing: bool = False) -> bc.Mesh:
    """Six sides about x, one of them below, or about z."""
    ring = [(RADIUS * np.cos(a), RADIUS * np.sin(a)) for a in np.pi / 3 * np.arange(6)]
    lying = np.array([(x, *c) for x in (-0.5 * LENGTH, 0.5 * LENGTH) for c in ring])
    return bc.Mesh(np.roll(lying, -1, axis=1) if standing else lying, [(0, 1, 2)])


def spin(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])


def frame(origin: Any, turn: np.ndarray) -> ShapeFrame:
    return ShapeFrame(*(Vector(*np.asarray(column, dtype=float).tolist()) for column in (origin, *turn.T)))


def found(one: Any, other: Any, origin: Any, turn: np.ndarray) -> list[Touch]:
    shapes = [s if isinstance(s, bc.Box) else seen_by_contact(s, "shape") for s in (one, other)]
    return touches(shapes[0], frame(np.zeros(3), np.eye(3)), shapes[1], frame(origin, turn))


def rows(places: list[Touch]) -> np.ndarray:
    """Depth, point, normal and share of places."""
    return np.array([[t.depth, *t.point, *t.normal, t.share] for t in places], dtype=float)


@pytest.mark.parametrize("below", [prism(), bc.Box((LENGTH, RADIUS, HEIGHT))])
@pytest.mark.parametrize(("shift", "turn"), [
    ((0, 0), np.pi / 2), ((0.1, 0.05), -np.pi / 2), ((0, 0), 0.3), ((0.02, 0.01), 2.0), ((0.1, 0.03), 0.0),
    ((0.1, 0), np.pi), ((0, 0), 0.0), ((1e-6, -2e-6), 1e-6), ((0.29, 0.0), np.pi / 2), ((0.1, 0.05), 0.3)])
def test_faces_that_overlap(below: Any, shift: tuple[float, float], turn: float) -> None:
    """Shares add up to one in every corner of what two faces have in common, beside the half planes of both; where
    corners lie on corners, to no less than 3/4."""
    h, half = 1e-4, (0.5 * LENGTH, 0.5 * RADIUS)
    every = rows(found(below, prism(), (*shift, HEIGHT - h), spin(turn)))
    there = every[(every[:, 7] > 0.0) & (every[:, 0] > 0.0)]
    assert there[:, 0] == pytest.approx(h) and np.abs(there[:, 4:7] - [0, 0, 1]).max() < 1e-12
    ways = np.array([(1, 0), (-1, 0), (0, 1), (0, -1)])
    out = -np.repeat(half, 2)
    turned = ways @ spin(turn)[:2, :2].T
    planes = np.concatenate([np.column_stack([ways, out]), np.column_stack([turned, out - turned @ shift])])
    inner = next(p for p in np.random.default_rng(0).uniform(-0.3, 0.3, (4000, 2))
                 if (planes[:, :2] @ p + planes[:, 2] < -1e-3).all())
    common = np.unique(HalfspaceIntersection(planes, inner).intersections.round(4), axis=0)
    near = np.linalg.norm(there[None, :, 1:3] - common[:, None], axis=-1) < 3e-4
    assert near.any(axis=0).all()
    total = near @ there[:, 7]
    assert total.max() < 1.05 and total.min() > 0.7
    if turn and turn != 1e-6:
        assert np.abs(total - 1.0).max() < 1e-9


@pytest.mark.parametrize("turn", [np.pi / 6, 0.2, 1.0])
def test_more_crossings_than_places(turn: float) -> None:
    """Two hexagons turned on each other cross twelve times: four of these hold them."""
    every = rows(found(prism(True), prism(True), (0.001, 0.002, LENGTH - 1e-4), spin(turn)))
    there = every[(every[:, 7] > 0.0) & (every[:, 0] > 0.0)]
    assert there[:, 0] == pytest.approx(1e-4) and len(there) >= 4
    around = ConvexHull(there[:, 1:3])
    # each lies no more than 30 degrees beside its direction, two neighbors no more than 120 apart
    assert around.equations[:, 2].max() < -0.5 * np.cos(np.pi / 6) * RADIUS + 0.0025


def test_depths_change_as_bodies_approach() -> None:
    """Tilted a little: the rate of every depth is the speed at which the second body comes nearer there, and no place
    counts twice."""
    rng, h, seen = np.random.default_rng(2), 1e-6, 0
    for _ in range(12):
        turn = Rotation.from_rotvec(5e-3 * rng.normal(size=3)).as_matrix() @ spin(rng.uniform(0.2, 2.9))
        origin = np.array([*rng.uniform(-0.2, 0.2, 2), HEIGHT - 5e-4])
        velocity, omega = rng.normal(size=3), rng.normal(size=3)
        turning = np.cross(omega, turn.T).T
        now, before, after = (rows(found(prism(), prism(), origin + t * velocity, turn + t * turning))
                              for t in (0.0, -h, h))
        there = now[(now[:, 7] > 0.0) & (now[:, 0] > 0.0)]
        same = np.linalg.norm(there[:, None, 1:4] - there[None, :, 1:4], axis=-1) < 1e-9
        assert (same @ there[:, 7]).max(initial=0.0) < 1.0 + 1e-9
        for mine, past, next_ in zip(now, before, after, strict=True):
            if mine[7] > 0.0 and mine[0] > 0.0:
                rate = (next_[0] - past[0]) / (2 * h)
                speed = -mine[4:7] @ (velocity + np.cross(omega, mine[1:4] - origin))
                assert rate == pytest.approx(speed, abs=2e-6)
                seen += 1
    assert seen > 20


@pytest.mark.parametrize(("below", "material"), [
    (prism(), {}), (prism(), {"stiffness": 1e5, "dissipation": 1.0}),
    (bc.Box((LENGTH, RADIUS, HEIGHT)), {})], ids=["rigid", "compliant", "rigid on a box"])
def test_a_plank_across_another_stays(below: Any, material: dict[str, float]) -> None:
    """No corner of either lies in the other: four crossings of edges hold it."""
    m = bc.Mechanism("planks")
    top = m.add_body("top", bc.Inertia(2.0, (0, 0, 0), (0.01, 0.01, 0.01)))
    m.add_joint("free", bc.Free(), m.ground, top)
    m.add_shape(m.ground, below, role="collision")
    m.add_shape(top, prism(), role="collision")
    m.add_contact("on", m.ground, top, friction=0.6, **material)
    system = bc.compile(m)
    q = system.neutral()
    q[:4] = np.cos(0.6), 0, 0, np.sin(0.6)
    q[4], q[6] = 0.1, HEIGHT - (2.0 * G / (4 * material["stiffness"]) if material else 0.0)
    how: dict[str, Any] = {"stepper": "dop853"} if material else {"stepper": "moreau", "step": 5e-3}
    gone = np.abs(system.simulate((q, np.zeros(6)), 0.2, **how)["q"].values - q)
    assert gone.max() < 1e-10


def test_the_edge_toward_a_direction_is_the_farthest_one() -> None:
    """The last of the edges that are looked at, wherever the hull lies and whatever its faces do."""
    rng = np.random.default_rng(4)
    hull = seen_by_contact(bc.Mesh(rng.normal(size=(9, 3)) * [0.2, 0.3, 0.1] + [0.4, -0.1, 0.2], [(0, 1, 2)]), "hull")
    corners = np.array(hull.corners)
    for _ in range(20):
        turn, origin, way = Rotation.random(random_state=rng).as_matrix(), rng.normal(size=3), rng.normal(size=3)
        middles = np.array([origin + turn @ (corners[i] + corners[j]) * 0.5 for i, j in hull.edges])
        edge, _ = _edges_toward(hull, frame(origin, turn), Vector(*way.tolist()))[-1]
        wanted = int((middles @ way).argmax())
        i, j = hull.edges[wanted]
        np.testing.assert_allclose(tuple(edge.middle), middles[wanted], atol=1e-12)
        assert edge.half == pytest.approx(0.5 * np.linalg.norm(corners[i] - corners[j]))


@pytest.mark.parametrize(("shape", "loss"), [("ball", 0.25), ("plank", 0.06), ("foot", 0.02)])
def test_few_corners_stand_for_many(shape: str, loss: float) -> None:
    """24 of 400 corners: what is lost of the hull is small on all sides, and the flat sole of a foot is kept."""
    rng = np.random.default_rng(2)
    points = rng.normal(size=(400, 3))
    points /= np.linalg.norm(points, axis=1)[:, None]
    sizes = {"ball": (1.0, 1.0, 1.0), "plank": (2.0, 0.3, 0.1), "foot": (0.3, 0.1, 0.1)}[shape]
    points = points * sizes
    if shape == "foot":
        sole = np.array([(x, y, -0.1) for x in (-0.3, 0.3) for y in (-0.1, 0.1)])
        points = np.concatenate([points, sole])
    seen = seen_by_contact(bc.Mesh(points, [(0, 1, 2)]), shape)
    kept, planes = np.array(seen.corners), np.array(seen.planes)
    assert len(kept) == MOST_CORNERS
    outside = (points @ planes[:, :3].T - planes[:, 3]).max(axis=1)
    assert outside.max() < loss
    if shape == "foot":
        assert all((np.abs(kept - corner).max(axis=1) < 1e-12).any() for corner in sole)
