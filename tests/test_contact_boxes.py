"""Boxes on boxes: beside the hull of their difference, flush, crossed, edge on edge; at rest and in motion."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.spatial import ConvexHull, HalfspaceIntersection

import bellcrank as bc
from bellcrank.mechanism.contact.ground_contacts import corners_of
from bellcrank.mechanism.contact.narrow_phase import seen_by_contact, touches
from bellcrank.mechanism.contact.touch import ShapeFrame, Touch
from bellcrank.spatial import Vector

G = 9.81


def frame(origin: Any, turn: np.ndarray) -> ShapeFrame:
    return ShapeFrame(*(Vector(*np.asarray(column, dtype=float).tolist()) for column in (origin, *turn.T)))


def numbers(found: list[Touch]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Depths, points, normals and shares of the places that are there."""
    rows = np.array([[t.depth, *t.point, *t.normal, t.share] for t in found if float(t.share) > 0.0], dtype=float)
    return rows[:, 0], rows[:, 1:4], rows[:, 4:7], rows[:, 7]


def test_depth_and_normal_beside_the_hull_of_the_difference() -> None:
    """Two boxes overlap by as much as the origin lies inside the hull of all differences of their corners."""
    rng = np.random.default_rng(1)
    crossings = 0
    for _ in range(60):
        boxes = [bc.Box(rng.uniform(0.1, 0.6, 3)) for _ in range(2)]
        turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
        turns = [turn * np.linalg.det(turn) for turn in turns]
        one, other = (np.array(corners_of(b)) @ turn.T for b, turn in zip(boxes, turns, strict=True))
        planes = ConvexHull((one[:, None] - other[None]).reshape(-1, 3)).equations
        way = rng.normal(size=3)
        along = planes[:, :3] @ way
        hit = np.where(along > 0.0, -planes[:, 3] / np.where(along > 0.0, along, 1.0), np.inf)
        k = int(hit.argmin())
        origin = hit[k] * way - 1e-3 * planes[k, :3]  # 1 mm inside the surface
        inside = -(planes[:, :3] @ origin + planes[:, 3])
        depth, point, normal, share = numbers(touches(boxes[0], frame(np.zeros(3), turns[0]), boxes[1],
                                                      frame(origin, turns[1])))
        full = share == 1.0
        if not full.all():  # a place that another takes over from may lie deeper
            continue
        i = int(depth.argmax())
        crossings += i >= len(depth) - 1
        assert depth[i] == pytest.approx(inside.min(), abs=1e-9)
        assert normal[i] @ planes[inside.argmin(), :3] == pytest.approx(1.0, abs=1e-9)
        for box, turn, at in zip(boxes, turns, (np.zeros(3), origin), strict=True):
            assert (np.abs((point[i] - at) @ turn) <= 0.5 * np.array(box.size) + 1e-3).all()
    assert crossings > 10


@pytest.mark.parametrize("one", ["box", "mesh"])
def test_hulls_beside_the_hull_of_the_difference(one: str) -> None:
    """The same with hulls of meshes: corners in faces, and edges that cross anywhere."""
    rng = np.random.default_rng(1)
    crossings = 0
    for _ in range(25):
        meshes = [bc.Mesh((lambda p: 0.3 * p / np.linalg.norm(p, axis=1)[:, None] * rng.uniform(0.6, 1.0, (14, 1)))(
            rng.normal(size=(14, 3))), [(0, 1, 2)]) for _ in range(2)]
        forms = [bc.Box(rng.uniform(0.1, 0.6, 3)) if one == "box" else seen_by_contact(meshes[0], "one"),
                 seen_by_contact(meshes[1], "other")]
        turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
        turns = [turn * np.linalg.det(turn) for turn in turns]
        first, second = (np.array(corners_of(f) if isinstance(f, bc.Box) else f.corners) @ turn.T
                         for f, turn in zip(forms, turns, strict=True))
        planes = ConvexHull((first[:, None] - second[None]).reshape(-1, 3)).equations
        planes = planes[np.unique(planes.round(8), axis=0, return_index=True)[1]]
        way = rng.normal(size=3)
        along = planes[:, :3] @ way
        hit = np.where(along > 0.0, -planes[:, 3] / np.where(along > 0.0, along, 1.0), np.inf)
        origin = hit.min() * way - 1e-3 * planes[hit.argmin(), :3]
        inside = -(planes[:, :3] @ origin + planes[:, 3])
        if np.partition(inside, 1)[1] < 1.1e-3:  # as deep in two ways
            continue
        found = touches(forms[0], frame(np.zeros(3), turns[0]), forms[1], frame(origin, turns[1]))
        depth, _, normal, _ = numbers(found)
        i = int(depth.argmax())
        crossings += max(float(t.depth) for t in found[-5:]) == depth[i]
        assert depth[i] == pytest.approx(inside.min(), abs=1e-9)
        assert normal[i] @ planes[inside.argmin(), :3] == pytest.approx(1.0, abs=1e-9)
    assert crossings > 5


@pytest.mark.parametrize("other", ["box", "cylinder"])
def test_cylinders_beside_the_hull_of_the_difference(other: str) -> None:
    """The same with cylinders of 64 sides: 2 mm inside, whatever touches what."""
    from bellcrank.mechanism.geometry.placed_shape import as_mesh

    rng = np.random.default_rng(1)
    missed = wrong = 0
    for trial in range(30):
        shapes = [bc.Cylinder(*rng.uniform(0.1, 0.3, 2)),
                  bc.Box(rng.uniform(0.1, 0.6, 3)) if other == "box" else bc.Cylinder(*rng.uniform(0.1, 0.3, 2))]
        turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2)]
        turns = [turn * np.linalg.det(turn) for turn in turns]
        if trial % 3 == 0:
            turns[1] = turns[0] @ (np.eye(3) if trial % 2 else np.array([[0, 0, 1.0], [0, 1, 0], [-1, 0, 0]]))
        one, two = (as_mesh(s, 64).vertices @ turn.T for s, turn in zip(shapes, turns, strict=True))
        planes = ConvexHull((one[:, None] - two[None]).reshape(-1, 3)).equations
        way = rng.normal(size=3)
        along = planes[:, :3] @ way
        hit = np.where(along > 0.0, -planes[:, 3] / np.where(along > 0.0, along, 1.0), np.inf)
        origin = hit.min() * way - 2e-3 * planes[hit.argmin(), :3]
        inside = -(planes[:, :3] @ origin + planes[:, 3])
        depth, _, normal, _ = numbers(touches(shapes[0], frame(np.zeros(3), turns[0]), shapes[1],
                                              frame(origin, turns[1])))
        i = int(depth.argmax())
        missed += depth[i] <= 0.0
        wrong += depth[i] > 0.0 and (abs(depth[i] - inside.min()) > 1e-3 or
                                     normal[i] @ planes[inside.argmin(), :3] < 0.98)
    assert missed == 0 and wrong <= 1


@pytest.mark.parametrize(("shift", "turn"), [((0, 0), 0.0), ((1e-7, 0), 0.0), ((0.03, -0.02), 0.0), ((0, 0), 0.3),
                                             ((1e-5, 2e-5), 1e-6), ((0.0, 0.06), 0.8)])
def test_faces_that_overlap(shift: tuple[float, float], turn: float) -> None:
    """Shares add up to one in every corner of what two faces have in common, also where they are flush."""
    box, h = bc.Box((0.2, 0.2, 0.1)), 1e-4
    c, s = np.cos(turn), np.sin(turn)
    spin = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1.0]])
    depth, point, normal, share = numbers(touches(box, frame(np.zeros(3), np.eye(3)), box,
                                                  frame((*shift, 0.1 - h), spin)))
    assert depth == pytest.approx(h) and np.abs(normal - [0, 0, 1]).max() < 1e-12
    sides = np.array([(i, j, -0.1) for i, j in ((1, 0), (-1, 0), (0, 1), (0, -1))])
    others = np.column_stack([sides[:, :2] @ spin[:2, :2].T, sides[:, 2] - sides[:, :2] @ spin[:2, :2].T @ shift])
    common = HalfspaceIntersection(np.concatenate([sides, others]), 0.5 * np.array(shift)).intersections
    assert share.sum() == pytest.approx(len(np.unique(common.round(4), axis=0)), abs=0.1)
    assert np.abs(share @ point[:, :2] / share.sum() - 0.5 * np.array(shift)).max() < 0.02


def test_a_mesh_that_is_a_box_is_one() -> None:
    from bellcrank.mechanism.geometry.placed_shape import as_mesh

    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(3, 3)))[0]
    plain = as_mesh(bc.Box((0.2, 0.3, 0.4)))
    for spin, shift in ((np.eye(3), np.zeros(3)), (turn, np.array([0.1, 0.2, 0.3]))):
        m = bc.Mechanism("one")
        body = m.add_body("body", bc.Inertia(1.0, (0, 0, 0), (1, 1, 1)))
        m.add_joint("free", bc.Free(), m.ground, body)
        m.add_shape(m.ground, bc.Plane(), role="collision")
        m.add_shape(body, bc.Mesh(plain.vertices @ spin.T + shift, plain.faces), role="collision")
        made = m.add_contact("c", "ground", "body")
        assert isinstance(made.second_shape, bc.Box)
        corners = np.array(corners_of(made.second_shape)) @ made.second_pose.rotation.T + made.second_pose.position
        expected = plain.vertices @ spin.T + shift
        assert np.abs(corners[:, None] - expected[None]).sum(axis=-1).min(axis=1).max() < 1e-9
    cut = plain.vertices.copy()
    cut[0] *= 0.5
    m.add_shape(body, bc.Mesh(cut, plain.faces), role="collision", name="cut")
    assert not isinstance(m.add_contact("d", "ground plane", "cut").second_shape, bc.Box)


def stack(size: tuple[float, float, float], shift: float, turn: float, **material: Any) -> tuple[bc.System, Any]:
    """A box that lies on another one, which is fixed."""
    m = bc.Mechanism("stack")
    body = m.add_body("top", bc.Inertia(2.0, (0, 0, 0), (0.01, 0.01, 0.01)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_shape(m.ground, bc.Box((0.6, 0.1, 0.1)), bc.Pose((0, 0, -0.05)), role="collision")
    m.add_shape(body, bc.Box(size), role="collision")
    m.add_contact("on", m.ground, body, friction=0.6, **material)
    system = bc.compile(m)
    q = system.neutral()
    q[:4] = np.cos(turn / 2), 0, 0, np.sin(turn / 2)
    q[4], q[6] = shift, 0.5 * size[2] - (2.0 * G / (4 * material["stiffness"]) if "stiffness" in material else 0.0)
    return system, (q, np.zeros(6))


def settled(system: bc.System, state: Any) -> float:
    """How far it has gone after half a second."""
    how: dict[str, Any] = {"stepper": "moreau", "step": 5e-3} if system.model.tree.contacts else {"stepper": "dop853"}
    return float(np.abs(system.simulate(state, 0.5, **how)["q"].values[-1] - state[0]).max())


def test_a_plank_across_a_beam_stays() -> None:
    """No corner of either lies in the other."""
    assert settled(*stack((0.1, 0.6, 0.1), 0.1, 0.0, stiffness=1e5, dissipation=1.0)) < 1e-5


def test_a_drum_stands_on_a_narrow_beam() -> None:
    """Its rim is beside the beam but for where it crosses the edges."""
    m = bc.Mechanism("drum")
    body = m.add_body("drum", bc.Inertia(2.0, (0, 0, 0), (0.01, 0.01, 0.02)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_shape(m.ground, bc.Box((0.6, 0.1, 0.1)), bc.Pose((0, 0, -0.05)), role="collision")
    m.add_shape(body, bc.Cylinder(0.2, 0.1), role="collision")
    m.add_contact("on", m.ground, body, friction=0.6)
    system = bc.compile(m)
    q = system.neutral()
    q[6] = 0.05
    assert settled(system, (q, np.zeros(6))) < 1e-6


def test_equal_boxes_stay_on_each_other() -> None:
    assert settled(*stack((0.6, 0.1, 0.1), 0.0, 0.0)) < 1e-9


def test_edge_on_edge_bounces() -> None:
    """A box falls with an edge on an edge, both turned by 45 degrees: it comes back, and no energy is made."""
    m = bc.Mechanism("edges")
    body = m.add_body("top", bc.Inertia(2.0, (0, 0, 0), (0.05, 0.05, 0.01)))
    m.add_joint("free", bc.Free(), m.ground, body)
    m.add_shape(m.ground, bc.Box((0.6, 0.1, 0.1)), bc.Pose.rpy((0, 0, 0), np.pi / 4, 0, 0), role="collision")
    m.add_shape(body, bc.Box((0.1, 0.6, 0.1)), role="collision")
    m.add_contact("edge", m.ground, body, stiffness=1e5, dissipation=0.3, friction=0.5)
    system = bc.compile(m)
    q = system.neutral()
    q[:4] = np.cos(np.pi / 8), 0, np.sin(np.pi / 8), 0
    q[6] = 0.1 * np.sqrt(2) + 0.05
    result = system.simulate((q, np.zeros(6)), 0.25, stepper="dop853", output=1e-3)
    z, energy = result["q"].values[:, 6], result["energy"].values
    assert z.min() == pytest.approx(0.1 * np.sqrt(2), abs=5e-3) and z[-1] > 0.1 * np.sqrt(2) + 0.01
    assert np.diff(energy).max() < 1e-6 * np.ptp(result["kinetic_energy"].values)
    edge = result.element("edge")
    assert np.abs(edge.normal.values[edge.normal_force.values > 0.0] - [0, 0, 1]).max() < 0.01
